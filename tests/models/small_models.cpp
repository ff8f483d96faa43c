// Models with different communication, each with the collectives that a programmer writes by hand.
// The compiler counts them, and the run has the same.
#include "../../examples/models/small/adapters.hpp"
#include "../../examples/models/small/contrastive.hpp"
#include "../../examples/models/small/diffusion.hpp"
#include "../../examples/models/small/molecules.hpp"
#include "../../examples/models/small/recommendation.hpp"
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
// The gradients of four adapters and the loss over "B". Over "M": after `down` and inside its
// adapter, forward; before the adapter of `up`, backward, since `x` has no gradient. Frozen weights
// are gathered: each once for the forward pass, `down` again for its cotangent.
constexpr int sums = 4 + 1, halves = 3;
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = 3, .all_reduce = sums + halves});
}  // namespace adapters
}  // namespace
TEST_CASE("low-rank adapters: only their gradients are reduced") {
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
// In each step the state is gathered, forward and where the derivative recomputes the step; its
// cotangent is scattered. After the loop: four gradients, the loss, and the product with `out`.
static_assert(pt::check<step>.collectives == pt::collectives{.all_gather = 2 * steps,
                                                             .all_reduce = 4 + 1 + 1,
                                                             .reduce_scatter = steps});
}  // namespace recurrence
}  // namespace
TEST_CASE("a recurrence: gradients are reduced after the loop, states are gathered inside it") {
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
// All-reduced: two projections and the scale; both losses at once; the maximum and the sum of
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
// Over "M": after attention and MLP forward, and before them backward; the loss. Parameters are
// gathered forward. Operands of products are gathered again for cotangents, except the kernel of
// the patches, since images have no gradient. Gradients are scattered.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = parameter_count + 4 * depth + 1,
                              .all_reduce = 1 + 4 * depth,
                              .reduce_scatter = parameter_count});
}  // namespace vision
}  // namespace
TEST_CASE("a vision transformer: collectives of batch, model and fully sharded parallelism") {
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
// Like the vision transformer. Operands of products are gathered again, except those of the input
// and of the step, which have no gradient.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_gather = parameter_count + per_layer * depth + 1,
                              .all_reduce = 1 + 4 * depth,
                              .reduce_scatter = parameter_count});
}  // namespace diffusion
}  // namespace
TEST_CASE("a diffusion transformer: the conditioning is replicated on the devices of a batch") {
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
// Over channels, forward: values that are written and read, the low rank of the rate, the output.
// Backward: the cotangents of the values that are written and read, in each step, and of the low
// rank.
static_assert(pt::check<step>.collectives ==
              pt::collectives{.all_reduce = parameter_count + 1 + 4 + 2 * steps + 1});
}  // namespace state_space
}  // namespace
TEST_CASE("a state space model: channels are sharded, values that they read and write are summed") {
  using namespace state_space;
  const models::source model(traced(), any_limit);
  CHECK(model.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(model.emulated(mesh, BP, MP) == pt::check<step>.collectives);
}

namespace {
namespace recommendation {
using namespace small::recommendation;

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(rows, columns, DP)); };
// The rows of a table that is sharded by rows are summed where their batch is; each device takes
// the updates of its rows. A table that is sharded by columns needs all indices, and three
// all-to-alls bring its columns to the batch and back. Only the small matrices are all-reduced.
static_assert(pt::check<step>.collectives.all_reduce == 3);
constexpr auto full_size = [] {
  return pt::partition(traced_of<large>(), mesh, pt::schedule(rows, columns, DP));
};
// Tables of 2.8 GB: a device sends what belongs to 8,192 examples, not gradients of tables.
static_assert(pt::check<full_size>.collective_bytes < 6'000'000);
static_assert(pt::check<full_size>.input("params.users").local_shape == pt::shape{2'500'000, 64});
static_assert(pt::check<full_size>.input("params.items").local_shape == pt::shape{1'000'000, 16});
}  // namespace recommendation
}  // namespace
TEST_CASE("recommendation: tables stay where they are") {
  using namespace recommendation;
  const models::source model(traced(), [](std::string_view) { return 16; });
  // Data parallel: the gradients of five parameters and the loss.
  CHECK(model.emulated(mesh, DP) == pt::collectives{.all_reduce = 5 + 1});
  CHECK(model.emulated(mesh, rows, columns, DP) == pt::check<step>.collectives);
  CHECK(model.emulated(mesh, DP, rows, columns).all_reduce == 4);
}

namespace {
namespace molecules {
using namespace small::molecules;

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP)); };
// Graphs are independent: only gradients and the loss are reduced, in two all-reduces.
static_assert(pt::check<step>.collectives == pt::collectives{.all_reduce = 4 + 1});
static_assert(pt::check<step>.launched == 2);
}  // namespace molecules
}  // namespace
TEST_CASE("a graph network over a batch of graphs: nothing crosses a graph's device") {
  using namespace molecules;
  const models::source model(traced(), [](std::string_view) { return nodes; });
  CHECK(model.emulated(mesh, BP) == pt::check<step>.collectives);
  // Edges sharded, too: messages and their cotangents are summed in each round.
  CHECK(model.emulated(mesh, BP, EP) ==
        pt::collectives{.all_gather = 3, .all_reduce = 4 + 1 + 2 * rounds});
}
