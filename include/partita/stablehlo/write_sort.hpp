/// Writers of sort and top_k.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/write_composite.hpp>

namespace partita::stablehlo_detail {

/// Maps all zeros to one and all NaNs to one, as jax.lax.sort does.
constexpr ssa as_key(body_writer& w, const ssa& x, dtype t) {
  if (!is_floating(t)) return x;
  const tensor_type scalar{t, {}};
  const ssa zero = w.constant(scalar, 0);
  const ssa nan = w.constant(scalar, static_cast<std::int64_t>(support_detail::usual_nan));
  const ssa is_zero = w.compare("EQ", x, zero, scalar, "FLOAT");
  const ssa number = w.select(is_zero, zero, x, scalar, {});
  const ssa is_nan = w.compare("NE", x, x, scalar, "FLOAT");
  return w.select(is_nan, nan, number, scalar, {});
}
constexpr void write_sort(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const auto keys = static_cast<int>(a[1]);
  const bool descending = a[2] != 0;
  w.begin(o);
  w.out() << "\"stablehlo.sort\"(";
  w.operands(o);
  w.out() << ") <{dimension = " << a[0] << " : i64, is_stable = true}> ({\n";
  const vec<ssa> x = w.block(2 * w.p.op(o).operand_count, [&](int i) {
    return tensor_type{w.type_of(o, i / 2).element, {}};
  });
  const tensor_type boolean{dtype::boolean, {}};
  ssa made;
  for (int k = keys; k-- > 0;) {
    const dtype t = w.type_of(o, k).element;
    const tensor_type scalar{t, {}};
    const std::string_view how = is_floating(t) ? "TOTALORDER" : std::string_view();
    const ssa left = as_key(w, x[static_cast<std::size_t>(2 * k)], t),
              right = as_key(w, x[static_cast<std::size_t>(2 * k + 1)], t);
    const ssa before = w.compare(descending ? "GT" : "LT", left, right, scalar, how);
    if (k == keys - 1) {
      made = before;
      continue;
    }
    const ssa equal = w.compare("EQ", left, right, scalar, how);
    made = w.apply("or", before, w.apply("and", equal, made, boolean), boolean);
  }
  w.return_values("stablehlo.return", {&made, 1}, {&boolean, 1});
  --w.f.depth;
  w.indent();
  w.out() << "})";
  w.signature(o);
}
/// (CHLO's op supports only positions that count along the dimension.)
constexpr void write_top_k(body_writer& w, op_id o) {
  const value_id positions = w.p.operand(o, 1);
  if (!op::count_along_last(w.p, positions) || w.type_of(o, 1).element != dtype::i32)
    return write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
      return as_sorted(b, x[0], x[1], w.p.attrs(o)[0]);
    });
  w.begin(o);
  w.out() << "chlo.top_k(" << w.operand(o, 0) << ", k = " << w.p.attrs(o)[0] << ") : ";
  w.type(w.type_of(o, 0));
  w.out() << " -> (";
  w.type(w.result_type(o));
  w.out() << ", ";
  w.type(w.p.type(w.p.op(o).result + 1));
  w.out() << ")\n";
}

}  // namespace partita::stablehlo_detail
