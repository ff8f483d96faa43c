/// Ops at the edges of an iteration over microbatches, whose body stands in line.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// What goes into an iteration or out of it; its type is the one that is declared.
template <int Operands>
struct crosses_iteration {
  static constexpr int operand_count = Operands;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
};

/// What crosses as it is.
///
/// Tile map  ([i]) -> ([i])
struct crosses_whole : crosses_iteration<1> {
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d);
  }
};

/// What enters an iteration: slice i of a stack (n, ...), in the call for microbatch i.
///
/// Tile map  ([n, i]) -> ([i]), the stack's first dimension whole
struct microbatch_slice : crosses_iteration<1> {
  static constexpr std::string_view name = "microbatch_slice";
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d + 1);
  }
};
/// The number of the iteration, an i32.
struct microbatch_index : crosses_iteration<0> {
  static constexpr std::string_view name = "microbatch_index";
};
/// What the iteration before has left of a state, the first one what is given; the attribute is the
/// number of the state.
struct microbatch_state : crosses_whole {
  static constexpr std::string_view name = "microbatch_state";
};
/// What an iteration leaves of the state with this number to the next one.
struct microbatch_next : crosses_whole {
  static constexpr std::string_view name = "microbatch_next";
  static constexpr bool identity = true;
};
/// What the last iteration leaves of a state.
struct microbatch_last : crosses_whole {
  static constexpr std::string_view name = "microbatch_last";
  static constexpr bool identity = true;
};
/// What all iterations use, made ready in front of them: it lies as they need it.
struct microbatch_keep : crosses_whole {
  static constexpr std::string_view name = "microbatch_keep";
  static constexpr bool identity = true;
};
/// What leaves all iterations combined: their sum, or what the attribute (a combiner) says;
/// `stack`: they all give the same.
struct microbatch_sum : crosses_whole {
  static constexpr std::string_view name = "microbatch_sum";
  static constexpr bool identity = true;
};
/// What leaves them stacked, by their number: (n, ...).
///
/// Tile map  ([i]) -> ([n, i]), the stack's first dimension whole
struct microbatch_stack : crosses_iteration<1> {
  static constexpr std::string_view name = "microbatch_stack";
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 1; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d - 1);
  }
};

}  // namespace partita::op
