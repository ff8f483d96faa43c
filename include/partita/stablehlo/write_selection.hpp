/// Writers of ops that select one element of each window.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/write_composite.hpp>
#include <partita/stablehlo/write_windows.hpp>

namespace partita::stablehlo_detail {

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

}  // namespace partita::stablehlo_detail
