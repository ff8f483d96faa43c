/// Sets of mesh axes.
#pragma once

#include <cstdint>

#include <partita/ir/mesh.hpp>

namespace partita {

/// Some axes of a mesh, by number. Where their order matters, there are axis_list and layout.
class axis_set {
 public:
  constexpr axis_set() = default;
  static constexpr axis_set of(int axis) { return axis_set(1u << axis); }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(int axis) const { return (bits_ >> axis & 1u) != 0; }
  constexpr void insert(int axis) { *this |= of(axis); }
  constexpr axis_set& operator|=(axis_set other) { return *this = *this | other; }

  friend constexpr axis_set operator|(axis_set a, axis_set b) {
    return axis_set(a.bits_ | b.bits_);
  }
  friend constexpr axis_set operator&(axis_set a, axis_set b) {
    return axis_set(a.bits_ & b.bits_);
  }
  /// Those of `a` that are not in `b`.
  friend constexpr axis_set operator-(axis_set a, axis_set b) {
    return axis_set(a.bits_ & ~unsigned{b.bits_});
  }
  friend constexpr bool operator==(axis_set, axis_set) = default;

 private:
  std::uint8_t bits_ = 0;
  static_assert(max_axes <= 8);

  constexpr explicit axis_set(unsigned bits) : bits_(static_cast<std::uint8_t>(bits)) {}
};

/// The axes of a set, major to minor.
constexpr axis_list in_order(axis_set axes, const mesh& m) {
  axis_list list;
  for (int i = 0; i < m.rank; ++i)
    if (axes.contains(m.order[i])) list.push_back(m.order[i]);
  return list;
}
/// `"B"` or `"B", "M"`.
constexpr void print_axis_set(text& out, axis_set axes, const mesh& m) {
  const axis_list list = in_order(axes, m);
  print_axis_list(out, list.count, m, [&](int i) { return int{list.axes[i]}; });
}

}  // namespace partita
