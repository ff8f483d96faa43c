/// How a tensor lies on a mesh.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/mesh.hpp>
#include <partita/ir/shape.hpp>

namespace partita {

/// Which axes slice which dimension, in the order in which they slice (major to minor).
///
/// An axis that does not occur replicates. The numbers are those of a mesh whose axes may be split:
/// axis i of the user's mesh is i, or i is its most major part. Printed `[{"B"}, {}, {"x", "y"}]`,
/// a list of axes per dimension, as in the paper's listing 9.
struct layout {
  struct entry {
    std::int8_t axis = 0, dim = 0;
  };
  /// An entry takes a byte, the first the lowest: its axis, and its dimension + 1 times 16. (A
  /// class of two numbers: the engine makes and copies several layouts per op, at run time in
  /// registers and in constant evaluation for a fraction of what an array costs.)
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
  /// The dimension that this axis slices, or -1.
  constexpr int dim_of(int axis) const {
    std::uint64_t rest = packed;
    for (int i = 0; i < count; ++i, rest >>= 8)
      if (static_cast<int>(rest & 15u) == axis) return unpacked(rest).dim;
    return -1;
  }
  /// Number of pieces along a dimension.
  constexpr std::int64_t pieces(const mesh& m, int dim) const {
    std::int64_t n = 1;
    for (const auto& e : *this)
      if (e.dim == dim) n *= m.size(e.axis);
    return n;
  }
  constexpr shape local(shape global, const mesh& m) const {
    slice(global, m);
    return global;
  }
  /// The same, in place. (Few calls: it is done to all values.)
  constexpr void slice(shape& s, const mesh& m) const {
    std::uint64_t rest = packed;
    for (int i = 0; i < count; ++i, rest >>= 8)
      s.extents[((rest >> 4) - 1u) & 7u] /= m.axes[rest & 7u].size;  // (GCC sees: in bounds)
  }
  /// The shape whose pieces have this one.
  constexpr shape global(shape local, const mesh& m) const {
    for (const auto& e : *this) local[e.dim] *= m.size(e.axis);
    return local;
  }
  /// Equal per dimension; the order of entries of different dimensions does not matter.
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

/// `[{"B"}, {}]` for a tensor of this rank.
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
