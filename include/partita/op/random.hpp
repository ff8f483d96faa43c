/// random_bits: a counter-based random number generator.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Generates 64 random bits for each pair of a key and a counter with Threefry-2x32 and 20 rounds.
/// The key and counter words are the high and the low 32 bits of the operands, in this order; the
/// first output word is the high half of the result. Equal operands yield equal bits on every
/// device.
///
/// (StableHLO's rng_bit_generator takes and returns a state. Here the counters are an operand, so
/// each device computes only its own elements.)
///
/// Shapes    key (i, ...), counter (i, ...) -> (i, ...), of i64; equal, or rank 0
/// Tile map  ([i], [i]) -> ([i])
/// Cost      77 integer operations per element, counted as flops
/// Errors    S103 shapes differ, S121 an operand is not of i64
/// Source    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011
struct random_bits : elementwise_op {
  static constexpr std::string_view name = "random_bits";
  static constexpr bool costly = true;
  static constexpr int operand_count = 2;
  static constexpr void infer(infer_context& c) {
    for (std::size_t i = 0; i < c.operands.size(); ++i)
      if (c.operands[i].element != dtype::i64)
        c.fail("S121", name, ": the ", std::string_view(i == 0 ? "key" : "counter"),
               " has element type ", name_of(c.operands[i].element), "; i64 is needed");
    c.result = {dtype::i64, elementwise_shape(c, name)};
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    return saturating_multiply(77, c.result.shape.elements());  // 20 rounds of 3, 6 keys of 2 or 3
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::random_bits)
}  // namespace partita

namespace partita::ops {

constexpr value_id random_bits(builder& b, value_id key, value_id counter) {
  return b.emit(def<op::random_bits>, {key, counter});
}

}  // namespace partita::ops
