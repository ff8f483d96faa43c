/// Merges units of a pipeline, so that one call runs several of them.
///
/// Source    Shardy:MPMD, fragment merging
#pragma once

#include <concepts>
#include <string_view>

#include <partita/mpmd/regroup.hpp>
#include <partita/mpmd/takers.hpp>
#include <partita/mpmd/unit_text.hpp>
#include <partita/schedule/tactic.hpp>

namespace partita {

/// Selects units by a named part that they run (or a pattern, or the outer part) and the number of
/// times reverse mode was applied, and their calls for all microbatches or for one.
struct fragment_name {
  std::string_view name;
  int transposed = 0;
  int microbatch = -1;  ///< -1: each
};
/// Calls to merge. `{{"head"}, {"head", 1}}`: forward and backward of the last stage, for each
/// microbatch. `{{"head", 0, 0}, {"head", 0, 1}}`: its forward for the first two microbatches.
struct merge_rule {
  fragment_name first, second;
};

namespace mpmd_detail {

/// Merges units by groups.
///
/// Errors    O126 a merged call would need another call that needs its results
class unit_merger {
 public:
  constexpr explicit unit_merger(const pipelined& p) : p_(p) {
    for (int u = 0; u < units(); ++u) group_.push_back(u);
  }
  /// The group of a unit, identified by its first unit.
  constexpr int group(int u) const {
    while (group_[u] != u) u = group_[u];
    return u;
  }
  constexpr void join(int a, int b) {
    a = group(a);
    b = group(b);
    group_[a > b ? a : b] = a > b ? b : a;
  }
  /// Joins two groups unless their calls would then wait for themselves.
  constexpr bool join_if_free(int a, int b) {
    const vec<int> before = group_;
    join(a, b);
    if (!call_waits_for_itself()) return true;
    group_ = before;
    return false;
  }
  /// Joins two calls. Calls of joined units are joined in any case.
  constexpr void join(const unit_call& a, const unit_call& b) { joint_.push_back({a, b}); }
  /// Returns the pipeline with the units merged, or with an error.
  constexpr pipelined run(const failure& mistake) {
    pipelined out = p_;
    out.error.record(mistake);
    if (!out.error) merge_in(out);
    out.error.raise();
    return out;
  }

 private:
  const pipelined& p_;
  vec<int> group_;
  vec<joint_pair> joint_;
  vec<call_edge> edges_;
  vec<vec<int>> members_;  ///< by the first unit of a group
  vec<vec<int>> was_;      ///< by new unit
  vec<vec<int>> takers_;   ///< by value: units that use it; -1: sent, or for the caller

  constexpr int units() const { return static_cast<int>(p_.units.size()); }

