/// Integers in a loop's body that depend only on the iteration number.
#pragma once

#include <partita/op/arithmetic.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/checked.hpp>

namespace partita {

/// The value slope * t + offset in iteration t = 0, 1, ..., trips - 1. Unknown unless `known`.
struct iteration_number {
  bool known = false;
  std::int64_t slope = 0, offset = 0;

  constexpr checked at(std::int64_t t) const {
    return checked(slope) * checked(t) + checked(offset);
  }
  constexpr bool operator==(const iteration_number&) const = default;
};

namespace op_detail {

/// Reads a rank-0 integer or boolean constant. Returns false for any other value, and for a u64
/// number that does not fit int64.
constexpr bool integer_constant(const program& p, value_id v, std::int64_t& n) {
  const op_id o = p.producer(v);
  const tensor_type& t = p.type(v);
  if (p.op(o).def->id != def<op::constant>.id || is_floating(t.element) || t.shape.rank != 0)
    return false;
  n = p.attrs(o)[0];
  return t.element != dtype::u64 || n >= 0;
}

/// Finds the rank-0 integers and booleans of a body that are linear in the iteration number.
///
/// A number that leaves the range of its type in some iteration is unknown, since it wraps. Cost:
/// linear in the ops of the body; nested programs are not visited.
class iteration_numbers {
 public:
  /// Analyzes `body`. `inputs` are the numbers of the body's inputs.
  constexpr iteration_numbers(const program& body, std::int64_t trips,
                              const vec<iteration_number>& inputs)
      : p_(body), last_(trips - 1), numbers_(body.types.size(), iteration_number()) {
    for (int i = 0; i < p_.input_count(); ++i)
      keep(p_.inputs[i], inputs[static_cast<std::size_t>(i)]);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (p_.op(o).result_count == 1 && p_.op(o).region_count == 0) keep(p_.op(o).result, of(o));
  }
  constexpr const iteration_number& operator[](value_id v) const {
    return numbers_[static_cast<std::size_t>(v)];
  }

 private:
  const program& p_;
  std::int64_t last_;
  vec<iteration_number> numbers_;

