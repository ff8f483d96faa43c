// Derivative rules against central differences, in binary64.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;

namespace {

/// Values far from each other, so that no maximum changes within a step.
pt::array spread(const tensor_type& t, std::size_t operand, bool whole, double low) {
  return data::fill(t, [&](std::int64_t i) {
    const auto scattered = (static_cast<std::uint64_t>(i) * 7919u + operand * 31u) % 101u;
    const double v = static_cast<double>(scattered) / 25;
    return whole ? std::floor(v) : low + v + 0.0031 * static_cast<double>(operand + 1);
  });
}

/// The element of a batch of square matrices that mirrors element e.
std::int64_t mirrored(const shape& s, std::int64_t e) {
  const std::int64_t n = s[s.rank - 1], row = e / n % n, column = e % n;
  return e + (column - row) * n + row - column;
}

}  // namespace

TEST_CASE("derivative rules agree with central differences") {
  std::set<const pt::op_def*> covered;
  for (op_case c : all_cases()) {
    if (!c.op->differentiable || c.operands.empty()) continue;
    const bool convert = c.op == &pt::def<pt::op::convert>;
    if (convert && !(pt::is_floating(c.operands[0].element) && c.declared.element == dtype::f32))
      continue;
    // In binary64 where the case is in floating point; conversions take whole steps instead.
    const auto wide = [](dtype t) { return pt::is_floating(t) ? dtype::f64 : t; };
    for (auto& t : c.operands) t.element = wide(t.element);
    if (!convert) c.declared.element = wide(c.declared.element);

    pt::builder b;
    std::vector<pt::value_id> x;
    std::vector<pt::array> values;
    for (std::size_t k = 0; k < c.operands.size(); ++k) {
      x.push_back(pt::ops::parameter(b, std::string(1, static_cast<char>('a' + k)), c.operands[k]));
      const bool index = pt::is_integer(c.operands[k].element);
      data::random r{k + 3};
      if (c.make) {
        values.push_back(c.make(c.operands[k], k, r));
        continue;
      }
      values.push_back(index || c.operands[k].element == dtype::boolean
                           ? data::integers(c.operands[k], r, c.low, c.high)
                           : spread(c.operands[k], k, convert, c.low > 0 ? 0.4 : -2));
    }
    pt::value_id y = b.emit(*c.op, x, c.attrs, c.declared);
    REQUIRE_MESSAGE(!b.failed(), data::str(b.p.error.message));
    if (!pt::is_floating(b.type(y).element)) continue;
    y = pt::ops::convert(b, y, dtype::f64);
    const auto weights = pt::ops::parameter(b, "weights", b.type(y));
    ints all;
    for (int d = 0; d < b.type(y).shape.rank; ++d) all.push_back(d);
    const auto loss = pt::ops::reduce(b, pt::ops::multiply(b, y, weights), pt::combiner::add, all);
    pt::vec<pt::value_id> wanted;
    std::vector<std::size_t> operand;
    for (std::size_t k = 0; k < x.size(); ++k)
      if (pt::is_floating(c.operands[k].element)) wanted.push_back(x[k]), operand.push_back(k);
    if (wanted.empty()) continue;
    values.push_back(spread(b.type(weights), 9, false, -1));

    pt::program forward = b.p;
    forward.outputs.push_back({loss, forward.intern("loss")});
    const auto gradients = pt::detail::reverse(b, loss, wanted);
    REQUIRE_MESSAGE(!b.failed(), data::str(b.p.error.message));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CHECK(b.type(gradients[i]) == c.operands[operand[i]]);
      b.p.outputs.push_back({gradients[i], b.p.intern(std::string(1, static_cast<char>('a' + i)))});
    }
    CHECK(!pt::verify(b.p));
    const pt::results found = pt::evaluate(b.p, values);
    const pt::executable f(forward);
    const double h = convert ? 1.0 : 1e-5;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::int64_t e = 0; e < values[operand[i]].size(); ++e) {
        const auto moved = [&](double by) {
          auto changed = values;
          double* moving = changed[operand[i]].mutable_data<double>();
          if (c.symmetric) {
            moving[e] += by / 2;
            moving[mirrored(values[operand[i]].shape(), e)] += by / 2;
          } else {
            moving[e] += by;
          }
          return f(changed).front().item<double>();
        };
        double expected = (moved(h) - moved(-h)) / (2 * h);
        if (c.op == &pt::def<pt::op::stop_gradient>) expected = 0;
        const double got = found[i].data<double>()[e];
        // Truncation h^2 f''' / 6 and rounding eps |loss| / h: both below 1e-7 for these values.
        const bool close = std::fabs(got - expected) <= 1e-6 * (1 + std::fabs(expected));
        if (!close)
          CHECK_MESSAGE(close, c.op->name, " operand ", operand[i], " element ", e, ": ", got,
                        " instead of ", expected);
      }
    covered.insert(c.op);
  }
  for (const pt::op_def* op : pt::registry)
    if (op->differentiable && op != &pt::def<pt::op::constant> && op != &pt::def<pt::op::iota>)
      CHECK_MESSAGE(covered.count(op) == 1, op->name, " has no case with floating-point operands");
}

// The rules of max and min share the cotangent among equal elements; maximum gives it to the first.
TEST_CASE("cotangents at ties") {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", f64({4}));
  const auto y = pt::ops::parameter(b, "y", f64({4}));
  const std::int64_t zero[] = {0};
  const auto sum = [&](pt::value_id v) { return pt::ops::reduce(b, v, pt::combiner::add, zero); };
  auto loss = pt::ops::reduce(b, x, pt::combiner::max, zero);
  loss = pt::ops::add(b, loss, sum(pt::ops::maximum(b, x, y)));
  const auto g = pt::detail::reverse(b, loss, {x, y});
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