  constexpr void merge_in(pipelined& out) {
    edges_ = unit_flow(p_).edges();
    const vec<int> order = order_of_groups(out.error);
    if (out.error) return;
    write(out, order);
    regrouping(out, p_, was_, joint_).run();
  }
  /// The first units of groups in an order of execution. Fewer than all groups if some wait for
  /// themselves.
  constexpr vec<int> free_groups() const {
    vec<call_edge> between;
    for (const call_edge& e : edges_)
      if (group(e.from) != group(e.to)) between.push_back({group(e.from), group(e.to)});
    vec<int> rank;
    for (int u = 0; u < units(); ++u) rank.push_back(u);
    vec<int> order;
    for (const int u : order_by_rank(between, rank))
      if (group(u) == u) order.push_back(u);
    return order;
  }
  constexpr int groups() const {
    int n = 0;
    for (int u = 0; u < units(); ++u) n += group(u) == u;
    return n;
  }
  /// True if a call waits for itself. Units alone do not show this, because a dependence may pass
  /// through states of the loop.
  constexpr bool call_waits_for_itself() const {
    const auto count = static_cast<std::size_t>(p_.microbatches);
    vec<int> first(p_.units.size() * count, -1), one, rank;  // by call: its joint call
    for (int c = 0; c < p_.calls.count(); ++c) {
      const int microbatch = p_.calls.calls[c].microbatch, g = group(p_.unit_of[c]);
      int& call = first[static_cast<std::size_t>(g) * count +
                        static_cast<std::size_t>(microbatch < 0 ? 0 : microbatch)];
      if (call < 0) call = c;
      one.push_back(call);
      rank.push_back(c);
    }
    vec<call_edge> between;
    for (const call_edge& e : p_.calls.edges)
      if (one[e.from] != one[e.to]) between.push_back({one[e.from], one[e.to]});
    return order_by_rank(between, rank).size() < rank.size();
  }
  constexpr vec<int> order_of_groups(failure& error) {
    members_.resize(p_.units.size(), {});
    for (int u = 0; u < units(); ++u) members_[group(u)].push_back(u);
    const vec<int> order = free_groups();
    if (static_cast<int>(order.size()) < groups()) report_cycle(error);
    return order;
  }
  /// Reports a path from a member of a group through other units back into the group.
  constexpr void report_cycle(failure& error) const {
    vec<int> from;
    for (const call_edge& e : edges_) from.push_back(e.from);
    const grouping behind(from, units());
    for (int g = 0; g < units() && !error; ++g)
      if (members_[g].size() > 1) report_cycle(g, behind, error);
    error.record("O126",
                 "merge: calls that are to be merged wait for each other; leave a rule out");
  }
  constexpr void report_cycle(int g, const grouping& behind, failure& error) const {
    vec<int> before(p_.units.size(), -1), pending;
    for (const int u : members_[g]) pending.push_back(u);
    for (std::size_t next = 0; next < pending.size(); ++next) {
      const int u = pending[next];
      for (const int e : behind[u]) {
        const int to = edges_[e].to;
        if (group(to) == g && group(u) != g) return report_way(to, u, before, error);
        if (group(to) == g || before[to] >= 0) continue;
        before[to] = u;
        pending.push_back(to);
      }
    }
  }
  constexpr void report_way(int last, int u, const vec<int>& before, failure& error) const {
    text way;
    int to = last;
    for (; u >= 0; to = u, u = before[u])
      way << (to == last ? "" : ", ") << unit_text(p_.units[to]) << " needs the result of "
          << unit_text(p_.units[u]);
    error.record("O126", "merge: ", unit_text(p_.units[to]).view(), " and ",
                 unit_text(p_.units[last]).view(), " cannot be one call: ", way.view(),
                 "; leave the rule out");
  }

  // ---- Writing ----------------------------------------------------------------------------------

