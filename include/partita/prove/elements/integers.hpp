/// Integers that are shifted, clamped, compared with numbers, or used as positions.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/prove/elements/choices.hpp>

namespace partita::prove_detail {

constexpr std::int64_t wrapped_sum(std::int64_t x, std::int64_t y) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
}
constexpr std::int64_t negative(std::int64_t n) {
  return static_cast<std::int64_t>(std::uint64_t{0} - static_cast<std::uint64_t>(n));
}

/// The range of an integer, with both ends. (Values of u64 that an int64 cannot hold count as its
/// maximum.)
struct interval {
  std::int64_t least = 0, greatest = 0;

  static constexpr interval of(dtype t) { return {op::least_integer(t), op::greatest_integer(t)}; }
};
/// An integer of the form min(max(base, least), greatest) + offset, without overflow. The base is
/// between base_least and base_greatest, and equals `whole` if it is not clamped.
struct bounded {
  fingerprint base, whole;
  std::int64_t base_least = 0, base_greatest = 0;
  std::int64_t least = 0, greatest = 0, offset = 0;
  dtype type = dtype::i32;  ///< the type in which the whole, possibly a wrapped sum, has this value

  constexpr bool is_whole() const { return least <= base_least && greatest >= base_greatest; }
  /// The range of values. (For 64 bits, sums with the offset wrap.)
  constexpr interval range() const {
    return {wrapped_sum(least, offset), wrapped_sum(greatest, offset)};
  }
  /// The number of the base at which the integer, unless it is clamped there, is n.
  constexpr std::int64_t base_at(std::int64_t n) const { return wrapped_sum(n, negative(offset)); }
  constexpr fingerprint of() const {
    const fingerprint clamped =
        is_whole() ? whole : drawing(0xb0).add(base).add(least).add(greatest).drawn();
    return field::sum(clamped, field::integer(offset));
  }
};

/// True if all integers of an interval, of whatever type, are integers of a type. (An interval that
/// ends at the maximum of int64 may continue, as for u64.)
constexpr bool holds(dtype t, const interval& in) {
  const interval of_type = interval::of(t);
  const bool may_go_on = in.greatest == INT64_MAX && in.least >= 0;
  return in.least >= of_type.least && in.greatest <= of_type.greatest &&
         (t == dtype::u64 || !may_go_on);
}

/// An integer that is another one plus a number, with wraparound. (The other one may have another
/// type with the same number of bits.)
struct shifted {
  dtype type = dtype::i32;
  element base;
  std::int64_t by = 0;
};

/// Integers in a form where shifts, clamps and comparisons make the same choices as the integer
/// itself.
class integer_algebra : public choice_algebra {
 public:
  /// An integer that is unknown except for its range.
  constexpr element whole_number(dtype t, const fingerprint& of, const interval& in) {
    bounds_of(t).add(of, {of, of, in.least, in.greatest, in.least, in.greatest, 0});
    return formula(t, of);
  }
  constexpr element unknown(dtype t, const fingerprint& of) {
    if (t == dtype::boolean) return flag(of);
    return is_integer(t) ? whole_number(t, of, interval::of(t)) : formula(t, of);
  }
  /// The result of an unknown function: equal arguments give equal results.
  constexpr element function(std::uint64_t op, dtype from, dtype to, const vec<element>& operands,
                             std::uint64_t more = 0) {
    drawing d(op);
    d.add(static_cast<int>(from)).add(static_cast<int>(to)).add(more);
    for (const element& each : operands) d.add(each.of);
    if (log != nullptr) log->add(d.drawn(), {origin::function, op_name(op), {}, operands});
    return unknown(to, d.drawn());
  }

  /// The element that an index names among `count` elements, clamped to valid ones; `at(i)` returns
  /// them.
  template <class At>
  constexpr element look_up(dtype t, const element& index, std::int64_t count, const At& at) {
    return map_integer(t, index, [&](const element& i) { return look_up_plain(t, i, count, at); });
  }

 protected:
  facts<shifted> shifts_;

  /// The known range of an integer in a type in which it does not wrap.
  constexpr const bounded* find_bounds(dtype t, const element& x) const {
    return bounds_[static_cast<std::size_t>(t)].find(x.of);
  }
  constexpr facts<bounded>& bounds_of(dtype t) { return bounds_[static_cast<std::size_t>(t)]; }

  /// True if bounds are meaningful on both sides of a number.
  static constexpr bool has_place(dtype t, std::int64_t n) {
    return t != dtype::u64 || (n >= 0 && n < INT64_MAX);
  }

