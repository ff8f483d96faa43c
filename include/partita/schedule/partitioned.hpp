/// The result of `partition`.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/cost/cost.hpp>
#include <partita/cost/overlap.hpp>
#include <partita/schedule/conflict_history.hpp>
#include <partita/schedule/replicated.hpp>
#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/search_course.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The effects of one tactic.
struct tactic_report {
  text name;
  int first_action = 0, last_action = 0;  ///< [first, last) of core_program::actions
  collectives counts;                     ///< of the device-local program after this tactic, fused
  collectives counts_as_written;          ///< the same, with collectives inside loops counted once
  /// Number of open conflicts after its propagation, see partitioned::conflicts_after.
  int conflicts = 0;
  int conflict_changes = 0;  ///< length of core_program::conflict_changes at its end
  vec<text> notes;           ///< requests that could not be fulfilled
  remat_price remat;         ///< for a tactic that recomputes values
  search_course search;      ///< for a tactic that searches
};

/// One input or output of a partitioned program. The local shape is that of a full block; if the
/// dimension is uneven, it includes padding.
///
/// The name is a `text`, so that it outlives the program. In a `check`, which is a constant, it is
/// a view.
template <class Name>
struct basic_sharded_value {
  Name name;
  dtype element = dtype::f32;
  shape global_shape, local_shape;
  layout sharding;
};
using sharded_value = basic_sharded_value<text>;

namespace schedule_detail {
/// Throws P007. Not a constant expression: `check` has no value with that name.
inline sharded_value no_such_value(std::string_view what, std::string_view name, const program& p) {
  vec<std::string_view> known;
  for (int i = 0; what == "input" && i < p.input_count(); ++i) known.push_back(p.input_name(i));
  for (int i = 0; what == "output" && i < p.output_count(); ++i) known.push_back(p.output_name(i));
  throw error(concat("P007 partitioned: no ", what, " \"", name, "\"; ", known_names(name, known)));
}
}  // namespace schedule_detail

/// The dead code that `partition` removed before the first tactic.
struct dead_code {
  int ops = 0;             ///< including those of nested programs, each once
  std::int64_t flops = 0;  ///< their cost on one device without any sharding

  /// Returns the note for reports; empty if nothing was removed.
  constexpr text note() const {
    if (ops == 0) return {};
    text out("removed ");
    print_figure(out, ops);
    out << (ops == 1 ? " op" : " ops") << " that no output needs, ";
    print_figure(out, flops);
    return out << " flop";
  }
};

namespace schedule_detail {
/// Prints notes about dead code and loops of unknown length, if the program has any.
constexpr void print_notes(text& out, const dead_code& removed, const unknown_loops& unknown) {
  for (const text& note : {removed.note(), unknown.note()})
    if (!note.empty()) out << "note: " << note << '\n';
}
}  // namespace schedule_detail

/// A partitioned program: the source, the loops, the device-local program, and the effects of each
/// tactic.
struct partitioned {
  program source;  ///< without dead code
  /// The original program if it has dead code; otherwise empty. See given().
  program original;
  dead_code removed;
  /// The source as rewritten by tactics (microbatch, remat); actions refer to its values. Empty if
  /// no tactic rewrites the program.
  program rewritten;
  core_program core;
  device_program device;
  vec<collective_note> notes;  ///< the origin of each collective
  vec<tactic_report> tactics;
  partita::collectives collectives;  ///< of the device-local program
  /// The same, with collectives inside loops counted once instead of once per iteration.
  partita::collectives collectives_as_written;
  partita::cost cost;      ///< per device
  partita::passes passes;  ///< as requested
  overlapping overlap;     ///< as requested
  bool proved = false;     ///< by the function partition_options::prove, see prove/prove.hpp
  failure error;

  /// The mesh whose axis numbers loops, layouts and collectives use. Axis i of the user's mesh is
  /// number i or, if it was split, number i is its most major part. `mesh().whole()` is the user's
  /// mesh.
  constexpr const partita::mesh& mesh() const& { return device.mesh; }
  constexpr partita::mesh mesh() && { return device.mesh; }
  /// Returns the original program, dead code included.
  constexpr const program& given() const& { return original.ops.empty() ? source : original; }
  constexpr program given() && { return original.ops.empty() ? source : original; }
  /// Returns the program whose values the actions refer to.
  constexpr const program& sharded() const& { return rewritten.ops.empty() ? source : rewritten; }
  constexpr program sharded() && { return rewritten.ops.empty() ? source : rewritten; }
  /// Returns the conflicts that were open after the propagation of a tactic (counted from 0), in
  /// execution order.
  constexpr vec<conflict> conflicts_after(int tactic) const {
    vec<conflict> list;
    schedule_detail::conflict_history history(core);
    history.advance(tactics[tactic].conflict_changes);
    history.for_each(tactics[tactic].conflicts, [&](const conflict& k) { list.push_back(k); });
    return list;
  }
  /// Returns an input, by position or name. Errors: P007 no such input.
  constexpr sharded_value input(int i) const {
    if (i < 0 || i >= source.input_count())
      return schedule_detail::no_such_value("input", concat(i), source);
    return {source.input_name(i), source.input_type(i).element, source.input_type(i).shape,
            device.local.input_type(i).shape, device.inputs[i]};
  }
  constexpr sharded_value input(std::string_view name) const {
    for (int i = 0; i < source.input_count(); ++i)
      if (source.input_name(i) == name) return input(i);
    return schedule_detail::no_such_value("input", name, source);
  }
  /// Returns an output, by position or name. Errors: P007 no such output.
  constexpr sharded_value output(int i) const {
    if (i < 0 || i >= source.output_count())
      return schedule_detail::no_such_value("output", concat(i), source);
    return {source.output_name(i), source.output_type(i).element, source.output_type(i).shape,
            device.local.output_type(i).shape, device.outputs[i]};
  }
  constexpr sharded_value output(std::string_view name) const {
    for (int i = 0; i < source.output_count(); ++i)
      if (source.output_name(i) == name) return output(i);
    return schedule_detail::no_such_value("output", name, source);
  }
};

/// Returns the values that are replicated by default, largest first; see replicated_value.
constexpr vec<replicated_value> replicated_by_default(const partitioned& p) {
  return replicated_by_default(p.core);
}

}  // namespace partita
