/// Conversion between StableHLO's groups of device numbers and axes of a mesh.
///
/// Source    the StableHLO specification, version 1.0: cross-replica groups
#pragma once

#include <partita/ir/collective.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/support/vec.hpp>

namespace partita::stablehlo_detail {

/// Device numbers: row-major in the order of the axes of the mesh.
class device_numbers {
 public:
  constexpr explicit device_numbers(const mesh& m) : m_(m) {
    std::int64_t n = 1;
    for (int i = m.rank; i-- > 0; n *= m.size(m.order[i])) stride[m.order[i]] = n;
  }
  std::int64_t stride[max_axes] = {};

  /// Returns the members of each group of devices along `axes`, which are major to minor.
  constexpr vec<vec<std::int64_t>> groups(const axis_list& axes) const {
    axis_list others;
    for (int i = 0; i < m_.rank; ++i)
      if (!contains(axes, m_.order[i])) others.push_back(m_.order[i]);
    vec<vec<std::int64_t>> list;
    for (const std::int64_t first : along(others, 0)) list.push_back(along(axes, first));
    return list;
  }
  /// Finds the axes along which the members of these groups differ, major to minor; false if no
  /// axes produce these groups. `ordered`: the order of the members matters.
  constexpr bool axes_of(const vec<vec<std::int64_t>>& given, bool ordered, axis_list& axes) const {
    vec<int> group;
    if (!number(given, group)) return false;
    axis_list found;  // minor to major
    if (ordered) {
      const auto& first = given[0];
      for (std::size_t n = 1; n < first.size();) {
        const int axis = axis_of_stride(first[n] - first[0]);
        if (axis < 0 || contains(found, axis)) return false;
        found.push_back(axis);
        n *= static_cast<std::size_t>(m_.size(axis));
      }
    } else {
      for (int i = m_.rank; i-- > 0;) {
        const int axis = m_.order[i];
        if (m_.size(axis) > 1 && group[0] == group[static_cast<std::size_t>(stride[axis])])
          found.push_back(axis);
      }
    }
    for (int i = found.count; i-- > 0;) axes.push_back(found.axes[i]);
    for (const auto& wanted : groups(axes)) {
      const auto& mine =
          given[static_cast<std::size_t>(group[static_cast<std::size_t>(wanted[0])])];
      if (mine.size() != wanted.size()) return false;
      for (std::size_t k = 0; k < wanted.size(); ++k)
        if (ordered ? mine[k] != wanted[k]
                    : group[static_cast<std::size_t>(wanted[k])] !=
                          group[static_cast<std::size_t>(wanted[0])])
          return false;
    }
    return true;
  }
  /// Finds a permute that produces these (from, to) pairs.
  constexpr bool map_of(const vec<std::int64_t>& pairs, collective& what) const {
    axis_list chosen, axes;
    what.kind = collective::permute;
    if (!map_along(pairs, chosen, axes, what.map)) return renumbers(pairs, what);
    for (const int axis : axes) what.axes.push_back(axis, no_dim);
    return true;
  }

 private:
  const mesh& m_;

  constexpr vec<std::int64_t> along(const axis_list& axes, std::int64_t first) const {
    vec<std::int64_t> list;
    list.push_back(first);
    for (const int axis : axes) {
      vec<std::int64_t> next;
      for (const std::int64_t each : list)
        for (std::int64_t i = 0; i < m_.size(axis); ++i) next.push_back(each + i * stride[axis]);
      list = static_cast<vec<std::int64_t>&&>(next);
    }
    return list;
  }
  static constexpr bool contains(const axis_list& list, int axis) {
    for (const int each : list)
      if (each == axis) return true;
    return false;
  }
  constexpr int axis_of_stride(std::int64_t wanted) const {
    for (int i = 0; i < m_.rank; ++i)
      if (m_.size(i) > 1 && stride[i] == wanted) return i;
    return -1;
  }
  /// Finds the group of each device; false if a device is in none or in two.
  constexpr bool number(const vec<vec<std::int64_t>>& given, vec<int>& group) const {
    std::size_t count = 0;
    for (const auto& each : given) count += each.size();
    if (static_cast<std::int64_t>(count) != m_.devices()) return false;
    group.assign(count, -1);
    for (std::size_t g = 0; g < given.size(); ++g)
      for (const std::int64_t device : given[g]) {
        if (device < 0 || device >= m_.devices()) return false;
        if (group[static_cast<std::size_t>(device)] >= 0) return false;
        group[static_cast<std::size_t>(device)] = static_cast<int>(g);
      }
    return true;
  }
  /// Tries all lists of axes that begin with `chosen`.
  constexpr bool map_along(const vec<std::int64_t>& pairs, axis_list& chosen, axis_list& axes,
                           device_map& map) const {
    if (chosen.count > 0 && sends(pairs, groups(chosen), map)) {
      axes = chosen;
      return true;
    }
    if (chosen.count == 3) return false;
    for (int i = 0; i < m_.rank; ++i) {
      if (m_.size(i) == 1 || contains(chosen, i)) continue;
      chosen.push_back(i);
      if (map_along(pairs, chosen, axes, map)) return true;
      --chosen.count;
    }
    return false;
  }
  static constexpr int most_renumbered = 4;  // maximum number of axes whose orders are tried