  template <class At>
  constexpr element look_up_plain(dtype t, const element& i, std::int64_t count, const At& at) {
    const std::int64_t last = count - 1;
    if (i.known) return at(inside(t, i.number, last));
    const bounded b = bounds_of(t, i);
    const std::int64_t first = inside(t, b.range().least, last),
                       end = inside(t, b.range().greatest, last);
    vec<std::int64_t> from;
    vec<element> values{at(first)};
    for (std::int64_t k = first + 1; k <= end; ++k) {
      from.push_back(b.base_at(k));
      values.push_back(at(k));
    }
    return choose({b.base, false}, from, values);
  }
  static constexpr std::int64_t inside(dtype t, std::int64_t i, std::int64_t last) {
    if (t == dtype::u64 && i < 0) return last;
    return i < 0 ? 0 : i > last ? last : i;
  }

  constexpr bounded bounds_of(dtype t, const element& x) const {
    if (const bounded* b = find_bounds(t, x)) return *b;
    const std::int64_t least = op::least_integer(t), greatest = op::greatest_integer(t);
    return {own_base(t, x.of), x.of, least, greatest, least, greatest, 0, t};
  }
  static constexpr fingerprint own_base(dtype t, const fingerprint& x) {
    return drawing(0x1b).add(static_cast<int>(t)).add(x).drawn();
  }
  /// f(x), applied to each value of a choice. A sum that may wrap, clamped or not, is a choice by
  /// its base: it wraps at certain numbers.
  template <class F>
  constexpr element map_integer(dtype t, const element& x, const F& f) {
    int left = most_splits;
    const auto each = [&](const element& i) {
      const bounded b = bounds_of(t, i);
      const shifted* found = i.known ? nullptr : shifts_.find(b.whole);
      if (found == nullptr || b.base != own_base(b.type, b.whole) || !may_split(b, *found))
        return f(i);
      const shifted s = *found;
      return map(
          s.base, [&](const element& base) { return map_wrapped(t, b, s, base, f); }, left);
    };
    return map(x, each, left);
  }
  /// The range of x. `left`: the number of choices whose values may still be visited.
  constexpr interval range_of(dtype t, const element& x, int& left) {
    if (x.known) {
      const std::int64_t n = t == dtype::u64 && x.number < 0 ? INT64_MAX : x.number;
      return {n, n};
    }
    const choice* c = choice_of(x);
    if (c == nullptr) {
      return bounds_of(t, x).range();
    }
    if (--left <= 0) return interval::of(t);
    steps += static_cast<std::int64_t>(c->values.size());
    interval all = range_of(t, c->values[0], left);
    for (std::size_t i = 1; i < c->values.size(); ++i) {
      const interval each = range_of(t, c->values[i], left);
      if (each.least < all.least) all.least = each.least;
      if (each.greatest > all.greatest) all.greatest = each.greatest;
    }
    return all;
  }
  constexpr element with_bounds(dtype t, const bounded& b) {
    if (b.least == b.greatest && has_place(t, b.range().least)) return integer(t, b.range().least);
    // (The whole may be a sum that wraps.)
    if (!b.is_whole() || b.offset != 0) bounds_of(t).add(b.of(), b);
    return formula(t, b.of());
  }
  /// Resolves the integer that the base is itself a shift of, so that shifts form no cycles.
  constexpr shifted root_of(shifted s) const {
    for (;;) {
      const shifted* base = shifts_.find(s.base.of);
      if (base == nullptr || base->type != s.type) return s;
      s = {s.type, base->base, wrapped_sum(base->by, s.by)};
    }
  }
  /// Records x + n, whose range is known unless it overflows.
  constexpr void note_shift(dtype t, const element& x, const element& n) {
    const bounded* found = find_bounds(t, x);
    const shifted s = root_of({t, x, n.number});
    const fingerprint of = field::sum(x.of, n.of);
    if (!(s.base.of == of)) shifts_.add(of, s);
    if (found == nullptr || t == dtype::u64) return;
    bounded b = *found;
    const checked low = checked(b.least) + b.offset + n.number,
                  high = checked(b.greatest) + b.offset + n.number,
                  offset = checked(b.offset) + n.number;
    if (low.overflowed() || high.overflowed() || offset.overflowed()) return;
    if (low.value_or(0) < op::least_integer(t) || high.value_or(0) > op::greatest_integer(t))
      return;
    b.offset = offset.value_or(0);
    bounds_of(t).add(of, b);
  }
  /// x = n. (x may be a sum that wraps.)
  constexpr element is_number(dtype t, const element& x, std::int64_t n) {
    if (x.known) return integer(dtype::boolean, x.number == n ? 1 : 0);
    if (const shifted* s = shifts_.find(x.of);
        s != nullptr && s->type == t && find_bounds(t, x) == nullptr) {
      const element base = s->base;
      const std::int64_t at = wrapped(base.type, wrapped_sum(n, negative(s->by)));
      return map(base, [&](const element& i) { return is_number(base.type, i, at); });
    }
    if (!has_place(t, n))
      return function(def<op::compare>.id, t, dtype::boolean, {x, integer(t, n)}, 0);
    const element above = n == INT64_MAX ? integer(dtype::boolean, 0) : reaches(t, x, n + 1);
    return both(reaches(t, x, n), negated(above));
  }
  /// max or min of an integer and a number.
  constexpr element bounded_by(std::uint64_t op, dtype t, const element& x, std::int64_t n) {
    if (!has_place(t, n)) return function(op, t, t, {x, integer(t, n)});
    return map(x, [&](const element& i) {
      const bool greater = i.number > n || (t == dtype::u64 && i.number < 0);
      if (i.known) return integer(t, (op == def<op::maximum>.id) == greater ? i.number : n);
      return clamped(op, t, bounds_of(t, i), n);
    });
  }
  constexpr element clamped(std::uint64_t op, dtype t, bounded b, std::int64_t n) {
    const interval in = b.range();
    const bool most = op == def<op::maximum>.id;
    if (most ? n > in.greatest : n < in.least) return integer(t, n);
    if (most ? n > in.least : n < in.greatest) (most ? b.least : b.greatest) = b.base_at(n);
    return with_bounds(t, b);
  }
  /// x >= n.
  constexpr element reaches(dtype t, const element& x, std::int64_t n) {
    const element no = integer(dtype::boolean, 0), yes = integer(dtype::boolean, 1);
    return map_integer(t, x, [&](const element& i) {
      if (i.known) return i.number >= n ? yes : no;
      const bounded b = bounds_of(t, i);
      if (n <= b.range().least) return yes;
      if (n > b.range().greatest) return no;
      return choose({b.base, false}, {b.base_at(n)}, {no, yes});
    });
  }

