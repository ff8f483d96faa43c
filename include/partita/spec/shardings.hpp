/// Schedules from the shardings in a module.
#pragma once

#include <partita/mpmd/union_mesh.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/stablehlo/shardings.hpp>

namespace partita {

namespace spec_detail {

/// Translates the axes that shardings use into those of a mesh.
class sharding_words {
 public:
  constexpr sharding_words(const sharding_list& all, const mesh& m) : m_(m) {
    if (!all.mesh_used.empty()) check_axes(all);
    if (!error && all.devices != 0 && all.devices != m.devices())
      error.record("H014", "shardings: the module is for ", all.devices, " devices; mesh ",
                   concat(m), " has ", m.devices());
  }

  failure error;

  /// Converts the parts of a sharding to sub-axes, major to minor.
  constexpr vec<sub_axis> axes_of(const value_sharding& s, const vec<sharding_part>& parts) {
    vec<sub_axis> list;
    for (const auto& p : parts) {
      if (p.stride > 0) {
        digits(s, p, list);
        continue;
      }
      const int axis = m_.find(p.axis.view());
      list.push_back({axis, p.pre, p.size == 0 ? m_.size(axis) : p.size});
    }
    return list;
  }
  /// Returns the parts of all axes that `used` does not contain.
  constexpr vec<sub_axis> rest(vec<sub_axis> used) const {
    vec<sub_axis> list;
    for (int axis = 0; axis < m_.rank; ++axis) {
      std::int64_t at = 1;
      while (at < m_.size(axis)) {
        // The next used part, starting from here.
        sub_axis next{axis, m_.size(axis), 1};
        for (const auto& u : used)
          if (u.axis == axis && u.size > 1 && u.pre >= at && u.pre < next.pre) next = u;
        if (next.pre > at) list.push_back({axis, at, next.pre / at});
        at = next.end();
      }
    }
    return list;
  }
  /// Returns the name that tactics use: `x`, `x:(1)2`.
  constexpr text name(const sub_axis& s) const {
    text out = m_.name(s.axis);
    if (s.size != m_.size(s.axis)) out << ":(" << s.pre << ')' << s.size;
    return out;
  }

 private:
  const mesh& m_;

  constexpr void check_axes(const sharding_list& all) {
    for (const auto& each : all.meshes) {
      if (!(each.name == all.mesh_used)) continue;
      for (int i = 0; i < each.mesh.rank; ++i) {
        const int mine = m_.find(each.mesh.name(i));
        if (mine < 0 || m_.size(mine) != each.mesh.size(i))
          error.record("H014", "shardings: the module has axis \"", each.mesh.name(i), "\" of ",
                       each.mesh.size(i), "; the system has mesh ", concat(m_));
      }
    }
  }
  /// Converts a range of device numbers' digits to parts of the axes that contain them.
  constexpr void digits(const value_sharding& s, const sharding_part& p, vec<sub_axis>& list) {
    std::int64_t stride = m_.devices(), covered = 1;
    const std::int64_t end = p.stride * p.size;
    for (int axis = 0; axis < m_.rank; ++axis) {
      const std::int64_t above = stride;
      stride /= m_.size(axis);
      const std::int64_t low = stride > p.stride ? stride : p.stride,
                         high = above < end ? above : end;
      if (low >= high) continue;
      if (low % stride != 0 || above % high != 0 || high % low != 0) break;
      list.push_back({axis, above / high, high / low});
      covered *= high / low;
    }
    if (covered != p.size)
      error.record("H014", "shardings: ", s.written, " slices mesh ", concat(m_),
                   " within an axis; give the system other axes");
  }
};

}  // namespace spec_detail

/// Returns the mesh that a module's shardings name. If they name none, returns a mesh with as many
/// axes as the shardings distinguish, `d0`, `d1`, ..., most major first.
///
/// Errors    H014 the module names no mesh and no devices, or no axes fit its shardings
constexpr mesh mesh_of(const sharding_list& all, failure& error) {
  mesh m;
  for (const auto& each : all.meshes)
    if (each.name == all.mesh_used && !all.mesh_used.empty()) return each.mesh;
  if (all.devices == 0) {
    for (const auto& each : all.meshes)
      if (each.mesh.rank > 0) return each.mesh;
    error.record("H014", "shardings: the module names no mesh and no devices; give a system");
    return m;
  }
  vec<std::int64_t> cuts;
  cuts.push_back(1);
  cuts.push_back(all.devices);
  for (const auto& v : all.values)
    for (const auto& d : v.dims)
      for (const auto& p : d.parts) {
        cuts.push_back(p.stride);
        cuts.push_back(p.stride * p.size);
      }
  for (std::size_t i = 1; i < cuts.size(); ++i)  // (few distinct values, each kept once)
    for (std::size_t k = i; k > 0 && cuts[k] >= cuts[k - 1]; --k) {
      if (cuts[k] == cuts[k - 1]) {
        for (std::size_t j = k; j + 1 < cuts.size(); ++j) cuts[j] = cuts[j + 1];
        cuts.pop_back();
        --i;
        break;
      }
      const std::int64_t other = cuts[k - 1];
      cuts[k - 1] = cuts[k];
      cuts[k] = other;
    }
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] % cuts[i + 1] != 0) {
      error.record("H014", "shardings: some slice the ", all.devices, " devices by ", cuts[i],
                   ", others by ", cuts[i + 1], "; no axes of a mesh allow both");
      return m;
    }
    m.push_back({concat("d", i).view(), cuts[i] / cuts[i + 1]});
  }
  error.record(validate(m));
  return m;
}

