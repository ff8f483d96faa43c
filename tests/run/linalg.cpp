// cholesky and triangular_solve: values, elements that are not read, matrices that are not positive
// definite.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <partita/run/kernels/convert.hpp>

#include "../laws/cases_linalg.hpp"

namespace pt = partita;
using namespace laws;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

pt::array run(const pt::op_def& op, const std::vector<pt::array>& operands, const ints& attrs) {
  return pt::run_op(op, operands, attrs, operands.back().type());
}
/// The elements (i, j) of matrix number k, as binary64.
struct matrices {
  explicit matrices(const pt::array& a) : values(pt::as_type(a, dtype::f64)) {}
  double operator()(std::int64_t k, std::int64_t i, std::int64_t j) const {
    const shape& s = values.shape();
    const std::int64_t rows = s[s.rank - 2], columns = s[s.rank - 1];
    return values.data<double>()[(k * rows + i) * columns + j];
  }
  pt::array values;
};

/// Positive definite matrices: random numbers and a large diagonal.
pt::array well_conditioned(const tensor_type& t, data::random& r) {
  const std::int64_t n = t.shape[t.shape.rank - 1];
  std::vector<double> upper(static_cast<std::size_t>(n * n));
  return fill_matrices(t, [&](std::int64_t i, std::int64_t j) {
    if (i == j) return static_cast<double>(n);
    if (i > j) return upper[static_cast<std::size_t>(j * n + i)];
    return upper[static_cast<std::size_t>(i * n + j)] =
               static_cast<double>(r.in(-1000, 1000)) / 1000;
  });
}
/// Sets the other triangle to NaN; with `diagonal`, the diagonal too.
pt::array spoil(const pt::array& a, bool lower, bool diagonal) {
  const matrices m(a);
  std::int64_t at = 0;
  const std::int64_t n = a.shape()[a.shape().rank - 1];
  return fill_matrices(a.type(), [&](std::int64_t i, std::int64_t j) {
    const std::int64_t k = at++ / (n * n);
    const bool read = i == j ? !diagonal : (i > j) == lower;
    return read ? m(k, i, j) : no_number;
  });
}

/// Returns the unit roundoff of an element type.
double roundoff(dtype t) {
  return t == dtype::f64 ? 0x1p-53 : t == dtype::f32 ? 0x1p-24 : t == dtype::f16 ? 0x1p-11 : 0x1p-8;
}

}  // namespace

TEST_CASE("cholesky: the triangle times its transpose is the matrix; the other triangle is zero") {
  data::random r{1};
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
    for (std::int64_t n : {1, 2, 7, 33, 150}) {
      const pt::array a = well_conditioned({t, {2, n, n}}, r);
      const matrices m(a);
      for (bool lower : {true, false}) {
        const pt::array factor = run(pt::def<pt::op::cholesky>, {spoil(a, lower, false)}, {lower});
        const matrices f(factor);
        double worst = 0;
        std::int64_t outside = 0;
        for (std::int64_t k = 0; k < 2; ++k)
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (std::int64_t q = 0; q < n; ++q)
                sum += lower ? f(k, i, q) * f(k, j, q) : f(k, q, i) * f(k, q, j);
              const double error = std::fabs(sum - m(k, i, j));
              if (!(error <= worst)) worst = error;
              if (i != j && (i < j) == lower && f(k, i, j) != 0) ++outside;
            }
        // Backward error (Higham, theorem 10.3): |a - l l^T| <= (n + 1) u |l| |l|^T, here below n;
        // and the result of 16 bits is rounded once more.
        const double n2 = static_cast<double>((n + 1) * n);
        CHECK(worst <= (pt::run_detail::is_half(t)
                            ? roundoff(dtype::f32) * n2 + 3 * roundoff(t) * static_cast<double>(n)
                            : roundoff(t) * n2));
        CHECK(outside == 0);
      }
    }
}

TEST_CASE(
    "cholesky of a matrix that is not positive definite is NaN, without effect on its neighbours") {
  const double values[] = {4, 2, 2, 5, 1, 2, 2, 1, 0, 0, 0, 0, 9, 0, 0, 1};
  const pt::array a = data::fill(f64({4, 2, 2}), [&](std::int64_t i) { return values[i]; });
  const double lower[] = {2,         0, 1,         2,         no_number, 0, no_number, no_number,
                          no_number, 0, no_number, no_number, 3,         0, 0,         1};
  const double upper[] = {2,         1,         0, 2,         no_number, no_number, 0, no_number,
                          no_number, no_number, 0, no_number, 3,         0,         0, 1};
  const auto expected = [](const double* v) {
    return data::fill(f64({4, 2, 2}), [v](std::int64_t i) { return v[i]; });
  };
  CHECK(pt::equal(run(pt::def<pt::op::cholesky>, {a}, {1}), expected(lower)));
  CHECK(pt::equal(run(pt::def<pt::op::cholesky>, {a}, {0}), expected(upper)));
}

