/// The indices that a value depends on, and the number of indices that its formulas bind.
#pragma once

#include <partita/prove/shrink/atoms.hpp>

namespace partita::prove_detail {

/// The indices of a value. Each of its elements is a polynomial in the weights of the classes; each
/// sum binds an index, and adds one to the degree. Values without bound indices consist of
/// variables (inputs, results of functions, cut points).
struct dependence {
  unsigned dims = 0;        ///< dimensions along which elements may differ, as bits
  axis_set axes;            ///< axes along which devices may differ
  vec<std::uint8_t> bound;  ///< by class: the most indices that an element binds; empty: none
  /// If not `stack`, the indices are bound by this maximum or minimum.
  combiner extreme = combiner::stack;

  constexpr bool binds() const { return !bound.empty(); }
  constexpr bool has(int dim) const { return (dims >> dim & 1u) != 0; }
  constexpr int of(int c) const { return bound.empty() ? 0 : bound[c]; }
  /// Binds the digits of a list. True if some of them are of classes that are not kept.
  constexpr bool bind(digit_list l, const atom_table& atoms) {
    bool any = false;
    for (const int c : l) {
      if (atoms.classes[c].is_kept()) continue;
      if (bound.empty()) bound.resize(atoms.classes.size(), 0);
      ++bound[c];
      any = true;
    }
    return any;
  }
  constexpr void join(const dependence& other, bool adds) {
    if (other.bound.empty()) return;
    if (bound.empty()) bound.resize(other.bound.size(), 0);
    for (std::size_t c = 0; c < bound.size(); ++c)
      bound[c] = adds                        ? static_cast<std::uint8_t>(bound[c] + other.bound[c])
                 : bound[c] < other.bound[c] ? other.bound[c]
                                             : bound[c];
  }
};

/// Follows dependences through the ops of one program.
class dependences {
 public:
  constexpr dependences(const program& p, const program_digits& of, bool in_source, const mesh& m,
                        atom_table& atoms)
      : p_(p), of_(of), in_source_(in_source), mesh_(m), atoms_(atoms) {}

  constexpr digit_list digits(value_id v, int dim) const {
    return atoms_.of_dim(in_source_, of_.first[v] + dim);
  }
  /// How an op uses bound indices of an operand: formulas may bind on, or it needs variables.
  enum class use : std::uint8_t { binds_on, needs_variables };
  constexpr use use_of(op_id o, int operand, const dependence& x) const {
    const op_node& n = p_.op(o);
    const std::uint64_t id = n.def->id;
    const auto binds_on = [](bool on) { return on ? use::binds_on : use::needs_variables; };
    if (moves(o)) return use::binds_on;
    if (rule(o) == index_rule::by_lines) return use::needs_variables;
    const combiner how = n.def->collective          ? p_.collective_of(o).combine
                         : id == def<op::reduce>.id ? static_cast<combiner>(p_.attrs(o)[0])
                                                    : combiner::stack;
    if (x.extreme != combiner::stack) return binds_on(how == x.extreme);
    if (how != combiner::stack) return binds_on(how == combiner::add);
    for (const std::uint64_t each :
         {def<op::add>.id, def<op::subtract>.id, def<op::negate>.id, def<op::multiply>.id,
          def<op::dot_general>.id, def<op::convolution>.id})
      if (id == each) return binds_on(p_.type(n.result).element != dtype::boolean);
    if (id == def<op::divide>.id)
      return binds_on(operand == 0 && is_floating(p_.type(n.result).element));
    if (id == def<op::select>.id)
      return binds_on(operand > 0 && p_.type(n.result).element != dtype::boolean);
    if (id == def<op::pad>.id || id == def<op::concatenate>.id) return use::binds_on;
    if (rule(o) == index_rule::by_lookup)
      return binds_on(id == def<op::gather>.id ? operand == 0 : operand != n.operand_count - 2);
    if (id == def<op::convert>.id) {
      const dtype from = p_.type(p_.operand(o, 0)).element, to = p_.type(n.result).element;
      return binds_on(is_floating(from) && is_floating(to) && has_all_of(to, from));
    }
    return use::needs_variables;
  }
  /// True if the results consist of elements of the operand.
  constexpr bool moves(op_id o) const {
    const op_node& n = p_.op(o);
    if (n.def->collective) return !p_.collective_of(o).reduces();
    for (const std::uint64_t each : {def<op::broadcast_in_dim>.id, def<op::transpose>.id,
                                     def<op::reshape>.id, def<op::slice>.id})
      if (n.def->id == each) return true;
    return n.def->passes_on || n.def->identity;
  }

