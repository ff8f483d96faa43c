/// Elements in their normal forms.
#pragma once

#include <partita/prove/elements/groups.hpp>

namespace partita::prove_detail {

/// The result of an associative op on tuples of elements (a fold, an argmax), whose results are
/// numbered. (Result 0 identifies a collection.)
struct collection {
  fingerprint whole;
  vec<element> members;

  static constexpr fingerprint result(const fingerprint& whole, int number) {
    return drawing(0xc0).add(whole).add(number).drawn();
  }
};

/// The final state of a source loop, when its carried elements cannot be distinguished any further:
/// the value of each class of carried elements after one more round, and after the loop.
struct loop_classes {
  facts<fingerprint> after, behind;
};

/// Elements in their normal forms. Equal fingerprints mean equal formulas.
///
/// Law       sums and products: as real numbers, or as integers that wrap; max, min, and, or, xor
///           in any order and grouping; choices by the same flag or index are merged; a shifted,
///           clamped and compared integer makes the same choices as the integer itself
class algebra : public group_algebra {
 public:
  facts<collection> collections;
  facts<loop_classes> loops;     ///< by their conditions
  std::int64_t never_equal = 0;  ///< number of formulas that equal nothing else

  constexpr element compare(ops::direction how, dtype t, const element& x, const element& y) {
    using enum ops::direction;
    if (how == gt) return compare(lt, t, y, x);
    if (how == ge) return is_floating(t) ? compare(le, t, y, x) : ge_of(t, x, y);
    if (how == ne) return negated(compare(eq, t, x, y));
    if (how == lt && !is_floating(t)) return negated(ge_of(t, x, y));
    if (how == le && !is_floating(t)) return ge_of(t, y, x);
    if (how == eq && !is_floating(t)) return eq_of(t, x, y);
    return compare_reals(how, t, x, y);
  }
  constexpr element convert(dtype from, dtype to, const element& x) {
    if (from == to) return x;
    if (x.known) return convert_number(from, to, x);
    if (to == dtype::boolean) return compare(ops::direction::ne, from, x, small_number(from, 0));
    if (is_floating(from) && is_floating(to) && has_all_of(to, from)) return x;
    if (is_floating(from)) return function(def<op::convert>.id, from, to, {x});
    const auto each = [&](const element& i) {
      return i.known ? convert_number(from, to, i) : convert_integer(from, to, i);
    };
    if (is_integer(from) && is_integer(to) && holds(to, interval::of(from)))
      return map_integer(from, x, each);
    return map(x, each);
  }

 private:
  constexpr element convert_integer(dtype from, dtype to, const element& x) {
    if (const bounded* b = find_bounds(from, x); b != nullptr && is_integer(to)) {
      const bool fits = from != dtype::u64 || b->greatest < INT64_MAX;  // see has_place
      if (fits && b->range().least >= op::least_integer(to) &&
          b->range().greatest <= op::greatest_integer(to)) {
        bounds_of(to).add(x.of, bounded(*b));
        return formula(to, x.of);
      }
    }
    const bool same_bits = is_integer(from) && is_integer(to) && size_of(from) == size_of(to);
    return same_bits ? with_bits_of(x, from, to) : function(def<op::convert>.id, from, to, {x});
  }
  /// An element of a type that interprets the bits of another number. (Its range is unknown.)
  constexpr element with_bits_of(const element& x, dtype from, dtype to) {
    const fingerprint of = drawing(0x5b).add(static_cast<int>(to)).add(x.of).drawn();
    if (log != nullptr) log->add(of, {origin::function, "convert", {}, {x}});
    shifts_.add(of, {to, formula(from, x.of), 0});
    return formula(to, of);
  }
  /// A number in another type.
  constexpr element convert_number(dtype from, dtype to, const element& x) {
    if (!is_floating(from) && !is_floating(to)) return integer(to, x.number);
    if (is_floating(from) && is_floating(to)) {
      if (!is_of_type(from, real_of(x)) && has_all_of(to, from)) return formula(to, x.of);
      return is_of_type(to, real_of(x)) ? x : function(def<op::convert>.id, from, to, {x});
    }
    const auto small = [](double v) { return v > -0x1p31 && v < 0x1p31; };
    if (is_floating(to)) {
      const auto v = static_cast<double>(x.number);
      const bool is_there = has_place(from, x.number) && small(v) && is_of_type(to, v);
      return is_there ? real(v) : function(def<op::convert>.id, from, to, {x});
    }
    const double v = real_of(x);
    if (!is_of_type(from, v)) return function(def<op::convert>.id, from, to, {x});
    if (to == dtype::boolean && v == v) return integer(to, v != 0 ? 1 : 0);
    if (!small(v)) return function(def<op::convert>.id, from, to, {x});
    const auto n = static_cast<std::int64_t>(v);
    return n >= op::least_integer(to) && n <= op::greatest_integer(to)
               ? integer(to, n)
               : function(def<op::convert>.id, from, to, {x});
  }

