// expect: S196 conv: an option for dimension 2; there are 2 spatial dimensions
#include "mlp.hpp"

constexpr auto model = [](auto x, auto w) {
#ifdef FAIL
  return pt::conv<pt::conv_options{.strides = {1, 1, 2}}>(x, w);
#else
  return pt::conv<pt::conv_options{.strides = {1, 2}}>(x, w);
#endif
};

constexpr auto step = [] {
  const auto f =
      pt::trace(model, pt::input<float, 8, 5, 6, 3>("x"), pt::input<float, 2, 2, 3, 4>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
