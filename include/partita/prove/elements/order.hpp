/// Sorting, and extremes with positions.
#pragma once

#include <partita/prove/elements/sums.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::prove_detail::elements {

/// A line along one dimension.
template <class F>
constexpr void for_each_line(const shape& s, int dim, const F& f) {
  shape lines = s;
  lines[dim] = 1;
  for_each_place(lines, [&](const place& i, std::int64_t) { f(i); });
}
constexpr void sort(const op_elements& c) {
  const auto dim = static_cast<int>(c.attrs[0]);
  const std::int64_t n = c.shape_of(0)[dim];
  for_each_line(c.shape_of(0), dim, [&](place i) {
    drawing d = drawing_of(c);
    d.add(c.attrs[1]).add(c.attrs[2]);
    for (std::size_t k = 0; k < c.operands.size(); ++k)
      for (i[dim] = 0; i[dim] < n; ++i[dim]) d.add(c.read(static_cast<int>(k), i).of);
    const fingerprint line = d.drawn();
    for (std::size_t k = 0; k < c.operands.size(); ++k)
      for (i[dim] = 0; i[dim] < n; ++i[dim]) {
        const std::int64_t at = number_of(i, c.shape_of(0));
        c.results[k][at] =
            n == 1 ? c.operands[k][at]
                   : c.a.unknown(c.made[k].element,
                                 drawing(1).add(line).add(static_cast<int>(k)).add(i[dim]).drawn());
      }
  });
}

/// Pairs of a value and a position, sorted, with the first `wanted` ones as the result. Several
/// sets are merged into the set of all their pairs.
class ranked_pairs {
 public:
  constexpr ranked_pairs(const op_elements& c, std::uint64_t order, std::int64_t wanted)
      : c_(c),
        order_(drawing_of(c).add(order).drawn()),
        wanted_(wanted),
        least_first_(order == least_first),
        total_(order == of_top_k) {}
  static constexpr std::uint64_t of_top_k = 0, greatest_first = 1, least_first = 2;

  constexpr void add(const element& value, const element& position) {
    pairs_.push_back({value, position});
  }
  constexpr void rank() {
    for (std::size_t i = 0; i < pairs_.size() && !c_.a.is_over(); ++i)
      while (i < pairs_.size() && open(i)) {
      }
    c_.a.steps += static_cast<std::int64_t>(pairs_.size());
    if (order_numbers()) return;
    merge_sort(pairs_, [](const pair& x, const pair& y) { return x < y; });
    drawing d(0x9a);
    d.add(order_);
    for (const auto& p : pairs_) d.add(p.value.of).add(p.position.of);
    whole_ = d.drawn();
  }
  /// Element `k` of the result.
  constexpr element result(int which, int k) {
    if (in_order_) return which == 0 ? pairs_[k].value : pairs_[k].position;
    const int number = 2 * k + which;
    const fingerprint f = collection::result(whole_, number);
    if (number > 0) return c_.a.unknown(c_.made[which].element, f);
    collection made{whole_, {}};
    for (const auto& p : pairs_) {
      made.members.push_back(p.value);
      made.members.push_back(p.position);
    }
    c_.a.collections.add(f, static_cast<collection&&>(made));
    return c_.a.unknown(c_.made[which].element, f);
  }

 private:
  struct pair {
    element value, position;
    friend constexpr bool operator<(const pair& x, const pair& y) {
      return x.value == y.value ? x.position.of < y.position.of : x.value.of < y.value.of;
    }
  };
  const op_elements& c_;
  fingerprint order_, whole_;
  std::int64_t wanted_;
  vec<pair> pairs_;
  bool least_first_, total_, in_order_ = false;

