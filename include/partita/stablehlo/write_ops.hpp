/// The table of the writers of ops as StableHLO.
///
/// Source    the StableHLO specification, version 1.0
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/module_writer.hpp>
#include <partita/stablehlo/write_composite.hpp>
#include <partita/stablehlo/write_control.hpp>
#include <partita/stablehlo/write_elementwise.hpp>
#include <partita/stablehlo/write_gather.hpp>
#include <partita/stablehlo/write_linear_algebra.hpp>
#include <partita/stablehlo/write_reductions.hpp>
#include <partita/stablehlo/write_selection.hpp>
#include <partita/stablehlo/write_shapes.hpp>
#include <partita/stablehlo/write_sort.hpp>

namespace partita::stablehlo_detail {

// ---- The table -------------------------------------------------------------------------------

struct written_op {
  const op_def* op;
  void (*write)(body_writer&, op_id);
};
inline constexpr written_op written_ops[] = {
    {&def<op::abs>, &write_abs},
    {&def<op::bitcast_convert>, &write_bitcast_convert},
    {&def<op::broadcast_in_dim>, &write_broadcast_in_dim},
    {&def<op::call>, &write_call},
    {&def<op::case_of>, &write_case},
    {&def<op::cholesky>, &write_cholesky},
    {&def<op::clamp>, &write_clamp},
    {&def<op::compare>, &write_compare},
    {&def<op::concatenate>, &write_concatenate},
    {&def<op::constant>, &write_constant},
    {&def<op::convert>, &write_convert},
    {&def<op::convolution>, &write_convolution},
    {&def<op::cumsum>, &write_cumsum},
    {&def<op::dot_general>, &write_dot_general},
    {&def<op::dynamic_slice>, &write_dynamic_slice},
    {&def<op::dynamic_update_slice>, &write_dynamic_update_slice},
    {&def<op::fold>, &write_fold},
    {&def<op::gather>, &write_gather},
    {&def<op::iota>, &write_iota},
    {&def<op::literal>, &write_literal},
    {&def<op::optimization_barrier>, &write_barrier},
    {&def<op::pad>, &write_pad},
    {&def<op::place>, &write_place},
    {&def<op::random_bits>, &write_random_bits},
    {&def<op::reduce>, &write_reduce},
    {&def<op::reduce_precision>, &write_reduce_precision},
    {&def<op::reduce_window>, &write_reduce_window},
    {&def<op::reshape>, &write_reshape},
    {&def<op::reverse>, &write_reverse},
    {&def<op::roll>, &write_roll},
    {&def<op::scan>, &write_scan},
    {&def<op::scatter>, &write_scatter},
    {&def<op::select>, &write_select},
    {&def<op::select_and_gather>, &write_select_and_gather},
    {&def<op::select_and_scatter>, &write_select_and_scatter},
    {&def<op::sign>, &write_sign},
    {&def<op::slice>, &write_slice},
    {&def<op::sort>, &write_sort},
    {&def<op::stop_gradient>, &write_name},
    {&def<op::tag>, &write_name},
    {&def<op::tiling>, &write_name},
    {&def<op::top_k>, &write_top_k},
    {&def<op::transpose>, &write_transpose},
    {&def<op::triangular_solve>, &write_triangular_solve},
    {&def<op::while_loop>, &write_while},
};

/// The first op of the registry that is not written, or null. (Parameters are arguments.)
constexpr const op_def* op_not_written() {
  for (const op_def* d : registry) {
    bool written = d->role == op_role::parameter;
    for (const auto& each : written_elementwise) written = written || each.op == d;
    for (const auto& each : written_ops) written = written || each.op == d;
    if (!written) return d;
  }
  return nullptr;
}
static_assert(op_not_written() == nullptr, "an op of the registry is not written as StableHLO");

/// Writes op `o`; false if it cannot be written.
constexpr bool write_op(body_writer& w, op_id o) {
  const std::uint64_t id = w.p.op(o).def->id;
  for (const auto& each : written_elementwise)
    if (each.op->id == id) return write_elementwise(w, o, each.name), true;
  for (const auto& each : written_ops)
    if (each.op->id == id) return each.write(w, o), true;
  return false;
}

constexpr void body_writer::ops() {
  for (op_id o = 0; o < p.op_count() && !m.error; ++o) {
    if (p.is(o, op_role::parameter)) continue;
    if (!write_op(*this, o) && (m.write_more == nullptr || !m.write_more(*this, o)))
      m.error.record("W001", "write: op \"", p.op(o).def->name,
                     "\" cannot be written as StableHLO");
    else if (own && m.shardings != nullptr)
      constrain(o);
  }
}

}  // namespace partita::stablehlo_detail
