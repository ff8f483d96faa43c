// Extrema of NaN and zeros with signs: one rule, for every layout and every kernel.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"
#include "device_programs.hpp"

using namespace partita;
using data::str;
using device_programs::cut;
using device_programs::device_builder;

namespace {

constexpr dtype float_types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16};
constexpr std::int64_t zero[] = {0}, one[] = {1}, both[] = {0, 1};
constexpr double inf = std::numeric_limits<double>::infinity();

/// Returns the maximum or minimum of IEEE 754 (2019).
double extreme_of(bool greatest, double x, double y) {
  if (x != x || y != y) return std::nan("");
  if (x == y)
    return (greatest ? std::signbit(x) && std::signbit(y) : std::signbit(x) || std::signbit(y))
               ? -std::fabs(x)
               : std::fabs(x);
  return (x > y) == greatest ? x : y;
}
/// True if equal, including the sign of zeros; all NaN are equal.
bool same(double x, double y) {
  return (x != x && y != y) || std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
}
bool same(const array& a, const array& b) {
  const array x = as_type(a, dtype::f64), y = as_type(b, dtype::f64);
  for (std::int64_t i = 0; i < x.size(); ++i)
    if (!same(x.data<double>()[i], y.data<double>()[i])) return false;
  return a.type() == b.type();
}
/// Mostly zeros, few numbers of one sign, and rarely numbers that are not finite.
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

TEST_CASE("maximum, minimum and clamp of zeros and NaN follow IEEE 754") {
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

TEST_CASE("reductions to extrema of zeros and NaN: rows, columns and the middle, of any length") {
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

TEST_CASE("extrema over devices are those of the source, including the sign of zero") {
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

TEST_CASE("scattered extrema, with an input and without, on devices too") {
  constexpr std::int64_t rows = 6, count = 24, columns = 4;
  for (bool greatest : {true, false})
    for (dtype t : float_types) {
      const auto update = greatest ? ops::scatter_update::max : ops::scatter_update::min;
      builder b;
      const value_id table = ops::parameter(b, "table", {t, {rows, columns}});
      const value_id at = ops::parameter(b, "at", {dtype::i32, {count}});
      const value_id x = ops::parameter(b, "x", {t, {count, columns}});
      const std::int64_t attrs[] = {static_cast<std::int64_t>(update)};
      const value_id operands[] = {at, x};
      b.p.outputs = {
          {ops::scatter_rows(b, update, table, at, x), b.p.intern("into")},
          {b.emit(def<op::scatter>, operands, attrs, {t, {rows, columns}}), b.p.intern("alone")}};
      REQUIRE(str(b.p.error.message) == "");
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const array start = zeros(t, {rows, columns}, seed + 1, greatest);
        const array places =
            data::fill({dtype::i32, {count}}, [](std::int64_t i) { return i * i % (rows - 1); });
        const array updates = zeros(t, {count, columns}, seed, greatest);
        const results source = evaluate(b.p, start, places, updates);
        const array wide_start = as_type(start, dtype::f64), wide = as_type(updates, dtype::f64);
        const array into = as_type(source["into"], dtype::f64);
        const array alone = as_type(source["alone"], dtype::f64);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c) {
            double want = greatest ? -inf : inf;
            for (std::int64_t i = 0; i < count; ++i)
              if (i * i % (rows - 1) == r)
                want = extreme_of(greatest, want, wide.data<double>()[i * columns + c]);
            const std::int64_t e = r * columns + c;
            CHECK(same(alone.data<double>()[e], want));
            CHECK(same(into.data<double>()[e],
                       extreme_of(greatest, want, wide_start.data<double>()[e])));
          }
        for (const mesh& m : {mesh{{"a", 2}, {"b", 2}}, mesh{{"a", 4}, {"b", 4}}}) {
          const auto r =
              partition(b.p, m, schedule(manual("a", {{"x", 0}}), manual("b", {{"x", 1}})));
          CHECK(r.collectives.all_reduce == 2);
          for (const results& local :
               {emulate(r, start, places, updates), temporal(r, start, places, updates)})
            for (int i = 0; i < source.size(); ++i) CHECK(same(source[i], local[i]));
        }
      }
    }
}

TEST_CASE("a reduce_scatter of extrema equals that of all devices' elements") {
  constexpr std::int64_t columns = 12;
  const mesh m{{"a", 3}, {"b", 2}};
  for (bool greatest : {true, false})
    for (dtype t : float_types)
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        device_builder d(m);
        const value_id v = d.input("v", {t, {6, columns}}, cut({{0, 0}, {0, 1}}));
        const auto how = static_cast<std::int64_t>(greatest ? combiner::max : combiner::min);
        const value_id r =
            d.collective(def<op::reduce_scatter>, v, {how, 1, 0, 1, 1}, {1, columns / 6});
        const value_id some = d.collective(def<op::reduce_scatter>, v, {how, 1, 1}, {1, 6});
        d.output("all", r, {1, columns}, cut({{1, 0}, {1, 1}}));
        d.output("some", some, {3, columns}, cut({{0, 0}, {1, 1}}));
        const array x = zeros(t, {6, columns}, seed, greatest);
        const results got = emulate(d.done(), x);
        const array all = as_type(got["all"], dtype::f64), pairs = as_type(got["some"], dtype::f64);
        const array wide = as_type(x, dtype::f64);
        for (std::int64_t c = 0; c < columns; ++c) {
          double want = greatest ? -inf : inf;
          for (std::int64_t i = 0; i < 3; ++i) {
            const double* pair = wide.data<double>() + 2 * i * columns + c;
            const double two = extreme_of(greatest, pair[0], pair[columns]);
            CHECK(same(pairs.data<double>()[i * columns + c], two));
            want = extreme_of(greatest, want, two);
          }
          CHECK(same(all.data<double>()[c], want));
        }
      }
}

