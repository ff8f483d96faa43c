// Lets the compiler check a strategy at full size: the row "T32, BP+MP+Z3" of the paper's Table 2.
// Only the target table2_static builds this file: it takes the compiler about a minute and a few
// GiB.
#include "../examples/models/language_model.hpp"

namespace pt = partita;

constexpr auto row = [] {
  using namespace paper::transformers;
  return pt::partition(paper::trace_training_step(paper::T32), {{"batch", 8}, {"model", 4}},
                       pt::schedule(BP, MP, Z3));
};
static_assert(pt::check<row, pt::summary_limits{.values = 2000, .chars = 60000}>.collectives ==
              pt::collectives{.all_gather = 259, .all_reduce = 289, .reduce_scatter = 129});
