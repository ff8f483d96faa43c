// The passes over collectives on the demo's model and on T32, small: emulated equals source.
#include "../../examples/models/language_model.hpp"
#include "../../examples/models/transformer.hpp"
#include "models.hpp"

namespace pt = partita;

namespace {

std::int64_t all_reduces_launched(const pt::partitioned& p) {
  return pt::launched(p.notes) - p.collectives.total() + p.collectives.all_reduce;
}

/// Checks each pass alone and all passes together. `sums` and `gathers` are the numbers of
/// all_reduces and all_gathers that remain.
template <class... Tactics>
void check_passes(const models::source& step, const pt::mesh& mesh, int sums, int gathers,
                  const Tactics&... tactics) {
  const pt::partitioned plain = step.rewritten({}, mesh, tactics...);
  const std::int64_t peak = plain.cost.peak_bytes;
  constexpr std::int64_t all = std::int64_t{1} << 40;
  CHECK(step.rewritten({.cancel = false}, mesh, tactics...).collectives.all_gather >
        plain.collectives.all_gather);
  CHECK(step.rewritten({.to_reduce_scatter = false}, mesh, tactics...).collectives.all_reduce ==
        plain.collectives.all_reduce + plain.collectives.reduce_scatter);
  CHECK(all_reduces_launched(step.rewritten({.combine_below = all}, mesh, tactics...)) == sums);
  CHECK(step.rewritten({.place = true}, mesh, tactics...).cost.peak_bytes <= peak);
  CHECK(step.rewritten({.share_gathers = true}, mesh, tactics...).collectives.all_gather ==
        gathers);
  const pt::partitioned bounded = step.rewritten({.memory_bound = peak}, mesh, tactics...);
  CHECK(bounded.cost.peak_bytes <= peak);
  const pt::partitioned every = step.rewritten(
      {.combine_below = all, .place = true, .share_gathers = true}, mesh, tactics...);
  CHECK(every.collectives == pt::collectives{.all_gather = gathers,
                                             .all_reduce = plain.collectives.all_reduce,
                                             .reduce_scatter = plain.collectives.reduce_scatter});
  CHECK(all_reduces_launched(every) == sums);
  CHECK(every.notes.size() == static_cast<std::size_t>(every.collectives.total()));
}

}  // namespace

TEST_CASE("T32, small: each pass, and all of them, keep the results") {
  using namespace paper::transformers;
  constexpr int L = 2;
  const models::source step(
      paper::trace_training_step(models::small_transformer<paper::language_model_sizes>(L)),
      models::token_limit);
  // Each matrix is gathered once. The four sums of Megatron per layer are in sequence. One sum has
  // the gradients of all vectors and the loss.
  check_passes(step, {{"batch", 4}, {"model", 2}}, 4 * L + 1, 4 * L + 1, BP, MP, Z3);
}

TEST_CASE("the demo's model: each pass, and all of them, keep the results") {
  using namespace transformer;
  const models::source step(trace_training_step<dynamic>(models::small_transformer<sizes>(2)),
                            models::token_limit);
  // Megatron's sums and the loss; all gradients are scattered.
  check_passes(step, {{"B", 4}, {"M", 2}}, 4 * 2 + 1, parameter_count(2), BP, MP, Z3);
}
