// IT32 at a small size: every schedule writes the tokens of the source, with the collectives that
// Table 2 lists for 32 layers and 1,536 tokens, as functions of both numbers.
#include "../../examples/models/serving.hpp"
#include "models.hpp"

namespace pt = partita;

TEST_CASE("IT32, small: emulated equals source, and collectives in closed form") {
  using namespace paper::serving;
  for (const int L : {1, 2}) {
    CAPTURE(L);
    const int tokens = 7;
    const models::source serve(paper::trace_serving({.layers = L,
                                                     .width = 16,
                                                     .heads = 4,
                                                     .key = 4,
                                                     .hidden = 32,
                                                     .vocabulary = 40,
                                                     .batch = 8,
                                                     .prompt = 5,
                                                     .tokens = tokens}),
                               [](std::string_view) { return 40; });
    // `written` counts the loop that writes a token; other code reads the prompt.
    const auto check = [&](const pt::collectives& expected, const pt::collectives& written,
                           const auto&... tactics) {
      for (const pt::mesh& mesh :
           {pt::mesh{{"batch", 4}, {"model", 2}}, pt::mesh{{"batch", 2}, {"model", 4}}}) {
        const pt::partitioned p = serve.rewritten({}, mesh, tactics...);
        CHECK(p.collectives == expected);
        CHECK(p.collectives_as_written == written);
      }
      CHECK(serve.emulated({{"batch", 1}, {"model", 1}}, tactics...) == pt::collectives{});
    };
    check({}, {}, BP);
    check({.all_reduce = 2 * L * tokens}, {.all_reduce = 2 * L * 2}, MP);
    check({.all_reduce = 2 * L * tokens}, {.all_reduce = 2 * L * 2}, BP, MP);
    check({.all_gather = 2 * L, .all_reduce = 2 * L * tokens, .all_to_all = 2 * L * (tokens - 1)},
          {.all_gather = 2 * L, .all_reduce = 2 * L * 2, .all_to_all = 2 * L}, BP, MQ, MP);
  }
}
