/// Device meshes: up to eight named axes, and sub-axes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <partita/support/checked.hpp>
#include <partita/support/error.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Maximum number of axes of a mesh, including parts of axes.
inline constexpr int max_axes = 8;
static_assert(max_axes <= 8, "sets of axes are the bits of one byte, numbers of axes one byte");
/// Maximum number of characters of an axis name.
inline constexpr int max_axis_name = 31;
/// Maximum number of devices of a mesh; equal to the maximum number of elements of a tensor
/// (max_elements).
inline constexpr std::int64_t max_devices = INT64_MAX / 16;

/// One axis of a mesh: a name and a number of devices.
struct mesh_axis {
  char chars[max_axis_name + 1] = {};
  int length = 0;  // of the original name; validate() rejects more than max_axis_name
  std::int64_t size = 0;
  std::int64_t pre = 1;  ///< for a part of an axis: product of the sizes of the parts before it

  constexpr mesh_axis() = default;
  constexpr mesh_axis(std::string_view n, std::int64_t s)
      : length(static_cast<int>(n.size())), size(s) {
    for (int i = 0; i < length && i < max_axis_name; ++i) chars[i] = n[static_cast<std::size_t>(i)];
  }
  /// Returns the name, cut to max_axis_name characters.
  constexpr std::string_view name() const {
    return {chars, static_cast<std::size_t>(length < max_axis_name ? length : max_axis_name)};
  }
};

/// A contiguous part of an axis, or the full axis. The axis is factored into a major part of `pre`
/// positions, this part of `size` positions, and the remaining minor positions. Printed `"A":(1)4`;
/// a full axis is printed `"A"`.
struct sub_axis {
  int axis = 0;  ///< number of the full axis
  std::int64_t pre = 1, size = 1;

  /// Returns the number of positions before the remaining minor part.
  constexpr std::int64_t end() const { return pre * size; }
  friend constexpr bool operator==(const sub_axis&, const sub_axis&) = default;
};

/// A list of axis numbers, major to minor.
struct axis_list {
  std::int8_t axes[max_axes] = {};
  int count = 0;

  constexpr void push_back(int axis) { axes[count++] = static_cast<std::int8_t>(axis); }
  constexpr const std::int8_t* begin() const { return axes; }
  constexpr const std::int8_t* end() const { return axes + count; }
};

/// A grid of devices with named axes: `mesh{{"B", 4}, {"M", 2}}`.
///
/// Device (i0, i1, ...) has its row-major number. An axis can be split into parts that are axes
/// themselves. The parts keep the axis's name and its position among the other axes, so device
/// numbers do not change. The most major part keeps the number of the full axis. The other parts
/// are numbered after all full axes, by axis and from major to minor. So axis i of the user's mesh
/// is axis i, or starts with it, however the mesh is split.
///
/// Errors    reported by `partition`: M001 size below 1, M002 too many axes, M003 duplicate axis,
///           M004 invalid axis name, M005 too many devices
struct mesh {
  mesh_axis axes[max_axes] = {};
  int rank = 0;                      // as constructed; validate() rejects more than max_axes
  std::int8_t order[max_axes] = {};  ///< numbers of axes, most major first

