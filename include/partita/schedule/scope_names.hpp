/// The scopes that the entries of a remat tactic create, by the names of their ops.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/schedule/named_values.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// Returns the beginning of a name that `wanted` selects, or an empty view.
constexpr std::string_view selected_part(std::string_view wanted, std::string_view name) {
  if (!is_pattern(wanted))
    return selects(wanted, name) ? name.substr(0, wanted.size()) : std::string_view();
  for (std::size_t end = 0; end <= name.size(); ++end)
    if ((end == name.size() || name[end] == '.') && selects_pattern(wanted, name.substr(0, end)))
      return name.substr(0, end);
  return {};
}
/// Returns a part of a name, extended by a number that follows it, so that elements of a list are
/// distinct.
constexpr std::string_view with_number(std::string_view part, std::string_view name) {
  std::size_t end = part.size() + 1;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  const bool number = end > part.size() + 1 && (end == name.size() || name[end] == '.');
  return number ? name.substr(0, end) : part;
}

/// The scopes that the entries of a remat tactic create. An entry creates one scope for its name,
/// or one for each element of a list below it.
class scope_names {
 public:
  constexpr explicit scope_names(const vec<std::string_view>& wanted)
      : found(wanted.size(), 0), overlaps(wanted.size(), 0), wanted_(wanted), places_(16) {}

  vec<int> entry_of;   ///< by scope
  vec<char> found;     ///< by entry: true if a scope of that name exists
  vec<char> overlaps;  ///< by entry: true if it overlaps a narrower one or an equal, earlier one

  /// Records that two scopes overlap. `width`: by entry.
  constexpr void note_overlap(int a, int b, const vec<std::int64_t>& width) {
    const int one = entry_of[a], other = entry_of[b];
    if (one == other) return;
    const bool wider = width[one] != width[other] ? width[one] > width[other] : one > other;
    overlaps[wider ? one : other] = 1;
  }
  constexpr int count() const { return static_cast<int>(entry_of.size()); }
  /// Returns the scope that a name belongs to, or -1. If several entries select it, the longest one
  /// applies.
  constexpr int of(std::string_view name) {
    int best = -1;
    std::string_view part;
    for (int e = 0; e < static_cast<int>(wanted_.size()); ++e) {
      const std::string_view selected = selected_part(wanted_[e], name);
      if (selected.empty()) continue;
      found[e] = 1;
      if (best >= 0 && wanted_[e].size() <= wanted_[best].size()) continue;
      best = e;
      part = selected;
    }
    if (best < 0) return -1;
    const int s = places_.insert(with_number(part, name), count());
    if (s == count()) entry_of.push_back(best);
    return s;
  }

 private:
  const vec<std::string_view>& wanted_;
  name_table places_;
};

}  // namespace partita::schedule_detail
