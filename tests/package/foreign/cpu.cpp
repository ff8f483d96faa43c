// A project outside this repository that runs programs: the mesh equals the source, exactly, on
// small integers.
#include <partita/cpu.hpp>
#include <xtensor/xarray.hpp>

#include "strategy.hpp"

pt::results on_the_mesh(const pt::array& x, const pt::array& w1, const pt::array& w2);

int main() {
  xt::xarray<float> x = xt::ones<float>({8, 4}), w1 = 2 * xt::ones<float>({4, 6}),
                    w2 = 3 * xt::ones<float>({6, 2});
  x(7, 3) = 5;
  const pt::results whole = pt::evaluate(step().source, x, w1, w2);
  const bool right = whole.only().to_xarray<float>()(7, 0) == 8 * 6 * 6;
  return right && pt::equal(whole, on_the_mesh(x, w1, w2)) ? 0 : 1;
}
