/// Draws schedules of tactics as users write them: by names and prefixes, with placements of every
/// kind, next states, microbatches anywhere.
#pragma once

#include <set>

#include "values.hpp"

namespace random_test {

/// A manual tactic or microbatches.
struct random_tactic {
  std::string label, axis;
  std::vector<std::pair<std::string, pt::placement>> entries = {};
  pt::uneven policy = pt::uneven::unsaid;
  std::int64_t steps = 0;  ///< of microbatches; 0: manual
  int dim = 0;             ///< of the one value that microbatches are of

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
inline pt::placement some_placement(random& r) {
  switch (r.in(0, 9)) {
    case 0:
      return pt::replicated;
    case 1:
      return pt::placement(&by_size);
    case 2:
      return pt::unknown;
    case 3:
    case 4:
      return r.in(0, 1);
    default:
      return pt::first_divisible_dim;
  }
}

inline std::vector<random_tactic> draw_schedule(const pt::program& p, const pt::mesh& m,
                                                random& r) {
  std::vector<std::string> names;
  for (int i = 0; i < p.input_count(); ++i) names.emplace_back(p.input_name(i));
  const std::vector<std::string> inputs = names;
  for (int i = 0; i < p.output_count(); ++i) names.emplace_back(p.output_name(i));
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, pt::op_role::tag)) names.emplace_back(p.view(p.op(o).name));
  for (const auto& name : inputs)
    if (name.starts_with("params.")) {
      names.emplace_back("params");
      break;
    }
  std::vector<random_tactic> list;
  bool steps = inputs.empty();  // only one tactic of microbatches
  for (auto n = r.in(1, 4); n > 0; --n) {
    random_tactic t{"t" + std::to_string(n), ""};
    if (!steps && r.one_in(3)) {
      steps = true;
      t.steps = r.in(1, 4);
      t.dim = static_cast<int>(r.in(0, 1));
      t.entries.emplace_back(r.pick(inputs), pt::unknown);
    } else {
      t.axis = m.name(static_cast<int>(r.in(0, m.rank - 1)));
      if (!r.one_in(3)) t.policy = pt::uneven::pad;
      std::set<std::string> chosen;
      for (auto k = r.in(1, 2); k > 0; --k)
        if (const auto& name = r.pick(names); chosen.insert(name).second)
          t.entries.emplace_back(name, some_placement(r));
    }
    list.push_back(t);
  }
  return list;
}

/// Passes over collectives.
inline pt::passes some_passes(random& r) {
  pt::passes on;
  on.place = r.one_in(2);
  on.share_gathers = r.one_in(2);
  if (r.one_in(2)) on.combine_below = r.in(1, 400);
  return on;
}

}  // namespace random_test
