/// Special functions of CHLO, as expressions of available ops.
#pragma once

#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// Arithmetic on values of one type; types below f32 are computed in f32.
class special_function {
 public:
  constexpr explicit special_function(op_context& in) : c(in), b(in.b) {
    if (c.failed() || c.operands.empty()) return;
    given_ = c.type(0).element;
    if (!is_floating(given_)) {
      c.fail("H013", "operand of type ", c.type(0), "; floating-point numbers are supported");
      return;
    }
    type_ = size_of(given_) < 4 ? dtype::f32 : given_;
  }

  op_context& c;
  builder& b;

  constexpr dtype type() const { return type_; }
  constexpr value_id operand(std::size_t i) const { return ops::convert(b, c.x(i), type_); }
  constexpr void give(value_id v) const { c.give(ops::convert(b, v, given_)); }

  constexpr value_id number(double v) const { return ops::scalar(b, type_, v); }
  constexpr value_id add(value_id x, value_id y) const { return ops::add(b, x, y); }
  constexpr value_id less(value_id x, value_id y) const { return ops::subtract(b, x, y); }
  constexpr value_id times(value_id x, value_id y) const { return ops::multiply(b, x, y); }
  constexpr value_id over(value_id x, value_id y) const { return ops::divide(b, x, y); }
  constexpr value_id is(ops::direction d, value_id x, value_id y) const {
    return ops::compare(b, d, x, y);
  }
  constexpr value_id where(value_id flag, value_id x, value_id y) const {
    return ops::select(b, flag, x, y);
  }
  constexpr value_id both(value_id x, value_id y) const { return ops::logical_and(b, x, y); }
  constexpr value_id everywhere(double v, value_id like) const {
    return ops::broadcast_in_dim(b, number(v), b.type(like).shape, {});
  }
  constexpr value_id is_whole(value_id x) const {
    return is(ops::direction::eq, x, ops::floor(b, x));
  }
  /// Computes c0/2 + c1 T1(y) + c2 T2(y) + ... by Clenshaw's recurrence.
  constexpr value_id chebyshev(value_id y, span<const double> coefficients) const {
    // In f32, small coefficients do not change the result.
    std::size_t count = coefficients.size();
    while (type_ == dtype::f32 && count > 1 && coefficients[count - 1] < 1e-10 &&
           coefficients[count - 1] > -1e-10)
      --count;
    const value_id twice = times(number(2), y);
    value_id next = everywhere(0, y), after = next;
    for (std::size_t k = count; k-- > 1;) {
      const value_id made = add(less(times(twice, next), after), number(coefficients[k]));
      after = next;
      next = made;
    }
    return add(less(times(y, next), after), number(coefficients[0] / 2));
  }

 private:
  dtype given_ = dtype::f32, type_ = dtype::f32;
};