 private:
  facts<bounded> bounds_[dtype_count];

  /// (The deciders of u64 know only a part of its numbers.)
  static constexpr bool may_split(const bounded& b, const shifted& s) {
    return s.type == b.type && b.type != dtype::u64 && s.base.type != dtype::u64;
  }
  /// f(clamped(base + by) + offset), where the sum wraps above or below some values of the base.
  template <class F>
  constexpr element map_wrapped(dtype t, const bounded& b, const shifted& s, const element& base,
                                const F& f) {
    using wide = __int128;
    const bounded of = bounds_of(s.base.type, base);
    const interval in = interval::of(s.type),
                   have = base.known ? interval{base.number, base.number} : of.range();
    vec<std::int64_t> from;
    vec<element> values;
    for (int k = 1; k >= -1; --k) {
      const wide by = wrapped(s.type, s.by) + (wide{k} << 8 * static_cast<int>(size_of(s.type)));
      const wide low = in.least - by > have.least ? in.least - by : wide{have.least},
                 high = in.greatest - by < have.greatest ? in.greatest - by : wide{have.greatest};
      if (low > high) continue;
      element part;
      if (high + by <= b.least) {
        part = integer(t, wrapped_sum(b.least, b.offset));
      } else if (low + by >= b.greatest) {
        part = integer(t, wrapped_sum(b.greatest, b.offset));
      } else if (base.known) {
        part = integer(t, static_cast<std::int64_t>(low + by + b.offset));
      } else {
        bounded p = of;
        const wide least = b.least - by, greatest = b.greatest - by;
        p.least = of.base_at(static_cast<std::int64_t>(least > low ? least : low));
        p.greatest = of.base_at(static_cast<std::int64_t>(greatest < high ? greatest : high));
        p.offset = static_cast<std::int64_t>(by + of.offset + b.offset);
        part = with_bounds(t, p);
      }
      if (!values.empty()) from.push_back(of.base_at(static_cast<std::int64_t>(low)));
      values.push_back(f(part));
    }
    return choose({of.base, false}, from, values);
  }
};

}  // namespace partita::prove_detail
