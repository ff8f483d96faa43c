/// Cuts the program of one microbatch into units.
#pragma once

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/unit_functions.hpp>
#include <partita/mpmd/unit_text.hpp>

namespace partita::mpmd_detail {

/// A stage's forward or backward, or a part of it.
struct unit_key {
  int stage = -1, transposed = 0;
  fragment_part part = fragment_part::whole;
  friend constexpr bool operator==(const unit_key&, const unit_key&) = default;
};

/// Writes the units of a placed program.
class unit_writer {
 public:
  constexpr unit_writer(pipelined& out, const placed_program& placed, bool split)
      : out_(out),
        placed_(placed),
        p_(placed.p),
        list_(placed.p),
        split_(split),
        next_states_(next_states(placed.p)) {}

  constexpr void run() {
    find_inside();
    find_keys();
    if (split_) find_parts();
    add_instances();
    cuts_ = cutting(p_, list_, static_cast<int>(keys_.size())).run();
    unit_of_.resize(list_.all.size(), -1);
    for (auto* each : {&sent_, &given_}) each->resize(p_.types.size(), mesh_set{});
    made_.resize(p_.ops.size(), -1);
    taken_.resize(p_.types.size(), -1);
    input_of_.resize(p_.types.size(), -1);
    for (int i = 0; i < p_.input_count(); ++i) input_of_[p_.inputs[i]] = i;
    for (const auto& cut : cuts_) add_unit(cut);
    if (out_.error) return;
    find_spread();
    for (int u = 0; u < units(); ++u) collect(u);
    for (int i = 0; i < p_.output_count(); ++i) need(p_.outputs[i].value, out_.output_mesh[i], -1);
    for (int u = 0; u < units(); ++u) find_outputs(u);
    write_transfers();
  }
  /// Writes the unsharded functions of units, for which a mesh is one device.
  constexpr void write_functions() {
    write_whole_functions(out_, p_);
    out_.meshes.resize(static_cast<std::size_t>(out_.topology.count()), mesh{});
    out_.input_layout.resize(p_.inputs.size(), layout{});
    out_.output_layout.resize(p_.outputs.size(), layout{});
    out_.sent_as.resize(out_.transfers.size(), transfer_layout{});
    for (value_id v = 0; v < p_.value_count(); ++v) out_.slot_of.push_back(v);
    for (const auto& each : p_.outputs) out_.output_slot.push_back(each.value);
  }
  vec<call_edge> edges;  ///< between units
  vec<char> inside_;

 private:
  pipelined& out_;
  const placed_program& placed_;
  const program& p_;
  instance_list list_;
  bool split_;
  vec<value_id> next_states_;  ///< see next_states
  vec<unit_key> keys_;
  vec<int> key_of_;  ///< by op: its place in `keys_`, or -1
  vec<cut_fragment> cuts_;
  vec<vec<int>> instances_;  ///< by unit
  vec<int> unit_of_;  ///< by instance: -1 for ops that move values into or out of an iteration
  vec<int> input_of_, made_, taken_;
  vec<char> spread_;
  vec<mesh_set> sent_, given_;

  constexpr int units() const { return static_cast<int>(out_.units.size()); }
  constexpr bool crosses(op_id o) const { return enters(p_.op(o)); }

  /// Determines the ops inside of the loop. A single microbatch has no loop: the ops of named
  /// parts, and those between them.
  constexpr void find_inside() {
    if (!placed_.inside.empty()) {
      inside_ = placed_.inside;
      return;
    }
    const std::size_t count = p_.ops.size();
    vec<char> behind(count, 0), before(count, 0);
    inside_.resize(count, 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      for (const value_id v : p_.operands(o)) behind[o] |= behind[p_.producer(v)];
      if (placed_.key[o] >= 0) behind[o] = 1;
    }
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (placed_.key[o] >= 0) before[o] = 1;
      for (const value_id v : p_.operands(o)) before[p_.producer(v)] |= before[o];
      inside_[o] = behind[o] & before[o];
    }
  }

  // ---- Keys -------------------------------------------------------------------------------------

