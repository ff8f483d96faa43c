// Rematerialization at compile time: its cost and its savings, with loops over microbatches too.
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 4}};
constexpr auto R = pt::remat({"w"}, "R");
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MB = pt::microbatch(2, {{"x", 0}}, "MB");

constexpr auto training_step = [](auto x, auto w) {
  const auto loss = [&](const auto& v) {
    auto h = x;
    for (const auto& each : v) h = h + tanh(matmul(h, each));
    return sum(h);
  };
  const auto [value, g] = pt::value_and_grad(loss, w);
  return std::tuple{pt::output("g", g), pt::output("loss", value)};
};
constexpr auto partitioned = [](auto... tactics) {
  const auto f = pt::trace(training_step, pt::input<float, 256, 8>("x"),
                           pt::input<std::array<pt::tensor<float, 8, 8>, 3>>("w"));
  return pt::partition(f, mesh, pt::schedule(tactics...));
};
constexpr auto whole = [] { return partitioned(BP); };
constexpr auto again = [] { return partitioned(BP, R); };
constexpr auto steps = [] { return partitioned(R, MB, BP); };

// Three products of 64 x 8 with 8 x 8 more, and three of 64 x 8 elements.
static_assert(pt::check<again>.flops == pt::check<whole>.flops + 3 * (2 * 64 * 8 * 8 + 64 * 8));
static_assert(pt::check<again>.peak_bytes < pt::check<whole>.peak_bytes);
static_assert(pt::check<again>.collectives == pt::check<whole>.collectives);
static_assert(pt::check<again>.proved);
static_assert(pt::check<steps>.collectives == pt::check<whole>.collectives);
static_assert(pt::check<steps>.peak_bytes < pt::check<again>.peak_bytes);

}  // namespace
