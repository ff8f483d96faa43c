/// The indices that a value depends on, and the number of indices that its formulas bind.
#pragma once

#include <partita/prove/shrink/atoms.hpp>

namespace partita::prove_detail {

/// A multiset of classes, sorted.
class index_list {
 public:
  constexpr bool empty() const { return list_.empty(); }
  constexpr const int* begin() const { return list_.begin(); }
  constexpr const int* end() const { return list_.end(); }
  constexpr int count(int c) const {
    int n = 0;
    for (const int each : list_) n += each == c;
    return n;
  }
  constexpr void add(int c) {
    std::size_t at = list_.size();
    while (at > 0 && list_[at - 1] > c) --at;
    list_.insert_at(at, c);
  }
  /// Adds the classes of another list, or for each class takes the larger number of the two.
  constexpr void join(const index_list& other, bool adds) {
    int before = -1, seen = 0, mine = 0;
    for (const int c : vec<int>(other.list_)) {
      if (c != before) mine = count(c);
      seen = c == before ? seen + 1 : 1;
      before = c;
      if (adds || seen > mine) add(c);
    }
  }
  constexpr void clear() { list_.clear(); }

 private:
  vec<int> list_;
};

/// The indices of a value. Each of its elements is a polynomial in the weights of the classes; each
/// sum binds an index, and adds one to the degree. Values without bound indices consist of
/// variables (inputs, results of functions, cut points).
struct dependence {
  unsigned dims = 0;  ///< dimensions along which elements may differ, as bits
  axis_set axes;      ///< axes along which devices may differ
  index_list bound;   ///< the most indices that an element binds, of classes that are not kept
  /// If not `stack`, the indices are bound by this maximum or minimum.
  combiner extreme = combiner::stack;

  constexpr bool binds() const { return !bound.empty(); }
  constexpr bool has(int dim) const { return (dims >> dim & 1u) != 0; }
  constexpr void release() {
    bound.clear();
    extreme = combiner::stack;
  }
};

/// Follows dependences through the ops of one program.
class dependences {
 public:
  constexpr dependences(const indexed_program& x, const mesh& m, atom_table& atoms)
      : p_(*x.p), x_(x), mesh_(m), atoms_(atoms) {}

  constexpr digit_list digits(value_id v, int dim) const { return atoms_.of(x_.at(v, dim)); }
  constexpr index_rule rule(op_id o) const { return x_.ops.rule(o); }

  /// True if formulas that bind indices may be operands of an op; otherwise it needs variables.
  constexpr bool binds_on(op_id o, int operand, const dependence& x) const {
    const op_node& n = p_.op(o);
    const std::uint64_t id = n.def->id;
    if (moves(o)) return true;
    if (rule(o) == index_rule::by_lines) return false;
    const combiner how = n.def->collective          ? p_.collective_of(o).combine
                         : id == def<op::reduce>.id ? static_cast<combiner>(p_.attrs(o)[0])
                                                    : combiner::stack;
    if (x.extreme != combiner::stack) return how == x.extreme;
    if (how != combiner::stack) return how == combiner::add;
    const dtype to = p_.type(n.result).element;
    if (op_indices::is_one<op::add, op::subtract, op::negate, op::multiply, op::dot_general,
                           op::convolution>(id))
      return to != dtype::boolean;
    if (id == def<op::divide>.id) return operand == 0 && is_floating(to);
    if (id == def<op::select>.id) return operand > 0 && to != dtype::boolean;
    if (id == def<op::pad>.id || id == def<op::concatenate>.id) return true;
    if (id == def<op::gather>.id) return operand == 0;
    if (id == def<op::scatter>.id) return operand != n.operand_count - 2;
    if (id != def<op::convert>.id) return false;
    const dtype from = p_.type(p_.operand(o, 0)).element;
    return is_floating(from) && is_floating(to) && has_all_of(to, from);
  }
  /// True if the results consist of elements of the operand.
  constexpr bool moves(op_id o) const {
    const op_node& n = p_.op(o);
    if (n.def->collective) return !p_.collective_of(o).reduces();
    return rule(o) == index_rule::passed ||
           op_indices::is_one<op::broadcast_in_dim, op::transpose, op::reshape, op::slice>(
               n.def->id);
  }