/// Returns the shardings as a schedule. A tactic for each priority number, in ascending order, lays
/// out the values with that priority and then propagates. A value whose dimensions are all closed
/// stays replicated along the remaining axes; for a value with an open dimension, propagation may
/// use them.
///
/// Errors    H014 the shardings do not fit the mesh, or name an invalid part of an axis
constexpr text_schedule schedule_of(const sharding_list& all, const mesh& m) {
  text_schedule schedule;
  spec_detail::sharding_words words(all, m);
  schedule.error.record(words.error);
  if (schedule.error) return schedule;
  std::int64_t last = 0;
  for (const auto& v : all.values)
    for (const auto& d : v.dims) last = d.priority > last ? d.priority : last;
  for (std::int64_t next = 0; next >= 0;) {
    text_tactic t;
    t.kind = text_tactic::layouts;
    t.label = kept_name(next == 0 ? "module" : concat("module, priority ", next).view());
    std::int64_t after = -1;
    for (const auto& v : all.values) {
      text_tactic::whole_layout value;
      value.kind = static_cast<text_tactic::whole_layout::kind_type>(v.kind);
      value.number = v.number;
      value.name = v.name;
      vec<sub_axis> used;
      bool open = v.dims.empty();
      for (std::size_t d = 0; d < v.dims.size(); ++d) {
        const auto& dim = v.dims[d];
        open = open || dim.open;
        value.closed.push_back(!dim.open);
        if (dim.priority > next && (after < 0 || dim.priority < after)) after = dim.priority;
        for (const auto& a : words.axes_of(v, dim.parts)) {
          used.push_back(a);
          if (dim.priority == next) value.pieces.push_back({static_cast<int>(d), words.name(a)});
        }
      }
      if (next == 0)
        for (const auto& a : open ? words.axes_of(v, v.replicated) : words.rest(used))
          value.pieces.push_back({-1, words.name(a)});
      t.values.push_back(value);
    }
    schedule.tactics.push_back(t);
    next = after;
  }
  schedule.error.record(words.error);
  return schedule;
}
/// The same for a topology. An axis is one of any of its meshes, found by name.
constexpr text_schedule schedule_of(const sharding_list& all, const topology& t) {
  return schedule_of(all, mpmd_detail::union_mesh(t));
}

}  // namespace partita