  constexpr void keep(value_id v, const iteration_number& n) {
    const tensor_type& t = p_.type(v);
    if (!n.known || t.shape.rank != 0 || is_floating(t.element)) return;
    const checked first = n.at(0), last = n.at(last_);
    if (first.overflowed() || last.overflowed()) return;
    const auto fits = [&](std::int64_t value) {
      return value >= op::least_integer(t.element) && value <= op::greatest_integer(t.element);
    };
    if (fits(first.value_or(0)) && fits(last.value_or(0)))
      numbers_[static_cast<std::size_t>(v)] = n;
  }
  static constexpr iteration_number linear(checked slope, checked offset) {
    if (slope.overflowed() || offset.overflowed()) return {};
    return {true, slope.value_or(0), offset.value_or(0)};
  }
  /// Returns the number that a rank-0 op computes.
  constexpr iteration_number of(op_id o) const {
    const op_node& n = p_.op(o);
    if (p_.type(n.result).shape.rank != 0 || is_floating(p_.type(n.result).element)) return {};
    const auto is = [&](const op_def& d) { return n.def->id == d.id; };
    if (std::int64_t value = 0; integer_constant(p_, n.result, value)) return {true, 0, value};
    if (n.operand_count == 0) return {};
    iteration_number x[3];
    for (int i = 0; i < n.operand_count && i < 3; ++i) x[i] = (*this)[p_.operand(o, i)];
    if (is(def<op::select>)) {
      if (!x[0].known || x[0].slope != 0) return {};
      return x[0].offset != 0 ? x[1] : x[2];
    }
    if (is(def<op::logical_and>) || is(def<op::logical_or>)) return both(o, x);
    for (int i = 0; i < n.operand_count; ++i)
      if (i > 2 || !x[i].known) return {};
    if (n.def->identity || is(def<op::convert>) || is(def<op::reshape>) ||
        is(def<op::broadcast_in_dim>))
      return x[0];
    if (is(def<op::add>))
      return linear(checked(x[0].slope) + x[1].slope, checked(x[0].offset) + x[1].offset);
    if (is(def<op::subtract>)) return difference(x[0], x[1]);
    if (is(def<op::negate>)) return difference({true, 0, 0}, x[0]);
    if (is(def<op::multiply>)) {
      const auto& fixed = x[0].slope == 0 ? x[0] : x[1];
      const auto& other = x[0].slope == 0 ? x[1] : x[0];
      if (fixed.slope != 0) return {};
      return linear(checked(fixed.offset) * other.slope, checked(fixed.offset) * other.offset);
    }
    if (is(def<op::maximum>)) return larger(x[0], x[1]);
    if (is(def<op::minimum>)) return smaller(x[0], x[1]);
    if (is(def<op::clamp>)) {
      const iteration_number above = larger(x[0], x[1]);
      return above.known ? smaller(above, x[2]) : iteration_number();
    }
    if (is(def<op::logical_not>) && p_.type(n.result).element == dtype::boolean && x[0].slope == 0)
      return {true, 0, x[0].offset == 0 ? 1 : 0};
    if (is(def<op::compare>)) return compared(static_cast<ops::direction>(p_.attrs(o)[0]), x);
    return {};
  }
  /// Handles `and` and `or` of booleans: one operand alone may determine the result.
  constexpr iteration_number both(op_id o, const iteration_number* x) const {
    if (p_.type(p_.op(o).result).element != dtype::boolean) return {};
    const std::int64_t settles = p_.op(o).def->id == def<op::logical_or>.id ? 1 : 0;
    bool all = true;
    for (int i = 0; i < 2; ++i) {
      if (x[i].known && x[i].slope == 0 && x[i].offset == settles) return x[i];
      all = all && x[i].known && x[i].slope == 0;
    }
    return all ? x[0] : iteration_number();
  }
  static constexpr iteration_number difference(const iteration_number& a,
                                               const iteration_number& b) {
    return linear(checked(a.slope) - b.slope, checked(a.offset) - b.offset);
  }
  /// Returns -1, 0 or 1 if a - b is below, equal to or above zero in all iterations; otherwise 2.
  constexpr int sign(const iteration_number& a, const iteration_number& b) const {
    const iteration_number d = difference(a, b);
    const checked last = d.at(last_);
    if (!d.known || last.overflowed()) return 2;
    const auto of = [](std::int64_t n) { return n < 0 ? -1 : n > 0 ? 1 : 0; };
    const int first = of(d.offset);
    return first == of(last.value_or(0)) && (first != 0 || d.slope == 0) ? first : 2;
  }
  /// True if a >= b in all iterations.
  constexpr bool never_below(const iteration_number& a, const iteration_number& b) const {
    const iteration_number d = difference(a, b);
    return d.known && d.offset >= 0 && d.at(last_).value_or(-1) >= 0;
  }
  constexpr iteration_number larger(const iteration_number& a, const iteration_number& b) const {
    return never_below(a, b) ? a : never_below(b, a) ? b : iteration_number();
  }
  constexpr iteration_number smaller(const iteration_number& a, const iteration_number& b) const {
    return never_below(a, b) ? b : never_below(b, a) ? a : iteration_number();
  }
  constexpr iteration_number compared(ops::direction d, const iteration_number* x) const {
    using enum ops::direction;
    const auto always = [](bool holds) { return iteration_number{true, 0, holds ? 1 : 0}; };
    if (d == ge || d == lt) {
      if (never_below(x[0], x[1])) return always(d == ge);
      if (sign(x[0], x[1]) == -1) return always(d == lt);
    } else if (d == le || d == gt) {
      if (never_below(x[1], x[0])) return always(d == le);
      if (sign(x[0], x[1]) == 1) return always(d == gt);
    } else if (const int s = sign(x[0], x[1]); s != 2) {
      return always((s == 0) == (d == eq));
    }
    return {};
  }
};

}  // namespace op_detail
}  // namespace partita
