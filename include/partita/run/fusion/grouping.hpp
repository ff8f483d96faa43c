/// Grouping of the ops of a program into steps, each an op or a fused group of ops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <partita/run/fusion/block_program.hpp>
#include <partita/run/fusion/fusion_rules.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::run_detail {

struct step {
  enum class kind : std::uint8_t { input, kernel, collective, group, start, control };
  kind what = kind::kernel;
  op_id op = -1;   ///< the first op of a group
  int input = -1;  ///< index of the input
  kernel_entry kernel;
  std::vector<op_id> members;  ///< of a group
  block_program blocks;
  axis_set axes;              ///< of the results
  std::int64_t elements = 0;  ///< of the results; in a group: of its largest values
  std::int64_t row = 0;       ///< in a group that reduces rows: the elements of a row
};

/// Groups the ops of a program.
///
/// Law       running the steps in order computes every output; one step writes each value
class grouping {
 public:
  std::vector<step> steps;  ///< without kernels and block programs

  /// `axes`: the axes over which each value varies.
  grouping(const program& p, const fusion_rules& rules, const vec<axis_set>& axes)
      : p_(p),
        rules_(rules),
        axes_(axes),
        needed_(at(p.op_count()), 0),
        stored_(at(p.value_count()), 0),
        step_of_(at(p.value_count()), -1),
        consumer_(at(p.value_count()), -1) {
    find_uses();
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (needed_[at(o)] && !rules_.passes_on(o)) schedule(o);
    if (rules_.fuses()) recompute();
    find_stored();
    std::erase_if(steps, [](const step& s) { return is_group(s) && s.members.empty(); });
  }

  /// True if a root value is stored in memory, not only in the blocks of its group.
  bool stored(value_id v) const { return stored_[at(v)] != 0; }

  /// Calls f(v) for every value that a step computes.
  template <class F>
  void for_results(const step& s, F f) const {
    for_members(s, [&](op_id o) {
      for (int r = 0; r < p_.op(o).result_count; ++r) f(p_.op(o).result + r);
    });
  }
  /// Calls f(v) for every root value that a step reads, or that a member of its group computes.
  template <class F>
  void for_operands(const step& s, F f) const {
    for_members(s, [&](op_id o) {
      for (value_id x : p_.operands(o)) {
        const value_id v = s.what == step::kind::group ? rules_.source(x) : rules_.root(x);
        if (v >= 0) f(v);
      }
    });
  }

 private:
  /// Groups more than this number of steps back are closed: joining them would keep values alive.
  static constexpr int reach = 16;
  static constexpr std::size_t most_members = 64;

  template <class F>
  void for_members(const step& s, F f) const {
    if (s.what == step::kind::group)
      for (op_id o : s.members) f(o);
    else
      f(s.op);
  }

