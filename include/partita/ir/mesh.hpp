/// Device meshes: up to eight named axes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <partita/support/error.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

inline constexpr int max_axes = 8;
inline constexpr int max_axis_name = 31;

/// One axis of a mesh: a name and a number of devices.
struct mesh_axis {
  char chars[max_axis_name + 1] = {};
  int length = 0;  // of the name as given; above max_axis_name is refused by validate()
  std::int64_t size = 0;

  constexpr mesh_axis() = default;
  constexpr mesh_axis(std::string_view n, std::int64_t s)
      : length(static_cast<int>(n.size())), size(s) {
    for (int i = 0; i < length && i < max_axis_name; ++i) chars[i] = n[static_cast<std::size_t>(i)];
  }
  constexpr std::string_view name() const {
    return {chars, static_cast<std::size_t>(length < max_axis_name ? length : max_axis_name)};
  }
};

/// A logical view of the devices: `mesh{{"B", 4}, {"M", 2}}`.
///
/// Device (i0, i1, ...) has the number that row-major order gives it. Mistakes are reported by
/// `partition`: M001 size below 1, M002 too many axes, M003 duplicate axis, M004 bad axis name.
struct mesh {
  mesh_axis axes[max_axes] = {};
  int rank = 0;  // as given; above max_axes is refused by validate()

  constexpr mesh() = default;
  constexpr mesh(std::initializer_list<mesh_axis> list) {
    for (const auto& a : list) push_back(a);
  }
  constexpr void push_back(const mesh_axis& a) {
    if (rank < max_axes) axes[rank] = a;
    ++rank;
  }
  constexpr std::int64_t size(int axis) const { return axes[axis].size; }
  constexpr std::string_view name(int axis) const { return axes[axis].name(); }
  constexpr std::int64_t devices() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= axes[i].size;
    return n;
  }
  /// Index of the axis with this name, or -1.
  constexpr int find(std::string_view wanted) const {
    for (int i = 0; i < rank; ++i)
      if (axes[i].name() == wanted) return i;
    return -1;
  }
  constexpr vec<std::string_view> names() const {
    vec<std::string_view> out;
    for (int i = 0; i < rank; ++i) out.push_back(name(i));
    return out;
  }
};

/// `{"B":4, "M":2}`, as in the paper.
constexpr text& operator<<(text& out, const mesh& m) {
  out << '{';
  append_list(out, m.rank, [&](int i) { out << '"' << m.name(i) << "\":" << m.size(i); });
  return out << '}';
}

constexpr failure validate(const mesh& m) {
  failure f;
  if (m.rank > max_axes)
    f.record("M002", "mesh: ", m.rank, " axes; at most ", max_axes, " are supported");
  for (int i = 0; i < m.rank && !f; ++i) {
    const auto& a = m.axes[i];
    if (a.length == 0 || a.length > max_axis_name)
      f.record("M004", "mesh: the name of axis ", i, " has ", a.length, " characters; 1 to ",
               max_axis_name, " are allowed");
    if (a.size <= 0)
      f.record("M001", "mesh: axis \"", a.name(), "\" has size ", a.size,
               "; an axis has at least one device");
    for (int j = 0; j < i; ++j)
      if (m.name(j) == a.name()) f.record("M003", "mesh: two axes are named \"", a.name(), '"');
  }
  return f;
}

}  // namespace partita
