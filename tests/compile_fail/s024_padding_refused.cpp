// expect: S024 tile: dimension 0 of "result" has size 10; tactic 2 ("rows") refuses to pad it
#include "mlp.hpp"

constexpr auto pads = pt::manual("B", {{"x", 0}}, "BP", pt::uneven::pad);
#ifdef FAIL
constexpr auto rows = pt::manual("M", {{"result", 0}}, "rows", pt::uneven::refuse);
#else
constexpr auto rows = pt::manual("M", {{"result", 0}}, "rows", pt::uneven::pad);
#endif

constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 10, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(pads, rows));
};
static_assert(pt::check<step>.input("x").local_shape[0] == 2);
