/// Choices of elements, by flags or by the range of an index: decision diagrams.
#pragma once

#include <cstdint>

#include <partita/prove/elements/origins.hpp>

namespace partita::prove_detail {

/// The condition of a choice: a flag, or the range of an integer.
struct decider {
  fingerprint of;
  bool is_flag = false;

  friend constexpr bool operator==(const decider&, const decider&) = default;
  /// The formula of "the decider is at least `from`".
  constexpr fingerprint reaches(std::int64_t from) const {
    return is_flag ? of : drawing(0x7ea).add(of).add(from).drawn();
  }
  /// One of 64 bits for this decider.
  constexpr std::uint64_t bit() const { return std::uint64_t{1} << (of.a & 63); }
};

/// A decision diagram: values[0] below from[0], values[1] from there to below from[1], ...
struct choice {
  decider by;
  vec<std::int64_t> from;
  vec<element> values;
  std::uint64_t mentions = 0;  ///< bits of all deciders in it

  /// values[i] is chosen from `low(i)` to below `high(i)`.
  constexpr std::int64_t low(std::size_t i) const { return i == 0 ? INT64_MIN : from[i - 1]; }
  constexpr std::int64_t high(std::size_t i) const { return i < from.size() ? from[i] : INT64_MAX; }
};

/// Choices between elements, where choices by the same flag or index are merged.
class choice_algebra {
 public:
  std::int64_t steps = 0;  ///< number of steps
  std::int64_t most_steps = INT64_MAX;
  bool cut_short = false;        ///< true if some choices were too large to normalize
  formula_words* log = nullptr;  ///< if set, it records the origins of formulas
  bool at_numbers = false;       ///< true if inputs, and results of functions, are numbers

  constexpr bool is_over() const { return steps > most_steps; }

  /// Chooses among `values` by the range of the decider. Equal neighbours are joined; nested
  /// choices by the same decider are merged.
  constexpr element choose(const decider& by, const vec<std::int64_t>& from,
                           const vec<element>& values) {
    int left = most_splits;
    return choose(by, from, values, left);
  }
  /// `left`: the number of choices that may still be visited; the others stay unchanged.
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
  /// An unknown flag.
  constexpr element flag(const fingerprint& of) {
    const decider by{of, true};
    if (choices_of(dtype::boolean).find(of) != nullptr) return formula(dtype::boolean, of);
    steps += 4;  // (as much memory as four other formulas)
    choice c{by, {1}, {integer(dtype::boolean, 0), integer(dtype::boolean, 1)}, by.bit()};
    choices_of(dtype::boolean).add(of, static_cast<choice&&>(c));
    return formula(dtype::boolean, of);
  }
  /// f(x); for a choice, f is applied to each value. The argument of f is then never a choice
  /// unless it is too large.
  template <class F>
  constexpr element map(const element& x, const F& f) {
    int left = most_splits;
    return map(x, f, left);
  }

 protected:
  static constexpr int most_splits = 512;

  /// Counts a choice. False if the limit is reached.
  constexpr bool goes_on(int& left) {
    if (--left > 0) return true;
    cut_short = true;
    return false;
  }

