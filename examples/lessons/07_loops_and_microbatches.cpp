/// Lesson 7: How does a batch fit that needs too much memory? Microbatches run it in several steps.
///
/// You learn to write a loop with `for_loop`, to count the collectives inside it, and to split a
/// batch with the tactic `microbatch`.
///
/// Output: the peak bytes of a device, with the batch at once (51,716) and in eight steps (17,416).
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
    // The program has a loop op with one body, not six copies. Shardings propagate into the body.
    const auto y = pt::for_loop(0, 6, block, x);
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

// Batch parallelism: two gradients and the loss are reduced once each, after the loops. A gradient
// accumulates in the backward loop; reducing it there would send it six times.
constexpr auto batch = [] { return with(BP); };
static_assert(pt::check<batch>.collectives == pt::collectives{.all_reduce = 3});

// Megatron's reduction is inside the loops, one forward and one backward. `collectives_as_written`
// counts the ops in the program text; `collectives` counts each as often as its loop runs.
constexpr auto model = [] { return with(BP, MP); };
static_assert(pt::check<model>.tactic("MP").collectives_as_written.all_reduce == 3 + 2);
static_assert(pt::check<model>.tactic("MP").collectives.all_reduce == 3 + 2 * 6);

// Microbatches: the batch runs in eight steps, each with an eighth of the activations. The
// gradients of the steps are added locally and still reduced only once.
constexpr auto in_steps = [] { return with(BP, MB); };
static_assert(pt::check<in_steps>.collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<in_steps>.peak_bytes < pt::check<batch>.peak_bytes / 2);

int main() {
  std::cout << "peak bytes of a device, the batch at once: " << pt::check<batch>.peak_bytes
            << ", in eight steps: " << pt::check<in_steps>.peak_bytes << '\n';
  return 0;
}

// Read more: examples/guide/5_training.md. Next lesson: 08_proof.cpp
