/// Draws schedules of tactics as users write them: names and prefixes, placements of every kind,
/// next states, microbatches anywhere.
#pragma once

#include <optional>
#include <set>

#include "test_case.hpp"

namespace random_test {

/// A manual tactic or microbatches.
struct random_tactic {
  std::string label, axis;
  std::vector<std::pair<std::string, pt::placement>> entries = {};
  pt::uneven policy = pt::uneven::unsaid;
  std::int64_t steps = 0;  ///< of microbatches; 0: manual
  int dim = 0;             ///< the dimension, if microbatches slice a single value

  std::string_view name() const { return label; }
  void rewrite(pt::rewriting& w) const {
    if (steps > 0) pt::microbatch(steps, {{entries[0].first, dim}}, label).rewrite(w);
  }
  void apply(pt::tactic_context& c) const {
    if (steps > 0) return;
    if (entries.size() == 1)
      pt::manual(axis, {{entries[0].first, entries[0].second}}, label, policy).apply(c);
    else
      pt::manual(axis,
                 {{entries[0].first, entries[0].second}, {entries[1].first, entries[1].second}},
                 label, policy)
          .apply(c);
  }
};
static_assert(pt::Tactic<random_tactic>);

inline pt::placement by_size(std::string_view name, const shape& s) {
  if (s.rank > 0 && s[s.rank - 1] % 2 == 0) return s.rank - 1;
  if (name.size() % 2 == 0) return pt::replicated;
  return pt::unknown;
}
/// The values that a name selects: one value of this shape, or all inputs below a prefix.
struct selectable {
  std::string name;
  std::optional<shape> of;
  bool used = true;  ///< true if an op uses it
};
inline std::vector<selectable> selectables(const pt::program& p) {
  std::vector<selectable> list;
  bool params = false;
  for (int i = 0; i < p.input_count(); ++i) {
    list.push_back({std::string(p.input_name(i)), p.input_type(i).shape,
                    std::find(p.operand_list.begin(), p.operand_list.end(),
                              p.inputs[static_cast<std::size_t>(i)]) != p.operand_list.end()});
    params = params || p.input_name(i).starts_with("params.");
  }
  for (int i = 0; i < p.output_count(); ++i)
    list.push_back({std::string(p.output_name(i)), p.output_type(i).shape});
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, pt::op_role::tag))
      list.push_back({std::string(p.view(p.op(o).name)), p.type(p.op(o).result).shape});
  if (params) list.push_back({"params", std::nullopt});
  return list;
}

/// Returns a dimension of the values in most cases, otherwise one of the first two.
inline int some_dim(random& r, const std::optional<shape>& of) {
  if (!of || of->rank == 0 || r.one_in(16)) return static_cast<int>(r.in(0, 1));
  return static_cast<int>(r.in(0, of->rank - 1));
}
inline pt::placement some_placement(random& r, const selectable& s) {
  switch (r.in(0, 9)) {
    case 0:
      return pt::replicated;
    case 1:
      return pt::placement(&by_size);
    case 2:
      return pt::unknown;
    case 3:
    case 4:
    case 5:
      if (s.of && s.of->rank > 0) return some_dim(r, s.of);
      [[fallthrough]];
    default:
      return pt::first_divisible_dim;
  }
}
/// Draws microbatches of an input, mostly of one that is used; their number divides its dimension.
inline void draw_steps(random& r, const std::vector<selectable>& inputs, random_tactic& t) {
  std::vector<selectable> good;
  for (const auto& i : inputs)
    if (i.used && i.of->rank > 0) good.push_back(i);
  const selectable input = r.pick(good.empty() || r.one_in(16) ? inputs : good);
  t.dim = some_dim(r, input.of);
  const std::int64_t size = t.dim < input.of->rank ? (*input.of)[t.dim] : 1;
  do t.steps = r.in(1, 4);
  while (size % t.steps != 0 && !r.one_in(12));
  t.entries.emplace_back(input.name, pt::unknown);
}
inline void draw_manual(random& r, const std::vector<selectable>& values, random_tactic& t) {
  t.policy = r.one_in(24)   ? pt::uneven::refuse
             : r.one_in(10) ? pt::uneven::unsaid
                            : pt::uneven::pad;
  std::set<std::string> chosen;
  for (auto k = r.in(1, 2); k > 0; --k)
    if (const auto value = r.pick(values); chosen.insert(value.name).second)
      t.entries.emplace_back(value.name, some_placement(r, value));
}

