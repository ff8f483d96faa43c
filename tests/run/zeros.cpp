// Extremes of zeros with signs and of NaN: one rule, whatever lies where and whoever computes it.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>

#include "../data.hpp"

using namespace partita;
using data::str;

namespace {

constexpr dtype float_types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16};
constexpr std::int64_t zero[] = {0}, one[] = {1}, both[] = {0, 1};
constexpr double inf = std::numeric_limits<double>::infinity();

/// IEEE 754 (2019) maximum and minimum.
double extreme_of(bool greatest, double x, double y) {
  if (x != x || y != y) return std::nan("");
  if (x == y)
    return (greatest ? std::signbit(x) && std::signbit(y) : std::signbit(x) || std::signbit(y))
               ? -std::fabs(x)
               : std::fabs(x);
  return (x > y) == greatest ? x : y;
}
/// Equal with their signs; one NaN is as good as another.
bool same(double x, double y) {
  return (x != x && y != y) || std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
}
bool same(const array& a, const array& b) {
  const array x = as_type(a, dtype::f64), y = as_type(b, dtype::f64);
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (!same(x.data<double>()[i], y.data<double>()[i])) return false;
  return a.type() == b.type();
}
/// Mostly zeros, with few numbers of one sign, seldom what is not finite.
array zeros(dtype t, const shape& s, std::uint64_t seed, bool greatest) {
  return data::fill({t, s}, [&](std::int64_t i) {
    std::uint64_t r = (seed * 1000003 + static_cast<std::uint64_t>(i)) * 6364136223846793005u + 1;
    r = (r ^ (r >> 29)) * 0xbf58476d1ce4e5b9u;
    const auto draw = (r >> 40) % (seed % 5 == 0 ? 400 : 40);
    const double sign = greatest ? -1 : 1;
    if (seed % 5 == 0 && draw == 1) return std::nan("");
    if (draw == 2) return sign * inf;
    if (draw < 6) return sign * 1.5;
    return seed % 3 == 0 || draw % 8 == 0 ? -sign * 0. : sign * 0.;
  });
}

}  // namespace

TEST_CASE("maximum, minimum and clamp of zeros and NaN") {
  const std::vector<double> values = {0.,   -0.,          1.,       -1.,      inf,
                                      -inf, std::nan(""), 0x1p-149, -0x1p-149};
  const auto n = static_cast<std::int64_t>(values.size());
  for (dtype t : float_types) {
    const auto pairs = [&](bool first) {
      return data::fill({t, {n * n}}, [&](std::int64_t i) {
        return values[static_cast<std::size_t>(first ? i / n : i % n)];
      });
    };
    const array x = pairs(true), y = pairs(false);
    const array wide_x = as_type(x, dtype::f64), wide_y = as_type(y, dtype::f64);
    const array high = run_op(def<op::maximum>, std::vector{x, y}, {}, x.type());
    const array low = run_op(def<op::minimum>, std::vector{x, y}, {}, x.type());
    const array raised =
        run_op(def<op::clamp>, std::vector{y, x, data::fill(x.type(), [](auto) { return inf; })},
               {}, x.type());
    for (std::int64_t i = 0; i < n * n; ++i) {
      const double a = wide_x.data<double>()[i], b = wide_y.data<double>()[i];
      CAPTURE(a);
      CAPTURE(b);
      CHECK(same(as_type(high, dtype::f64).data<double>()[i], extreme_of(true, a, b)));
      CHECK(same(as_type(low, dtype::f64).data<double>()[i], extreme_of(false, a, b)));
      CHECK(same(as_type(raised, dtype::f64).data<double>()[i], extreme_of(true, a, b)));
    }
  }
}

