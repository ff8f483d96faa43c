/// A mixture of experts: each token goes to its expert's device, and the result comes back.
///
/// Source    Fedus et al. (Switch Transformer), arXiv:2101.03961
#pragma once

#include <cstdint>
#include <utility>

#include "step.hpp"

namespace small::experts {

constexpr std::int64_t groups = 4, tokens = 8, width = 8, experts = 4, capacity = 6, hidden = 16;

struct parameters {
  using scale_vector = pt::tensor<float, width>;
  using router_matrix = pt::tensor<float, width, experts>;
  using up_matrices = pt::tensor<float, experts, width, hidden>;
  using down_matrices = pt::tensor<float, experts, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (scale_vector, norm), (router_matrix, router),
                           (up_matrices, up), (down_matrices, down));
};

/// One-hot encodes integers along a new last dimension of size N.
template <std::int64_t N>
constexpr auto one_hot = [](const auto& i) {
  const auto at = pt::iota<std::int32_t, 2>(i, pt::extent<1>{}, pt::extent<1>{}, pt::extent<N>{});
  return pt::convert<float>(pt::equal(pt::expand_dims<2>(pt::convert<std::int32_t>(i)), at));
};

/// x (group, token, width) -> the same. A token goes to one expert if it has capacity in the group.
constexpr auto layer = [](const parameters& p, const auto& x) {
  const auto h = pt::nn::rms_norm(x, p.norm);
  const auto chances = pt::nn::softmax(matmul(h, p.router));
  const auto chosen = one_hot<experts>(pt::argmax<2>(chances));               // (g, s, e)
  const auto before = pt::sum<2>(chosen * (pt::cumsum<1>(chosen) - chosen));  // (g, s)
  const auto dispatch =
      pt::stop_gradient(pt::einsum<"gse,gsc->gsec">(chosen, one_hot<capacity>(before)));
  const auto combine = dispatch * pt::expand_dims<3>(chances);
  const auto sent = pt::tag("sent", pt::einsum<"gsec,gsd->egcd">(dispatch, h));
  const auto arrived = pt::tag("arrived", sent);
  const auto up = pt::nn::gelu(pt::einsum<"egcd,edf->egcf">(arrived, p.up));
  const auto made = pt::tag("made", pt::einsum<"egcf,efd->egcd">(up, p.down));
  const auto back = pt::tag("back", made);
  const auto share = pt::mean<0, 1>(chosen) * pt::mean<0, 1>(chances);
  return std::pair{x + pt::einsum<"gsec,egcd->gsd">(combine, back), pt::sum(share)};
};
constexpr auto loss = [](const parameters& p, const auto& x, const auto& y) {
  const auto [out, balance] = layer(p, x);
  return pt::nn::mean_squared_error(out, y) + 0.01 * balance;
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, groups, tokens, width>("x"),
                pt::input<float, groups, tokens, width>("y"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"E", 4}};
constexpr auto DP = pt::manual("E", {{"x", 0}, {"y", 0}}, "DP");
/// Expert parallelism: values are sharded by groups outside the experts and by experts inside.
/// Cotangents have the layouts of the tags.
constexpr auto EP = pt::manual(
    "E",
    {{"params.up", 0}, {"params.down", 0}, {"sent", 1}, {"arrived", 0}, {"made", 0}, {"back", 1}},
    "EP");

}  // namespace small::experts
