/// Sets of mesh axes.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>

namespace partita {

/// A set of mesh axes, by number. If their order matters, use axis_list or layout. (An aggregate:
/// constant evaluation constructs it without a call.)
struct axis_set {
  std::uint8_t bits = 0;
  static_assert(max_axes <= 8);

  /// Returns the set that contains one axis.
  static constexpr axis_set of(int axis) { return {static_cast<std::uint8_t>(1u << axis)}; }

  constexpr bool empty() const { return bits == 0; }
  constexpr bool contains(int axis) const { return (bits >> axis & 1u) != 0; }
  constexpr void insert(int axis) { bits = static_cast<std::uint8_t>(bits | 1u << axis); }
  constexpr axis_set& operator|=(axis_set other) {
    bits = static_cast<std::uint8_t>(bits | other.bits);
    return *this;
  }

  friend constexpr axis_set operator|(axis_set a, axis_set b) {
    return {static_cast<std::uint8_t>(a.bits | b.bits)};
  }
  friend constexpr axis_set operator&(axis_set a, axis_set b) {
    return {static_cast<std::uint8_t>(a.bits & b.bits)};
  }
  /// Returns the axes of `a` that are not in `b`.
  friend constexpr axis_set operator-(axis_set a, axis_set b) {
    return {static_cast<std::uint8_t>(a.bits & ~unsigned{b.bits})};
  }
  friend constexpr bool operator==(axis_set a, axis_set b) { return a.bits == b.bits; }
};

/// Returns the axes of a set, major to minor.
constexpr axis_list in_order(axis_set axes, const mesh& m) {
  axis_list list;
  for (int i = 0; i < m.rank; ++i)
    if (axes.contains(m.order[i])) list.push_back(m.order[i]);
  return list;
}
/// Prints `"B"` or `"B", "M"`.
constexpr void print_axis_set(text& out, axis_set axes, const mesh& m) {
  const axis_list list = in_order(axes, m);
  print_axis_list(out, list.count, m, [&](int i) { return int{list.axes[i]}; });
}

}  // namespace partita
