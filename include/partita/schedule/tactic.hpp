/// The interface of tactics: the values they see and the actions they issue.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include <partita/core/core_program.hpp>
#include <partita/core/stacked.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/schedule/search_course.hpp>
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
}  // namespace schedule_detail

namespace schedule_detail {

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

class tactic_context;

/// The tactics after one that searches; their effects are part of the costs that it minimizes.
struct following_tactics {
  /// Applies the tactics in order.
  virtual constexpr void apply(tactic_context& c) const = 0;

 protected:
  constexpr ~following_tactics() = default;  // (GCC 12 rejects a virtual one as undefined)
};

/// The argument of a tactic: the program with its named values, and the three actions.
///
/// An error ends the schedule: later actions do nothing, and `partition` reports the first error.
class tactic_context {
 public:
  constexpr explicit tactic_context(core_program& c) : core_(c) {
    const program& p = c.p;
    name_table inputs(p.inputs.size());
    for (int i = 0; i < p.input_count(); ++i) {
      const value_id v = p.inputs[i];
      inputs.insert(p.input_name(i), v);
      names_.list.push_back({p.input_name(i), v, named_value::input, -1});
    }
    for (op_id o = 0; o < p.op_count(); ++o)
      if (p.is(o, op_role::tag))
        names_.list.push_back({p.view(p.op(o).name), p.op(o).result, named_value::tag, -1});
    for (int i = 0; i < p.output_count(); ++i)
      names_.list.push_back({p.output_name(i), p.outputs[i].value, named_value::output,
                             inputs.find(p.output_name(i))});
  }

  /// Returns inputs, then tags, then outputs, each in program order.
  constexpr const vec<named_value>& values() const { return names_.list; }
  /// Returns the values in between that have names (see program::labels), in program order.
  constexpr const vec<named_value>& inner_values() { return inner().list; }
  /// Calls f(named_value) for each value that a name selects: the value with that name and those
  /// below it ("params" selects "params.w1"), or every value that matches a pattern ("params.*.w").
  /// If no input, tag or output is selected, it selects inner values. Returns whether any value is
  /// selected.
  ///
  /// Cost      one pass over all names; after several queries only the selected values. A pattern
  ///           always takes a pass
  template <class F>
  constexpr bool for_each_selected(std::string_view wanted, const F& f) {
    const bool found = names_.for_each_selected(wanted, f);
    compared += names_.compared;
    names_.compared = 0;
    return found || (!core_.p.labels.empty() && inner().for_each_selected(wanted, f));
  }
  /// Returns the user's mesh, whose axis numbers actions use.
  constexpr const partita::mesh& mesh() const { return core_.named.mesh; }
  /// Returns the program that actions change.
  constexpr const core_program& core() const { return core_; }
  /// Returns the unsharded shape of a value, without padding.
  constexpr const shape& global_shape(value_id v) const { return core_.true_shape(v); }
  /// Returns the layout of a value. Its axes are those of core().mesh, where axis i may be only the
  /// most major part of the user's axis i.
  constexpr layout layout_of(value_id v) const { return core_.produced_layout(core_.holder(v)); }
  /// Returns the shape of the block on one device, with padding.
  constexpr shape local_shape(value_id v) const {
    return layout_of(v).local(core_.p.type(core_.holder(v)).shape, core_.mesh);
  }

  /// True if the value is a stack of layers, or belongs to one; see stacked_values.
  constexpr bool is_stacked(value_id v) {
    if (!stacks_found_) stacks_ = stacked_values(core_);
    stacks_found_ = true;
    return v < static_cast<value_id>(stacks_.size()) && stacks_[v] != 0;
  }
  /// Returns the dimension that is sliced along all of an axis, or -1.
  constexpr int dim_of(value_id v, int axis) const { return core_.dim_of(v, axis); }
  /// True if the value is sliced, or kept replicated, along an axis or a part of it.
  constexpr bool is_placed(value_id v, int axis) const { return core_.is_placed(v, axis); }
  /// True if the value is sliced along an axis or a part of it.
  constexpr bool is_tiled(value_id v, int axis) const { return core_.is_tiled(v, axis); }
  /// Returns the number of positions of an axis or sub-axis.
  constexpr std::int64_t axis_size(int axis) const { return core_.named.size(axis); }

  /// Returns the number of an axis of the mesh, or of a sub-axis `A:(pre)size`, which has `size`
  /// positions inside a major part of `pre` positions. Numbers stay valid when axes are split.
  /// Returns -1 after an error.
  ///
  /// Errors    S001 unknown axis, S021 not a sub-axis, S022 it does not divide the axis
  constexpr int axis(std::string_view name) { return core_.axis(name, "tactic", error); }
  /// Slices a dimension of a value along an axis.
  constexpr void tile(value_id v, int dim, int axis, uneven policy = uneven::unsaid) {
    if (valid(v, axis)) error.record(core_.tile(v, dim, axis, policy));
  }
  /// Keeps a value replicated along an axis.
  constexpr void atomic(value_id v, int axis) {
    if (valid(v, axis)) error.record(core_.atomic(v, axis));
  }
  /// Propagates all loops through the program.
  constexpr void propagate() {
    if (!error && !postponed) core_.propagate();
  }
  /// Adds a note to the tactic's report that a request was not fulfilled.
  constexpr void note(text t) { notes.push_back(t); }

  failure error;
  vec<text> notes;
  search_course search;       ///< of the current tactic
  std::int64_t compared = 0;  ///< number of names that queries have compared
  bool postponed = false;     ///< true if `propagate` waits; see `amalgamated`
  /// The pipeline that runs the program once per microbatch.
  const staged_program* staged = nullptr;
  /// For tactics that search; null if no tactic follows.
  const following_tactics* following = nullptr;
  const program* given = nullptr;  ///< the original program, if dead code was removed from it

 private:
  /// Errors    S001 no such axis, S006 no such value
  constexpr bool valid(value_id v, int axis) {
    if (axis < 0 || axis >= core_.named.count())
      error.record("S001", "tactic: the mesh has no axis ", axis, "; it has ", core_.named.count());
    if (v < 0 || v >= core_.p.value_count())
      error.record("S006", "tactic: the program has no value ", v);
    return !error;
  }

  constexpr schedule_detail::named_values& inner() {
    if (!inner_found_) inner_.find(core_);
    inner_found_ = true;
    return inner_.values;
  }

  core_program& core_;
  schedule_detail::named_values names_;
  schedule_detail::labelled_values inner_;
  bool inner_found_ = false;
  vec<char> stacks_;  ///< by value, without those added later; empty if the program has no stacks
  bool stacks_found_ = false;
};

/// A type with a name that issues actions. It must be usable in constant evaluation for `check`.
template <class T>
concept Tactic = requires(const std::remove_cvref_t<T>& t, tactic_context& c) {
  { t.name() } -> std::convertible_to<std::string_view>;
  t.apply(c);
};

}  // namespace partita
