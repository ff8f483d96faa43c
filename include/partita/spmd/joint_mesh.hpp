/// Two views of the same devices as one mesh, of which both take parts.
#pragma once

#include <cstdint>

#include <partita/ir/layout.hpp>
#include <partita/ir/mesh.hpp>

namespace partita {

namespace spmd_detail {

/// How far apart in number devices lie that are neighbours along an axis.
constexpr std::int64_t stride_of(const mesh& m, int axis) {
  std::int64_t n = 1;
  for (int i = m.rank; i-- > 0 && m.order[i] != axis;) n *= m.size(m.order[i]);
  return n;
}
/// Are so many devices whole steps of some axis, now?
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

/// A mesh each of whose axes is a part of one axis of `a` and of one of `b`; device number i is
/// device number i of both. It has the names of the user's axes if these are the same, else one
/// axis "devices", cut into parts. False if there is none: the numbers of devices differ, an axis
/// of one ends inside of a step of the other, or there would be too many.
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

/// A layout over `m` as one over a mesh that `join` made of it.
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
