/// Over which mesh axes a value varies: the emulator keeps one copy per distinct coordinate.
#pragma once

#include <cstdint>

#include <partita/spmd/varying.hpp>

namespace partita::run_detail {

/// Coordinates on a mesh, one per axis.
struct coordinates {
  std::int64_t at[max_axes] = {};
};

/// The piece that a device at `c` has along a dimension.
constexpr std::int64_t piece_of(const mesh& m, const layout& l, int dim, const coordinates& c) {
  std::int64_t n = 0;
  for (const auto& e : l)
    if (e.dim == dim) n = n * m.size(e.axis) + c.at[e.axis];
  return n;
}
/// A place in a tensor.
struct position {
  std::int64_t at[max_rank] = {};
};
/// Where the piece of a device at `c` stands in the whole.
constexpr position start_of(const mesh& m, const layout& l, const shape& piece,
                            const coordinates& c) {
  position p;
  for (int d = 0; d < piece.rank; ++d) p.at[d] = piece_of(m, l, d, c) * piece[d];
  return p;
}
/// Which member of its group a device at `c` is; axes major to minor.
constexpr std::int64_t member_of(const mesh& m, const layout& axes, const coordinates& c) {
  std::int64_t n = 0;
  for (const auto& e : axes) n = n * m.size(e.axis) + c.at[e.axis];
  return n;
}
/// The device of the same group that is member `i`.
constexpr coordinates member_at(const mesh& m, const layout& axes, std::int64_t i, coordinates c) {
  for (int k = axes.count; k-- > 0;) {
    const std::int64_t size = m.size(axes[k].axis);
    c.at[axes[k].axis] = i % size;
    i /= size;
  }
  return c;
}

}  // namespace partita::run_detail