  /// Finds, backwards, the values that are needed at all and those that are needed in memory.
  void find_uses() {
    for (const auto& out : p_.outputs) {
      needed_[at(p_.producer(out.value))] = 1;
      stored_[at(rules_.root(out.value))] = 1;
    }
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (!needed_[at(o)]) continue;
      const value_id made = p_.op(o).result;
      const bool is_made_anew = rules_.made_anew(made) && !stored(made);
      const bool reads_memory = !rules_.passes_on(o) && !rules_.groupable(o);
      for (value_id x : p_.operands(o)) {
        needed_[at(p_.producer(x))] = 1;
        // Kernels read stored operands. The source of a recomputed broadcast: see find_stored.
        if (reads_memory && (!is_made_anew || rules_.made_anew(rules_.root(x))))
          stored_[at(rules_.root(x))] = 1;
      }
    }
  }
  /// Finds the values that a step reads and does not compute, and those that no group computes.
  void find_stored() {
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for_operands(steps[k], [&](value_id v) {
        if (!makes(steps[k], v)) stored_[at(v)] = 1;
      });
      if (steps[k].what != step::kind::group)
        for_results(steps[k], [&](value_id v) { stored_[at(v)] = 1; });
    }
  }

  void schedule(op_id o) {
    step s = step_for(o);
    if (s.what == step::kind::kernel && rules_.made_anew(p_.op(o).result) &&
        !stored(p_.op(o).result))
      return;
    const int joined = s.what == step::kind::group && rules_.fuses() ? group_for(o, s) : -1;
    if (joined >= 0) {
      steps[at(joined)].members.push_back(o);
      if (s.row > 0) steps[at(joined)].row = s.row;
      return note(o, joined);
    }
    if (s.what == step::kind::group) s.members.push_back(o);
    steps.push_back(std::move(s));
    note(o, static_cast<int>(steps.size()) - 1);
  }
  /// Returns the op as a separate step, or as a group without members.
  step step_for(op_id o) const {
    const op_node& n = p_.op(o);
    step s;
    s.op = o;
    s.axes = axes_[at(n.result)];
    s.elements = p_.type(n.result).shape.elements();
    s.what = kind_of(o);
    if (s.what == step::kind::input)
      s.input = static_cast<int>(std::find(p_.inputs.begin(), p_.inputs.end(), n.result) -
                                 p_.inputs.begin());
    if (s.what == step::kind::group) s.row = rules_.reduced_row(o);
    if (s.row > 0) s.elements = p_.type(p_.operand(o, 0)).shape.elements();
    return s;
  }
  step::kind kind_of(op_id o) const {
    const op_node& n = p_.op(o);
    if (n.def == &def<op::parameter>) return step::kind::input;
    if (n.def->collective && !rules_.overridden(n.def)) return step::kind::collective;
    if (n.def == &def<op::shard_start>) return step::kind::start;
    if (n.region_count > 0) return step::kind::control;
    return rules_.groupable(o) ? step::kind::group : step::kind::kernel;
  }
  void note(op_id o, int s) {
    for (int r = 0; r < p_.op(o).result_count; ++r) step_of_[at(p_.op(o).result + r)] = s;
    for (value_id x : p_.operands(o))
      for (value_id v : {rules_.root(x), rules_.source(x)})
        if (v >= 0) consumer_[at(v)] = s;
  }

  /// Returns the latest group that computes an operand, or that uses the same operand, if this op
  /// can run then; else -1.
  int group_for(op_id o, const step& s) const {
    int best = -1;
    const auto consider = [&](int candidate) {
      if (candidate > best && candidate + reach >= static_cast<int>(steps.size()) &&
          joins(o, s, candidate))
        best = candidate;
    };
    for (value_id x : p_.operands(o))
      for (value_id v : {rules_.root(x), rules_.source(x)})
        if (v >= 0) consider(step_of_[at(v)]), consider(consumer_[at(v)]);
    return best;
  }
  static bool is_group(const step& s) { return s.what == step::kind::group; }
  bool makes(const step& s, value_id v) const {
    bool made = false;
    for_members(s, [&](op_id o) { made = made || o == p_.producer(v); });
    return made;
  }
  /// True if the op costs less than a load of its result.
  bool is_cheap(op_id o) const {
    const link l = rules_.block_of(o).as_link;
    return (l == link::add || l == link::subtract || l == link::multiply || l == link::negate) &&
           !is_half(p_.type(p_.op(o).result).element);
  }
  /// Recomputes cheap ops in the groups that read their results, if only groups read these and
  /// their operands are in memory then. The results need no memory, and no group reads more values
  /// than before.
  void recompute() {
    std::vector<std::set<int>> readers(at(p_.value_count()));  // by root value: steps
    std::vector<int> added(steps.size(), 0);
    const auto note_read = [&](value_id v, int k) {
      if (v >= 0 && !makes(steps[at(k)], v)) readers[at(v)].insert(k);
    };
    for (int k = 0; k < static_cast<int>(steps.size()); ++k)
      for_operands(steps[at(k)], [&](value_id v) { note_read(v, k); });
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const value_id v = p_.op(o).result;
      const auto can_again = [&](int k) {
        const step& g = steps[at(k)];
        int more = 0;  // additional values to read
        for (value_id x : p_.operands(o)) {
          const value_id u = rules_.source(x);
          if (u < 0 || readers[at(u)].contains(k) || makes(g, u)) continue;
          if (u != rules_.root(x) || !stored(u)) return false;
          ++more;
        }
        return more <= 1 && is_group(g) && g.axes == axes_[at(v)] &&
               g.members.size() < most_members && p_.type(v).shape.elements() == g.elements;
      };
      if (p_.op(o).result_count != 1 || readers[at(v)].empty() || stored(v)) continue;
      const std::set<int>& again = readers[at(v)];
      if (!is_cheap(o) || !std::all_of(again.begin(), again.end(), can_again)) {
        stored_[at(v)] = 1;
        continue;
      }
      for (int k : again) {
        auto& members = steps[at(k)].members;
        members.insert(members.begin() + added[at(k)]++, o);
        for (value_id x : p_.operands(o)) note_read(rules_.source(x), k);
      }
      step& maker = steps[at(step_of_[at(v)])];
      bool used = false;
      for_operands(maker, [&](value_id x) { used = used || x == v; });
      if (!used) std::erase(maker.members, o);
    }
  }

  /// True if the operands of an op are available when the group at `candidate` runs, and the group
  /// can hold it.
  bool joins(op_id o, const step& s, int candidate) const {
    const step& g = steps[at(candidate)];
    if (g.what != step::kind::group || g.axes != s.axes || g.members.size() >= most_members)
      return false;
    const bool per_row = s.row == 0 && g.row > 0 && s.elements * g.row == g.elements;
    if (!per_row && s.elements != g.elements) return false;
    if (s.row > 0 && g.row > 0 && s.row != g.row) return false;
    for (value_id x : p_.operands(o)) {
      const value_id v = rules_.source(x);
      const int made = v < 0 ? -1 : step_of_[at(v)];
      if (made > candidate) return false;
      if (made < candidate) continue;
      const bool same = v == rules_.root(x) && p_.type(x).shape.elements() == s.elements;
      if (!same && (per_row || !rules_.spreads_rows(x, g.row, g.elements))) return false;
    }
    return true;
  }

  const program& p_;
  const fusion_rules& rules_;
  const vec<axis_set>& axes_;
  std::vector<char> needed_;   // by op
  std::vector<char> stored_;   // by root value
  std::vector<int> step_of_;   // by root value: the step that writes it
  std::vector<int> consumer_;  // by root value: the last step so far that reads it
};

}  // namespace partita::run_detail
