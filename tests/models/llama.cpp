// A Llama-style transformer under batch, model and sequence parallelism and fully sharded
// parameters: the counts of Megatron-LM.
#include "../../examples/models/small/llama.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::llama;

constexpr int L = depth, parameter_count = 9 * L + 3;
// The norms of each layer, the last one, the embedding and the head are whole along "M".
constexpr int whole_count = 2 * L + 3;

constexpr auto data_parallel = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
// Gradients and the loss over "B"; behind attention and MLP over "M", and in front of them
// backward.
static_assert(pt::check<data_parallel>.collectives ==
              pt::collectives{.all_reduce = parameter_count + 1 + 4 * L});

constexpr pt::passes shared{.share_gathers = true};
constexpr auto fully_sharded = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP, SP, Z3), {.passes = shared});
};
// With sequence parallelism each of the sums over "M" becomes a scatter, with a gather at the other
// end. Parameters are gathered, and kept for the derivative; gradients are scattered. What is whole
// along "M" is summed along it, and so is the loss.
static_assert(pt::check<fully_sharded>.collectives ==
              pt::collectives{.all_gather = 4 * L + parameter_count,
                              .all_reduce = whole_count + 1,
                              .reduce_scatter = 4 * L + parameter_count});

}  // namespace

TEST_CASE("a Llama-style transformer: the collectives of Megatron") {
  const models::source llama(traced(), [](std::string_view) { return 12; });
  CHECK(llama.emulated(mesh, BP) == pt::collectives{.all_reduce = parameter_count + 1});
  CHECK(llama.emulated(mesh, BP, MP) == pt::check<data_parallel>.collectives);
  // Each of these sums becomes a scatter, with a gather at the other end. Where two devices of a
  // batch have parts of a sequence, they have parts of what is whole, too.
  CHECK(llama.rewritten(shared, mesh, BP, MP, SP).collectives ==
        pt::collectives{
            .all_gather = 4 * L, .all_reduce = parameter_count + 1, .reduce_scatter = 4 * L});
  // Where the peak must not rise, what products read is gathered for their derivatives once more. A
  // gather for each use would be 14 per layer: three products of queries, keys and values and two
  // of the MLP read one value each, and so do the gradients of their weights; two products of the
  // backward pass behind each half read the cotangent. Of these, products alike share (2 + 2 + 4 a
  // layer), but for one that stands at the peak, and on request all next to each other.
  CHECK(llama.rewritten({.share_gathers = false}, mesh, BP, MP, SP).collectives.all_gather ==
        14 * L);
  CHECK(llama.emulated(mesh, BP, MP, SP) == pt::collectives{.all_gather = 8 * L + 1,
                                                            .all_reduce = parameter_count + 1,
                                                            .reduce_scatter = 4 * L});
  CHECK(llama.rewritten({.memory_bound = pt::passes::own_peak}, mesh, BP, MP, SP).collectives ==
        pt::collectives{
            .all_gather = 6 * L, .all_reduce = parameter_count + 1, .reduce_scatter = 4 * L});
  CHECK(llama.rewritten(shared, mesh, BP, MP, SP, Z3).collectives ==
        pt::check<fully_sharded>.collectives);
}
