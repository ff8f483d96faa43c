// GNS at a small size: edge sharding computes the results of the source, with the collectives that
// Table 2 lists for 24 steps and 5 layers, as functions of both numbers.
#include "../../examples/models/gns.hpp"
#include "models.hpp"

namespace pt = partita;

TEST_CASE("GNS, small: emulated equals source, and collectives in closed form") {
  for (const int steps : {1, 3})
    for (const int layers : {2, 5}) {
      CAPTURE(steps);
      CAPTURE(layers);
      const models::source step(paper::trace_training_step({.nodes = 6,
                                                            .edges = 12,
                                                            .node_features = 3,
                                                            .edge_features = 4,
                                                            .global_features = 2,
                                                            .edge_targets = 2,
                                                            .global_targets = 1,
                                                            .latent = 8,
                                                            .hidden = 16,
                                                            .mlp_layers = layers,
                                                            .steps = steps}),
                                [](std::string_view) { return 6; });
      const pt::collectives expected{.all_reduce =
                                         steps * (2 * layers + 7) + (2 * layers + 2) + 2 + 1};
      for (const int devices : {2, 3, 4})
        CHECK(step.emulated({{"batch", devices}, {"model", 2}}, paper::graphs::ES) == expected);
      CHECK(step.emulated({{"batch", 1}}, paper::graphs::ES) == pt::collectives{});
    }
}
