/// Splits axes of the mesh where conversions between layouts then send less.
#pragma once

#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/spmd/joint_mesh.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/support/checked.hpp>

namespace partita {

/// Splits the axes of a mesh where these sub-axes end, as long as it may have more axes.
constexpr mesh split_at(mesh m, const vec<sub_axis>& cuts) {
  for (const sub_axis& s : cuts) {
    std::int64_t major = 0;
    const int axis = m.cut_by(s, major);
    if (axis >= 0 && major > 0 && m.rank < max_axes) m.split(axis, major);
  }
  return m;
}
/// The sub-axes that end where an axis is divided by the size of another one, or by the rest.
/// Splitting at other positions saves nothing for any pair of layouts of full axes, see
/// tests/random/reshards.cpp.
constexpr vec<sub_axis> possible_cuts(const mesh& m) {
  vec<sub_axis> cuts;
  for (int a = 0; a < m.rank; ++a)
    for (int b = 0; b < m.rank; ++b) {
      const sub_axis p = m.part(a);
      const std::int64_t common = greatest_common_divisor(p.size, m.size(b));
      for (const std::int64_t cut : {common, p.size / common}) {
        bool known = cut == 1 || cut == p.size;
        const sub_axis s{p.axis, 1, p.pre * cut};
        for (const sub_axis& each : cuts) known = known || each == s;
        if (!known) cuts.push_back(s);
      }
    }
  return cuts;
}

namespace cost_detail {

/// A value that is converted from one layout to another.
struct conversion {
  layout now, want;
  tensor_type type;

  friend constexpr bool operator==(const conversion&, const conversion&) = default;
  /// The cost over a mesh that has the axes of `m`, some of them split.
  constexpr auto cost_over(const mesh& split, const mesh& m) const {
    const layout from = over_parts(now, m, split), to = over_parts(want, m, split);
    const spmd_detail::plain_way plain(from, to, type.shape.rank, true);
    known_ways ways;
    return spmd_detail::reshard_search(from, to, plain.common, type, split)
        .cost_of(ways.find(plain, from, to, type, split));
  }
};
/// The conversions of a program, as its notes have them, that are not plain.
constexpr vec<conversion> conversions_of(const core_program& c, const lowered& l,
                                         const passes& rules) {
  constexpr std::size_t most = 64;
  vec<conversion> list;
  bool any = false;
  const auto converts = [](const collective_note& n) {
    return n.op >= 0 && (n.reason == collective_reason::use_needs_it ||
                         n.reason == collective_reason::receiver_needs_it ||
                         n.reason == collective_reason::whole_needed);
  };
  for (const collective_note& n : l.notes)
    any = any || (converts(n) && n.reason != collective_reason::whole_needed);
  if (!any) return list;
  const spmd_detail::fused_rules layouts(c, rules);
  for (const collective_note& n : l.notes)
    for (int i = 0; converts(n) && i < c.p.op(n.op).operand_count; ++i) {
      if (c.p.operand(n.op, i) != n.value || list.size() == most) continue;
      const conversion each{layouts.finished_layout(n.value), layouts.boundary_layout({n.op, i}),
                            c.p.type(n.value)};
      bool known =
          spmd_detail::plain_way(each.now, each.want, each.type.shape.rank, true).is_best();
      for (const conversion& other : list) known = known || other == each;
      if (!known) list.push_back(each);
    }
  return list;
}

}  // namespace cost_detail

/// The sub-axes at whose ends to split a program's axes, so that its conversions send fewer bytes,
/// or as many in fewer collectives. `l` is the lowered program.
constexpr vec<sub_axis> useful_cuts(const core_program& c, const lowered& l, const passes& rules) {
  vec<sub_axis> useful;
  const vec<sub_axis> all = possible_cuts(c.mesh);
  if (all.empty() || c.uneven_sizes().axes != 0 || !rules.cancel || !rules.to_all_to_all)
    return useful;
  for (const cost_detail::conversion& each : cost_detail::conversions_of(c, l, rules)) {
    vec<sub_axis> cuts = all;
    const auto cost = [&] { return each.cost_over(split_at(c.mesh, cuts), c.mesh); };
    const auto least = cost();
    if (!(least < each.cost_over(c.mesh, c.mesh))) continue;
    for (const sub_axis& s : all) {  // removes those that do not matter
      const vec<sub_axis> before = cuts;
      cuts.clear();
      for (const sub_axis& other : before)
        if (!(other == s)) cuts.push_back(other);
      if (least < cost()) cuts = before;
    }
    for (const sub_axis& s : cuts) {
      bool known = false;
      for (const sub_axis& other : useful) known = known || other == s;
      if (!known) useful.push_back(s);
    }
  }
  return useful;
}

}  // namespace partita
