/// Lesson 3: Can the compiler check a strategy? Partitioning is constexpr, so `static_assert` can.
///
/// You learn to write a thunk, which is a lambda without arguments that partitions a program, and
/// to check the collectives, shapes and bytes that `check<thunk>` computes as constants.
///
/// Output: the peak bytes of a device after each tactic. The checks have run before: a wrong one is
/// an error of the compiler.
// ctest:
#include <iostream>

#include <partita/partita.hpp>  // no Eigen, no xtensor: nothing runs

namespace pt = partita;
using namespace pt::literals;  // 8_KiB

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(tanh(matmul(x, w1)), w2); };

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");

// The thunk. The compiler calls it for the checks below; a program can call it at run time, too.
constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP));
};

// The number of collectives of each kind, first after the whole schedule, then after BP alone. BP
// needs none; MP needs one all_reduce, as in lesson 2.
static_assert(pt::check<step>.collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<step>.tactic("BP").collectives.total() == 0);

// `expect` compares, too, and its error states the value that was found. Change a number below to
// see the diagnostic. Local shapes show the layouts: w1 has half of its columns on each device.
static_assert(pt::expect<pt::check<step>.input("w1").local_shape, pt::shape{8, 8}>);
static_assert(pt::expect<pt::check<step>.input("w2").local_shape, pt::shape{8, 8}>);
static_assert(pt::expect<pt::check<step>.output("result").local_shape, pt::shape{64, 8}>);

// Bytes of one device: arguments, bytes sent, and a bound on the peak.
constexpr int f32 = 4;  // bytes
static_assert(pt::check<step>.argument_bytes == f32 * (64 * 8 + 8 * 8 + 8 * 8));
static_assert(pt::check<step>.collective_bytes == f32 * 64 * 8);  // 2 (n - 1)/n of the operand
static_assert(pt::expect<pt::check<step>.peak_bytes, pt::at_most{8_KiB}>);
static_assert(pt::check<step>.conflicts == 0);

// `after_tactic` has the same constants after an earlier tactic. After BP each device still has all
// of the weights, so the arguments need more memory.
constexpr auto data_parallel = pt::after_tactic<step, "BP">;
static_assert(pt::check<data_parallel>.argument_bytes > pt::check<step>.argument_bytes);

int main() {
  std::cout << "peak bytes after BP: " << pt::check<data_parallel>.peak_bytes
            << ", after MP: " << pt::check<step>.peak_bytes << '\n';
  return pt::check<step>.peak_bytes < pt::check<data_parallel>.peak_bytes ? 0 : 1;
}

// Read more: examples/guide/2_tactics_and_propagation.md. Next lesson: 04_schedules.cpp
