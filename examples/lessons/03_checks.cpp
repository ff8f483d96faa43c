/// Lesson 3: the compiler checks the strategy.
///
/// Learnt: a thunk, a lambda without arguments that partitions; `check<thunk>` has what came of
/// it as constants, so that collectives, shapes and bytes stand in a static_assert;
/// `after_tactic` has them as they were in between.
///
/// Printed: a few of these constants. What the checks say is checked before that: by compiling.
// ctest:
#include <iostream>

#include <partita/partita.hpp>  // no Eigen, no xtensor: nothing runs

namespace pt = partita;
using namespace pt::literals;  // 8_KiB

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(tanh(matmul(x, w1)), w2); };

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");

constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP));
};

// How many collectives of which kind: of the whole schedule, and of its first tactic.
static_assert(pt::check<step>.collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<step>.tactic("BP").collectives.total() == 0);

// With `expect` a check that fails says what it found, here how inputs and outputs lie on the mesh.
static_assert(pt::expect<pt::check<step>.input("w1").local_shape, pt::shape{8, 8}>);
static_assert(pt::expect<pt::check<step>.input("w2").local_shape, pt::shape{8, 8}>);
static_assert(pt::expect<pt::check<step>.output("result").local_shape, pt::shape{64, 8}>);

// What a device holds and sends: figures, and bounds.
constexpr int f32 = 4;  // bytes
static_assert(pt::check<step>.argument_bytes == f32 * (64 * 8 + 8 * 8 + 8 * 8));
static_assert(pt::check<step>.collective_bytes == f32 * 64 * 8);  // 2 (n - 1)/n of the operand
static_assert(pt::expect<pt::check<step>.peak_bytes, pt::at_most{8_KiB}>);
static_assert(pt::check<step>.conflicts == 0);

// The same behind the first tactic: twice as much of the weights.
constexpr auto data_parallel = pt::after_tactic<step, "BP">;
static_assert(pt::check<data_parallel>.argument_bytes > pt::check<step>.argument_bytes);

int main() {
  std::cout << "peak bytes behind BP: " << pt::check<data_parallel>.peak_bytes
            << ", behind MP: " << pt::check<step>.peak_bytes << '\n';
  return pt::check<step>.peak_bytes < pt::check<data_parallel>.peak_bytes ? 0 : 1;
}
