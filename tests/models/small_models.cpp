// Models that differ in what they communicate, each with the collectives that one writes by hand.
#include "../../examples/models/small/adapters.hpp"
#include "../../examples/models/small/contrastive.hpp"
#include "../../examples/models/small/diffusion.hpp"
#include "../../examples/models/small/recurrence.hpp"
#include "../../examples/models/small/state_space.hpp"
#include "../../examples/models/small/vision.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
constexpr auto any_limit = [](std::string_view) { return 8; };

}  // namespace

TEST_CASE("adapters of low rank: only they are reduced") {
  using namespace small::adapters;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = 4 + 1});
  // Behind `down`, and what its adapter makes in between, forward; in front of the adapter of `up`
  // backward, since `x` has no gradient.
  CHECK(model.emulated(mesh, BP, MP) == pt::collectives{.all_reduce = 4 + 1 + 3});
  // Frozen weights are gathered: once for the forward pass, `down` once for its cotangent.
  CHECK(model.emulated(mesh, BP, MP, Z3) == pt::collectives{.all_gather = 3, .all_reduce = 8});
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, MP, Z3).collectives ==
        pt::collectives{.all_gather = 2, .all_reduce = 8});
}
TEST_CASE("a recurrence: gradients are reduced behind the loop, states are gathered in it") {
  using namespace small::recurrence;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = 4 + 1});
  // In each step the state is gathered, forward and where the derivative computes the step again;
  // its cotangent is scattered. Behind the loop: the product with `out`.
  CHECK(model.rewritten({.share_gathers = true}, mesh, MP).collectives ==
        pt::collectives{.all_gather = 2 * steps, .all_reduce = 1, .reduce_scatter = steps});
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, MP).collectives ==
        pt::collectives{.all_gather = 2 * steps, .all_reduce = 5 + 1, .reduce_scatter = steps});
}
TEST_CASE("a contrastive loss: one side is gathered, and its cotangent scattered") {
  using namespace small::contrastive;
  const models::source model(traced(), any_limit);
  // All-reduced: two projections and the scale; both losses at once; largest element and sum of
  // columns.
  CHECK(model.rewritten({.share_gathers = true}, mesh, rows, BP).collectives ==
        pt::collectives{.all_gather = 1, .all_reduce = 3 + 1 + 2, .reduce_scatter = 1});
}
TEST_CASE("a vision transformer: batch, model and fully sharded parallelism") {
  using namespace small::vision;
  constexpr int per_layer = 8, count = per_layer * depth + 5;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = count + 1});
  // Behind attention and MLP, and in front of them backward.
  CHECK(model.emulated(mesh, BP, MP) == pt::collectives{.all_reduce = count + 1 + 4 * depth});
  // Gathered forward; factors of products once more for cotangents, but for the patches' kernel:
  // images have no gradient.
  CHECK(model.emulated(mesh, BP, MP, Z3) == pt::collectives{.all_gather = count + 4 * depth + 1,
                                                            .all_reduce = 1 + 4 * depth,
                                                            .reduce_scatter = count});
  CHECK(model.rewritten({.share_gathers = true}, mesh, BP, MP, Z3).collectives ==
        pt::collectives{.all_gather = count, .all_reduce = 1 + 4 * depth, .reduce_scatter = count});
}
TEST_CASE("a diffusion transformer: what conditions is whole on each device of a batch") {
  using namespace small::diffusion;
  constexpr int per_layer = 7, count = per_layer * depth + 3;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = count + 1});
  CHECK(model.emulated(mesh, BP, MP) == pt::collectives{.all_reduce = count + 1 + 4 * depth});
  // Factors of products once more, but for those of the input and of the step: these have no
  // gradient.
  CHECK(model.emulated(mesh, BP, MP, Z3) ==
        pt::collectives{.all_gather = count + per_layer * depth + 1,
                        .all_reduce = 1 + 4 * depth,
                        .reduce_scatter = count});
}
TEST_CASE("a state space: channels are apart, what they read and write is summed") {
  using namespace small::state_space;
  constexpr int count = 8;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = count + 1});
  // Over channels, forward: what is written and read, the rate's low rank, the output. Backward:
  // the cotangents of what is written and read, in each step, and of the low rank.
  CHECK(model.emulated(mesh, BP, MP) ==
        pt::collectives{.all_reduce = count + 1 + 4 + 2 * steps + 1});
}
