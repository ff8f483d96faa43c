/// Atoms: the few indices that stand for all indices of a class, and how often each counts.
#pragma once

#include <partita/prove/elements/exchange.hpp>
#include <partita/prove/shrink/index_classes.hpp>

namespace partita::prove_detail {

/// A class of digits. Its `atoms` indices have random weights with the sum `size`; a class that is
/// kept has all its indices, each of weight 1.
struct index_class {
  std::int64_t size = 1, atoms = 1;
  bool rigid = false;
  int needed = 1;  ///< the number of atoms that the proof needs; see README.md

  constexpr bool is_kept() const { return atoms == size; }
};

/// A part of a program's indices: a dimension, or axes, as classes of digits, major to minor.
using digit_list = span<const int>;

/// The sizes of both programs after shrinking.
class atom_table {
 public:
  vec<index_class> classes;

  constexpr explicit atom_table(const index_classes& all) : forest_(all.forest), axes_(all.axes) {
    first_.resize(static_cast<std::size_t>(forest_.count()), -1);
    vec<int> number(static_cast<std::size_t>(forest_.count()), -1), digits;
    for (int node = 0; node < forest_.count(); ++node) {
      const int root = forest_.root(node);
      if (first_[root] >= 0) continue;
      digits.clear();
      forest_.append_digits(root, digits);
      first_[root] = static_cast<int>(list_.size());
      list_.push_back(static_cast<int>(digits.size()));
      for (const int each : digits) {
        if (number[each] < 0) {
          number[each] = static_cast<int>(classes.size());
          const std::int64_t size = forest_.size(each);
          classes.push_back({size, 1, size < 2 || forest_.is_rigid(each)});
        }
        list_.push_back(number[each]);
      }
    }
  }
  /// Sets the numbers of atoms. False if they need not change.
  constexpr bool resize() {
    bool changes = false;
    for (index_class& c : classes) {
      const std::int64_t atoms = c.rigid || c.needed >= c.size ? c.size : c.needed;
      changes = changes || atoms != c.atoms;
      c.atoms = atoms;
    }
    return changes;
  }
  constexpr digit_list of_axis(int axis) const { return of(axes_[axis]); }
  /// The digits of a node of the forest; none for a single position.
  constexpr digit_list of(int node) const {
    if (node < 0) return {};
    const int at = first_[forest_.root(node)];
    return {list_.data() + at + 1, static_cast<std::size_t>(list_[at])};
  }
  constexpr std::int64_t extent(digit_list l) const {
    std::int64_t n = 1;
    for (const int c : l) n *= classes[c].atoms;
    return n;
  }
  constexpr std::int64_t whole(digit_list l) const {
    std::int64_t n = 1;
    for (const int c : l) n *= classes[c].size;
    return n;
  }
  constexpr bool is_kept(digit_list l) const {
    for (const int c : l)
      if (!classes[c].is_kept()) return false;
    return true;
  }
  /// Index `i` of a list of digits as one of each digit: `f(class, atom)`, minor to major.
  template <class F>
  constexpr void for_each_digit(digit_list l, std::int64_t i, const F& f) const {
    for (std::size_t k = l.size(); k-- > 0; i /= classes[l[k]].atoms)
      f(l[k], i % classes[l[k]].atoms);
  }
  constexpr fingerprint weight(digit_list l, std::int64_t i) const {
    fingerprint w{1, 1};
    for_each_digit(l, i, [&](int c, std::int64_t a) { w = field::product(w, weight(c, a)); });
    return w;
  }
  /// A sum over the atoms that an index of a list has, of classes that are not kept.
  constexpr fingerprint tag(digit_list l, std::int64_t i) const {
    fingerprint t;
    for_each_digit(l, i, [&](int c, std::int64_t a) {
      if (!classes[c].is_kept()) t = field::sum(t, drawing(0x7a9).add(c).add(a).drawn());
    });
    return t;
  }
  /// The position of index `i`, times `distance`: a number if all digits are kept;
  /// otherwise an unknown number, the sum of one per digit.
  constexpr element position(algebra& a, dtype t, digit_list l, std::int64_t i,
                             std::int64_t distance = 1) const {
    fingerprint f;
    std::int64_t step = distance, number = 0;
    const std::int64_t last = saturating_multiply(whole(l) - 1, distance);
    for_each_digit(l, i, [&](int c, std::int64_t atom) {
      const bool kept = classes[c].is_kept();
      const fingerprint at = kept ? field::integer(atom) : drawing(0x905).add(c).add(atom).drawn();
      f = field::sum(f, field::product(at, field::integer(step)));
      if (kept) number += atom * step;
      step *= classes[c].size;
    });
    if (is_kept(l)) return integer(t, number);
    if (last > op::greatest_integer(t))  // it wraps
      return a.unknown(t, drawing(0x906).add(static_cast<int>(t)).add(f).drawn());
    return a.whole_number(t, f, {0, last});
  }

 private:
  const digit_forest& forest_;
  vec<int> axes_;
  vec<int> first_;  ///< by root of the forest: the place of its digits in `list_`
  vec<int> list_;   ///< numbers of digits, each followed by their classes

  constexpr fingerprint weight(int c, std::int64_t atom) const {
    const index_class& each = classes[c];
    if (each.is_kept()) return {1, 1};
    const auto drawn = [&](std::int64_t k) { return drawing(0x3e1).add(c).add(k).drawn(); };
    if (atom + 1 < each.atoms) return drawn(atom);
    fingerprint rest = field::integer(each.size);
    for (std::int64_t k = 0; k + 1 < each.atoms; ++k) rest = field::difference(rest, drawn(k));
    return rest;
  }
};

}  // namespace partita::prove_detail