  /// The dependence of a result on the operands' (after those that need variables became such).
  constexpr dependence result(op_id o, int r, const vec<dependence>& operands) const {
    const op_node& n = p_.op(o);
    const bool exchanges = rule(o) == index_rule::exchanged;
    if (rule(o) == index_rule::passed) return operands[r];
    dependence d;
    const bool adds =
        op_indices::is_one<op::multiply, op::dot_general, op::convolution>(n.def->id) ||
        rule(o) == index_rule::by_lookup;
    for (std::size_t i = exchanges ? r : 0; i < (exchanges ? r + 1 : operands.size()); ++i) {
      d.bound.join(operands[i].bound, adds);
      if (operands[i].extreme != combiner::stack) d.extreme = operands[i].extreme;
      if (!exchanges) d.axes |= operands[i].axes;
    }
    if (n.def->id == def<op::shard_start>.id)
      for (const int axis : op::shard_start::axes(p_.attrs(o))) d.axes.insert(axis);
    if (n.def->elementwise)
      for (const dependence& each : operands) d.dims |= each.dims;
    else if (rule(o) == index_rule::by_lines)
      d.dims = all_dims(n.result + r);
    else
      follow(o, x_.ops.first_row(o) + (exchanges ? r : 0), exchanges ? r : 0, operands, d);
    return d;
  }
  /// Requires enough atoms for the indices of a value and `bound` ones; two for extremes.
  constexpr void require(value_id v, const dependence& d, const index_list& bound, bool extreme) {
    index_list all = bound;
    for (int dim = 0; dim < p_.type(v).shape.rank; ++dim)
      if (d.has(dim)) add(digits(v, dim), all);
    for (int a = 0; a < mesh_.rank; ++a)
      if (d.axes.contains(a)) add(atoms_.of_axis(a), all);
    for (const int c : all) {
      int n = all.count(c);
      if (extreme && bound.count(c) > 0 && n < 2) n = 2;
      if (n > atoms_.classes[c].needed) atoms_.classes[c].needed = n;
    }
  }

 private:
  const program& p_;
  const indexed_program& x_;
  const mesh& mesh_;
  atom_table& atoms_;

  static constexpr void add(digit_list l, index_list& to) {
    for (const int c : l) to.add(c);
  }
  constexpr unsigned all_dims(value_id v) const { return (1u << p_.type(v).shape.rank) - 1; }

  /// Follows the factors of an op (for a collective, of the operand and result `which`).
  constexpr void follow(op_id o, int row, int which, const vec<dependence>& operands,
                        dependence& d) const {
    const op_node& n = p_.op(o);
    const bool exchanges = n.def->collective;
    const factor_table& map = x_.ops.map;
    const shape& made = p_.type(n.result + which).shape;
    std::int64_t left[max_rank] = {};
    for (int dim = 0; dim < made.rank; ++dim) left[dim] = made[dim];
    for (const factor& each : x_.ops.factors(row)) {
      const int dim = each.result_dim;
      if (dim != no_dim && each.size > 0) left[dim] /= each.size;
      const auto end = [&](int i) { return map.operand_dim(each, i); };
      bool differs = !is_plain_factor(each) && each.size > 1;
      for (int i = 0; i < map.ops[row].operands; ++i)
        if (end(i) != no_dim)
          differs = differs || (exchanges && i == 1 ? operands[which].axes.contains(end(i))
                                                    : operands[exchanges ? which : i].has(end(i)));
      differs = differs || rule(o) == index_rule::by_window || rule(o) == index_rule::by_lookup;
      if (!differs) continue;
      if (dim != no_dim) d.dims |= 1u << dim;
      if (exchanges && map.result_dim(each, 1) != no_dim) d.axes.insert(map.result_dim(each, 1));
      if (!op_indices::is_summed(each)) continue;
      for (int i = 0; i < map.ops[row].operands; ++i) {
        if (end(i) == no_dim) continue;
        const bool any =
            bind(exchanges ? atoms_.of_axis(end(i)) : digits(p_.operand(o, i), end(i)), d.bound);
        if (any && each.combine != combiner::add) d.extreme = each.combine;
        break;
      }
    }
    bool any = false;  // dimensions of a reshape that factors do not cover
    for (const dependence& each : operands) any = any || each.dims != 0;
    for (int dim = 0; dim < made.rank; ++dim)
      if (left[dim] > 1 && any && rule(o) == index_rule::by_factors &&
          n.def->id == def<op::reshape>.id)
        d.dims |= 1u << dim;
  }
  /// True if some of the digits are of classes that are not kept.
  constexpr bool bind(digit_list l, index_list& bound) const {
    bool any = false;
    for (const int c : l) {
      if (atoms_.classes[c].is_kept()) continue;
      bound.add(c);
      any = true;
    }
    return any;
  }
};

}  // namespace partita::prove_detail
