/// Loop nests, actions and conflicts: the vocabulary of PartIR:Core.
#pragma once

#include <cstdint>

#include <partita/core/uneven.hpp>
#include <partita/ir/program.hpp>

namespace partita {

/// Stands, in place of a factor, for `any`: the loop slices nothing and keeps its op replicated.
inline constexpr int any_factor = -1;

/// One loop around an op: `loop "axis" [what becomes of the result]`, over one factor of its tile
/// map.
struct loop {
  int factor = any_factor;  ///< an op has as many as its operands have dimensions
  int tactic = 0;           ///< which tactic introduced it
  std::int8_t axis = 0;     ///< below max_axes
};

/// The loops around an op, outermost first. No axis occurs twice.
struct nest {
  loop loops[max_axes] = {};
  int count = 0;

  constexpr const loop* begin() const { return loops; }
  constexpr const loop* end() const { return loops + count; }
  constexpr const loop* find(int axis) const {
    for (int i = 0; i < count; ++i)
      if (loops[i].axis == axis) return &loops[i];
    return nullptr;
  }
  constexpr void push_back(int axis, int factor, int tactic) {
    loops[count].axis = static_cast<std::int8_t>(axis);
    loops[count].factor = factor;
    loops[count].tactic = tactic;
    ++count;
  }
};

/// A use of a value as an operand.
struct use {
  op_id op = -1;
  int operand = -1;
};

/// The only ways to change a partitioning.
enum class action_kind : std::uint8_t { tile, atomic, propagate };

/// One recorded action. Values are numbered as in the flat source program.
struct action {
  action_kind kind = action_kind::propagate;
  value_id value = -1;  ///< in the flat source program
  int dim = -1;
  int axis = -1;  ///< a number of core_program::named
  int tactic = 0;
  partita::uneven uneven = partita::uneven::unsaid;  ///< of a `tile`
};

/// Why an op was left without a loop over an axis.
enum class conflict_kind : std::uint8_t {
  several,     ///< evidence supports more than one entry of the tile map
  indivisible  ///< the axis does not divide what is left of the only factor that matches
};

/// Where the evidence for a tile-map entry comes from.
struct evidence {
  int factor = any_factor;
  int operand = -1;  ///< operand index, or -1 for the uses of the result
};

struct conflict {
  op_id op = -1;
  int axis = -1;  ///< of the user's mesh
  conflict_kind kind = conflict_kind::several;
  evidence first, second;
  int tactic = 0;                   ///< during which tactic it was found
  std::int64_t pre = 1, size = -1;  ///< which part of the axis

  constexpr sub_axis where() const { return {axis, pre, size}; }
};

}  // namespace partita
