/// Programs with the shardings of their arguments and results, for a partitioner that reads them.
#pragma once

#include <partita/schedule/partitioned.hpp>
#include <partita/stablehlo/write.hpp>

namespace partita {

namespace stablehlo_detail {

/// Writes `sdy.mesh @mesh = <["B"=4, "M"=2]>`.
constexpr void write_mesh(text& out, const mesh& m) {
  out << "  sdy.mesh @mesh = <[";
  append_list(out, m.whole_rank(), [&](int i) {
    write_quoted(out, m.name(i), false);
    out << '=' << m.whole_size(i);
  });
  out << "]>\n";
}
/// Adds `sdy.sharding = #sdy.sharding<@mesh, [{"B"}, {}]>`. A layout is written as it is printed,
/// including parts of axes.
constexpr void add_shardings(port_texts& to, const vec<layout>& layouts,
                             const vec<tensor_type>& types, const mesh& m) {
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    text each = "sdy.sharding = #sdy.sharding<@mesh, ";
    print_layout(each, layouts[i], types[i].shape.rank, m);
    each << '>';
    to.add(i, each);
  }
}

/// Adds the type of the first result of each op, in the order in which a program is read.
constexpr void add_types(const program& p, vec<tensor_type>& to) {
  for (op_id o = 0; o < p.op_count(); ++o) {
    to.push_back(p.op(o).result_count > 0 ? p.type(p.op(o).result) : tensor_type());
    for (const auto& r : p.regions_of(o)) add_types(r, to);
  }
}
/// Returns the layouts of inner values that the schedule determined: tags, and values named in
/// actions. Values without an action are not included.
constexpr inner_shardings decided_inside(const partitioned& r) {
  inner_shardings list;
  const core_program& c = r.core;
  vec<tensor_type> types;  // of first results in the source, by number
  add_types(r.source, types);
  vec<char> seen(c.p.types.size(), 0);
  const auto add = [&](value_id v, bool asked) {
    if (seen[v] != 0) return;
    const layout l = c.produced_layout(c.holder(v));
    if (l.count == 0 && !asked) return;
    seen[v] = 1;
    op_id o = c.p.producer(v);
    int result = c.p.result_index(v);
    if (c.p.is(o, op_role::parameter)) return;
    if (c.p.is(o, op_role::wire)) {  // a result of an op with nested programs, or a value inside it
      const auto* control = c.nested.control_of(o);
      result = -1;
      for (std::size_t i = 0; control != nullptr && i < control->results.size(); ++i)
        if (control->results[i] == v) result = static_cast<int>(i);
      if (result < 0) return;
      o = control->marker;
    }
    const int number = c.p.op(o).marks.source;
    const shape& s = c.true_shape(v);
    // (In a step over microbatches, a value is a slice of the value in the source.)
    if (number < 0 || (result == 0 && types[number].shape != s)) return;
    text sharding = "<@mesh, ";
    print_layout(sharding, l, s.rank, c.mesh);
    sharding << '>';
    list.add(number, result, sharding);
  };
  for (const auto& a : c.actions)
    if (a.kind != action_kind::propagate) add(a.value, true);
  for (op_id o = 0; o < c.p.op_count(); ++o)
    if (c.p.is(o, op_role::tag)) add(c.p.op(o).result, false);
  return list;
}
constexpr text write_annotated(const program& source, const device_program& d,
                               const inner_shardings& inside) {
  text out, failed;
  if (source.error) return failed << "error: " << source.error.message << '\n';
  module_writer m;
  m.shardings = &inside;
  out << "module @partita attributes {mhlo.num_partitions = " << d.mesh.devices()
      << " : i32, mhlo.num_replicas = 1 : i32} {\n";
  write_mesh(out, d.mesh);
  port_texts inputs(source.interface.inputs, d.inputs.size()),
      outputs(source.interface.outputs, d.outputs.size());
  add_donations(inputs, source.interface, [&](int i, int k) {
    return k < source.output_count() && d.input_types[i] == d.output_types[k] &&
           d.inputs[i] == d.outputs[k];
  });
  add_shardings(inputs, d.inputs, d.input_types, d.mesh);
  add_shardings(outputs, d.outputs, d.output_types, d.mesh);
  write_main(m, out, source, inputs.finish(), outputs.finish());
  out << "}\n";
  if (!m.error) return out;
  return failed << "error: " << m.error.message << '\n';
}

}  // namespace stablehlo_detail

/// Writes the source of a partitioned program with its shardings: Shardy's `sdy.mesh`, and
/// `sdy.sharding` on arguments and results. The layouts of inner values are left to the partitioner
/// that reads the text.
///
/// Errors    W001 an op that cannot be written
constexpr text write_annotated_stablehlo(const program& source, const device_program& d) {
  return stablehlo_detail::write_annotated(source, d, {});
}
/// The same, with the layouts of inner values that the schedule determined:
/// `sdy.sharding_constraint` for tags and for values that tactics name.
constexpr text write_annotated_stablehlo(const partitioned& r) {
  return stablehlo_detail::write_annotated(r.source, r.device, stablehlo_detail::decided_inside(r));
}

}  // namespace partita
