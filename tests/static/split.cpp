// Parts and keys that a lambda uses, on every compiler: the forms that the docstrings of `split`
// recommend.
#include <tuple>

#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto by_index = [](auto x, auto w, auto key) {
  const auto keys = pt::split<2>(key);
  const auto parts = pt::split<2, 1>(x);
  const auto loss = [&](auto v) {
    return sum(matmul(parts[0], v) * pt::uniform<float>(keys[1], 8, 4) + matmul(parts[1], v));
  };
  return pt::value_and_grad(loss, w);
};
constexpr auto by_binding = [](auto x, auto w, auto key) {
  const auto [first, second] = pt::split<2>(key);
  const auto [left, right] = pt::split<2, 1>(x);
  const auto loss = [&, second = second, left = left, right = right](auto v) {
    return sum(matmul(left, v) * pt::uniform<float>(second, 8, 4) + matmul(right, v));
  };
  (void)first;
  return pt::value_and_grad(loss, w);
};
template <const auto& Model>
constexpr auto step = [] {
  return pt::partition(pt::trace(Model, pt::input<float, 8, 12>("x"), pt::input<float, 6, 4>("w"),
                                 pt::input<std::int64_t>("key")),
                       {{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::expect<pt::check<step<by_index>>.collectives, pt::collectives{.all_reduce = 2}>);
static_assert(
    pt::expect<pt::check<step<by_binding>>.collectives, pt::check<step<by_index>>.collectives>);

// value_and_grad returns a pair, which is a tree like others.
static_assert(
    pt::expect<pt::check<step<by_index>>.output("result.1").local_shape, pt::shape{6, 4}>);
