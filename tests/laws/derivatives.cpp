// Derivative rules compared with central differences, in binary64.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <partita/run/laws.hpp>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;

TEST_CASE("derivative rules agree with central differences") {
  std::set<const pt::op_def*> covered;
  for (op_case c : all_cases()) {
    if (!c.op->differentiable || c.op == &pt::def<pt::op::stop_gradient>) continue;
    // It is a step function and rounds cotangents, unless its format is binary64.
    if (c.op == &pt::def<pt::op::reduce_precision> && c.attrs != ints{11, 52}) continue;
    pt::derivative_options options;
    options.symmetric = c.symmetric;
    options.index_low = c.low;
    options.index_high = c.high;
    if (c.low > 0) {
      options.low = 0.4;
      options.high = 4.4;
    }
    // Floating-point cases run in binary64; conversions use integer steps instead.
    const auto widen = [](dtype& t) { t = pt::is_floating(t) ? dtype::f64 : t; };
    for (auto& t : c.operands) widen(t.element);
    if (c.op == &pt::def<pt::op::convert>) {
      if (c.declared.element != dtype::f32) continue;
      options.step = 1;
      options.low = 0;
      data::random r{3};
      options.operands = {data::integers(c.operands[0], r, 0, 5)};
    } else {
      widen(c.declared.element);
    }
    data::random made{7};
    for (std::size_t k = 0; c.make != nullptr && k < c.operands.size(); ++k)
      options.operands.push_back(c.make(c.operands[k], k, made));
    // Truncation step^2 f''' / 6 and rounding eps |loss| / step: both below 1e-7 for these values.
    try {
      if (pt::check_derivative(*c.op, c.operands, c.attrs, c.declared, options) > 0)
        covered.insert(c.op);
    } catch (const pt::error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
  for (const pt::op_def* op : pt::registry)
    if (op->differentiable && op != &pt::def<pt::op::constant> && op != &pt::def<pt::op::iota> &&
        op != &pt::def<pt::op::literal> && op != &pt::def<pt::op::stop_gradient> &&
        op->role != pt::op_role::control)
      CHECK_MESSAGE(covered.count(op) == 1, op->name, " has no case with floating-point operands");
}

TEST_CASE("stop_gradient has the derivative zero") {
  std::string refused;
  try {
    pt::check_derivative(pt::def<pt::op::stop_gradient>, {f64({2})});
  } catch (const pt::error& e) {
    refused = e.what();
  }
  CHECK(refused ==
        "L003 laws: derivative of stop_gradient of (tensor<2xf64>): operand 0, element (0): the "
        "rule gives 0, central differences 0.2332673");
}

// The rules of max and min share the cotangent among equal elements; maximum passes it to the first
// operand.
TEST_CASE("cotangents at ties: shared by reductions, passed to the first operand of maximum") {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", f64({4}));
  const auto y = pt::ops::parameter(b, "y", f64({4}));
  const std::int64_t zero[] = {0};
  const auto sum = [&](pt::value_id v) { return pt::ops::reduce(b, v, pt::combiner::add, zero); };
  auto loss = pt::ops::reduce(b, x, pt::combiner::max, zero);
  loss = pt::ops::add(b, loss, sum(pt::ops::maximum(b, x, y)));
  const auto g = pt::dsl_detail::reverse(b, loss, {x, y});
  for (auto v : g) b.p.outputs.push_back({v, b.p.intern(v == g[0] ? "dx" : "dy")});
  const double xs[] = {1, 3, 3, 0}, ys[] = {1, 2, 4, 0};
  const auto r = pt::evaluate(b.p, data::fill(f64({4}), [&](auto i) { return xs[i]; }),
                              data::fill(f64({4}), [&](auto i) { return ys[i]; }));
  const double dx[] = {1, 1.5, 0.5, 1}, dy[] = {0, 0, 1, 0};
  for (int i = 0; i < 4; ++i) {
    CHECK(r["dx"].data<double>()[i] == dx[i]);
    CHECK(r["dy"].data<double>()[i] == dy[i]);
  }
}

// The rules of argmax and argmin follow the position: one of the equal elements gets the cotangent.
TEST_CASE("the cotangent of an extreme value goes to its position") {
  const auto p = pt::trace(
      [](auto x) {
        const auto gradient = [](auto v) {
          return pt::grad(
              [](auto u) {
                const auto [greatest, i] = pt::max_with_position<1>(u);
                const auto [least, j] = pt::min_with_position<0>(u);
                return sum(greatest * greatest * greatest) + 10.0 * sum(least);
              },
              v);
        };
        const auto second = pt::grad([&](auto v) { return sum(gradient(v)); }, x);
        return std::tuple{pt::output("first", gradient(x)), pt::output("second", second),
                          pt::output("i", pt::argmax<1>(x)), pt::output("j", pt::argmin<0>(x))};
      },
      pt::input<double, 2, 3>("x"));
  const double x[] = {1, 2, 2, 2, 1, -1};
  const auto r = pt::evaluate(p, data::fill(f64({2, 3}), [&](auto i) { return x[i]; }));
  const double first[] = {10, 12, 0, 12, 10, 10}, second[] = {0, 12, 0, 12, 0, 0};
  for (int i = 0; i < 6; ++i) {
    CHECK(r["first"].data<double>()[i] == first[i]);
    CHECK(r["second"].data<double>()[i] == second[i]);
  }
  CHECK(pt::equal(r["i"], data::fill(i32({2}), [](auto i) { return 1 - i; })));
  CHECK(pt::equal(r["j"], data::fill(i32({3}), [](auto i) { return i > 0; })));
}

namespace {

/// Sums all running products, maxima, ... of x, for a combiner, from either end, with or without
/// the element itself.
pt::program of_running(pt::combiner combine, bool reverse, bool exclusive, std::int64_t n) {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", f64({n}));
  const std::int64_t zero[] = {0};
  const auto y = pt::ops::cumsum(b, x, 0, reverse, exclusive, combine);
  const auto g = pt::dsl_detail::reverse(b, pt::ops::reduce(b, y, pt::combiner::add, zero), {x});
  b.p.outputs.push_back({g[0], b.p.intern("dx")});
  return std::move(b.p);
}
std::vector<double> derived(const pt::program& p, const std::vector<double>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  const auto r =
      pt::evaluate(p, data::fill(f64({n}), [&](auto i) { return x[static_cast<std::size_t>(i)]; }));
  const auto* dx = r["dx"].template data<double>();
  return {dx, dx + n};
}
std::vector<double> derived(pt::combiner combine, bool reverse, const std::vector<double>& x) {
  return derived(of_running(combine, reverse, false, static_cast<std::int64_t>(x.size())), x);
}

}  // namespace

// y[i] = x[0] ... x[i]: the rule neither divides by x nor multiplies by elements that do not exist.
TEST_CASE("cotangents of running products are right at zeros and infinities") {
  using list = std::vector<double>;
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(derived(pt::combiner::multiply, false, {2, 0, 3}) == list{1, 8, 0});
  CHECK(derived(pt::combiner::multiply, true, {3, 0, 2}) == list{0, 8, 1});
  CHECK(derived(pt::combiner::multiply, false, {2, 3, 4, 5, 6}) ==
        list{1 + 3 + 12 + 60 + 360, 2 + 8 + 40 + 240, 6 + 30 + 180, 24 + 144, 120});
  CHECK(derived(pt::combiner::multiply, false, {1, 1, inf}) == list{inf, inf, 1});
  CHECK(derived(pt::combiner::multiply, false, {7}) == list{1});
}

TEST_CASE("cotangents of running maxima and minima go to the first of equal elements") {
  using list = std::vector<double>;
  CHECK(derived(pt::combiner::max, false, {1, 3, 3, 2, 4}) == list{1, 3, 0, 0, 1});
  CHECK(derived(pt::combiner::max, true, {1, 3, 3, 2, 4}) == list{0, 0, 0, 0, 5});
  CHECK(derived(pt::combiner::min, false, {2, 2, 5, 1, 1}) == list{3, 0, 0, 2, 0});
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(derived(pt::combiner::max, false, {-inf, -inf, 0}) == list{2, 0, 1});
}

TEST_CASE("gradients of running products and maxima take few ops for long dimensions") {
  for (bool reverse : {false, true})
    for (bool exclusive : {false, true}) {
      CHECK(of_running(pt::combiner::max, reverse, exclusive, 1 << 20).ops.size() < 40);
      const auto small = of_running(pt::combiner::multiply, reverse, exclusive, 1 << 10).ops.size();
      const auto large = of_running(pt::combiner::multiply, reverse, exclusive, 1 << 20).ops.size();
      CHECK(large <= 2 * small);
    }
}
