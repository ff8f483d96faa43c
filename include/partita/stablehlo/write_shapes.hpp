/// Writers of constants, and of ops that change the shape of a value or move its elements.
#pragma once

#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/write_composite.hpp>

namespace partita::stablehlo_detail {

constexpr void write_constant(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.constant ";
  write_splat(w.out(), w.result_type(o), w.p.attrs(o)[0]);
  w.out() << " : ";
  w.type(w.result_type(o));
  w.out() << '\n';
}
constexpr void write_literal(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.constant ";
  write_dense(w.out(), w.result_type(o), w.p.attrs(o));
  w.out() << " : ";
  w.type(w.result_type(o));
  w.out() << '\n';
}
constexpr void write_iota(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.iota dim = " << w.p.attrs(o)[0] << " : ";
  w.type(w.result_type(o));
  w.out() << '\n';
}
/// Writes `stablehlo.NAME %1, %2`, then `, what = [0, 1]` and the types.
constexpr void write_with_list(body_writer& w, op_id o, std::string_view name,
                               std::string_view what) {
  w.begin(o);
  w.out() << "stablehlo." << name << ' ';
  w.operands(o);
  if (!what.empty()) {
    w.out() << ", " << what << " = ";
    write_list(w.out(), w.p.attrs(o));
  }
}
constexpr void write_broadcast_in_dim(body_writer& w, op_id o) {
  write_with_list(w, o, "broadcast_in_dim", "dims");
  w.signature(o);
}
constexpr void write_transpose(body_writer& w, op_id o) {
  write_with_list(w, o, "transpose", "dims");
  w.signature(o);
}
constexpr void write_reverse(body_writer& w, op_id o) {
  write_with_list(w, o, "reverse", "dims");
  w.out() << " : ";
  w.type(w.result_type(o));
  w.out() << '\n';
}
constexpr void write_reshape(body_writer& w, op_id o) {
  write_with_list(w, o, "reshape", {});
  w.signature(o);
}
constexpr void write_convert(body_writer& w, op_id o) {
  write_with_list(w, o, "convert", {});
  w.signature(o);
}
constexpr void write_bitcast_convert(body_writer& w, op_id o) {
  write_with_list(w, o, "bitcast_convert", {});
  w.signature(o);
}
constexpr void write_reduce_precision(body_writer& w, op_id o) {
  const auto bits = w.p.attrs(o);
  w.begin(o);
  w.out() << "stablehlo.reduce_precision " << w.operand(o, 0) << ", format = e" << bits[0] << 'm'
          << bits[1] << " : ";
  w.type(w.result_type(o));
  w.out() << '\n';
}
constexpr void write_concatenate(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.concatenate ";
  w.operands(o);
  w.out() << ", dim = " << w.p.attrs(o)[0];
  w.signature(o);
}
constexpr void write_slice(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const shape& from = w.type_of(o, 0).shape;
  w.begin(o);
  w.out() << "stablehlo.slice " << w.operand(o, 0) << " [";
  append_list(w.out(), from.rank, [&](int d) {
    const op::slice::bounds at(a.data(), a.size(), from.rank, d);
    w.out() << at.start << ':' << (at.limit == ops::whole ? from[d] : at.limit);
    if (at.stride != 1) w.out() << ':' << at.stride;
  });
  w.out() << ']';
  w.signature(o);
}
constexpr void write_pad(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const std::size_t rank = a.size() / 3;
  w.begin(o);
  w.out() << "stablehlo.pad ";
  w.operands(o);
  w.out() << ", low = ";
  write_list(w.out(), a.first(rank));
  w.out() << ", high = ";
  write_list(w.out(), a.subspan(rank, rank));
  w.out() << ", interior = ";
  write_list(w.out(), a.subspan(2 * rank));
  w.signature(o);
}
constexpr void write_dynamic_slice(body_writer& w, op_id o) {
  const shape& to = w.result_type(o).shape;
  w.begin(o);
  w.out() << "stablehlo.dynamic_slice ";
  w.operands(o);
  w.out() << ", sizes = ";
  write_list(w.out(), {to.extents, static_cast<std::size_t>(to.rank)});
  w.signature(o);
}
constexpr void write_dynamic_update_slice(body_writer& w, op_id o) {
  write_with_list(w, o, "dynamic_update_slice", {});
  w.signature(o);
}
constexpr void write_roll(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
    return one(as_slices(b, x[0], static_cast<int>(a[0]), a[1]));
  });
}
constexpr void write_cumsum(body_writer& w, op_id o) {
  write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
    return one(as_windows(b, x[0], op::cumsum{}, w.p.attrs(o)));
  });
}

}  // namespace partita::stablehlo_detail
