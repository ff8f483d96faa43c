/// reduce_precision: rounds numbers to a narrower floating-point format.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Rounds to the nearest number of a format with the given exponent and mantissa bits; ties go to
/// the even one. Overflow becomes infinity, and values below the format's normal numbers become
/// zero. The element type does not change; a format with at least as many bits as the type changes
/// nothing. NaN stays NaN. Attributes: exponent_bits, mantissa_bits.
///
/// Errors    S104 not a floating-point type, S143 too few bits
/// Source    as XLA computes it
struct reduce_precision : elementwise_op {
  static constexpr std::string_view name = "reduce_precision";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) {
    need_floating(c, name);
    c.result = c.operands[0];
    if (c.attrs.size() != 2)
      return c.fail("S143", "reduce_precision: ", c.attrs.size(),
                    " numbers; those of exponent and mantissa bits are needed");
    if (c.attrs[0] < 1 || c.attrs[1] < 0)
      c.fail("S143", "reduce_precision: ", c.attrs[0], " exponent bits and ", c.attrs[1],
             " mantissa bits; at least 1 and 0 are needed");
  }
  /// Rounds the cotangent to the same format (as in JAX).
  static constexpr void derive(derive_context& c) {
    const auto attrs = c.b.p.attrs(c.op);
    c.operands[0] = ops::reduce_precision(c.b, c.cotangent, attrs[0], attrs[1]);
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("exponent_bits");
    f.number("mantissa_bits");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::reduce_precision)
}  // namespace partita

namespace partita::ops {

constexpr value_id reduce_precision(builder& b, value_id x, std::int64_t exponent_bits,
                                    std::int64_t mantissa_bits) {
  return b.emit(def<op::reduce_precision>, {x}, {exponent_bits, mantissa_bits});
}

}  // namespace partita::ops
