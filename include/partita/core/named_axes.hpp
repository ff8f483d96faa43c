/// The axes that actions and tactics name.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/mesh.hpp>
#include <partita/support/error.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Numbered axes: those of the user's mesh, in its order, then the sub-axes that were named. A
/// number always means the same positions, however axes are split.
struct named_axes {
  partita::mesh mesh;  ///< the user's
  vec<sub_axis> parts;

  constexpr named_axes() = default;
  constexpr named_axes(const partita::mesh& m) : mesh(m.whole()) {}

  constexpr int count() const { return mesh.rank + static_cast<int>(parts.size()); }
  constexpr sub_axis at(int axis) const {
    return axis < mesh.rank ? mesh.whole_axis(axis) : parts[axis - mesh.rank];
  }
  constexpr std::int64_t size(int axis) const { return at(axis).size; }
  constexpr void print(text& out, int axis) const { print_sub_axis(out, at(axis), mesh); }
  /// Returns the number of a sub-axis, and assigns one if it has none.
  constexpr int number(const sub_axis& s) {
    for (int i = 0; i < count(); ++i)
      if (at(i) == s) return i;
    parts.push_back(s);
    return count() - 1;
  }

  /// Returns the number of axis `A` or sub-axis `A:(1)4`, or -1 with an error, whose text begins
  /// with `who`.
  ///
  /// Errors    S001 no such axis, S021 not of the form `A:(pre)size`, S022 pre times size does not
  ///           divide the axis
  constexpr int find(std::string_view name, std::string_view who, failure& f) {
    int axis = mesh.find(name);
    if (axis >= 0) return axis;
    const std::size_t colon = name.rfind(':');
    const std::string_view base = name.substr(0, colon);
    axis = colon == name.npos ? -1 : mesh.find(base);
    if (axis < 0) {
      f.record("S001", who, ": the mesh has no axis \"", base, "\"; ",
               known_names(base, mesh.names()));
      return -1;
    }
    const std::int64_t whole = mesh.size(axis);
    sub_axis s{axis, 0, 0};
    scanner in(name.substr(colon));
    const bool read =
        in.accept(":(") && in.integer(s.pre) && in.accept(")") && in.integer(s.size) && in.done();
    if (!read || s.pre < 1 || s.size < 1) {
      f.record("S021", who, ": \"", name, "\" is not a sub-axis of axis \"", base,
               "\", which has size ", whole, "; \"", base,
               ":(pre)size\" is needed, both at least 1, pre x size a divisor of ", whole);
    } else if (whole % s.pre != 0) {
      f.record("S022", who, ": sub-axis \"", name, "\": axis \"", base, "\" has size ", whole,
               ", which ", s.pre, " does not divide; pre can be ", divisors(whole));
    } else if (whole / s.pre % s.size != 0) {
      f.record("S022", who, ": sub-axis \"", name, "\": axis \"", base, "\" has size ", whole,
               ", which ", s.pre, " x ", s.size, " does not divide; after (", s.pre, ") a size of ",
               divisors(whole / s.pre), " is possible");
    } else {
      return number(s);
    }
    return -1;
  }

 private:
  /// Lists divisors: `1, 2, 4 or 8`. A long list is cut.
  static constexpr text divisors(std::int64_t n) {
    text out;
    int shown = 0;
    for (std::int64_t d = 1; d < n && d <= 1024 && shown < 8; ++d)
      if (n % d == 0) out << (shown++ > 0 ? ", " : "") << d;
    if (shown == 8) out << ", ...";
    if (n > 1) out << " or ";
    return out << n;
  }
};

}  // namespace partita
