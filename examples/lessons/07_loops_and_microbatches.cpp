/// Lesson 7: loops in the model, and a batch in steps.
///
/// Learnt: `for_loop` stays a loop in the program, shardings flow through it, and its
/// collectives count as often as it runs; `microbatch` runs what is computed from a batch in
/// steps, with less memory and no more reductions of gradients.
///
/// Printed: peak memory of a device, with the batch at once and in eight steps.
// ctest:
#include <iostream>
#include <tuple>

#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto training_step = [](auto x, auto w1, auto w2) {
  const auto loss = [&](const auto& w) {
    const auto block = [&](auto, auto h) {
      return h + matmul(tanh(matmul(h, std::get<0>(w))), std::get<1>(w));
    };
    const auto y = pt::for_loop(0, 6, block, x);  // six times the same block
    return sum(y * y);
  };
  const auto [value, g] = pt::value_and_grad(loss, std::tuple{w1, w2});
  return std::tuple{pt::output("w1", w1 - std::get<0>(g)), pt::output("w2", w2 - std::get<1>(g)),
                    pt::output("loss", value)};
};
constexpr auto with = [](auto... tactics) {
  const auto f = pt::trace(training_step, pt::input<float, 512, 8>("x"),
                           pt::input<float, 8, 16>("w1"), pt::input<float, 16, 8>("w2"));
  return pt::partition(f, {{"B", 4}, {"M", 2}}, pt::schedule(tactics...));
};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto MB = pt::microbatch(8, {{"x", 0}}, "MB");

// Gradients and loss are summed over the batch once, behind the loop: three sums, wherever they are
// made.
constexpr auto batch = [] { return with(BP); };
static_assert(pt::check<batch>.collectives == pt::collectives{.all_reduce = 3});

// Megatron's sum is inside of the loops, forward and backward: written twice, run six times each.
constexpr auto model = [] { return with(BP, MP); };
static_assert(pt::check<model>.tactic("MP").collectives_as_written.all_reduce == 3 + 2);
static_assert(pt::check<model>.tactic("MP").collectives.all_reduce == 3 + 2 * 6);

// In eight steps: the same sums over the batch, and an eighth of the activations.
constexpr auto in_steps = [] { return with(BP, MB); };
static_assert(pt::check<in_steps>.collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<in_steps>.peak_bytes < pt::check<batch>.peak_bytes / 2);

int main() {
  std::cout << "peak bytes of a device, the batch at once: " << pt::check<batch>.peak_bytes
            << ", in eight steps: " << pt::check<in_steps>.peak_bytes << '\n';
  return 0;
}
