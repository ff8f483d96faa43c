// Derivative rules applied twice, compared with central differences of the gradient, in binary64.
#include <doctest/doctest.h>

#include <cmath>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;

namespace {

/// Values of magnitude about 1, far from each other.
pt::array spread(const tensor_type& t, std::size_t operand) {
  return data::fill(t, [&](std::int64_t i) {
    const auto scattered = (static_cast<std::uint64_t>(i) * 7919u + operand * 31u) % 101u;
    return static_cast<double>(scattered) / 60 - 0.7 + 0.0031 * static_cast<double>(operand + 1);
  });
}
pt::value_id sum(pt::builder& b, pt::value_id x) {
  ints all;
  for (int d = 0; d < b.type(x).shape.rank; ++d) all.push_back(d);
  return pt::ops::reduce(b, x, pt::combiner::add, all);
}

}  // namespace

TEST_CASE(
    "second derivatives of reductions, windows and convolutions agree with central differences") {
  std::vector<op_case> list;
  add_window_cases(list);
  int checked = 0;
  for (op_case c : list) {
    if (!pt::is_floating(c.operands[0].element)) continue;
    for (auto& t : c.operands) t.element = dtype::f64;
    // s = sum of v * gradient of (sum of y^2), where y is the op.
    pt::builder b;
    std::vector<pt::value_id> x;
    std::vector<pt::array> values;
    pt::vec<pt::value_id> wanted;
    for (std::size_t k = 0; k < c.operands.size(); ++k) {
      x.push_back(pt::ops::parameter(b, parameter_name(k), c.operands[k]));
      values.push_back(spread(c.operands[k], k));
      wanted.push_back(x.back());
    }
    const auto y = b.emit(*c.op, x, c.attrs, c.declared);
    const auto first = pt::dsl_detail::reverse(b, sum(b, pt::ops::multiply(b, y, y)), wanted);
    pt::value_id s = pt::ops::scalar(b, dtype::f64, 0);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto v =
          pt::ops::parameter(b, std::string(1, static_cast<char>('v' + k)), b.type(x[k]));
      values.push_back(spread(c.operands[k], k + 7));
      s = pt::ops::add(b, s, sum(b, pt::ops::multiply(b, v, first[k])));
    }
    REQUIRE_MESSAGE(!b.failed(), data::str(b.p.error.message));
    pt::program forward = b.p;
    forward.outputs.push_back({s, forward.intern("s")});
    const auto second = pt::dsl_detail::reverse(b, s, wanted);
    REQUIRE_MESSAGE(!b.failed(), data::str(b.p.error.message));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      b.p.outputs.push_back({second[k], b.p.intern(parameter_name(k))});
    // Parameters that follow the inputs of the first derivative are inputs too.
    const pt::results found = pt::evaluate(b.p, values);
    const pt::executable f(forward);
    const double h = 1e-5;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const double* got = found[k].data<double>();
      double scale = 1;
      for (std::int64_t e = 0; e < values[k].size(); ++e)
        scale = std::max(scale, std::fabs(got[e]));
      for (std::int64_t e = 0; e < values[k].size(); ++e) {
        const auto moved = [&](double by) {
          auto changed = values;
          changed[k].mutable_data<double>()[e] += by;
          return f(changed).front().item<double>();
        };
        const double expected = (moved(h) - moved(-h)) / (2 * h);
        // Truncation h^2 f''' / 6 and rounding eps |s| / h: both below 1e-7 of the scale.
        const bool close = std::fabs(got[e] - expected) <= 1e-6 * scale;
        if (!close)
          CHECK_MESSAGE(close, c.op->name, " operand ", k, " element ", e, ": ", got[e],
                        " instead of ", expected);
        ++checked;
      }
    }
  }
  CHECK(checked > 500);
}

// x0 x1 x2 ...: gradients and their gradients are products of the other elements, zero or not.
TEST_CASE("derivatives of a product are right at zeros") {
  for (const std::vector<double>& x :
       {std::vector<double>{2, 3, 5}, {2, 0, 5, 7}, {0, 3, 0, 7, 2}, {0, 0, 0}, {4}, {0}}) {
    const auto n = static_cast<std::int64_t>(x.size());
    const auto without = [&](std::int64_t i, std::int64_t j) {
      double product = 1;
      for (std::int64_t k = 0; k < n; ++k)
        if (k != i && k != j) product *= x[static_cast<std::size_t>(k)];
      return product;
    };
    pt::builder b;
    const auto p = pt::ops::parameter(b, "x", f64({n}));
    const std::int64_t zero[] = {0};
    const auto y = pt::ops::reduce(b, p, pt::combiner::multiply, zero);
    const auto g = pt::dsl_detail::reverse(b, y, {p})[0];
    b.p.outputs.push_back({g, b.p.intern("g")});
    const auto weights = pt::ops::iota(b, f64({n}), 0);
    const auto h = pt::dsl_detail::reverse(b, sum(b, pt::ops::multiply(b, g, weights)), {p})[0];
    REQUIRE(!b.failed());
    b.p.outputs.push_back({h, b.p.intern("h")});
    const auto r = pt::evaluate(
        b.p, data::fill(f64({n}), [&](auto i) { return x[static_cast<std::size_t>(i)]; }));
    for (std::int64_t i = 0; i < n; ++i) {
      double expected = 0;
      for (std::int64_t j = 0; j < n; ++j)
        if (j != i) expected += static_cast<double>(j) * without(i, j);
      CHECK(r["g"].data<double>()[i] == without(i, i));
      CHECK(r["h"].data<double>()[i] == expected);
    }
  }
}

// select_and_scatter selects the first of equal elements in row-major order.
TEST_CASE("the cotangent of a maximum under a window goes to its first element") {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", f64({2, 4}));
  const pt::window_dim w[] = {sliding(2, 2), sliding(2, 2)};
  const auto y = pt::ops::reduce_window(b, x, pt::combiner::max, w);
  const auto g = pt::dsl_detail::reverse(b, sum(b, y), {x});
  b.p.outputs.push_back({g[0], b.p.intern("g")});
  const double xs[] = {1, 3, 2, 2, 3, 3, 2, 2}, expected[] = {0, 1, 1, 0, 0, 0, 0, 0};
  const auto r = pt::evaluate(b.p, data::fill(f64({2, 4}), [&](auto i) { return xs[i]; }));
  for (int i = 0; i < 8; ++i) CHECK(r["g"].data<double>()[i] == expected[i]);
}