/// Hurwitz's zeta function, the sum of (q + k)^-x: the first nine terms, and the remainder by the
/// Euler-Maclaurin formula.
///
/// Source    NIST Digital Library of Mathematical Functions, 25.11.5 and 2.10
constexpr value_id zeta_of(const special_function& f, value_id x, value_id q) {
  using enum ops::direction;
  builder& b = f.b;
  constexpr int terms = 9;
  // B(2j) / (2j)!
  constexpr double weights[] = {
      8.3333333333333333e-2,   -1.3888888888888889e-3,  3.3068783068783069e-5,
      -8.2671957671957672e-7,  2.0876756987868099e-8,   -5.2841901386874932e-10,
      1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
      -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};
  const value_id exponent = ops::negate(b, x);
  value_id sum = ops::power(b, q, exponent);
  for (int k = 1; k < terms; ++k) sum = f.add(sum, ops::power(b, f.add(q, f.number(k)), exponent));
  const value_id a = f.add(q, f.number(terms)), last = ops::power(b, a, exponent);
  sum = f.add(sum, f.over(f.times(last, a), f.less(x, f.number(1))));
  sum = f.add(sum, f.times(last, f.number(0.5)));
  // x (x + 1) ... (x + 2j - 2) a^(1 - x - 2j)
  value_id factor = f.over(f.times(x, last), a);
  const value_id square = f.times(a, a);
  for (int j = 0; j < 12; ++j) {
    sum = f.add(sum, f.times(factor, f.number(weights[j])));
    const value_id grown = f.times(f.add(x, f.number(2 * j + 1)), f.add(x, f.number(2 * j + 2)));
    factor = f.times(factor, f.over(grown, square));
  }
  // Poles and arguments without a value.
  const value_id infinity = f.everywhere(std::bit_cast<double>(std::int64_t{0x7ff} << 52), sum);
  const value_id nan = f.everywhere(std::bit_cast<double>(std::uint64_t{0x7ff8} << 48), sum);
  const value_id below = f.is(le, q, f.number(0));
  const value_id half = f.times(x, f.number(0.5));
  const value_id at_pole = f.where(f.both(f.is_whole(x), f.is_whole(half)), infinity, nan);
  sum = f.where(f.both(below, ops::logical_not(b, f.is_whole(x))), nan, sum);
  sum = f.where(f.both(below, f.is_whole(q)), at_pole, sum);
  sum = f.where(f.is(lt, x, f.number(1)), nan, sum);
  return f.where(f.is(eq, x, f.number(1)), infinity, sum);
}
constexpr void read_zeta(op_context& c) {
  if (!c.count(2)) return;
  const special_function f(c);
  if (!c.failed()) f.give(zeta_of(f, f.operand(0), f.operand(1)));
}
/// The derivative of digamma of the given order: (-1)^(n + 1) n! zeta(n + 1, x).
constexpr void read_polygamma(op_context& c) {
  using enum ops::direction;
  if (!c.count(2)) return;
  const special_function f(c);
  if (c.failed()) return;
  builder& b = c.b;
  const value_id n = f.operand(0), x = f.operand(1), next = f.add(n, f.number(1));
  const value_id size = f.times(ops::exp(b, ops::lgamma(b, next)), zeta_of(f, next, x));
  const value_id even = f.is_whole(f.times(n, f.number(0.5)));
  const value_id derivative = f.where(even, ops::negate(b, size), size);
  const value_id made = f.where(f.is(eq, n, f.number(0)), ops::digamma(b, x), derivative);
  const value_id defined = f.both(f.is_whole(n), f.is(ge, n, f.number(0)));
  const double nan = std::bit_cast<double>(std::uint64_t{0x7ff8} << 48);
  f.give(f.where(defined, made, f.everywhere(nan, made)));
}
/// exp(-|x|) I1(x) by series of Chebyshev polynomials. For |x| up to 8, a series in |x| for the
/// function over x; for larger |x|, a series in 32 / |x| for the function times sqrt(|x|).
constexpr void read_bessel_i1e(op_context& c) {
  using enum ops::direction;
  constexpr double near[] = {
      0.25258718644363365,     -0.17641651835783406,    0.10264365868984709,
      -0.052945981208094989,   0.024726449030626516,    -0.010564084894626197,
      0.0041564229443128882,   -0.0015135724506312532,  0.00051228595616857576,
      -0.00016176081582589674, 4.7815651075500542e-05,  -1.3273163656039436e-05,
      3.4702513081376785e-06,  -8.5687202646954547e-07, 2.0032947535521353e-07,
      -4.4450590287963281e-08, 9.3815373864957726e-09,  -1.8872497517228294e-09,
      3.6255902815521172e-10,  -6.6634897235020271e-11, 1.1736186298890901e-11,
      -1.9839743977649436e-12, 3.2237933659455748e-13,  -5.0421855047279118e-14,
      7.6006842947354077e-15,  -1.1055969477353862e-15, 1.5536319577362005e-16};
  constexpr double far[] = {
      0.77857623501828011,     -0.0097610974913614687,  -0.00011058893876262371,
      -3.8825648088776906e-06, -2.5122362378702088e-07, -2.6314688468895196e-08,
      -3.835380385964237e-09,  -5.5897434621965838e-10, -1.8974958123505413e-11,
      3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
      -7.1985517762459084e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
      4.2724400167119517e-14,  1.0420276984128802e-14,  -3.8144030724370068e-15,
      -1.8803547755107805e-15, 3.3082023109208501e-16,  2.9626289976460157e-16};
  if (!c.count(1)) return;
  const special_function f(c);
  if (c.failed()) return;
  const value_id x = f.operand(0), size = ops::abs(c.b, x);
  const value_id low = f.chebyshev(f.less(f.times(size, f.number(0.25)), f.number(1)), near);
  // (Near zero this series is unused; its argument is clamped to that of 8.)
  const value_id large = ops::maximum(c.b, size, f.number(8));
  const value_id high = f.chebyshev(f.less(f.over(f.number(16), large), f.number(1)), far);
  const value_id made =
      f.where(f.is(le, size, f.number(8)), f.times(low, size), f.over(high, ops::sqrt(c.b, large)));
  f.give(f.where(f.is(lt, x, f.number(0)), ops::negate(c.b, made), made));
}

}  // namespace partita::stablehlo_detail
