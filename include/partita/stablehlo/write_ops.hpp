/// Writers of ops as StableHLO.
///
/// An op that StableHLO lacks is written as a `stablehlo.composite "partita.NAME"` with the
/// attributes of this library, and a function of ops that StableHLO has. XLA inlines that function.
/// The reader restores the op if the function is the one that is written here (see composites.hpp).
///
/// Source    the StableHLO specification, version 1.0
#pragma once

#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/module_writer.hpp>
#include <partita/stablehlo/numerics.hpp>

namespace partita::stablehlo_detail {

// ---- Composites ------------------------------------------------------------------------------

/// Writes `%5 = stablehlo.composite "partita.roll" %1 {composite_attributes = {...}, decomposition
/// = @f}`.
constexpr void write_composite(body_writer& w, op_id o, std::string_view function) {
  const op_node& n = w.p.op(o);
  w.begin(o);
  w.out() << "stablehlo.composite \"partita." << n.def->name << "\" ";
  w.operands(o);
  w.out() << " {composite_attributes = {";
  if (n.attr_count > 0) {
    w.out() << "attributes = ";
    write_array(w.out(), w.p.attrs(o));
  }
  if (n.name.size > 0) {
    w.out() << (n.attr_count > 0 ? ", " : "") << "name = ";
    write_quoted(w.out(), w.p.view(n.name), false);
  }
  w.out() << "}, decomposition = @" << function << '}';
  w.signature(o);
}
/// The same with a new function, in which `make(builder, inputs)` builds the op's results from ops
/// that can be written. Equal ops share the function.
template <class Make>
constexpr void write_composed(body_writer& w, op_id o, const Make& make) {
  const op_node& n = w.p.op(o);
  text key;
  key << n.def->name;
  for (auto a : w.p.attrs(o)) key << ' ' << a;
  for (value_id v : w.p.operands(o)) key << ' ' << w.p.type(v);
  for (int r = 0; r < n.result_count; ++r) key << ' ' << w.p.type(n.result + r);
  text function;
  if (const text* known = w.m.find(key.view())) {
    function = *known;
  } else {
    function = w.m.new_name(n.def->name);
    const program made = program_like(w.p, o, make);
    w.m.error.record(made.error);
    if (w.m.error) return;
    write_private_function(w.m, function.view(), made);
    w.m.remember(key, function);
  }
  write_composite(w, o, function.view());
}
constexpr vec<value_id> one(value_id v) {
  vec<value_id> list;
  list.push_back(v);
  return list;
}
/// Writes an op that only names its operand: a tag, or an identity that only the engine
/// distinguishes. A program for one device omits them.
constexpr void write_name(body_writer& w, op_id o) {
  if (w.m.mesh != nullptr) {
    w.names[static_cast<std::size_t>(w.p.op(o).result)] = w.operand(o, 0);
    return;
  }
  write_composed(w, o, [](builder&, const vec<value_id>& x) { return one(x[0]); });
}

/// Writes `@annotate_device_placement`, as JAX does.
constexpr void write_place(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.custom_call @annotate_device_placement(" << w.operand(o, 0)
          << ") {backend_config = \"\", has_side_effect = true, mhlo.frontend_attributes = "
             "{_xla_buffer_placement = \""
          << op::place::memories[w.p.attrs(o)[0]] << "\"}}";
  w.signature(o);
}

// ---- Constants and shapes --------------------------------------------------------------------

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

// ---- Elementwise -----------------------------------------------------------------------------

/// Returns the operands of an elementwise op; those from `first` on are repeated to the result's
/// shape.
constexpr vec<ssa> spread_operands(body_writer& w, op_id o, int first = 0) {
  const shape& to = w.result_type(o).shape;
  vec<ssa> list;
  for (int i = 0; i < w.p.op(o).operand_count; ++i) {
    const tensor_type& t = w.type_of(o, i);
    const bool spread = i >= first && t.shape.rank != to.rank;
    list.push_back(spread ? w.everywhere(w.operand(o, i), t.element, to) : w.operand(o, i));
  }
  return list;
}
/// `name` includes its dialect.
constexpr void write_elementwise(body_writer& w, op_id o, std::string_view name) {
  const vec<ssa> x = spread_operands(w, o);
  const tensor_type& result = w.result_type(o);
  w.begin(o);
  w.out() << name << ' ';
  append_list(w.out(), static_cast<int>(x.size()),
              [&](int i) { w.out() << x[static_cast<std::size_t>(i)]; });
  write_accuracy(w.out(), w.p.attrs(o));
  const bool typed_twice = name.starts_with("chlo");
  if (w.type_of(o, 0).element == result.element) {
    w.out() << " : ";
    w.type(result);
    if (typed_twice) {
      w.out() << " -> ";
      w.type(result);
    }
    w.out() << '\n';
    return;
  }
  vec<tensor_type> from;
  for (std::size_t i = 0; i < x.size(); ++i)
    from.push_back({w.type_of(o, static_cast<int>(i)).element, result.shape});
  w.signature({from.data(), from.size()}, {&result, 1});
}
constexpr void write_compare(body_writer& w, op_id o) {
  constexpr std::string_view names[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  const vec<ssa> x = spread_operands(w, o);
  const tensor_type& result = w.result_type(o);
  w.begin(o);
  w.out() << "stablehlo.compare  " << names[w.p.attrs(o)[0]] << ", " << x[0] << ", " << x[1];
  const tensor_type from[] = {{w.type_of(o, 0).element, result.shape},
                              {w.type_of(o, 1).element, result.shape}};
  w.signature(from, {&result, 1});
}
constexpr void write_select(body_writer& w, op_id o) {
  const vec<ssa> x = spread_operands(w, o, 1);
  const tensor_type& result = w.result_type(o);
  w.begin(o);
  w.out() << "stablehlo.select " << x[0] << ", " << x[1] << ", " << x[2] << " : ";
  w.type(w.type_of(o, 0));
  w.out() << ", ";
  w.type(result);
  w.out() << '\n';
}
/// (Bounds may be scalars in StableHLO, too.)
constexpr void write_clamp(body_writer& w, op_id o) {
  const tensor_type& result = w.result_type(o);
  ssa x = w.operand(o, 1);
  if (w.type_of(o, 1).shape.rank != result.shape.rank)
    x = w.everywhere(x, result.element, result.shape);
  w.begin(o);
  w.out() << "stablehlo.clamp " << w.operand(o, 0) << ", " << x << ", " << w.operand(o, 2);
  const tensor_type from[] = {w.type_of(o, 0), result, w.type_of(o, 2)};
  w.signature(from, {&result, 1});
}
/// Writes abs and sign of unsigned integers, which StableHLO lacks.
constexpr bool write_of_unsigned(body_writer& w, op_id o, bool is_abs) {
  const dtype t = w.result_type(o).element;
  if (!is_unsigned(t)) return false;
  write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
    return one(is_abs ? x[0] : ops::minimum(b, x[0], ops::integer(b, t, 1)));
  });
  return true;
}
constexpr void write_abs(body_writer& w, op_id o) {
  if (!write_of_unsigned(w, o, true)) write_elementwise(w, o, "stablehlo.abs");
}
constexpr void write_sign(body_writer& w, op_id o) {
  if (!write_of_unsigned(w, o, false)) write_elementwise(w, o, "stablehlo.sign");
}
constexpr void write_random_bits(body_writer& w, op_id o) {
  const shape to = w.result_type(o).shape;
  write_composed(
      w, o, [&](builder& b, const vec<value_id>& x) { return one(as_rounds(b, x[0], x[1], to)); });
}

// ---- Windows ---------------------------------------------------------------------------------

constexpr bool any_empty(const op::windows& w) {
  for (int d = 0; d < w.rank; ++d)
    if (w.at[d].size == 0) return true;
  return false;
}
/// True for windows that XLA accepts: they have elements, and their padding is not negative.
constexpr bool are_usual(const op::windows& w) {
  for (int d = 0; d < w.rank; ++d)
    if (w.at[d].low < 0 || w.at[d].high < 0) return false;
  return !any_empty(w);
}
/// The padding and the dilation of the operand, in the form of `pad`.
struct padding_lists {
  std::int64_t low[max_rank] = {}, high[max_rank] = {}, interior[max_rank] = {};
  std::size_t rank;

