/// Writers of all_to_all, along one dimension or several.
#pragma once

#include <partita/spmd/collectives.hpp>
#include <partita/stablehlo/write_device_numbers.hpp>

namespace partita::stablehlo_detail {

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

}  // namespace partita::stablehlo_detail
