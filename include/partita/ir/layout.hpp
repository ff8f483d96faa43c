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
    friend constexpr bool operator==(const entry&, const entry&) = default;
  };
  entry entries[max_axes] = {};
  int count = 0;

  constexpr void push_back(int axis, int dim) {
    entries[count].axis = static_cast<std::int8_t>(axis);
    entries[count].dim = static_cast<std::int8_t>(dim);
    ++count;
  }
  constexpr const entry* begin() const { return entries; }
  constexpr const entry* end() const { return entries + count; }
  /// The dimension that this axis slices, or -1.
  constexpr int dim_of(int axis) const {
    for (const auto& e : *this)
      if (e.axis == axis) return e.dim;
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
    for (const auto& e : *this) global[e.dim] /= m.size(e.axis);
    return global;
  }
  /// The shape whose pieces have this one.
  constexpr shape global(shape local, const mesh& m) const {
    for (const auto& e : *this) local[e.dim] *= m.size(e.axis);
    return local;
  }
  /// Equal per dimension; the order of entries of different dimensions does not matter.
  friend constexpr bool operator==(const layout& a, const layout& b) {
    if (a.count != b.count) return false;
    for (int i = 0; i < a.count; ++i) {
      const int dim = a.entries[i].dim;
      int earlier = 0;  // entries of the same dimension
      for (int k = 0; k < i; ++k)
        if (a.entries[k].dim == dim) ++earlier;
      int j = 0;
      while (j < b.count && (b.entries[j].dim != dim || earlier-- > 0)) ++j;
      if (j == b.count || b.entries[j].axis != a.entries[i].axis) return false;
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
