/// Writers of products, convolutions, Cholesky factors and triangular solutions.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/write_composite.hpp>
#include <partita/stablehlo/write_windows.hpp>

namespace partita::stablehlo_detail {

constexpr void write_dot_general(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const auto batch = static_cast<std::size_t>(a[0]), contract = static_cast<std::size_t>(a[1]);
  w.begin(o);
  w.out() << "stablehlo.dot_general ";
  w.operands(o);
  if (batch > 0) {
    w.out() << ", batching_dims = ";
    write_list(w.out(), a.subspan(2, batch));
    w.out() << " x ";
    write_list(w.out(), a.subspan(2 + batch, batch));
  }
  w.out() << ", contracting_dims = ";
  write_list(w.out(), a.subspan(2 + 2 * batch, contract));
  w.out() << " x ";
  write_list(w.out(), a.subspan(2 + 2 * batch + contract, contract));
  write_product_precision(w.out(), op::dot_general::numerics(a));
  w.signature(o);
}
/// Writes `[b, f, 0, 1]`: the role of each dimension. `dims` are the positions of batch, feature
/// and the others.
constexpr void write_roles(text& out, const int* dims, int rank, char first, char second) {
  out << '[';
  append_list(out, rank, [&](int d) {
    for (int i = 0; i < rank; ++i) {
      if (dims[i] != d) continue;
      if (i > 1)
        out << i - 2;
      else
        out << (i == 0 ? first : second);
    }
  });
  out << ']';
}
constexpr void write_convolution(body_writer& w, op_id o) {
  const shape& ls = w.type_of(o, 0).shape;
  const shape& rs = w.type_of(o, 1).shape;
  const op::convolution::roles r(w.p.attrs(o).data(), rs);
  if (any_empty(r.window))
    return write_composed(w, o, [&](builder& b, const vec<value_id>&) {
      return one(ops::constant(b, w.result_type(o), 0));
    });
  text& out = w.out();
  w.begin(o);
  out << "stablehlo.convolution(" << w.operand(o, 0) << ", " << w.operand(o, 1)
      << ") dim_numbers = ";
  write_roles(out, r.lhs, r.rank, 'b', 'f');
  out << 'x';
  write_roles(out, r.rhs, r.rank, 'i', 'o');
  out << "->";
  write_roles(out, r.result, r.rank, 'b', 'f');
  const auto list = [&](std::string_view name, auto each) {
    out << name << " = [";
    append_list(out, r.spatial, [&](int d) { each(r.window.at[d]); });
    out << ']';
  };
  out << ", window = {";
  list("stride", [&](const window_dim& d) { out << d.stride; });
  list(", pad", [&](const window_dim& d) { out << '[' << d.low << ", " << d.high << ']'; });
  list(", lhs_dilate", [&](const window_dim& d) { out << d.base_dilation; });
  list(", rhs_dilate", [&](const window_dim& d) { out << d.dilation; });
  list(", reverse", [&](const window_dim& d) { out << (d.reversed ? "true" : "false"); });
  out << "} {batch_group_count = " << r.batch_groups
      << " : i64, feature_group_count = " << r.feature_groups(ls, rs) << " : i64";
  write_precision_config(out, op::convolution::numerics(w.p.attrs(o), r.rank));
  out << '}';
  w.signature(o);
}
constexpr std::string_view boolean(bool b) { return b ? "true" : "false"; }
/// StableHLO does not define the other triangle, so it is masked.
constexpr void write_cholesky(body_writer& w, op_id o) {
  const bool lower = w.p.attrs(o)[0] != 0;
  w.begin(o);
  w.out() << "stablehlo.cholesky " << w.operand(o, 0) << ", lower = " << boolean(lower) << " : ";
  w.type(w.result_type(o));
  w.out() << '\n';
}
constexpr void write_triangular_solve(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  w.begin(o);
  w.out() << "\"stablehlo.triangular_solve\"(";
  w.operands(o);
  w.out() << ") <{left_side = " << boolean(a[0] != 0) << ", lower = " << boolean(a[1] != 0)
          << ", transpose_a = #stablehlo<transpose " << (a[3] != 0 ? "TRANSPOSE" : "NO_TRANSPOSE")
          << ">, unit_diagonal = " << boolean(a[2] != 0) << "}>";
  w.signature(o);
}

}  // namespace partita::stablehlo_detail
