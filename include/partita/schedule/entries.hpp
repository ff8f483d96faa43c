/// Entries of tactics; each selects values by name.
#pragma once

#include <cstddef>
#include <string_view>

#include <partita/schedule/tactic.hpp>
#include <partita/support/kept_name.hpp>
#include <partita/support/span.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// The name of an entry, which outlives the string it was made of.
struct kept_selector {
  kept_name name;
  bool pattern = false;
  constexpr kept_selector() = default;
  constexpr explicit kept_selector(std::string_view n) : name(n), pattern(is_pattern(n)) {}
  constexpr bool selects(std::string_view n) const {
    return pattern ? selects_pattern(name, n) : schedule_detail::selects(name, n);
  }
};

/// A value that an entry selects, by its own name or, for a cotangent, by the name of its primal.
struct selected_value {
  named_value value;
  std::string_view name;
  bool is_cotangent = false;
};

/// The entries of a tactic, whose names are of type kept_selector. `Who` returns the tactic's name
/// for messages. If several entries select a value, the one with the longest name applies.
template <class Entry, class Who>
class entry_list {
 public:
  constexpr entry_list(span<const Entry> entries, const Who& who) : entries_(entries), who_(who) {}

  /// Calls f(selected value, number of its entry). Cotangents that no entry selects by their own
  /// name come last.
  ///
  /// Errors    S006 an entry selects nothing, S007 two entries have the same name
  template <class F>
  constexpr void for_each(tactic_context& c, const F& f) const {
    refuse_equal_names(c);
    vec<selected_value> cotangents;
    vec<std::size_t> line;  // of each
    for (std::size_t e = 0; e < entries_.size() && !c.error; ++e) {
      const std::string_view name = entries_[e].name;
      const bool found = c.for_each_selected(name, [&](const named_value& v) {
        if (best(v.name) == e) {
          f(selected_value{v, v.name}, e);
        } else if (lies_as_primal(v) && best(v.primal()) == e) {
          cotangents.push_back({v, v.primal(), true});
          line.push_back(e);
        }
      });
      if (!found && names_dead_code(c.given, name))
        c.note(dead_name_note(name));
      else if (!found)
        c.error.record("S006", who_(), ": no input, tag",
                       c.inner_values().empty() ? " or output" : ", output or inner value",
                       " is named \"", name, "\" or is below it; ",
                       known_names_or_below(name, names(c)));
    }
    for (std::size_t i = 0; i < cotangents.size() && !c.error; ++i) f(cotangents[i], line[i]);
  }

 private:
  span<const Entry> entries_;
  const Who& who_;

  constexpr void refuse_equal_names(tactic_context& c) const {
    for (std::size_t e = 0; e < entries_.size(); ++e)
      for (std::size_t d = 0; d < e; ++d)
        if (entries_[e].name == entries_[d].name)
          c.error.record("S007", who_(), ": two entries are named \"", entries_[e].name.view(),
                         '"');
  }
  constexpr bool lies_as_primal(const named_value& v) const {
    return !v.primal().empty() && best(v.name) == entries_.size();
  }
  constexpr std::size_t best(std::string_view name) const {
    std::size_t best = entries_.size();
    for (std::size_t e = 0; e < entries_.size(); ++e)
      if (entries_[e].selects(name) &&
          (best == entries_.size() ||
           entries_[e].name.view().size() > entries_[best].name.view().size()))
        best = e;
    return best;
  }
  static constexpr vec<std::string_view> names(tactic_context& c) {
    vec<std::string_view> out;
    name_table known(c.values().size());
    const auto add = [&](std::string_view name) {
      const int next = static_cast<int>(out.size());
      if (known.insert(name, next) == next) out.push_back(name);
    };
    for (const auto& v : c.values()) add(v.name);
    for (const auto& v : c.inner_values()) add(v.name);
    return out;
  }
};

}  // namespace partita::schedule_detail
