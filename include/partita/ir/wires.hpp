/// Wires: how values pass into and out of the nested programs of an op.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/span.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// One end of a wire: an operand or a result of the op, or an input or an output of a nested
/// program.
struct wire_end {
  enum kind_type : std::uint8_t { operand, result, input, output };
  kind_type kind = operand;
  int region = -1;  ///< for inputs and outputs
  int index = 0;
  /// Number of leading dimensions that the other ends do not have: a scan takes slices of its
  /// operand.
  int shift = 0;
};

/// Values that are the same tensor, or slices of it, and therefore have the same layout.
struct wire {
  vec<wire_end> ends;
};

/// An integer that an analysis may know, shared by all elements of its tensor. `bits` is encoded as
/// the attribute of `constant`.
struct known_integer {
  bool known = false;
  std::int64_t bits = 0;
};

/// The wires of an op, filled in by op_def::wires.
///
/// Law       every operand, every result, and every input and output of a nested program is an end
///           of exactly one wire.
struct wire_list {
  vec<wire> wires;
  /// The number of runs of the nested programs for each run of the op. If the number is unknown
  /// (`unknown_trips`), the loop counts as one iteration. The condition of a `while` counts as part
  /// of an iteration, although it runs once more.
  std::int64_t trips = 1;
  bool unknown_trips = false;
  bool branches = false;  ///< true if only one of the nested programs runs
  /// Set by the caller: known values of the inputs of the program around the op, by input. It may
  /// be shorter than the inputs, or empty.
  span<const known_integer> inputs;

  constexpr wire_list& add() {
    wires.push_back({});
    return *this;
  }
  constexpr wire_list& operand(int i, int shift = 0) {
    return end({wire_end::operand, -1, i, shift});
  }
  constexpr wire_list& result(int i, int shift = 0) {
    return end({wire_end::result, -1, i, shift});
  }
  constexpr wire_list& input(int region, int i) { return end({wire_end::input, region, i, 0}); }
  constexpr wire_list& output(int region, int i) { return end({wire_end::output, region, i, 0}); }

 private:
  constexpr wire_list& end(wire_end e) {
    wires.back().ends.push_back(e);
    return *this;
  }
};

}  // namespace partita
