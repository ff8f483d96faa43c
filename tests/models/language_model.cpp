// T32 at a small size: every schedule of the paper computes the results of the source, with the
// collectives that Table 2 lists for 32 layers, as functions of the number of layers.
#include "../../examples/models/language_model.hpp"
#include "models.hpp"

namespace pt = partita;

TEST_CASE("T32, small: emulated equals source, and collectives in closed form") {
  using namespace paper::transformers;
  for (const int L : {1, 3}) {
    CAPTURE(L);
    const models::source step(
        paper::trace_training_step(models::small_transformer<paper::language_model_sizes>(L)),
        models::token_limit);
    const int parameters = 9 * L + 1, matrices = 4 * L + 1, megatron = 4 * L;
    const auto check = [&](const pt::collectives& expected, const auto&... tactics) {
      for (const pt::mesh& mesh :
           {pt::mesh{{"batch", 4}, {"model", 2}}, pt::mesh{{"batch", 2}, {"model", 4}}})
        CHECK(step.emulated(mesh, tactics...) == expected);
      CHECK(step.emulated({{"batch", 1}, {"model", 1}}, tactics...) == pt::collectives{});
    };
    check({.all_reduce = parameters + 1}, BP);
    check({.all_reduce = parameters + 1 + megatron}, BP, MP);
    check({.all_gather = matrices,
           .all_reduce = parameters + 1 + megatron - matrices,
           .reduce_scatter = matrices},
          BP, MP, Z2);
    check({.all_gather = 2 * matrices + 1,  // the embedding is used three times
           .all_reduce = parameters + 1 + megatron - matrices,
           .reduce_scatter = matrices},
          BP, MP, Z3);
    check({.all_gather = 2 * matrices + 1 + 8 * L,
           .all_reduce = parameters + 1 + megatron - matrices + 2 * L + 1,
           .reduce_scatter = matrices + 4 * L},
          BP, MP, Z3, EMB);
    check({.all_reduce = megatron}, MP);
    check({.all_gather = 8 * L, .all_reduce = 6 * L + 1, .reduce_scatter = 4 * L}, MP, EMB);
  }
}

TEST_CASE("T32 on axes of size 3") {
  using namespace paper::transformers;
  const models::source step(paper::trace_training_step({.layers = 1,
                                                        .width = 9,
                                                        .heads = 3,
                                                        .key = 2,
                                                        .hidden = 18,
                                                        .vocabulary = 12,
                                                        .context = 4,
                                                        .batch = 6}),
                            models::token_limit);
  CHECK(step.emulated({{"batch", 3}, {"model", 3}}, BP, MP, Z3) ==
        pt::collectives{.all_gather = 11, .all_reduce = 10, .reduce_scatter = 5});
}

TEST_CASE(
    "T32 with the inferred sizes: the savings of Z2 in Table 3, exactly, and Table 2 as before") {
  using namespace paper::transformers;
  const pt::program step = paper::trace_training_step(paper::T32_inferred);
  const pt::mesh mesh{{"batch", 8}, {"model", 4}};
  const auto whole = pt::partition(step, mesh, pt::schedule(BP, MP)),
             z2 = pt::partition(step, mesh, pt::schedule(BP, MP, Z2));
  CHECK(whole.cost.peak_bytes - z2.cost.peak_bytes == std::int64_t{9702} << 20);
  CHECK(z2.collectives ==
        pt::collectives{.all_gather = 129, .all_reduce = 289, .reduce_scatter = 129});
}