TEST_CASE("triangular_solve: op(a) x or x op(a) is b; the rest of a is not read") {
  data::random r{2};
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
    for (std::int64_t n : {1, 3, 40})
      for (std::int64_t m : {1, 5, 70})
        for (std::int64_t options = 0; options < 16; ++options) {
          const bool left = options & 1, lower = options & 2, unit = options & 4,
                     transposed = options & 8;
          const tensor_type side{t, left ? shape{3, n, m} : shape{3, m, n}};
          // Small elements off the diagonal, so that solutions do not grow.
          const pt::array a = fill_matrices({t, {3, n, n}}, [&](std::int64_t i, std::int64_t j) {
            return i == j ? 1 + static_cast<double>(r.in(0, 4)) / 4
                          : static_cast<double>(r.in(-8, 8)) / 8 / static_cast<double>(n);
          });
          const pt::array b = data::integers(side, r, -4, 4);
          const pt::array x = run(pt::def<pt::op::triangular_solve>, {spoil(a, lower, unit), b},
                                  {left, lower, unit, transposed});
          const matrices am(a), bm(b), xm(x);
          const auto matrix = [&](std::int64_t k, std::int64_t i, std::int64_t j) {
            if (transposed) std::swap(i, j);
            if (i == j) return unit ? 1 : am(k, i, j);
            return (i > j) == lower ? am(k, i, j) : 0.0;
          };
          double worst = 0;
          for (std::int64_t k = 0; k < 3; ++k)
            for (std::int64_t i = 0; i < side.shape[1]; ++i)
              for (std::int64_t j = 0; j < side.shape[2]; ++j) {
                double sum = 0, size = 0;
                for (std::int64_t q = 0; q < n; ++q) {
                  const double term =
                      left ? matrix(k, i, q) * xm(k, q, j) : xm(k, i, q) * matrix(k, q, j);
                  sum += term;
                  size += std::fabs(term);
                }
                const double error = std::fabs(sum - bm(k, i, j)) / (size + 1e-300);
                if (!(error <= worst)) worst = error;
              }
          // Backward error (Higham, theorem 8.5): |op(a) x - b| <= gamma_n |op(a)| |x|, with one
          // more rounding for the reciprocals of the diagonal. Results of 16 bits are rounded once.
          const double n2 = static_cast<double>(n + 2);
          CHECK(worst <= (pt::run_detail::is_half(t) ? roundoff(dtype::f32) * n2 + roundoff(t)
                                                     : roundoff(t) * n2) *
                             1.01);
        }
}

TEST_CASE("empty matrices, batches and right-hand sides have empty results") {
  for (const shape& s : {shape{0, 0}, shape{0, 3, 3}, shape{2, 0, 0}})
    CHECK(run(pt::def<pt::op::cholesky>, {pt::array(f32(s))}, {1}).shape() == s);
  for (const auto& [a, b] :
       {std::pair<shape, shape>{{0, 0}, {0, 4}}, {{3, 3}, {3, 0}}, {{0, 2, 2}, {0, 2, 1}}})
    CHECK(
        run(pt::def<pt::op::triangular_solve>, {pt::array(f64(a)), pt::array(f64(b))}, {1, 1, 0, 0})
            .shape() == b);
}

TEST_CASE("a linear system is solved by its Cholesky factor, with the gradient of its solution") {
  const auto p = pt::trace(
      [](auto a, auto b) {
        const auto loss = [&](auto m) {
          return pt::sum(b * pt::cholesky_solve(pt::cholesky(m), b));
        };
        const auto [value, gradient] = pt::value_and_grad(loss, a);
        // Second derivatives: of the sum of the squares of the gradient.
        const auto again = pt::grad(
            [&](auto m) {
              const auto g = pt::grad(loss, m);
              return pt::sum(g * g);
            },
            a);
        return std::tuple{pt::output("value", value), pt::output("gradient", gradient),
                          pt::output("again", again)};
      },
      pt::input<double, 2, 3, 3>("a"), pt::input<double, 2, 3, 1>("b"));
  CHECK(!pt::verify(p));
  data::random r{3};
  const pt::array a = positive_definite(p.input_type(0), 0, r);
  const pt::array b = data::integers(p.input_type(1), r, 1, 3);
  const auto squares = [](const pt::array& x) {
    double sum = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) sum += x.data<double>()[i] * x.data<double>()[i];
    return sum;
  };
  const pt::results found = pt::evaluate(p, a, b);
  const double h = 1e-4;
  for (std::int64_t e = 0; e < a.size(); ++e) {
    const std::int64_t row = e / 3 % 3, column = e % 3, mirror = e + (column - row) * 2;
    const auto moved = [&](double by) {
      pt::array changed = a;
      changed.mutable_data<double>()[e] += by / 2;
      changed.mutable_data<double>()[mirror] += by / 2;
      return pt::evaluate(p, changed, b);
    };
    const pt::results up = moved(h), down = moved(-h);
    const double slope = (up["value"].item<double>() - down["value"].item<double>()) / (2 * h);
    const double bend = (squares(up["gradient"]) - squares(down["gradient"])) / (2 * h);
    const double scale = 1 + squares(found["gradient"]);
    CHECK(std::fabs(found["gradient"].data<double>()[e] - slope) <= 1e-6 * scale);
    CHECK(std::fabs(found["again"].data<double>()[e] - bend) <=
          1e-5 * (1 + std::fabs(bend)) * scale);
  }
}