  /// The dependence of a result on the operands' (after those that need variables became such).
  constexpr dependence result(op_id o, int r, const vec<dependence>& operands) const {
    const op_node& n = p_.op(o);
    dependence d;
    for (const dependence& each : operands) d.axes |= each.axes;
    switch (rule(o)) {
      case index_rule::passed:
        return operands[r];
      case index_rule::exchanged:
        return exchanged(p_.collective_of(o), operands[r]);
      case index_rule::by_factors:
        by_factors(o, operands, d);
        break;
      default:
        d.dims = all_dims(n.result + r);
        if (n.def->id == def<op::slice>.id) d.dims = operands[0].dims;
        if (n.def->id == def<op::pad>.id) d.dims = padded(o, operands);
    }
    const bool adds = n.def->id == def<op::multiply>.id || n.def->id == def<op::dot_general>.id ||
                      n.def->id == def<op::convolution>.id || rule(o) == index_rule::by_lookup;
    for (const dependence& each : operands) {
      d.join(each, adds);
      if (each.extreme != combiner::stack) d.extreme = each.extreme;
    }
    bind(o, operands, d);
    if (n.def->id == def<op::shard_start>.id)
      for (const int axis : op::shard_start::axes(p_.attrs(o))) d.axes.insert(axis);
    return d;
  }
  /// Requires enough atoms for the indices of a value, and those that it and its operands bind.
  constexpr void require(value_id v, const dependence& d, const vec<dependence>& operands = {}) {
    for_each_need(v, d, operands, [&](index_class& c, int n) {
      if (n > c.needed) c.needed = n;
    });
  }
  /// True if this requires at most two atoms, or no more than other values.
  constexpr bool fits(value_id v, const dependence& d, const vec<dependence>& operands) {
    bool fits = true;
    for_each_need(v, d, operands,
                  [&](const index_class& c, int n) { fits = fits && (n <= 2 || n <= c.needed); });
    return fits;
  }
  template <class F>
  constexpr void for_each_need(value_id v, const dependence& d, const vec<dependence>& operands,
                               const F& f) {
    need_.assign(atoms_.classes.size(), 0);
    for (int dim = 0; dim < p_.type(v).shape.rank; ++dim)
      if (d.has(dim)) count(digits(v, dim));
    for (int a = 0; a < mesh_.rank; ++a)
      if (d.axes.contains(a)) count(atoms_.of_axis(a));
    for (std::size_t c = 0; c < need_.size(); ++c) {
      int most = d.of(static_cast<int>(c));
      for (const dependence& each : operands)
        if (each.of(static_cast<int>(c)) > most) most = each.of(static_cast<int>(c));
      int n = need_[c] + most;
      if (d.extreme != combiner::stack && most > 0 && n < 2) n = 2;
      f(atoms_.classes[c], n);
    }
  }
  constexpr index_rule rule(op_id o) const {
    return index_rule_of(p_.op(o), p_.attrs(o), p_.type(p_.op(o).result).element);
  }
  /// The dimensions that an op sums or compares: (operand, dimension).
  template <class F>
  constexpr void for_each_bound(op_id o, const F& f) const {
    const op_node& n = p_.op(o);
    if (n.def->id == def<op::reduce>.id && rule(o) == index_rule::by_factors)
      for (const std::int64_t d : p_.attrs(o).subspan(1)) f(0, static_cast<int>(d));
    if (n.def->id == def<op::dot_general>.id) {
      const shape &ls = p_.type(p_.operand(o, 0)).shape, &rs = p_.type(p_.operand(o, 1)).shape;
      const op::dot_general::roles roles(p_.attrs(o).data(), n.attr_count, ls.rank, rs.rank);
      for (int k = 0; k < roles.contract; ++k) f(0, roles.lhs_contract[k]);
    }
    if (rule(o) == index_rule::by_window) {
      const op::convolution::roles roles(p_.attrs(o).data(), p_.type(p_.operand(o, 1)).shape);
      for (int d = 0; d < roles.rank; ++d) {
        if (d > 0) f(0, roles.lhs[d]);
        if (d > 1) f(1, roles.rhs[d]);
      }
    }
    if (rule(o) != index_rule::by_lookup) return;
    const bool gathers = n.def->id == def<op::gather>.id;
    const int indices = gathers ? 1 : n.operand_count - 2;
    const shape& from = p_.type(gathers ? p_.operand(o, 0) : n.result).shape;
    const op::gather_dims dims(gathers ? p_.attrs(o) : p_.attrs(o).subspan(1), from,
                               p_.type(p_.operand(o, indices)).shape);
    for (int d = 0; gathers && d < from.rank; ++d)
      if (dims.mapped[d] && dims.window_dim[d] < 0) f(0, d);
    for (int i = 0; !gathers && i < dims.indices_rank; ++i) {
      bool sums = i != dims.vector_dim;
      for (int d = 0; d < from.rank; ++d) sums = sums && dims.batching_dim[d] != i;
      if (sums) f(indices, i);
    }
  }

 private:
  const program& p_;
  const program_digits& of_;
  bool in_source_;
  const mesh& mesh_;
  atom_table& atoms_;
  vec<int> need_;