TEST_CASE("reduce to extremes: rows, columns and the middle, of any length") {
  for (dtype t : float_types)
    for (bool greatest : {true, false})
      for (std::int64_t n : {1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 300, 1025, 5000})
        for (std::int64_t inner : {1, 3, 17}) {
          if (n * inner > 6000) continue;
          for (std::uint64_t seed = 0; seed < 6; ++seed) {
            const shape s{2, n, inner};
            const array x = zeros(t, s, seed, greatest);
            const auto how = static_cast<std::int64_t>(greatest ? combiner::max : combiner::min);
            const array got =
                as_type(run_op(def<op::reduce>, std::vector{x}, std::vector<std::int64_t>{how, 1},
                               tensor_type{t, {2, inner}}),
                        dtype::f64);
            const array wide = as_type(x, dtype::f64);
            for (std::int64_t o = 0; o < 2; ++o)
              for (std::int64_t i = 0; i < inner; ++i) {
                double want = greatest ? -inf : inf;
                for (std::int64_t k = 0; k < n; ++k)
                  want = extreme_of(greatest, want, wide.data<double>()[(o * n + k) * inner + i]);
                CAPTURE(n);
                CAPTURE(inner);
                CAPTURE(want);
                REQUIRE(same(got.data<double>()[o * inner + i], want));
              }
          }
        }
}

TEST_CASE("extremes that devices compute are those of the source, to the sign of zero") {
  constexpr std::int64_t rows = 12, columns = 40;
  for (combiner how : {combiner::max, combiner::min})
    for (dtype t : float_types) {
      builder b;
      const value_id x = ops::parameter(b, "x", {t, {rows, columns}});
      const value_id all = ops::reduce(b, x, how, both);
      const value_id inverse = ops::divide(b, ops::scalar(b, t, 1), all);
      window_dim slide;
      slide.size = 3;
      slide.low = slide.high = 1;
      const window_dim w[] = {slide, {}};
      const value_id pooled = ops::reduce_window(b, x, how, w);
      b.p.outputs = {{ops::reduce(b, x, how, one), b.p.intern("rows")},
                     {ops::reduce(b, x, how, zero), b.p.intern("columns")},
                     {inverse, b.p.intern("inverse")},
                     {pooled, b.p.intern("pooled")}};
      REQUIRE(str(b.p.error.message) == "");
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const array in = zeros(t, {rows, columns}, seed, how == combiner::max);
        const results source = evaluate(b.p, in);
        for (const mesh& m : {mesh{{"a", 2}, {"b", 2}}, mesh{{"a", 4}, {"b", 5}}}) {
          const auto r =
              partition(b.p, m, schedule(manual("a", {{"x", 0}}), manual("b", {{"x", 1}})));
          for (const results& local :
               {emulate(r, in), emulate(r, run_options{.threads = 2, .fuse = false}, in),
                temporal(r, in)})
            for (int i = 0; i < source.size(); ++i) {
              CAPTURE(i);
              CHECK(same(source[i], local[i]));
            }
        }
      }
    }
}

namespace {

value_id product(builder& b, value_id x, value_id y) {
  return ops::dot_general(
      b, x, y, {.lhs_batch = {}, .rhs_batch = {}, .lhs_contract = one, .rhs_contract = zero});
}

}  // namespace

TEST_CASE("a sum of zeros is +0 on any device, whatever their signs") {
  builder b;
  const value_id x = ops::parameter(b, "x", {dtype::f32, {4, 8}});
  const value_id y = ops::parameter(b, "y", {dtype::f32, {8, 4}});
  b.p.outputs = {{ops::reduce(b, x, combiner::add, both), b.p.intern("all")},
                 {ops::reduce(b, x, combiner::add, zero), b.p.intern("columns")},
                 {product(b, x, y), b.p.intern("product")},
                 {product(b, y, x), b.p.intern("outer")}};
  const array minus = data::fill({dtype::f32, {4, 8}}, [](auto) { return -0.; });
  const array ones = data::fill({dtype::f32, {8, 4}}, [](auto) { return 1.; });
  for (const mesh& m :
       {mesh{{"a", 1}, {"b", 1}}, mesh{{"a", 2}, {"b", 4}}, mesh{{"a", 4}, {"b", 8}}}) {
    const auto r = partition(b.p, m, schedule(manual("b", {{"x", 1}}), manual("a", {{"x", 0}})));
    const results sums = emulate(r, minus, ones);
    for (const array& a : sums)
      for (std::int64_t i = 0; i < a.size(); ++i)
        CHECK(std::bit_cast<std::uint32_t>(a.data<float>()[i]) == 0);
  }
}
