/// The shard of a device.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/run/array.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/schedule/block_map.hpp>
#include <partita/schedule/sharding_of.hpp>

namespace partita {

/// Returns the block of a global array that a device holds. Padding is zero. Devices (i0, i1, ...)
/// are numbered in row-major order, as in `show`.
///
/// Shapes    global_shape -> local_shape
/// Errors    R002 the array has another shape, R010 the device does not exist
inline array piece(const array& a, const sharded_value& s, const mesh& m, std::int64_t device) {
  if (a.shape() != s.global_shape)
    throw error(concat("R002 piece: the array has shape ", a.shape(), ", \"", s.name, "\" has ",
                       s.global_shape));
  if (device < 0 || device >= m.devices())
    throw error(
        concat("R010 piece: device ", device, " does not exist; the mesh has ", m.devices()));
  const schedule_detail::block_map blocks(s, m);
  array out(tensor_type{a.element(), s.local_shape});
  std::int64_t start[max_rank] = {};
  shape box = s.local_shape;
  for (int d = 0; d < box.rank; ++d) {
    start[d] = blocks.begin(d, blocks.piece_of(device, d));
    const std::int64_t left = a.shape()[d] - start[d];
    if (left <= 0) return out;  // padding only
    if (left < box[d]) box[d] = left;
  }
  run_detail::copy_box(size_of(a.element()), box, a.shape(), start, a.bytes(), out.shape(), nullptr,
                       out.mutable_bytes());
  return out;
}
/// Returns the block of an input, tag or output of a partitioned program: `piece(w1, step(), "w1",
/// 3)`.
///
/// Errors    those of the overload above; P007 nothing has this name
inline array piece(const array& a, const partitioned& p, std::string_view name,
                   std::int64_t device) {
  return piece(a, sharding_of(p, name), p.mesh(), device);
}

}  // namespace partita
