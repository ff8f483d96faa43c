/// The tactics of --schedule, and the properties of a schedule that the compiler checks.
#pragma once

#include <string_view>

#include "../models/transformer.hpp"

/// One of the four tactics, chosen at run time. A tactic is any type with `name` and `apply`.
struct chosen_tactic {
  std::string_view chosen;

  constexpr chosen_tactic(std::string_view name) : chosen(name) {}
  constexpr std::string_view name() const { return chosen; }
  constexpr void apply(partita::tactic_context& c) const {
    if (chosen == "BP") transformer::BP.apply(c);
    if (chosen == "MP") transformer::MP.apply(c);
    if (chosen == "Z2") transformer::Z2.apply(c);
    if (chosen == "Z3") transformer::Z3.apply(c);
  }
};

// The compiler checks these assertions, for one layer and fixed sizes.
namespace proof {

namespace pt = partita;
inline constexpr transformer::sizes sizes{.layers = 1,
                                          .width = 64,
                                          .heads = 4,
                                          .key = 16,
                                          .hidden = 256,
                                          .vocabulary = 96,
                                          .context = 64,
                                          .batch = 16};
inline constexpr auto step = [] {
  using namespace transformer;
  return pt::partition(trace_training_step<sizes>(), pt::mesh{{"B", 4}, {"M", 2}},
                       pt::schedule(BP, MP, Z3));
};
inline constexpr auto& checked = pt::check<step>;
inline constexpr int parameters = transformer::parameter_count(sizes.layers);

// BP: one all_reduce per gradient, one for the loss.
static_assert(checked.tactic("BP").collectives == pt::collectives{.all_reduce = parameters + 1});
// MP: four more per layer, after attention and MLP, forward and backward.
static_assert(checked.tactic("MP").collectives ==
              pt::collectives{.all_reduce = parameters + 1 + 4});
// Z3: gradients are reduce-scattered. Every parameter is gathered for the forward pass. The factors
// of products (qkv, out, up, down; head) are gathered again for the backward pass. It does not use
// biases and embeddings, and it reuses the broadcast scales of the norms.
static_assert(checked.collectives == pt::collectives{.all_gather = parameters + 4 + 1,
                                                     .all_reduce = 1 + 4,
                                                     .reduce_scatter = parameters});
static_assert(checked.conflicts == 0);
static_assert(checked.input("tokens").local_shape == pt::shape{4, 64});
static_assert(checked.input("params.layers.0.attention.qkv").local_shape ==
              pt::shape{16, 3, 2, 16});

}  // namespace proof