  constexpr void count(digit_list l) {
    for (const int c : l) ++need_[c];
  }
  constexpr unsigned all_dims(value_id v) const { return (1u << p_.type(v).shape.rank) - 1; }
  constexpr unsigned padded(op_id o, const vec<dependence>& operands) const {
    unsigned all = operands[0].dims;
    for (int d = 0; d < p_.type(p_.op(o).result).shape.rank; ++d)
      if (!index_classes::is_whole(p_, o, d)) all |= 1u << d;
    return all;
  }
  constexpr void by_factors(op_id o, const vec<dependence>& operands, dependence& d) const {
    const op_node& n = p_.op(o);
    if (n.def->id == def<op::iota>.id) d.dims = 1u << p_.attrs(o)[0];
    if (n.operand_count == 0) return;
    if (n.def->elementwise) {
      for (std::size_t i = 0; i < operands.size(); ++i) d.dims |= operands[i].dims;
      return;
    }
    vec<tensor_type> types;
    for (const value_id v : p_.operands(o)) types.push_back(p_.type(v));
    factor_table map;
    tile_map_context c(types, p_.type(n.result), p_.attrs(o).data(), n.attr_count, map);
    n.def->tile_map(c);
    unsigned covered = 0;
    for (int f = 0; f < map.ops[0].count; ++f) {
      const factor& each = map.at(0, f);
      if (each.result_dim == no_dim) continue;
      covered |= 1u << each.result_dim;
      for (int i = 0; i < n.operand_count; ++i)
        if (map.operand_dim(each, i) != no_dim && operands[i].has(map.operand_dim(each, i)))
          d.dims |= 1u << each.result_dim;
    }
    if (n.def->id == def<op::reshape>.id) {  // parts of dimensions without a factor
      bool all = true;
      for (int dim = 0; dim < types[0].shape.rank; ++dim)
        all = all && (types[0].shape[dim] == 1 || operands[0].has(dim));
      const unsigned rest = all_dims(n.result) & ~covered;
      if (all)
        d.dims = all_dims(n.result);
      else if (operands[0].dims != 0)
        d.dims |= rest | stuck(map, n);
    }
  }
  /// The dimensions of a reshape that its factors do not cover completely.
  constexpr unsigned stuck(const factor_table& map, const op_node& n) const {
    unsigned all = 0;
    for (int d = 0; d < p_.type(n.result).shape.rank; ++d) {
      std::int64_t left = p_.type(n.result).shape[d];
      for (int f = 0; f < map.ops[0].count; ++f)
        if (map.at(0, f).result_dim == d) left /= map.at(0, f).size;
      if (left != 1) all |= 1u << d;
    }
    return all;
  }
  constexpr void bind(op_id o, const vec<dependence>& operands, dependence& d) const {
    const op_node& n = p_.op(o);
    bool any = false;
    for_each_bound(o, [&](int operand, int dim) {
      bool differs = rule(o) != index_rule::by_factors;
      const value_id v = p_.operand(o, operand);
      if (n.def->id == def<op::dot_general>.id) {
        const shape& rs = p_.type(p_.operand(o, 1)).shape;
        const op::dot_general::roles roles(p_.attrs(o).data(), n.attr_count, p_.type(v).shape.rank,
                                           rs.rank);
        for (int k = 0; k < roles.contract; ++k)
          differs =
              differs || (roles.lhs_contract[k] == dim && operands[1].has(roles.rhs_contract[k]));
      }
      if (!differs && !operands[operand].has(dim)) return;
      any = d.bind(digits(v, dim), atoms_) || any;
    });
    if (any && n.def->id == def<op::reduce>.id && p_.attrs(o)[0] != static_cast<int>(combiner::add))
      d.extreme = static_cast<combiner>(p_.attrs(o)[0]);
  }
  constexpr dependence exchanged(const collective& what, const dependence& of) const {
    dependence d = of;
    const bool moves = what.kind == collective::all_to_all;
    if (what.reduces()) {
      for (const auto& e : what.axes) {
        if (!of.axes.contains(e.axis)) continue;
        const bool any = d.bind(atoms_.of_axis(e.axis), atoms_);
        if (any && what.combine != combiner::add) d.extreme = what.combine;
      }
      d.axes = d.axes - what.along();
    }
    if (what.kind == collective::permute)
      for (const auto& e : what.axes) d.axes.insert(e.axis);
    if (what.kind == collective::all_gather || moves) {
      const layout from = moves ? what.gathers() : what.axes;
      for (const auto& e : from)
        if (of.axes.contains(e.axis)) d.dims |= 1u << e.dim;
      d.axes = d.axes - what.along();
    }
    if (what.kind == collective::all_slice || what.kind == collective::reduce_scatter || moves)
      for (const auto& e : what.axes)
        if (of.has(e.dim)) d.axes.insert(e.axis);
    return d;
  }
};

}  // namespace partita::prove_detail
