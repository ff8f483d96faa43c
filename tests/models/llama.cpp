// A Llama-style transformer with batch, model and sequence parallelism and fully sharded
// parameters: the counts of Megatron-LM.
#include "../../examples/models/small/llama.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::llama;

constexpr int L = depth, parameter_count = 9 * L + 3;
// The norms of each layer, the final norm, the embedding and the head are replicated along "M".
constexpr int whole_count = 2 * L + 3;

constexpr auto data_parallel = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
// Gradients and the loss over "B"; over "M", after attention and MLP forward, and before them
// backward.
static_assert(pt::check<data_parallel>.collectives ==
              pt::collectives{.all_reduce = parameter_count + 1 + 4 * L});

constexpr pt::passes shared{.share_gathers = true};
constexpr auto fully_sharded = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP, SP, Z3), {.passes = shared});
};
// With sequence parallelism, each sum over "M" becomes a scatter and, at the other end, a gather.
// Parameters are gathered and kept for the derivative; gradients are scattered. Gradients of
// parameters that are replicated along "M" are summed along it, and so is the loss.
static_assert(pt::check<fully_sharded>.collectives ==
              pt::collectives{.all_gather = 4 * L + parameter_count,
                              .all_reduce = whole_count + 1,
                              .reduce_scatter = 4 * L + parameter_count});

}  // namespace

TEST_CASE("a Llama-style transformer has the collectives of Megatron") {
  const models::source llama(traced(), [](std::string_view) { return 12; });
  CHECK(llama.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(llama.emulated(mesh, BP, MP) == pt::check<data_parallel>.collectives);
  // Each of these sums becomes a scatter and, at the other end, a gather. Two devices of a batch
  // with blocks of a sequence also have blocks of the replicated parameters.
  CHECK(llama.rewritten(shared, mesh, BP, MP, SP).collectives ==
        pt::collectives{
            .all_gather = 4 * L, .all_reduce = parameter_count + 1, .reduce_scatter = 4 * L});
  // Where the peak must not rise, operands of products are gathered again for their derivatives. A
  // gather for each use would make 14 per layer. Three products of queries, keys and values read
  // one value each, two of the MLP do, and so do the gradients of their weights; two products of
  // the backward pass after each half read the cotangent. Similar products share these gathers (2 +
  // 2 + 4 per layer); on request, all adjacent products share them.
  CHECK(llama.rewritten({.share_gathers = false}, mesh, BP, MP, SP).collectives.all_gather ==
        14 * L);
  CHECK(llama.emulated(mesh, BP, MP, SP) == pt::collectives{.all_gather = 8 * L,
                                                            .all_reduce = parameter_count + 1,
                                                            .reduce_scatter = 4 * L});
  CHECK(llama.rewritten({.memory_bound = pt::passes::own_peak}, mesh, BP, MP, SP).collectives ==
        pt::collectives{
            .all_gather = 6 * L - 1, .all_reduce = parameter_count + 1, .reduce_scatter = 4 * L});
  CHECK(llama.rewritten(shared, mesh, BP, MP, SP, Z3).collectives ==
        pt::check<fully_sharded>.collectives);
}
