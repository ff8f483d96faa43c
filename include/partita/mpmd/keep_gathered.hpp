/// Gathers parameters once before the microbatches, instead of in each iteration.
///
/// Source    ZeRO, arXiv:1910.02054: parameters of stage 3 are gathered where they are used
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/registry.hpp>

namespace partita::mpmd_detail {

/// before: inside(w) => after: k = microbatch_keep(w), inside(k), for tensors computed outside of
/// the loop.
///
/// Cost: linear in ops.
class gather_keeper {
 public:
  constexpr explicit gather_keeper(one_microbatch& one)
      : one_(one), p_(one.p), copy_(p_, q_), kept_(p_.types.size(), -1) {}

  constexpr void run() {
    if (one_.inside.empty()) return;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const bool inside = one_.inside[o] != 0;
      if (inside)
        for (const value_id v : p_.operands(o)) keep(v);
      exchange(o, inside);
      copy_.op(o);
      for (const auto& r : p_.regions_of(o)) q_.append_region(program(r));
      inside_.push_back(inside);
      exchange(o, inside);
    }
    copy_.interface();
    q_.labels = p_.labels;
    q_.scopes = p_.scopes;
    number_ops(q_);
    one_.p = static_cast<program&&>(q_);
    one_.inside = static_cast<vec<char>&&>(inside_);
  }

 private:
  one_microbatch& one_;
  const program& p_;
  program q_;
  program_copier copy_;
  vec<value_id> kept_;  ///< by value: its kept version, while `exchange` replaces it
  vec<char> inside_;    ///< by op of the copy
  vec<char> done_;

  constexpr bool is_kept(value_id v) const {
    const op_id o = p_.producer(v);
    const op_node& n = p_.op(o);
    return one_.inside[o] == 0 && !enters(n) && p_.type(v).shape.rank > 0 &&
           (n.operand_count > 0 || n.def->role == op_role::parameter);
  }
  constexpr void keep(value_id v) {
    if (kept_[v] >= 0 || !is_kept(v)) return;
    const value_id operands[] = {copy_.renamed[v]};
    kept_[v] = q_.append(def<op::microbatch_keep>, operands, {}, p_.type(v));
    inside_.push_back(0);
  }
  /// Redirects ops inside of the loop to the kept value, and ops outside to the original.
  constexpr void exchange(op_id o, bool inside) {
    if (!inside) return;
    done_.resize(p_.types.size(), 0);
    for (const value_id v : p_.operands(o)) {
      if (kept_[v] < 0 || done_[v] != 0) continue;
      const value_id other = copy_.renamed[v];
      copy_.renamed[v] = kept_[v];
      kept_[v] = other;
      done_[v] = 1;
    }
    for (const value_id v : p_.operands(o)) done_[v] = 0;
  }
};

constexpr void bridge(vec<call_edge>& edges, int u) {
  vec<int> before, behind;
  for (const call_edge& e : edges) {
    if (e.to == u) before.push_back(e.from);
    if (e.from == u) behind.push_back(e.to);
  }
  for (const int a : before)
    for (const int b : behind) edges.push_back({a, b});
}
/// Removes units before the microbatches that compute nothing because the kept value already had
/// the needed layout. Their users then wait for their operands.
constexpr void drop_idle_units(pipelined& p, vec<call_edge>& edges) {
  bool keeps = false;
  for (op_id o = 0; o < p.source.op_count(); ++o)
    keeps = keeps || p.source.op(o).def->id == def<op::microbatch_keep>.id;
  if (!keeps) return;
  vec<int> now;
  int left = 0;
  for (const pipeline_unit& u : p.units)
    now.push_back(!u.inside && u.gives.empty() && u.sums.empty() ? -1 : left++);
  if (left == static_cast<int>(p.units.size())) return;
  for (int u = 0; u < static_cast<int>(now.size()); ++u)
    if (now[u] < 0) bridge(edges, u);
  vec<call_edge> kept;
  for (const call_edge& e : edges)
    if (now[e.from] >= 0 && now[e.to] >= 0) kept.push_back({now[e.from], now[e.to], e.later});
  edges = static_cast<vec<call_edge>&&>(kept);
  for (transfer& t : p.transfers)
    if (t.after >= 0) t.after = now[t.after];
  vec<pipeline_unit> units;
  for (int u = 0; u < static_cast<int>(now.size()); ++u)
    if (now[u] >= 0) units.push_back(static_cast<pipeline_unit&&>(p.units[u]));
  p.units = static_cast<vec<pipeline_unit>&&>(units);
}

}  // namespace partita::mpmd_detail
