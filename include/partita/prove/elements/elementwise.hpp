/// Elementwise ops.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail {

class elementwise_elements {
 public:
  constexpr explicit elementwise_elements(const op_elements& c) : c_(c), a_(c.a) {
    t_ = c.types.empty() ? c.type() : c.types[0].element;
  }
  constexpr void fill() {
    const std::int64_t count = c_.made[0].shape.elements();
    for (std::int64_t n = 0; n < count; ++n) {
      x_.clear();
      for (std::size_t i = 0; i < c_.operands.size(); ++i)
        x_.push_back(c_.operands[i][c_.types[i].shape.rank == 0 ? 0 : n]);
      c_.results[0][n] = result();
    }
  }

 private:
  const op_elements& c_;
  algebra& a_;
  dtype t_;
  vec<element> x_;

  constexpr element result() {
    switch (c_.def.id) {
      case def<op::add>.id:
        return a_.sum(t_, x_[0], x_[1]);
      case def<op::subtract>.id:
        return a_.difference(t_, x_[0], x_[1]);
      case def<op::negate>.id:
        return a_.opposite(t_, x_[0]);
      case def<op::multiply>.id:
        return a_.product_of_factors(t_, x_[0], x_[1]);
      case def<op::divide>.id:
        return a_.quotient(t_, x_[0], x_[1]);
      case def<op::remainder>.id:
        return a_.remainder(t_, x_[0], x_[1]);
      case def<op::maximum>.id:
      case def<op::minimum>.id:
      case def<op::logical_and>.id:
      case def<op::logical_or>.id:
      case def<op::logical_xor>.id:
        return a_.group(c_.def.id, t_, {x_[0], x_[1]});
      case def<op::clamp>.id:
        return a_.group(def<op::minimum>.id, t_,
                        {a_.group(def<op::maximum>.id, t_, {x_[1], x_[0]}), x_[2]});
      case def<op::select>.id:
        return a_.select(x_[0], x_[1], x_[2]);
      case def<op::compare>.id:
        return a_.compare(static_cast<ops::direction>(c_.attrs[0]), t_, x_[0], x_[1]);
      case def<op::convert>.id:
        return a_.convert(t_, c_.type(), x_[0]);
      case def<op::exp>.id:
        return c_.attrs.empty() ? a_.exponential(t_, x_[0]) : function();
      case def<op::log>.id:
        if (element made; c_.attrs.empty() && a_.logarithm(t_, x_[0], made)) return made;
        return function();
      default:
        return function();
    }
  }
  constexpr element function() {
    if (t_ == dtype::boolean && c_.def.id == def<op::logical_not>.id) return a_.negated(x_[0]);
    if (x_[0].known && x_.size() == 1)
      if (element made; fold_number(x_[0], made)) return made;
    if (x_.size() == 2 && x_[0].known && x_[1].known)
      if (element made; fold_shift(x_[0].number, x_[1].number, made)) return made;
    drawing d(c_.def.id);
    for (auto each : c_.attrs) d.add(each);
    for (const auto& each : c_.types) d.add(static_cast<int>(each.element));
    if (a_.at_numbers && is_floating(t_) && is_floating(c_.type()) && all_known())
      return some_number(d);
    return a_.function(c_.def.id, t_, c_.type(), x_, d.drawn().a);
  }
  constexpr bool all_known() const {
    bool known = true;
    for (const element& each : x_) known = known && each.known;
    return known;
  }
  /// For numbers as inputs, any function returns quarters, always the same one for the same
  /// arguments.
  constexpr element some_number(drawing d) const {
    for (const element& each : x_) d.add(each.of);
    return real(0.25 * static_cast<double>(1 + d.drawn().a % 32));
  }
  /// Evaluates functions of numbers whose results are exact.
  constexpr bool fold_number(const element& x, element& made) const {
    if (is_floating(t_)) return fold_real(real_of(x), made);
    const std::int64_t n = x.number;
    switch (c_.def.id) {
      case def<op::logical_not>.id:
        made = integer(t_, ~n);
        return true;
      case def<op::abs>.id:
        made = integer(t_, n < 0 && !is_unsigned(t_) && n > INT64_MIN ? -n : n);
        return true;
      case def<op::sign>.id:
        made = integer(t_, n == 0 ? 0 : n < 0 && !is_unsigned(t_) ? -1 : 1);
        return true;
      default:
        return false;
    }
  }
  constexpr bool fold_shift(std::int64_t n, std::int64_t by, element& made) const {
    if (!is_integer(t_)) return false;
    const int unused = 64 - 8 * static_cast<int>(size_of(t_));
    const bool all = by < 0 || by >= 64 - unused;
    const std::uint64_t bits = static_cast<std::uint64_t>(n) << unused;
    const std::int64_t with_sign = static_cast<std::int64_t>(bits) >> unused;
    switch (c_.def.id) {
      case def<op::shift_left>.id:
        made = integer(t_, all ? 0 : static_cast<std::int64_t>(bits >> unused << by));
        return true;
      case def<op::shift_right_logical>.id:
        made = integer(t_, all ? 0 : static_cast<std::int64_t>(bits >> unused >> by));
        return true;
      case def<op::shift_right_arithmetic>.id:
        made = integer(t_, with_sign >> (all ? 63 : by));
        return true;
      default:
        return false;
    }
  }
  constexpr bool fold_real(double v, element& made) const {
    if (c_.def.id == def<op::abs>.id) made = real(v < 0 ? -v : v);
    if (c_.def.id == def<op::sign>.id) made = real(v > 0 ? 1 : v < 0 ? -1 : 0);
    return c_.def.id == def<op::abs>.id || (c_.def.id == def<op::sign>.id && v == v);
  }
};

}  // namespace partita::prove_detail
