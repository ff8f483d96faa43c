/// Over which mesh axes a value varies: the emulator keeps one copy per distinct coordinate.
#pragma once

#include <cstdint>

#include <partita/spmd/collectives.hpp>

namespace partita::detail {

/// A set of mesh axes; axes of size 1 never belong to one.
using axis_set = std::uint32_t;

/// Coordinates on a mesh, one per axis.
struct coordinates {
  std::int64_t at[max_axes] = {};
};

constexpr bool has_axis(axis_set s, int axis) { return (s >> axis & 1u) != 0; }
constexpr axis_set one_axis(const mesh& m, std::int64_t axis) {
  return m.size(static_cast<int>(axis)) > 1 ? axis_set{1} << axis : 0;
}
constexpr axis_set axes_of(const mesh& m, const layout& l) {
  axis_set s = 0;
  for (const auto& e : l) s |= one_axis(m, e.axis);
  return s;
}
/// Number of coordinates over the axes of a set.
constexpr std::int64_t copies_over(const mesh& m, axis_set s) {
  std::int64_t n = 1;
  for (int a = 0; a < m.rank; ++a)
    if (has_axis(s, a)) n *= m.size(a);
  return n;
}
/// The copy that a device at `c` has; copies are numbered in row-major order.
constexpr std::int64_t copy_at(const mesh& m, axis_set s, const coordinates& c) {
  std::int64_t n = 0;
  for (int a = 0; a < m.rank; ++a)
    if (has_axis(s, a)) n = n * m.size(a) + c.at[a];
  return n;
}
/// Coordinates of a copy; 0 on the axes over which it does not vary.
constexpr coordinates coordinates_of(const mesh& m, axis_set s, std::int64_t copy) {
  coordinates c;
  for (int a = m.rank; a-- > 0;)
    if (has_axis(s, a)) {
      c.at[a] = copy % m.size(a);
      copy /= m.size(a);
    }
  return c;
}
/// Which axes a collective uses: (dim, axis) pairs or plain axes, after `from` other attributes.
struct collective_axes {
  layout dims;             ///< the pairs; for plain axes dim is 0
  std::int64_t count = 1;  ///< devices per group

  constexpr collective_axes(const mesh& m, const op_def* def, std::span<const std::int64_t> attrs) {
    if (def == &partita::def<op::all_reduce>) {
      for (auto a : attrs.subspan(1)) dims.push_back(static_cast<int>(a), 0);
    } else if (def == &partita::def<op::all_to_all>) {
      for (auto a : attrs.subspan(2)) dims.push_back(static_cast<int>(a), 0);
    } else {
      dims = op::decode_layout(attrs.subspan(def == &partita::def<op::reduce_scatter> ? 1 : 0));
    }
    for (const auto& e : dims) count *= m.size(e.axis);
  }
  /// Replaces the coordinates along the axes by those of member `i`, counted major to minor.
  constexpr void move_to(const mesh& m, std::int64_t i, coordinates& c) const {
    for (int k = dims.count; k-- > 0;) {
      const std::int64_t size = m.size(dims.entries[k].axis);
      c.at[dims.entries[k].axis] = i % size;
      i /= size;
    }
  }
  /// The piece that a device at `c` has along dimension `dim`: axes major to minor.
  constexpr std::int64_t piece(const mesh& m, int dim, const coordinates& c) const {
    return piece_of(m, dims, dim, c);
  }
  static constexpr std::int64_t piece_of(const mesh& m, const layout& l, int dim,
                                         const coordinates& c) {
    std::int64_t n = 0;
    for (const auto& e : l)
      if (e.dim == dim) n = n * m.size(e.axis) + c.at[e.axis];
    return n;
  }
};

/// Over which axes the result of a collective varies.
constexpr axis_set varies_after(const mesh& m, const op_def* def,
                                std::span<const std::int64_t> attrs, axis_set operand) {
  const axis_set used = axes_of(m, collective_axes(m, def, attrs).dims);
  const bool removes = def == &partita::def<op::all_reduce> || def == &partita::def<op::all_gather>;
  return removes ? operand & ~used : operand | used;
}

}  // namespace partita::detail