  constexpr element ge_of(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return either(x, negated(y));
    int left = most_splits;
    return map_pairs(
        x, y, [&](const element& i, const element& j) { return ge_plain(t, i, j); }, left);
  }
  /// For elements that are not choices.
  constexpr element ge_plain(dtype t, const element& x, const element& y) {
    if (x.known && y.known) return integer(dtype::boolean, less(t, x, y) ? 0 : 1);
    if (x == y) return integer(dtype::boolean, 1);
    if (y.known && has_place(t, y.number)) return reaches(t, x, y.number);
    if (x.known && has_place(t, x.number) && x.number < INT64_MAX)
      return negated(reaches(t, y, x.number + 1));
    const bounded *b = find_bounds(t, x), *c = find_bounds(t, y);
    if (b != nullptr && c != nullptr && b->whole == c->whole && b->is_whole() && c->is_whole())
      return integer(dtype::boolean, b->range().least >= c->range().least ? 1 : 0);
    return function(def<op::compare>.id, t, dtype::boolean, {x, y}, 5);
  }
  constexpr element eq_of(dtype t, const element& x, const element& y) {
    if (x.known && y.known) return integer(dtype::boolean, x.number == y.number ? 1 : 0);
    if (x == y) return integer(dtype::boolean, 1);
    if (t == dtype::boolean) return negated(select(x, negated(y), y));
    if (x.known) return eq_of(t, y, x);
    if (y.known)
      return map_integer(t, x, [&](const element& i) { return is_number(t, i, y.number); });
    const bool turned = y.of < x.of;
    return function(def<op::compare>.id, t, dtype::boolean, {turned ? y : x, turned ? x : y}, 0);
  }
  constexpr element compare_reals(ops::direction how, dtype t, const element& x, const element& y) {
    if (x.known && y.known && is_of_type(t, real_of(x)) && is_of_type(t, real_of(y)))
      return compare_numbers(how, real_of(x), real_of(y));
    // (A number that its type would round is not used for choices.)
    if (has_numbers(x) && y.known)
      return map(x, [&](const element& i) { return compare_reals(how, t, i, y); });
    if (has_numbers(y) && x.known)
      return map(y, [&](const element& i) { return compare_reals(how, t, x, i); });
    const bool turned = how == ops::direction::eq && y.of < x.of;
    return function(def<op::compare>.id, t, dtype::boolean, {turned ? y : x, turned ? x : y},
                    static_cast<std::uint64_t>(how));
  }
  constexpr bool has_numbers(const element& x) const {
    vec<element> numbers;
    return chooses_numbers(x, most_splits, numbers);
  }
  static constexpr element compare_numbers(ops::direction how, double x, double y) {
    const bool holds = how == ops::direction::eq   ? x == y
                       : how == ops::direction::lt ? x < y
                                                   : x <= y;
    return integer(dtype::boolean, holds ? 1 : 0);
  }
};

}  // namespace partita::prove_detail
