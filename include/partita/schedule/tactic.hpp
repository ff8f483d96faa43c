/// The interface of tactics: the values they see and the actions they issue.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include <partita/core/core_program.hpp>
#include <partita/core/stacked.hpp>
#include <partita/cost/relocate.hpp>
#include <partita/cost/settle.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/schedule/named_values.hpp>
#include <partita/schedule/search_course.hpp>
#include <partita/support/vec.hpp>

namespace partita {

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
  /// Settles the conflicts between the tactic's own layouts by cost, see settle_conflicts, and
  /// notes the choices.
  constexpr void settle() {
    if (error || postponed || !settles) return;
    std::size_t i = core_.actions.size(), settled = core_.settled.size();
    settle_conflicts(core_);
    for (int left = most_choices; i < core_.actions.size() && left-- > 0; ++i) {
      const action& a = core_.actions[i];
      note_choice(a, a.kind == action_kind::settle ? core_.settled[settled++].what.op : -1);
    }
    if (i < core_.actions.size())
      note(concat("settled by cost: ", core_.actions.size() - i, " more conflicts"));
  }
  /// Adds a note to the tactic's report that a request was not fulfilled.
  constexpr void note(text t) { notes.push_back(t); }

  failure error;
  vec<text> notes;
  search_course search;       ///< of the current tactic
  std::int64_t compared = 0;  ///< number of names that queries have compared
  bool postponed = false;     ///< true if `propagate` waits; see `amalgamated`
  bool settles = true;        ///< false if `settle` does nothing: conflicts stay
  int most_choices = 8;       ///< the number of settled conflicts that notes list
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

  /// `o`: the op that is settled, or -1.
  constexpr void note_choice(const action& a, op_id o) {
    text out("settled by cost: ");
    const text name = core_.describe(a.value);
    if (name.view().front() == '%')
      out << core_.p.op(core_.p.producer(a.value)).def->name << ' ' << name;
    else
      out << '"' << name << '"';
    out << " along ";
    core_.named.print(out, a.axis);
    if (o < 0) return note(out << " comes first");
    const int dim = core_.map.at(o, a.dim).result_dim;
    if (dim == no_dim)
      out << " is a sum";
    else
      out << " is sliced on dimension " << dim;
    note(out);
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
