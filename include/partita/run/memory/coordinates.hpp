/// Coordinates of devices, and of their shards and groups.
#pragma once

#include <cstdint>

#include <partita/spmd/varying.hpp>

namespace partita::run_detail {

/// Coordinates on a mesh, one for each axis.
struct coordinates {
  std::int64_t at[max_axes] = {};
};

/// Returns the number of the shard that a device at `c` has along a dimension.
constexpr std::int64_t piece_of(const mesh& m, const layout& l, int dim, const coordinates& c) {
  std::int64_t n = 0;
  for (const auto& e : l)
    if (e.dim == dim) n = n * m.size(e.axis) + c.at[e.axis];
  return n;
}
/// A position in a tensor.
struct position {
  std::int64_t at[max_rank] = {};
};
/// Returns the position in the global tensor at which the shard of a device at `c` starts.
constexpr position start_of(const mesh& m, const layout& l, const shape& piece,
                            const coordinates& c) {
  position p;
  for (int d = 0; d < piece.rank; ++d) p.at[d] = piece_of(m, l, d, c) * piece[d];
  return p;
}
/// Returns the number of a device at `c` in its group; axes major to minor.
constexpr std::int64_t member_of(const mesh& m, const layout& axes, const coordinates& c) {
  std::int64_t n = 0;
  for (const auto& e : axes) n = n * m.size(e.axis) + c.at[e.axis];
  return n;
}
/// Returns the device that is member `i` of the same group.
constexpr coordinates member_at(const mesh& m, const layout& axes, std::int64_t i, coordinates c) {
  for (int k = axes.count; k-- > 0;) {
    const std::int64_t size = m.size(axes[k].axis);
    c.at[axes[k].axis] = i % size;
    i /= size;
  }
  return c;
}

}  // namespace partita::run_detail
