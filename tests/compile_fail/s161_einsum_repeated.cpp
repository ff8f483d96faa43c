// expect: S161 einsum: "ij,jk->iki": output letter 'i' is repeated
#include "mlp.hpp"

#ifdef FAIL
constexpr auto model = [](auto x, auto w) { return pt::einsum<"ij,jk->iki">(x, w); };
#else
constexpr auto model = [](auto x, auto w) { return pt::einsum<"ij,jk->ik">(x, w); };
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
