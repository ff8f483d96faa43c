// Layers that are stacked and scanned: first_divisible_dim looks at a layer, so that each iteration
// gathers the parameters of its own layer and scatters its own gradient.
#include "models.hpp"

namespace {

namespace pt = partita;

constexpr std::int64_t layers = 4, width = 8, hidden = 16, rows = 8;

struct stack {
  using up_matrices = pt::tensor<float, layers, width, hidden>;
  using down_matrices = pt::tensor<float, layers, hidden, width>;
  using scales = pt::tensor<float, layers, 3>;
  BOOST_HANA_DEFINE_STRUCT(stack, (up_matrices, up), (down_matrices, down), (scales, scale));
};

constexpr auto step = [](const stack& p, const auto& state, const auto& x) {
  const auto loss = [&](const stack& each) {
    const auto [h, none] = pt::scan(
        [](auto c, const auto& layer) {
          const auto& [up, down, scale] = layer;
          return std::pair{c + matmul(tanh(matmul(c, up)), down) * sum(scale), pt::nothing{}};
        },
        x, std::tuple{each.up, each.down, each.scale});
    return mean(h * h);
  };
  const auto [value, g] = pt::value_and_grad(loss, p);
  const auto [next, next_state] = pt::adam({}, p, g, state);
  return std::tuple{pt::output("params", next), pt::output("opt_state", next_state),
                    pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<stack>("params"),
                   pt::input("opt_state", pt::adam_state_for(stack{})),
                   pt::input<float, rows, width>("x"));
};

constexpr pt::mesh mesh{{"B", 4}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z2 =
    pt::manual("B", {{"params", pt::replicated}, {"opt_state", pt::first_divisible_dim}}, "Z2");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

constexpr auto sharded = [] { return pt::partition(traced(), mesh, pt::schedule(BP, Z3)); };

// For each of four layers: two matrices gathered forward; two where the derivative computes the
// layer again, and two where it goes back; two gradients scattered. All-reduced: the gradient of
// each layer's scale, which has nothing that four devices could share, and the loss.
static_assert(pt::check<sharded>.collectives == pt::collectives{.all_gather = layers * 6,
                                                                .all_reduce = layers + 1,
                                                                .reduce_scatter = layers * 2});
static_assert(pt::check<sharded>.input("params.up").local_shape == pt::shape{4, 2, 16});
static_assert(pt::check<sharded>.input("opt_state.m.down").local_shape == pt::shape{4, 4, 8});
static_assert(pt::check<sharded>.input("opt_state.v.scale").local_shape == pt::shape{4, 3});

}  // namespace

TEST_CASE("stacked layers: sharded as layers are") {
  const models::source model(traced(), [](std::string_view) { return 1; });
  CHECK(model.emulated(mesh, BP, Z3) == pt::check<sharded>.collectives);
  // What is computed again and then derived is gathered once: four for each layer.
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, Z3).collectives.all_gather ==
        layers * 4);
  // Updated in parts, two stacks are gathered once.
  CHECK(model.emulated(mesh, BP, Z2) ==
        pt::collectives{.all_gather = 2, .all_reduce = layers + 1, .reduce_scatter = layers * 2});
}