  constexpr explicit padding_lists(const op::windows& w) : rank(static_cast<std::size_t>(w.rank)) {
    for (int d = 0; d < w.rank; ++d) {
      low[d] = w.at[d].low;
      high[d] = w.at[d].high;
      interior[d] = w.at[d].base_dilation - 1;
    }
  }
  constexpr span<const std::int64_t> lows() const { return {low, rank}; }
  constexpr span<const std::int64_t> highs() const { return {high, rank}; }
  constexpr span<const std::int64_t> interiors() const { return {interior, rank}; }
};
constexpr op::windows without_padding(op::windows w) {
  for (int d = 0; d < w.rank; ++d) {
    w.at[d].low = w.at[d].high = 0;
    w.at[d].base_dilation = 1;
  }
  return w;
}

// ---- Products --------------------------------------------------------------------------------

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

// ---- Gather and scatter ----------------------------------------------------------------------

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

// ---- Reductions ------------------------------------------------------------------------------

/// Writes the combiner of jax.numpy.argmax for (a, position of a, b, position of b).
constexpr void write_extreme_region(body_writer& w, bool greatest, const tensor_type& value,
                                    const tensor_type& position) {
  w.out() << " ({\n";
  const vec<ssa> x = w.block(4, [&](int i) { return i % 2 == 0 ? value : position; });
  const tensor_type boolean{dtype::boolean, {}};
  ssa wins = w.compare(greatest ? "GT" : "LT", x[0], x[2], value);
  if (is_floating(value.element))
    wins = w.apply("or", wins, w.compare("NE", x[0], x[0], value), boolean);
  const ssa equal = w.compare("EQ", x[0], x[2], value);
  const ssa earlier = w.compare("LT", x[1], x[3], position);
  const ssa first = w.apply("or", wins, w.apply("and", equal, earlier, boolean), boolean);
  const ssa made[] = {w.select(wins, x[0], x[2], value, {}),
                      w.select(first, x[1], x[3], position, {})};
  const tensor_type types[] = {value, position};
  w.return_values("stablehlo.return", made, types);
  --w.f.depth;
  w.indent();
  w.out() << "})";
}
constexpr void write_reduce(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const tensor_type value{w.result_type(o).element, {}};
  if (!op::reduce::with_position(a)) {
    const auto how = static_cast<combiner>(a[0]);
    const ssa initial = w.constant(value, identity_bits(how, value.element));
    w.begin(o);
    w.out() << "stablehlo.reduce(" << w.operand(o, 0) << " init: " << initial
            << ") applies stablehlo." << combining_op(how).name << " across dimensions = ";
    write_list(w.out(), a.subspan(1));
    const tensor_type from[] = {w.type_of(o, 0), value};
    return w.signature(from, {&w.result_type(o), 1});
  }
  const bool greatest = a[0] == static_cast<int>(ops::extreme::argmax);
  const tensor_type position{w.type_of(o, 1).element, {}};
  // The initial value loses against an equal element at any position.
  const bool empty = w.type_of(o, 0).shape.elements() == 0;
  const combiner how = greatest ? combiner::max : combiner::min;
  const ssa start = w.constant(value, identity_bits(how, value.element));
  const ssa last = w.constant(position, empty ? 0 : identity_bits(combiner::min, position.element));
  w.begin(o);
  w.out() << "\"stablehlo.reduce\"(" << w.operand(o, 0) << ", " << w.operand(o, 1) << ", " << start
          << ", " << last << ") <{dimensions = ";
  write_array(w.out(), a.subspan(1));
  w.out() << "}>";
  write_extreme_region(w, greatest, value, position);
  const tensor_type from[] = {w.type_of(o, 0), w.type_of(o, 1), value, position};
  const auto to = w.result_types(o);
  w.signature(from, {to.data(), to.size()});
}
/// The program of a reduction in which each element has a flag that marks actual elements. An
/// element without the flag is an identity of any function.
constexpr program flagged(const op::fold::parts& parts, const vec<tensor_type>& operands) {
  builder b;
  const std::size_t n = operands.size();
  vec<value_id> x, flags;
  for (int side = 0; side < 2; ++side) {
    for (const auto& t : operands) x.push_back(ops::parameter(b, "", {t.element, {}}));
    flags.push_back(ops::parameter(b, "", {dtype::boolean, {}}));
  }
  const vec<value_id> made = op::fold::emit(b, parts, x);
  for (std::size_t i = 0; i < made.size() && !b.failed(); ++i) {
    const value_id first = ops::select(b, flags[1], made[i], x[i]);
    b.p.outputs.push_back({ops::select(b, flags[0], first, x[n + i]), {}});
  }
  b.p.outputs.push_back({ops::logical_or(b, flags[0], flags[1]), {}});
  return static_cast<program&&>(b.p);
}
/// Writes a reduction with a program, in a function. StableHLO may combine the initial value with
/// any elements, any number of times. The initial value therefore has no flag, and acts as an
/// identity of the function.
constexpr void write_fold(body_writer& w, op_id o) {
  const op_node& n = w.p.op(o);
  const op::fold::parts parts(w.p.attrs(o), static_cast<std::size_t>(n.operand_count));
  vec<tensor_type> from = w.operand_types(o), to = w.result_types(o);
  bool none = false;
  for (auto d : parts.dims) none = none || from[0].shape[static_cast<int>(d)] == 0;
  if (none)
    return write_composed(w, o, [&](builder& b, const vec<value_id>&) {
      vec<value_id> list;
      for (std::size_t i = 0; i < to.size(); ++i)
        list.push_back(b.emit(def<op::constant>, {}, {parts.identities[i]}, to[i]));
      return list;
    });
  const program f = flagged(parts, from);
  w.m.error.record(f.error);
  if (w.m.error) return;
  const text name = w.m.new_name(n.def->name);
  function_writer inner;
  body_writer all(w.m, inner, w.p);
  text& out = inner.out;
  const auto list = [&](std::size_t count, const auto& each) {
    append_list(out, static_cast<int>(count), [&](int i) { each(static_cast<std::size_t>(i)); });
  };
  out << "  func.func private @" << name << '(';
  list(from.size(), [&](std::size_t i) { out << "%arg" << i << ": " << mlir_type{from[i]}; });
  out << ") -> (";
  list(to.size(), [&](std::size_t i) { out << mlir_type{to[i]}; });
  out << ") {\n";
  const std::size_t count = from.size() + 1;
  const ssa flags = all.constant({dtype::boolean, from[0].shape}, 1);
  from.push_back({dtype::boolean, from[0].shape});
  to.push_back({dtype::boolean, to[0].shape});
  vec<ssa> initial;
  for (std::size_t i = 0; i < count; ++i) {
    from.push_back({from[i].element, {}});
    initial.push_back(all.constant(from.back(), 0));
  }
  all.indent();
  const ssa first = all.fresh();
  out << first << ':' << count << " = \"stablehlo.reduce\"(";
  for (std::size_t i = 0; i + 1 < count; ++i) out << "%arg" << i << ", ";
  out << flags << ", ";
  list(count, [&](std::size_t i) { out << initial[i]; });
  out << ") <{dimensions = ";
  write_array(out, parts.dims);
  out << "}> (";
  all.region(f);
  out << ')';
  all.signature({from.data(), from.size()}, {to.data(), to.size()});
  vec<ssa> made;
  for (int i = 0; i < n.result_count; ++i) made.push_back({first.number, i});
  all.return_values("return", {made.data(), made.size()}, {to.data(), made.size()});
  out << "  }\n";
  w.m.functions << out;
  write_composite(w, o, name.view());
}
/// Writes `window_dimensions = array<i64: 1, 2>, ...`.
constexpr void write_windows(text& out, const op::windows& w) {
  const auto list = [&](std::string_view name, auto each) {
    out << name << " = array<i64";
    for (int d = 0; d < w.rank; ++d) out << (d > 0 ? ", " : ": ") << each(w.at[d]);
    out << ">, ";
  };
  list("base_dilations", [](const window_dim& d) { return d.base_dilation; });
  out << "padding = dense<";
  if (w.rank > 0) out << '[';
  append_list(out, w.rank,
              [&](int d) { out << '[' << w.at[d].low << ", " << w.at[d].high << ']'; });
  if (w.rank > 0) out << ']';
  out << "> : tensor<" << w.rank << "x2xi64>, ";
  list("window_dilations", [](const window_dim& d) { return d.dilation; });
  list("window_dimensions", [](const window_dim& d) { return d.size; });
  out << "window_strides = array<i64";
  for (int d = 0; d < w.rank; ++d) out << (d > 0 ? ", " : ": ") << w.at[d].stride;
  out << '>';
}
constexpr void write_reduce_window(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const auto how = static_cast<combiner>(a[0]);
  if (const op::windows windows(a.data() + 1, w.result_type(o).shape.rank); !are_usual(windows))
    return write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
      const tensor_type to = w.result_type(o);
      if (any_empty(windows) || to.shape.elements() == 0) return one(identities(b, how, to));
      const padding_lists lists(windows);
      const value_id identity = identities(b, how, {to.element, {}});
      const value_id padded =
          ops::pad(b, x[0], identity, lists.lows(), lists.highs(), lists.interiors());
      const op::windows rest = without_padding(windows);
      return one(ops::reduce_window(b, padded, how, rest.all()));
    });
  const tensor_type value{w.result_type(o).element, {}};
  const ssa initial = w.constant(value, identity_bits(how, value.element));
  w.begin(o);
  w.out() << "\"stablehlo.reduce_window\"(" << w.operand(o, 0) << ", " << initial << ") <{";
  write_windows(w.out(), op::windows(a.data() + 1, w.result_type(o).shape.rank));
  w.out() << "}>";
  w.combiner_region(combining_op(how).name, value.element);
  const tensor_type from[] = {w.type_of(o, 0), value};
  w.signature(from, {&w.result_type(o), 1});
}