inline std::vector<random_tactic> draw_schedule(const pt::program& p, const pt::mesh& m,
                                                random& r) {
  const auto values = selectables(p);
  const std::vector<selectable> inputs(values.begin(), values.begin() + p.input_count());
  std::vector<random_tactic> list;
  bool steps = inputs.empty();  // only one tactic of microbatches
  for (auto n = r.in(1, 4); n > 0; --n) {
    random_tactic t{"t" + std::to_string(n), ""};
    if (!steps && r.one_in(3)) {
      steps = true;
      draw_steps(r, inputs, t);
    } else {
      t.axis = m.name(static_cast<int>(r.in(0, m.rank - 1)));
      draw_manual(r, values, t);
    }
    list.push_back(t);
  }
  return list;
}

/// Draws the batch, then each weight along its axis, and perhaps microbatches.
inline std::vector<random_tactic> draw_heavy_schedule(const pt::program& p, const pt::mesh& m,
                                                      random& r) {
  const auto values = selectables(p);
  std::vector<random_tactic> list;
  const auto add = [&](const selectable& s, int dim) {
    list.push_back({s.name, std::string(m.name(0)), {{s.name, dim}}, pt::uneven::pad});
  };
  const std::vector<selectable> inputs(values.begin(), values.begin() + p.input_count());
  if (!inputs.empty() && r.one_in(4)) draw_steps(r, inputs, list.emplace_back("steps", ""));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].of->rank > 0) add(inputs[i], i == 0 ? 0 : some_dim(r, inputs[i].of));
  return list;
}
inline std::vector<random_tactic> draw_schedule(const test_case& c, random& r) {
  return c.heavy || c.looks_up ? draw_heavy_schedule(c.p, c.mesh, r)
                               : draw_schedule(c.p, c.mesh, r);
}

/// Draws passes::stationary_above: always of few bytes where weights are large.
inline std::int64_t draw_stationary(const test_case& c, random& r) {
  if (c.heavy) return r.in(1, 8);
  return r.one_in(2) ? r.in(1, 40) : 0;
}
inline pt::shared_uses some_shared_uses(random& r) {
  using uses = pt::shared_uses;
  constexpr uses::kind_type kinds[] = {uses::none, uses::alike, uses::neighbours,
                                       uses::all,  uses::all,   uses::all};
  return kinds[r.in(0, 5)];
}
/// Draws options of a core program: stationary rows in every third case, and in most cases that
/// begin with a gather.
inline pt::core_options some_core_options(const test_case& c) {
  return {.stationary_rows = c.looks_up ? c.seed % 4 != 0 : c.seed % 3 == 0};
}
/// Draws passes over collectives.
inline pt::passes some_passes(const test_case& c, random& r) {
  pt::passes on;
  on.place = r.one_in(2);
  on.share_gathers = some_shared_uses(r);
  if (r.one_in(2)) on.combine_below = r.in(1, 400);
  on.stationary_above = draw_stationary(c, r);
  on.stationary_rows = c.looks_up || r.one_in(3);
  return on;
}

/// Draws the options of a machine with slow links, or others.
inline pt::overlap_options some_overlap(random& r) {
  pt::overlap_options on;
  if (r.one_in(2)) return on;
  on.on = data::slow_links(r.one_in(2) ? 1e7 : 1e9);
  on.rings = !r.one_in(4);
  on.memory = r.one_in(2) ? 1 << 20 : r.in(1, 4000);
  return on;
}

}  // namespace random_test
