/// MPMD programs: a program cut into fragments, each on a mesh, and the transfers between meshes.
///
/// Source    Shardy:MPMD
#pragma once

#include <string_view>

#include <partita/mpmd/cutting.hpp>

namespace partita {

/// A named part of a model that a fragment runs: `"layer1"(1)` is its first derivative.
struct fragment_origin {
  text name;
  int transposed = 0;
  int call = 0;  ///< number of earlier calls of a part with this name

  friend constexpr bool operator==(const fragment_origin&, const fragment_origin&) = default;
};

/// Ops that run together on one mesh, as a function of values of the source.
struct fragment {
  int mesh = 0;
  vec<fragment_origin> origins;  ///< empty: unnamed
  int stage = -1;                ///< counted from 0; -1: none
  vec<op_id> ops;                ///< of the source, in program order, constants before their use
  vec<value_id>
      inputs;  ///< in order of first use: inputs of the program, values of other fragments
  vec<value_id>
      outputs;  ///< in program order: values that other fragments, other meshes or the caller use
};

/// A value that one mesh sends to another, once. An input of the program is sent first.
struct transfer {
  value_id value = -1;
  int from = -1, to = -1;
  int after = -1;  ///< the fragment that computes the value; -1: an input
};

/// A program over several meshes. A value of the source may be on several of them: an unnamed op
/// runs on every mesh that needs it, and a sent value is on both.
struct mpmd_program {
  program source;  ///< with chains over several meshes combined on each mesh first
  partita::topology topology;
  vec<fragment> fragments;  ///< in an order of execution
  vec<transfer> transfers;  ///< in the order of the fragments that compute the values
  vec<int> input_mesh, output_mesh;
  failure error;

  /// The mesh of an input or output by its name. Empty if it does not exist.
  constexpr std::string_view mesh_of_input(std::string_view name) const {
    for (int i = 0; i < source.input_count(); ++i)
      if (source.input_name(i) == name) return topology.name(input_mesh[i]);
    return {};
  }
  constexpr std::string_view mesh_of_output(std::string_view name) const {
    for (int i = 0; i < source.output_count(); ++i)
      if (source.output_name(i) == name) return topology.name(output_mesh[i]);
    return {};
  }
  /// A user fragment by the part that it runs, or -1.
  constexpr int find(std::string_view name, int transposed = 0, int call = 0) const {
    for (std::size_t f = 0; f < fragments.size(); ++f)
      for (const auto& each : fragments[f].origins)
        if (each.name == name && each.transposed == transposed && each.call == call)
          return static_cast<int>(f);
    return -1;
  }
};

namespace mpmd_detail {

/// Writes the fragments: the ops, inputs and results of each.
///
/// Cost: linear in instances of ops and their operands; recomputed ops appear at most a few times
/// for each operand.
class fragment_writer {
 public:
  constexpr fragment_writer(mpmd_program& m, const placed_program& placed)
      : m_(m), placed_(placed), list_(placed) {}

  constexpr void run() {
    const program& p = placed_.p;
    input_of_.resize(p.types.size(), -1);
    for (int i = 0; i < p.input_count(); ++i) input_of_[p.inputs[i]] = i;
    sent_.resize(p.types.size(), mesh_set{});
    given_.resize(p.types.size(), mesh_set{});
    made_.resize(p.ops.size(), -1);
    taken_.resize(p.types.size(), -1);
    cuts_ = cutting(p, list_, static_cast<int>(placed_.keys.size())).run();
    fragment_of_.resize(list_.all.size(), -1);
    for (int f = 0; f < static_cast<int>(cuts_.size()); ++f)
      for (int i : cuts_[f].instances) fragment_of_[i] = f;
    find_moves();
    for (int f = 0; f < static_cast<int>(cuts_.size()); ++f) write(f);
    write_transfers();
  }

 private:
  mpmd_program& m_;
  const placed_program& placed_;
  instance_list list_;
  vec<cut_fragment> cuts_;
  vec<int> fragment_of_;   ///< by instance
  vec<int> input_of_;      ///< by value: its number among the inputs, or -1
  vec<mesh_set> sent_;     ///< by value: meshes that receive it
  vec<mesh_set> given_;    ///< by value: meshes on which a fragment returns it
  vec<int> made_, taken_;  ///< by op and by value: the last fragment that has it, uses it

