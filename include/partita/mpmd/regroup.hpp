/// Pipelines whose units have changed: what waits for what, calls, messages and lists anew.
#pragma once

#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/unit_functions.hpp>
#include <partita/support/heap.hpp>

namespace partita::mpmd_detail {

/// Who makes which value where, and who takes it.
class unit_flow {
 public:
  constexpr explicit unit_flow(const pipelined& p)
      : p_(p), makers_(p.source.types.size(), {}), arrivals_(p.source.types.size(), {}) {
    for (int u = 0; u < static_cast<int>(p.units.size()); ++u) {
      for (const value_id v : p.units[u].piece.outputs) note(v, u);
      for (const auto* list : {&p.units[u].stacks, &p.units[u].sums})
        for (const op_id o : *list) note(p.source.op(o).result, u);
    }
    for (const transfer& t : p.transfers) arrivals_[t.value].push_back({t.to, t.after});
  }
  /// The unit that makes what is a value on a mesh, or -1: it is an input.
  constexpr int maker(value_id v, int mesh) const {
    if (const int u = find(v, mesh); u >= 0) return u;
    const op_id o = p_.source.producer(v);
    const op_node& n = p_.source.op(o);  // a slice is cut, and a value kept as it is, by its taker
    const bool passed_on = enters(n) || n.def->id == def<op::microbatch_keep>.id;
    return passed_on && n.operand_count > 0 ? find(p_.source.operand(o, 0), mesh) : -1;
  }
  /// What waits for what, each pair once.
  ///
  /// Cost: linear in what units take.
  constexpr vec<call_edge> edges() const {
    vec<call_edge> out;
    vec<int> last(p_.units.size(), -1);
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u)
      for (const value_id v : p_.units[u].piece.inputs) {
        const int from = maker(v, p_.units[u].piece.mesh);
        if (from < 0 || from == u || last[from] == u) continue;
        last[from] = u;
        out.push_back({from, u});
      }
    return out;
  }

 private:
  struct place {
    int mesh, unit;
  };
  const pipelined& p_;
  vec<vec<place>> makers_, arrivals_;  ///< by value

  constexpr void note(value_id v, int u) { makers_[v].push_back({p_.units[u].piece.mesh, u}); }
  constexpr int find(value_id v, int mesh) const {
    for (const auto* list : {&makers_, &arrivals_})
      for (const place& each : (*list)[v])
        if (each.mesh == mesh) return each.unit;
    return -1;
  }
};

/// Units in an order in which each stands behind those that it waits for, near to that of `rank`
/// (least first); fewer, if some wait for themselves.
constexpr vec<int> order_by_rank(const vec<call_edge>& edges, const vec<int>& rank) {
  vec<int> from, waiting(rank.size(), 0), out;
  for (const call_edge& e : edges) {
    from.push_back(e.from);
    ++waiting[e.to];
  }
  const grouping behind(from, static_cast<int>(rank.size()));
  struct entry {
    int rank, number;
    constexpr bool operator<(const entry& other) const {
      return rank != other.rank ? rank < other.rank : number < other.number;
    }
  };
  heap<entry> ready;
  for (int i = 0; i < static_cast<int>(rank.size()); ++i)
    if (waiting[i] == 0) ready.push({rank[i], i});
  while (!ready.empty()) {
    const int next = ready.pop().number;
    out.push_back(next);
    for (const int e : behind[next])
      if (--waiting[edges[e].to] == 0) ready.push({rank[edges[e].to], edges[e].to});
  }
  return out;
}

/// Writes down functions, calls, order, messages and lists of a pipeline whose units have changed.
/// Meshes keep the order of their calls as far as the new flow of data lets them.
///
/// Cost: linear in calls and in what is sent, but for sorting.
class regrouping {
 public:
  /// `was`: by unit, the numbers that its units have in `before`, one or several.
  constexpr regrouping(pipelined& p, const pipelined& before, const vec<vec<int>>& was)
      : p_(p), was_(was), place_(before.units.size(), {}) {
    for (int i = 0; i < static_cast<int>(before.order.size()); ++i) {
      const int c = before.order[i], u = before.unit_of[c];
      const int microbatch = before.calls.calls[c].microbatch;
      vec<int>& places = place_[u];
      const std::size_t at = static_cast<std::size_t>(microbatch < 0 ? 0 : microbatch);
      if (at >= places.size()) places.resize(at + 1, i);
      places[at] = i;
    }
  }

  constexpr void run() {
    write_functions();
    p_.calls = {};
    p_.unit_of = {};
    const vec<call_edge> edges = unit_flow(p_).edges();
    call_writer calls(p_, edges);
    calls.add_calls();
    for (int c = 0; c < p_.calls.count(); ++c)
      p_.calls.calls[c].joined = p_.units[p_.unit_of[c]].joined;
    find_order();
    p_.lists = lists_with_messages(p_.calls, p_.order, calls.messages());
    p_.error.record(find_deadlock(p_.calls, p_.lists, p_.channels));
    if (!p_.error) check_memory(p_);
  }

 private:
  pipelined& p_;
  const vec<vec<int>>& was_;
  vec<vec<int>> place_;  ///< by unit of before and microbatch: its place in the order

  constexpr void write_functions() {
    if (p_.core.p.ops.empty()) return write_whole_functions(p_, p_.source);
    unit_lowerer(p_, p_.core).run();
    p_.collectives = count_calls(p_);
    finish_units(p_);
  }
  constexpr int rank(int call) const {
    const int microbatch = p_.calls.calls[call].microbatch;
    int first = -1;
    for (const int u : was_[p_.unit_of[call]]) {
      const int at = place_[u][microbatch < 0 ? 0 : microbatch];
      if (first < 0 || at < first) first = at;
    }
    return first;
  }
  constexpr void find_order() {
    vec<int> ranks;
    for (int c = 0; c < p_.calls.count(); ++c) ranks.push_back(rank(c));
    vec<call_edge> edges = p_.calls.edges;
    vec<int> by_rank = order_by_rank({}, ranks),
             last(static_cast<std::size_t>(p_.calls.meshes), -1);
    for (const int c : by_rank) {
      int& before = last[p_.calls.calls[c].mesh];
      if (before >= 0) edges.push_back({before, c});
      before = c;
    }
    p_.order = order_by_rank(edges, ranks);
    if (p_.order.size() < ranks.size()) p_.order = order_by_rank(p_.calls.edges, ranks);
  }
};

}  // namespace partita::mpmd_detail
