// expect: S195 initialize: parameter "step" has type tensor<i32>; random numbers are floating
// point, others start as nn::constant
#include "mlp.hpp"

namespace nn = partita::nn;

struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<float, 8, 4>, weights), (pt::tensor<int>, step));
};
constexpr auto rule = [](std::string_view path, const pt::shape& s) {
#ifndef FAIL
  if (path == "step") return nn::zeros;
#endif
  return path == "bias" ? nn::zeros : nn::lecun_normal(nn::fans_of(s));
};

constexpr auto step = [] {
  const auto f =
      pt::trace([](auto key) { return pt::output("params", nn::initialize(key, params{}, rule)); },
                pt::input<std::int64_t>("key"));
  return pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"params.weights", 0}})));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
