/// Layouts: how a tensor is sharded over a mesh.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/mesh.hpp>
#include <partita/ir/shape.hpp>

namespace partita {

/// The axes that slice each dimension, in the order in which they slice (major to minor).
///
/// An axis that does not occur replicates. Axis numbers refer to a mesh whose axes may be split:
/// axis i of the user's mesh is number i, or number i is its most major part. Printed as
/// `[{"B"}, {}, {"x", "y"}]`, one list of axes per dimension, as in the paper's listing 9.
struct layout {
  struct entry {
    std::int8_t axis = 0, dim = 0;
  };
  /// The entries, one byte each, the first in the lowest byte: the axis plus 16 times (the
  /// dimension + 1). (Two numbers instead of an array: the engine makes and copies several layouts
  /// per op. They stay in registers at run time and cost a fraction of an array in constant
  /// evaluation.)
  std::uint64_t packed = 0;
  int count = 0;
  static_assert(max_axes <= 8 && max_rank < 15);

  static constexpr std::uint64_t packed_entry(int axis, int dim) {
    return static_cast<std::uint64_t>(axis | (dim + 1) << 4);
  }
  static constexpr entry unpacked(std::uint64_t e) {
    return {static_cast<std::int8_t>(e & 15u), static_cast<std::int8_t>((e >> 4 & 15u) - 1u)};
  }
  struct iterator {
    std::uint64_t rest = 0;
    int left = 0;
    constexpr entry operator*() const { return unpacked(rest); }
    constexpr iterator& operator++() {
      rest >>= 8;
      --left;
      return *this;
    }
    constexpr bool operator!=(const iterator& end) const { return left != end.left; }
  };

  constexpr void push_back(int axis, int dim) {
    packed |= packed_entry(axis, dim) << 8 * count;
    ++count;
  }
  constexpr entry operator[](int i) const { return unpacked(packed >> 8 * i); }
  constexpr iterator begin() const { return {packed, count}; }
  constexpr iterator end() const { return {}; }
  /// Returns the dimension that this axis slices, or -1.
  constexpr int dim_of(int axis) const {
    std::uint64_t rest = packed;
    for (int i = 0; i < count; ++i, rest >>= 8)
      if (static_cast<int>(rest & 15u) == axis) return unpacked(rest).dim;
    return -1;
  }
  /// Returns the number of blocks along a dimension.
  constexpr std::int64_t pieces(const mesh& m, int dim) const {
    std::int64_t n = 1;
    for (const auto& e : *this)
      if (e.dim == dim) n *= m.size(e.axis);
    return n;
  }
  /// Returns the local shape of a tensor with this global shape.
  constexpr shape local(shape global, const mesh& m) const {
    slice(global, m);
    return global;
  }
  /// Changes a global shape to the local one. (Few calls: this runs for every value.)
  constexpr void slice(shape& s, const mesh& m) const {
    std::uint64_t rest = packed;
    for (int i = 0; i < count; ++i, rest >>= 8)
      // (the mask shows GCC that the index is in bounds)
      s.extents[((rest >> 4) - 1u) & 7u] /= m.axes[rest & 7u].size;
  }
  /// Returns the global shape of a tensor with this local shape.
  constexpr shape global(shape local, const mesh& m) const {
    for (const auto& e : *this) local[e.dim] *= m.size(e.axis);
    return local;
  }
  /// True if the layouts are equal per dimension; the order of entries of different dimensions is
  /// ignored.
  friend constexpr bool operator==(const layout& a, const layout& b) {
    if (a.count != b.count) return false;
    if (a.packed == b.packed) return true;
    for (int i = 0; i < a.count; ++i) {
      const entry mine = a[i];
      int earlier = 0;  // entries of the same dimension
      for (int k = 0; k < i; ++k)
        if (a[k].dim == mine.dim) ++earlier;
      int j = 0;
      while (j < b.count && (b[j].dim != mine.dim || earlier-- > 0)) ++j;
      if (j == b.count || b[j].axis != mine.axis) return false;
    }
    return true;
  }
};

/// Prints the layout of a tensor of this rank: `[{"B"}, {}]`. Prints axis numbers if the mesh is
/// null.
constexpr void print_layout(text& out, const layout& l, int rank, const mesh* m) {
  out << '[';
  append_list(out, rank, [&](int d) {
    axis_list axes;
    for (const auto& e : l)
      if (e.dim == d) axes.push_back(e.axis);
    out << '{';
    print_axis_list(out, axes.count, m, [&](int i) { return int{axes.axes[i]}; });
    out << '}';
  });
  out << ']';
}
constexpr void print_layout(text& out, const layout& l, int rank, const mesh& m) {
  print_layout(out, l, rank, &m);
}

}  // namespace partita
