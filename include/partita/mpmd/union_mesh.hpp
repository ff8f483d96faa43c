/// The union mesh: one mesh with the axes of all meshes of a topology, for sharding.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/mpmd/topology.hpp>

namespace partita::mpmd_detail {

/// The axes of all meshes, in order of first occurrence. If meshes have different sizes of an axis
/// (1 if a mesh lacks it), the union has their least common multiple.
constexpr mesh union_mesh(const topology& t) {
  mesh all;
  for (int m = 0; m < t.count(); ++m)
    for (int a = 0; a < t.mesh_of(m).rank; ++a) {
      const mesh_axis& axis = t.mesh_of(m).axes[a];
      const int known = all.find(axis.name());
      if (known < 0) {
        all.push_back({axis.name(), axis.size});
        continue;
      }
      std::int64_t& size = all.axes[known].size;
      size = saturating_multiply(size / greatest_common_divisor(size, axis.size), axis.size);
    }
  return all;
}
/// The number of positions of a union axis on one mesh.
constexpr std::int64_t size_on(const mesh& all, int axis, const mesh& one) {
  const int a = one.find(all.name(axis));
  return a < 0 ? 1 : one.size(a);
}

/// Finds the axis sizes for each op. Some ops run on several meshes.
///
/// Cost: linear in ops, times the different sets of meshes that ops run on.
class size_finder {
 public:
  constexpr size_finder(const topology& t, const mesh& all) : t_(t), all_(all) {}

  /// `on`: by op. Rows 1 to the number of meshes are those of the meshes.
  constexpr uneven_axes find(const vec<mesh_set>& on) {
    uneven_axes out;
    for (int a = 0; a < all_.rank; ++a)
      for (int m = 0; m < t_.count(); ++m)
        if (size_on(all_, a, t_.mesh_of(m)) != all_.size(a))
          out.axes = static_cast<std::uint8_t>(out.axes | 1u << a);
    if (out.axes == 0) return out;
    for (const std::string_view name : t_.names()) out.names.push_back(name);
    add_row(out, t_.all());
    for (int m = 0; m < t_.count(); ++m) add_row(out, mesh_set::of(m));
    for (const mesh_set& each : on) out.row.push_back(row_of(out, each));
    return out;
  }

 private:
  const topology& t_;
  const mesh& all_;
  vec<mesh_set> sets_;  ///< by row

  constexpr int row_of(uneven_axes& out, mesh_set on) {
    if (on.empty()) return 0;
    for (int r = 0; r < static_cast<int>(sets_.size()); ++r)
      if (sets_[r] == on) return r;
    add_row(out, on);
    return static_cast<int>(sets_.size()) - 1;
  }
  constexpr void add_row(uneven_axes& out, mesh_set on) {
    sets_.push_back(on);
    out.meshes.push_back(on.bits);
    for (int a = 0; a < max_axes; ++a) {
      std::int64_t n = 1, least = 0;
      for (mesh_set left = on; a < all_.rank && !left.empty();
           left = left.without(mesh_set::of(left.front()))) {
        const std::int64_t size = size_on(all_, a, t_.mesh_of(left.front()));
        n = saturating_multiply(n / greatest_common_divisor(n, size), size);
        least = least == 0 ? size : greatest_common_divisor(least, size);
      }
      out.sizes.push_back(n);
      out.least.push_back(least == 0 ? 1 : least);
    }
  }
};

/// The first mesh with the same axis sizes as mesh m; `sizes` as a size_finder returns them.
constexpr int first_mesh_like(const uneven_axes& sizes, int m) {
  if (sizes.axes == 0) return 0;
  for (int other = 0; other < m; ++other) {
    bool same = true;
    for (int a = 0; a < max_axes; ++a)
      same = same && sizes.sizes[(1 + other) * max_axes + a] == sizes.sizes[(1 + m) * max_axes + a];
    if (same) return other;
  }
  return m;
}

}  // namespace partita::mpmd_detail
