/// Arrays as processes hold them: the shards of the devices of each.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <partita/ir/print.hpp>
#include <partita/run/array.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/run/memory/device_set.hpp>

namespace partita::run_detail {

/// Checks arrays against the inputs of a program, whose types are these.
///
/// Errors    R001 number of arrays, R002 shape, R003 element type
inline void check_arrays(const program& p, std::span<const tensor_type> types,
                         std::span<const array> inputs) {
  if (inputs.size() != types.size()) {
    text message = concat("R001 run: ", inputs.size(), inputs.size() == 1 ? " array" : " arrays",
                          " given; the program has ", types.size(), " inputs: ");
    append_list(message, p.input_count(), [&](int i) { message << p.input_name(i); });
    throw error(message);
  }
  for (int i = 0; i < p.input_count(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const tensor_type &have = inputs[k].type(), &need = types[k];
    if (!(have.shape == need.shape))
      throw error(concat("R002 run: the array for input \"", p.input_name(i), "\" has shape ",
                         have.shape, "; ", need.shape, " is needed"));
    if (have.element != need.element)
      throw error(concat("R003 run: the array for input \"", p.input_name(i),
                         "\" has element type ", name_of(have.element), "; ", name_of(need.element),
                         " is needed; give another type or use as_type"));
  }
}

/// The elements that both shapes have; further ones are zero.
inline array resized(const array& a, const shape& to) {
  if (a.shape() == to) return a;
  array out(tensor_type{a.element(), to});
  shape common = to;
  for (int d = 0; d < to.rank; ++d)
    if (a.shape()[d] < to[d]) common[d] = a.shape()[d];
  copy_box(size_of(a.element()), common, a.shape(), nullptr, a.bytes(), to, nullptr,
           out.mutable_bytes());
  return out;
}

/// A value as a process holds it: one copy for each distinct coordinate, among its devices, over
/// the axes that the value varies over.
struct distributed_array {
  std::vector<array> copies;
  axis_set axes;
};

/// The shards of a global array that a set of devices holds.
inline distributed_array cut(const array& global, const layout& l, const device_set& devices) {
  distributed_array out;
  out.axes = axes_of(devices.mesh(), l);
  if (out.axes.empty()) {
    out.copies.push_back(global);
    return out;
  }
  const tensor_type shard{global.element(), l.local(global.shape(), devices.mesh())};
  for (std::int64_t i = 0; i < devices.copies(out.axes); ++i) {
    array a(shard, allocate(padded_bytes(shard)));
    copy_box(size_of(shard.element), shard.shape, global.shape(),
             start_of(devices.mesh(), l, shard.shape, devices.coordinates_of(out.axes, i)).at,
             global.bytes(), shard.shape, nullptr, const_cast<std::byte*>(a.bytes()));
    out.copies.push_back(std::move(a));
  }
  return out;
}
inline distributed_array cut(const array& global, const layout& l, const mesh& m) {
  return cut(global, l, device_set::all(m));
}
/// The global array that has these shards; of a process that holds all devices.
inline array joined(const distributed_array& shards, const layout& l, const mesh& m) {
  if (axes_of(m, l).empty()) return shards.copies[0];
  const shape& shard = shards.copies[0].shape();
  const dtype element = shards.copies[0].element();
  const tensor_type global{element, l.global(shard, m)};
  array out(global, allocate(padded_bytes(global)));
  for (std::int64_t i = 0; i < copies_over(m, shards.axes); ++i)
    copy_box(size_of(element), shard, shard, nullptr,
             shards.copies[static_cast<std::size_t>(i)].bytes(), global.shape,
             start_of(m, l, shard, coordinates_of(m, shards.axes, i)).at,
             const_cast<std::byte*>(out.bytes()));
  return out;
}

}  // namespace partita::run_detail
