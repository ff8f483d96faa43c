/// Wires: how values pass into and out of the nested programs of an op.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// One end of a wire: an operand or a result of the op, an input or an output of a nested program.
struct wire_end {
  enum kind_type : std::uint8_t { operand, result, input, output };
  kind_type kind = operand;
  int region = -1;  ///< of inputs and outputs
  int index = 0;
  /// Leading dimensions that the other ends do not have: a scan takes slices of its operand.
  int shift = 0;
};

/// Values that are the same tensor, or slices of it, and so lie on the mesh alike.
struct wire {
  vec<wire_end> ends;
};

/// Filled by op_def::wires. Law: every operand, every result, every input and every output of a
/// nested program is an end of exactly one wire.
struct wire_list {
  vec<wire> wires;
  std::int64_t trips = 1;  ///< how often the nested programs run, as far as the op tells
  bool branches = false;   ///< does only one of them run?

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
