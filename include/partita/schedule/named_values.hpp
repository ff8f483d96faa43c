/// The values that tactics can select by name, prefix or pattern.
#pragma once

#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A value that tactics can refer to by name.
struct named_value {
  enum kind_type : std::uint8_t { input, tag, output, inner };
  std::string_view name;
  value_id value = -1;
  kind_type kind = input;
  /// For an output with the name of an input: that input, whose next state it is.
  value_id state = -1;

  /// Returns, for the cotangent of a tag ("grad.h"), the name of the tag ("h"). It gets the tag's
  /// placement unless it has its own.
  constexpr std::string_view primal() const {
    return kind == tag ? op::primal_name(name) : std::string_view{};
  }
};

namespace schedule_detail {
/// True if a name in a tactic selects a value: it is the value's name, or a prefix of it that ends
/// before a dot.
constexpr bool selects(std::string_view wanted, std::string_view name) {
  const std::size_t size = wanted.size();
  return name.size() >= size && (name.size() == size || name[size] == '.') &&
         same_chars({name.data(), size}, wanted);
}

/// True if the text contains a wildcard.
constexpr bool is_pattern(std::string_view wanted) {
  for (const char c : wanted)
    if (c == '*') return true;
  return false;
}
/// Matches like `selects`, where `*` in `wanted` matches any characters except dots, and `**` any
/// characters.
///
/// Cost      linear in the name for each `*`, times the length of the name for each `**`
constexpr bool selects_pattern(std::string_view wanted, std::string_view name) {
  // For the last wildcard of each kind: the position after it in `wanted`, and the end of its match
  // in `name`. On a mismatch, the match of `*` grows by one character or, if it cannot, that of
  // `**`.
  struct star {
    std::size_t behind = std::string_view::npos, taken = 0;
  } one, any;
  std::size_t at = 0, i = 0;
  for (;;) {
    if (at < wanted.size() && wanted[at] == '*') {
      const bool dots = at + 1 < wanted.size() && wanted[at + 1] == '*';
      at += dots ? 2 : 1;
      (dots ? any : one) = {at, i};
      if (dots) one = {};
    } else if (at < wanted.size() && i < name.size() && wanted[at] == name[i]) {
      ++at;
      ++i;
    } else if (at == wanted.size() && (i == name.size() || name[i] == '.')) {
      return true;
    } else if (one.behind != std::string_view::npos && one.taken < name.size() &&
               name[one.taken] != '.') {
      i = ++one.taken;
      at = one.behind;
    } else if (any.behind != std::string_view::npos && any.taken < name.size()) {
      one = {};
      i = ++any.taken;
      at = any.behind;
    } else {
      return false;
    }
  }
}

/// Index of the named values that each name, and each prefix of a name, selects.
///
/// Cost      linear in the characters of all names times their dots, then constant per query
class selection {
 public:
  constexpr explicit selection(const vec<named_value>& values) : first_(values.size()) {
    for (int i = 0; i < static_cast<int>(values.size()); ++i) {
      add_all(values[i].name, i);
      if (!values[i].primal().empty()) add_all(values[i].primal(), i);
    }
  }
  /// Calls f(index of the value) in order; returns whether any value is selected.
  template <class F>
  constexpr bool for_each(std::string_view wanted, const F& f) const {
    const int list = first_.find(wanted);
    for (int i = list < 0 ? -1 : lists_[list].first; i >= 0; i = entries_[i].next)
      f(entries_[i].value);
    return list >= 0;
  }

 private:
  struct entry {
    int value = -1, next = -1;
  };
  struct ends {
    int first = -1, last = -1;
  };
  name_table first_;  ///< name or prefix -> list
  vec<ends> lists_;
  vec<entry> entries_;

  constexpr void add_all(std::string_view name, int value) {
    for (std::size_t end = 0; end <= name.size(); ++end)
      if (end == name.size() || name[end] == '.') add(name.substr(0, end), value);
  }
  constexpr void add(std::string_view prefix, int value) {
    const int fresh = static_cast<int>(lists_.size());
    const int list = first_.insert(prefix, fresh), at = static_cast<int>(entries_.size());
    if (list == fresh)
      lists_.push_back({at, at});
    else
      entries_[lists_[list].last].next = at;
    lists_[list].last = at;
    entries_.push_back({value, -1});
  }
};
/// Values that can be selected by name, by prefix, or by pattern.
class named_values {
 public:
  vec<named_value> list;
  std::int64_t compared = 0;  ///< number of names that queries have compared