  /// Orders a single pair, or numbers: among equal numbers the one with the smallest position is
  /// first. (0 and -0 are equal in argmax and argmin; of_top_k is a total order.)
  constexpr bool order_numbers() {
    const dtype t = c_.types[0].element, positions = c_.types[1].element;
    in_order_ = pairs_.size() == 1;
    if (in_order_ || !c_.a.at_numbers) return in_order_;  // (otherwise sets stay unordered)
    bool known = true;
    for (const pair& each : pairs_)
      known = known && each.value.known && each.position.known &&
              (!is_floating(t) || real_of(each.value) == real_of(each.value));
    const auto holds = [&](ops::direction how, dtype of, const element& x, const element& y) {
      const element is = c_.a.compare(how, of, x, y);
      known = known && is.known;
      return is.known && is.number != 0;
    };
    const auto first = least_first_ ? ops::direction::lt : ops::direction::gt;
    const auto is_positive = [&](const element& x) {
      return is_floating(t) && std::bit_cast<std::int64_t>(real_of(x)) >= 0;
    };
    if (!known) return false;
    vec<pair> sorted = pairs_;
    merge_sort(sorted, [&](const pair& x, const pair& y) {
      if (x.value != y.value && !holds(ops::direction::eq, t, x.value, y.value))
        return holds(first, t, x.value, y.value);
      if (total_ && is_positive(x.value) != is_positive(y.value)) return is_positive(x.value);
      return holds(ops::direction::lt, positions, x.position, y.position);
    });
    if (known) pairs_ = static_cast<vec<pair>&&>(sorted);
    return in_order_ = known;
  }

  constexpr int find(const fingerprint& whole, int k) const {
    c_.a.steps += static_cast<std::int64_t>(pairs_.size() / 8);  // as many are visited
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      if (pairs_[i].value.of == collection::result(whole, 2 * k) &&
          pairs_[i].position.of == collection::result(whole, 2 * k + 1))
        return static_cast<int>(i);
    return -1;
  }
  /// If pair `i` is the first of a set in the same order that contains as many pairs as can be
  /// requested, replaces it by all pairs of the set.
  constexpr bool open(std::size_t i) {
    const collection* found = c_.a.collections.find(pairs_[i].value.of);
    if (found == nullptr || find(found->whole, 0) < 0) return false;
    const collection of = *found;
    const auto size = static_cast<std::int64_t>(of.members.size() / 2);
    drawing d(0x9a);
    d.add(order_);
    for (const element& each : of.members) d.add(each.of);
    if (!(d.drawn() == of.whole)) return false;
    const std::int64_t needed = wanted_ < size ? wanted_ : size;
    for (int k = 0; k < needed; ++k)
      if (find(of.whole, k) < 0) return false;
    for (int k = 0; k < size; ++k) remove(of.whole, k);
    for (std::size_t k = 0; k < of.members.size(); k += 2) add(of.members[k], of.members[k + 1]);
    return true;
  }
  /// Removes a duplicate, or all of them: repeated pairs do not matter for the first one.
  constexpr void remove(const fingerprint& whole, int k) {
    for (int at = find(whole, k); at >= 0; at = wanted_ == 1 ? find(whole, k) : -1) {
      pairs_[at] = pairs_.back();
      pairs_.pop_back();
    }
  }
};
constexpr void top_k(const op_elements& c) {
  const int dim = c.shape_of(0).rank - 1;
  for_each_line(c.shape_of(0), dim, [&](place i) {
    ranked_pairs all(c, ranked_pairs::of_top_k, c.attrs[0]);
    for (i[dim] = 0; i[dim] < c.shape_of(0)[dim]; ++i[dim]) all.add(c.read(0, i), c.read(1, i));
    all.rank();
    for (i[dim] = 0; i[dim] < c.attrs[0]; ++i[dim])
      for (int which = 0; which < 2; ++which)
        c.results[which][number_of(i, c.made[0].shape)] =
            all.result(which, static_cast<int>(i[dim]));
  });
}
constexpr void extreme(const op_elements& c) {
  const reduced_dims dims(c.shape_of(0), c.attrs.subspan(1));
  const bool greatest = c.attrs[0] == static_cast<int>(ops::extreme::argmax);
  for_each_place(c.made[0].shape, [&](const place& i, std::int64_t n) {
    ranked_pairs all(c, greatest ? ranked_pairs::greatest_first : ranked_pairs::least_first, 1);
    for_each_place(dims.reduced, [&](const place& k, std::int64_t) {
      const place x = dims.whole(i, k);
      all.add(c.read(0, x), c.read(1, x));
    });
    all.rank();
    const bool none = dims.reduced.has_no_elements();
    const element nothing[] = {
        identity_of(greatest ? combiner::max : combiner::min, c.types[0].element),
        small_number(c.types[1].element, 0)};
    for (int which = 0; which < 2; ++which)
      c.results[which][n] = none ? nothing[which] : all.result(which, 0);
  });
}

}  // namespace partita::prove_detail::elements
