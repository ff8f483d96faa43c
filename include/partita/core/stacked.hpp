/// Values that are stacks: a loop reads or writes them slice by slice along their first dimension.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/op/dynamic_slice.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace core_detail {

/// Starts at the values that loops slice or stack, and follows ops that keep every element in its
/// place: elementwise ops and wires.
///
/// Cost: linear in ops and uses.
class stack_finder {
 public:
  constexpr explicit stack_finder(const core_program& c) : c_(c), p_(c.p) {
    is_stack_.resize(p_.types.size(), 0);
  }
  constexpr vec<char> run() {
    for (op_id o = 0; o < p_.op_count(); ++o) start(o);
    while (!open_.empty()) {
      const value_id v = open_.back();
      open_.pop_back();
      go_along(p_.producer(v));
      for (const use& u : c_.uses(v)) go_along(u.op);
    }
    return static_cast<vec<char>&&>(is_stack_);
  }

 private:
  const core_program& c_;
  const program& p_;
  vec<char> is_stack_;  ///< by value
  vec<value_id> open_;  ///< values whose ops must still be visited

  /// Calls f(value, number of dimensions that only this end has) for the ends of a wire.
  template <class F>
  constexpr void for_each_end(op_id o, const F& f) const {
    const op_node& n = p_.op(o);
    const auto leading = p_.attrs(o);
    if (static_cast<int>(leading.size()) != n.operand_count + n.result_count) return;
    for (int i = 0; i < n.operand_count; ++i)
      f(p_.operand(o, i), leading[static_cast<std::size_t>(i)]);
    for (int r = 0; r < n.result_count; ++r)
      f(n.result + r, leading[static_cast<std::size_t>(n.operand_count + r)]);
  }
  constexpr void mark(value_id v) {
    if (is_stack_[v] != 0 || p_.type(v).shape.rank == 0) return;
    is_stack_[v] = 1;
    open_.push_back(v);
  }
  constexpr void start(op_id o) {
    const op_node& n = p_.op(o);
    if (n.def->role == op_role::wire)
      for_each_end(o, [&](value_id v, std::int64_t leading) {
        if (leading > 0) mark(v);
      });
    if (n.def->id == def<op::dynamic_slice>.id && is_slice(p_.type(p_.operand(o, 0)), n.result))
      mark(p_.operand(o, 0));
    if (n.def->id == def<op::dynamic_update_slice>.id &&
        is_slice(p_.type(n.result), p_.operand(o, 1)))
      mark(n.result);
  }
  /// True if value `v`, inside a loop, is one position along the first dimension of the stack and
  /// all of the other dimensions.
  constexpr bool is_slice(const tensor_type& stack, value_id v) const {
    if (c_.nested.value_scope[v] == 0) return false;
    const shape &whole = stack.shape, &part = p_.type(v).shape;
    bool slice = whole.rank > 1 && part[0] == 1 && whole[0] != 1;
    for (int d = 1; d < whole.rank; ++d) slice = slice && part[d] == whole[d];
    return slice;
  }
  constexpr void go_along(op_id o) {
    const op_node& n = p_.op(o);
    if (n.def->role == op_role::wire) return go_through(o);
    if (n.result_count != 1) return;
    const bool in_place = n.def->id == def<op::dynamic_update_slice>.id;
    if (!n.def->elementwise && !n.def->identity && !in_place) return;
    bool any = is_stack_[n.result] != 0;
    for (const value_id v : p_.operands(o)) any = any || is_stack_[v] != 0;
    if (!any) return;
    mark(n.result);
    for (const value_id v : p_.operands(o))
      if (p_.type(v).shape == p_.type(n.result).shape) mark(v);
  }
  /// Ends of a wire without leading dimensions have the same layout.
  constexpr void go_through(op_id o) {
    bool any = false;
    for_each_end(o, [&](value_id v, std::int64_t leading) {
      any = any || (leading == 0 && is_stack_[v] != 0);
    });
    for_each_end(o, [&](value_id v, std::int64_t leading) {
      if (any && leading == 0) mark(v);
    });
  }
};

}  // namespace core_detail

/// Returns, by value, true if its first dimension numbers the iterations of a loop, as for stacked
/// layers: parameters that are scanned, their gradients, and values derived from them.
///
/// Cost: linear in ops and uses; constant without nested programs.
constexpr vec<char> stacked_values(const core_program& c) {
  if (c.nested.controls.empty()) return {};
  return core_detail::stack_finder(c).run();
}

}  // namespace partita
