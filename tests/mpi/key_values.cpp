// The key-value store of a job: puts and gets across ranks and threads, time limits, and large
// values. Every rank prints what differs; the job fails if any rank does.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <partita/backend/mpi/key_values.hpp>

namespace pt = partita;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const pt::mpi::world job(argc, argv, MPI_THREAD_MULTIPLE);
  const pt::process_group group = pt::mpi::processes(job);
  pt::key_value_store& store = *group.store;
  const int me = job.rank(), all = job.ranks(), next = (me + 1) % all;
  int wrong = 0;
  const auto check = [&](std::string_view what, bool good) {
    if (!good) std::cout << "rank " << me << ": WRONG " << what << std::endl;
    wrong += good ? 0 : 1;
  };
  const auto key = [](std::string_view what, int i) {
    return std::string(what) + "/" + std::to_string(i);
  };
  check("process and number", group.processes == all && group.peers.process == me);
  const auto everyone = group.peers.all_gather(std::string(static_cast<std::size_t>(me), 'x'));
  for (int r = 0; r < all; ++r) check("gather", static_cast<int>(everyone[r].size()) == r);

  // A get that starts before the put: rank by rank, from the last one to the first.
  if (me == all - 1) {
    std::this_thread::sleep_for(50ms);
    store.put("chain", std::string("0\0end", 5));
  } else {
    check("get waits for a put", store.get(key("chain", me + 1), 20s).has_value());
  }
  store.put(key("chain", me), "arrived");
  check("bytes", store.get("chain", 20s) == std::string("0\0end", 5));

  // Nothing is put: try-get returns at once, get when its time is over.
  const auto start = std::chrono::steady_clock::now();
  check("no key", !store.get("nothing", 0ms) && !store.get("nothing", 100ms));
  const auto took = std::chrono::steady_clock::now() - start;
  check("time limit", took >= 100ms && took < 10s);

  // Several threads of each rank, which wait for each other.
  std::vector<std::thread> threads;
  std::vector<char> good(8, 0);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const std::string mine = key("thread", t) + key("of", me), other = key("thread", 7 - t);
      if (t % 2 == 0) store.put(mine, mine);
      good[static_cast<std::size_t>(t)] =
          store.get(other + key("of", next), 20s) == other + key("of", next);
      if (t % 2 != 0) store.put(mine, mine);
    });
  for (auto& each : threads) each.join();
  for (const char each : good) check("threads", each != 0);

  // A large value, an empty one, and a new value for a key.
  const std::string large(std::size_t{3} << 20, static_cast<char>('a' + me));
  store.put(key("large", me), large);
  const auto got = store.get(key("large", next), 20s);
  check("large", got && got->size() == large.size() && got->back() == 'a' + next);
  store.put(key("empty", me), "");
  check("empty", store.get(key("empty", next), 20s) == "");
  store.put(key("large", me), "small");
  check("put twice", store.get(key("large", me), 0ms) == "small");

  // A rank that leaves early does not end the table for the others.
  if (me > 0) store.put(key("late", me), "here");
  if (me == 0)
    for (int r = 1; r < all; ++r) check("late", store.get(key("late", r), 20s) == "here");
  const auto results = group.peers.all_gather(wrong == 0 ? "" : "x");
  for (const auto& each : results) wrong += each.empty() ? 0 : 1;
  if (me == 0 && wrong == 0) std::cout << "ok on " << all << " ranks" << std::endl;
  return wrong == 0 ? 0 : 1;
}
