// Microbatches at compile time: the number of runs of collectives, and the memory that the loop
// saves.
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto MB = pt::microbatch(8, {{"x", 0}}, "MB");
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

constexpr auto training_step = [](auto x, auto w1, auto w2) {
  const auto loss = [&](const auto& w) {
    const auto y = matmul(tanh(matmul(x, std::get<0>(w))), std::get<1>(w));
    return sum(y * y);
  };
  const auto [value, g] = pt::value_and_grad(loss, std::tuple{w1, w2});
  return std::tuple{pt::output("w1", w1 - std::get<0>(g)), pt::output("w2", w2 - std::get<1>(g)),
                    pt::output("loss", value)};
};
constexpr auto partitioned = [](auto... tactics) {
  const auto f = pt::trace(training_step, pt::input<float, 1024, 8>("x"),
                           pt::input<float, 8, 16>("w1"), pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(tactics...));
};

constexpr auto whole = [] { return partitioned(BP); };
constexpr auto steps = [] { return partitioned(BP, MB); };
constexpr auto first = [] { return partitioned(MB, BP); };
// Two gradients and the loss are reduced once, after the loop.
static_assert(pt::check<whole>.collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<steps>.collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<first>.collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<steps>.input("x").local_shape == pt::shape{256, 8});
static_assert(2 * (pt::check<steps>.peak_bytes - pt::check<steps>.argument_bytes) <
              pt::check<whole>.peak_bytes - pt::check<whole>.argument_bytes);
static_assert(pt::check<steps>.flops >= pt::check<whole>.flops);

// In the loop: Megatron's sum (forward; x has no gradient) and the gathers of sharded parameters,
// w1 forward, w2 forward and backward, in each of eight steps.
constexpr auto sharded = [] { return partitioned(BP, MB, MP, Z3); };
static_assert(pt::check<sharded>.tactic("BP").collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<sharded>.tactic("MP").collectives ==
              pt::collectives{.all_reduce = 3 + 8 * 1});
static_assert(pt::check<sharded>.collectives ==
              pt::collectives{.all_gather = 8 * 3, .all_reduce = 1 + 8 * 1, .reduce_scatter = 2});

// The mean over the tokens of a mask: its sum is computed before the loop, and reduced once.
constexpr auto token_mean = [](auto x, auto m, auto w1, auto w2) {
  const auto loss = [&](const auto& w) {
    const auto y = matmul(tanh(matmul(x, std::get<0>(w))), std::get<1>(w));
    return sum(sum<1>(y * y) * m) / sum(m);
  };
  const auto [value, g] = pt::value_and_grad(loss, std::tuple{w1, w2});
  return std::tuple{pt::output("w1", w1 - std::get<0>(g)), pt::output("w2", w2 - std::get<1>(g)),
                    pt::output("loss", value)};
};
constexpr auto masked = [](auto... tactics) {
  const auto f = pt::trace(token_mean, pt::input<float, 1024, 8>("x"), pt::input<float, 1024>("m"),
                           pt::input<float, 8, 16>("w1"), pt::input<float, 16, 8>("w2"));
  constexpr auto batch = pt::manual("B", {{"x", 0}, {"m", 0}}, "BP");
  return pt::partition(f, mesh, pt::schedule(batch, tactics...));
};
constexpr auto masked_whole = [] { return masked(); };
constexpr auto masked_steps = [] { return masked(pt::microbatch(8, {{"x", 0}, {"m", 0}}, "MB")); };
static_assert(pt::check<masked_whole>.collectives == pt::collectives{.all_reduce = 4});
static_assert(pt::check<masked_steps>.collectives == pt::collectives{.all_reduce = 4});
static_assert(2 * (pt::check<masked_steps>.peak_bytes - pt::check<masked_steps>.argument_bytes) <
              pt::check<masked_whole>.peak_bytes - pt::check<masked_whole>.argument_bytes);

}  // namespace