/// Writes a function that returns the element selected by each window: its number in row-major
/// order, or -1 (i64).
constexpr void write_selection(module_writer& m, std::string_view name, const program& p, op_id o,
                               const tensor_type& from, const shape& positions) {
  const auto a = p.attrs(o);
  const tensor_type place{dtype::i64, {}}, value{from.element, {}}, boolean{dtype::boolean, {}};
  const tensor_type places{dtype::i64, from.shape}, selected{dtype::i64, positions};
  const tensor_type kept{from.element, positions};
  function_writer f;
  body_writer w(m, f, p);
  f.out << "  func.func private @" << name << "(%arg0: " << mlir_type{from} << ") -> "
        << mlir_type{selected} << " {\n";
  const ssa flat = w.begin();
  const tensor_type line{dtype::i64, {from.shape.elements()}};
  f.out << "stablehlo.iota dim = 0 : " << mlir_type{line} << '\n';
  const ssa number = w.begin();
  f.out << "stablehlo.reshape " << flat;
  w.signature_of_one(line, places);
  const ssa start = w.constant(value, 0), nowhere = w.constant(place, -1);
  const op::windows windows(a.data() + 1, from.shape.rank);
  const padding_lists lists(windows);
  shape around = from.shape;
  for (int d = 0; d < around.rank; ++d)
    around[d] = window_dim::span(around[d], windows.at[d].base_dilation) + windows.at[d].low +
                windows.at[d].high;
  const auto padded = [&](const ssa& x, const ssa& by, const tensor_type& t, const tensor_type& e) {
    const ssa v = w.begin();
    f.out << "stablehlo.pad " << x << ", " << by << ", low = ";
    write_list(f.out, lists.lows());
    f.out << ", high = ";
    write_list(f.out, lists.highs());
    f.out << ", interior = ";
    write_list(f.out, lists.interiors());
    const tensor_type operands[] = {t, e}, to{t.element, around};
    w.signature(operands, {&to, 1});
    return v;
  };
  const ssa values = padded({-1, -1}, start, from, value);
  const ssa numbers = padded(number, nowhere, places, place);
  w.indent();
  const ssa made = w.fresh();
  f.out << made << ":2 = \"stablehlo.reduce_window\"(" << values << ", " << numbers << ", " << start
        << ", " << nowhere << ") <{";
  write_windows(f.out, without_padding(windows));
  f.out << "}> ({\n";
  const vec<ssa> x = w.block(4, [&](int i) { return i % 2 == 0 ? value : place; });
  const std::string_view stays = a[0] == 0 ? "GE" : "LE";
  // The first element wins unless it loses against a later one, in any order of evaluation.
  const ssa zero = w.constant(place, 0);
  const ssa first_stays = w.compare(stays, x[0], x[2], value);
  const ssa second_stays = w.compare(stays, x[2], x[0], value);
  const ssa in_order = w.compare("LT", x[1], x[3], place);
  const ssa second_loses = w.begin();
  f.out << "stablehlo.not " << second_stays << " : tensor<i1>\n";
  const ssa better = w.select(in_order, first_stays, second_loses, boolean, {});
  const ssa is_place = w.compare("GE", x[1], zero, place);
  const ssa alone = w.compare("LT", x[3], zero, place);
  const ssa first = w.apply("or", alone, w.apply("and", is_place, better, boolean), boolean);
  const ssa results[] = {w.select(first, x[0], x[2], value, {}),
                         w.select(first, x[1], x[3], place, {})};
  const tensor_type types[] = {value, place};
  w.return_values("stablehlo.return", results, types);
  --f.depth;
  w.indent();
  f.out << "})";
  const tensor_type given[] = {{from.element, around}, {dtype::i64, around}, value, place},
                    to[] = {kept, selected};
  w.signature(given, to);
  const ssa result{made.number, 1};
  w.return_values("return", {&result, 1}, {&selected, 1});
  f.out << "  }\n";
  m.functions << f.out;
}
/// Writes an op that selects by positions: `@f(%x, %y)` calls a function that finds them, and one
/// that uses them, the program `use(b, positions, y)`.
template <class Use>
constexpr void write_selecting(body_writer& w, op_id o, const shape& positions, const Use& use) {
  const tensor_type &from = w.type_of(o, 0), &other = w.type_of(o, 1);
  const text function = w.m.new_name(w.p.op(o).def->name);
  const text selection = concat(function, ".selected"), used = concat(function, ".used");
  const tensor_type selected{dtype::i64, positions}, &result = w.result_type(o);
  const op::windows windows(w.p.attrs(o).data() + 1, from.shape.rank);
  if (from.shape.elements() == 0 || positions.elements() == 0 || any_empty(windows))
    return write_composed(
        w, o, [&](builder& b, const vec<value_id>&) { return one(ops::constant(b, result, 0)); });
  write_selection(w.m, selection.view(), w.p, o, from, positions);
  builder b;
  const value_id at = ops::parameter(b, "", selected), y = ops::parameter(b, "", other);
  b.p.outputs.push_back({use(b, at, y), {}});
  w.m.error.record(b.p.error);
  if (w.m.error) return;
  write_private_function(w.m, used.view(), b.p);
  function_writer f;
  body_writer all(w.m, f, w.p);
  f.out << "  func.func private @" << function << "(%arg0: " << mlir_type{from}
        << ", %arg1: " << mlir_type{other} << ") -> " << mlir_type{result} << " {\n";
  const ssa x{-1, -1};
  const ssa places = all.call(selection.view(), {&x, 1}, {&from, 1}, {&selected, 1});
  const ssa both[] = {places, {-2, -1}};
  const tensor_type types[] = {selected, other};
  const ssa made = all.call(used.view(), both, types, {&result, 1});
  all.return_values("return", {&made, 1}, {&result, 1});
  f.out << "  }\n";
  w.m.functions << f.out;
  write_composite(w, o, function.view());
}
constexpr void write_select_and_gather(body_writer& w, op_id o) {
  const shape to = w.result_type(o).shape;
  write_selecting(w, o, to, [&](builder& b, value_id at, value_id values) {
    const tensor_type from = b.type(values);
    const value_id zero = ops::integer(b, dtype::i64, 0);
    const value_id line = ops::reshape(b, values, {from.shape.elements()});
    const value_id taken = ops::gather(b, line, ops::maximum(b, at, zero));
    return ops::select(b, ops::compare(b, ops::direction::ge, at, zero), taken,
                       ops::scalar(b, from.element, 0));
  });
}
/// (XLA's op supports no dilation and no negative padding.)
constexpr void write_select_and_scatter(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const tensor_type& result = w.result_type(o);
  const op::windows windows(a.data() + 1, result.shape.rank);
  bool usual =
      are_usual(windows) && result.shape.elements() > 0 && w.type_of(o, 1).shape.elements() > 0;
  for (int d = 0; d < windows.rank; ++d)
    usual = usual && windows.at[d].dilation == 1 && windows.at[d].base_dilation == 1;
  if (!usual)
    return write_selecting(
        w, o, w.type_of(o, 1).shape, [&](builder& b, value_id at, value_id source) {
          const value_id line = ops::scatter_add(b, at, source, result.shape.elements());
          return ops::reshape(b, line, result.shape);
        });
  const tensor_type value{result.element, {}}, boolean{dtype::boolean, {}};
  const ssa zero = w.constant(value, 0);
  w.begin(o);
  text& out = w.out();
  out << "\"stablehlo.select_and_scatter\"(" << w.operand(o, 0) << ", " << w.operand(o, 1) << ", "
      << zero << ") <{padding = dense<";
  out << (windows.rank > 0 ? "[" : "");
  append_list(out, windows.rank,
              [&](int d) { out << '[' << windows.at[d].low << ", " << windows.at[d].high << ']'; });
  out << (windows.rank > 0 ? "]" : "") << "> : tensor<" << windows.rank
      << "x2xi64>, window_dimensions = array<i64";
  for (int d = 0; d < windows.rank; ++d) out << (d > 0 ? ", " : ": ") << windows.at[d].size;
  out << ">, window_strides = array<i64";
  for (int d = 0; d < windows.rank; ++d) out << (d > 0 ? ", " : ": ") << windows.at[d].stride;
  out << ">}> ({\n";
  const vec<ssa> x = w.block(2, [&](int) { return value; });
  const ssa stays = w.compare(a[0] == 0 ? "GE" : "LE", x[0], x[1], value);
  w.return_values("stablehlo.return", {&stays, 1}, {&boolean, 1});
  --w.f.depth;
  w.indent();
  out << "}, {\n";
  const vec<ssa> y = w.block(2, [&](int) { return value; });
  const ssa sum = w.apply("add", y[0], y[1], value);
  w.return_values("stablehlo.return", {&sum, 1}, {&value, 1});
  --w.f.depth;
  w.indent();
  out << "})";
  const tensor_type from[] = {w.type_of(o, 0), w.type_of(o, 1), value};
  w.signature(from, {&result, 1});
}

