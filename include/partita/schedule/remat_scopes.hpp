/// The ops that the names of a remat tactic select.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/repeat_scopes.hpp>
#include <partita/ir/wires.hpp>
#include <partita/schedule/tactic.hpp>
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

/// Finds the scopes of one program.
///
/// An op belongs to the scope whose name its label starts with. It also belongs to a scope if only
/// that scope or the derivative needs it, and either it is an unlabelled op of a program with
/// labels, or it is computed from scalars alone. Tags delimit a range of ops: everything that the
/// program computes from the first value with a name of the scope to the last one, inclusive.
///
/// An input selects the ops of the model that read it, extended in both directions to the narrowest
/// positions: the positions across which the fewest bytes pass from earlier to later ops. The range
/// does not extend across an op that reads another input. (If no other scope follows, the range
/// ends at the first positions that are as narrow as its start.) Constants and ops of derivatives
/// belong to no scope.
class scope_finder {
 public:
  /// `inputs` are the names of the program's inputs; an empty name means that the input has no
  /// name.
  constexpr scope_finder(const program& p, const vec<std::string_view>& inputs,
                         const label_list& labels, scope_names& names)
      : p_(p), inputs_(inputs), labels_(labels), names_(names) {
    plan_.scope.resize(p.ops.size(), -1);
    plan_.derived.resize(p.ops.size(), 0);
    plan_.named.resize(p.ops.size(), 0);
    in_model_.resize(p.ops.size(), 0);
  }

  constexpr repeat_plan run() {
    find_derived();
    find_labelled();
    find_tagged();
    find_around_inputs();
    if (names_.count() > 0) take_steps();
    plan_.scopes = names_.count();
    return static_cast<repeat_plan&&>(plan_);
  }

 private:
  /// The range of ops [first, last] that delimits a scope.
  struct stretch {
    int scope = -1;
    op_id first = -1, last = -1;
  };

  const program& p_;
  const vec<std::string_view>& inputs_;
  const label_list& labels_;
  scope_names& names_;
  repeat_plan plan_;

  /// By op: true if a derivative needs it or it reads a value that is needed (a loss may not be
  /// needed itself), and it is not part of a derivative.
  vec<char> in_model_;

  constexpr bool in_model(op_id o) const { return in_model_[o] != 0; }
  constexpr void take(op_id o, int scope) {
    if (in_model(o) && plan_.scope[o] < 0) plan_.scope[o] = scope;
  }

