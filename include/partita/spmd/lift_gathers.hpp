/// Moves reshapes, transposes and reverses from before a gather to after it.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/reverse.hpp>
#include <partita/op/transpose.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

constexpr bool is_movement(const program& p, op_id o) {
  const auto id = p.op(o).def->id;
  return id == def<op::reshape>.id || id == def<op::transpose>.id || id == def<op::reverse>.id;
}
/// The dimension of the operand of a movement op whose blocks become those of dimension d of the
/// result, or no_dim.
constexpr int dim_of_operand(const program& p, op_id o, int d) {
  const auto attrs = p.attrs(o);
  if (p.op(o).def->id == def<op::transpose>.id)
    return static_cast<int>(attrs[static_cast<std::size_t>(d)]);
  if (p.op(o).def->id == def<op::reverse>.id) {
    for (auto reversed : attrs)
      if (reversed == d) return no_dim;
    return d;
  }
  // The dimension with the same number of elements before it; among size-1 dimensions, the last.
  const shape& from = p.type(p.operand(o, 0)).shape;
  const shape& to = p.type(p.op(o).result).shape;
  std::int64_t wanted = 1, before = 1;
  for (int i = 0; i < d; ++i) wanted *= to[i];
  int found = no_dim;
  for (int e = 0; e < from.rank && before <= wanted; before *= from[e++])
    if (before == wanted) found = e;
  return found;
}

/// all_gather(f(x)) => f(all_gather(x))
///
/// When: f consists of reshapes, transposes and reverses that keep blocks contiguous, and x,
/// possibly after other such ops, is gathered in the same way elsewhere. Why: both gathers then
/// gather the same value, see share.hpp. The number, sizes and order of collectives do not change.
class lifting {
 public:
  constexpr lifting(program& p, const mesh& m) : p_(p), mesh_(m) {
    moves_.resize(p.ops.size(), {});
  }

  /// True if there is anything to lift.
  constexpr bool find() {
    vec<op_id> latest(p_.types.size(), -1);  // by value: the last op so far that gathers it
    vec<op_id> previous(p_.ops.size(), -1);  // by gather: the previous one of the same value
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!p_.is(o, collective::all_gather)) continue;
      moved& m = moves_[o] = origin(o);
      op_id before = previous[o] = latest[m.value];
      latest[m.value] = o;
      while (before >= 0 && !(moves_[before].axes == m.axes)) before = previous[before];
      if (before < 0) continue;
      for (moved* each : {&m, &moves_[before]}) {
        each->lifts = !each->by.empty();
        any_ = any_ || each->lifts;
      }
    }
    return any_;
  }
  /// Returns the rewritten program, without unused movement ops; nested programs are moved out of
  /// the old one.
  constexpr program run() {
    const vec<char> dead = no_longer_used();
    program q;
    program_copier copy(p_, q);
    copy.reserve();
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (dead[o] != 0) continue;
      if (moves_[o].lifts)
        lift(o, copy, q);
      else
        copy.op(o);
      const op_node& n = p_.op(o);
      for (int r = 0; r < n.region_count; ++r)
        q.append_region(static_cast<program&&>(p_.regions[n.region_begin + r]));
    }
    copy.interface();
    return q;
  }

 private:
  /// The origin of a gathered value: the value before any movement, its axes, and the movement ops,
  /// last first.
  struct moved {
    value_id value = -1;
    layout axes;
    vec<op_id> by;
    vec<layout> axes_by;  ///< of the results of `by`
    bool lifts = false;
  };
  static constexpr std::size_t most_moves = 8;  // a limit, because a chain may end in many gathers

  program& p_;
  const mesh& mesh_;
  vec<moved> moves_;  ///< by op
  bool any_ = false;

  constexpr moved origin(op_id gather) const {
    moved m;
    m.value = p_.operand(gather, 0);
    m.axes = p_.collective_of(gather).axes;
    layout before;
    while (m.by.size() < most_moves && moves(p_.producer(m.value), m.axes, before)) {
      const op_id o = p_.producer(m.value);
      m.by.push_back(o);
      m.axes_by.push_back(m.axes);
      m.value = p_.operand(o, 0);
      m.axes = before;
    }
    return m;
  }
  /// True if the op moves blocks along these axes. `before`: the axes of its operand, by dimension.
  constexpr bool moves(op_id o, const layout& axes, layout& before) const {
    if (!is_movement(p_, o)) return false;
    before = {};
    const int rank = p_.type(p_.operand(o, 0)).shape.rank;
    int found = 0;
    for (int e = 0; e < rank; ++e)
      for (const auto& each : axes)
        if (dim_of_operand(p_, o, each.dim) == e) before.push_back(each.axis, e), ++found;
    return found == axes.count;
  }
  constexpr vec<char> no_longer_used() const {
    vec<int> uses(p_.types.size(), 0);
    for (value_id v : p_.operand_list) ++uses[v];
    for (const auto& out : p_.outputs) ++uses[out.value];
    vec<char> dead(p_.ops.size(), 0);
    for (const moved& each : moves_)
      if (each.lifts) --uses[p_.op(each.by[0]).result];
    for (op_id o = p_.op_count(); o-- > 0;) {
      const op_node& n = p_.op(o);
      if (!is_movement(p_, o) || uses[n.result] > 0) continue;
      dead[o] = 1;
      --uses[p_.operand(o, 0)];
    }
    return dead;
  }
  constexpr tensor_type whole(value_id v, const layout& axes) const {
    return {p_.type(v).element, axes.global(p_.type(v).shape, mesh_)};
  }
  constexpr void lift(op_id gather, program_copier& copy, program& q) const {
    const moved& m = moves_[gather];
    collective what;
    what.axes = m.axes;
    value_id v = append(q, what, copy.renamed[m.value], whole(m.value, m.axes));
    copy_marks(q, p_, gather);
    for (std::size_t i = m.by.size(); i-- > 0;) {
      append_copy(q, p_, m.by[i], {&v, 1}, p_.attrs(m.by[i]));
      v = q.append_result(whole(p_.op(m.by[i]).result, m.axes_by[i]));
    }
    copy.renamed[p_.op(gather).result] = v;
  }
};

/// Lifts gathers in the program and its nested programs; returns true if anything was lifted.
constexpr bool lift_gathers(program& p, const mesh& m) {
  bool any = false;
  for (auto& r : p.regions) any = lift_gathers(r, m) || any;
  lifting pass(p, m);
  if (!pass.find()) return any;
  p = pass.run();
  return true;
}

}  // namespace partita::spmd_detail
