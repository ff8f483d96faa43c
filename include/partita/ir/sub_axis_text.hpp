/// Parsing of sub-axes: `"A":(1)4`.
#pragma once

#include <partita/ir/mesh.hpp>
#include <partita/support/scanner.hpp>

namespace partita {

/// Reads `"B"` or `"A":(1)4`; returns false if this is neither an axis nor a part of one. The part
/// may begin or end inside an axis of the mesh.
constexpr bool read_sub_axis(scanner& in, const mesh& m, sub_axis& s) {
  if (!in.accept("\"")) return false;
  const int axis = m.find(in.take_while([](char each) { return each != '"'; }));
  if (axis < 0 || !in.accept("\"")) return false;
  s = m.whole_axis(axis);
  const std::int64_t whole = s.size;
  if (!in.accept(":(")) return true;
  return in.integer(s.pre) && in.accept(")") && in.integer(s.size) && s.pre > 0 &&
         whole % s.pre == 0 && s.size > 0 && whole / s.pre % s.size == 0;
}
/// Splits the axes of a mesh so that every sub-axis in the text consists of complete axes. Sub-axes
/// that do not divide an axis are ignored.
constexpr void split_as_in(std::string_view in, mesh& m) {
  scanner text(in);
  while (!text.done()) {
    text.take_while([](char each) { return each != '"'; });
    sub_axis s;
    const scanner here = text;
    if (!read_sub_axis(text, m, s)) {
      text = here;
      text.accept("\"");
      continue;
    }
    std::int64_t major = 0;
    for (int a = m.cut_by(s, major); a >= 0 && major > 0 && m.rank < max_axes;
         a = m.cut_by(s, major))
      m.split(a, major);
  }
}

}  // namespace partita
