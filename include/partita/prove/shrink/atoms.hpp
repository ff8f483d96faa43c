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

  constexpr explicit atom_table(const index_classes& all) {
    number_.resize(static_cast<std::size_t>(all.forest.count()), -1);
    add(all, all.of_source.nodes, source_);
    add(all, all.of_local.nodes, local_);
    add(all, all.axes, axes_);
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
  constexpr digit_list of_axis(int axis) const { return axes_.at(axis); }
  constexpr digit_list of_dim(bool in_source, int place) const {
    return (in_source ? source_ : local_).at(place);
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
  struct digit_lists {
    vec<int> first{0};  ///< by place, and one more
    vec<int> list;

    constexpr digit_list at(int i) const {
      return {list.data() + first[i], static_cast<std::size_t>(first[i + 1] - first[i])};
    }
  };
  vec<int> number_;  ///< of the class, by node
  digit_lists source_, local_, axes_;

  constexpr void add(const index_classes& all, const vec<int>& nodes, digit_lists& to) {
    for (const int n : nodes) {
      vec<int> digits;
      all.forest.append_digits(n, digits);
      for (const int each : digits) {
        if (number_[each] < 0) {
          number_[each] = static_cast<int>(classes.size());
          const std::int64_t size = all.forest.size(each);
          classes.push_back({size, 1, size < 2 || all.forest.is_rigid(each)});
        }
        to.list.push_back(number_[each]);
      }
      to.first.push_back(static_cast<int>(to.list.size()));
    }
  }
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

/// The mesh and the types of a program after shrinking, with the attributes that name positions.
constexpr mesh shrunk(const mesh& m, const atom_table& atoms) {
  mesh small = m;
  for (int a = 0; a < m.rank; ++a) small.axes[a].size = atoms.extent(atoms.of_axis(a));
  return small;
}
constexpr program shrunk(const program& p, const program_digits& of, bool in_source,
                         const atom_table& atoms) {
  program small = p;
  for (value_id v = 0; v < p.value_count(); ++v)
    for (int d = 0; d < p.type(v).shape.rank; ++d)
      small.types[v].shape[d] = atoms.extent(atoms.of_dim(in_source, of.first[v] + d));
  for (op_id o = 0; o < p.op_count(); ++o) {
    const bool slices = p.op(o).def->id == def<op::slice>.id;
    if (!slices && p.op(o).def->id != def<op::pad>.id) continue;
    std::int64_t* const attrs = small.attr_list.data() + p.op(o).attr_begin;
    const int rank = p.type(p.op(o).result).shape.rank;
    for (int d = 0; d < rank; ++d) {
      const std::int64_t blocks =
          p.type(p.op(o).result).shape[d] / index_classes::block_of(p, o, d);
      const std::int64_t from = index_classes::block_of(p, o, d),
                         to = blocks == 0 ? 1 : small.type(p.op(o).result).shape[d] / blocks;
      for (const int each : {d, rank + d})
        if (attrs[each] != ops::whole) attrs[each] = attrs[each] / from * to;
    }
  }
  return small;
}

}  // namespace partita::prove_detail