  /// Finds the ops that derivatives add or recompute, the ops that depend on these (an optimizer),
  /// and the ops that these need.
  constexpr void find_derived() {
    vec<char> needed(p_.types.size(), 0), derives(p_.ops.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_marks& m = p_.ops[o].marks;
      derives[o] = m.transposed > 0 || m.again || p_.label(o, labels_).substr(0, 5) == "grad.";
      bool derived = derives[o] != 0;
      for (value_id v : p_.operands(o)) derived = derived || plan_.derived[p_.producers[v]] != 0;
      plan_.derived[o] = derived;
    }
    for (op_id o = p_.op_count(); o-- > 0;) {
      const op_node& n = p_.ops[o];
      bool reaches = derives[o] != 0;
      for (int r = 0; r < n.result_count; ++r) reaches = reaches || needed[n.result + r] != 0;
      if (!reaches) continue;
      in_model_[o] = plan_.derived[o] == 0 && n.def->role != op_role::parameter;
      for (value_id v : p_.operands(o)) needed[v] = 1;
    }
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o))
        if (plan_.derived[o] == 0 && in_model_[p_.producers[v]] != 0) in_model_[o] = 1;
  }

  // ---- Labels -----------------------------------------------------------------------------------

  constexpr void find_labelled() {
    if (labels_.empty()) return;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const std::string_view label = p_.label(o, labels_);
      if (label.empty()) continue;
      const int s = names_.of(label);
      if (!in_model(o)) continue;
      plan_.scope[o] = s;
    }
  }
  // ---- Tags -------------------------------------------------------------------------------------

  constexpr void find_tagged() {
    vec<stretch> list;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!p_.is(o, op_role::tag)) continue;
      const op_id made = p_.producers[p_.operand(o, 0)];
      const int s = names_.of(p_.view(p_.ops[o].name));
      if (s < 0 || !in_model(o)) continue;
      mark(list, s, in_model(made) ? made : o, o);
      plan_.named[made] = plan_.named[o] = 1;
    }
    note_overlaps(list);
    for (const stretch& each : list)
      for (op_id o = each.first; o <= each.last; ++o) take(o, each.scope);
  }
  /// Notes overlapping ranges; `list` is ordered by first op.
  constexpr void note_overlaps(const vec<stretch>& list) {
    vec<std::int64_t> width(names_.found.size(), 0);
    for (const stretch& each : list)
      width[names_.entry_of[each.scope]] += each.last - each.first + 1;
    const stretch* longest = nullptr;  // the range so far that ends last
    for (const stretch& each : list) {
      if (longest != nullptr && each.first <= longest->last)
        names_.note_overlap(each.scope, longest->scope, width);
      if (longest == nullptr || each.last > longest->last) longest = &each;
    }
  }
  /// Extends the range of a scope. The search starts at the end of the list, because tags of one
  /// scope usually follow each other.
  static constexpr void mark(vec<stretch>& list, int scope, op_id first, op_id last) {
    for (std::size_t i = list.size(); i-- > 0;)
      if (list[i].scope == scope) {
        if (first < list[i].first) list[i].first = first;
        if (last > list[i].last) list[i].last = last;
        return;
      }
    list.push_back({scope, first, last});
  }

  // ---- Inputs -----------------------------------------------------------------------------------

  constexpr void find_around_inputs() {
    vec<int> scope_of(p_.types.size(), -1);  // by input
    vec<char> other(p_.types.size(), 0);     // by input: an argument of no scope
    bool any = false;
    for (int i = 0; i < p_.input_count(); ++i) {
      const int s = inputs_[i].empty() ? -1 : names_.of(inputs_[i]);
      scope_of[p_.inputs[i]] = s;
      other[p_.inputs[i]] = s < 0 && !inputs_[i].empty();
      any = any || s >= 0;
    }
    if (!any) return;
    vec<int> place(static_cast<std::size_t>(names_.count()), -1);  // by scope: its range
    vec<stretch> list;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!in_model(o)) continue;
      for (value_id v : p_.operands(o)) {
        if (scope_of[v] < 0) continue;
        int& at = place[scope_of[v]];
        if (at < 0) {
          at = static_cast<int>(list.size());
          list.push_back({scope_of[v], o, o});
        }
        list[at].last = o;
      }
    }
    note_overlaps(list);
    take_between(joined(list), other, waiting_bytes());
  }
  /// Joins overlapping ranges; the ranges are ordered by first op.
  static constexpr vec<stretch> joined(const vec<stretch>& list) {
    vec<stretch> out;
    for (const stretch& each : list)
      if (out.empty() || each.first > out.back().last)
        out.push_back(each);
      else if (each.last > out.back().last)
        out.back().last = each.last;
    return out;
  }
  /// Returns, by op, the bytes that earlier ops of the model computed and that this op or later
  /// ones read.
  constexpr vec<std::int64_t> waiting_bytes() const {
    vec<op_id> last(p_.types.size(), -1);
    vec<char> constant(p_.types.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      bool free = p_.is(o, op_role::compute);
      for (value_id v : p_.operands(o)) {
        free = free && constant[v] != 0;
        if (plan_.derived[o] == 0) last[v] = o;
      }
      for (int r = 0; r < p_.ops[o].result_count; ++r) constant[p_.ops[o].result + r] = free;
    }
    vec<std::int64_t> more(p_.ops.size() + 1, 0), sum(p_.ops.size() + 1, 0);
    for (value_id v = 0; v < p_.value_count(); ++v) {
      const op_id made = p_.producers[v];
      if (last[v] < 0 || constant[v] != 0 || !in_model(made)) continue;
      more[made + 1] = saturating_add(more[made + 1], p_.types[v].bytes());
      more[last[v] + 1] -= p_.types[v].bytes();
    }
    std::int64_t now = 0;
    for (std::size_t o = 0; o < more.size(); ++o) sum[o] = now = saturating_add(now, more[o]);
    return sum;
  }
  constexpr void take_between(const vec<stretch>& list, const vec<char>& other,
                              const vec<std::int64_t>& waiting) {
    vec<int> reader(p_.types.size(), -1);  // by input: the last range that reads it
    const auto reads_another = [&](op_id o, int stretch) {
      for (value_id v : p_.operands(o))
        if (in_model(o) && other[v] != 0 && reader[v] != stretch) return true;
      return false;
    };
    op_id model_end = p_.op_count();
    while (model_end > 0 && !in_model(model_end - 1)) --model_end;
    op_id free_from = 0;  // the first op after all previous scopes
    for (std::size_t i = 0; i < list.size(); ++i) {
      const stretch& each = list[i];
      for (op_id o = each.first; o <= each.last; ++o)
        for (value_id v : p_.operands(o)) reader[v] = static_cast<int>(i);
      const op_id next = i + 1 < list.size() ? list[i + 1].first : model_end;
      op_id from = each.first;
      while (from > free_from && !reads_another(from - 1, static_cast<int>(i))) --from;
      op_id to = each.last + 1;
      while (to < next && !reads_another(to, static_cast<int>(i))) ++to;
      const bool meets = i + 1 < list.size() && to == next;
      const op_id begin = i > 0 && from == free_from ? from : narrowest(from, each.first, waiting),
                  end = meets ? narrowest(each.last + 1, to, waiting)
                              : as_narrow(each.last + 1, to, waiting, waiting[begin]);
      for (op_id o = begin; o < end; ++o) take(o, each.scope);
      free_from = end;
    }
  }
  /// Returns the last op of [from, to] before which the fewest bytes are waiting.
  static constexpr op_id narrowest(op_id from, op_id to, const vec<std::int64_t>& waiting) {
    op_id best = from;
    for (op_id o = from; o <= to; ++o)
      if (waiting[o] <= waiting[best]) best = o;
    return best;
  }
  /// Returns the end of the first run of ops with at most `enough` bytes waiting before each op, or
  /// the narrowest op if no op qualifies.
  static constexpr op_id as_narrow(op_id from, op_id to, const vec<std::int64_t>& waiting,
                                   std::int64_t enough) {
    for (op_id o = from; o <= to; ++o) {
      if (waiting[o] > enough) continue;
      while (o < to && waiting[o + 1] <= enough) ++o;
      return o;
    }
    return narrowest(from, to, waiting);
  }

  // ---- Steps ------------------------------------------------------------------------------------

  /// Adds ops that only one scope needs, if they are unlabelled or computed from scalars alone (a
  /// dropout mask). Users are visited first.
  constexpr void take_steps() {
    constexpr int nothing = -1, several = -2;
    const vec<char> light = of_scalars();
    vec<int> user(p_.types.size(), nothing);  // by value: the scope of all its users
    for (const auto& out : p_.outputs) user[out.value] = several;
    for (op_id o = p_.op_count(); o-- > 0;) {
      const op_node& n = p_.ops[o];
      int s = user[n.result];
      for (int r = 1; r < n.result_count; ++r)
        if (user[n.result + r] != s) s = several;
      if (s >= 0 && in_model(o) && light[o] != 0)
        plan_.scope[o] = s;
      else if (s >= 0 && n.def->role == op_role::compute && is_step(o))
        take(o, s);
      if (plan_.derived[o] != 0) continue;
      const int mine = plan_.scope[o] < 0 ? several : plan_.scope[o];
      for (value_id v : p_.operands(o))
        user[v] = user[v] == nothing || user[v] == mine ? mine : several;
    }
  }
  constexpr bool is_step(op_id o) const { return !labels_.empty() && p_.label(o, labels_).empty(); }
  /// Returns, by op, true if it is computed from constants and single-element values alone.
  constexpr vec<char> of_scalars() const {
    vec<char> light(p_.ops.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.ops[o];
      bool all = n.def->role == op_role::compute || n.def->role == op_role::control;
      for (value_id v : p_.operands(o))
        all = all && (light[p_.producers[v]] != 0 || p_.types[v].shape.elements() == 1);
      light[o] = all;
    }
    return light;
  }
};

}  // namespace partita::schedule_detail
