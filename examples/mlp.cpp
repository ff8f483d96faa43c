/// The README's example: a model, a strategy, and checks of the strategy by the compiler.
///
/// Prints the effect of the schedule and the program of one device, and runs the program on eight
/// emulated devices.
// ctest:
#include <cstdint>
#include <iostream>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

// The model does not mention devices.
constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };

// The strategy names only inputs of the model.
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");   // batch parallelism
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");  // Megatron; w2 follows by propagation
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");  // fully sharded parameters

// A thunk: the compiler calls it for the checks, and main calls it to run the program.
constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP, Z3));
};

// The compiler checks these before anything runs.
static_assert(pt::check<step>.collectives == pt::collectives{.all_gather = 2, .all_reduce = 1});
static_assert(pt::check<step>.input("x").local_shape == pt::shape{64, 8});
static_assert(pt::check<step>.input("w1").local_shape == pt::shape{2, 8});

// Returns small integers. Their products and sums are exact, so results can be compared exactly.
pt::array numbers(const pt::shape& shape, std::int64_t factor) {
  pt::array a(pt::tensor_type{pt::dtype::f32, shape});
  float* out = a.mutable_data<float>();
  for (std::int64_t i = 0; i < a.size(); ++i) out[i] = static_cast<float>(i * factor % 7 - 3);
  return a;
}

int main() {
  const pt::partitioned p = step();
  std::cout << "the source program:\n"
            << pt::print(p.source) << '\n'
            << pt::report(p) << '\n'
            << "the program of one device:\n"
            << pt::print(p) << '\n';

  const pt::array x = numbers({256, 8}, 3), w1 = numbers({8, 16}, 5), w2 = numbers({16, 8}, 2);
  const pt::results on_eight = pt::emulate(p, x, w1, w2);
  const pt::results on_one = pt::evaluate(p, x, w1, w2);
  const bool same = pt::equal(on_eight, on_one);
  std::cout << "eight devices compute " << (same ? "what one does" : "something else") << '\n';
  return same ? 0 : 1;
}
