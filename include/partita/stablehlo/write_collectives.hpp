/// Writes collectives as StableHLO. The device numbers are those of replicas.
///
/// Source    the StableHLO specification, version 1.0: cross-replica groups
#pragma once

#include <partita/spmd/collectives.hpp>
#include <partita/stablehlo/replica_groups.hpp>
#include <partita/stablehlo/write_ops.hpp>

namespace partita::stablehlo_detail {

constexpr axis_list axes_of(const layout& l, int dim) {
  axis_list list;
  for (const auto& e : l)
    if (dim == no_dim || e.dim == dim) list.push_back(e.axis);
  return list;
}
constexpr std::int64_t devices_along(const mesh& m, const axis_list& axes) {
  std::int64_t n = 1;
  for (const int axis : axes) n *= m.size(axis);
  return n;
}

/// Writes `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`, built once for each list of axes.
constexpr void write_groups(body_writer& w, const axis_list& axes) {
  text key = "groups";
  for (const int axis : axes) key << ' ' << axis;
  if (const text* known = w.m.find(key.view())) {
    w.out() << *known;
    return;
  }
  const auto groups = device_numbers(*w.m.mesh).groups(axes);
  text made = "replica_groups = dense<[";
  append_list(made, static_cast<int>(groups.size()), [&](int g) {
    const auto& members = groups[static_cast<std::size_t>(g)];
    write_list(made, {members.data(), members.size()});
  });
  made << "]> : tensor<" << groups.size() << 'x' << groups[0].size() << "xi64>";
  w.out() << made;
  w.m.remember(key, made);
}

// ---- Position of this device -----------------------------------------------------------------

inline constexpr tensor_type device_number{dtype::i64, {}};

/// Writes the position of this device along an axis.
constexpr ssa coordinate(body_writer& w, int axis) {
  if (w.coordinates.empty()) w.coordinates.resize(max_axes, ssa{0, -2});
  ssa& known = w.coordinates[static_cast<std::size_t>(axis)];
  if (known.index != -2) return known;
  const mesh& m = *w.m.mesh;
  const ssa id = w.begin();
  w.out() << "stablehlo.replica_id : tensor<ui32>\n";
  ssa at = w.convert(id, {dtype::u32, {}}, dtype::i64);
  const std::int64_t stride = device_numbers(m).stride[axis];
  if (stride > 1) at = w.apply("divide", at, w.constant(device_number, stride), device_number);
  at = w.apply("remainder", at, w.constant(device_number, m.size(axis)), device_number);
  known = at;
  return at;
}
/// Writes the number of this device in its group.
constexpr ssa member_number(body_writer& w, const axis_list& axes) {
  if (axes.count == 0) return w.constant(device_number, 0);
  ssa n = coordinate(w, axes.axes[0]);
  for (int i = 1; i < axes.count; ++i) {
    const ssa size = w.constant(device_number, w.m.mesh->size(axes.axes[i]));
    const ssa major = w.apply("multiply", n, size, device_number);
    n = w.apply("add", major, coordinate(w, axes.axes[i]), device_number);
  }
  return n;
}

constexpr void write_shard_start(body_writer& w, op_id o) {
  const auto a = w.p.attrs(o);
  const ssa number = member_number(w, op::shard_start::axes(a));
  const ssa distance = w.constant(device_number, op::shard_start::distance(a));
  const ssa start = w.apply("multiply", number, distance, device_number);
  w.names[static_cast<std::size_t>(w.p.op(o).result)] =
      w.convert(start, device_number, w.result_type(o).element);
}
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
/// The extents of a tensor of any rank.
using extent_list = vec<std::int64_t>;

constexpr void write_signature(body_writer& w, dtype t, const extent_list& from,
                               const extent_list& to) {
  const auto type = [&](const extent_list& extents) {
    w.out() << "tensor<";
    for (const std::int64_t each : extents) w.out() << each << 'x';
    write_element(w.out(), t);
    w.out() << '>';
  };
  w.out() << " : (";
  type(from);
  w.out() << ") -> ";
  type(to);
  w.out() << '\n';
}
/// Writes an all_to_all of several dimensions: the block for each device becomes the first
/// dimension, which is exchanged.
///
/// (a, b) -> (n, a, b / n) -> all_to_all -> (n, a, b / n) -> (a n, b / n)
constexpr void write_all_to_all_of_several(body_writer& w, op_id o) {
  const collective what = w.p.collective_of(o);
  const mesh& m = *w.m.mesh;
  const tensor_type &from = w.type_of(o, 0), &to = w.result_type(o);
  const dtype t = from.element;
  const auto reshaped = [&](const ssa& x, const extent_list& is, const extent_list& wanted) {
    const ssa v = w.begin();
    w.out() << "stablehlo.reshape " << x;
    write_signature(w, t, is, wanted);
    return v;
  };
  const auto permuted = [](const extent_list& of, const extent_list& order) {
    extent_list list;
    for (const std::int64_t each : order) list.push_back(of[static_cast<std::size_t>(each)]);
    return list;
  };
  const auto transposed = [&](const ssa& x, const extent_list& is, const extent_list& order) {
    const ssa v = w.begin();
    w.out() << "stablehlo.transpose " << x << ", dims = ";
    write_list(w.out(), {order.data(), order.size()});
    write_signature(w, t, is, permuted(is, order));
    return v;
  };
  // The operand with a dimension for each axis that slices it, major to minor, and the order in
  // which these come first.
  extent_list cut, front, rest, whole_from, whole_to, flat;
  std::int64_t place[max_axes] = {};
  for (int d = 0; d < from.shape.rank; ++d) {
    std::int64_t left = from.shape[d];
    for (const auto& e : what.axes)
      if (e.dim == d) {
        place[e.axis] = static_cast<std::int64_t>(cut.size());
        cut.push_back(m.size(e.axis));
        left /= m.size(e.axis);
      }
    rest.push_back(static_cast<std::int64_t>(cut.size()));
    cut.push_back(left);
    whole_from.push_back(from.shape[d]);
    whole_to.push_back(to.shape[d]);
  }
  for (const auto& e : what.axes) front.push_back(place[e.axis]);
  for (const std::int64_t each : rest) front.push_back(each);
  const extent_list sent = permuted(cut, front);
  flat.push_back(what.members(m));
  for (const std::int64_t each : rest) flat.push_back(cut[static_cast<std::size_t>(each)]);
  ssa x = reshaped(w.operand(o, 0), whole_from, cut);
  x = reshaped(transposed(x, cut, front), sent, flat);
  const ssa got = w.begin();
  w.out() << "\"stablehlo.all_to_all\"(" << x << ") <{concat_dimension = 0 : i64, ";
  write_groups(w, axes_of(what.axes, no_dim));
  w.out() << ", split_count = " << flat[0] << " : i64, split_dimension = 0 : i64}>";
  write_signature(w, t, flat, flat);
  extent_list order;
  for (int d = 0; d < from.shape.rank; ++d) {
    for (const auto& g : what.from)
      for (int i = 0; i < what.axes.count; ++i)
        if (g.dim == d && what.axes[i].axis == g.axis) order.push_back(i);
    order.push_back(what.axes.count + d);
  }
  x = transposed(reshaped(got, flat, sent), sent, order);
  w.names[static_cast<std::size_t>(w.p.op(o).result)] =
      reshaped(x, permuted(sent, order), whole_to);
}
constexpr void write_all_to_all(body_writer& w, op_id o) {
  const collective what = w.p.collective_of(o);
  if (what.several()) return write_all_to_all_of_several(w, o);
  const axis_list axes = axes_of(what.axes, no_dim);
  w.begin(o);
  w.out() << "\"stablehlo.all_to_all\"(" << w.operand(o, 0)
          << ") <{concat_dimension = " << what.gathered << " : i64, ";
  write_groups(w, axes);
  w.out() << ", split_count = " << devices_along(*w.m.mesh, axes)
          << " : i64, split_dimension = " << what.sliced << " : i64}>";
  w.signature(o);
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
