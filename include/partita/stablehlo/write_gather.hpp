/// Writers of gather and scatter.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/write_composite.hpp>

namespace partita::stablehlo_detail {

/// Writes dimension numbers under these names. Without attributes they are those of a gather of
/// rows.
constexpr void write_dimension_numbers(text& out, span<const std::int64_t> attrs,
                                       const std::string_view (&names)[5], int window_rank,
                                       int indices_rank) {
  vec<std::int64_t> rows;
  if (attrs.empty()) {
    rows.push_back(window_rank);
    for (int d = 0; d < window_rank; ++d) rows.push_back(indices_rank + d);
    for (const std::int64_t each : {1, 0, 0, 0, 1, 0}) rows.push_back(each);
    rows.push_back(indices_rank);
    attrs = {rows.data(), rows.size()};
  }
  for (const std::string_view name : names) {
    out << name << " = ";
    write_list(out, attrs.subspan(1, static_cast<std::size_t>(attrs[0])));
    out << ", ";
    attrs = attrs.subspan(static_cast<std::size_t>(1 + attrs[0]));
  }
  out << "index_vector_dim = " << attrs[0];
}
constexpr void write_gather(body_writer& w, op_id o) {
  constexpr std::string_view names[] = {"offset_dims", "collapsed_slice_dims",
                                        "operand_batching_dims", "start_indices_batching_dims",
                                        "start_index_map"};
  const shape& from = w.type_of(o, 0).shape;
  const shape& indices = w.type_of(o, 1).shape;
  const auto a = w.p.attrs(o);
  if (from.elements() == 0 && w.result_type(o).shape.elements() > 0)
    return write_composed(w, o, [&](builder& b, const vec<value_id>&) {
      return one(ops::constant(b, w.result_type(o), 0));
    });
  const op::gather_dims dims(a, from, indices);
  w.begin(o);
  w.out() << "\"stablehlo.gather\"(";
  w.operands(o);
  w.out() << ") <{dimension_numbers = #stablehlo.gather<";
  write_dimension_numbers(w.out(), a, names, from.rank - 1, indices.rank);
  w.out() << ">, indices_are_sorted = false, slice_sizes = ";
  const shape window = dims.window(w.result_type(o).shape);
  write_array(w.out(), {window.extents, static_cast<std::size_t>(from.rank)});
  w.out() << "}>";
  w.signature(o);
}
/// Writes a region of two scalars that returns the second one.
constexpr void write_second(body_writer& w, dtype t) {
  const tensor_type scalar{t, {}};
  w.out() << " ({\n";
  const vec<ssa> x = w.block(2, [&](int) { return scalar; });
  w.return_values("stablehlo.return", {&x[1], 1}, {&scalar, 1});
  --w.f.depth;
  w.indent();
  w.out() << "})";
}
constexpr void write_scatter(body_writer& w, op_id o) {
  constexpr std::string_view names[] = {"update_window_dims", "inserted_window_dims",
                                        "input_batching_dims", "scatter_indices_batching_dims",
                                        "scatter_dims_to_operand_dims"};
  const auto a = w.p.attrs(o);
  const auto update = op::scatter::update_of(a);
  const tensor_type& result = w.result_type(o);
  if (w.p.op(o).operand_count == 2)
    return write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
      const value_id input = identities(b, static_cast<combiner>(update), result);
      const value_id operands[] = {input, x[0], x[1]};
      return one(b.emit(def<op::scatter>, operands, a));
    });
  w.begin(o);
  w.out() << "\"stablehlo.scatter\"(";
  w.operands(o);
  w.out() << ") <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<";
  write_dimension_numbers(w.out(), a.subspan(1), names, result.shape.rank - 1,
                          w.type_of(o, 1).shape.rank);
  w.out() << ">, unique_indices = false}>";
  if (update == ops::scatter_update::assign)
    write_second(w, result.element);
  else
    w.combiner_region(combining_op(static_cast<combiner>(update)).name, result.element);
  w.signature(o);
}

}  // namespace partita::stablehlo_detail
