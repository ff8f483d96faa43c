/// The units, transfers and collectives that belong to a value of a pipeline.
#pragma once

#include <string_view>

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/takers.hpp>
#include <partita/mpmd/unit_text.hpp>
#include <partita/support/name_table.hpp>

namespace partita::report_detail {

/// The units that produce and use a value: `computed by forward of stage 0, used by forward of
/// stage 1`.
class value_flow {
 public:
  constexpr explicit value_flow(const pipelined& p) : p_(p), made_by_(p.source.ops.size(), -1) {
    takers_.resize(p.source.types.size(), vec<int>{});
    for (int u = static_cast<int>(p.units.size()); u-- > 0;) {
      const pipeline_unit& unit = p.units[u];
      for (const op_id o : unit.piece.ops) made_by_[o] = u;
      for (const op_id o : unit.combined) made_by_[o] = u;
    }
    mpmd_detail::for_each_taker(p, [&](value_id v, int u) { takers_[v].push_back(u); });
  }
  /// The first unit that computes a value, or -1.
  constexpr int maker(value_id v) const { return made_by_[p_.source.producer(v)]; }
  /// The units on a mesh (or on all meshes, for -1) that use a value computed elsewhere.
  constexpr text takers(value_id v, int mesh) const {
    text out;
    for (const int u : takers_[v])
      if (mesh < 0 || p_.units[u].piece.mesh == mesh)
        out << (out.empty() ? "" : ", ") << mpmd_detail::unit_kind(p_.units[u]);
    return out;
  }

 private:
  const pipelined& p_;
  vec<int> made_by_;      ///< by op
  vec<vec<int>> takers_;  ///< by value
};

/// An index from a value to its inputs, outputs and transfers, and from its printed name to its
/// collectives.
///
/// Cost      linear in the pipeline
class value_index {
 public:
  /// A collective: its unit and its index there.
  struct place {
    int unit = -1, note = -1;
  };
  /// `name_of(note)` returns the printed name of the collective's value.
  template <class NameOf>
  constexpr value_index(const pipelined& p, const NameOf& name_of)
      : inputs(by_value(p, p.source.inputs, [](value_id v) { return v; })),
        outputs(by_value(p, p.source.outputs, [](const auto& each) { return each.value; })),
        transfers(by_value(p, p.transfers, [](const transfer& t) { return t.value; })),
        first_(0) {
    for (int u = 0; u < static_cast<int>(p.units.size()); ++u)
      for (int n = 0; n < static_cast<int>(p.units[u].notes.size()); ++n) {
        names_.push_back(name_of(p.units[u].notes[n]));
        places_.push_back({u, n});
      }
    next_.resize(names_.size(), -1);
    for (int i = static_cast<int>(names_.size()); i-- > 0;) add(i);
  }
  template <class F>
  constexpr void for_each_collective(std::string_view name, const F& f) const {
    const int chain = first_.find(name);
    for (int i = chain < 0 ? -1 : heads_[chain]; i >= 0; i = next_[i]) f(places_[i]);
  }

  mpmd_detail::grouping inputs, outputs, transfers;  ///< by value

 private:
  vec<text> names_;  ///< by collective
  vec<place> places_;
  vec<int> next_, heads_;
  name_table first_;  ///< by name; the first entry of each list in `heads_`

  template <class List, class Value>
  static constexpr mpmd_detail::grouping by_value(const pipelined& p, const List& list,
                                                  const Value& value) {
    vec<int> of;
    for (const auto& each : list) of.push_back(value(each));
    return {of, static_cast<int>(p.source.types.size())};
  }
  constexpr void add(int i) {
    const int fresh = static_cast<int>(heads_.size()), chain = first_.insert(names_[i], fresh);
    if (chain == fresh) heads_.push_back(-1);
    next_[i] = heads_[chain];
    heads_[chain] = i;
  }
};

}  // namespace partita::report_detail
