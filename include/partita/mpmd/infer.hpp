/// Infers the meshes of ops that are not assigned.
///
/// Source    Shardy:MPMD, mesh inference
#pragma once

#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/mpmd/assign.hpp>
#include <partita/mpmd/states.hpp>

namespace partita {

namespace mpmd_detail {

/// A chain of one op that combines values of several meshes. Its intermediate results have no other
/// users.
struct cross_mesh_chain {
  op_id root = -1;
  vec<value_id> leaves;  ///< left to right
  vec<int> group;        ///< by leaf: the mesh on which it is combined with others
};

/// The mesh of each op, input and output.
struct inferred_program {
  vec<mesh_set> use;  ///< by op: meshes that need it; for an assigned op, its mesh
  vec<mesh_set> src;  ///< by op: meshes where its result is available without further transfers
  /// By op: the meshes where its result can be available. Larger than `src` for chains that combine
  /// values of several meshes, because each mesh may send its partial result.
  vec<mesh_set> reach;
  vec<int> input_mesh, output_mesh;
  vec<cross_mesh_chain> chains;  ///< chains that are combined per mesh
  vec<int> chain_of;             ///< by op: its place in `chains`, or -1
  failure error;
};

/// `use` is the union of the meshes of all direct and indirect users of an op. `src` are the meshes
/// that have all operands. The result of a named part is available on its mesh and on those of the
/// parts that use it, because it is sent there; an input is available anywhere. A chain over
/// several meshes is available where all its operands are, and is sent if it is needed elsewhere.
///
/// Outputs and other results without users are placed where they are available, on the first of
/// these meshes. If they are available everywhere, they are placed with the inputs that they are
/// computed from. A next state is sent to its mesh if it is not available there.
///
/// Cost      a few walks over all ops; linear
/// Errors    O110 an op is needed where it cannot be had; O111 a state on two meshes
class inference {
 public:
  constexpr inference(const program& p, const topology& t, const assignment& a,
                      const assigned_program& given)
      : p_(p), t_(t), infer_(a.infer_transfers), given_(given) {
    out_.error.record(given.error);
  }

  constexpr inferred_program run() {
    if (out_.error) return static_cast<inferred_program&&>(out_);
    find_open();
    find_users();
    find_parents();
    find_links();
    find_sources();
    place_values();
    if (!out_.error) check();
    return static_cast<inferred_program&&>(out_);
  }

 private:
  const program& p_;
  const topology& t_;
  bool infer_;
  const assigned_program& given_;
  inferred_program out_;

  vec<char> fixed_;     ///< by op: true if its mesh is assigned
  vec<char> open_;      ///< by op: true if its mesh is to be inferred
  vec<int> uses_;       ///< by value: number of operands and outputs that are this value
  vec<op_id> user_;     ///< by value: the last op that uses it
  vec<op_id> parent_;   ///< by op: the op of the chain that uses its result, or -1
  vec<mesh_set> from_;  ///< by op: meshes of the parts that it depends on
  vec<mesh_set> leaf_src_, leaf_reach_;  ///< by op: common to all leaves of a chain
  vec<char> leaf_nowhere_;               ///< by op: true if a leaf of a chain is available nowhere
  vec<mesh_set> asked_;                  ///< by op: meshes of outputs and leaves
  vec<int> input_of_;                    ///< by op: its number among the inputs, or -1
  vec<int> state_of_;                    ///< by output: the input whose next state it is, or -1

  constexpr op_id made_by(value_id v) const { return p_.producers[v]; }
  constexpr bool is_input(op_id o) const { return p_.is(o, op_role::parameter); }
  constexpr bool fixed(op_id o) const { return fixed_[o] != 0; }
  constexpr bool open(op_id o) const { return open_[o] != 0; }
  constexpr void find_open() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const bool input = is_input(o), given = given_.fixed(o);
      fixed_.push_back(given && !input);
      open_.push_back(!given && !input && given_.free[o] == 0);
    }
  }

  // ---- Chains -----------------------------------------------------------------------------------