  constexpr void move(value_id v, int mesh, int fragment) {
    const program& p = placed_.p;
    if (const int in = input_of_[v]; in >= 0) {
      if (m_.input_mesh[in] != mesh) sent_[v] |= mesh_set::of(mesh);
      return;
    }
    const int from = list_.source(v, mesh);
    if (placed_.free[p.producers[v]] != 0 || fragment_of_[from] == fragment) return;
    given_[v] |= mesh_set::of(list_.all[from].mesh);
    if (list_.all[from].mesh != mesh) sent_[v] |= mesh_set::of(mesh);
  }
  constexpr void find_moves() {
    for (int i = 0; i < list_.count(); ++i)
      for (value_id v : placed_.p.operands(list_.all[i].op))
        move(v, list_.all[i].mesh, fragment_of_[i]);
    for (int i = 0; i < placed_.p.output_count(); ++i)
      move(placed_.p.outputs[i].value, m_.output_mesh[i], -1);
  }
  constexpr void write(int number) {
    const cut_fragment& cut = cuts_[number];
    fragment f;
    f.mesh = cut.mesh;
    if (cut.key >= 0) {
      const part_key& key = placed_.keys[cut.key];
      const named_part& part = placed_.parts[key.part];
      f.origins.push_back({part.name, key.transposed, part.call});
      f.stage = part.stage;
    }
    for (int i : cut.instances) include(f, number, list_.all[i].op);
    for (int i : cut.instances) {
      const op_node& n = placed_.p.ops[list_.all[i].op];
      for (value_id v = n.result; v < n.result + n.result_count; ++v)
        if (given_[v].has(f.mesh)) f.outputs.push_back(v);
    }
    m_.fragments.push_back(static_cast<fragment&&>(f));
  }
  constexpr void include(fragment& f, int number, op_id o) {
    if (made_[o] == number) return;
    for (value_id v : placed_.p.operands(o)) {
      const op_id from = placed_.p.producers[v];
      if (placed_.free[from] != 0) {
        include(f, number, from);
      } else if (made_[from] != number && taken_[v] != number) {
        taken_[v] = number;
        f.inputs.push_back(v);
      }
    }
    made_[o] = number;
    f.ops.push_back(o);
  }
  constexpr void write_transfers() {
    const auto send = [&](value_id v, int from, int after) {
      for (mesh_set to = sent_[v]; !to.empty(); to = to.without(mesh_set::of(to.front())))
        m_.transfers.push_back({v, from, to.front(), after});
    };
    for (int i = 0; i < placed_.p.input_count(); ++i)
      send(placed_.p.inputs[i], m_.input_mesh[i], -1);
    for (int f = 0; f < static_cast<int>(m_.fragments.size()); ++f)
      for (value_id v : m_.fragments[f].outputs)
        if (list_.all[list_.source(v, -1)].mesh == m_.fragments[f].mesh)
          send(v, m_.fragments[f].mesh, f);
  }
};

}  // namespace mpmd_detail

/// Cuts a program into fragments on the meshes of a topology, by the names of its parts.
///
/// ```cpp
/// mpmd_program m = to_mpmd(f, cluster, {.names = {{"layer1", "m0"}, {"layer2", "m1"}}});
/// ```
///
/// Ops of named parts run on the mesh of the part. All others run on every mesh that needs them;
/// constants are computed where they are used. Chains of additions (or of max, min, and, or,
/// multiply) over values of several meshes are combined on each mesh first, in program order, and
/// then, in the order of the topology, on the mesh that needs the result.
///
/// At run time a mistake is thrown as `error`, in constant evaluation it is kept in
/// `mpmd_program::error`.
///
/// Cost      linear in ops, times the meshes that they run on
/// Errors    O101 to O104 the topology; O105 to O109 the assignment; O110 an op is needed on a mesh
///           where it is not available; O111 a state on two meshes
constexpr mpmd_program to_mpmd(const program& p, const topology& t, const assignment& a) {
  mpmd_program m;
  m.topology = t;
  const mpmd_detail::assigned_program given = mpmd_detail::assigner(p, t, a).run();
  const auto where = mpmd_detail::inference(p, t, a, given).run();
  mpmd_detail::placed_program placed = mpmd_detail::chain_splitter(p, given, where).run();
  m.error.record(placed.error);
  if (!m.error) {
    m.input_mesh = placed.input_mesh;
    m.output_mesh = placed.output_mesh;
    mpmd_detail::fragment_writer(m, placed).run();
    m.source = static_cast<program&&>(placed.p);
  }
  m.error.raise();
  return m;
}

}  // namespace partita
