// all_close reports the elements that differ, and doctest prints the report.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "../data.hpp"

namespace pt = partita;

namespace {
/// Returns the text that a failing CHECK prints.
std::string shown(const auto& x) { return doctest::toString(x).c_str(); }
}  // namespace

TEST_CASE(
    "all_close reports the element, both values, their distance, and the number of such elements") {
  const xt::xarray<float> x = xt::ones<float>({2, 3});
  xt::xarray<float> y = x;
  y(1, 2) = 1.5f;
  y(0, 1) = 0.1f;
  CHECK(pt::all_close(x, x));
  CHECK(shown(pt::all_close(x, x)) == "all close");
  CHECK_FALSE(pt::all_close(x, y));
  CHECK(shown(pt::all_close(x, y)) ==
        "2 of 6 elements differ; element (0, 1) is 1, not 0.1: apart by 0.9, relative 9; allowed "
        "2e-06");
  CHECK(pt::all_close(x, y, 0, 1));
  CHECK(shown(pt::all_close(x, y, 0, 0.6))
            .starts_with("1 of 6 elements differ; element (0, 1) is 1"));
  CHECK(shown(pt::all_close(x, xt::xarray<float>(xt::ones<float>({3, 2})))) ==
        "shape [2, 3], not [3, 2]");
  CHECK(shown(pt::all_close(pt::array(1), pt::array(3))) ==
        "1 of 1 element differs; element () is 1, not 3: apart by 2, relative 0.667; allowed "
        "3.1e-05");
  CHECK(shown(pt::all_close(pt::array(1.f), pt::array(INFINITY))) ==
        "1 of 1 element differs; element () is 1, not inf");
  // A NaN counts as further than any distance.
  CHECK(shown(pt::all_close(xt::xarray<double>{5, NAN, 7}, xt::xarray<double>{0, 1, 0})) ==
        "3 of 3 elements differ; element (1) is nan, not 1");
  CHECK(shown(pt::all_close(pt::array(NAN), pt::array(NAN))) ==
        "1 of 1 element differs; element () is nan, not nan");
}

TEST_CASE("all_close of runs names the output") {
  const auto f = pt::trace(
      [](auto a) {
        return std::tuple{pt::output("sum", a + a), pt::output("same", a - a),
                          pt::output("square", a * a)};
      },
      pt::input<float, 2>("a"));
  const auto r = pt::evaluate(f, xt::xarray<float>{1, 2}),
             q = pt::evaluate(f, xt::xarray<float>{1, 3});
  CHECK(pt::all_close(r, r));
  CHECK(shown(pt::all_close(r, q)) ==
        "output 0 \"sum\": 1 of 2 elements differ; element (1) is 4, not 6: apart by 2, relative "
        "0.333; allowed 6.1e-05; 1 more output is not close");
  const auto g = pt::trace([](auto a) { return a * a; }, pt::input<float, 2>("a"));
  const auto one = pt::evaluate(g, xt::xarray<float>{1, 2});
  CHECK(pt::all_close(one, xt::xarray<float>{1, 4}));
  CHECK(shown(pt::all_close(one, xt::xarray<float>{1, 5}))
            .starts_with("output 0 \"result\": 1 of 2"));
  CHECK(shown(pt::all_close(xt::xarray<float>{1, 5}, one))
            .starts_with("output 0 \"result\": 1 of 2"));
  CHECK(shown(pt::all_close(r, one)) == "3 outputs, not 1");
}

TEST_CASE("arrays print as values") {
  CHECK(shown(pt::array(2.5f)) == "2.5");
  CHECK(shown(pt::array(pt::tensor_type{pt::dtype::boolean, {}})) == "0");
  CHECK(shown(pt::array(pt::tensor_type{pt::dtype::i32, {2, 0}})) == "tensor<2x0xi32> ");
  CHECK(shown(pt::array(xt::xarray<float>{{1, 2}, {3, 4}})) == "tensor<2x2xf32> 1 2 3 4");
  CHECK(shown(pt::array(xt::xarray<double>{1, 2, 3, 4, 5, 6, 7, 8, 9})) ==
        "tensor<9xf64> 1 2 3 4 5 6 7 8 ... (1 more)");
}