  /// Appends the value for deciders in [low, high).
  constexpr void append(choice& c, std::int64_t low, std::int64_t high, const element& v,
                        int& left) {
    vec<std::int64_t> from;
    find_places(v, c.by, low, high, from, left);
    for (std::size_t i = 0; i <= from.size(); ++i) {
      const std::int64_t begin = i == 0 ? low : from[i - 1], end = i < from.size() ? from[i] : high;
      put(c, begin, restricted(v, c.by, begin, end, left));
    }
  }
  /// The points between `low` and `high`, in order, where x changes with a decider.
  constexpr void find_places(const element& x, const decider& by, std::int64_t low,
                             std::int64_t high, vec<std::int64_t>& from, int& left) {
    const choice* c = choice_of(x);
    if (c == nullptr || (c->mentions & by.bit()) == 0 || !goes_on(left)) return;
    if (c->by == by)
      for (const std::int64_t at : c->from)
        if (at > low && lies_below(at, high)) insert(from, at);
    for (const element& each : c->values) find_places(each, by, low, high, from, left);
  }
  /// (INT64_MAX: the interval is unbounded.)
  static constexpr bool lies_below(std::int64_t at, std::int64_t high) {
    return at < high || high == INT64_MAX;
  }
  static constexpr void insert(vec<std::int64_t>& sorted, std::int64_t n) {
    std::size_t at = sorted.size();
    while (at > 0 && sorted[at - 1] > n) --at;
    if (at > 0 && sorted[at - 1] == n) return;
    sorted.push_back(n);
    for (std::size_t i = sorted.size() - 1; i > at; --i) {
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
    if (log != nullptr) log->add(f, {origin::function, "choose", {}, c.values});
    const dtype t = c.values[0].type;
    choices_of(t).add(f, c);
    return formula(t, f);
  }
  constexpr const choice* choice_of(const element& x) const {
    return x.known ? nullptr : choices_[static_cast<std::size_t>(x.type)].find(x.of);
  }
  /// x, given that the decider is in [low, high).
  constexpr element restricted(const element& x, const decider& by, std::int64_t low,
                               std::int64_t high, int& left) {
    const choice* found = choice_of(x);
    if (found == nullptr || (found->mentions & by.bit()) == 0 || !goes_on(left)) return x;
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
    if (found == nullptr || !goes_on(left)) return mixed(flag, x, y);
    const choice c = *found;
    vec<element> values;
    for (std::size_t i = 0; i < c.values.size(); ++i)
      values.push_back(select(c.values[i], restricted(x, c.by, c.low(i), c.high(i), left),
                              restricted(y, c.by, c.low(i), c.high(i), left), left));
    return choose(c.by, c.from, values, left);
  }
  constexpr element mixed(const element& flag, const element& x, const element& y) {
    const fingerprint f = field::sum(y.of, field::product(flag.of, field::difference(x.of, y.of)));
    if (log != nullptr) log->add(f, {origin::function, "select", {}, {flag, x, y}});
    return formula(x.type, f);
  }
  template <class F>
  constexpr element map(const element& x, const F& f, int& left) {
    const choice* found = choice_of(x);
    if (found == nullptr || !goes_on(left)) return f(x);
    const choice c = *found;
    vec<element> values;
    for (const element& each : c.values) values.push_back(map(each, f, left));
    return choose(c.by, c.from, values, left);
  }
  /// f(x, y), applied to each pair of values that are chosen together.
  template <class F>
  constexpr element map_pairs(const element& x, const element& y, const F& f, int& left) {
    const choice* found = choice_of(x);
    if (found == nullptr || !goes_on(left))
      return map(
          y, [&](const element& j) { return f(x, j); }, left);
    const choice c = *found;
    vec<element> values;
    for (std::size_t i = 0; i < c.values.size(); ++i)
      values.push_back(
          map_pairs(c.values[i], restricted(y, c.by, c.low(i), c.high(i), left), f, left));
    return choose(c.by, c.from, values, left);
  }
  /// True if both are choices, by some common decider.
  constexpr bool choose_together(const element& x, const element& y) const {
    const choice *c = choice_of(x), *d = choice_of(y);
    return c != nullptr && d != nullptr && (c->mentions & d->mentions) != 0;
  }
  /// True if x is a choice among at most `most` distinct numbers. Collects these numbers.
  constexpr bool chooses_numbers(const element& x, std::size_t most, vec<element>& numbers) const {
    const choice* c = choice_of(x);
    if (c == nullptr) return false;
    for (const element& each : c->values) {
      bool is_new = each.known;
      for (const element& other : numbers) is_new = is_new && !(other == each);
      if (is_new) numbers.push_back(each);
      if (numbers.size() > most || (!each.known && !chooses_numbers(each, most, numbers)))
        return false;
    }
    return true;
  }

 private:
  facts<choice> choices_[dtype_count];

  constexpr facts<choice>& choices_of(dtype t) { return choices_[static_cast<std::size_t>(t)]; }
};

}  // namespace partita::prove_detail