// ---- Order -----------------------------------------------------------------------------------

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

// ---- Control ---------------------------------------------------------------------------------

constexpr void write_while(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "\"stablehlo.while\"(";
  w.operands(o);
  w.out() << ") (";
  w.region(w.p.region(o, 0));
  w.out() << ", ";
  w.region(w.p.region(o, 1));
  w.out() << ')';
  w.signature(o);
}
/// Each branch calls a function, which receives its arguments in order.
constexpr void write_case(body_writer& w, op_id o) {
  const op_node& n = w.p.op(o);
  const auto from = w.operand_types(o), to = w.result_types(o);
  vec<ssa> arguments;
  for (int i = 1; i < n.operand_count; ++i) arguments.push_back(w.operand(o, i));
  vec<text> functions;
  for (const auto& branch : w.p.regions_of(o)) {
    functions.push_back(w.m.new_name("branch"));
    write_private_function(w.m, functions.back().view(), branch, w.own);
  }
  w.begin(o);
  w.out() << "\"stablehlo.case\"(" << w.operand(o, 0) << ") (";
  for (std::size_t r = 0; r < functions.size(); ++r) {
    w.out() << (r > 0 ? ", {\n" : "{\n");
    ++w.f.depth;
    const ssa made = w.call(functions[r].view(), {arguments.data(), arguments.size()},
                            span<const tensor_type>{from.data(), from.size()}.subspan(1),
                            {to.data(), to.size()});
    vec<ssa> values;
    for (int i = 0; i < n.result_count; ++i)
      values.push_back({made.number, n.result_count > 1 ? i : -1});
    w.return_values("stablehlo.return", {values.data(), values.size()}, {to.data(), to.size()});
    --w.f.depth;
    w.indent();
    w.out() << '}';
  }
  w.out() << ')';
  w.signature({from.data(), 1}, {to.data(), to.size()});
}
constexpr void write_call(body_writer& w, op_id o) {
  const text function = w.m.new_name("call");
  write_private_function(w.m, function.view(), w.p.region(o, 0), w.own);
  write_composite(w, o, function.view());
}
/// A `while` over a counter, the operands and the stacked results, whose body is a function.
class scan_writer {
 public:
  constexpr scan_writer(body_writer& around, op_id o, std::string_view body_name,
                        function_writer& f)
      : p_(around.p),
        o_(o),
        k_(around.p.attrs(o)),
        body_(p_.region(o, 0)),
        body_name_(body_name),
        w_(around.m, f, body_) {}