  /// True if every device sends to the device that has its number when axes are reordered.
  constexpr bool renumbers(const vec<std::int64_t>& pairs, collective& what) const {
    if (static_cast<std::int64_t>(pairs.size()) != 2 * m_.devices()) return false;
    axis_list moved;  // axes along which some device sends
    for (int i = 0; i < m_.rank; ++i) {
      const int axis = m_.order[i];
      for (std::size_t k = 0; k + 1 < pairs.size(); k += 2)
        if (at(pairs[k], axis) != at(pairs[k + 1], axis)) {
          moved.push_back(axis);
          break;
        }
    }
    if (moved.count < 2 || moved.count > most_renumbered) return false;
    axis_list from, to;
    return orders(moved, from, [&] {
      return orders(moved, to, [&] {
        for (std::size_t k = 0; k + 1 < pairs.size(); k += 2)
          if (number_of(pairs[k], from) != number_of(pairs[k + 1], to)) return false;
        what.map = {device_map::renumbered, 0};
        for (const int axis : from) what.from.push_back(axis, no_dim);
        for (const int axis : to) what.axes.push_back(axis, no_dim);
        return true;
      });
    });
  }
  constexpr std::int64_t at(std::int64_t device, int axis) const {
    return device / stride[axis] % m_.size(axis);
  }
  constexpr std::int64_t number_of(std::int64_t device, const axis_list& axes) const {
    std::int64_t n = 0;
    for (const int axis : axes) n = n * m_.size(axis) + at(device, axis);
    return n;
  }
  /// Calls f() with each order of some axes in `chosen`, until it returns true.
  template <class F>
  constexpr bool orders(const axis_list& of, axis_list& chosen, const F& f) const {
    if (chosen.count == of.count) return f();
    for (const int axis : of) {
      if (contains(chosen, axis)) continue;
      chosen.push_back(axis);
      if (orders(of, chosen, f)) return true;
      --chosen.count;
    }
    return false;
  }
  /// True if these pairs send within the groups, in the same way in each group; stores it in `map`.
  constexpr bool sends(const vec<std::int64_t>& pairs, const vec<vec<std::int64_t>>& by_group,
                       device_map& map) const {
    const auto devices = static_cast<std::size_t>(m_.devices());
    const auto n = static_cast<std::int64_t>(by_group[0].size());
    vec<std::int64_t> sender(devices, -1);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
      sender[static_cast<std::size_t>(pairs[i + 1])] = pairs[i];
    const auto is = [&](const device_map& wanted) {
      for (const auto& group : by_group)
        for (std::int64_t to = 0; to < n; ++to) {
          const std::int64_t from = wanted.sender(to, n);
          const std::int64_t device =
              from < 0 ? device_map::nobody : group[static_cast<std::size_t>(from)];
          if (sender[static_cast<std::size_t>(group[static_cast<std::size_t>(to)])] != device)
            return false;
        }
      map = wanted;
      return true;
    };
    // The first member that receives something determines the shift.
    const auto& group = by_group[0];
    for (std::int64_t to = 0; to < n; ++to) {
      const std::int64_t from =
          sender[static_cast<std::size_t>(group[static_cast<std::size_t>(to)])];
      for (std::int64_t i = 0; from >= 0 && i < n; ++i) {
        if (group[static_cast<std::size_t>(i)] != from) continue;
        if (i == to) return n % 2 == 1 && is({device_map::mirrored, 0});
        // The same ring has two shifts; the one with fewer steps is stored.
        const std::int64_t shift = to - i, around = shift > 0 ? shift - n : shift + n;
        const bool nearer = (shift < 0 ? -shift : shift) <= n / 2;
        return is({device_map::shifted, shift}) ||
               is({device_map::ring, nearer ? shift : around}) || is({device_map::mirrored, 0});
      }
    }
    return false;
  }
};

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
