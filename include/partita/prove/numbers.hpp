/// Numbers: constant folding, and ranges of integers. Only where nothing is rounded and nothing
/// overflows.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/ranges.hpp>

namespace partita::prove_detail {

/// The maximum n such that all integers from 0 to n are values of the type.
constexpr std::int64_t exact_up_to(dtype t) {
  if (t == dtype::f16) return 2048;
  if (t == dtype::bf16) return 256;
  return op::iota::exact_up_to(t);
}
constexpr bool exact(dtype t, std::int64_t n) { return n >= 0 && n <= exact_up_to(t); }

/// Integers from `least` to `greatest`.
struct integer_range {
  std::int64_t least = 0, greatest = -1;

  constexpr bool empty() const { return least > greatest; }
  constexpr bool single() const { return least == greatest; }
  constexpr bool contains(const integer_range& other) const {
    return least <= other.least && other.greatest <= greatest;
  }
};
/// The maximum magnitude for calculations; sums of two such numbers do not overflow.
inline constexpr std::int64_t most_counted = std::int64_t{1} << 53;

/// The integers of a type that are used in calculations. (For floating types, those whose sums are
/// not rounded.)
constexpr integer_range integers_of(dtype t) {
  if (t == dtype::boolean) return {0, 1};
  const std::int64_t most = exact_up_to(t) < most_counted ? exact_up_to(t) : most_counted;
  if (is_floating(t)) return {-most, most};
  const std::int64_t low = op::least_integer(t);
  return {low < -most_counted ? -most_counted : low, most};
}

/// True if a number is an integer of its type in the range of calculations, and not -0.
constexpr bool is_exact(const meanings& all, const operand_term& x, double scale, std::int64_t& n) {
  if (x.view == operand_term::by_element || !all.is_number(x, n)) return false;
  const dtype t = all.terms[x.term].element;
  if (is_floating(t)) {
    double real = std::bit_cast<double>(n);
    if (!take_number(real, scale)) return false;
    if (!(real >= -static_cast<double>(most_counted) && real <= static_cast<double>(most_counted)))
      return false;
    n = static_cast<std::int64_t>(real);
    if (static_cast<double>(n) != real || (n == 0 && std::bit_cast<std::int64_t>(real) != 0))
      return false;
  }
  return integers_of(t).contains({n, n});
}

constexpr bool is_true(ops::direction is, std::int64_t a, std::int64_t b) {
  switch (is) {
    case ops::direction::eq:
      return a == b;
    case ops::direction::ne:
      return a != b;
    case ops::direction::lt:
      return a < b;
    case ops::direction::le:
      return a <= b;
    case ops::direction::gt:
      return a > b;
    default:
      return a >= b;
  }
}
/// True if a comparison has the same result for all numbers in these ranges; `holds` is the result.
constexpr bool is_decided(ops::direction is, const integer_range& a, const integer_range& b,
                          bool& holds) {
  const bool below = a.greatest<b.least, above = a.least> b.greatest;
  const bool equal = a.single() && b.single() && a.least == b.least;
  const bool not_above = a.greatest <= b.least, not_below = a.least >= b.greatest;
  holds = below || above || equal ? is_true(is, a.least, b.least)
                                  : is == ops::direction::le || is == ops::direction::ge;
  if (below || above || equal) return true;
  if (is == ops::direction::le || is == ops::direction::gt) return not_above;
  return (is == ops::direction::ge || is == ops::direction::lt) && not_below;
}

/// Folds an op on one or two integers. False if the result is not in range, or for another op.
constexpr bool fold(const site& at, bool flags, std::int64_t a, std::int64_t b,
                    std::int64_t& made) {
  constexpr std::int64_t half = std::int64_t{1} << 30;  // products of smaller ones are in range
  constexpr std::int64_t most = std::int64_t{1} << 62;  // and so are sums of these
  const std::uint64_t id = at.def().id;
  if (a > most || a < -most || b > most || b < -most) return false;
  switch (id) {
    case def<op::add>.id:
      made = a + b;
      return !flags;
    case def<op::subtract>.id:
      made = a - b;
      return !flags;
    case def<op::multiply>.id:
      if (flags || a > half || a < -half || b > half || b < -half) return false;
      made = a * b;
      return true;
    case def<op::divide>.id:
    case def<op::remainder>.id:
      if (flags || b == 0) return false;
      made = id == def<op::divide>.id ? a / b : a % b;
      return true;
    case def<op::maximum>.id:
      made = a > b ? a : b;
      return true;
    case def<op::minimum>.id:
      made = a < b ? a : b;
      return true;
    case def<op::negate>.id:
      made = -a;
      return !flags;
    case def<op::abs>.id:
      made = a < 0 ? -a : a;
      return true;
    case def<op::sign>.id:
      made = a < 0 ? -1 : a > 0 ? 1 : 0;
      return true;
    case def<op::convert>.id:
      made = a;
      return true;
    case def<op::compare>.id:
      made = is_true(static_cast<ops::direction>(at.attrs()[0]), a, b) ? 1 : 0;
      return true;
    case def<op::logical_not>.id:
      made = 1 - a;
      return flags;
    case def<op::logical_and>.id:
      made = a & b;
      return flags;
    case def<op::logical_or>.id:
      made = a | b;
      return flags;
    case def<op::logical_xor>.id:
      made = a ^ b;
      return flags;
    default:
      return false;
  }
}
/// Folds numbers of type `from` to a result of type `to`. (For floating types, zeros have a sign,
/// and quotients that are not integers are rounded.)
constexpr bool fold_exactly(const site& at, dtype from, dtype to, std::int64_t a, std::int64_t b,
                            std::int64_t& made) {
  if (!fold(at, from == dtype::boolean, a, b, made)) return false;
  if (is_floating(from) && at.def().id == def<op::divide>.id && a % b != 0) return false;
  if (is_floating(to) && made == 0 && (a < 0 || b < 0 || at.def().id == def<op::negate>.id))
    return false;
  if (to == dtype::boolean && at.def().id == def<op::convert>.id) made = made != 0 ? 1 : 0;
  return integers_of(to).contains({made, made});
}
constexpr operand_term exact_number(meanings& all, std::int64_t n, dtype t) {
  return all.number(is_floating(t) ? std::bit_cast<std::int64_t>(static_cast<double>(n)) : n, t);
}

/// True if numbers from `least` to `greatest` may be used as positions. (For i32, few enough that
/// sums of some of them do not wrap: see offset.)
constexpr bool are_counted(dtype t, std::int64_t least, std::int64_t greatest) {
  const std::int64_t most = t == dtype::i32 ? offset::most : most_counted;
  return least >= -most && greatest <= most && exact(t, least < 0 ? -least : least) &&
         exact(t, greatest < 0 ? -greatest : greatest);
}

/// Finds the ranges of the elements of terms.
class range_finder {
 public:
  constexpr explicit range_finder(const meanings& all) : all_(all) {}

