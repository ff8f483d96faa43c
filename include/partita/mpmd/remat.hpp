/// Rematerialization in stages: they keep the inputs of their forward and run it again before their
/// backward.
///
/// Source    Chen et al., arXiv:1604.06174; GPipe, arXiv:1811.06965, section 2.3
#pragma once

#include <partita/mpmd/merge.hpp>

namespace partita {

namespace mpmd_detail {

/// before: backward(forward's results) => after: backward(forward's inputs), including the needed
/// ops of the forward
///
/// Values that other units on the mesh use anyway are not recomputed.
///
/// Cost: linear in the units' ops, inputs and outputs.
class stage_rematerializer {
 public:
  constexpr explicit stage_rematerializer(const pipelined& p)
      : p_(p), takers_(p.source.types.size(), {}), sent_(p.source.types.size(), 0) {
    for (int u = 0; u < static_cast<int>(p.units.size()); ++u)
      for (const value_id v : p.units[u].piece.inputs) takers_[v].push_back(u);
    for (const transfer& t : p.transfers) sent_[t.value] = 1;
    for (const auto& each : p.source.outputs) takers_[each.value].push_back(-1);
    for (const value_id next : next_states(p.source))  // the next microbatch uses it
      if (next >= 0) takers_[next].push_back(-1);
  }
  /// Changes the units of a stage in `out`. False if the stage keeps nothing from its forward to
  /// its backward.
  constexpr bool run(pipelined& out, int stage) {
    const int forward = forward_of(stage);
    if (forward < 0) return false;
    forward_ = forward;
    vec<char> again(p_.source.types.size(), 0);
    bool any = false;
    for (const value_id v : p_.units[forward].piece.outputs)
      if (is_kept_for_backward(v)) {
        again[v] = 1;
        any = true;
      }
    if (!any) return false;
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u)
      if (is_backward(u)) make_again(out.units[u].piece, again);
    vec<value_id>& given = out.units[forward].piece.outputs;
    given.clear();
    for (const value_id v : p_.units[forward].piece.outputs)
      if (again[v] == 0 || sent_[v] != 0) given.push_back(v);
    return true;
  }

 private:
  const pipelined& p_;
  int forward_ = -1;
  vec<vec<int>> takers_;  ///< by value: units that use it; -1: the caller
  vec<char> sent_;        ///< by value: true if it is sent to another mesh

  constexpr int forward_of(int stage) const {
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u) {
      const pipeline_unit& each = p_.units[u];
      if (each.inside && each.joined == 0 && each.piece.stage == stage && each.transposed == 0)
        return u;
    }
    return -1;
  }
  constexpr bool is_backward(int u) const {
    const pipeline_unit &each = p_.units[u], &forward = p_.units[forward_];
    return each.inside && each.joined == 0 && each.transposed > 0 &&
           each.piece.stage == forward.piece.stage && each.piece.mesh == forward.piece.mesh;
  }
  /// True if only backward calls of the stage, among those of its mesh, use a value.
  constexpr bool is_kept_for_backward(value_id v) const {
    bool any = false;
    for (const int u : takers_[v]) {
      if (u < 0) return false;
      if (p_.units[u].piece.mesh != p_.units[forward_].piece.mesh) continue;
      if (!is_backward(u)) return false;
      any = true;
    }
    return any;
  }
  /// Makes a fragment that uses results of the forward recompute those that are not kept.
  constexpr void make_again(fragment& f, const vec<char>& again) const {
    const fragment& forward = p_.units[forward_].piece;
    vec<char> needed(p_.source.ops.size(), 0), there(p_.source.ops.size(), 0);
    bool any = false;
    for (const value_id v : f.inputs)
      if (again[v] != 0) {
        needed[p_.source.producer(v)] = 1;
        any = true;
      }
    if (!any) return;
    for (std::size_t i = forward.ops.size(); i-- > 0;)
      if (needed[forward.ops[i]] != 0)
        for (const value_id v : p_.source.operands(forward.ops[i]))
          needed[p_.source.producer(v)] = 1;
    fragment out{f.mesh, {}, f.stage, {}, {}, f.outputs};
    for (const value_id v : forward.inputs)
      if (needed[p_.source.producer(v)] != 0) out.inputs.push_back(v);
    for (const op_id o : forward.ops)
      if (needed[o] != 0 && there[o]++ == 0) out.ops.push_back(o);
    vec<char> taken(p_.source.types.size(), 0);
    for (const value_id v : out.inputs) taken[v] = 1;
    for (const value_id v : f.inputs)
      if (there[p_.source.producer(v)] == 0 && taken[v] == 0) out.inputs.push_back(v);
    for (const op_id o : f.ops)
      if (there[o]++ == 0) out.ops.push_back(o);
    out.origins = forward.origins;
    for (const auto& each : f.origins) out.origins.push_back(each);
    f = static_cast<fragment&&>(out);
  }
};

}  // namespace mpmd_detail

/// Returns a pipeline whose stages keep, for each microbatch in flight, the inputs of their forward
/// instead of its results for the backward. The backward runs the needed ops of the forward again,
/// in the same function. `stages`: the stages to change; empty: every stage that keeps anything.
///
/// Legal     unless a stage's forward and backward are merged
/// Pros      memory for a microbatch in flight: the inputs of a stage
/// Cons      almost one more forward for each backward; for a split one, one for each part
/// Cost      linear in the ops of units and in calls, except for sorting
/// Errors    O136 a stage keeps nothing from its forward to its backward; O007 deadlock
constexpr pipelined rematerialized(const pipelined& p, const vec<int>& stages = {}) {
  pipelined out = p;
  mpmd_detail::stage_rematerializer pass(p);
  if (!out.error && stages.empty())
    for (int s = 0; s < p.stages; ++s) pass.run(out, s);
  for (const int s : stages)
    if (!out.error && !pass.run(out, s))
      out.error.record("O136", "remat: stage ", s,
                       " keeps nothing from its forward to its backward; the pipeline has ",
                       p.stages, " stages, and merged ones keep nothing");
  vec<vec<int>> was;
  for (int u = 0; u < static_cast<int>(p.units.size()); ++u) was.push_back({u});
  if (!out.error) mpmd_detail::regrouping(out, p, was).run();
  out.error.raise();
  return out;
}

}  // namespace partita
