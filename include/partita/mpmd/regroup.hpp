/// Recomputes dependences, calls, messages and lists of a pipeline after its units have changed.
#pragma once

#include <partita/mpmd/joint_calls.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/unit_functions.hpp>
#include <partita/support/heap.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::mpmd_detail {

/// Which unit computes each value on each mesh, and which units use it.
class unit_flow {
 public:
  constexpr explicit unit_flow(const pipelined& p)
      : p_(p),
        next_(next_states(p.source)),
        makers_(p.source.types.size(), {}),
        arrivals_(p.source.types.size(), {}) {
    for (int u = 0; u < static_cast<int>(p.units.size()); ++u) {
      for (const value_id v : p.units[u].piece.outputs) note(v, u);
      for (const auto* list : {&p.units[u].stacks, &p.units[u].sums})
        for (const op_id o : *list) note(p.source.op(o).result, u);
    }
    for (const transfer& t : p.transfers) arrivals_[t.value].push_back({t.to, t.after});
  }
  /// The unit that computes a value on a mesh, or -1 for an input.
  constexpr int maker(value_id v, int mesh) const {
    if (const int u = find(v, mesh); u >= 0) return u;
    const op_id o = p_.source.producer(v);
    const op_node& n = p_.source.op(o);  // the user makes a slice, and a kept value stays
    const bool passed_on = enters(n) || n.def->id == def<op::microbatch_keep>.id;
    return passed_on && n.operand_count > 0 ? find(p_.source.operand(o, 0), mesh) : -1;
  }
  /// The dependences between units, each pair once.
  ///
  /// Cost: linear in the operands of units.
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
  /// The dependences, including those on the microbatch before.
  constexpr vec<call_edge> all_edges() const {
    vec<call_edge> out = edges();
    if (next_.empty()) return out;
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u)
      for (const value_id v : p_.units[u].piece.inputs)
        if (next_[v] >= 0) out.push_back({find(next_[v], p_.units[u].piece.mesh), u, 1});
    return out;
  }

 private:
  struct place {
    int mesh, unit;
  };
  const pipelined& p_;
  vec<value_id> next_;                 ///< see next_states
  vec<vec<place>> makers_, arrivals_;  ///< by value

  constexpr void note(value_id v, int u) { makers_[v].push_back({p_.units[u].piece.mesh, u}); }
  constexpr int find(value_id v, int mesh) const {
    for (const auto* list : {&makers_, &arrivals_})
      for (const place& each : (*list)[v])
        if (each.mesh == mesh) return each.unit;
    return -1;
  }
};

/// Units in an order in which each follows its dependences, close to that of `rank` (lowest first).
/// Fewer units if some wait for themselves.
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

/// Two calls of the loop that become one.
struct joint_pair {
  unit_call first, second;
};

/// Rewrites functions, calls, order, messages and lists of a pipeline whose units have changed.
/// Meshes keep the order of their calls as far as the new dependences permit. Joint calls stay
/// joint.
///
/// Cost: linear in calls and messages, except for sorting.
/// Errors    O126 merged calls wait for themselves; O007 deadlock; O134
class regrouping {
 public:
  /// `was`: by unit, the numbers of its units in `before`, one or several. `joint`: further calls
  /// to merge, by the numbers of units in `before`.
  constexpr regrouping(pipelined& p, const pipelined& before, const vec<vec<int>>& was,
                       const vec<joint_pair>& joint = {})
      : p_(p),
        was_(was),
        joint_(joint),
        now_(before.units.size(), -1),
        place_(before.units.size(), {}) {
    for (int u = 0; u < static_cast<int>(was.size()); ++u)
      for (const int each : was[u]) now_[each] = u;
    for (const joint_call& call : before.joint_calls)
      for (std::size_t i = 1; i < call.calls.size(); ++i)
        joint_.push_back({call_of(before, call.calls[0]), call_of(before, call.calls[i])});
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
    const vec<call_edge> edges = unit_flow(p_).all_edges();
    call_writer calls(p_, edges);
    calls.add_calls();
    for (int c = 0; c < p_.calls.count(); ++c)
      p_.calls.calls[c].joined = p_.units[p_.unit_of[c]].joined;
    find_groups();
    find_order();
    if (p_.error) return;
    if (!p_.joint_calls.empty()) joint_finder(p_).run();
    p_.lists = lists_with_messages(p_.calls, p_.order, calls.messages(), p_.joint_of);
    p_.error.record(find_deadlock(p_.calls, p_.lists, p_.channels));
    if (!p_.error) check_memory(p_);
  }

 private:
  pipelined& p_;
  const vec<vec<int>>& was_;
  vec<joint_pair> joint_;
  vec<int> now_;         ///< by previous unit: its present number
  vec<vec<int>> place_;  ///< by previous unit and microbatch: its position in the order
  vec<int> group_;       ///< by call: another call of the same joint call, or itself

  static constexpr unit_call call_of(const pipelined& p, int call) {
    return {p.unit_of[call], p.calls.calls[call].microbatch};
  }
  constexpr void write_functions() {
    if (p_.core.p.ops.empty()) return write_whole_functions(p_, p_.source);
    unit_lowerer(p_, p_.core).run();
    p_.collectives = count_calls(p_);
    finish_units(p_);
  }

  // ---- Joint calls ------------------------------------------------------------------------------