  constexpr integer_range of(const operand_term& x) const { return of(x, most_depth); }

 private:
  static constexpr int most_depth = 8;
  const meanings& all_;

  /// True if it is an element of its term, not padding, about which nothing is known.
  constexpr bool lies_inside(const operand_term& x) const {
    return x.view == operand_term::by_element ||
           !all_.views.reaches_beyond(x.view, all_.terms[x.term].shape);
  }
  /// All numbers of a type, which may exceed the range of calculations.
  static constexpr integer_range any(dtype t) {
    const std::int64_t low = op::least_integer(t), high = op::greatest_integer(t);
    constexpr std::int64_t far = 4 * most_counted;
    return {low < -far ? -far : low, high > far ? far : high};
  }
  constexpr integer_range of(const operand_term& x, int depth) const {
    const dtype t = all_.terms[x.term].element;
    if (std::int64_t n = 0; is_exact(all_, x, 1, n)) return {n, n};
    if (is_floating(t)) return {};
    const term& made = all_.terms[x.term];
    if (depth == 0 || !made.by_element || made.operand_count == 0 || !lies_inside(x)) return any(t);
    const integer_range found = of_op(x.term, made, depth - 1);
    return !found.empty() && integers_of(t).contains(found) ? found : any(t);
  }
  constexpr integer_range of_op(int t, const term& made, int depth) const {
    const auto operand = [&](int i) { return of(all_.terms.operand(made, i), depth); };
    switch (all_.terms.def(t).id) {
      case def<op::add>.id:
        return sum(made, depth);
      case def<op::subtract>.id: {
        const integer_range a = operand(0), b = operand(1);
        return {a.least - b.greatest, a.greatest - b.least};
      }
      case def<op::maximum>.id:
      case def<op::minimum>.id:
        return extreme(made, depth, all_.terms.def(t).id == def<op::maximum>.id);
      case def<op::clamp>.id: {
        const integer_range low = operand(0), x = operand(1), high = operand(2);
        return lesser(greater(x, low), high);
      }
      case def<op::select>.id: {
        const integer_range a = chosen(made, 1, depth), b = chosen(made, 2, depth);
        if (a.empty() || b.empty()) return a.empty() ? b : a;
        return {a.least < b.least ? a.least : b.least,
                a.greatest > b.greatest ? a.greatest : b.greatest};
      }
      case def<op::remainder>.id: {
        const integer_range a = operand(0), b = operand(1);
        if (!b.single() || b.least <= 0) return {};
        return {a.least < 0 ? 1 - b.least : 0, a.greatest > 0 ? b.least - 1 : 0};
      }
      case def<op::convert>.id:
      case def<op::broadcast_in_dim>.id:
        return operand(0);
      default:
        return {};
    }
  }
  /// The range of a select whose flag restricts the range of the selected value.
  constexpr integer_range chosen(const term& made, int i, int depth) const {
    const operand_term flag = all_.terms.operand(made, 0), x = all_.terms.operand(made, i);
    integer_range found = of(x, depth);
    offset tested, mine;
    range in;
    if (flag.view != operand_term::by_element || x.view != operand_term::by_element ||
        !truth_range(all_, flag.term, i == 1, tested, in) || !add_offset(all_, x, 1, mine) ||
        !mine.same(tested) || (tested.computed.term >= 0 && tested.computed != x))
      return found;
    if (mine.is_sum && !is_far_from_overflow(made.element)) return found;
    // (The selected value may be a wrapped sum if the range of the tested one is unbounded.)
    const bool may_wrap =
        mine.computed.term >= 0 && tested.computed.term < 0 && !in.has_both_ends();
    const bool alone = mine.position_sign == 0;
    if (in.low > -max_elements && (!may_wrap || (alone && mine.number <= 0)) &&
        in.low + mine.number > found.least)
      found.least = in.low + mine.number;
    if (in.high < max_elements && (!may_wrap || (alone && mine.number >= 0)) &&
        in.high + mine.number <= found.greatest)
      found.greatest = in.high + mine.number - 1;
    return found;
  }
  constexpr integer_range sum(const term& made, int depth) const {
    integer_range all{0, 0};
    for (int i = 0; i < made.operand_count; ++i) {
      const integer_range each = of(all_.terms.operand(made, i), depth);
      all = {all.least + each.least, all.greatest + each.greatest};
      if (!integers_of(made.element).contains(all)) return {};
    }
    return all;
  }
  constexpr integer_range extreme(const term& made, int depth, bool greatest) const {
    integer_range all = of(all_.terms.operand(made, 0), depth);
    for (int i = 1; i < made.operand_count; ++i) {
      const integer_range each = of(all_.terms.operand(made, i), depth);
      all = greatest ? greater(all, each) : lesser(all, each);
    }
    return all;
  }
  static constexpr integer_range greater(const integer_range& a, const integer_range& b) {
    return {a.least > b.least ? a.least : b.least,
            a.greatest > b.greatest ? a.greatest : b.greatest};
  }
  static constexpr integer_range lesser(const integer_range& a, const integer_range& b) {
    return {a.least < b.least ? a.least : b.least,
            a.greatest < b.greatest ? a.greatest : b.greatest};
  }
};

constexpr bool is_small(const meanings& all, const operand_term& x) {
  const integer_range found = range_finder(all).of(x);
  return !found.empty() && found.least > -offset::most && found.greatest < offset::most;
}

}  // namespace partita::prove_detail
