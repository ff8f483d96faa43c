// Every collective over every transport: all devices in this process, a thread per device, and
// threads that hold blocks of devices. (Over MPI: tests/mpi.)
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/run/interpreter.hpp>
#include <partita/run/transport/threads.hpp>

#include "../data.hpp"
#include "../exchange_law.hpp"

using namespace partita;
using data::str;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// What each process of `count` gets of the outputs: [process][output], from shards of the inputs.
std::vector<std::vector<run_detail::distributed_array>> run_in_threads(
    const device_program& d, const std::vector<array>& inputs, std::int64_t count) {
  run_detail::thread_mailbox shared;
  std::vector<std::vector<run_detail::distributed_array>> made(at(count));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(at(count));
  for (std::int64_t number = 0; number < count; ++number)
    threads.emplace_back([&, number] {
      try {
        const auto devices = run_detail::device_set::block(d.mesh, number, count);
        run_detail::device_run run(
            d, {}, std::make_unique<run_detail::thread_transport>(devices, shared), {});
        std::vector<run_detail::distributed_array> mine;
        std::vector<const run_detail::distributed_array*> given;
        std::vector<axis_set> axes;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          mine.push_back(run_detail::cut(inputs[i], d.inputs[i], devices));
        for (const auto& each : mine) given.push_back(&each);
        for (const auto& l : d.outputs) axes.push_back(axes_of(d.mesh, l));
        for (int again = 0; again < 2; ++again) made[at(number)] = run(given, axes);
      } catch (const std::exception& e) {
        errors[at(number)] = e.what();
        shared.close();
      }
    });
  for (auto& each : threads) each.join();
  for (const auto& each : errors)
    if (!each.empty()) throw error(std::string_view(each));
  return made;
}

/// Runs a device program with as many processes, each a thread; each one's outputs must be its
/// shards of what the emulator computes, to the bit.
void check_threads(const device_program& d, const std::vector<array>& inputs, std::int64_t count) {
  const auto global = executable(d)(inputs);
  const auto made = run_in_threads(d, inputs, count);
  CAPTURE(count);
  for (std::int64_t number = 0; number < count; ++number) {
    const auto devices = run_detail::device_set::block(d.mesh, number, count);
    for (std::size_t i = 0; i < global.size(); ++i) {
      const auto want = run_detail::cut(global[i], d.outputs[i], devices);
      const auto& got = made[at(number)][i];
      REQUIRE(got.copies.size() == want.copies.size());
      for (std::size_t k = 0; k < want.copies.size(); ++k) {
        CAPTURE(number);
        CAPTURE(i);
        CHECK(std::memcmp(want.copies[k].bytes(), got.copies[k].bytes(),
                          at(want.copies[k].type().bytes())) == 0);
      }
    }
  }
}
void check_threads(const device_program& d, const std::vector<array>& inputs) {
  for (std::int64_t count = 2; count <= d.mesh.devices(); count *= 2)
    check_threads(d, inputs, count);
}

array numbers(const shape& s) {
  return data::fill({dtype::f32, s},
                    [](std::int64_t i) { return 0.3 * static_cast<double>(i * 7 % 11) - 1; });
}

}  // namespace

TEST_CASE("a thread per device: gathers, reductions and slices") {
  const program p =
      trace([](auto x, auto w1, auto w2) { return matmul(tanh(matmul(x, w1)), w2); },
            input<float, 8, 4>("x"), input<float, 4, 16>("w1"), input<float, 16, 4>("w2"));
  const mesh m{{"B", 2}, {"M", 4}};
  const auto bp = manual("B", {{"x", 0}}), mp = manual("M", {{"w1", 1}});
  const auto z3 = manual("B", {{"w1", 0}, {"w2", 1}});
  const std::vector<array> inputs = {numbers({8, 4}), numbers({4, 16}), numbers({16, 4})};
  check_threads(partition(p, m, schedule(bp)).device, inputs);
  check_threads(partition(p, m, schedule(bp, mp)).device, inputs);
  check_threads(partition(p, m, schedule(bp, mp, z3)).device, inputs);
}

TEST_CASE("law: every collective gives the same bits over every transport") {
  for (unsigned seed = 0; seed < 250; ++seed) {
    CAPTURE(seed);
    const exchange_law::random_exchange e(seed);
    CAPTURE(static_cast<int>(e.what.kind));
    run_detail::in_process all(e.m);
    const auto want = exchange_law::run_one(e, all);
    for (std::int64_t count = 2; count <= e.m.devices(); count *= 2) {
      CAPTURE(count);
      run_detail::thread_mailbox shared;
      std::vector<char> same(at(count));
      std::vector<std::thread> threads;
      for (std::int64_t p = 0; p < count; ++p)
        threads.emplace_back([&, p] {
          run_detail::thread_transport t(run_detail::device_set::block(e.m, p, count), shared);
          same[at(p)] = exchange_law::same_bits(e, t.devices(), exchange_law::run_one(e, t), want);
        });
      for (auto& each : threads) each.join();
      for (std::int64_t p = 0; p < count; ++p) {
        CAPTURE(p);
        REQUIRE(same[at(p)]);
      }
    }
  }
}
