/// Arrays as processes hold them: the shards of their devices.
#pragma once

#include <span>
#include <vector>

#include <partita/ir/print.hpp>
#include <partita/run/array.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/run/memory/device_set.hpp>

namespace partita::run_detail {

/// Checks an argument for an input. `what` is "array" or "shard"; `advice` is about the element
/// type.
///
/// Errors    R002 wrong shape, R003 wrong element type
inline void need_input_type(std::string_view what, std::string_view name, const tensor_type& have,
                            const tensor_type& need, std::string_view advice = {}) {
  const auto fail = [&](std::string_view code, std::string_view has, const auto& mine,
                        const auto& wanted, std::string_view more) {
    throw error(concat(code, " run: the ", what, " for input \"", name, "\" has ", has, ' ', mine,
                       "; ", wanted, " is needed", more));
  };
  if (have.shape != need.shape) fail("R002", "shape", have.shape, need.shape, {});
  if (have.element != need.element)
    fail("R003", "element type", name_of(have.element), name_of(need.element), advice);
}
/// Checks arrays against the inputs of a program, whose types are `types`.
///
/// Errors    R001 wrong number of arrays, R002 wrong shape, R003 wrong element type
inline void check_arrays(const program& p, std::span<const tensor_type> types,
                         std::span<const array> inputs) {
  if (inputs.size() != types.size()) {
    text message = concat("R001 run: ", inputs.size(), inputs.size() == 1 ? " array" : " arrays",
                          " given; the program has ", types.size(), " inputs: ");
    append_list(message, p.input_count(), [&](int i) { message << p.input_name(i); });
    throw error(message);
  }
  for (std::size_t i = 0; i < types.size(); ++i)
    need_input_type("array", p.input_name(static_cast<int>(i)), inputs[i].type(), types[i],
                    "; give another type or use as_type");
}

/// Returns the array with another shape: common elements are copied, others are zero.
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

/// A value as a process holds it: one copy for each distinct coordinate of its devices, over the
/// axes along which the value varies.
struct distributed_array {
  std::vector<array> copies;
  axis_set axes;
};

/// Copies the shard of a device at `c` from a global tensor.
inline void copy_shard(const array& global, const layout& l, const mesh& m, const coordinates& c,
                       const shape& shard, std::byte* to) {
  copy_box(size_of(global.element()), shard, global.shape(), start_of(m, l, shard, c).at,
           global.bytes(), shard, nullptr, to);
}
/// Copies the shard of a device at `c` to its place in a global tensor that has no other owner.
inline void put_shard(const std::byte* from, const layout& l, const mesh& m, const coordinates& c,
                      const shape& shard, const array& global) {
  copy_box(size_of(global.element()), shard, shard, nullptr, from, global.shape(),
           start_of(m, l, shard, c).at, const_cast<std::byte*>(global.bytes()));
}

/// Cuts a global array into the shards that a set of devices holds.
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
    copy_shard(global, l, devices.mesh(), devices.coordinates_of(out.axes, i), shard.shape,
               const_cast<std::byte*>(a.bytes()));
    out.copies.push_back(std::move(a));
  }
  return out;
}
inline distributed_array cut(const array& global, const layout& l, const mesh& m) {
  return cut(global, l, device_set::all(m));
}
/// Joins shards to a global array, for a process that holds all devices.
inline array joined(const distributed_array& shards, const layout& l, const mesh& m) {
  if (axes_of(m, l).empty()) return shards.copies[0];
  const shape& shard = shards.copies[0].shape();
  const tensor_type global{shards.copies[0].element(), l.global(shard, m)};
  array out(global, allocate(padded_bytes(global)));
  const device_set devices = device_set::all(m);
  for (std::int64_t i = 0; i < devices.copies(shards.axes); ++i)
    put_shard(shards.copies[at(i)].bytes(), l, m, devices.coordinates_of(shards.axes, i), shard,
              out);
  return out;
}

}  // namespace partita::run_detail
