// A mixture of experts, as the Switch Transformer has it: tokens go to the device of their expert
// and come back, in both passes: four all-to-alls, as written by hand.
#include "models.hpp"

namespace {

namespace pt = partita;

constexpr std::int64_t groups = 4, tokens = 8, width = 8, experts = 4, capacity = 6, hidden = 16;

struct parameters {
  using scale_vector = pt::tensor<float, width>;
  using router_matrix = pt::tensor<float, width, experts>;
  using up_matrices = pt::tensor<float, experts, width, hidden>;
  using down_matrices = pt::tensor<float, experts, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (scale_vector, norm), (router_matrix, router),
                           (up_matrices, up), (down_matrices, down));
};

/// 1 where an integer is the position along a new last dimension.
template <std::int64_t N>
constexpr auto one_hot = [](const auto& i) {
  const auto at = pt::iota<std::int32_t, 2>(i, pt::extent<1>{}, pt::extent<1>{}, pt::extent<N>{});
  return pt::convert<float>(pt::equal(pt::expand_dims<2>(pt::convert<std::int32_t>(i)), at));
};

/// x (group, token, width) -> the same. A token goes to one expert, if that has room in its group.
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
constexpr auto step = [](const parameters& p, const auto& x, const auto& y) {
  const auto [value, g] = pt::value_and_grad(
      [&](const parameters& each) {
        const auto [out, balance] = layer(each, x);
        return pt::nn::mean_squared_error(out, y) + 0.01 * balance;
      },
      p);
  return std::tuple{pt::output("params", pt::sgd(0.1, p, g)), pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(step, pt::input<parameters>("params"),
                   pt::input<float, groups, tokens, width>("x"),
                   pt::input<float, groups, tokens, width>("y"));
};

constexpr pt::mesh mesh{{"E", 4}};
constexpr auto DP = pt::manual("E", {{"x", 0}, {"y", 0}}, "DP");
/// Groups on one side, experts on the other. Cotangents follow their tags.
constexpr auto EP = pt::manual(
    "E",
    {{"params.up", 0}, {"params.down", 0}, {"sent", 1}, {"arrived", 0}, {"made", 0}, {"back", 1}},
    "EP");
constexpr auto partitioned = [] { return pt::partition(traced(), mesh, pt::schedule(EP, DP)); };

// sent -> arrived, made -> back, and the same way back in the derivative. The gradients of the norm
// and of the router are summed over groups; so are the share of each expert, the mean chance of
// each, and the loss. Experts' gradients are whole where the experts are.
static_assert(pt::check<partitioned>.collectives ==
              pt::collectives{.all_reduce = 5, .all_to_all = 4});

}  // namespace

TEST_CASE("a mixture of experts: four all-to-alls, in any order of tactics") {
  const models::source moe(traced(), [](std::string_view) { return 1; });
  const pt::collectives expected{.all_reduce = 5, .all_to_all = 4};
  CHECK(moe.emulated(mesh, EP, DP) == expected);
  // All at once. (Data parallelism first would slice "arrived" along groups.)
  CHECK(moe.emulated(mesh, pt::amalgamated("both", DP, EP)) == expected);
  // Two axes: groups over both, experts over one.
  const pt::mesh two{{"D", 2}, {"E", 2}};
  const auto both = pt::manual("D", {{"x", 0}, {"y", 0}}, "D");
  const pt::collectives got = moe.emulated(two, both, EP, DP);
  CHECK(got.all_to_all == 4);
  CHECK(got.all_gather == 0);
}