  constexpr int group(int call) {
    while (group_[call] != call) call = group_[call] = group_[group_[call]];
    return call;
  }
  constexpr void find_groups() {
    group_.clear();
    for (int c = 0; c < p_.calls.count(); ++c) group_.push_back(c);
    if (joint_.empty()) return;
    vec<vec<int>> call_of(p_.units.size(), {});
    for (int c = 0; c < p_.calls.count(); ++c) call_of[p_.unit_of[c]].push_back(c);
    for (const joint_pair& pair : joint_) {
      const int a = group(call_of[now_[pair.first.unit]][pair.first.microbatch]),
                b = group(call_of[now_[pair.second.unit]][pair.second.microbatch]);
      group_[a > b ? a : b] = a > b ? b : a;
    }
  }
  /// Writes the joint calls of calls in order, in which their parts are adjacent.
  constexpr void write_joint_calls() {
    p_.joint_calls.clear();
    p_.joint_of.clear();
    vec<int> size(p_.calls.calls.size(), 0), number(p_.calls.calls.size(), -1);
    for (int c = 0; c < p_.calls.count(); ++c) ++size[group(c)];
    for (const int c : p_.order) {
      if (size[group(c)] == 1) continue;
      int& joint = number[group(c)];
      if (joint < 0) {
        joint = static_cast<int>(p_.joint_calls.size());
        p_.joint_calls.push_back(joint_call{});
      }
      p_.joint_calls[joint].calls.push_back(c);
    }
    if (p_.joint_calls.empty()) return;
    for (int c = 0; c < p_.calls.count(); ++c) p_.joint_of.push_back(number[group(c)]);
  }

  // ---- Order ------------------------------------------------------------------------------------

  constexpr int rank(int call) const {
    const int microbatch = p_.calls.calls[call].microbatch;
    int first = -1;
    for (const int u : was_[p_.unit_of[call]]) {
      const int at = place_[u][microbatch < 0 ? 0 : microbatch];
      if (first < 0 || at < first) first = at;
    }
    return first;
  }
  /// The dependences between groups of calls, identified by their first calls.
  constexpr vec<call_edge> between_groups() {
    vec<call_edge> out;
    for (const call_edge& e : p_.calls.edges)
      if (group(e.from) != group(e.to)) out.push_back({group(e.from), group(e.to)});
    return out;
  }
  constexpr void find_order() {
    const int count = p_.calls.count();
    vec<int> own, ranks, last(static_cast<std::size_t>(p_.calls.meshes), -1);
    for (int c = 0; c < count; ++c) own.push_back(rank(c));
    ranks = own;
    for (int c = 0; c < count; ++c)
      if (own[c] < ranks[group(c)]) ranks[group(c)] = own[c];
    const vec<call_edge> data = between_groups();
    vec<call_edge> edges = data;
    for (const int c : order_by_rank({}, ranks)) {
      if (group(c) != c) continue;
      int& before = last[p_.calls.calls[c].mesh];
      if (before >= 0) edges.push_back({before, c});
      before = c;
    }
    vec<int> groups = order_by_rank(edges, ranks);
    if (static_cast<int>(groups.size()) < count) groups = order_by_rank(data, ranks);
    if (static_cast<int>(groups.size()) < count) return report_cycle(groups);
    expand(groups, own);
    write_joint_calls();
  }
  /// Orders the calls of each group by their dependences, close to the previous order.
  constexpr void expand(const vec<int>& groups, const vec<int>& own) {
    p_.order = groups;
    if (joint_.empty()) return;
    vec<int> place(group_.size(), 0);
    for (int i = 0; i < static_cast<int>(groups.size()); ++i) place[groups[i]] = i;
    p_.order = order_by_rank(p_.calls.edges, own);
    merge_sort(p_.order, [&](int a, int b) { return place[group(a)] < place[group(b)]; });
  }
  /// Reports a cycle: follows the dependences of groups backward until a group repeats.
  constexpr void report_cycle(const vec<int>& done) {
    vec<char> waits(group_.size(), 1), seen(group_.size(), 0);
    for (const int c : done) waits[c] = 0;
    vec<int> before(group_.size(), -1);  // by group: the number of an edge into it
    for (int e = 0; e < static_cast<int>(p_.calls.edges.size()); ++e) {
      const int from = group(p_.calls.edges[e].from), to = group(p_.calls.edges[e].to);
      if (from != to && waits[from] != 0 && waits[to] != 0) before[to] = e;
    }
    const auto next = [&](int g) { return group(p_.calls.edges[before[g]].from); };
    int at = 0;
    while (before[at] < 0) ++at;
    for (; seen[at] == 0; at = next(at)) seen[at] = 1;
    vec<call_edge> cycle;
    const int begin = at;
    do {
      cycle.push_back(p_.calls.edges[before[at]]);
      at = next(at);
    } while (at != begin);
    report_cycle(cycle);
  }
  /// Each edge starts in the group in which the next one ends.
  constexpr void report_cycle(const vec<call_edge>& cycle) {
    const std::size_t n = cycle.size();
    std::size_t begin = 0;  // where two different calls of a group meet
    while (cycle[(begin + n - 1) % n].from == cycle[begin].to) ++begin;
    const int last = cycle[begin].to, first = cycle[(begin + n - 1) % n].from;
    text way;
    int at = last;
    for (std::size_t i = 0; i < n; ++i) {
      const call_edge& e = cycle[(begin + i) % n];
      if (e.to != at) way << ", " << name_of(at) << " is one call with " << name_of(e.to);
      way << (way.empty() ? "" : ", ") << name_of(e.to) << " needs the result of "
          << name_of(e.from);
      at = e.from;
    }
    p_.error.record("O126", "merge: ", name_of(first).view(), " and ", name_of(last).view(),
                    " cannot be one call: ", way.view(), "; leave the rule out");
  }
  constexpr text name_of(int call) const { return call_text(p_.calls.calls[call], true); }
};

}  // namespace partita::mpmd_detail
