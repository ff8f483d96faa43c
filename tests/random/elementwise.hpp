/// Draws elementwise ops, constants and names.
#pragma once

#include "writer.hpp"

namespace random_test {

namespace op = pt::op;
using pt::def;

inline bool draw_arithmetic(writer& w) {
  const auto x = w.any_number();
  if (x < 0) return false;
  const auto t = w.element(x);
  const value_info a = w.info(x);
  if (w.r.one_in(8)) return w.emit(def<op::negate>, {x}, {-a.hi, -a.lo, a.integer}, t);
  const auto y = w.partner(x);
  const bool swap = w.r.one_in(2);
  const std::vector<value_id> operands = swap ? std::vector{y, x} : std::vector{x, y};
  const value_info l = w.info(operands[0]), q = w.info(operands[1]);
  const bool integer = l.integer && q.integer;
  switch (w.r.in(0, 7)) {
    case 0:
      return w.emit(def<op::subtract>, operands, {l.lo - q.hi, l.hi - q.lo, integer}, t);
    case 1:
      return w.emit(def<op::multiply>, operands, product(l, q), t);
    case 2:
      return w.emit(def<op::maximum>, operands,
                    {std::max(l.lo, q.lo), std::max(l.hi, q.hi), integer}, t);
    case 3:
      return w.emit(def<op::minimum>, operands,
                    {std::min(l.lo, q.lo), std::min(l.hi, q.hi), integer}, t);
    case 4: {
      const auto z = w.partner(x);
      if (w.rank(z) > 0 && w.rank(x) == 0 && w.rank(y) > 0 && w.dims(y) != w.dims(z)) return false;
      return w.emit(def<op::clamp>, {operands[0], operands[1], z}, either(either(l, q), w.info(z)),
                    t);
    }
    default:
      return w.emit(def<op::add>, operands, {l.lo + q.lo, l.hi + q.hi, integer}, t);
  }
}

/// Returns x x + 1, which is at least 1, or -1.
inline value_id positive(writer& w, value_id x) {
  const auto t = w.element(x);
  const value_info i = w.info(x);
  const value_info more{1, i.greatest() * i.greatest() + 1, i.integer};
  if (!fits(t, more) || !w.emit(def<op::multiply>, {x, x}, {0, more.hi - 1, i.integer}, t))
    return -1;
  const auto square = w.last();
  const auto one = w.scalar(t, 1);
  return w.emit(def<op::add>, {square, one}, more, t) ? w.last() : -1;
}

/// Draws quotients, remainders and powers: of any integers, and of floats if the divisor or the
/// base is at least 1.
inline bool draw_quotient(writer& w) {
  const auto x = w.any_number();
  if (x < 0) return false;
  const auto t = w.element(x);
  auto y = w.partner(x);
  const auto which = w.r.in(0, 2);
  if (w.state.differentiable)  // the derivatives of the others need logarithms and rounding
    return w.emit(def<op::divide>, {x, y}, {}, t);
  if (!w.floating(x)) {
    const pt::op_def& d = which == 0   ? def<op::divide>
                          : which == 1 ? def<op::remainder>
                                       : def<op::power>;
    return w.emit(d, {x, y}, all_of(t), t);
  }
  y = positive(w, y);
  if (y < 0) return false;
  const value_info a = w.info(x), c = w.info(y);
  if (which == 0) return w.emit(def<op::divide>, {x, y}, {-a.greatest(), a.greatest(), false}, t);
  if (which == 1)
    return w.emit(def<op::remainder>, {x, y}, {-a.greatest(), a.greatest(), a.integer && c.integer},
                  t);
  if (a.greatest() > 8) return false;
  return w.emit(def<op::power>, {y, x}, {0, std::pow(c.hi, a.greatest()) * 1.01, false}, t);
}

/// Draws functions and quotients of floats of any value.
inline bool draw_wild(writer& w) {
  const auto x = w.any([&](value_id v) { return w.floating(v); });
  if (x < 0) return false;
  const auto t = w.element(x);
  static constexpr const pt::op_def* functions[] = {
      &def<op::exp>,    &def<op::log>,     &def<op::tanh>,   &def<op::logistic>, &def<op::sqrt>,
      &def<op::floor>,  &def<op::negate>,  &def<op::abs>,    &def<op::sign>,     &def<op::cbrt>,
      &def<op::divide>, &def<op::maximum>, &def<op::minimum>};
  const auto which = static_cast<std::size_t>(w.r.in(0, 12));
  const pt::op_def& d = *functions[which];
  const bool small = &d == &def<op::tanh> || &d == &def<op::logistic>;
  const value_info i = small ? value_info{-1, 1, false} : anything;
  if (which < 10) return w.emit(d, {x}, i, t);
  return w.emit(d, {x, w.partner(x)}, i, t);
}

/// Draws functions with jumps.
inline bool draw_rounding(writer& w) {
  const auto x = w.any_number();
  if (x < 0) return false;
  const auto t = w.element(x);
  const value_info i = w.info(x);
  const double lo = std::floor(i.lo), hi = std::ceil(i.hi);
  switch (w.floating(x) && !w.state.differentiable ? w.r.in(0, 6) : w.r.in(0, 1)) {
    case 0:
      return w.emit(def<op::abs>, {x}, {0, i.greatest(), i.integer}, t);
    case 1:
      return w.emit(def<op::sign>, {x}, {-1, 1}, t);
    case 2:
      return w.emit(def<op::floor>, {x}, {lo, hi}, t);
    case 3:
      return w.emit(def<op::ceil>, {x}, {lo, hi}, t);
    case 4:
      return w.emit(def<op::round_nearest_away>, {x}, {lo, hi}, t);
    case 5:  // within the powers of two around it
      if (i.greatest() > 1000) return false;
      return w.emit(def<op::reduce_precision>, {x}, {2 * i.lo - 1, 2 * i.hi + 1, i.integer}, t,
                    {w.r.in(5, 9), w.r.in(2, 12)});
    default:
      return w.emit(def<op::round_nearest_even>, {x}, {lo, hi}, t);
  }
}

/// Draws functions of real numbers.
inline bool draw_math(writer& w) {
  const auto x = w.any([&](value_id v) { return w.floating(v) && w.info(v).greatest() <= 30; });
  if (x < 0 || w.state.differentiable) return false;
  const auto t = w.element(x);
  const value_info i = w.info(x);
  const auto function = [&](const pt::op_def& d, value_id of, double lo, double hi) {
    const bool has_accuracy = &d != &def<op::erf> && &d != &def<op::erfc> &&
                              &d != &def<op::erf_inv> && &d != &def<op::lgamma> &&
                              &d != &def<op::digamma>;
    ints accuracy;
    if (has_accuracy && w.r.one_in(4)) accuracy.push_back(pt::accuracy::highest);
    return w.emit(d, {of}, {lo, hi, false}, t, accuracy);
  };
  switch (w.r.in(0, 17)) {
    case 0:
      return i.greatest() <= 6 && function(def<op::exp>, x, 0, std::exp(i.hi) * 1.1);
    case 1:
      return i.greatest() <= 6 && function(def<op::expm1>, x, -1, std::exp(i.hi) * 1.1);
    case 2:
      return function(def<op::logistic>, x, 0, 1);
    case 3:
      return function(def<op::tanh>, x, -1, 1);
    case 4:
      return function(def<op::erf>, x, -1, 1);
    case 5:
      return function(def<op::sine>, x, -1, 1);
    case 6:
      return function(def<op::cosine>, x, -1, 1);
    case 7:  // of an angle that is not a multiple of pi / 2
      return function(def<op::tanh>, x, -1, 1) && function(def<op::tan>, w.last(), -1.6, 1.6);
    case 8:
      return function(def<op::cbrt>, x, -4, 4);
    case 9:
      return function(def<op::erfc>, x, 0, 2);
    case 10:  // of a number well inside (-1, 1)
      return i.greatest() <= 2 && function(def<op::erf>, x, -0.996, 0.996) &&
             function(def<op::erf_inv>, w.last(), -2.1, 2.1);
    default:
      break;
  }
  const auto y = positive(w, x);
  if (y < 0) return false;
  const double hi = w.info(y).hi;
  switch (w.r.in(0, 6)) {
    case 5:
      return function(def<op::lgamma>, y, -0.2, hi * std::log(hi + 1) + 1);
    case 6:
      return function(def<op::digamma>, y, -0.6, std::log(hi) + 0.1);
    case 0:
      return function(def<op::log>, y, 0, std::log(hi) * 1.1);
    case 1:
      return function(def<op::log1p>, y, 0, std::log(hi + 1) * 1.1);
    case 2:
      return function(def<op::sqrt>, y, 0.9, std::sqrt(hi) * 1.1);
    case 3:
      return function(def<op::rsqrt>, y, 0, 1.1);
    default:  // right of the axis, where the sign of a zero makes no difference
      return w.emit(def<op::atan2>, {x, y}, {-2, 2, false}, t);
  }
}

/// Draws the bits of an integer as another integer type, of any size.
inline bool draw_bitcast(writer& w, value_id x) {
  static constexpr dtype integers[] = {dtype::i8, dtype::i16, dtype::i32, dtype::i64,
                                       dtype::u8, dtype::u16, dtype::u32, dtype::u64};
  const dtype to = w.r.pick(integers);
  const std::int64_t have = pt::size_of(w.element(x)), want = pt::size_of(to);
  const shape s = w.dims(x);
  if (to == w.element(x) || (have > want && s.rank > 3)) return false;
  if (have < want && (s.rank == 0 || s[s.rank - 1] != want / have)) return false;
  return w.emit(def<op::bitcast_convert>, {x}, all_of(to), to);
}

inline bool draw_bits(writer& w) {
  const auto x = w.any([&](value_id v) { return !w.floating(v); });
  if (x < 0) return false;
  const auto t = w.element(x);
  if (t == dtype::boolean || w.r.one_in(2)) {
    if (w.r.one_in(4)) return w.emit(def<op::logical_not>, {x}, all_of(t), t);
    const auto y = w.partner(x);
    switch (w.r.in(0, t == dtype::boolean ? 6 : 2)) {
      case 0:
        return w.emit(def<op::logical_or>, {x, y}, all_of(t), t);
      case 1:
        return w.emit(def<op::logical_xor>, {x, y}, all_of(t), t);
      case 2: {
        const value_info i = w.info(y);
        return w.emit(def<op::logical_and>, {x, y}, i.lo >= 0 ? value_info{0, i.hi} : all_of(t), t);
      }
      case 3:
        return w.emit(def<op::add>, {x, y}, {0, 1}, t);
      case 4:
        return w.emit(def<op::multiply>, {x, y}, {0, 1}, t);
      case 5:
        return w.emit(def<op::maximum>, {x, y}, {0, 1}, t);
      default:
        return w.emit(def<op::minimum>, {x, y}, {0, 1}, t);
    }
  }
  switch (w.r.in(0, 5)) {
    case 0:
      return w.emit(w.r.one_in(2) ? def<op::popcnt> : def<op::count_leading_zeros>, {x}, {0, 64},
                    t);
    case 1:
      return w.emit(def<op::shift_left>, {x, w.partner(x)}, all_of(t), t);
    case 2:
      return w.emit(def<op::shift_right_arithmetic>, {x, w.partner(x)}, all_of(t), t);
    case 3:
      return w.emit(def<op::shift_right_logical>, {x, w.partner(x)}, all_of(t), t);
    case 4:
      return draw_bitcast(w, x);
    default: {
      const auto key = w.any([&](value_id v) { return w.element(v) == dtype::i64; });
      const auto counter = key < 0 ? w.fresh({dtype::i64, w.dims(x)}) : w.partner(key);
      return w.emit(def<op::random_bits>, {key < 0 ? counter : key, counter}, all_of(dtype::i64),
                    dtype::i64);
    }
  }
}

inline bool draw_comparison(writer& w) {
  if (w.r.one_in(6)) {
    const auto x = w.any([&](value_id v) { return w.floating(v); });
    if (x >= 0 && !w.state.differentiable)
      return w.emit(def<op::is_finite>, {x}, {1, 1}, dtype::boolean);
  }
  const auto x = w.any();
  const auto y = w.partner(x);
  return w.emit(def<op::compare>, {x, y}, {0, 1}, dtype::boolean, {w.r.in(0, 5)});
}

inline bool draw_selection(writer& w) {
  const auto predicate = w.any([&](value_id v) { return !w.number(v); });
  if (predicate < 0) return draw_comparison(w);
  const shape of = w.dims(predicate);
  const auto x = w.any([&](value_id v) { return w.dims(v) == of || of.rank == 0; });
  if (x < 0) return false;
  const auto y = w.partner(x);
  return w.emit(def<op::select>, {predicate, x, y}, either(w.info(x), w.info(y)), w.element(x));
}

inline constexpr dtype element_types[] = {dtype::f32,  dtype::f32, dtype::f64,    dtype::i32,
                                          dtype::i32,  dtype::i64, dtype::u8,     dtype::i8,
                                          dtype::i16,  dtype::u16, dtype::u32,    dtype::u64,
                                          dtype::bf16, dtype::f16, dtype::boolean};

inline bool draw_conversion(writer& w) {
  const auto x = w.any();
  const dtype to = w.r.pick(element_types);
  if (to == w.element(x)) return false;
  value_info i = w.info(x);
  if (to == dtype::boolean) {
    i = {0, 1};
  } else if (pt::is_integer(to)) {  // floats saturate, integers wrap
    i = {std::trunc(i.lo), std::trunc(i.hi)};
    if (w.floating(x) && !i.within(all_of(to))) i = all_of(to);
  } else if (pt::size_of(to) == 2 && !i.integer) {
    i.lo -= 4, i.hi += 4;  // rounded
  }
  return w.emit(def<op::convert>, {x}, i, to);
}

inline bool draw_constant(writer& w) {
  const tensor_type t{w.r.pick(element_types), w.some_shape(0, 3)};
  if (t.shape.rank > 0 && t.element != dtype::boolean && w.r.one_in(2)) {
    const int dim = static_cast<int>(w.r.in(0, t.shape.rank - 1));
    return w.done(pt::ops::iota(w.b, t, dim),
                  {0, std::max(static_cast<double>(t.shape[dim] - 1), 0.0)});
  }
  if (t.shape.rank > 0 && w.r.one_in(4)) {
    const double least = t.element == dtype::boolean || pt::is_unsigned(t.element) ? 0 : -2;
    const double most = t.element == dtype::boolean ? 1 : 3;
    ints bits;
    for (auto n = t.shape.elements(); n > 0; --n)
      bits.push_back(pt::ops::constant_bits(
          t.element, static_cast<double>(w.r.in(static_cast<std::int64_t>(least),
                                                static_cast<std::int64_t>(most)))));
    return w.done(pt::ops::literal(w.b, t, bits), {least, most});
  }
  const bool sign = t.element != dtype::boolean && !pt::is_unsigned(t.element);
  double c = static_cast<double>(w.r.in(sign ? -2 : 0, t.element == dtype::boolean ? 1 : 2));
  const bool half = pt::is_floating(t.element) && !w.state.differentiable && w.r.one_in(4);
  if (half) c += 0.5;
  return w.done(pt::ops::constant(w.b, t, c), {c, c, !half});
}

inline bool draw_identity(writer& w) {
  const auto x = w.any();
  if (w.r.one_in(5)) return w.done(pt::ops::stop_gradient(w.b, x), w.info(x));
  if (w.r.one_in(5)) {
    const auto where = static_cast<pt::memory_space>(w.r.in(0, 2));
    return w.done(pt::ops::place(w.b, x, where), w.info(x));
  }
  if (w.r.one_in(2))
    return w.done(pt::ops::tag(w.b, "t" + std::to_string(w.state.names++), x), w.info(x));
  std::vector<value_id> values{x};
  std::vector<value_info> infos{w.info(x)};
  for (auto more = w.r.in(0, 2); more > 0; --more) {
    values.push_back(w.any());
    infos.push_back(w.info(values.back()));
  }
  return w.done(pt::ops::optimization_barrier(w.b, values), infos);
}

}  // namespace random_test
