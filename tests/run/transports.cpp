// Every collective over every transport: all devices in this process, a thread per device, and
// threads with blocks of devices. (Over MPI: tests/mpi.)
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>

#include "../data.hpp"
#include "../exchange_law.hpp"
#include "../thread_processes.hpp"
#include "device_programs.hpp"

using namespace partita;
using data::str;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Checks that each number of processes that can share the devices computes the bits of the
/// emulator.
void check_threads(const device_program& d, const std::vector<array>& inputs) {
  const auto want = executable(d)(inputs);
  for (std::int64_t count = 2; count <= d.mesh.devices(); ++count)
    if (thread_processes::divides(d.mesh, count))
      CHECK(thread_processes::problem_of(d, inputs, want, count) == "");
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

TEST_CASE("processes that disagree each get the error of the emulator") {
  const auto check = [](const char* text, bool sharded, const array& x, std::string_view wanted) {
    device_program d;
    d.local = parse(text, d.mesh);
    layout rows;
    rows.push_back(0, 0);
    d.inputs.push_back(rows);
    d.input_types.push_back(x.type());
    d.outputs.push_back(sharded ? rows : layout{});
    d.output_types.push_back({x.element(), sharded ? x.shape() : shape{1}});
    CHECK(device_programs::message_of([&] { emulate(d, x); }) == wanted);
    CHECK(device_programs::message_of([&] { thread_processes::run_in_threads(d, {x}, 2); }) ==
          wanted);
  };
  const array apart = data::fill({dtype::f64, {2}}, [](std::int64_t i) { return 3 + i; });
  const char* replicated = R"(func @main(%x: tensor<1xf64>) attributes {mesh = {"B":2}} {
  %y = add(%x, %x) : tensor<1xf64>
  return %y : tensor<1xf64>
})";
  check(replicated, false, apart,
        "R006 run: output \"y\" differs between devices that should hold the same shard");
  check(device_programs::doubled_until_10, true,
        data::fill({dtype::f64, {2}}, [](std::int64_t i) { return 3 + 9 * i; }),
        "R014 run: the condition of while (%y) differs between devices: all have to take the same "
        "branches and iterations");
}
