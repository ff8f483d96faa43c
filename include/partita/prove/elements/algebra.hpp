/// Formulas of elements: sums, products, extrema, choices, and functions that stay what they are.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/elements/element.hpp>

namespace partita::prove_detail {

/// What a choice depends on: a flag, or where an integer lies.
struct decider {
  fingerprint of;
  bool is_flag = false;

  friend constexpr bool operator==(const decider&, const decider&) = default;
  /// What stands for "the decider is `from` or more".
  constexpr fingerprint reaches(std::int64_t from) const {
    return is_flag ? of : drawing(0x7ea).add(of).add(from).drawn();
  }
  /// One of 64 bits.
  constexpr std::uint64_t bit() const { return std::uint64_t{1} << (of.a & 63); }
};

/// values[0] below from[0], values[1] from there to below from[1], ... (a decision diagram).
struct choice {
  decider by;
  vec<std::int64_t> from;
  vec<element> values;
  std::uint64_t mentions = 0;  ///< bits of all deciders in it
};

/// An integer that is min(max(base, least), greatest) + offset, without overflow. The base lies
/// between base_least and base_greatest, and is `whole` where it is not clamped.
struct bounded {
  fingerprint base, whole;
  std::int64_t base_least = 0, base_greatest = 0;
  std::int64_t least = 0, greatest = 0, offset = 0;

  constexpr bool is_whole() const { return least <= base_least && greatest >= base_greatest; }
  constexpr fingerprint of() const {
    const fingerprint clamped =
        is_whole() ? whole : drawing(0xb0).add(base).add(least).add(greatest).drawn();
    return field::sum(clamped, field::integer(offset));
  }
};

/// An integer that is another one plus a number, as it wraps.
struct shifted {
  dtype type = dtype::i32;
  element base;
  std::int64_t by = 0;
};

/// Operands of an associative and commutative op, each once, by fingerprint.
struct operand_group {
  std::uint64_t op = 0;
  dtype type = dtype::f32;
  vec<element> members;
};

/// What an associative op made of tuples of elements (a fold, an argmax): its results are numbered.
struct collection {
  fingerprint whole;
  vec<element> members;
  int number = 0;  ///< of the result

  static constexpr fingerprint result(const fingerprint& whole, int number) {
    return drawing(0xc0).add(whole).add(number).drawn();
  }
};

/// How a loop of the source looked when nothing that it carries could be told apart any more: what
/// each class of carried elements became in one more round, and what it is behind the loop.
struct loop_classes {
  facts<fingerprint> after, behind;
};

/// Elements in their normal forms. Equal fingerprints mean equal formulas.
///
/// Law       sums and products: as of real numbers, or of integers that wrap; max, min, and, or,
///           xor in any order and grouping; choices by the same flag or index are one; an integer
///           that is shifted, clamped and compared decides as it does itself
class algebra {
 public:
  std::int64_t steps = 0;  ///< that were taken
  facts<collection> collections;
  facts<loop_classes> loops;  ///< by their conditions

  // ---- Choices ----

  /// Of `values`, by where the decider lies. (Equal neighbours are joined; what values have of the
  /// same decider inside of them becomes part of it.)
  constexpr element choose(const decider& by, const vec<std::int64_t>& from,
                           const vec<element>& values) {
    int left = most_splits;
    return choose(by, from, values, left);
  }
  /// `left`: how many choices may still be looked at; then they stay what they are.
  constexpr element choose(const decider& by, const vec<std::int64_t>& from,
                           const vec<element>& values, int& left) {
    choice c{by, {}, {}, by.bit()};
    for (std::size_t i = 0; i < values.size(); ++i)
      append(c, i == 0 ? INT64_MIN : from[i - 1], i < from.size() ? from[i] : INT64_MAX, values[i],
             left);
    return made(c);
  }
  /// `flag ? x : y`.
  constexpr element select(const element& flag, const element& x, const element& y) {
    int left = most_splits;
    return select(flag, x, y, left);
  }
  constexpr element both(const element& x, const element& y) {
    return select(x, y, integer(dtype::boolean, 0));
  }
  constexpr element either(const element& x, const element& y) {
    return select(x, integer(dtype::boolean, 1), y);
  }
  constexpr element negated(const element& x) {
    return select(x, integer(dtype::boolean, 0), integer(dtype::boolean, 1));
  }
  /// A flag of which nothing is known.
  constexpr element flag(const fingerprint& of) {
    const decider by{of, true};
    choices_.add(of, {by, {1}, {integer(dtype::boolean, 0), integer(dtype::boolean, 1)}, by.bit()});
    return formula(of);
  }
  /// An integer of which nothing is known.
  constexpr element whole_number(dtype t, const fingerprint& of) {
    bounds_.add(of, {of, of, op::least_integer(t), op::greatest_integer(t), op::least_integer(t),
                     op::greatest_integer(t), 0});
    return formula(of);
  }
  constexpr element unknown(dtype t, const fingerprint& of) {
    if (t == dtype::boolean) return flag(of);
    return is_integer(t) ? whole_number(t, of) : formula(of);
  }
  /// f(x), which for a choice is that of f(each value). f takes no choice then, if it is not too
  /// large.
  template <class F>
  constexpr element map(const element& x, const F& f) {
    int left = most_splits;
    return map(x, f, left);
  }
  /// Of `count` elements, the one that an index names, moved to where there are some; `at(i)`.
  template <class At>
  constexpr element look_up(dtype t, const element& index, std::int64_t count, const At& at) {
    return map(index, [&](const element& i) { return look_up_plain(t, i, count, at); });
  }

