/// Ops at the boundary of an iteration over microbatches, whose body is inlined.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Base of ops that move a value into or out of an iteration. The result type is the declared one.
template <int Operands>
struct crosses_iteration {
  static constexpr int operand_count = Operands;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
};

/// Base of ops that move a value without changing its shape.
///
/// Tile map  ([i]) -> ([i])
struct crosses_whole : crosses_iteration<1> {
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d);
  }
};

/// Reads slice i of a stack (n, ...), in the call for microbatch i.
///
/// Tile map  ([n, i]) -> ([i]); the stack's first dimension cannot be sharded
struct microbatch_slice : crosses_iteration<1> {
  static constexpr std::string_view name = "microbatch_slice";
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d + 1);
  }
};
/// The iteration number, an i32.
struct microbatch_index : crosses_iteration<0> {
  static constexpr std::string_view name = "microbatch_index";
};
/// Reads a state from the previous iteration; the first iteration reads the operand. The attribute
/// is the number of the state.
struct microbatch_state : crosses_whole {
  static constexpr std::string_view name = "microbatch_state";
};
/// Passes the state with this number to the next iteration.
struct microbatch_next : crosses_whole {
  static constexpr std::string_view name = "microbatch_next";
  static constexpr bool identity = true;
};
/// Returns a state after the last iteration.
struct microbatch_last : crosses_whole {
  static constexpr std::string_view name = "microbatch_last";
  static constexpr bool identity = true;
};
/// Prepares a value that all iterations use, before the first one, with the sharding that they
/// need.
struct microbatch_keep : crosses_whole {
  static constexpr std::string_view name = "microbatch_keep";
  static constexpr bool identity = true;
};
/// Combines a value of all iterations: by addition, or by the attribute (a combiner). `stack` means
/// that all iterations return the same value.
struct microbatch_sum : crosses_whole {
  static constexpr std::string_view name = "microbatch_sum";
  static constexpr bool identity = true;
};
/// Stacks a value of all iterations by iteration number: (n, ...).
///
/// Tile map  ([i]) -> ([n, i]); the stack's first dimension cannot be sharded
struct microbatch_stack : crosses_iteration<1> {
  static constexpr std::string_view name = "microbatch_stack";
  static constexpr void tile_map(tile_map_context& c) {
    for (int d = 1; d < c.result.shape.rank; ++d) c.tile(c.result.shape[d], d).operand(0, d - 1);
  }
};

}  // namespace partita::op