  constexpr mesh() = default;
  constexpr mesh(std::initializer_list<mesh_axis> list) {
    for (const auto& a : list) push_back(a);
  }
  /// Appends an axis, more minor than all others.
  constexpr void push_back(const mesh_axis& a) {
    if (rank < max_axes) {
      axes[rank] = a;
      order[rank] = static_cast<std::int8_t>(rank);
    }
    ++rank;
  }
  /// Returns the number of positions of an axis or a part of one.
  constexpr std::int64_t size(int axis) const { return axes[axis].size; }
  /// Returns the name of an axis; its parts have the same name.
  constexpr std::string_view name(int axis) const { return axes[axis].name(); }
  /// Returns the number of devices, at most `saturated`.
  constexpr std::int64_t devices() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank && i < max_axes; ++i) n = saturating_multiply(n, axes[i].size);
    return n;
  }
  /// Returns the index of the axis with this name (of its most major part), or -1.
  constexpr int find(std::string_view wanted) const {
    for (int i = 0; i < rank; ++i)
      if (axes[i].name() == wanted) return i;
    return -1;
  }
  /// Returns the names of the full axes.
  constexpr vec<std::string_view> names() const {
    vec<std::string_view> out;
    for (int i = 0; i < whole_rank(); ++i) out.push_back(name(i));
    return out;
  }

  // ---- Parts of axes ----------------------------------------------------------------------------

  /// Returns the number of full axes.
  constexpr int whole_rank() const {
    int n = 0;
    while (n < rank && (n >= max_axes || axes[n].pre == 1)) ++n;
    return n;
  }
  /// Returns the size of a full axis: the product of the sizes of its parts.
  constexpr std::int64_t whole_size(int axis) const {
    std::int64_t n = axes[axis].size;
    for (int i = whole_rank(); i < rank; ++i)
      if (name(i) == name(axis)) n *= axes[i].size;
    return n;
  }
  /// Returns the user's mesh, without splits.
  constexpr mesh whole() const {
    const int count = whole_rank();
    if (count == rank) return *this;
    mesh m;
    for (int i = 0; i < count; ++i) m.push_back({name(i), whole_size(i)});
    return m;
  }
  /// Returns a full axis as a sub-axis.
  constexpr sub_axis whole_axis(int axis) const { return {axis, 1, whole_size(axis)}; }
  /// Returns the sub-axis that an axis is: the full axis it belongs to, and its part of it.
  constexpr sub_axis part(int axis) const {
    const mesh_axis& a = axes[axis];
    return {a.pre == 1 ? axis : find(a.name()), a.pre, a.size};
  }
  /// Returns the axes that overlap a sub-axis.
  constexpr axis_list parts_of(const sub_axis& s) const {
    axis_list list;
    for (int i = 0; i < rank; ++i) {
      const sub_axis p = part(order[i]);
      if (p.axis != s.axis) continue;
      if (p.size == 1 || (s.size > 1 && p.pre < s.end() && s.pre < p.end()))
        list.push_back(order[i]);
    }
    return list;
  }
  /// Returns an axis in which a sub-axis begins or ends, and sets `major` to the size of its major
  /// part up to there (0 if the axis cannot be split there). Returns -1 if the sub-axis consists of
  /// complete axes of this mesh.
  constexpr int cut_by(const sub_axis& s, std::int64_t& major) const {
    for (const std::int64_t cut : {s.pre, s.end()})
      for (int a : parts_of(s)) {
        const sub_axis p = part(a);
        if (p.pre >= cut || cut >= p.end()) continue;
        major = cut % p.pre == 0 && p.end() % cut == 0 ? cut / p.pre : 0;
        return a;
      }
    return -1;
  }
  /// True if axes have the same sizes and the same order, whatever their names are.
  constexpr bool same_grid(const mesh& m) const {
    bool same = rank == m.rank;
    for (int i = 0; same && i < rank; ++i) same = size(i) == m.size(i) && order[i] == m.order[i];
    return same;
  }
  /// Splits an axis into a major part of size `major` and a minor part; returns the number of the
  /// minor part. Axes that had this number or a higher one are renumbered one higher.
  constexpr int split(int axis, std::int64_t major) {
    mesh_axis minor = axes[axis];
    minor.size /= major;
    minor.pre *= major;
    const int of = part(axis).axis, first = whole_rank();
    axes[axis].size = major;
    int number = rank;
    for (; number > first; --number) {
      const sub_axis p = part(number - 1);
      if (p.axis < of || (p.axis == of && p.pre < minor.pre)) break;
      axes[number] = axes[number - 1];
    }
    axes[number] = minor;
    int at = rank++;
    for (; order[at - 1] != axis; --at) order[at] = order[at - 1];
    for (auto& each : order)
      if (each >= number) ++each;
    order[at] = static_cast<std::int8_t>(number);
    return number;
  }
};

