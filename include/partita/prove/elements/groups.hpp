/// max, min, and, or, xor of elements, in any order and grouping.
#pragma once

#include <partita/prove/elements/quotients.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::prove_detail {

/// The distinct operands of an associative and commutative op, by fingerprint.
struct operand_group {
  std::uint64_t op = 0;
  dtype type = dtype::f32;
  vec<element> members;
};

class group_algebra : public quotient_algebra {
 public:
  /// Combines all elements by the op of a combiner.
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
    if (is_integer(t) && is_extreme(g)) bound_members(g, number);
    if (is_extreme(g)) join_flags(g, number);
    sort(g);
    return with_number(g, number);
  }

 protected:
  static constexpr bool less(dtype t, const element& x, const element& y) {
    if (is_floating(t)) return real_of(x) < real_of(y);
    if (t != dtype::u64) return x.number < y.number;
    return static_cast<std::uint64_t>(x.number) < static_cast<std::uint64_t>(y.number);
  }

 private:
  facts<operand_group> groups_;

  /// Joins members that choose between the same two numbers, as converted flags do: their maximum
  /// is an `or`, their minimum an `and`.
  constexpr void join_flags(operand_group& g, element& number) {
    vec<element> flags, rest;
    for (const element& x : g.members) {
      vec<element> numbers;
      bool is_new = chooses_numbers(x, 2, numbers);
      if (!is_new) rest.push_back(x);
      for (std::size_t i = 0; i < flags.size() && is_new; ++i) {
        vec<element> both = numbers;
        is_new = !chooses_numbers(flags[i], 2, both);
        int left = most_splits;
        const auto join = [&](const element& a, const element& b) { return joined(g, a, b); };
        if (!is_new) flags[i] = map_pairs(flags[i], x, join, left);
      }
      if (is_new) flags.push_back(x);
    }
    g.members = static_cast<vec<element>&&>(rest);
    for (const element& each : flags)
      if (each.known)
        number = number.known ? joined(g, number, each) : each;
      else
        g.members.push_back(each);
  }

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
  static constexpr bool is_extreme(const operand_group& g) {
    return g.op == def<op::maximum>.id || g.op == def<op::minimum>.id;
  }
  /// A maximum is at least the lower bound of each member, so members matter only above the largest
  /// of these bounds (a minimum: below the smallest upper bound). Clamps the members to it.
  constexpr void bound_members(operand_group& g, element& number) {
    const bool most = g.op == def<op::maximum>.id;
    for (const element& each : g.members) {
      int left = most_splits;
      const interval in = range_of(g.type, each, left);
      const element bound = integer(g.type, most ? in.least : in.greatest);
      if (!has_place(g.type, bound.number)) continue;
      number = number.known ? joined(g, number, bound) : bound;
    }
    if (!number.known || !has_place(g.type, number.number)) return;
    if (number == identity_of(combiner_of(g.op), g.type)) return;
    const vec<element> members = static_cast<vec<element>&&>(g.members);
    g.members = {};
    for (const element& each : members)
      gather_members(g, bounded_by(g.op, g.type, each, number.number), number);
  }
  /// The range of a maximum or minimum of integers.
  constexpr interval range_of_members(const operand_group& g) {
    const bool most = g.op == def<op::maximum>.id;
    const auto join = [&](std::int64_t& x, std::int64_t y) { x = (x < y) == most ? y : x; };
    int left = most_splits;
    interval all = range_of(g.type, g.members[0], left);
    for (const element& each : g.members) {
      const interval in = range_of(g.type, each, left = most_splits);
      join(all.least, in.least);
      join(all.greatest, in.greatest);
    }
    return all;
  }
  /// True if x is the max (or min) of something and a number.
  constexpr bool is_clamped(const operand_group& g, const element& x, element& base,
                            element& bound) const {
    if (!is_extreme(g)) return false;
    const bool most = g.op == def<op::maximum>.id;
    const bounded* b = find_bounds(g.type, x);
    if (b == nullptr || b->offset != 0 || b->is_whole()) return false;
    if (most ? b->greatest < b->base_greatest : b->least > b->base_least) return false;
    if (!holds(g.type, {b->base_least, b->base_greatest})) return false;
    if (b->type != g.type && !(b->whole == b->base)) return false;
    base = formula(g.type, b->whole);
    bound = integer(g.type, most ? b->least : b->greatest);
    return true;
  }
  /// Combines two numbers.
  static constexpr element joined(const operand_group& g, const element& x, const element& y) {
    if (g.op == def<op::logical_and>.id) return integer(g.type, x.number & y.number);
    if (g.op == def<op::logical_or>.id) return integer(g.type, x.number | y.number);
    if (g.op == def<op::logical_xor>.id) return integer(g.type, x.number ^ y.number);
    if (is_floating(g.type) && !(real_of(x) == real_of(x))) return x;
    if (is_floating(g.type) && !(real_of(y) == real_of(y))) return y;
    return less(g.type, x, y) == (g.op == def<op::maximum>.id) ? y : x;
  }
  /// Sorts by fingerprint and removes duplicates; two equal operands of an xor cancel.
  static constexpr void sort(operand_group& g) {
    merge_sort(g.members, [](const element& x, const element& y) { return x.of < y.of; });
    vec<element> once;
    for (const element& each : g.members) {
      if (once.empty() || !(once.back() == each))
        once.push_back(each);
      else if (g.op == def<op::logical_xor>.id)
        once.pop_back();
    }
    g.members = once;
  }
  static constexpr combiner combiner_of(std::uint64_t op) {
    for (auto each : {combiner::max, combiner::min, combiner::logical_and, combiner::logical_or})
      if (combining_op(each).id == op) return each;
    return combiner::add;  // 0 is the identity of xor, too
  }
  constexpr element with_number(const operand_group& g, element number) {
    if (g.members.empty()) return number.known ? number : identity_of(combiner_of(g.op), g.type);
    if (number.known && number == identity_of(combiner_of(g.op), g.type)) number = {};
    if (!number.known) return made(g);
    if (is_extreme(g) && is_integer(g.type))
      return bounded_by(g.op, g.type, made(g), number.number);
    operand_group all = g;
    all.members.push_back(number);
    return made(all);
  }
  constexpr element made(const operand_group& g) {
    steps += static_cast<std::int64_t>(g.members.size());
    if (g.members.size() == 1) return g.members[0];
    drawing d(g.op);
    d.add(static_cast<int>(g.type)).add(std::uint64_t{0x9709});
    for (const element& each : g.members) d.add(each.of);
    if (log != nullptr) log->add(d.drawn(), {origin::function, op_name(g.op), {}, g.members});
    groups_.add(d.drawn(), g);
    return is_integer(g.type) && is_extreme(g)
               ? whole_number(g.type, d.drawn(), range_of_members(g))
               : unknown(g.type, d.drawn());
  }
};

}  // namespace partita::prove_detail