  /// Writes a function with this name and the operands as arguments.
  constexpr void write(std::string_view name) {
    const op_node& n = p_.op(o_);
    w_.out() << "  func.func private @" << name << '(';
    vec<ssa> values;
    values.push_back({});
    vec<tensor_type> types;
    types.push_back(index_type());
    append_list(w_.out(), n.operand_count, [&](int i) {
      values.push_back({-1 - i, -1});
      types.push_back(p_.type(p_.operand(o_, i)));
      w_.out() << values.back() << ": ";
      w_.type(types.back());
    });
    w_.out() << ") -> (";
    append_list(w_.out(), n.result_count, [&](int r) { w_.type(p_.type(n.result + r)); });
    w_.out() << ") {\n";
    values[0] = w_.constant(index_type(), 0);
    for (int j = 0; j < k_.stacked; ++j) {
      types.push_back(p_.type(n.result + k_.carried + j));
      values.push_back(w_.constant(types.back(), 0));
    }
    // (A loop without iterations has no slices.)
    if (k_.length > 0) loop(values, types);
    vec<ssa> results;
    vec<tensor_type> result_types;
    for (int r = 0; r < n.result_count; ++r) {
      const int at = r < k_.carried ? 1 + k_.constants + r : 1 + n.operand_count + r - k_.carried;
      results.push_back(values[static_cast<std::size_t>(at)]);
      result_types.push_back(types[static_cast<std::size_t>(at)]);
    }
    w_.return_values("return", {results.data(), results.size()},
                     {result_types.data(), result_types.size()});
    w_.out() << "  }\n";
  }

