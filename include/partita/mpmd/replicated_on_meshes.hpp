/// The values that a pipeline replicates by default, on each of its meshes.
#pragma once

#include <cstdint>

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/union_mesh.hpp>
#include <partita/schedule/replicated.hpp>

namespace partita {

/// A value that the devices of one mesh hold several times; see replicated_value. `axes` and
/// `value` belong to the pipeline's core program.
struct replicated_on_mesh : replicated_value {
  int mesh = 0;
};

namespace mpmd_detail {

/// The meshes that have the results of ops of the core program: those that run the op, and those
/// that receive the result.
class core_places {
 public:
  constexpr explicit core_places(const pipelined& p) : core_(p.core) {
    on_.resize(p.core.p.ops.size(), mesh_set{});
    vec<op_id> core_op(p.source.ops.size(), -1);
    const vec<op_id>& source_op = p.core.nested.source_op;
    made_ = source_op.empty() ? p.source.op_count() : static_cast<int>(source_op.size());
    for (op_id o = 0; o < made_; ++o)
      if (source_op.empty() || core_op[source_op[o]] < 0)
        core_op[source_op.empty() ? o : source_op[o]] = o;
    for (int i = 0; i < p.source.input_count(); ++i)
      on_[core_op[p.source.producer(p.source.inputs[i])]] |= mesh_set::of(p.input_mesh[i]);
    for (const pipeline_unit& u : p.units) add(u, p.source, core_op);
    for (const auto& t : p.transfers)
      on_[core_op[p.source.producer(t.value)]] |= mesh_set::of(t.to);
    for (op_id o = 0; o < made_; ++o)  // ops of regions run where their parent runs
      if (!source_op.empty() && o != core_op[source_op[o]]) on_[o] = on_[core_op[source_op[o]]];
    for (op_id o = made_; o < core_.p.op_count(); ++o) add_behind(o);
  }
  constexpr bool has(op_id o, int mesh) const { return on_[o].has(mesh); }

 private:
  const core_program& core_;
  vec<mesh_set> on_;
  int made_ = 0;  ///< later ops were added by actions

  constexpr void add(const pipeline_unit& u, const program& source, const vec<op_id>& core_op) {
    const mesh_set here = mesh_set::of(u.piece.mesh);
    for (const op_id o : u.piece.ops) on_[core_op[o]] |= here;
    for (const op_id o : u.combined) on_[core_op[o]] |= here;
    for (const value_id v : u.piece.inputs)
      if (enters(source.op(source.producer(v)))) on_[core_op[source.producer(v)]] |= here;
  }
  /// Ops that actions added after a value run where it is computed.
  constexpr void add_behind(op_id o) {
    for (const value_id v : core_.p.operands(o)) on_[o] |= on_[core_.p.producer(v)];
  }
};

}  // namespace mpmd_detail

/// The values that are replicated by default, largest first, with an entry for each mesh that holds
/// them. An axis that a mesh lacks has one position there.
///
/// Cost      for each different shape of a mesh, the program once
constexpr vec<replicated_on_mesh> replicated_by_default(const pipelined& p) {
  vec<replicated_on_mesh> list;
  if (p.error || p.core.p.ops.empty()) return list;
  const mpmd_detail::core_places places(p);
  const auto add = [&](const core_program& here, int m) {
    schedule_detail::for_each_replicated(here, [&](const replicated_value& v) {
      for (int other = m; other < p.topology.count(); ++other)
        if (mpmd_detail::first_mesh_like(p.core.uneven_sizes(), other) == m &&
            places.has(here.p.producer(v.value), other))
          list.push_back({v, other});
    });
  };
  const bool even = p.core.uneven_sizes().axes == 0;
  for (int m = 0; m < p.topology.count(); ++m) {
    if (mpmd_detail::first_mesh_like(p.core.uneven_sizes(), m) != m) continue;
    core_program row;
    if (!even) {
      row = p.core;
      row.be_on_row(1 + m);
    }
    add(even ? p.core : row, m);
  }
  schedule_detail::sort_by_total(list);
  return list;
}

namespace mpmd_detail {

/// Errors    S020 a value of more than `options.strict` bytes on one device of a mesh is replicated
///           by default, O137 no tactic has determined a layout
constexpr void refuse_replication(pipelined& p) {
  if (p.error || p.options.strict == partition_options::off) return;
  if (p.core.p.ops.empty())
    return p.error.record("O137",
                          "pipeline: strict checks what tactics leave replicated, and pipeline() "
                          "has no tactics; pass them to partition() with the pipeline");
  p.error.record(schedule_detail::be_strict(p.core, p.source, replicated_by_default(p),
                                            p.options.strict, [&](const replicated_on_mesh& v) {
                                              return concat(" on mesh \"", p.topology.name(v.mesh),
                                                            '"');
                                            }));
}

}  // namespace mpmd_detail

}  // namespace partita