  /// Calls f(named_value) for each value that a name selects; returns whether any is selected.
  ///
  /// Cost      one pass over all names; after several queries only the selected values. A pattern
  ///           always takes a pass
  template <class F>
  constexpr bool for_each_selected(std::string_view wanted, const F& f) {
    bool found = false;
    if (is_pattern(wanted)) {
      for (const auto& v : list)
        if (selects_pattern(wanted, v.name) ||
            (!v.primal().empty() && selects_pattern(wanted, v.primal())))
          found = true, f(v);
      return found;
    }
    if (++lookups_ > few && !selection_built_) {
      selection_ = selection(list);
      selection_built_ = true;
    }
    if (selection_built_)
      return selection_.for_each(wanted, [&](int i) {
        ++compared;
        f(list[i]);
      });
    compared += static_cast<std::int64_t>(list.size());
    for (const auto& v : list) {
      if (!selects(wanted, v.name) && (v.primal().empty() || !selects(wanted, v.primal())))
        continue;
      found = true;
      f(v);
    }
    return found;
  }

 private:
  static constexpr int few = 16;  ///< number of queries below which an index does not pay off
  int lookups_ = 0;
  bool selection_built_ = false;
  selection selection_{{}};
};

/// The values of a program whose ops have labels. For an op with nested programs, they are its
/// results.
class labelled_values {
 public:
  named_values values;

  /// Collects the values. Ops that actions added come after those of the source.
  constexpr void find(const core_program& c) {
    const label_list& labels = c.p.labels;
    vec<char> seen(static_cast<std::size_t>(labels.size()), 0);
    for (op_id o = 0; o < c.p.op_count(); ++o) {
      const std::string_view label = c.p.label(o, labels);
      if (label.empty() || seen[c.p.op(o).marks.source]) continue;
      seen[c.p.op(o).marks.source] = 1;
      const auto* control =
          c.p.op(o).def->role == op_role::control ? c.nested.control_of(o) : nullptr;
      const int count =
          control != nullptr ? static_cast<int>(control->results.size()) : c.p.op(o).result_count;
      for (int i = 0; i < count; ++i) {
        const value_id v = control != nullptr ? control->results[i] : c.p.op(o).result + i;
        places_.push_back({static_cast<int>(pool_.size()), 0});
        pool_ << c.p.result_label(o, i, count, labels);
        places_.back().size = static_cast<int>(pool_.size()) - places_.back().begin;
        values.list.push_back({{}, v, named_value::inner, -1});
      }
    }
    for (std::size_t i = 0; i < places_.size(); ++i)
      values.list[i].name = pool_.view().substr(static_cast<std::size_t>(places_[i].begin),
                                                static_cast<std::size_t>(places_[i].size));
  }

 private:
  text pool_;
  vec<text_ref> places_;
};

/// True if a name selects a tag or a labelled op of this program. Called for names that select
/// nothing after dead code is removed.
constexpr bool names_inner_value(const program& p, const label_list& labels,
                                 std::string_view wanted) {
  const auto matches = [&](std::string_view name) {
    return !name.empty() &&
           (is_pattern(wanted) ? selects_pattern(wanted, name) : selects(wanted, name));
  };
  for (op_id o = 0; o < p.op_count(); ++o) {
    if (p.is(o, op_role::tag) && matches(p.view(p.op(o).name))) return true;
    const std::string_view label = p.label(o, labels);
    for (int i = 0; !label.empty() && i < p.op(o).result_count; ++i)
      if (matches(p.result_label(o, i, p.op(o).result_count, labels))) return true;
    for (const auto& r : p.regions_of(o))
      if (names_inner_value(r, labels, wanted)) return true;
  }
  return false;
}
constexpr bool names_dead_code(const program* given, std::string_view wanted) {
  return given != nullptr && names_inner_value(*given, given->labels, wanted);
}
/// Returns the note about a tactic's entry whose name selects only dead code.
constexpr text dead_name_note(std::string_view name) {
  return concat("no output needs \"", name, "\"; it was removed, and this line does nothing");
}

}  // namespace schedule_detail

}  // namespace partita
