/// Reductions by functions of users.
#pragma once

#include <partita/prove/elements/sums.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::prove_detail::elements {

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

}  // namespace partita::prove_detail::elements
