/// A key-value store that the processes of a job share, over MPI.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <partita/backend/mpi/world.hpp>
#include <partita/backend/process_group.hpp>

namespace partita::backend_detail {

/// Rank 0 holds the table. A thread there answers the other ranks; those that wait for a key are
/// answered when it is put, or when their time is over. Waits poll, because MPI's own waits occupy
/// a core.
///
/// All ranks create and destroy it. The thread ends when all other ranks have left, so a rank may
/// still put and get while another destroys its store.
class mpi_key_values final : public key_value_store {
 public:
  /// Errors    J008 MPI does not permit calls from several threads
  explicit mpi_key_values(const mpi::world& w)
      : world_(w), rank_(w.rank()), here_(w.rank() == 0 ? w.ranks() - 1 : 0) {
    int level = 0;
    need(MPI_Query_thread(&level), "MPI_Query_thread");
    if (level < MPI_THREAD_MULTIPLE)
      throw error(concat("J008 mpi: a key-value store needs MPI_THREAD_MULTIPLE; create the world ",
                         "with it: mpi::world job(argc, argv, MPI_THREAD_MULTIPLE)"));
    need(MPI_Comm_dup(w.communicator(), &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    if (here_ > 0) thread_ = std::thread([this] { serve(); });
  }
  mpi_key_values(const mpi_key_values&) = delete;
  mpi_key_values& operator=(const mpi_key_values&) = delete;
  ~mpi_key_values() override {
    if (here_ > 0 && std::uncaught_exceptions() > exceptions_)
      world_.fail("an exception left the scope of the key-value store, which other ranks use");
    if (thread_.joinable()) thread_.join();
    if (rank_ != 0) MPI_Send(nullptr, 0, MPI_BYTE, 0, leave_tag, comm_);
    MPI_Comm_free(&comm_);
  }

  void put(const std::string& key, const std::string& value) override {
    if (rank_ != 0) {
      ask({true, 0}, key, value);
      return;
    }
    const std::lock_guard lock(mutex_);
    table_[key] = value;
    changed_.notify_all();
  }
  std::optional<std::string> get(const std::string& key,
                                 std::chrono::milliseconds timeout) override {
    if (rank_ != 0) return ask({false, timeout.count()}, key, {});
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return table_.contains(key); });
    if (const auto found = table_.find(key); found != table_.end()) return found->second;
    return std::nullopt;
  }

 private:
  static constexpr int request_tag = 0, leave_tag = 1, first_answer_tag = 2, answer_tags = 30000;
  /// The beginning of a request; the key follows, and the value of a put.
  struct request {
    bool puts = false;
    std::int64_t timeout = 0;  ///< milliseconds
    std::uint64_t key_size = 0;
    int answer_tag = 0;  ///< tells apart the threads of a rank
  };
  struct waiter {
    int rank = 0, tag = 0;
    std::string key;
    double until = 0;
  };

  /// Takes a message that has arrived. Threads cannot take each other's message.
  bool take(int source, int tag, std::string& bytes, MPI_Status& from) const {
    int any = 0, size = 0;
    MPI_Message message;
    need(MPI_Improbe(source, tag, comm_, &any, &message, &from), "MPI_Improbe");
    if (any == 0) return false;
    need(MPI_Get_count(&from, MPI_BYTE, &size), "MPI_Get_count");
    bytes.resize(static_cast<std::size_t>(size));
    need(MPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return true;
  }
  static void rest() { std::this_thread::sleep_for(std::chrono::microseconds(500)); }

  /// Sends a request to rank 0 and waits for the answer: "+" and a value, or nothing.
  std::optional<std::string> ask(request r, const std::string& key, const std::string& value) {
    r.key_size = key.size();
    r.answer_tag = first_answer_tag + static_cast<int>(asked_++ % answer_tags);
    std::string bytes(reinterpret_cast<const char*>(&r), sizeof r);
    bytes += key + value;
    need(MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, request_tag, comm_),
         "MPI_Send");
    MPI_Status from;
    while (!take(0, r.answer_tag, bytes, from)) rest();
    if (bytes.empty()) return std::nullopt;
    return bytes.substr(1);
  }

  // ---- On rank 0 --------------------------------------------------------------------------------

  void answer(const waiter& to, const std::string& bytes) const {
    need(MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to.rank, to.tag, comm_),
         "MPI_Send");
  }
  void serve() {
    std::string bytes;
    MPI_Status from;
    while (here_ > 0) {
      const bool arrived = take(MPI_ANY_SOURCE, MPI_ANY_TAG, bytes, from);
      if (arrived && from.MPI_TAG == leave_tag)
        --here_;
      else if (arrived)
        handle(from.MPI_SOURCE, bytes);
      answer_waiters();
      if (!arrived) rest();
    }
  }
  void handle(int rank, const std::string& bytes) {
    request r;
    std::memcpy(&r, bytes.data(), sizeof r);
    const std::string key = bytes.substr(sizeof r, r.key_size);
    const waiter asks{rank, r.answer_tag, key,
                      seconds_now() + static_cast<double>(r.timeout) / 1e3};
    if (!r.puts) return waiters_.push_back(asks);
    put(key, bytes.substr(sizeof r + r.key_size));
    answer(asks, "+");
  }
  void answer_waiters() {
    const double now = seconds_now();
    const std::lock_guard lock(mutex_);
    std::erase_if(waiters_, [&](const waiter& each) {
      const auto found = table_.find(each.key);
      if (found != table_.end())
        answer(each, "+" + found->second);
      else if (now >= each.until)
        answer(each, {});
      return found != table_.end() || now >= each.until;
    });
  }

  const mpi::world& world_;
  int rank_;
  std::atomic<int> here_;  // on rank 0: other ranks that have not left
  int exceptions_ = std::uncaught_exceptions();
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::atomic<unsigned> asked_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> table_;
  std::vector<waiter> waiters_;
  std::thread thread_;
};

}  // namespace partita::backend_detail

namespace partita::mpi {

/// Returns the processes of a job as xla::client_options::group. All ranks call it. The world has
/// to outlive it.
///
///   pt::mpi::world job(argc, argv, MPI_THREAD_MULTIPLE);
///   pt::xla::client gpus(plugin, {.group = pt::mpi::processes(job)});
///
/// Errors    J008 the world has another thread level
inline process_group processes(const world& w) {
  return {w.ranks(),
          {w.rank(),
           [&w](const std::string& mine) {
             return w.watched().gather(mine, 0, "an exchange between processes");
           }},
          std::make_shared<backend_detail::mpi_key_values>(w)};
}

}  // namespace partita::mpi
