/// The memory of values: slots of the workspace, assigned by live range, or arrays that are
/// returned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <partita/run/fusion/grouping.hpp>
#include <partita/run/memory/device_set.hpp>

namespace partita::run_detail {

/// Slots with sizes in bytes, some of them free.
class slot_pool {
 public:
  /// Returns the smallest free slot that is large enough and at most twice as large, or a new one.
  /// Among equal ones it prefers the last one freed, which is most likely in a cache.
  int take(std::int64_t bytes) {
    auto best = free_.end();
    for (auto i = free_.begin(); i != free_.end(); ++i)
      if (size(*i) >= bytes && size(*i) <= 2 * bytes &&
          (best == free_.end() || size(*i) <= size(*best)))
        best = i;
    if (best == free_.end()) {
      bytes_.push_back(bytes);
      return static_cast<int>(bytes_.size()) - 1;
    }
    const int slot = *best;
    free_.erase(best);
    return slot;
  }
  void give_back(int slot) { free_.push_back(slot); }
  /// Returns the size of each slot in bytes.
  const std::vector<std::int64_t>& bytes() const { return bytes_; }

 private:
  std::int64_t size(int slot) const { return bytes_[at(slot)]; }

  std::vector<std::int64_t> bytes_;
  std::vector<int> free_;
};

/// Assigns memory to values.
///
/// Law       a value stays in its slot from the step that writes it to the last step that reads it
class memory_plan {
 public:
  /// `axes`: the axes over which each value varies; `outermost`: true if outputs may be returned as
  /// arrays.
  memory_plan(const program& p, const fusion_rules& rules, const grouping& groups,
              const device_set& devices, const vec<axis_set>& axes, bool outermost)
      : p_(p),
        devices_(devices),
        axes_(axes),
        slot_(at(p.value_count()), no_slot),
        handed_out_(at(p.value_count()), 0) {
    if (outermost) hand_out(rules);
    place(groups, last_reads(rules, groups), outermost);
  }

  /// Returns the sizes of the slots in bytes.
  const std::vector<std::int64_t>& slots() const { return slots_.bytes(); }
  /// Returns the slot of a root value, or `no_slot`.
  int slot(value_id v) const { return slot_[at(v)]; }
  static constexpr int no_slot = -1;
  /// True if the memory of a root value becomes an output array.
  bool handed_out(value_id v) const { return handed_out_[at(v)] != 0; }
  /// True if a run allocates memory for a root value.
  bool holds(value_id v) const { return slot(v) != no_slot || handed_out(v); }

  std::int64_t copies(value_id v) const { return devices_.copies(axes_[at(v)]); }
  /// Returns the bytes of all copies.
  std::int64_t bytes(value_id v) const {
    return saturating_multiply(copies(v), padded_bytes(p_.type(v)));
  }

 private:
  static constexpr int forever = std::numeric_limits<int>::max();

  void hand_out(const fusion_rules& rules) {
    for (const auto& out : p_.outputs) {
      const value_id v = rules.root(out.value);
      if (copies(v) == 1 && p_.op(p_.producer(v)).def != &def<op::parameter>)
        handed_out_[at(v)] = 1;
    }
  }
  /// Returns, by root value, the last step that reads it, or -1.
  std::vector<int> last_reads(const fusion_rules& rules, const grouping& groups) const {
    std::vector<int> last(at(p_.value_count()), -1);
    for (std::size_t k = 0; k < groups.steps.size(); ++k)
      groups.for_operands(groups.steps[k], [&](value_id v) { last[at(v)] = static_cast<int>(k); });
    for (const auto& out : p_.outputs) last[at(rules.root(out.value))] = forever;
    return last;
  }
  void place(const grouping& groups, const std::vector<int>& last_read, bool outermost) {
    std::vector<std::vector<value_id>> dying(groups.steps.size());
    for (std::size_t k = 0; k < groups.steps.size(); ++k) {
      const step& s = groups.steps[k];
      groups.for_results(s, [&](value_id v) {
        const bool given = s.what == step::kind::input && (copies(v) == 1 || !outermost);
        if (!groups.stored(v) || handed_out(v) || given) return;
        slot_[at(v)] = slots_.take(bytes(v));
        const int last = std::max(last_read[at(v)], static_cast<int>(k));
        if (last != forever) dying[at(last)].push_back(v);
      });
      for (value_id v : dying[k]) slots_.give_back(slot(v));
    }
  }

  const program& p_;
  const device_set& devices_;
  const vec<axis_set>& axes_;     // by value
  std::vector<int> slot_;         // by root value
  std::vector<char> handed_out_;  // by root value
  slot_pool slots_;
};

}  // namespace partita::run_detail