/// Prints `"A"` or `"A":(1)4`.
constexpr void print_sub_axis(text& out, const sub_axis& s, const mesh& m) {
  out << '"' << m.name(s.axis) << '"';
  if (s.size != m.whole_size(s.axis)) out << ":(" << s.pre << ')' << s.size;
}
/// Joins axes at(i), at(i + 1), ... (of `count`) into one sub-axis, as long as each continues the
/// part of the axis before it. Advances `i` past the joined axes.
template <class At>
constexpr sub_axis joined_from(int& i, int count, const mesh& m, const At& at) {
  sub_axis s = m.part(static_cast<int>(at(i++)));
  for (; i < count; ++i) {
    const sub_axis next = m.part(static_cast<int>(at(i)));
    if (next.axis != s.axis || next.pre != s.end()) break;
    s.size *= next.size;
  }
  return s;
}
/// Prints a list of axes, `"A", "B":(1)2`; consecutive parts of one axis are joined.
template <class At>
constexpr void print_axis_list(text& out, int count, const mesh& m, const At& at) {
  for (int i = 0; i < count;) {
    if (i > 0) out << ", ";
    print_sub_axis(out, joined_from(i, count, m, at), m);
  }
}
/// Overload that prints axis numbers if the mesh is null.
template <class At>
constexpr void print_axis_list(text& out, int count, const mesh* m, const At& at) {
  if (m != nullptr)
    print_axis_list(out, count, *m, at);
  else
    append_list(out, count, [&](int i) { out << at(i); });
}

/// Prints the full axes as in the paper: `{"B":4, "M":2}`.
constexpr text& operator<<(text& out, const mesh& m) {
  out << '{';
  append_list(out, m.whole_rank(),
              [&](int i) { out << '"' << m.name(i) << "\":" << m.whole_size(i); });
  return out << '}';
}

/// True if an axis with this name reads back: axes are printed in quotes, and parts as `"A":(1)2`.
constexpr bool is_axis_name(std::string_view name) {
  for (char c : name)
    if (c == '"' || is_control(c)) return false;
  const std::size_t colon = name.rfind(':');
  if (colon == name.npos) return true;
  scanner in(name.substr(colon));
  std::int64_t n = 0;
  return !(in.accept(":(") && in.integer(n) && in.accept(")") && in.integer(n) && in.done());
}

/// Checks a mesh; see `mesh` for the errors.
constexpr failure validate(const mesh& m) {
  failure f;
  if (m.rank > max_axes)
    f.record("M002", "mesh: ", m.rank, " axes; at most ", max_axes, " are supported");
  for (int i = 0; i < m.rank && !f; ++i) {
    const auto& a = m.axes[i];
    if (a.length == 0 || a.length > max_axis_name)
      f.record("M004", "mesh: the name of axis ", i, " has ", a.length, " characters; 1 to ",
               max_axis_name, " are allowed");
    if (!f && !is_axis_name(a.name()))
      f.record("M004", "mesh: the name of axis ", i, ", ", name_text(a.name()),
               ", has quotes or control characters, or ends like a part of an axis, ",
               ":(1)2; choose another name");
    if (a.size <= 0)
      f.record("M001", "mesh: axis \"", a.name(), "\" has size ", a.size,
               "; an axis has at least one device");
    for (int j = 0; j < i; ++j)
      if (m.name(j) == a.name()) f.record("M003", "mesh: two axes are named \"", a.name(), '"');
  }
  if (!f && m.devices() > max_devices)
    f.record("M005", "mesh: ", m, " has more than 2^59 - 1 devices, the most that are supported");
  return f;
}

}  // namespace partita
