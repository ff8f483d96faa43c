// Layers that are stacked and scanned: first_divisible_dim sees one layer, so each iteration
// gathers the parameters of its own layer and scatters its own gradient.
#include "../../examples/models/small/stacked.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::stacked;

constexpr auto sharded = [] { return pt::partition(traced(), mesh, pt::schedule(BP, Z3)); };

// For each of four layers: two matrices are gathered forward, two where the derivative recomputes
// the layer, and two in its backward pass; two gradients are scattered. All-reduced: the gradient
// of each layer's scale, which has no dimension that four devices divide, and the loss.
static_assert(pt::check<sharded>.collectives == pt::collectives{.all_gather = layers * 6,
                                                                .all_reduce = layers + 1,
                                                                .reduce_scatter = layers * 2});
static_assert(pt::check<sharded>.input("params.up").local_shape == pt::shape{4, 2, 16});
static_assert(pt::check<sharded>.input("opt_state.m.down").local_shape == pt::shape{4, 4, 8});
static_assert(pt::check<sharded>.input("opt_state.v.scale").local_shape == pt::shape{4, 3});

}  // namespace

TEST_CASE("stacked layers are sharded like single layers") {
  const models::source model(traced(), [](std::string_view) { return 1; });
  CHECK(model.emulated(mesh, BP, Z3) == pt::check<sharded>.collectives);
  // A layer that is recomputed and then differentiated is gathered once: four gathers per layer.
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, Z3).collectives.all_gather ==
        layers * 4);
  // Two stacks that are updated in blocks are gathered once.
  CHECK(model.emulated(mesh, BP, Z2) ==
        pt::collectives{.all_gather = 2, .all_reduce = layers + 1, .reduce_scatter = layers * 2});
}
