/// Writes collectives as StableHLO. The device numbers are those of replicas.
///
/// Source    the StableHLO specification, version 1.0: cross-replica groups
#pragma once

#include <partita/spmd/collectives.hpp>
#include <partita/stablehlo/write_all_to_all.hpp>
#include <partita/stablehlo/write_device_numbers.hpp>
#include <partita/stablehlo/write_ops.hpp>

namespace partita::stablehlo_detail {

constexpr void write_all_slice(body_writer& w, op_id o) {
  const collective what = w.p.collective_of(o);
  const tensor_type &from = w.type_of(o, 0), &to = w.result_type(o);
  vec<ssa> starts;
  vec<tensor_type> types;
  types.push_back(from);
  const ssa zero = w.constant(device_number, 0);
  for (int d = 0; d < to.shape.rank; ++d) {
    const axis_list axes = axes_of(what.axes, d);
    types.push_back(device_number);
    if (axes.count == 0) {
      starts.push_back(zero);
      continue;
    }
    const ssa number = member_number(w, axes);
    starts.push_back(
        w.apply("multiply", number, w.constant(device_number, to.shape[d]), device_number));
  }
  w.begin(o);
  w.out() << "stablehlo.dynamic_slice " << w.operand(o, 0);
  for (const ssa& each : starts) w.out() << ", " << each;
  w.out() << ", sizes = ";
  write_list(w.out(), {to.shape.extents, static_cast<std::size_t>(to.shape.rank)});
  w.signature({types.data(), types.size()}, {&to, 1});
}

// ---- Exchanges between devices ---------------------------------------------------------------

/// Returns the extents from dimension `first` on.
constexpr tensor_type from_dimension(const tensor_type& t, int first) {
  tensor_type made{t.element, {}};
  for (int d = first; d < t.shape.rank; ++d) made.shape.push_back(t.shape[d]);
  return made;
}
/// Calls `write(x, from, to, dim, axes)` in sequence for each dimension that axes slice or join.
/// `times`: the extent is multiplied by the number of devices, otherwise divided. Leading
/// dimensions of one element are removed for this: XLA otherwise copies the value to another layout
/// and back, although both are the same in memory.
template <class Write>
constexpr void dimension_by_dimension(body_writer& w, op_id o, bool times, const Write& write) {
  const collective what = w.p.collective_of(o);
  ssa x = w.operand(o, 0);
  tensor_type from = w.type_of(o, 0);
  std::int64_t before = 1;
  for (int d = 0; d < from.shape.rank; before *= from.shape[d++]) {
    const axis_list axes = axes_of(what.axes, d);
    if (axes.count == 0) continue;
    tensor_type to = from;
    const std::int64_t n = devices_along(*w.m.mesh, axes);
    to.shape[d] = times ? to.shape[d] * n : to.shape[d] / n;
    const int ones = before == 1 ? d : 0;
    const tensor_type flat = from_dimension(from, ones), made = from_dimension(to, ones);
    x = write(w.reshape(x, from, flat), flat, made, d - ones, axes);
    x = w.reshape(x, made, to);
    from = to;
  }
  w.names[static_cast<std::size_t>(w.p.op(o).result)] = x;
}
constexpr void write_all_gather(body_writer& w, op_id o) {
  dimension_by_dimension(w, o, true,
                         [&](const ssa& x, const tensor_type& from, const tensor_type& to, int dim,
                             const axis_list& axes) {
                           const ssa v = w.begin();
                           w.out() << "\"stablehlo.all_gather\"(" << x
                                   << ") <{all_gather_dim = " << dim << " : i64, ";
                           write_groups(w, axes);
                           w.out() << "}>";
                           w.signature_of_one(from, to);
                           return v;
                         });
}
/// True for the bitwise combinations of integers, for which XLA has no all_reduce.
constexpr bool combines_bits(combiner how, dtype t) {
  return (how == combiner::logical_and || how == combiner::logical_or) && t != dtype::boolean;
}
/// Writes a bitwise all_reduce: gathers the values of all devices and combines them.
constexpr ssa all_bits(body_writer& w, const ssa& x, const tensor_type& t, combiner how,
                       const axis_list& axes) {
  const std::int64_t size = t.shape.elements();
  const tensor_type line{t.element, {1, size}}, scalar{t.element, {}};
  const tensor_type lines{t.element, {devices_along(*w.m.mesh, axes), size}};
  const tensor_type combined{t.element, {size}};
  const ssa flat = w.reshape(x, t, line);
  const ssa all = w.begin();
  w.out() << "\"stablehlo.all_gather\"(" << flat << ") <{all_gather_dim = 0 : i64, ";
  write_groups(w, axes);
  w.out() << "}>";
  w.signature_of_one(line, lines);
  const ssa initial = w.constant(scalar, identity_bits(how, t.element));
  const ssa made = w.begin();
  w.out() << "stablehlo.reduce(" << all << " init: " << initial << ") applies stablehlo."
          << combining_op(how).name << " across dimensions = [0]";
  const tensor_type from[] = {lines, scalar};
  w.signature(from, {&combined, 1});
  return w.reshape(made, combined, t);
}
/// Writes the shard of this device along one dimension.
constexpr ssa own_piece(body_writer& w, const ssa& x, const tensor_type& from,
                        const tensor_type& to, int dim, const axis_list& axes) {
  const ssa zero = w.constant(device_number, 0);
  const ssa start = w.apply("multiply", member_number(w, axes),
                            w.constant(device_number, to.shape[dim]), device_number);
  vec<tensor_type> types;
  types.push_back(from);
  const ssa v = w.begin();
  w.out() << "stablehlo.dynamic_slice " << x;
  for (int d = 0; d < to.shape.rank; ++d) {
    w.out() << ", " << (d == dim ? start : zero);
    types.push_back(device_number);
  }
  w.out() << ", sizes = ";
  write_list(w.out(), {to.shape.extents, static_cast<std::size_t>(to.shape.rank)});
  w.signature({types.data(), types.size()}, {&to, 1});
  return v;
}
constexpr void write_reduce_scatter(body_writer& w, op_id o) {
  const combiner how = w.p.collective_of(o).combine;
  const std::string_view name = combining_op(how).name;
  dimension_by_dimension(w, o, false,
                         [&](const ssa& x, const tensor_type& from, const tensor_type& to, int dim,
                             const axis_list& axes) {
                           if (combines_bits(how, from.element))
                             return own_piece(w, all_bits(w, x, from, how, axes), from, to, dim,
                                              axes);
                           const ssa v = w.begin();
                           w.out() << "\"stablehlo.reduce_scatter\"(" << x << ") <{";
                           write_groups(w, axes);
                           w.out() << ", scatter_dimension = " << dim << " : i64}>";
                           w.combiner_region(name, from.element);
                           w.signature_of_one(from, to);
                           return v;
                         });
}
/// Sends several operands in one message; operands of each element type are sent separately.
constexpr void write_all_reduce(body_writer& w, op_id o) {
  const collective what = w.p.collective_of(o);
  const op_node& n = w.p.op(o);
  const axis_list axes = axes_of(what.axes, no_dim);
  vec<char> written(static_cast<std::size_t>(n.operand_count), 0);
  for (int first = 0; first < n.operand_count; ++first) {
    if (written[static_cast<std::size_t>(first)]) continue;
    const dtype t = w.type_of(o, first).element;
    if (combines_bits(what.combine, t)) {
      w.names[static_cast<std::size_t>(n.result + first)] =
          all_bits(w, w.operand(o, first), w.type_of(o, first), what.combine, axes);
      continue;
    }
    vec<int> together;
    vec<tensor_type> types;
    for (int i = first; i < n.operand_count; ++i) {
      if (w.type_of(o, i).element != t) continue;
      written[static_cast<std::size_t>(i)] = 1;
      together.push_back(i);
      types.push_back(w.type_of(o, i));
    }
    const int count = static_cast<int>(together.size());
    w.indent();
    const ssa v = w.fresh();
    w.out() << v;
    if (count > 1) w.out() << ':' << count;
    w.out() << " = \"stablehlo.all_reduce\"(";
    append_list(w.out(), count,
                [&](int i) { w.out() << w.operand(o, together[static_cast<std::size_t>(i)]); });
    w.out() << ") <{";
    write_groups(w, axes);
    w.out() << "}>";
    w.combiner_region(combining_op(what.combine).name, t);
    w.signature({types.data(), types.size()}, {types.data(), types.size()});
    for (int i = 0; i < count; ++i)
      w.names[static_cast<std::size_t>(n.result + together[static_cast<std::size_t>(i)])] = {
          v.number, count > 1 ? i : -1};
  }
}
/// Writes a permute. A device that receives nothing gets zeros, which are then replaced by the
/// identity of the combiner.
constexpr void write_permute(body_writer& w, op_id o) {
  const collective what = w.p.collective_of(o);
  const axis_list axes = axes_of(what.axes, no_dim);
  const std::int64_t members = devices_along(*w.m.mesh, axes);
  const tensor_type& t = w.result_type(o);
  const auto result = static_cast<std::size_t>(w.p.op(o).result);
  text pairs;
  std::int64_t count = 0;
  for (const auto& group : device_numbers(*w.m.mesh).groups(axes))
    for (std::int64_t to = 0; to < members; ++to) {
      const std::int64_t from = what.sender(to, *w.m.mesh);
      if (from == device_map::nobody) continue;
      pairs << (count++ > 0 ? ", [" : "[") << group[static_cast<std::size_t>(from)] << ", "
            << group[static_cast<std::size_t>(to)] << ']';
    }
  const std::int64_t identity = identity_bits(what.combine, t.element);
  if (count == 0) {
    w.names[result] = w.constant(t, identity);
    return;
  }
  ssa v = w.begin();
  w.out() << "\"stablehlo.collective_permute\"(" << w.operand(o, 0)
          << ") <{source_target_pairs = dense<[" << pairs << "]> : tensor<" << count << "x2xi64>}>";
  w.signature_of_one(t, t);
  const std::int64_t shift = what.map.shift;
  if (what.map.form == device_map::shifted && shift != 0 && identity != 0) {
    const ssa number = member_number(w, axes);
    const ssa bound = w.constant(device_number, shift > 0 ? shift : members + shift);
    const ssa sent_to = w.compare(shift > 0 ? "GE" : "LT", number, bound, device_number);
    v = w.select(sent_to, v, w.constant(t, identity), t, {});
  }
  w.names[result] = v;
}

/// Writes nothing: the compiler decides where to wait for an asynchronous collective.
constexpr void write_done(body_writer& w, op_id o) {
  const op_node& n = w.p.op(o);
  for (int r = 0; r < n.result_count; ++r)
    w.names[static_cast<std::size_t>(n.result + r)] =
        w.names[static_cast<std::size_t>(w.p.operand(o, r))];
}

inline constexpr written_op written_collectives[] = {
    {&def<op::all_gather>, &write_all_gather},
    {&def<op::all_reduce>, &write_all_reduce},
    {&def<op::all_slice>, &write_all_slice},
    {&def<op::all_to_all>, &write_all_to_all},
    {&def<op::permute>, &write_permute},
    {&def<op::shard_start>, &write_shard_start},
    {&def<op::done>, &write_done},
    {&def<op::reduce_scatter>, &write_reduce_scatter},
};
/// Writes the results of a collective that have no elements as constants, since the specification
/// wants at least one element along a gathered dimension. Returns false if a result has elements.
constexpr bool write_empty_results(body_writer& w, op_id o) {
  const op_node& n = w.p.op(o);
  for (int r = 0; r < n.result_count; ++r)
    if (w.p.type(n.result + r).shape.elements() > 0) return false;
  for (int r = 0; r < n.result_count; ++r)
    w.names[static_cast<std::size_t>(n.result + r)] = w.constant(w.p.type(n.result + r), 0);
  return n.result_count > 0;
}
/// Writes an op that only programs for devices have, like write_op; false for other ops.
constexpr bool write_collective(body_writer& w, op_id o) {
  if (w.p.op(o).def->collective && write_empty_results(w, o)) return true;
  const std::uint64_t id = w.p.op(o).def->id;
  for (const auto& each : written_collectives)
    if (each.op->id == id) return each.write(w, o), true;
  return false;
}

}  // namespace partita::stablehlo_detail
