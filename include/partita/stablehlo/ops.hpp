/// The table of the readers of StableHLO and CHLO ops. Each op that is more than a renamed op of
/// this library has a function.
///
/// Source    the StableHLO specification, version 1.0, and the definitions of the CHLO dialect
#pragma once

#include <partita/stablehlo/custom_calls.hpp>
#include <partita/stablehlo/loops.hpp>
#include <partita/stablehlo/normalization.hpp>
#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/philox.hpp>
#include <partita/stablehlo/products.hpp>
#include <partita/stablehlo/read_control.hpp>
#include <partita/stablehlo/read_elementwise.hpp>
#include <partita/stablehlo/read_gather.hpp>
#include <partita/stablehlo/read_linear_algebra.hpp>
#include <partita/stablehlo/read_reductions.hpp>
#include <partita/stablehlo/read_shapes.hpp>
#include <partita/stablehlo/read_sort.hpp>
#include <partita/stablehlo/special_functions.hpp>

namespace partita::stablehlo_detail {

// ---- The table

struct read_op {
  std::string_view name;
  void (*read)(op_context&);
};
inline constexpr read_op read_ops[] = {
    {"acos", &read_composed},
    {"acosh", &read_composed},
    {"asin", &read_composed},
    {"asinh", &read_composed},
    {"atan", &read_composed},
    {"atanh", &read_composed},
    {"batch_norm_grad", &read_batch_norm_grad},
    {"batch_norm_inference", &read_batch_norm_inference},
    {"batch_norm_training", &read_batch_norm_training},
    {"bessel_i1e", &read_bessel_i1e},
    {"bitcast_convert", &read_bitcast_convert},
    {"broadcast", &read_broadcast},
    {"broadcast_in_dim", &read_broadcast_in_dim},
    {"case", &read_case},
    {"cholesky", &read_cholesky},
    {"compare", &read_compare},
    {"concatenate", &read_concatenate},
    {"constant", &read_constant},
    {"constant_like", &read_constant_like},
    {"convert", &read_convert},
    {"convolution", &read_convolution},
    {"cosh", &read_composed},
    {"custom_call", &read_custom_call},
    {"dot", &read_dot},
    {"dot_general", &read_dot_general},
    {"dynamic_broadcast_in_dim", &read_broadcast_in_dim},
    {"dynamic_iota", &read_iota},
    {"dynamic_reshape", &read_reshape},
    {"dynamic_slice", &read_dynamic_slice},
    {"dynamic_update_slice", &read_dynamic_update_slice},
    {"einsum", &read_einsum},
    {"gather", &read_gather},
    {"get_dimension_size", &read_get_dimension_size},
    {"get_tuple_element", &read_get_tuple_element},
    {"if", &read_case},
    {"iota", &read_iota},
    {"is_inf", &read_is_inf},
    {"is_neg_inf", &read_is_inf},
    {"is_pos_inf", &read_is_inf},
    {"map", &read_map},
    {"matmul", &read_dot},
    {"mulhi", &read_mulhi},
    {"next_after", &read_next_after},
    {"optimization_barrier", &read_barrier},
    {"pad", &read_pad},
    {"polygamma", &read_polygamma},
    {"ragged_dot", &read_ragged_dot},
    {"reduce", &read_reduce},
    {"reduce_precision", &read_reduce_precision},
    {"reduce_window", &read_reduce_window},
    {"reshape", &read_reshape},
    {"reverse", &read_reverse},
    {"scatter", &read_scatter},
    {"rng_bit_generator", &read_rng_bit_generator},
    {"select_and_scatter", &read_select_and_scatter},
    {"set_dimension_size", &read_set_dimension_size},
    {"sharding_constraint", &read_identity},
    {"sinh", &read_composed},
    {"slice", &read_slice},
    {"sort", &read_sort},
    {"square", &read_square},
    {"top_k", &read_top_k},
    {"torch_index_select", &read_torch_index_select},
    {"transpose", &read_transpose},
    {"triangular_solve", &read_triangular_solve},
    {"tuple", &read_tuple},
    {"unary_einsum", &read_unary_einsum},
    {"while", &read_while},
    {"zeta", &read_zeta},
};

/// Broadcasts operands to the shape of the highest rank, along missing dimensions and dimensions of
/// one element. Operand dimensions map to the last ones, or to `broadcast_dimensions`.
///
/// Errors    H007 extents differ
/// Source    the definition of the CHLO dialect
constexpr void repeat_operands(op_context& c) {
  shape to;
  for (const value_id v : c.operands)
    if (v >= 0 && c.b.type(v).shape.rank > to.rank) to = c.b.type(v).shape;
  const vec<std::int64_t> given = c.numbers("broadcast_dimensions");
  const auto dims_of = [&](const shape& s) {
    vec<std::int64_t> dims;
    const bool listed = s.rank < to.rank && static_cast<int>(given.size()) == s.rank;
    for (int d = 0; d < s.rank; ++d)
      dims.push_back(listed ? given[static_cast<std::size_t>(d)] : d + to.rank - s.rank);
    return dims;
  };
  for (const value_id v : c.operands) {
    const shape s = c.failed() ? shape() : c.b.type(v).shape;
    const vec<std::int64_t> dims = dims_of(s);
    for (int d = 0; d < s.rank; ++d) {
      const int at = c.dimension(dims[static_cast<std::size_t>(d)]);
      if (c.failed()) return;
      if (at < to.rank && to[at] == 1) to[at] = s[d];
      if (at >= to.rank || (s[d] != 1 && s[d] != to[at]))
        return c.fail("H007", "shapes ", to, " and ", s, " differ");
    }
  }
  for (value_id& v : c.operands) {
    const shape s = c.failed() ? to : c.b.type(v).shape;
    if (same_shape(s, to) || s.rank == 0) continue;  // (The op repeats scalars.)
    const vec<std::int64_t> dims = dims_of(s);
    v = ops::broadcast_in_dim(c.b, v, to, as_ints(dims));
  }
}
/// Reads an op by its name without dialect; false if the name is unknown.
constexpr bool make_op(op_context& c, std::string_view name) {
  if (constexpr std::string_view broadcast = "broadcast_";
      name.starts_with(broadcast) && c.o.name.starts_with("chlo.")) {
    repeat_operands(c);
    name.remove_prefix(broadcast.size());
  }
  for (const auto& same : same_ops)
    if (same.name == name) {
      vec<std::int64_t> attrs;
      if (c.o.has("result_accuracy")) {
        read_accuracy(c).store(attrs);
        if (!has_accuracy(*same.op))
          c.fail("H005", "attribute result_accuracy is not one of this op");
      }
      if (!c.failed())
        c.give(c.b.emit(*same.op, {c.operands.data(), c.operands.size()},
                        {attrs.data(), attrs.size()}));
      return true;
    }
  for (const auto& each : read_ops)
    if (each.name == name) {
      each.read(c);
      return true;
    }
  return false;
}

}  // namespace partita::stablehlo_detail
