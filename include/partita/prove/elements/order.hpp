/// Ops on complete lines of elements: sorting, extremes with positions, folds, matrices.
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
constexpr drawing drawing_of(const op_elements& c) {
  drawing d(c.def.id);
  for (const auto& t : c.types) d.add(static_cast<int>(t.element));
  return d;
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

/// Tuples of elements, in order.
class folded {
 public:
  constexpr folded(const op_elements& c, const op::fold::parts& p) : c_(c), p_(p) {
    drawing d = drawing_of(c);
    for (auto list : {p.identities, p.results, p.code})
      for (auto n : list) d.add(n);
    how_ = d.add(p.commutes ? 1 : 0).drawn();
  }
  /// Adds a tuple. A result of a fold of the same function is replaced by its operands.
  constexpr void add(const element* tuple) {
    const std::size_t n = c_.operands.size();
    c_.a.steps += static_cast<std::int64_t>(n);
    if (is_identity(tuple)) return;
    if (const collection* found = c_.a.collections.find(tuple[0].of); found != nullptr) {
      const collection of = *found;
      bool all = whole(of.members) == of.whole;
      for (std::size_t i = 0; i < n; ++i)
        all = all && tuple[i].of == collection::result(of.whole, static_cast<int>(i));
      if (all) return members_.insert_back(of.members.begin(), of.members.end());
    }
    members_.insert_back(tuple, tuple + n);
  }
  constexpr element result(int i) {
    const std::size_t n = c_.operands.size();
    if (members_.empty())
      return number_of_bits(c_.types[i].element, p_.identities[static_cast<std::size_t>(i)]);
    if (members_.size() == n) return members_[i];
    if (i == 0 && p_.commutes) sort();
    const fingerprint all = whole(members_), f = collection::result(all, i);
    if (i == 0) c_.a.collections.add(f, {all, members_});
    return c_.a.unknown(c_.made[i].element, f);
  }

 private:
  const op_elements& c_;
  const op::fold::parts& p_;
  fingerprint how_;
  vec<element> members_;

  constexpr fingerprint whole(const vec<element>& members) const {
    drawing d(0xf0);
    d.add(how_);
    for (const element& each : members) d.add(each.of);
    return d.drawn();
  }
  constexpr bool is_identity(const element* tuple) const {
    if (p_.identities.empty()) return false;
    for (std::size_t i = 0; i < c_.operands.size(); ++i)
      if (!(tuple[i] == number_of_bits(c_.types[i].element, p_.identities[i]))) return false;
    return true;
  }
  /// Sorts by fingerprint.
  constexpr void sort() {
    const std::size_t n = c_.operands.size();
    vec<std::size_t> order;
    for (std::size_t i = 0; i < members_.size(); i += n) order.push_back(i);
    merge_sort(order, [&](std::size_t a, std::size_t b) {
      std::size_t j = 0;
      while (j + 1 < n && members_[a + j] == members_[b + j]) ++j;
      return members_[a + j].of < members_[b + j].of;
    });
    vec<element> sorted;
    for (const std::size_t i : order)
      sorted.insert_back(members_.begin() + i, members_.begin() + i + n);
    members_ = static_cast<vec<element>&&>(sorted);
  }
};
constexpr void fold(const op_elements& c) {
  const op::fold::parts p(c.attrs, c.operands.size());
  const reduced_dims dims(c.shape_of(0), p.dims);
  for_each_place(c.made[0].shape, [&](const place& i, std::int64_t n) {
    folded all(c, p);
    for_each_place(dims.reduced, [&](const place& k, std::int64_t) {
      vec<element> tuple;
      for (std::size_t o = 0; o < c.operands.size(); ++o)
        tuple.push_back(c.read(static_cast<int>(o), dims.whole(i, k)));
      all.add(tuple.data());
    });
    for (std::size_t o = 0; o < c.operands.size(); ++o)
      c.results[o][n] = all.result(static_cast<int>(o));
  });
}

/// A random number for `count` elements of matrices.
constexpr fingerprint drawn_of(const element* first, std::int64_t count) {
  drawing d(0x3a);
  for (std::int64_t k = 0; k < count; ++k) d.add(first[k].of);
  return d.drawn();
}
/// Matrices in the last two dimensions; each result is a function of all elements.
constexpr void cholesky(const op_elements& c) {
  const shape& s = c.shape_of(0);
  const std::int64_t size = s[s.rank - 1] * s[s.rank - 2];
  fingerprint matrix;
  for_each_place(c.made[0].shape, [&](const place&, std::int64_t n) {
    if (n % size == 0) matrix = drawn_of(c.operands[0] + n, size);
    drawing d = drawing_of(c);
    d.add(c.attrs[0]).add(n % size).add(size).add(matrix);
    c.results[0][n] = formula(c.type(), d.drawn());
  });
  c.a.steps += c.made[0].shape.elements();
}
/// Each column (or row) separately.
constexpr void triangular_solve(const op_elements& c) {
  const shape &as = c.shape_of(0), &bs = c.shape_of(1);
  const int line = c.attrs[0] != 0 ? bs.rank - 2 : bs.rank - 1;
  const std::int64_t size = as[as.rank - 1] * as[as.rank - 2],
                     others = bs[bs.rank - 1] * bs[bs.rank - 2];
  fingerprint matrix;
  for_each_place(bs, [&](place i, std::int64_t n) {
    if (n % others == 0) matrix = drawn_of(c.operands[0] + n / others * size, size);
    if (i[line] > 0 || c.a.is_over()) return;
    drawing d = drawing_of(c);
    for (auto each : c.attrs) d.add(each);
    d.add(matrix).add(size);
    for (; i[line] < bs[line]; ++i[line]) d.add(c.read(1, i).of);
    for (i[line] = 0; i[line] < bs[line]; ++i[line]) {
      drawing of_line = d;
      c.results[0][number_of(i, bs)] = formula(c.type(), of_line.add(i[line]).drawn());
    }
    c.a.steps += bs[line];
  });
}

}  // namespace partita::prove_detail::elements