  constexpr int key_number(const unit_key& k) {
    for (int i = 0; i < static_cast<int>(keys_.size()); ++i)
      if (keys_[i] == k) return i;
    keys_.push_back(k);
    return static_cast<int>(keys_.size()) - 1;
  }
  /// Joins the layers of each stage.
  constexpr void find_keys() {
    vec<int> of(placed_.keys.size(), -1);
    for (int k = 0; k < static_cast<int>(of.size()); ++k) {
      const part_key& each = placed_.keys[k];
      of[k] = key_number({placed_.parts[each.part].stage, each.transposed});
    }
    key_of_.resize(p_.ops.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (inside_[o] != 0 && placed_.key[o] >= 0) key_of_[o] = of[placed_.key[o]];
  }
  /// Splits backwards: the first part computes what another unit needs, the second part the rest.
  constexpr void find_parts() {
    constexpr int none = -1, several = -2;
    vec<int> feeds(p_.ops.size(), none);  // by op: the key that uses a result that depends on it
    vec<char> first(p_.ops.size(), 0);
    for (op_id o = p_.op_count(); o-- > 0;) {
      const int key = key_of_[o];
      if (crosses(o) || inside_[o] == 0) continue;
      if (key >= 0 && feeds[o] != none && feeds[o] != key) first[o] = 1;
      const int passed = key < 0 ? feeds[o] : first[o] != 0 ? several : key;
      for (const value_id v : p_.operands(o)) {
        // A use in another unit; otherwise the unit that the own or intermediate op leads to.
        const int from = key_of_[p_.producer(v)];
        const int use = key >= 0 && from >= 0 && from != key ? key : passed;
        int& f = feeds[p_.producer(v)];
        if (use == none) continue;
        f = f == none || f == use ? use : several;
      }
    }
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (key_of_[o] < 0 || keys_[key_of_[o]].transposed == 0) continue;
      unit_key k = keys_[key_of_[o]];
      k.part = first[o] != 0 ? fragment_part::input : fragment_part::weight;
      key_of_[o] = key_number(k);
    }
  }
  constexpr void add_instances() {
    const int meshes = out_.topology.count();
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (mesh_set on = place_of(o); !on.empty(); on = on.without(mesh_set::of(on.front()))) {
        const int m = on.front(), kind = crosses(o) ? 2 : inside_[o] != 0 ? 1 : 0;
        list_.add({o, m, key_of_[o], kind * meshes + m});
      }
  }
  /// The place of an op. A combination over all iterations is where its operand is computed.
  constexpr mesh_set place_of(op_id o) const {
    if (!leaves(p_.op(o))) return placed_.on[o];
    mesh_set made;
    for (mesh_set on = placed_.on[o]; !on.empty(); on = on.without(mesh_set::of(on.front())))
      if (const int from = list_.source(p_.operand(o, 0), on.front()); from >= 0)
        made |= mesh_set::of(list_.all[from].mesh);
    return made;
  }

  // ---- Units ------------------------------------------------------------------------------------

  constexpr void add_unit(const cut_fragment& cut) {
    const op_id first = list_.all[cut.instances[0]].op;
    if (crosses(first)) return;
    pipeline_unit u;
    u.piece.mesh = list_.all[cut.instances[0]].mesh;
    u.inside = inside_[first] != 0;
    if (cut.key >= 0) {
      u.piece.stage = keys_[cut.key].stage;
      u.transposed = keys_[cut.key].transposed;
      u.part = keys_[cut.key].part;
    } else if (u.inside) {
      out_.error.record("O122", "pipeline: ", p_.op(first).def->name, " (",
                        p_.type(p_.op(first).result), ") runs for each microbatch on mesh \"",
                        out_.topology.name(u.piece.mesh),
                        "\", and fits into none of its units; give it a name");
    }
    for (const int i : cut.instances) {
      unit_of_[i] = units();
      add_origin(u, list_.all[i].op);
    }
    if (cut.key >= 0) check_single(u, cut);
    instances_.push_back(cut.instances);
    out_.units.push_back(static_cast<pipeline_unit&&>(u));
  }
  constexpr void add_origin(pipeline_unit& u, op_id o) const {
    if (placed_.key[o] < 0) return;
    const part_key& key = placed_.keys[placed_.key[o]];
    const named_part& part = placed_.parts[key.part];
    const fragment_origin origin{part.name, key.transposed, part.call};
    for (std::size_t i = u.piece.origins.size(); i-- > 0;)  // mostly the same as for the op before
      if (u.piece.origins[i] == origin) return;
    u.piece.origins.push_back(origin);
  }
  constexpr void check_single(const pipeline_unit& u, const cut_fragment& cut) {
    for (const auto& each : out_.units)
      if (each.inside && each.piece.stage == u.piece.stage && each.transposed == u.transposed &&
          each.part == u.part) {
        const int between = needed_unit(cut);
        text needs = "another stage";
        if (between >= 0) needs = unit_text(out_.units[between]);
        out_.error.record("O123", "pipeline: ", unit_text(u), " needs the result of ", needs,
                          ", which needs the result of ", unit_text(each),
                          ", so that the stage would run twice for each microbatch; give the later "
                          "part its own stage");
        return;
      }
  }
  /// The last other unit that computes an operand of a fragment, or -1.
  constexpr int needed_unit(const cut_fragment& cut) const {
    int last = -1;
    for (const int i : cut.instances)
      for (const value_id v : p_.operands(list_.all[i].op)) {
        const int from = list_.source(v, list_.all[i].mesh);
        if (from >= 0 && unit_of_[from] > last && unit_of_[from] < units() &&
            out_.units[unit_of_[from]].piece.stage >= 0)
          last = unit_of_[from];
      }
    return last;
  }