 private:
  const program& p_;
  op_id o_;
  op::scan::counts k_;
  const program& body_;
  std::string_view body_name_;
  body_writer w_;

  static constexpr tensor_type index_type() { return {dtype::i32, {}}; }

  constexpr void loop(vec<ssa>& values, const vec<tensor_type>& types) {
    w_.indent();
    const ssa made = w_.fresh();
    w_.out() << made << ':' << values.size() << " = \"stablehlo.while\"(";
    append_list(w_.out(), static_cast<int>(values.size()),
                [&](int i) { w_.out() << values[static_cast<std::size_t>(i)]; });
    w_.out() << ") ({\n";
    const auto type_at = [&](int i) { return types[static_cast<std::size_t>(i)]; };
    const int count = static_cast<int>(values.size());
    const vec<ssa> seen = w_.block(count, type_at);
    const ssa length = w_.constant(index_type(), k_.length);
    const ssa goes_on = w_.compare("LT", seen[0], length, index_type());
    const tensor_type boolean{dtype::boolean, {}};
    w_.return_values("stablehlo.return", {&goes_on, 1}, {&boolean, 1});
    --w_.f.depth;
    w_.indent();
    w_.out() << "}, {\n";
    iteration(w_.block(count, type_at), types);
    --w_.f.depth;
    w_.indent();
    w_.out() << "})";
    w_.signature({types.data(), types.size()}, {types.data(), types.size()});
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = {made.number, i};
  }
  constexpr void iteration(const vec<ssa>& x, const vec<tensor_type>& types) {
    const ssa one = w_.constant(index_type(), 1), zero = w_.constant(index_type(), 0);
    ssa position = x[0];
    if (k_.reversed)
      position = w_.apply("subtract", w_.constant(index_type(), k_.length - 1), x[0], index_type());
    vec<ssa> arguments;
    vec<tensor_type> from, to;
    arguments.push_back(position);
    const int whole = 1 + k_.constants + k_.carried;
    for (int i = 1; i < whole + k_.sliced; ++i) {
      const auto at = static_cast<std::size_t>(i);
      arguments.push_back(i < whole ? x[at] : slice(x[at], types[at], position, zero));
    }
    for (int i = 0; i < body_.input_count(); ++i) from.push_back(body_.input_type(i));
    for (int i = 0; i < body_.output_count(); ++i) to.push_back(body_.output_type(i));
    const ssa made = w_.call(body_name_, {arguments.data(), arguments.size()},
                             {from.data(), from.size()}, {to.data(), to.size()});
    const auto given = [&](int i) { return ssa{made.number, to.size() > 1 ? i : -1}; };
    vec<ssa> next = x;
    next[0] = w_.apply("add", x[0], one, index_type());
    for (int i = 0; i < k_.carried; ++i)
      next[static_cast<std::size_t>(1 + k_.constants + i)] = given(i);
    for (int j = 0; j < k_.stacked; ++j) {
      const auto at = static_cast<std::size_t>(whole + k_.sliced + j);
      next[at] = stack(x[at], types[at], given(k_.carried + j), body_.output_type(k_.carried + j),
                       position, zero);
    }
    w_.return_values("stablehlo.return", {next.data(), next.size()}, {types.data(), types.size()});
  }
  constexpr tensor_type one_of(const tensor_type& t) const {
    tensor_type piece = t;
    piece.shape[0] = 1;
    return piece;
  }
  constexpr void starts(const tensor_type& t, const ssa& position, const ssa& zero) {
    for (int d = 0; d < t.shape.rank; ++d) w_.out() << ", " << (d == 0 ? position : zero);
  }
  constexpr void start_types(vec<tensor_type>& list, const tensor_type& t) {
    for (int d = 0; d < t.shape.rank; ++d) list.push_back(index_type());
  }
  constexpr ssa slice(const ssa& x, const tensor_type& t, const ssa& position, const ssa& zero) {
    const tensor_type piece = one_of(t);
    const ssa v = w_.begin();
    w_.out() << "stablehlo.dynamic_slice " << x;
    starts(t, position, zero);
    w_.out() << ", sizes = ";
    write_list(w_.out(), {piece.shape.extents, static_cast<std::size_t>(piece.shape.rank)});
    vec<tensor_type> from;
    from.push_back(t);
    start_types(from, t);
    w_.signature({from.data(), from.size()}, {&piece, 1});
    return w_.reshape(v, piece, op::scan::slice_of(t));
  }
  constexpr ssa stack(const ssa& x, const tensor_type& t, const ssa& given,
                      const tensor_type& given_type, const ssa& position, const ssa& zero) {
    const tensor_type piece = one_of(t);
    const ssa update = w_.reshape(given, given_type, piece);
    const ssa v = w_.begin();
    w_.out() << "stablehlo.dynamic_update_slice " << x << ", " << update;
    starts(t, position, zero);
    vec<tensor_type> from;
    from.push_back(t);
    from.push_back(piece);
    start_types(from, t);
    w_.signature({from.data(), from.size()}, {&t, 1});
    return v;
  }
};
constexpr void write_scan(body_writer& w, op_id o) {
  const text function = w.m.new_name("scan"), body = concat(function, ".body");
  write_private_function(w.m, body.view(), w.p.region(o, 0), w.own);
  function_writer f;
  scan_writer(w, o, body.view(), f).write(function.view());
  w.m.functions << f.out;
  write_composite(w, o, function.view());
}
constexpr void write_barrier(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.optimization_barrier ";
  w.operands(o);
  w.out() << " : ";
  const auto types = w.operand_types(o);
  append_list(w.out(), static_cast<int>(types.size()),
              [&](int i) { w.type(types[static_cast<std::size_t>(i)]); });
  w.out() << '\n';
}

