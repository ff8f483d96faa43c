/// A pipeline as the automatic search sees it: where and how often its ops run, and the time of all
/// calls.
#pragma once

#include <partita/cost/staged_work.hpp>
#include <partita/mpmd/finish_pipeline.hpp>
#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::mpmd_detail {

/// Counts the microbatches for which a mesh holds the values that its units exchange.
///
/// Cost      calls of the units that use a value, for each value
class held_counter {
 public:
  constexpr explicit held_counter(const pipelined& p) : p_(p) {
    place_.resize(p.calls.calls.size(), 0);
    for (int i = 0; i < static_cast<int>(p.order.size()); ++i) place_[p.order[i]] = i;
    call_of_.resize(p.units.size(), vec<int>{});
    for (int c = 0; c < p.calls.count(); ++c) call_of_[p.unit_of[c]].push_back(c);
    takers_.resize(p.values().types.size(), vec<int>{});
    for (int u = 0; u < static_cast<int>(p.units.size()); ++u)
      for (const unit_value& v : p.units[u].takes)
        if (p.units[u].inside) takers_[v.slot].push_back(u);
  }
  /// The count by value.
  constexpr vec<double> run() {
    held_.resize(p_.values().types.size(), 1);
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u)
      for (const unit_value& v : p_.units[u].gives)
        if (p_.units[u].inside && p_.repeated[v.slot] != 0)
          hold(v.slot, most_at_a_time(u, v.slot, p_.units[u].piece.mesh));
    return static_cast<vec<double>&&>(held_);
  }
  /// The maximum number of microbatches for which a receiving mesh holds a unit's value.
  constexpr double most_at_a_time(int unit, value_id slot, int mesh) const {
    vec<int> made, free;  // positions in the order
    for (int i = 0; i < p_.microbatches; ++i) {
      const int call = call_of_[unit][i];
      int last = place_[call];
      for (const int t : takers_[slot])
        if (p_.units[t].piece.mesh == mesh && place_[call_of_[t][i]] > last)
          last = place_[call_of_[t][i]];
      made.push_back(place_[call]);
      free.push_back(last);
    }
    merge_sort(made, [](int a, int b) { return a < b; });
    merge_sort(free, [](int a, int b) { return a < b; });
    std::size_t gone = 0, most = 1;
    for (std::size_t i = 0; i < made.size(); ++i) {
      while (free[gone] < made[i]) ++gone;
      if (i + 1 - gone > most) most = i + 1 - gone;
    }
    return static_cast<double>(most);
  }

 private:
  const pipelined& p_;
  vec<int> place_;         ///< by call, in the order
  vec<vec<int>> call_of_;  ///< by unit: its calls, by microbatch
  vec<vec<int>> takers_;   ///< by slot: units that use it
  vec<double> held_;

  /// A view holds the value that it views.
  constexpr void hold(value_id v, double times) {
    const program& p = p_.values();
    for (;; v = p.operand(p.producer(v), 0)) {
      if (held_[v] < times) held_[v] = times;
      const op_node& n = p.op(p.producer(v));
      if (n.def->role != op_role::compute || n.def->fusion != fusion_kind::view ||
          n.operand_count != 1)
        return;
    }
  }
};

/// A pipeline with microbatches, whose units the tactics are going to shard.
template <class Order>
class staged_pipeline final : public staged_program {
 public:
  /// `on`: by op of the source.
  constexpr staged_pipeline(const pipelined& p, const vec<mesh_set>& on,
                            const vec<call_edge>& edges, const Order& order)
      : p_(p), on_(on), edges_(edges), order_(order) {}

  // (Defined because GCC 12 does not generate it early enough.)
  constexpr ~staged_pipeline() override {}
  constexpr staged_work work() const override {
    staged_work w;
    w.meshes = p_.topology.count();
    w.microbatches = static_cast<double>(p_.microbatches);
    w.units = static_cast<int>(p_.units.size());
    vec<int> unit_of(on_.size(), -1);
    for (int u = w.units; u-- > 0;)
      for (const op_id o : p_.units[u].piece.ops) unit_of[o] = u;
    const vec<op_id>& source_op = p_.core.nested.source_op;
    const std::size_t count = source_op.empty() ? on_.size() : source_op.size();
    for (std::size_t i = 0; i < count; ++i) {  // the ops that actions added come after them
      const std::size_t o = source_op.empty() ? i : static_cast<std::size_t>(source_op[i]);
      w.mesh.push_back(on_[o].empty() ? 0 : on_[o].front());
      w.inside.push_back(p_.inside[o]);
      w.unit.push_back(unit_of[o]);
    }
    const pipelined now = finished(p_.core);
    if (now.error) return w;
    for (op_id o = 0; o < now.source.op_count(); ++o)
      if (leaves(now.source.op(o))) w.combined.push_back(now.slot_of[now.source.op(o).result]);
    w.in_flight = in_flight(now);
    held_counter held(now);
    for (const transfer& t : now.transfers) {
      const value_id slot = now.slot_of[t.value];
      const bool inside = t.after >= 0 && now.units[t.after].inside;
      w.sent.push_back({slot, t.from, t.to, inside, t.after < 0,
                        inside ? held.most_at_a_time(t.after, slot, t.to) : 1});
    }
    w.held = held.run();
    return w;
  }
  constexpr staged_figures figures(const core_program& c, const machine& on,
                                   bool overlap) const override {
    const pipelined p = finished(c);
    staged_figures out;
    out.error = p.error;
    if (out.error) return out;
    const pipeline_time t = simulate(p, on.device, {.overlap = overlap});
    out.error = t.error;
    if (out.error) return out;
    out.seconds = t.times.total;
    for (const mesh_memory& m : memory_of(p, t.times))
      if (static_cast<double>(m.peak) > out.peak_bytes)
        out.peak_bytes = static_cast<double>(m.peak);
    return out;
  }

 private:
  const pipelined& p_;
  const vec<mesh_set>& on_;
  const vec<call_edge>& edges_;
  const Order& order_;

  /// The maximum number of microbatches that have started in the first stage and are not finished.
  /// Without a backward pass, all of them.
  static constexpr double in_flight(const pipelined& p) {
    int now = 0, most = 0;
    bool back = false;
    for (const int c : p.order) {
      const pipeline_unit& u = p.units[p.unit_of[c]];
      if (!u.inside || u.piece.stage != 0 || u.part == fragment_part::weight) continue;
      now += u.transposed == 0 ? 1 : -1;
      back = back || u.transposed != 0;
      most = now > most ? now : most;
    }
    return back && most > 0 ? most : p.microbatches;
  }
  /// Finishes the pipeline with a core program in its present state.
  constexpr pipelined finished(const core_program& c) const {
    pipelined p = p_;
    if (&c != &p_.core) p.core = c;
    vec<call_edge> edges = edges_;
    unit_lowerer(p, p.core).run();
    drop_idle_units(p, edges);
    finish_units(p);
    if (!p.error) order_calls(p, edges, order_);
    return p;
  }
};

}  // namespace partita::mpmd_detail