  constexpr void find_takers() {
    takers_.resize(p_.source.types.size(), {});
    for_each_taker(p_, [&](value_id v, int u) { takers_[v].push_back(u); });
    for (const transfer& t : p_.transfers) takers_[t.value].push_back(-1);
    for (const auto& each : p_.source.outputs) takers_[each.value].push_back(-1);
    for (const value_id next : next_states(p_.source))  // the next microbatch uses it
      if (next >= 0) takers_[next].push_back(-1);
  }
  constexpr void write(pipelined& out, const vec<int>& order) {
    find_takers();
    vec<int> number(p_.units.size(), -1);
    out.units.clear();
    for (const int g : order) {
      for (const int u : members_[g]) number[u] = static_cast<int>(out.units.size());
      was_.push_back(members_[g]);
      if (members_[g].size() > 1)
        out.units.push_back(merged(members_[g]));
      else
        out.units.push_back(p_.units[g]);
    }
    for (transfer& t : out.transfers)
      if (t.after >= 0) t.after = number[t.after];
  }
  /// True if a unit outside of a group uses a value.
  constexpr bool is_taken(value_id v, int g) const {
    for (const int u : takers_[v])
      if (u < 0 || group(u) != g) return true;
    return false;
  }
  /// The merged unit: the ops of all members, with recomputed ops once, and the values exchanged
  /// with others.
  constexpr pipeline_unit merged(const vec<int>& members) const {
    pipeline_unit out = p_.units[members[0]];
    out.piece.origins.clear();
    for (auto* list : {&out.piece.inputs, &out.piece.outputs, &out.piece.ops, &out.stacks,
                       &out.sums, &out.combined})
      list->clear();
    out.part = fragment_part::whole;
    vec<char> there(p_.source.ops.size(), 0), taken(p_.source.types.size(), 0);
    for (const int u : members) include(out, p_.units[u], group(u), there, taken);
    return out;
  }
  constexpr void include(pipeline_unit& out, const pipeline_unit& u, int g, vec<char>& there,
                         vec<char>& taken) const {
    for (const value_id v : u.piece.inputs)
      if (there[p_.source.producer(v)] == 0 && taken[v]++ == 0) out.piece.inputs.push_back(v);
    for (const op_id o : u.piece.ops)
      if (there[o]++ == 0) out.piece.ops.push_back(o);
    for (const value_id v : u.piece.outputs)
      if (is_taken(v, g)) out.piece.outputs.push_back(v);
    for (const auto& each : u.piece.origins) add_origin(out.piece, each);
    append(out.stacks, u.stacks);
    append(out.sums, u.sums);
    append(out.combined, u.combined);
    out.joined |= kinds_of(u);
  }
  static constexpr void append(vec<op_id>& to, const vec<op_id>& from) {
    for (const op_id o : from) to.push_back(o);
  }
  static constexpr std::uint8_t kinds_of(const pipeline_unit& u) {
    const fragment_call c{.transposed = u.transposed, .part = u.part, .joined = u.joined};
    return u.inside ? static_cast<std::uint8_t>(c.kinds()) : std::uint8_t{0};
  }
  static constexpr void add_origin(fragment& f, const fragment_origin& origin) {
    for (const auto& each : f.origins)
      if (each == origin) return;
    f.origins.push_back(origin);
  }
};

/// The units of the loop that a rule selects.
constexpr vec<int> units_named(const pipelined& p, const fragment_name& f) {
  vec<int> out;
  for (int u = 0; u < static_cast<int>(p.units.size()); ++u) {
    bool found = false;
    for (const auto& each : p.units[u].piece.origins)
      found = found || (each.transposed == f.transposed &&
                        (schedule_detail::selects(f.name, each.name) ||
                         schedule_detail::selects_pattern(f.name, each.name)));
    if (found && p.units[u].inside) out.push_back(u);
  }
  return out;
}
constexpr void check_named(const pipelined& p, const fragment_name& f, const vec<int>& found,
                           failure& error) {
  if (f.microbatch >= p.microbatches || f.microbatch < -1)
    error.record("O129", "merge: microbatch ", f.microbatch, " of \"", f.name,
                 "\"; microbatches are numbered from 0 to ", p.microbatches - 1,
                 ", and -1 means each one");
  if (!found.empty()) return;
  vec<std::string_view> known;
  for (const auto& u : p.units)
    for (const auto& each : u.piece.origins)
      if (u.inside && each.transposed == f.transposed) known.push_back(each.name);
  text name = concat('"', f.name, '"');
  if (f.transposed > 0) name << '(' << f.transposed << ')';
  error.record("O127", "merge: no unit runs ", name.view(), "; ", known_names(f.name, known));
}

/// Joins calls of two units for the given microbatches. -1: for each microbatch, the same one of
/// both.
constexpr void join_calls(const pipelined& p, unit_merger& merger, int a, int i, int b, int k) {
  if (i < 0 && k < 0) {
    if (a != b) merger.join(a, b);
    return;
  }
  for (int x = i < 0 ? 0 : i; x <= (i < 0 ? p.microbatches - 1 : i); ++x)
    for (int y = k < 0 ? 0 : k; y <= (k < 0 ? p.microbatches - 1 : k); ++y)
      if (a != b || x != y) merger.join(unit_call{a, x}, unit_call{b, y});
}

}  // namespace mpmd_detail

/// Merges calls of a pipeline by rules. A rule applies to each pair of units of the loop on one
/// mesh where its first name selects one unit and its second name the other: their calls for the
/// same microbatch become one, or those for the microbatches that the names state. If all calls of
/// two units are merged, the units become one function; values used only inside stay inside, and
/// `order_of` shows the calls as `FB3`. Other groups, of several microbatches or of some, are
/// functions too, one for each distinct sequence of units and distances of microbatches: `F0+F1`. A
/// merged call takes the place of its first part.
///
/// Cost      linear in the ops of units and in calls, except for sorting; rules times units
/// Errors    O126 a merged call would need another call that needs its results (names the chain);
///           O127 no unit has this name; O128 units on different meshes; O129 no such microbatch;
///           O007 deadlock
constexpr pipelined merged(const pipelined& p, const vec<merge_rule>& rules) {
  failure error;
  mpmd_detail::unit_merger merger(p);
  for (const merge_rule& r : rules) {
    const vec<int> first = mpmd_detail::units_named(p, r.first),
                   second = mpmd_detail::units_named(p, r.second);
    mpmd_detail::check_named(p, r.first, first, error);
    mpmd_detail::check_named(p, r.second, second, error);
    bool any = false;
    if (!error)
      for (const int a : first)
        for (const int b : second)
          if (p.units[a].piece.mesh == p.units[b].piece.mesh) {
            mpmd_detail::join_calls(p, merger, a, r.first.microbatch, b, r.second.microbatch);
            any = true;
          }
    if (!any && !error)
      error.record("O128", "merge: ", mpmd_detail::unit_text(p.units[first[0]]).view(),
                   " runs on mesh \"", p.topology.name(p.units[first[0]].piece.mesh), "\" and ",
                   mpmd_detail::unit_text(p.units[second[0]]).view(), " on mesh \"",
                   p.topology.name(p.units[second[0]].piece.mesh),
                   "\"; a merged call runs on one mesh");
  }
  return merger.run(error);
}

/// A predicate over two calls: true if they are merged.
template <class F>
concept MergePredicate = requires(const F& f, const fragment_call& c) {
  { f(c, c) } -> std::same_as<bool>;
};
/// Merges calls by a predicate. It is called for each pair of calls of the loop on one mesh, in the
/// order of their units, then of microbatches. A predicate that ignores microbatches merges all of
/// them; `a.microbatch == b.microbatch` keeps them separate.
///
/// Cost      as above, and the square of the calls of a mesh
/// Errors    as above
template <MergePredicate F>
constexpr pipelined merged(const pipelined& p, const F& together) {
  mpmd_detail::unit_merger merger(p);
  const int units = static_cast<int>(p.units.size()), n = p.microbatches;
  const auto call = [&](int u) -> fragment_call {
    const pipeline_unit& each = p.units[u];
    return {each.piece.stage, each.piece.mesh, each.transposed, 0, each.part, each.joined};
  };
  for (int a = 0; a < units; ++a)
    for (int b = a; b < units; ++b) {
      if (!p.units[a].inside || !p.units[b].inside) continue;
      fragment_call first = call(a), second = call(b);
      if (first.mesh != second.mesh) continue;
      vec<int> same;
      for (int i = first.microbatch = 0; i < n; first.microbatch = ++i)
        for (int k = second.microbatch = a == b ? i + 1 : 0; k < n; second.microbatch = ++k) {
          if (!together(first, second)) continue;
          if (i == k)
            same.push_back(i);
          else
            merger.join(mpmd_detail::unit_call{a, i}, mpmd_detail::unit_call{b, k});
        }
      if (a != b && static_cast<int>(same.size()) == n)
        merger.join(a, b);
      else
        for (const int i : same)
          merger.join(mpmd_detail::unit_call{a, i}, mpmd_detail::unit_call{b, i});
    }
  return merger.run({});
}

/// Merges the units outside of the loop into one call per mesh where possible: those that do not
/// wait for each other through another unit (the end of the loss, and the optimizer). Their results
/// are then available when the merged call ends.
///
/// Law       no two units outside of the loop on one mesh remain that could be merged
/// Cost      linear in calls and dependences, for each pair of units outside of the loop on a mesh
/// Errors    O007 deadlock
constexpr pipelined absorbed(const pipelined& p) {
  mpmd_detail::unit_merger merger(p);
  const int units = static_cast<int>(p.units.size());
  bool any = false;
  for (int b = 0; b < units; ++b)
    for (int a = 0; a < b; ++a) {
      const pipeline_unit &first = p.units[a], &second = p.units[b];
      if (first.inside || second.inside || first.piece.mesh != second.piece.mesh) continue;
      if (merger.group(a) != merger.group(b)) any = merger.join_if_free(a, b) || any;
    }
  if (!any) return p;
  return merger.run({});
}

}  // namespace partita