TEST_CASE("windows select the first of equal zeros of any sign, and continue after a NaN") {
  constexpr std::int64_t rows = 4, columns = 24;
  window_dim slide;
  slide.size = 3;
  slide.low = slide.high = 1;
  const window_dim w[] = {{}, slide};
  for (bool greatest : {true, false})
    for (dtype t : float_types) {
      builder b;
      const value_id x = ops::parameter(b, "x", {t, {rows, columns}});
      const value_id y = ops::parameter(b, "y", {t, {rows, columns}});
      const auto direction = greatest ? ops::direction::ge : ops::direction::le;
      b.p.outputs = {{ops::select_and_scatter(b, x, y, direction, w), b.p.intern("scattered")},
                     {ops::select_and_gather(b, x, y, direction, w), b.p.intern("gathered")}};
      REQUIRE(str(b.p.error.message) == "");
      const array source = data::fill({t, {rows, columns}}, [](std::int64_t i) {
        return i % 5 == 0 ? -0. : static_cast<double>(i % 7);
      });
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const array in = zeros(t, {rows, columns}, seed, greatest);
        const results got = evaluate(b.p, in, source);
        const array wide = as_type(in, dtype::f64), values = as_type(source, dtype::f64);
        const array gathered = as_type(got["gathered"], dtype::f64);
        std::vector<double> sums(rows * columns, 0.);
        for (std::int64_t i = 0; i < rows * columns; ++i) {
          const std::int64_t column = i % columns;
          std::int64_t selected = column == 0 ? i : i - 1;
          for (std::int64_t k = selected + 1; k <= (column + 1 < columns ? i + 1 : i); ++k) {
            const double old = wide.data<double>()[selected], one = wide.data<double>()[k];
            if (!(greatest ? old >= one : old <= one)) selected = k;
          }
          sums[static_cast<std::size_t>(selected)] += values.data<double>()[i];
          CHECK(same(gathered.data<double>()[i], values.data<double>()[selected]));
        }
        const array scattered = as_type(got["scattered"], dtype::f64);
        for (std::int64_t i = 0; i < rows * columns; ++i)
          CHECK(same(scattered.data<double>()[i], sums[static_cast<std::size_t>(i)]));
        for (const mesh& m : {mesh{{"a", 2}, {"b", 2}}, mesh{{"a", 4}, {"b", 6}}}) {
          const auto r =
              partition(b.p, m, schedule(manual("a", {{"x", 0}}), manual("b", {{"x", 1}})));
          CHECK(r.collectives.permute > 0);
          for (const results& local : {emulate(r, in, source), temporal(r, in, source)})
            for (int i = 0; i < got.size(); ++i) CHECK(same(got[i], local[i]));
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

TEST_CASE("scattered sums start from -0 on any device, whatever the padding") {
  constexpr std::int64_t rows = 2, count = 5, columns = 4;  // (fewer updates are gathered)
  for (dtype t : float_types) {
    builder b;
    const value_id table = ops::parameter(b, "table", {t, {rows, columns}});
    const value_id at = ops::parameter(b, "at", {dtype::i32, {count}});
    const value_id x = ops::parameter(b, "x", {t, {count, columns}});
    b.p.outputs = {
        {ops::scatter_rows(b, ops::scatter_update::add, table, at, x), b.p.intern("into")}};
    REQUIRE(str(b.p.error.message) == "");
    const array minus = data::fill({t, {rows, columns}}, [](auto) { return -0.; });
    const array places = data::fill({dtype::i32, {count}}, [](std::int64_t) { return 1; });
    const array updates =
        data::fill({t, {count, columns}}, [](std::int64_t i) { return i % 3 == 0 ? 0. : -0.; });
    const results source = evaluate(b.p, minus, places, updates);
    for (const mesh& m : {mesh{{"a", 5}}, mesh{{"a", 2}}, mesh{{"a", 4}}, mesh{{"a", 8}}}) {
      const auto r = partition(b.p, m, schedule(manual("a", {{"x", 0}}, uneven::pad)));
      CHECK(r.collectives == collectives{.all_reduce = 1});
      CHECK(same(source[0], emulate(r, minus, places, updates)[0]));
      CHECK(same(source[0], temporal(r, minus, places, updates)[0]));
      CHECK(str(prove(r).error.message) == "");
    }
  }
}
