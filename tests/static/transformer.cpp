// A training step of a transformer: collectives in closed form, for every strategy.
#include "../../examples/models/transformer.hpp"

namespace pt = partita;
namespace tf = transformer;

constexpr tf::sizes small{.layers = 1,
                          .width = 16,
                          .heads = 4,
                          .key = 4,
                          .hidden = 32,
                          .vocabulary = 32,
                          .context = 8,
                          .batch = 16};
constexpr int L = static_cast<int>(small.layers);
constexpr int P = tf::parameter_count(small.layers);
/// Weights of products: they are needed in the forward and in the backward pass.
constexpr int W = 4 * L + 1;
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

constexpr pt::partitioned with(auto... tactics) {
  return pt::partition(tf::trace_training_step<small>(), mesh, pt::schedule(tactics...));
}
constexpr auto BP = [] { return with(tf::BP); };
constexpr auto MP = [] { return with(tf::MP); };
constexpr auto all2 = [] { return with(tf::BP, tf::MP, tf::Z2); };
constexpr auto all3 = [] { return with(tf::BP, tf::MP, tf::Z3); };

// Each gradient is summed once, and the loss.
static_assert(pt::check<BP>.collectives == pt::collectives{.all_reduce = P + 1});
// Two in the forward and two in the backward pass of a layer.
static_assert(pt::check<MP>.collectives == pt::collectives{.all_reduce = 4 * L});
// Gradients are scattered, and new parameters gathered once.
static_assert(pt::check<all2>.tactic("MP").collectives ==
              pt::collectives{.all_reduce = P + 1 + 4 * L});
static_assert(pt::check<all2>.collectives ==
              pt::collectives{.all_gather = P, .all_reduce = 4 * L + 1, .reduce_scatter = P});
// Parameters are gathered before they are used; weights twice.
static_assert(pt::check<all3>.collectives ==
              pt::collectives{.all_gather = P + W, .all_reduce = 4 * L + 1, .reduce_scatter = P});
static_assert(pt::check<all2>.conflicts == 0 && pt::check<all3>.conflicts == 0);

// The optimizer's state follows its parameter, in and out.
constexpr std::string_view up = "params.layers.0.mlp.up", m_up = "opt_state.m.layers.0.mlp.up";
static_assert(pt::check<MP>.input(up).local_shape == pt::shape{16, 16});
static_assert(pt::check<MP>.input(m_up).local_shape == pt::shape{16, 16});
static_assert(pt::check<all2>.input(up).local_shape == pt::shape{16, 16});
static_assert(pt::check<all2>.input(m_up).local_shape == pt::shape{4, 16});
static_assert(pt::check<all3>.input(up).local_shape == pt::shape{4, 16});
static_assert(pt::check<all3>.output(up).sharding == pt::check<all3>.input(up).sharding);
static_assert(pt::check<all3>.output(m_up).sharding == pt::check<all3>.input(m_up).sharding);
// Complete heads: dimension 2 of qkv.
static_assert(pt::check<MP>.input("params.layers.0.attention.qkv").local_shape ==
              pt::shape{16, 3, 2, 4});
static_assert(pt::check<MP>.input("params.layers.0.attention.out").local_shape ==
              pt::shape{2, 4, 16});
// Each stage of sharding reduces the memory of a device.
static_assert(pt::check<all3>.argument_bytes < pt::check<all2>.argument_bytes);
static_assert(pt::check<all2>.argument_bytes < pt::check<MP>.argument_bytes);
