// Models that differ in what they communicate, each with the collectives that one writes by hand:
// counted by the compiler, and what runs has them.
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
constexpr pt::passes shared{.share_gathers = true};

}  // namespace

namespace {
namespace adapters {
using namespace small::adapters;

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };
// The gradients of four adapters and the loss over "B". Over "M": behind `down`, and what its
// adapter makes in between, forward; in front of the adapter of `up` backward, since `x` has no
// gradient. Frozen weights are gathered: once for the forward pass, `down` once for its cotangent.
constexpr int sums = 4 + 1, halves = 3;
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = 3, .all_reduce = sums + halves});
}  // namespace adapters
}  // namespace
TEST_CASE("adapters of low rank: only they are reduced") {
  using namespace adapters;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = sums});
  CHECK(model.emulated(mesh, BP, MP) == pt::collectives{.all_reduce = sums + halves});
  CHECK(model.emulated(mesh, BP, MP, Z3) == pt::check<step>.collectives);
  CHECK(model.rewritten(shared, mesh, BP, MP, Z3).collectives ==
        pt::collectives{.all_gather = 2, .all_reduce = sums + halves});
}

namespace {
namespace recurrence {
using namespace small::recurrence;

constexpr auto step = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP), {.passes = shared});
};
// In each step the state is gathered, forward and where the derivative computes the step again; its
// cotangent is scattered. Behind the loop: four gradients, the loss, and the product with `out`.
static_assert(pt::check<step>.collectives == pt::collectives{.all_gather = 2 * steps,
                                                             .all_reduce = 4 + 1 + 1,
                                                             .reduce_scatter = steps});
}  // namespace recurrence
}  // namespace
TEST_CASE("a recurrence: gradients are reduced behind the loop, states are gathered in it") {
  using namespace recurrence;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = 4 + 1});
  CHECK(model.rewritten(shared, mesh, MP).collectives ==
        pt::collectives{.all_gather = 2 * steps, .all_reduce = 1, .reduce_scatter = steps});
  CHECK(model.rewritten(shared, mesh, BP, MP).collectives == pt::check<step>.collectives);
}

namespace {
namespace contrastive {
using namespace small::contrastive;

constexpr auto step = [] {
  return pt::partition(traced(), mesh, pt::schedule(rows, BP), {.passes = shared});
};
// All-reduced: two projections and the scale; both losses at once; largest element and sum of
// columns.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = 1, .all_reduce = 3 + 1 + 2, .reduce_scatter = 1});
}  // namespace contrastive
}  // namespace
TEST_CASE("a contrastive loss: one side is gathered, and its cotangent scattered") {
  using namespace contrastive;
  const models::source model(traced(), any_limit);
  CHECK(model.rewritten(shared, mesh, rows, BP).collectives == pt::check<step>.collectives);
}

namespace {
namespace vision {
using namespace small::vision;

constexpr int per_layer = 8, parameter_count = per_layer * depth + 5;
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };
// Over "M": behind attention and MLP, and in front of them backward; the loss. Parameters are
// gathered forward; factors of products once more for cotangents, but for the patches' kernel:
// images have no gradient. Gradients are scattered.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = parameter_count + 4 * depth + 1,
                              .all_reduce = 1 + 4 * depth,
                              .reduce_scatter = parameter_count});
}  // namespace vision
}  // namespace
TEST_CASE("a vision transformer: batch, model and fully sharded parallelism") {
  using namespace vision;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(model.emulated(mesh, BP, MP) ==
        pt::collectives{.all_reduce = parameter_count + 1 + 4 * depth});
  CHECK(model.emulated(mesh, BP, MP, Z3) == pt::check<step>.collectives);
  CHECK(model.rewritten(shared, mesh, BP, MP, Z3).collectives ==
        pt::collectives{.all_gather = parameter_count,
                        .all_reduce = 1 + 4 * depth,
                        .reduce_scatter = parameter_count});
}

namespace {
namespace diffusion {
using namespace small::diffusion;

constexpr int per_layer = 7, parameter_count = per_layer * depth + 3;
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };
// As the vision transformer. Factors of products are gathered once more, but for those of the input
// and of the step: these have no gradient.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = parameter_count + per_layer * depth + 1,
                              .all_reduce = 1 + 4 * depth,
                              .reduce_scatter = parameter_count});
}  // namespace diffusion
}  // namespace
TEST_CASE("a diffusion transformer: what conditions is whole on each device of a batch") {
  using namespace diffusion;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(model.emulated(mesh, BP, MP) ==
        pt::collectives{.all_reduce = parameter_count + 1 + 4 * depth});
  CHECK(model.emulated(mesh, BP, MP, Z3) == pt::check<step>.collectives);
}

namespace {
namespace state_space {
using namespace small::state_space;

constexpr int parameter_count = 8;
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
// Over channels, forward: what is written and read, the rate's low rank, the output. Backward: the
// cotangents of what is written and read, in each step, and of the low rank.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_reduce = parameter_count + 1 + 4 + 2 * steps + 1});
}  // namespace state_space
}  // namespace
TEST_CASE("a state space: channels are apart, what they read and write is summed") {
  using namespace state_space;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(model.emulated(mesh, BP, MP) == pt::check<step>.collectives);
}
