// expect: S006 manual("B"): no input, tag or output is named "param" or is below it; known: x,
// params.w1, params.w2, result; did you mean "params"?
#include "mlp.hpp"

struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<float, 8, 16>, w1), (pt::tensor<float, 16, 8>, w2));
};
constexpr auto model = [](auto x, auto p) { return matmul(matmul(x, p.w1), p.w2); };

#ifdef FAIL
constexpr const char* prefix = "param";
#else
constexpr const char* prefix = "params";
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 256, 8>("x"), pt::input<params>("params"));
  return pt::partition(f, mesh, pt::schedule(pt::manual("B", {{prefix, pt::first_divisible_dim}})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