  // ---- Uses and transfers -----------------------------------------------------------------------

  /// Records that unit `u` (-1: the caller) uses a value on a mesh.
  constexpr void need(value_id v, int mesh, int u) {
    const op_id o = p_.producer(v);
    if (input_of_[v] >= 0) {
      if (out_.input_mesh[input_of_[v]] != mesh) sent_[v] |= mesh_set::of(mesh);
      return;
    }
    if (placed_.free[o] != 0) return;
    if (is_state(p_.op(o))) need_state(next_states_[v], mesh, u);
    if (enters(p_.op(o)))
      return p_.op(o).operand_count > 0 ? need(p_.operand(o, 0), mesh, u) : void();
    const int from = list_.source(v, mesh);
    if (unit_of_[from] == u) return;
    if (list_.all[from].mesh != mesh) sent_[v] |= mesh_set::of(mesh);
    given_[v] |= mesh_set::of(list_.all[from].mesh);
    if (u >= 0) edges.push_back({unit_of_[from], u});
  }
  /// Records that unit `u` uses a state on a mesh: the value that the microbatch before has left.
  constexpr void need_state(value_id next, int mesh, int u) {
    const int from = list_.source(next, mesh);
    if (list_.all[from].mesh != mesh) sent_[next] |= mesh_set::of(mesh);
    given_[next] |= mesh_set::of(list_.all[from].mesh);
    edges.push_back({unit_of_[from], u, 1});
  }
  /// Records that unit `u` uses the combined result of all calls of another unit.
  constexpr void take_combined(int u, op_id o) {
    fragment& f = out_.units[u].piece;
    const int from = unit_of_[list_.source(p_.operand(o, 0), f.mesh)];
    const bool stacks = p_.op(o).def->id == def<op::microbatch_stack>.id;
    (stacks ? out_.units[from].stacks : out_.units[from].sums).push_back(o);
    edges.push_back({from, u});
    f.inputs.push_back(p_.op(o).result);
    out_.units[u].combined.push_back(o);
  }
  /// By op: broadcasts and transposes of values that are kept anyway are recomputed in each unit.
  constexpr void find_spread() {
    spread_.resize(p_.ops.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      if (inside_[o] == 0 || n.operand_count != 1 || n.region_count > 0) continue;
      if (!n.def->repeats && n.def->fusion != fusion_kind::view) continue;
      const op_id from = p_.producer(p_.operand(o, 0));
      const bool kept = p_.is(from, op_role::parameter) || inside_[from] == 0;
      spread_[o] = (kept && !crosses(from)) || spread_[from] != 0 || placed_.free[from] != 0;
    }
  }
  constexpr bool is_made_again(op_id o, int mesh) const {
    if (enters(p_.op(o))) return false;
    return placed_.free[o] != 0 || (spread_[o] != 0 && placed_.on[o].has(mesh));
  }
  constexpr void collect(int u) {
    for (const int i : instances_[u]) include(u, list_.all[i].op);
  }
  constexpr void include(int u, op_id o) {
    fragment& f = out_.units[u].piece;
    if (made_[o] == u) return;
    if (leaves(p_.op(o)) && !is_last_state(p_.op(o))) {
      made_[o] = u;
      return take_combined(u, o);
    }
    for (const value_id v : p_.operands(o)) {
      const op_id from = p_.producer(v);
      if (is_made_again(from, f.mesh)) {
        include(u, from);
      } else if (made_[from] != u && taken_[v] != u) {
        taken_[v] = u;
        f.inputs.push_back(v);
        need(v, f.mesh, u);
      }
    }
    made_[o] = u;
    f.ops.push_back(o);
  }

  // ---- Functions --------------------------------------------------------------------------------

  constexpr void find_outputs(int u) {
    pipeline_unit& unit = out_.units[u];
    for (const int i : instances_[u]) {
      const op_node& n = p_.op(list_.all[i].op);
      for (value_id v = n.result; v < n.result + n.result_count; ++v)
        if (given_[v].has(unit.piece.mesh)) unit.piece.outputs.push_back(v);
    }
  }
  constexpr void write_transfers() {
    const auto send = [&](value_id v, int from, int after) {
      for (mesh_set to = sent_[v]; !to.empty(); to = to.without(mesh_set::of(to.front())))
        if (to.front() != from) out_.transfers.push_back({v, from, to.front(), after});
    };
    for (const op_node& n : p_.ops)
      for (value_id v = n.result; v < n.result + n.result_count; ++v) {
        if (sent_[v].empty()) continue;
        if (input_of_[v] >= 0) {
          send(v, out_.input_mesh[input_of_[v]], -1);
          continue;
        }
        const int from = list_.source(v, -1);
        send(v, list_.all[from].mesh, unit_of_[from]);
      }
  }
};

}  // namespace partita::mpmd_detail
