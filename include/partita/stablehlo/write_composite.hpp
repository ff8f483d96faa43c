/// Writes ops that StableHLO lacks, as composites.
///
/// An op that StableHLO lacks is written as a `stablehlo.composite "partita.NAME"` with the
/// attributes of this library, and a function of ops that StableHLO has. XLA inlines that function.
/// The reader restores the op if the function is the one that is written here (see composites.hpp).
#pragma once

#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/module_writer.hpp>

namespace partita::stablehlo_detail {

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

}  // namespace partita::stablehlo_detail
