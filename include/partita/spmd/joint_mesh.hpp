/// Represents two views of the same devices as one mesh whose axes are parts of both.
#pragma once

#include <cstdint>

#include <partita/ir/layout.hpp>
#include <partita/ir/mesh.hpp>

namespace partita {

namespace spmd_detail {

/// The distance in device number between neighbours along an axis.
constexpr std::int64_t stride_of(const mesh& m, int axis) {
  std::int64_t n = 1;
  for (int i = m.rank; i-- > 0 && m.order[i] != axis;) n *= m.size(m.order[i]);
  return n;
}
/// Ensures that a stride of `devices` is a boundary of some axis, splitting an axis if necessary.
/// Returns false if that is impossible.
constexpr bool cut_at(mesh& m, std::int64_t devices) {
  for (int a = 0; a < m.rank; ++a) {
    const std::int64_t begin = stride_of(m, a), end = begin * m.size(a);
    if (devices <= begin || devices >= end) continue;
    if (devices % begin != 0 || end % devices != 0 || m.rank == max_axes) return false;
    m.split(a, end / devices);
    return true;
  }
  return true;
}
constexpr bool same_axes(const mesh& a, const mesh& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.name(i) != b.name(i) || a.size(i) != b.size(i)) return false;
  return true;
}

}  // namespace spmd_detail

/// Computes a mesh in which each axis is a part of one axis of `a` and of one axis of `b`; device
/// number i is device number i of both. It has the names of the user's axes if both meshes have the
/// same, otherwise one axis "devices", split into parts. Returns false if no such mesh exists: the
/// numbers of devices differ, axes overlap partially, or there would be too many axes.
constexpr bool join(const mesh& a, const mesh& b, mesh& joint) {
  if (a.devices() != b.devices()) return false;
  joint = a.whole();
  if (!spmd_detail::same_axes(joint, b.whole())) {
    joint = mesh();
    joint.push_back({"devices", a.devices()});
  }
  for (const mesh* m : {&a, &b})
    for (int axis = 0; axis < m->rank; ++axis)
      if (!spmd_detail::cut_at(joint, spmd_detail::stride_of(*m, axis))) return false;
  return true;
}

/// Converts a layout over `m` to the mesh that `join` computed from it.
constexpr layout over_parts(const layout& l, const mesh& m, const mesh& joint) {
  layout made;
  for (const auto& e : l) {
    const std::int64_t begin = spmd_detail::stride_of(m, e.axis), end = begin * m.size(e.axis);
    for (int i = 0; i < joint.rank; ++i) {
      const int part = joint.order[i];
      const std::int64_t at = spmd_detail::stride_of(joint, part);
      if (joint.size(part) > 1 && at >= begin && at < end) made.push_back(part, e.dim);
    }
  }
  return made;
}

}  // namespace partita
