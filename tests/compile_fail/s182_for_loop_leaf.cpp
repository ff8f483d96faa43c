// expect: S182 for_loop: the body returns tensor<8x6xf32> as 1.0;
// expect: the carried value is tensor<8x4xf32>
#include "mlp.hpp"

// The first member of the pair that is the second member.
#ifdef FAIL
constexpr auto model = [](auto x, auto w) {
  return pt::for_loop(
      0, 3,
      [&](auto, const auto& c) {
        const auto& [count, inner] = c;
        const auto& [y, z] = inner;
        return std::tuple{count + 1, std::tuple{pt::matmul(y, w), z}};
      },
      std::tuple{pt::sum(x), std::tuple{x, w}});
};
#else
constexpr auto model = [](auto x, auto w) {
  return pt::for_loop(
      0, 3,
      [&](auto, const auto& c) {
        const auto& [count, inner] = c;
        const auto& [y, z] = inner;
        return std::tuple{count + 1, std::tuple{y + 1, z}};
      },
      std::tuple{pt::sum(x), std::tuple{x, w}});
};
#endif

constexpr auto step = [] {
  const auto f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<step>.collectives.all_to_all == 0);
