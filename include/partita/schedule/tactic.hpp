/// What a tactic may see and do.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include <partita/core/core_program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A value that tactics can refer to by name.
struct named_value {
  enum kind_type : std::uint8_t { input, tag, output };
  std::string_view name;
  value_id value = -1;
  kind_type kind = input;
  value_id state =
      -1;  ///< of an output with the name of an input: that input, whose next state it is
};

namespace detail {
/// Does a name in a tactic select a value: its own name, or a prefix of it that ends at a dot?
constexpr bool selects(std::string_view wanted, std::string_view name) {
  return name.substr(0, wanted.size()) == wanted &&
         (name.size() == wanted.size() || name[wanted.size()] == '.');
}
}  // namespace detail

/// Handed to a tactic: the program with its named values, and the three actions.
///
/// A mistake ends the schedule: later actions do nothing, and `partition` reports the first one.
class tactic_context {
 public:
  constexpr explicit tactic_context(core_program& c) : core_(c) {
    const program& p = c.p;
    name_table inputs(p.inputs.size());
    for (int i = 0; i < p.input_count(); ++i) {
      const value_id v = p.inputs[i];
      inputs.insert(p.input_name(i), v);
      names_.push_back({p.input_name(i), v, named_value::input, -1});
    }
    for (op_id o = 0; o < p.op_count(); ++o)
      if (p.is(o, op_role::tag))
        names_.push_back({p.view(p.op(o).name), p.op(o).result, named_value::tag, -1});
    for (int i = 0; i < p.output_count(); ++i)
      names_.push_back({p.output_name(i), p.outputs[i].value, named_value::output,
                        inputs.find(p.output_name(i))});
  }

  /// Inputs, then tags, then outputs, each in program order.
  constexpr const vec<named_value>& values() const { return names_; }
  /// As the user gave it, for the numbers of axes that actions take.
  constexpr const partita::mesh& mesh() const { return core_.named.mesh; }
  constexpr const core_program& core() const { return core_; }
  constexpr const shape& global_shape(value_id v) const { return core_.true_shape(v); }
  /// The axes in a layout are those of core().mesh: axis i may be the most major part only of what
  /// is axis i here.
  constexpr layout layout_of(value_id v) const { return core_.made(core_.holder(v)); }
  /// Of the piece on one device, with its padding.
  constexpr shape local_shape(value_id v) const {
    return layout_of(v).local(core_.p.type(core_.holder(v)).shape, core_.mesh);
  }

  /// The dimension that a value is sliced on along all of an axis, or -1.
  constexpr int dim_of(value_id v, int axis) const { return core_.dim_of(v, axis); }
  /// Is a value sliced along an axis or a part of it?
  constexpr bool is_tiled(value_id v, int axis) const { return core_.is_tiled(v, axis); }
  /// Number of positions of an axis or sub-axis.
  constexpr std::int64_t axis_size(int axis) const { return core_.named.size(axis); }

  /// Number of an axis of the mesh, or of a sub-axis, `A:(pre)size`: behind a major part of `pre`
  /// positions, `size` positions. Numbers stay when axes are split. Gives -1 with an error.
  ///
  /// Errors    S001 unknown axis, S021 not a sub-axis, S022 it does not divide the axis
  constexpr int axis(std::string_view name) { return core_.named.find(name, "tactic", error); }
  constexpr void tile(value_id v, int dim, int axis, uneven policy = uneven::unsaid) {
    if (valid(v, axis)) error.record(core_.tile(v, dim, axis, policy));
  }
  constexpr void atomic(value_id v, int axis) {
    if (valid(v, axis)) error.record(core_.atomic(v, axis));
  }
  constexpr void propagate() {
    if (!error && !postponed) core_.propagate();
  }
  /// Says in the tactic's report that a value stays as it is although it was asked for.
  constexpr void note(text t) { notes.push_back(t); }

  failure error;
  vec<text> notes;
  bool postponed = false;  ///< does `propagate` wait? See `amalgamated`.

 private:
  /// Errors    S001 no such axis, S006 no such value
  constexpr bool valid(value_id v, int axis) {
    if (axis < 0 || axis >= core_.named.count())
      error.record("S001", "tactic: the mesh has no axis ", axis, "; it has ", core_.named.count());
    if (v < 0 || v >= core_.p.value_count())
      error.record("S006", "tactic: the program has no value ", v);
    return !error;
  }

  core_program& core_;
  vec<named_value> names_;
};

/// Anything with a name that issues actions. It must be usable in constant evaluation for `check`.
template <class T>
concept Tactic = requires(const std::remove_cvref_t<T>& t, tactic_context& c) {
  { t.name() } -> std::convertible_to<std::string_view>;
  t.apply(c);
};

}  // namespace partita
