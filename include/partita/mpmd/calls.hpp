/// The calls of a pipeline, one for each unit and microbatch, and the messages between them.
#pragma once

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::mpmd_detail {

/// Lists the calls of all units, their dependences, and the messages between them.
class call_writer {
 public:
  constexpr call_writer(pipelined& out, const vec<call_edge>& edges)
      : out_(out), edges_(edges), call_of_(out.units.size(), vec<int>{}) {}

  // Declared before its uses because Clang otherwise considers it undefined in constant
  // expressions.
  template <class F>
  constexpr void for_each_unit(const F& f) const {
    for (int u = 0; u < static_cast<int>(out_.units.size()); ++u) f(u);
  }

  /// Adds the calls in program order: those before the loop, the microbatches one by one, those
  /// after the loop.
  constexpr void add_calls() {
    const vec<char> behind = units_behind();
    out_.calls.meshes = out_.topology.count();
    out_.calls.names.clear();
    for (const std::string_view name : out_.topology.names()) out_.calls.names.push_back(name);
    for_each_unit([&](int u) {
      if (!unit(u).inside && behind[u] == 0) add(u, -1);
    });
    for (int i = 0; i < out_.microbatches; ++i)
      for_each_unit([&](int u) {
        if (unit(u).inside) add(u, i);
      });
    for_each_unit([&](int u) {
      if (!unit(u).inside && behind[u] != 0) add(u, -1);
    });
    for (const auto& e : edges_) connect(e);
    find_ranks();
  }
  /// The number of stages and of meshes that have stages.
  constexpr pipeline_shape shape() const {
    return {.meshes = ranks_, .stages = stages_, .microbatches = out_.microbatches};
  }
  /// Errors    O124 a stage is on a different mesh than the order requires
  constexpr void check_places(const pipeline_order& order, failure& error) const {
    if (order.anywhere) return;
    for (const auto& u : out_.units) {
      if (!u.inside) continue;
      const int wanted = order.mesh_of(u.piece.stage, shape());
      if (out_.calls.rank[u.piece.mesh] == wanted) continue;
      return error.record("O124", "pipeline: stage ", u.piece.stage, " is on mesh \"",
                          out_.topology.name(u.piece.mesh), "\"; ", order.name, " has it on \"",
                          out_.topology.name(mesh_of_rank(wanted)), '"');
    }
  }
  /// A message for each transfer (for each microbatch if the value belongs to one), in the order in
  /// which messages are received.
  constexpr vec<message> messages() {
    place_.resize(out_.calls.calls.size(), 0);
    for (int i = 0; i < static_cast<int>(out_.order.size()); ++i) place_[out_.order[i]] = i;
    find_takers();
    for (int t = 0; t < static_cast<int>(out_.transfers.size()); ++t)
      if (out_.transfers[t].after >= 0) send(t);  // inputs are sent first
    vec<int> sorted;
    for (int i = 0; i < static_cast<int>(list_.size()); ++i) sorted.push_back(i);
    merge_sort(sorted, [&](int a, int b) {
      const message &x = list_[a], &y = list_[b];
      return x.user != y.user ? place_[x.user] < place_[y.user] : place_[x.call] < place_[y.call];
    });
    vec<message> out;
    for (const int i : sorted) out.push_back(list_[i]);
    return out;
  }

 private:
  pipelined& out_;
  const vec<call_edge>& edges_;
  vec<vec<int>> call_of_;       ///< by unit: its calls, by microbatch
  vec<vec<call_edge>> takers_;  ///< by slot: units that use it (`to`), `later` microbatches later
  vec<int> place_;              ///< by call, in the order
  int ranks_ = 0, stages_ = 0;
  vec<message> list_;

  constexpr const pipeline_unit& unit(int u) const { return out_.units[u]; }
  constexpr void add(int u, int microbatch) {
    const fragment& f = unit(u).piece;
    call_of_[u].push_back(out_.calls.count());
    out_.calls.calls.push_back({f.stage, f.mesh, unit(u).transposed, microbatch, unit(u).part});
    out_.unit_of.push_back(u);
  }
  /// The units outside of the loop that depend on its results. Units are in an order of execution.
  constexpr vec<char> units_behind() const {
    vec<int> to;
    for (const auto& e : edges_) to.push_back(e.to);
    const grouping into(to, static_cast<int>(out_.units.size()));
    vec<char> behind(out_.units.size(), 0);
    for_each_unit([&](int u) {
      for (const int e : into[u])
        if (!unit(u).inside && (unit(edges_[e].from).inside || behind[edges_[e].from] != 0))
          behind[u] = 1;
    });
    return behind;
  }
  constexpr void connect(const call_edge& e) {
    const vec<int>&from = call_of_[e.from], &to = call_of_[e.to];
    if (unit(e.from).inside && unit(e.to).inside) {
      for (int i = e.later; i < out_.microbatches; ++i)
        out_.calls.edges.push_back({from[i - e.later], to[i]});
      return;
    }
    for (const int a : from)
      for (const int b : to) out_.calls.edges.push_back({a, b});
  }
  /// Numbers meshes by their first stages.
  constexpr void find_ranks() {
    vec<int> mesh_of_stage;
    for_each_unit([&](int u) {
      if (!unit(u).inside || unit(u).piece.stage < 0) return;
      const std::size_t stage = static_cast<std::size_t>(unit(u).piece.stage);
      if (stage >= mesh_of_stage.size()) mesh_of_stage.resize(stage + 1, -1);
      mesh_of_stage[stage] = unit(u).piece.mesh;
    });
    stages_ = static_cast<int>(mesh_of_stage.size());
    out_.calls.rank.resize(out_.calls.meshes, -1);
    for (const int mesh : mesh_of_stage) {
      if (mesh < 0) continue;
      int& rank = out_.calls.rank[mesh];
      if (rank >= 0)
        out_.calls.with_stage = true;
      else
        rank = ranks_++;
    }
  }
  constexpr int mesh_of_rank(int rank) const {
    int mesh = 0;
    while (out_.calls.rank[mesh] != rank) ++mesh;
    return mesh;
  }
  constexpr void find_takers() {
    const program& p = out_.values();
    takers_.resize(p.types.size(), vec<call_edge>{});
    for_each_unit([&](int u) {
      const std::size_t own = unit(u).takes.size() - unit(u).sums.size();
      for (std::size_t k = 0; k < own; ++k) {
        const value_id v = unit(u).takes[k].slot;
        const op_id o = p.producer(v);
        takers_[enters(p.op(o)) && p.op(o).operand_count > 0 ? p.operand(o, 0) : v].push_back(
            {-1, u});
        if (const value_id next = out_.next_of(v); next >= 0) takers_[next].push_back({-1, u, 1});
      }
    });
  }
  constexpr void send(int number) {
    const transfer& t = out_.transfers[number];
    const bool each = unit(t.after).inside;
    for (int i = 0; i < (each ? out_.microbatches : 1); ++i) {
      message m{.call = each ? call_of_[t.after][i] : last_call(t.after),
                .user = first_user(t, each ? i : -1),
                .transfer = number,
                .microbatch = each ? i : -1};
      if (m.user >= 0) list_.push_back(m);  // otherwise only the caller uses it
    }
  }
  constexpr int last_call(int u) const {
    int last = call_of_[u][0];
    for (const int c : call_of_[u])
      if (place_[c] > place_[last]) last = c;
    return last;
  }
  /// The first call on the receiving mesh that uses a value of a microbatch (-1: of any), or -1.
  constexpr int first_user(const transfer& t, int microbatch) const {
    int first = -1;
    const auto look = [&](int c) {
      if (first < 0 || place_[c] < place_[first]) first = c;
    };
    for (const call_edge& each : takers_[out_.slot_of[t.value]]) {
      const int u = each.to, i = microbatch + each.later;
      if (unit(u).piece.mesh != t.to) continue;
      if (microbatch >= 0 && unit(u).inside) {
        if (i < out_.microbatches) look(call_of_[u][i]);
      } else if (microbatch < 0 || i == out_.microbatches - 1) {
        for (const int c : call_of_[u]) look(c);
      }
    }
    return first;
  }
};

}  // namespace partita::mpmd_detail
