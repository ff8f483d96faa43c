// expect: G004 custom_vjp: the backward function returns tensor<4x8xf32> as 0; the cotangent of an
// argument must have its type, tensor<8x4xf32>
#include "mlp.hpp"

#ifdef FAIL
constexpr auto product = pt::custom_vjp(
    [](const auto& x) {
      return std::pair{x * x, x};
    },
    [](const auto& x, const auto& g) { return pt::transpose<1, 0>(x * g); });
#else
constexpr auto product = pt::custom_vjp(
    [](const auto& x) {
      return std::pair{x * x, x};
    },
    [](const auto& x, const auto& g) { return x * g; });
#endif

constexpr auto step = [] {
  const auto f =
      pt::trace([](auto x) { return pt::grad([](const auto& v) { return sum(product(v)); }, x); },
                pt::input<float, 8, 4>("x"));
  return pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<step>.collectives.total() == 0);
