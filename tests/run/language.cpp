// The meaning of the typed language, by its values.
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <xtensor/xarray.hpp>

namespace pt = partita;

namespace {

xt::xarray<float> run(auto model, const xt::xarray<float>& x) {
  const auto p = pt::trace(model, pt::input<float, pt::dyn>("x", x.shape()[0]));
  return pt::evaluate(p, x).only().template to_xarray<float>();
}

// A value that is selected from temporary results outlives them.
static_assert(std::is_same_v<decltype(std::declval<pt::results>()["y"]), pt::array> &&
              std::is_same_v<decltype(std::declval<pt::results>()[0]), pt::array> &&
              std::is_same_v<decltype(std::declval<pt::results>().only()), pt::array> &&
              std::is_same_v<decltype(std::declval<pt::results&>()["y"]), const pt::array&>);

}  // namespace

TEST_CASE("select accepts numbers on either side, and ignores the operand that is not selected") {
  const xt::xarray<float> x{-1, 4, 9};
  const auto root = run([](auto v) { return select(v < 0, 0, sqrt(v)); }, x);
  CHECK(root == xt::xarray<float>{0, 2, 3});
  const auto inverse = run([](auto v) { return select(v > 0, 1 / (v - 4), 7); }, x);
  CHECK(inverse(0) == 7);
  CHECK(std::isinf(inverse(1)));
  CHECK(inverse(2) == doctest::Approx(0.2));
}
TEST_CASE("numbers become values of the other operand's type") {
  const auto model = [](auto x) { return pt::convert<std::int64_t>(x) * 9007199254740993; };
  const auto p = pt::trace(model, pt::input<float, 1>("x"));
  const xt::xarray<float> one{1};
  CHECK(pt::evaluate(p, one).only().data<std::int64_t>()[0] == 9007199254740993);
  CHECK_THROWS_WITH_AS(pt::trace([](auto x) { return pt::convert<std::uint8_t>(x) + 300; },
                                 pt::input<float, 1>("x")),
                       "S117 constant: 300 is not a value of element type u8", pt::error);
}
TEST_CASE("mean, full_like and broadcasting have the values of a loop") {
  CHECK(run([](auto x) { return mean(x); }, {1, 2, 6})() == 3);
  CHECK(std::isnan(run([](auto x) { return mean(x); }, xt::xarray<float>::from_shape({0}))()));
  CHECK(run([](auto x) { return full_like(x, 2) + x; }, {1, 2, 3}) == xt::xarray<float>{3, 4, 5});
  const auto table = run([](auto x) { return keep_last(x) * x; }, {1, 2, 3});
  CHECK(table == xt::xarray<float>{{1, 2, 3}, {2, 4, 6}, {3, 6, 9}});
}
TEST_CASE("results compare output by output") {
  const auto p = pt::trace(
      [](auto x) {
        return std::tuple{pt::output("a", x), pt::output("b", x * 2)};
      },
      pt::input<float, 2>("x"));
  const xt::xarray<float> x{1, 2}, y{1, 5};
  CHECK(pt::max_difference(pt::evaluate(p, x), pt::evaluate(p, y)) == 6);
  CHECK(pt::max_difference(pt::evaluate(p, x), pt::evaluate(p, x)) == 0);
}
TEST_CASE("apply_op returns a tensor or a tuple, with the checks of the language's own ops") {
  const auto p = pt::trace(
      [](auto x, auto i) {
        const auto [values, positions] = pt::apply_op<pt::op::top_k, 2>(x, i);
        static_assert(std::is_same_v<decltype(positions), const pt::tensor<std::int32_t, 2>>);
        return std::tuple{pt::apply_op<pt::op::add>(values, values), positions};
      },
      pt::input<float, 3>("x"), pt::input<std::int32_t, 3>("i"));
  const auto r = pt::evaluate(p, xt::xarray<float>{2, 7, 7}, xt::xarray<std::int32_t>{3, 8, 4});
  CHECK(pt::equal(r[0], xt::xarray<float>{14, 14}));
  CHECK(pt::equal(r[1], xt::xarray<std::int32_t>{4, 8}));
  CHECK_THROWS_WITH_AS(
      pt::trace([](auto x, auto y) { return pt::apply_op<pt::op::add>(x, y); },
                pt::input<float, pt::dyn>("x", 3), pt::input<float, pt::dyn>("y", 4)),
      "S103 add: shapes [3] and [4] differ", pt::error);
}