  // ---- Arithmetic ----

  constexpr element sum(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return either(x, y);
    if (x.known && y.known) return sum_of_numbers(t, x, y);
    if (y.known && y.of == fingerprint{}) return x;
    if (x.known && x.of == fingerprint{}) return y;
    if (is_integer(t) && (x.known || y.known)) note_shift(t, x.known ? y : x, x.known ? x : y);
    return formula(field::sum(x.of, y.of));
  }
  constexpr element opposite(dtype t, const element& x) {
    if (x.known) return is_floating(t) ? real(-real_of(x)) : integer(t, negative(x.number));
    return formula(field::opposite(x.of));
  }
  constexpr element difference(dtype t, const element& x, const element& y) {
    return sum(t, x, opposite(t, y));
  }
  constexpr element product(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return both(x, y);
    if (x.known && y.known) return product_of_numbers(t, x, y);
    if (x.known && x.of == fingerprint{1, 1}) return y;
    if (y.known && y.of == fingerprint{1, 1}) return x;
    const fingerprint f = field::product(x.of, y.of);
    return f == fingerprint{} ? small_number(t, 0) : formula(f);
  }
  constexpr element quotient(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return x.known && y.known ? quotient_of_integers(t, x, y)
                                : function(def<op::divide>.id, t, t, {x, y});
    const double by = y.known ? real_of(y) : 0;
    if (by == 0 || by - by != 0) return function(def<op::divide>.id, t, t, {x, y});
    if (x.known)
      if (const double r = real_of(x) / by; exact_product(r, by, real_of(x))) return real(r);
    return formula(field::product(x.of, field::inverse(y.of)));
  }
  /// (Integers only are looked at: with the sign of the dividend.)
  constexpr element remainder(dtype t, const element& x, const element& y) {
    const bool plain = is_integer(t) && t != dtype::u64 && x.known && y.known && y.number > 0;
    return plain ? integer(t, x.number % y.number) : function(def<op::remainder>.id, t, t, {x, y});
  }
  /// Of all of them, by the op that combines two.
  constexpr element combined(combiner how, dtype t, vec<element> all) {
    if (how != combiner::add && how != combiner::multiply)
      return group(combining_op(how).id, t, static_cast<vec<element>&&>(all));
    element x = identity_of(how, t);
    for (const element& each : all)
      x = how == combiner::add ? sum(t, x, each) : product(t, x, each);
    return x;
  }
  /// max, min, and, or, xor of elements of one type.
  constexpr element group(std::uint64_t op, dtype t, vec<element> all) {
    if (all.size() == 1) return all[0];
    if (t == dtype::boolean) return group_of_flags(op, all);
    element number;
    operand_group g{op, t, {}};
    for (const element& each : all) gather_members(g, each, number);
    sort(g);
    return with_number(g, number);
  }

  // ---- Comparisons and functions ----

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
    return map(x, [&](const element& i) {
      return i.known ? convert_number(from, to, i) : convert_integer(from, to, i);
    });
  }
  /// What is known of a function is that it gives the same of the same.
  constexpr element function(std::uint64_t op, dtype from, dtype to, const vec<element>& operands,
                             std::uint64_t more = 0) {
    drawing d(op);
    d.add(static_cast<int>(from)).add(static_cast<int>(to)).add(more);
    for (const element& each : operands) d.add(each.of);
    return unknown(to, d.drawn());
  }