// ---- The table -------------------------------------------------------------------------------

/// Elementwise ops that differ at most in their names.
struct same_name {
  const op_def* op;
  std::string_view name;
};
inline constexpr same_name written_elementwise[] = {
    {&def<op::add>, "stablehlo.add"},
    {&def<op::atan2>, "stablehlo.atan2"},
    {&def<op::cbrt>, "stablehlo.cbrt"},
    {&def<op::ceil>, "stablehlo.ceil"},
    {&def<op::cosine>, "stablehlo.cosine"},
    {&def<op::count_leading_zeros>, "stablehlo.count_leading_zeros"},
    {&def<op::digamma>, "chlo.digamma"},
    {&def<op::divide>, "stablehlo.divide"},
    {&def<op::erf>, "chlo.erf"},
    {&def<op::erf_inv>, "chlo.erf_inv"},
    {&def<op::erfc>, "chlo.erfc"},
    {&def<op::exp>, "stablehlo.exponential"},
    {&def<op::expm1>, "stablehlo.exponential_minus_one"},
    {&def<op::floor>, "stablehlo.floor"},
    {&def<op::is_finite>, "stablehlo.is_finite"},
    {&def<op::lgamma>, "chlo.lgamma"},
    {&def<op::log>, "stablehlo.log"},
    {&def<op::log1p>, "stablehlo.log_plus_one"},
    {&def<op::logical_and>, "stablehlo.and"},
    {&def<op::logical_not>, "stablehlo.not"},
    {&def<op::logical_or>, "stablehlo.or"},
    {&def<op::logical_xor>, "stablehlo.xor"},
    {&def<op::logistic>, "stablehlo.logistic"},
    {&def<op::maximum>, "stablehlo.maximum"},
    {&def<op::minimum>, "stablehlo.minimum"},
    {&def<op::multiply>, "stablehlo.multiply"},
    {&def<op::negate>, "stablehlo.negate"},
    {&def<op::popcnt>, "stablehlo.popcnt"},
    {&def<op::power>, "stablehlo.power"},
    {&def<op::remainder>, "stablehlo.remainder"},
    {&def<op::round_nearest_away>, "stablehlo.round_nearest_afz"},
    {&def<op::round_nearest_even>, "stablehlo.round_nearest_even"},
    {&def<op::rsqrt>, "stablehlo.rsqrt"},
    {&def<op::shift_left>, "stablehlo.shift_left"},
    {&def<op::shift_right_arithmetic>, "stablehlo.shift_right_arithmetic"},
    {&def<op::shift_right_logical>, "stablehlo.shift_right_logical"},
    {&def<op::sine>, "stablehlo.sine"},
    {&def<op::sqrt>, "stablehlo.sqrt"},
    {&def<op::subtract>, "stablehlo.subtract"},
    {&def<op::tan>, "stablehlo.tan"},
    {&def<op::tanh>, "stablehlo.tanh"},
};
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
