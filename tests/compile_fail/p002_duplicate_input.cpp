// expect: P002 trace: two inputs are named "w"
#include "mlp.hpp"

#ifdef FAIL
constexpr const char* second = "w";
#else
constexpr const char* second = "w2";
#endif

constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w"),
                           pt::input<float, 16, 8>(second));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