 private:
  static constexpr int most_splits = 512;
  facts<choice> choices_;
  facts<bounded> bounds_;
  facts<shifted> shifts_;
  facts<operand_group> groups_;

  static constexpr std::int64_t negative(std::int64_t n) {
    return static_cast<std::int64_t>(std::uint64_t{0} - static_cast<std::uint64_t>(n));
  }

  // ---- Choices ----

  /// A value where the decider lies in [low, high).
  constexpr void append(choice& c, std::int64_t low, std::int64_t high, const element& v,
                        int& left) {
    vec<std::int64_t> from;
    find_places(v, c.by, low, high, from, left);
    for (std::size_t i = 0; i <= from.size(); ++i) {
      const std::int64_t begin = i == 0 ? low : from[i - 1], end = i < from.size() ? from[i] : high;
      put(c, begin, restricted(v, c.by, begin, end, left));
    }
  }
  /// Where x changes with a decider between `low` and `high`, in order.
  constexpr void find_places(const element& x, const decider& by, std::int64_t low,
                             std::int64_t high, vec<std::int64_t>& from, int& left) const {
    const choice* c = choice_of(x);
    if (c == nullptr || (c->mentions & by.bit()) == 0 || --left <= 0) return;
    if (c->by == by)
      for (const std::int64_t at : c->from)
        if (at > low && lies_below(at, high)) insert(from, at);
    for (const element& each : c->values) find_places(each, by, low, high, from, left);
  }
  /// (INT64_MAX: an interval that has no end.)
  static constexpr bool lies_below(std::int64_t at, std::int64_t high) {
    return at < high || high == INT64_MAX;
  }
  static constexpr void insert(vec<std::int64_t>& sorted, std::int64_t n) {
    for (const std::int64_t each : sorted)
      if (each == n) return;
    sorted.push_back(n);
    for (std::size_t i = sorted.size() - 1; i > 0 && sorted[i] < sorted[i - 1]; --i) {
      sorted[i] = sorted[i - 1];
      sorted[i - 1] = n;
    }
  }
  static constexpr void put(choice& c, std::int64_t from, const element& v) {
    if (!c.values.empty() && c.values.back() == v) return;
    if (!c.values.empty()) c.from.push_back(from);
    c.values.push_back(v);
  }
  constexpr element made(choice& c) {
    steps += static_cast<std::int64_t>(c.values.size());
    if (c.values.size() == 1) return c.values[0];
    fingerprint f = c.values[0].of;
    for (std::size_t i = 0; i < c.from.size(); ++i)
      f = field::sum(f, field::product(c.by.reaches(c.from[i]),
                                       field::difference(c.values[i + 1].of, c.values[i].of)));
    for (const element& each : c.values)
      if (const choice* inner = choice_of(each); inner != nullptr) c.mentions |= inner->mentions;
    choices_.add(f, c);
    return formula(f);
  }
  constexpr const choice* choice_of(const element& x) const {
    return x.known ? nullptr : choices_.find(x.of);
  }
  /// x, if the decider lies in [low, high).
  constexpr element restricted(const element& x, const decider& by, std::int64_t low,
                               std::int64_t high, int& left) {
    const choice* found = choice_of(x);
    if (found == nullptr || (found->mentions & by.bit()) == 0 || --left <= 0) return x;
    ++steps;
    const choice c = *found;
    vec<std::int64_t> from;
    vec<element> values;
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      if (c.by == by && i < c.from.size() && c.from[i] <= low) continue;
      if (c.by == by && i > 0 && !lies_below(c.from[i - 1], high)) break;
      if (!values.empty()) from.push_back(c.from[i - 1]);
      values.push_back(restricted(c.values[i], by, low, high, left));
    }
    return choose(c.by, from, values, left);
  }
  constexpr element select(const element& flag, const element& x, const element& y, int& left) {
    if (flag.known) return flag.number != 0 ? x : y;
    if (x == y) return x;
    const choice* found = choice_of(flag);
    if (found == nullptr || --left <= 0) return mixed(flag, x, y);
    const choice c = *found;
    vec<element> values;
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      const std::int64_t low = i == 0 ? INT64_MIN : c.from[i - 1],
                         high = i < c.from.size() ? c.from[i] : INT64_MAX;
      values.push_back(select(c.values[i], restricted(x, c.by, low, high, left),
                              restricted(y, c.by, low, high, left), left));
    }
    return choose(c.by, c.from, values, left);
  }
  static constexpr element mixed(const element& flag, const element& x, const element& y) {
    return formula(field::sum(y.of, field::product(flag.of, field::difference(x.of, y.of))));
  }
  template <class F>
  constexpr element map(const element& x, const F& f, int& left) {
    const choice* found = choice_of(x);
    if (found == nullptr || --left <= 0) return f(x);
    const choice c = *found;
    vec<element> values;
    for (const element& each : c.values) values.push_back(map(each, f, left));
    return choose(c.by, c.from, values, left);
  }
  template <class At>
  constexpr element look_up_plain(dtype t, const element& i, std::int64_t count, const At& at) {
    const std::int64_t last = count - 1;
    if (i.known) return at(inside(t, i.number, last));
    const bounded b = bounds_of(t, i);
    const std::int64_t first = inside(t, b.least + b.offset, last),
                       end = inside(t, b.greatest + b.offset, last);
    vec<std::int64_t> from;
    vec<element> values{at(first)};
    for (std::int64_t k = first + 1; k <= end; ++k) {
      from.push_back(k - b.offset);
      values.push_back(at(k));
    }
    return choose({b.base, false}, from, values);
  }
  static constexpr std::int64_t inside(dtype t, std::int64_t i, std::int64_t last) {
    if (t == dtype::u64 && i < 0) return last;
    return i < 0 ? 0 : i > last ? last : i;
  }

  // ---- Integers ----

  constexpr bounded bounds_of(dtype t, const element& x) const {
    if (const bounded* b = bounds_.find(x.of)) return *b;
    const fingerprint base = drawing(0x1b).add(static_cast<int>(t)).add(x.of).drawn();
    const std::int64_t least = op::least_integer(t), greatest = op::greatest_integer(t);
    return {base, x.of, least, greatest, least, greatest, 0};
  }
  constexpr element with_bounds(const bounded& b) {
    if (b.least == b.greatest) return integer(dtype::i64, b.least + b.offset);
    bounds_.add(b.of(), b);
    return formula(b.of());
  }
  /// x + n, of which it is known where it lies if it does not overflow.
  constexpr void note_shift(dtype t, const element& x, const element& n) {
    const bounded* found = bounds_.find(x.of);
    const shifted* base = shifts_.find(x.of);
    shifted s{t, x, n.number};
    if (base != nullptr && base->type == t) s = {t, base->base, wrapped_sum(base->by, n.number)};
    shifts_.add(field::sum(x.of, n.of), s);
    if (found == nullptr || t == dtype::u64) return;
    bounded b = *found;
    const checked low = checked(b.least) + b.offset + n.number,
                  high = checked(b.greatest) + b.offset + n.number,
                  offset = checked(b.offset) + n.number;
    if (low.overflowed() || high.overflowed() || offset.overflowed()) return;
    if (low.value_or(0) < op::least_integer(t) || high.value_or(0) > op::greatest_integer(t))
      return;
    b.offset = offset.value_or(0);
    bounds_.add(field::sum(x.of, n.of), b);
  }
  static constexpr std::int64_t wrapped_sum(std::int64_t x, std::int64_t y) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
  }
  /// x = n. (Where x is a sum that may wrap, too.)
  constexpr element is_number(dtype t, const element& x, std::int64_t n) {
    if (x.known) return integer(dtype::boolean, x.number == n ? 1 : 0);
    if (const shifted* s = shifts_.find(x.of);
        s != nullptr && s->type == t && bounds_.find(x.of) == nullptr) {
      const element base = s->base;
      const std::int64_t at = wrapped(t, wrapped_sum(n, negative(s->by)));
      return map(base, [&](const element& i) { return is_number(t, i, at); });
    }
    if (t == dtype::u64)
      return function(def<op::compare>.id, t, dtype::boolean, {x, integer(t, n)}, 0);
    const element above = n == INT64_MAX ? integer(dtype::boolean, 0) : reaches(t, x, n + 1);
    return both(reaches(t, x, n), negated(above));
  }
  /// max or min of an integer and a number.
  constexpr element bounded_by(std::uint64_t op, dtype t, const element& x, std::int64_t n) {
    if (t == dtype::u64) return function(op, t, t, {x, integer(t, n)});
    return map(x, [&](const element& i) {
      if (i.known) return integer(t, (op == def<op::maximum>.id) == (i.number > n) ? i.number : n);
      return clamped(op, bounds_of(t, i), n);
    });
  }
  constexpr element clamped(std::uint64_t op, bounded b, std::int64_t n) {
    const std::int64_t at = (checked(n) - b.offset).value_or(n < 0 ? INT64_MIN : INT64_MAX);
    const auto inside_of = [&](std::int64_t low, std::int64_t high) {
      return at < low ? low : at > high ? high : at;
    };
    const std::int64_t low = b.least, high = b.greatest;
    if (op == def<op::maximum>.id) {
      if (at > high) return integer(dtype::i64, n);
      b.least = inside_of(low, high);
    } else {
      if (at < low) return integer(dtype::i64, n);
      b.greatest = inside_of(low, high);
    }
    return with_bounds(b);
  }
  constexpr element convert_integer(dtype from, dtype to, const element& x) {
    if (const bounded* b = bounds_.find(x.of); b != nullptr && is_integer(to)) {
      const std::int64_t low = b->least + b->offset, high = b->greatest + b->offset;
      if (from != dtype::u64 && low >= op::least_integer(to) && high <= op::greatest_integer(to))
        return x;
    }
    return function(def<op::convert>.id, from, to, {x});
  }
  /// A number in another type.
  constexpr element convert_number(dtype from, dtype to, const element& x) {
    if (!is_floating(from) && !is_floating(to)) return integer(to, x.number);
    if (is_floating(from) && is_floating(to))
      return is_of_type(to, real_of(x)) ? x : function(def<op::convert>.id, from, to, {x});
    const auto small = [](double v) { return v > -0x1p31 && v < 0x1p31; };
    if (is_floating(to)) {
      const auto v = static_cast<double>(x.number);
      return small(v) && is_of_type(to, v) ? real(v) : function(def<op::convert>.id, from, to, {x});
    }
    const double v = real_of(x);
    if (to == dtype::boolean && v == v) return integer(to, v != 0 ? 1 : 0);
    if (!small(v)) return function(def<op::convert>.id, from, to, {x});
    const auto n = static_cast<std::int64_t>(v);
    return n >= op::least_integer(to) && n <= op::greatest_integer(to)
               ? integer(to, n)
               : function(def<op::convert>.id, from, to, {x});
  }

  // ---- Numbers ----

  static constexpr element sum_of_numbers(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return integer(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.number) +
                                                  static_cast<std::uint64_t>(y.number)));
    const double s = real_of(x) + real_of(y);
    return exact_sum(real_of(x), real_of(y), s) ? real(s) : formula(field::sum(x.of, y.of));
  }
  static constexpr element product_of_numbers(dtype t, const element& x, const element& y) {
    if (!is_floating(t))
      return integer(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.number) *
                                                  static_cast<std::uint64_t>(y.number)));
    const double s = real_of(x) * real_of(y);
    return exact_product(real_of(x), real_of(y), s) ? real(s) : formula(field::product(x.of, y.of));
  }
  constexpr element quotient_of_integers(dtype t, const element& x, const element& y) {
    if (y.number == 0 || t == dtype::u64 || (y.number == -1 && x.number == INT64_MIN))
      return function(def<op::divide>.id, t, t, {x, y});
    return integer(t, x.number / y.number);
  }

  // ---- Groups ----

  constexpr element group_of_flags(std::uint64_t op, const vec<element>& all) {
    element x = all[0];
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (op == def<op::logical_and>.id || op == def<op::minimum>.id)
        x = both(x, all[i]);
      else if (op == def<op::logical_xor>.id)
        x = select(x, negated(all[i]), all[i]);
      else
        x = either(x, all[i]);
    }
    return x;
  }
  constexpr void gather_members(operand_group& g, const element& x, element& number) {
    if (x.known) {
      number = number.known ? joined(g, number, x) : x;
      return;
    }
    if (const operand_group* inner = groups_.find(x.of);
        inner != nullptr && inner->op == g.op && inner->type == g.type) {
      const vec<element> members = inner->members;
      for (const element& each : members) gather_members(g, each, number);
      return;
    }
    element base, bound;
    if (is_integer(g.type) && is_clamped(g, x, base, bound)) {
      number = number.known ? joined(g, number, bound) : bound;
      return gather_members(g, base, number);
    }
    g.members.push_back(x);
  }
  /// Is x the max (or min) of something and a number?
  constexpr bool is_clamped(const operand_group& g, const element& x, element& base,
                            element& bound) const {
    const bool most = g.op == def<op::maximum>.id;
    if (!most && g.op != def<op::minimum>.id) return false;
    const bounded* b = bounds_.find(x.of);
    if (b == nullptr || b->offset != 0 || b->is_whole()) return false;
    if (most ? b->greatest < b->base_greatest : b->least > b->base_least) return false;
    base = formula(b->whole);
    bound = integer(g.type, most ? b->least : b->greatest);
    return true;
  }
  /// Of two numbers.
  static constexpr element joined(const operand_group& g, const element& x, const element& y) {
    if (g.op == def<op::logical_and>.id) return integer(g.type, x.number & y.number);
    if (g.op == def<op::logical_or>.id) return integer(g.type, x.number | y.number);
    if (g.op == def<op::logical_xor>.id) return integer(g.type, x.number ^ y.number);
    const bool x_less = less(g.type, x, y);
    if (is_floating(g.type) && !(real_of(x) == real_of(x))) return x;
    if (is_floating(g.type) && !(real_of(y) == real_of(y))) return y;
    return x_less == (g.op == def<op::maximum>.id) ? y : x;
  }
  static constexpr bool less(dtype t, const element& x, const element& y) {
    if (is_floating(t)) return real_of(x) < real_of(y);
    if (t != dtype::u64) return x.number < y.number;
    return static_cast<std::uint64_t>(x.number) < static_cast<std::uint64_t>(y.number);
  }
  /// By fingerprint, equal ones once; two equal ones of an xor are none.
  static constexpr void sort(operand_group& g) {
    merge_sort(g.members);
    vec<element> once;
    for (const element& each : g.members) {
      if (once.empty() || !(once.back() == each))
        once.push_back(each);
      else if (g.op == def<op::logical_xor>.id)
        once.pop_back();
    }
    g.members = once;
  }
  static constexpr void merge_sort(vec<element>& list) {
    vec<element> other;
    for (std::size_t run = 1; run < list.size(); run *= 2) {
      other.clear();
      for (std::size_t begin = 0; begin < list.size(); begin += 2 * run)
        merge(list, begin, run, other);
      list = other;
    }
  }
  static constexpr void merge(const vec<element>& list, std::size_t begin, std::size_t run,
                              vec<element>& to) {
    const std::size_t n = list.size(), middle = begin + run < n ? begin + run : n,
                      end = begin + 2 * run < n ? begin + 2 * run : n;
    std::size_t i = begin, j = middle;
    while (i < middle || j < end)
      to.push_back(j == end || (i < middle && !(list[j].of < list[i].of)) ? list[i++] : list[j++]);
  }
  static constexpr combiner combiner_of(std::uint64_t op) {
    for (auto each : {combiner::max, combiner::min, combiner::logical_and, combiner::logical_or})
      if (combining_op(each).id == op) return each;
    return combiner::add;  // of xor, too, 0 is nothing
  }
  constexpr element with_number(const operand_group& g, element number) {
    if (g.members.empty()) return number.known ? number : identity_of(combiner_of(g.op), g.type);
    if (number.known && number == identity_of(combiner_of(g.op), g.type)) number = {};
    if (!number.known) return made(g);
    const bool extreme = g.op == def<op::maximum>.id || g.op == def<op::minimum>.id;
    if (extreme && is_integer(g.type)) return bounded_by(g.op, g.type, made(g), number.number);
    if (extreme && g.members.size() == 1)
      if (element turned; is_turned_clamp(g, number, turned)) return turned;
    operand_group all = g;
    all.members.push_back(number);
    return made(all);
  }
  constexpr element made(const operand_group& g) {
    if (g.members.size() == 1) return g.members[0];
    drawing d(g.op);
    d.add(static_cast<int>(g.type)).add(std::uint64_t{0x9709});
    for (const element& each : g.members) d.add(each.of);
    groups_.add(d.drawn(), g);
    return unknown(g.type, d.drawn());
  }
  /// min(n, max(k, x)) = max(k, min(n, x)), where k <= n: the max stands outside.
  constexpr bool is_turned_clamp(const operand_group& g, const element& n, element& turned) {
    const operand_group* inner = groups_.find(g.members[0].of);
    if (g.op != def<op::minimum>.id || inner == nullptr || inner->op != def<op::maximum>.id ||
        !inner->members.back().known)
      return false;
    vec<element> rest = inner->members;
    const element k = rest.back();
    if (!(real_of(k) <= real_of(n))) return false;
    rest.pop_back();
    const element x = group(def<op::maximum>.id, g.type, rest);
    turned = group(def<op::maximum>.id, g.type, {group(g.op, g.type, {x, n}), k});
    return true;
  }

  // ---- Comparisons ----

  constexpr element ge_of(dtype t, const element& x, const element& y) {
    if (t == dtype::boolean) return either(x, negated(y));
    int left = most_pairs;
    return map(
        x,
        [&](const element& i) {
          return map(
              y, [&](const element& j) { return ge_plain(t, i, j); }, left);
        },
        left);
  }
  static constexpr int most_pairs = 512;
  /// Of what is no choice.
  constexpr element ge_plain(dtype t, const element& x, const element& y) {
    if (x.known && y.known) return integer(dtype::boolean, less(t, x, y) ? 0 : 1);
    if (x == y) return integer(dtype::boolean, 1);
    if (y.known && t != dtype::u64) return reaches(t, x, y.number);
    if (x.known && t != dtype::u64 && x.number < INT64_MAX)
      return negated(reaches(t, y, x.number + 1));
    const bounded *b = bounds_.find(x.of), *c = bounds_.find(y.of);
    if (b != nullptr && c != nullptr && b->whole == c->whole && b->is_whole() && c->is_whole())
      return integer(dtype::boolean, b->offset >= c->offset ? 1 : 0);
    return function(def<op::compare>.id, t, dtype::boolean, {x, y}, 5);
  }
  /// x >= n.
  constexpr element reaches(dtype t, const element& x, std::int64_t n) {
    if (x.known) return integer(dtype::boolean, x.number >= n ? 1 : 0);
    const bounded b = bounds_of(t, x);
    const checked at = checked(n) - b.offset;
    if (at.overflowed()) return integer(dtype::boolean, n < 0 ? 1 : 0);
    const std::int64_t k = at.value_or(0);
    if (k <= b.least) return integer(dtype::boolean, 1);
    if (k > b.greatest) return integer(dtype::boolean, 0);
    return choose({b.base, false}, {k}, {integer(dtype::boolean, 0), integer(dtype::boolean, 1)});
  }
  constexpr element eq_of(dtype t, const element& x, const element& y) {
    if (x.known && y.known) return integer(dtype::boolean, x.number == y.number ? 1 : 0);
    if (x == y) return integer(dtype::boolean, 1);
    if (t == dtype::boolean) return negated(select(x, negated(y), y));
    if (x.known) return eq_of(t, y, x);
    if (y.known) return map(x, [&](const element& i) { return is_number(t, i, y.number); });
    const bool turned = y.of < x.of;
    return function(def<op::compare>.id, t, dtype::boolean, {turned ? y : x, turned ? x : y}, 0);
  }
  constexpr element compare_reals(ops::direction how, dtype t, const element& x, const element& y) {
    if (x.known && y.known) return compare_numbers(how, real_of(x), real_of(y));
    if (has_numbers(x) && y.known)
      return map(x, [&](const element& i) { return compare_reals(how, t, i, y); });
    if (has_numbers(y) && x.known)
      return map(y, [&](const element& i) { return compare_reals(how, t, x, i); });
    const bool turned = how == ops::direction::eq && y.of < x.of;
    return function(def<op::compare>.id, t, dtype::boolean, {turned ? y : x, turned ? x : y},
                    static_cast<std::uint64_t>(how));
  }
  /// Is it a choice of numbers?
  constexpr bool has_numbers(const element& x) const {
    const choice* c = choice_of(x);
    if (c == nullptr) return false;
    for (const element& each : c->values)
      if (!each.known) return false;
    return true;
  }
  static constexpr element compare_numbers(ops::direction how, double x, double y) {
    const bool holds = how == ops::direction::eq   ? x == y
                       : how == ops::direction::lt ? x < y
                                                   : x <= y;
    return integer(dtype::boolean, holds ? 1 : 0);
  }
};

}  // namespace partita::prove_detail