  constexpr void find_users() {
    uses_.resize(p_.types.size(), 0);
    user_.resize(p_.types.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o)) ++uses_[v], user_[v] = o;
    for (const auto& out : p_.outputs) ++uses_[out.value], user_[out.value] = -1;
  }
  static constexpr bool combines(const op_def& d) {
    for (combiner c : {combiner::add, combiner::max, combiner::min, combiner::multiply,
                       combiner::logical_and, combiner::logical_or})
      if (combining_op(c).id == d.id) return true;
    return false;
  }
  constexpr bool in_chain(op_id o) const {
    return open(o) && p_.ops[o].operand_count == 2 && combines(*p_.ops[o].def);
  }
  constexpr void find_parents() {
    parent_.resize(p_.ops.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const value_id v = p_.ops[o].result;
      if (!in_chain(o) || uses_[v] != 1 || user_[v] < 0) continue;
      if (in_chain(user_[v]) && p_.ops[user_[v]].def->id == p_.ops[o].def->id)
        parent_[o] = user_[v];
    }
  }
  constexpr bool is_leaf(op_id user, value_id v) const { return parent_[made_by(v)] != user; }
  /// The leaves of a chain from left to right. Iterative, because chains can be as long as
  /// programs.
  constexpr vec<value_id> leaves_of(op_id root) const {
    vec<value_id> leaves, pending{p_.operand(root, 1), p_.operand(root, 0)};
    vec<op_id> users{root, root};
    while (!pending.empty()) {
      const value_id v = pending.back();
      const op_id user = users.back(), o = made_by(v);
      pending.pop_back();
      users.pop_back();
      if (is_leaf(user, v)) {
        leaves.push_back(v);
        continue;
      }
      for (int i = 2; i-- > 0;) {
        pending.push_back(p_.operand(o, i));
        users.push_back(o);
      }
    }
    return leaves;
  }

  // ---- Sources ----------------------------------------------------------------------------------

  constexpr void find_sources() {
    out_.src.resize(p_.ops.size(), t_.all());
    from_.resize(p_.ops.size(), mesh_set{});
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (fixed(o)) from_[o] = out_.src[o] = mesh_set::of(given_.mesh[o]);
    for (op_id o = 0; o < p_.op_count();
         ++o)  // a part's results are sent to the meshes of its users
      for (value_id v : p_.operands(o))
        if (fixed(o) && fixed(made_by(v))) out_.src[made_by(v)] |= mesh_set::of(given_.mesh[o]);
    send_states();
    for (int i = 0; i < p_.output_count(); ++i)
      if (const op_id o = made_by(p_.outputs[i].value); given_.outputs[i] >= 0 && fixed(o))
        out_.src[o] |= mesh_set::of(given_.outputs[i]);
    out_.reach = out_.src;
    leaf_src_ = leaf_reach_ = vec<mesh_set>(p_.ops.size(), t_.all());
    leaf_nowhere_.resize(p_.ops.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (open(o)) find_source(o);
  }
  /// Sends a state that a part leaves to the part that uses it in the next microbatch.
  constexpr void send_states() {
    if (states_.empty()) return;
    vec<op_id> from(p_.ops.size(), -1);  // by state: the op that computes its next value
    for (const state_link& s : states_) from[s.state] = made_by(p_.operand(s.next, 0));
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o))
        if (const op_id maker = from[made_by(v)]; fixed(o) && maker >= 0 && fixed(maker))
          out_.src[maker] |= mesh_set::of(given_.mesh[o]);
  }
  constexpr void find_source(op_id o) {
    for (value_id v : p_.operands(o)) {
      const op_id from = made_by(v);
      const bool leaf = is_leaf(o, v);
      from_[o] |= from_[from];
      leaf_src_[o] &= leaf ? out_.src[from] : leaf_src_[from];
      leaf_reach_[o] &= leaf ? out_.reach[from] : leaf_reach_[from];
      if (leaf ? out_.reach[from].empty() : leaf_nowhere_[from] != 0) leaf_nowhere_[o] = 1;
    }
    const bool sent = in_chain(o) && from_[o].count() > 1 && leaf_nowhere_[o] == 0;
    out_.reach[o] = sent ? t_.all() : leaf_reach_[o];
    out_.src[o] = leaf_src_[o].empty() ? out_.reach[o] : leaf_src_[o];
  }
  /// True if a chain that is needed on these meshes is combined on each mesh first.
  constexpr bool is_split(op_id root, mesh_set needed) const {
    if (!in_chain(root) || parent_[root] >= 0 || needed.within(leaf_reach_[root])) return false;
    return infer_ || needed.within(out_.reach[root]);
  }

  // ---- Uses -------------------------------------------------------------------------------------

  constexpr void need(value_id v, mesh_set where) {
    const op_id o = made_by(v);
    if (!fixed(o) && (states_.empty() || !is_next_state(p_.ops[o]))) out_.use[o] |= where;
  }
  /// Finds the meshes that use each op. A state is needed where an iteration uses it, and so is the
  /// state that the iteration before leaves, unless it is sent. Such a transfer precedes a call for
  /// the next microbatch, and no unit has to hold the value.
  constexpr void find_uses() {
    do find_uses_of_one();
    while (ask_for_states());
  }
  constexpr bool ask_for_states() {
    bool more = false;
    for (const state_link& s : states_) {
      const mesh_set wanted = home_of_next(s.next, out_.use[s.state] | uses_of(s.last));
      if (wanted.within(out_.use[s.next])) continue;
      asked_[s.next] |= wanted;
      more = true;
    }
    return more;
  }
  constexpr mesh_set uses_of(op_id o) const { return o < 0 ? mesh_set{} : out_.use[o]; }
  constexpr mesh_set home_of_next(op_id next, mesh_set wanted) const {
    const op_id maker = made_by(p_.operand(next, 0));
    if (wanted.empty()) return wanted;
    if (fixed(maker)) return mesh_set::of(given_.mesh[maker]);
    return infer_ && !wanted.within(out_.src[next]) ? mesh_set::of(preferred(next)) : wanted;
  }
  constexpr void find_uses_of_one() {
    out_.use = asked_;
    out_.chains.clear();
    out_.chain_of.assign(p_.ops.size(), -1);
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (fixed(o)) out_.use[o] = mesh_set::of(given_.mesh[o]);
      if (out_.chain_of[o] >= 0 && parent_[o] >= 0) continue;  // inside of a chain that is split
      if (is_split(o, out_.use[o]))
        split(o);
      else
        for (value_id v : p_.operands(o)) need(v, out_.use[o]);
    }
  }
  constexpr void split(op_id root) {
    cross_mesh_chain chain{root, leaves_of(root), {}};
    const int number = static_cast<int>(out_.chains.size());
    mark_chain(root, number);
    for (value_id v : chain.leaves) {
      const op_id o = made_by(v);
      const mesh_set had = out_.src[o], both = had & out_.use[root],
                     own = fixed(o) ? mesh_set::of(given_.mesh[o]) : had;
      const mesh_set where = !both.empty()              ? both
                             : !leaf_src_[root].empty() ? leaf_src_[root]  // all together
                             : !own.empty()             ? own
                                                        : out_.use[root];
      chain.group.push_back(where.front());
      need(v, mesh_set::of(where.front()));
    }
    out_.chains.push_back(static_cast<cross_mesh_chain&&>(chain));
  }
  constexpr void mark_chain(op_id root, int number) {
    vec<op_id> pending{root};
    while (!pending.empty()) {
      const op_id o = pending.back();
      pending.pop_back();
      out_.chain_of[o] = number;
      for (value_id v : p_.operands(o))
        if (!is_leaf(o, v)) pending.push_back(made_by(v));
    }
  }

  /// A pipeline's links of a state: the value that enters an iteration, the value that leaves it
  /// (always open), and the value that leaves the last one (-1: unused).
  struct state_link {
    op_id state, next, last = -1;
  };
  vec<state_link> states_;
  constexpr void find_links() {
    const vec<value_id> next = next_states(p_);
    if (next.empty()) return;
    vec<op_id> last(p_.ops.size(), -1);  // by value that leaves an iteration
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (is_last_state(p_.ops[o])) last[made_by(p_.operand(o, 0))] = o;
    for (value_id v = 0; v < static_cast<value_id>(next.size()); ++v)
      if (next[v] >= 0) states_.push_back({made_by(v), made_by(next[v]), last[made_by(next[v])]});
  }

  // ---- Inputs, outputs and leaves ---------------------------------------------------------------

  constexpr void find_states() {
    name_table inputs(p_.inputs.size());
    input_of_.resize(p_.ops.size(), -1);
    for (int i = 0; i < p_.input_count(); ++i) {
      inputs.insert(p_.input_name(i), i);
      input_of_[made_by(p_.inputs[i])] = i;
    }
    for (int i = 0; i < p_.output_count(); ++i)
      state_of_.push_back(p_.output_name(i).empty() ? -1 : inputs.find(p_.output_name(i)));
  }
  constexpr void take_given() {
    out_.input_mesh = given_.inputs;
    out_.output_mesh = given_.outputs;
    for (int i = 0; i < p_.input_count(); ++i) {  // an input with the name of a part
      const int named = given_.mesh[made_by(p_.inputs[i])];
      if (out_.input_mesh[i] < 0) out_.input_mesh[i] = named;
    }
    for (int i = 0; i < p_.output_count(); ++i) {
      if (state_of_[i] < 0) continue;
      int &in = out_.input_mesh[state_of_[i]], &out = out_.output_mesh[i];
      if (in < 0) in = out;
      if (out < 0) out = in;
      if (in != out)
        out_.error.record("O111", "mpmd: input \"", p_.output_name(i), "\" is assigned to mesh \"",
                          t_.name(in), "\" and its next state to mesh \"", t_.name(out),
                          "\"; a state stays on its mesh");
    }
    for (int i = 0; i < p_.output_count(); ++i)
      if (out_.output_mesh[i] >= 0) ask(p_.outputs[i].value, out_.output_mesh[i]);
  }
  /// Requests that a value is computed on a mesh, unless something else determines its place.
  constexpr void ask(value_id v, int mesh) {
    if (const op_id o = made_by(v); open(o)) asked_[o] |= mesh_set::of(mesh);
  }
  constexpr void place_values() {
    asked_.resize(p_.ops.size(), mesh_set{});
    find_states();
    find_last_parts();
    take_given();
    if (out_.error) return;
    find_uses();
    for (int i = 0; i < p_.output_count(); ++i) place_output(i, true);
    for (op_id o = 0; o < p_.op_count(); ++o) place_leaf(o, true);
    find_uses();
    find_near();
    for (int i = 0; i < p_.output_count(); ++i) place_output(i, false);
    for (op_id o = 0; o < p_.op_count(); ++o) place_leaf(o, false);
    find_uses();
    for (int i = 0; i < p_.input_count(); ++i)
      if (out_.input_mesh[i] < 0) out_.input_mesh[i] = first_user(i);
    for (int i = 0; i < p_.input_count(); ++i)
      if (out_.input_mesh[i] < 0) out_.input_mesh[i] = 0;
  }
  constexpr int first_user(int input) const { return out_.use[made_by(p_.inputs[input])].front(); }
  /// Places an output. The first pass places only those determined by their operands or by other
  /// users.
  constexpr void place_output(int i, bool where_had) {
    if (out_.output_mesh[i] >= 0) return;
    const value_id v = p_.outputs[i].value;
    const op_id o = made_by(v);
    const int state = state_of_[i];
    int home = state < 0 ? -1 : out_.input_mesh[state];
    if (state >= 0 && home < 0) home = first_user(state);
    int at = -1;
    if (fixed(o))
      at = given_.mesh[o];
    else if (is_input(o))
      at = home_of_input(o, !where_had);
    else if (!out_.use[o].empty())
      at = home >= 0 && out_.use[o].has(home) ? home : out_.use[o].front();
    else if (out_.src[o] != t_.all() || !where_had)
      at = home >= 0 && (out_.reach[o].has(home) || infer_) ? home : preferred(o);
    if (at < 0) return;
    ask(v, at);
    out_.output_mesh[i] = state >= 0 && home >= 0 ? home : at;
    if (state >= 0) out_.input_mesh[state] = out_.output_mesh[i];
  }
  constexpr int home_of_input(op_id o, bool always) const {
    if (const int home = out_.input_mesh[input_of_[o]]; home >= 0) return home;
    return always && out_.use[o].empty() ? 0 : out_.use[o].front();
  }
  constexpr void place_leaf(op_id o, bool where_had) {
    if (!open(o) || !out_.use[o].empty()) return;
    const op_node& n = p_.ops[o];
    for (int r = 0; r < n.result_count; ++r)
      if (uses_[n.result + r] > 0) return;
    if (out_.src[o] != t_.all() || !where_had) asked_[o] |= mesh_set::of(preferred(o));
  }
  /// The first mesh where the result is available. Among several: the mesh of the last named part
  /// it depends on, or of an input it depends on.
  constexpr int preferred(op_id o) const {
    const mesh_set had = out_.src[o].empty() ? t_.all() : out_.src[o];
    if (const op_id last = last_part_[o]; last >= 0 && had.has(given_.mesh[last]))
      return given_.mesh[last];
    const mesh_set near = near_.empty() ? mesh_set{} : near_[o] & had;
    return (near.empty() ? had : near).front();
  }
  vec<mesh_set> near_;    ///< by op: meshes of the inputs that it depends on
  vec<op_id> last_part_;  ///< by op: the last op of a part that it depends on, or -1
  constexpr void find_last_parts() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      op_id last = fixed(o) ? o : -1;
      for (value_id v : p_.operands(o))
        if (last_part_[made_by(v)] > last) last = last_part_[made_by(v)];
      last_part_.push_back(last);
    }
  }
  constexpr void find_near() {
    near_.resize(p_.ops.size(), mesh_set{});
    for (int i = 0; i < p_.input_count(); ++i) {
      const int mesh = out_.input_mesh[i] >= 0 ? out_.input_mesh[i] : first_user(i);
      if (mesh >= 0) near_[made_by(p_.inputs[i])] = mesh_set::of(mesh);
    }
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o)) near_[o] |= near_[made_by(v)];
  }

  // ---- Errors -----------------------------------------------------------------------------------

  constexpr void check() {
    for (op_id o = 0; o < p_.op_count() && !out_.error && !infer_; ++o)
      if (open(o) && !(out_.chain_of[o] >= 0) && !out_.use[o].within(out_.reach[o]))
        report(o, out_.use[o].without(out_.reach[o]).front());
  }
  /// `multiply (%x2: tensor<4xf32>)`
  constexpr text shown(op_id o, const value_names& names) const {
    const value_id v = p_.ops[o].result;
    return concat(p_.ops[o].def->name, " (%", names[v], ": ", p_.types[v], ')');
  }
  constexpr text part_name(op_id o) const {
    text out;
    const int key = given_.key[o];
    if (key < 0) return out << p_.ops[o].def->name;
    const part_key& k = given_.keys[key];
    out << '"' << given_.parts[k.part].name << '"';
    if (k.transposed > 0) out << '(' << k.transposed << ')';
    return out;
  }
  /// The text ` by tanh, add`, with the first few ops of a path.
  static constexpr text way_text(const vec<std::string_view>& ops) {
    constexpr std::size_t most = 6;
    text out;
    for (std::size_t i = 0; i < ops.size() && i < most; ++i)
      out << (i == 0 ? " by " : ", ") << ops[i];
    if (ops.size() > most) out << " and " << ops.size() - most << " more";
    return out;
  }
  /// The user of an op on a mesh: `"layer2" by tanh`.
  constexpr text needed_by(op_id o, int mesh) const {
    vec<std::string_view> way;
    for (;;) {
      op_id next = -1;
      for (op_id u = o + 1; u < p_.op_count() && next < 0; ++u)
        for (value_id v : p_.operands(u))
          if (made_by(v) == o && out_.use[u].has(mesh)) next = u;
      if (next < 0) break;
      if (fixed(next)) return part_name(next) << way_text(way);
      way.push_back(p_.ops[next].def->name);
      o = next;
    }
    for (int i = 0; i < p_.output_count(); ++i)
      if (made_by(p_.outputs[i].value) == o && out_.output_mesh[i] == mesh)
        return concat("output \"", p_.output_name(i), '"', way_text(way));
    return concat("results that use it", way_text(way));
  }
  /// An operand, possibly indirect, that is not available on a mesh: `"layer1" on mesh "m0" by
  /// add`.
  constexpr text computed_from(op_id o, int mesh) const {
    vec<std::string_view> way;
    for (;;) {
      op_id next = -1;
      for (value_id v : p_.operands(o))
        if (next < 0 && !out_.reach[made_by(v)].has(mesh)) next = made_by(v);
      if (next < 0) return concat("several meshes", way_text(way));
      if (fixed(next))
        return concat(part_name(next), " on mesh \"", t_.name(given_.mesh[next]), '"',
                      way_text(way));
      way.push_back(p_.ops[next].def->name);
      o = next;
    }
  }
  constexpr void report(op_id o, int mesh) {
    const value_names names(p_);
    const text part = unassigned_part(o);
    text of, remedy = "give the op a name";
    if (!part.empty()) {
      of << " of part " << part << ", which no line assigns,";
      remedy = concat("assign ", part, " to a mesh");
    }
    out_.error.record("O110", "mpmd: ", shown(o, names), of, " is needed on mesh \"", t_.name(mesh),
                      "\" for ", needed_by(o, mesh), ", and is computed from results of ",
                      computed_from(o, mesh), "; nothing sends them: ", remedy,
                      ", or set infer_transfers");
  }
  /// The named part, in quotes, that contains an op without a mesh, if there is a name.
  constexpr text unassigned_part(op_id o) const {
    const int scope = p_.scopes.of(p_.ops[o].marks.source);
    if (scope < 0) return {};
    return concat('"', p_.scopes.name(scope), '"');
  }
};

/// Errors    see assigner and inference
constexpr inferred_program infer_meshes(const program& p, const topology& t, const assignment& a) {
  const assigned_program given = assigner(p, t, a).run();
  return inference(p, t, a, given).run();
}

}  // namespace mpmd_detail

}  // namespace partita
