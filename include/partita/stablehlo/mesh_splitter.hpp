/// Splits axes of a mesh, so that groups of devices become groups along axes.
#pragma once

#include <partita/ir/mesh.hpp>
#include <partita/stablehlo/replica_groups.hpp>
#include <partita/support/vec.hpp>

namespace partita::stablehlo_detail {

/// Splits axes of a mesh, so that groups of devices along parts of axes become groups along axes.
class mesh_splitter {
 public:
  constexpr explicit mesh_splitter(mesh& m) : m_(m) {}

  /// Splits the mesh for the groups of a collective, unless they already are groups along axes.
  constexpr void add_groups(const vec<vec<std::int64_t>>& groups) {
    axis_list axes;
    if (groups.empty() || device_numbers(m_).axes_of(groups, false, axes)) return;
    split(groups[0]);
  }
  /// Splits the mesh for (from, to) pairs, whose group is the first sender, the devices that it
  /// reaches, and those that reach it.
  constexpr void add_pairs(const vec<std::int64_t>& pairs) {
    collective what;
    if (pairs.empty() || device_numbers(m_).map_of(pairs, what)) return;
    split_orbit(pairs);
    if (!device_numbers(m_).map_of(pairs, what)) split_orders(pairs);
  }

 private:
  mesh& m_;

  constexpr void split_orbit(const vec<std::int64_t>& pairs) {
    const auto devices = static_cast<std::size_t>(m_.devices());
    vec<std::int64_t> next(devices, -1), previous(devices, -1);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      next[static_cast<std::size_t>(pairs[i])] = pairs[i + 1];
      previous[static_cast<std::size_t>(pairs[i + 1])] = pairs[i];
    }
    std::int64_t first = pairs[0];  // the first device that sends to another one
    for (std::size_t i = pairs.size(); i > 1; i -= 2)
      if (pairs[i - 2] != pairs[i - 1]) first = pairs[i - 2];
    vec<char> reached(devices, 0);
    reached[static_cast<std::size_t>(first)] = 1;
    for (const auto* step : {&next, &previous})
      for (std::int64_t d = (*step)[static_cast<std::size_t>(first)];
           d >= 0 && reached[static_cast<std::size_t>(d)] == 0;
           d = (*step)[static_cast<std::size_t>(d)])
        reached[static_cast<std::size_t>(d)] = 1;
    vec<std::int64_t> group;
    for (std::size_t i = 0; i < reached.size(); ++i)
      if (reached[i] != 0) group.push_back(static_cast<std::int64_t>(i));
    split(group);
  }
  /// Splits for a reordering of axes: each step along a part of one axis is a step along another
  /// one; the axes are cut at these parts.
  constexpr void split_orders(const vec<std::int64_t>& pairs) {
    if (static_cast<std::int64_t>(pairs.size()) != 2 * m_.devices()) return;
    vec<std::int64_t> to(static_cast<std::size_t>(m_.devices()), 0);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
      to[static_cast<std::size_t>(pairs[i])] = pairs[i + 1];
    const mesh whole = m_;
    const device_numbers of(whole);
    for (int a = 0; to[0] == 0 && a < whole.rank; ++a) {
      vec<std::int64_t> reached;
      for (std::int64_t k = 0; k < whole.size(a); ++k)
        reached.push_back(to[static_cast<std::size_t>(k * of.stride[a])]);
      split(reached, of.stride[a]);
    }
  }
  /// Splits axes for one group. Minor to major, the members of a group are `count` steps of `step`
  /// devices; the axes are cut there, and so is the axis with this stride along which the group is
  /// reached, if any.
  constexpr void split(const vec<std::int64_t>& group, std::int64_t stride = 0) {
    for (std::size_t n = 1; n < group.size();) {
      const std::int64_t step = group[n] - group[0];
      if (step <= 0) return;
      std::size_t count = 1;
      while (n * count < group.size() &&
             group[n * count] - group[0] == step * static_cast<std::int64_t>(count))
        ++count;
      if (!cut(step) || !cut(step * static_cast<std::int64_t>(count))) return;
      n *= count;
      if (stride > 0 && n < group.size() && !cut(stride * static_cast<std::int64_t>(n))) return;
    }
  }
  /// Cuts an axis so that its minor part, with all axes minor to it, spans this number of devices.
  /// Needs no cut if an axis already ends there. Returns false if no cut is possible.
  constexpr bool cut(std::int64_t devices) {
    const device_numbers of(m_);
    for (int a = 0; a < m_.rank; ++a) {
      const std::int64_t end = of.stride[a] * m_.size(a);
      if (devices <= of.stride[a] || devices >= end) continue;
      if (devices % of.stride[a] != 0 || end % devices != 0 || m_.rank == max_axes) return false;
      m_.split(a, end / devices);
      return true;
    }
    return true;
  }
};

}  // namespace partita::stablehlo_detail
