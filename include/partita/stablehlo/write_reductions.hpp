/// Writers of reductions, of all elements and of windows.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/write_composite.hpp>
#include <partita/stablehlo/write_windows.hpp>

namespace partita::stablehlo_detail {

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

}  // namespace partita::stablehlo_detail
