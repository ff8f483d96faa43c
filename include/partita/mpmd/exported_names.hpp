/// Names of the buffers and functions of an exported pipeline.
///
/// Source    Shardy:MPMD, export: `p0_stage1_fwd_calls0to1.main`
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/exported.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita {

namespace mpmd_detail {

/// The name of a mesh if it needs no quotes, and its number otherwise.
constexpr text mesh_text(const topology& t, int mesh) {
  const text name = name_text(t.name(mesh));
  return name == t.name(mesh) ? name : concat("mesh", mesh);
}

class exported_names {
 public:
  constexpr exported_names(const pipelined& p, const exported_pipeline& e)
      : p_(p), e_(e), names_(p.source), of_slot_(p.values().types.size(), -1) {
    for (value_id v = 0; v < p.source.value_count(); ++v) of_slot_[p.slot_of[v]] = v;
    find_microbatches();
    for (std::size_t f = 0; f < e.functions.size(); ++f)
      functions_.push_back(function_name(static_cast<int>(f)));
  }

  constexpr const text& function(int f) const { return functions_[f]; }
  /// The name of a buffer: `%x5#3@m1` for microbatch 3, `%x5@m1` outside of microbatches.
  constexpr text buffer(int i) const { return name(e_.buffers[i], {}); }
  /// The text of an operand: `%x2[3]@m1` for a slice, or the number of a microbatch.
  constexpr text operand(const call_operand& each) const {
    if (each.is_number()) return concat(each.slice);
    text slice;
    if (each.slice >= 0) slice << '[' << each.slice << ']';
    return name(e_.buffers[each.buffer], slice.view());
  }

 private:
  const pipelined& p_;
  const exported_pipeline& e_;
  value_names names_;
  vec<value_id> of_slot_;  ///< a value of the source, or -1
  vec<text> functions_;
  vec<vec<int>> microbatches_;  ///< by function: the microbatches of its calls

  constexpr text name(const pipeline_buffer& b, std::string_view slice) const {
    const value_id v = of_slot_[b.slot];
    text out = "%";
    if (v < 0)
      out << 'v' << b.slot;
    else
      out << names_[v];
    if (b.microbatch >= 0 && v >= 0 && p_.inside[p_.source.producer(v)] != 0)
      out << '#' << b.microbatch;
    return out << slice << '@' << name_text(p_.topology.name(b.mesh));
  }

  // ---- Functions -------------------------------------------------------------------------------

  /// The name of a function, as in `p2_stage1_fwd_bwd_calls0to7.main`: the third one in order of
  /// calls. If several stages share it: `p2_stage1to6_fwd_calls0to7.main`.
  constexpr text function_name(int f) const {
    const vec<int>& units = e_.functions[f].units;
    text out = concat('p', f, '_');
    vec<char> named(units.size(), 0);
    bool inside = false;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const pipeline_unit& u = p_.function(units[i]);
      inside = inside || u.inside;
      if (named[i] != 0) continue;
      vec<int> places;  // of all units of this kind
      for (std::size_t k = i; k < units.size(); ++k) {
        if (kind(p_.function(units[k])) != kind(u)) continue;
        named[k] = 1;
        places.push_back(u.piece.stage >= 0 ? p_.function(units[k]).piece.stage
                                            : p_.function(units[k]).piece.mesh);
      }
      if (i > 0) out << '_';
      if (u.piece.stage >= 0)
        out << "stage" << ranges(places);
      else
        out << meshes(places);
      out << '_' << what(units[i]);
    }
    if (inside) out << "_calls" << ranges(microbatches_[f], true);
    return out << ".main";
  }
  /// The joint function with this number, or null.
  constexpr const joint_function* joint(int number) const {
    const int k = number - static_cast<int>(p_.units.size());
    return k < 0 ? nullptr : &p_.joint_functions[k];
  }
  constexpr void find_microbatches() {
    microbatches_.resize(e_.functions.size(), {});
    for (const pipeline_step& s : e_.steps) {
      if (!s.is_call() || s.microbatch < 0) continue;
      vec<int>& all = microbatches_[s.function];
      const joint_function* several = joint(e_.functions[s.function].units[0]);
      if (several == nullptr) all.push_back(s.microbatch);
      for (int k = 0; several != nullptr && k < static_cast<int>(several->parts.size()); ++k)
        all.push_back(s.microbatch + several->parts[k].ahead);
    }
  }
  static constexpr unsigned kind(const pipeline_unit& u) {
    const unsigned place = u.piece.stage >= 0 ? 0x100u : 0u;
    return u.inside ? place | kinds(u) : place;
  }
  static constexpr unsigned kinds(const pipeline_unit& u) {
    return fragment_call{.transposed = u.transposed, .part = u.part, .joined = u.joined}.kinds();
  }
  /// The kind of a unit: `fwd_bwd`, `update`; `2fwd_bwd` for two forward calls and a backward one.
  constexpr text what(int number) const {
    text out;
    const joint_function* several = joint(number);
    if (several == nullptr) return out << what(p_.units[number]);
    const auto name = [&](std::size_t k) { return what(p_.units[several->parts[k].unit]); };
    for (std::size_t k = 0, end = 0; k < several->parts.size(); k = end) {
      while (end < several->parts.size() && name(end) == name(k)) ++end;
      out << (k > 0 ? "_" : "");
      if (end - k > 1) out << end - k;
      out << name(k);
    }
    return out;
  }
  static constexpr text what(const pipeline_unit& u) {
    text out;
    if (!u.inside) return out << "update";
    constexpr std::string_view names[] = {"fwd", "bwd", "weight", "further"};
    for (unsigned k = 0; k < 4; ++k)
      if ((kinds(u) >> k & 1) != 0) out << (out.empty() ? "" : "_") << names[k];
    return out;
  }
  /// Text of a list of numbers: `1to6`, `1_3_5`, `1_3_and_5_more`. Two numbers are `1_2`, or with
  /// `pairs` `1to2`.
  static constexpr text ranges(vec<int> list, bool pairs = false) {
    merge_sort(list, [](int a, int b) { return a < b; });
    vec<int> once;
    for (const int each : list)
      if (once.empty() || once.back() != each) once.push_back(each);
    text out;
    std::size_t i = 0;
    for (int shown = 0; i < once.size() && shown < 3; ++shown) {
      std::size_t end = i + 1;
      while (end < once.size() && once[end] == once[end - 1] + 1) ++end;
      out << (out.empty() ? "" : "_") << once[i];
      if (end - i > 1) out << (end - i > 2 || pairs ? "to" : "_") << once[end - 1];
      i = end;
    }
    if (i < once.size()) out << "_and_" << once.size() - i << "_more";
    return out;
  }
  constexpr text meshes(const vec<int>& list) const {
    text out;
    for (std::size_t i = 0; i < list.size() && i < 3; ++i)
      out << (i > 0 ? "_" : "") << mesh_text(p_.topology, list[i]);
    if (list.size() > 3) out << "_and_" << list.size() - 3 << "_more";
    return out;
  }
};

}  // namespace mpmd_detail
}  // namespace partita
