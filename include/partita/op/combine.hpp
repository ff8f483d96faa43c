/// Combiners as ops: how the results of a loop's iterations are joined, and the initial value.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/op/arithmetic.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>

namespace partita {

/// Returns the binary op that implements `combine`, which must not be `stack`.
constexpr const op_def& combining_op(combiner combine) {
  switch (combine) {
    case combiner::max:
      return def<op::maximum>;
    case combiner::min:
      return def<op::minimum>;
    case combiner::multiply:
      return def<op::multiply>;
    case combiner::logical_and:
      return def<op::logical_and>;
    case combiner::logical_or:
      return def<op::logical_or>;
    case combiner::add:
    case combiner::stack:
      break;
  }
  return def<op::add>;
}

/// Returns the identity element of a combiner, as the attribute of a `constant`.
///
/// Law       combine(identity, x) = x for every x of the type
constexpr std::int64_t identity_bits(combiner combine, dtype t) {
  const double infinite = std::bit_cast<double>(std::int64_t{0x7ff} << 52);
  const auto number = [&](double real, std::int64_t whole) {
    return is_floating(t) ? std::bit_cast<std::int64_t>(real) : whole;
  };
  switch (combine) {
    case combiner::max:
      return number(-infinite, op::least_integer(t));
    case combiner::min:
      return number(infinite, t == dtype::u64 ? -1 : op::greatest_integer(t));
    case combiner::multiply:
      return number(1, 1);
    case combiner::logical_and:  // all bits
      return t == dtype::boolean || (is_unsigned(t) && t != dtype::u64) ? op::greatest_integer(t)
                                                                        : -1;
    case combiner::add:
    case combiner::logical_or:
    case combiner::stack:
      break;
  }
  return number(0, 0);
}

/// Returns the identity that also preserves the sign of zero: -0 for floating-point sums, since -0
/// + -0 is -0 and -0 + 0 is 0. For other combiners this is identity_bits.
constexpr std::int64_t neutral_bits(combiner combine, dtype t) {
  const bool sum = combine == combiner::add && is_floating(t);
  return sum ? std::bit_cast<std::int64_t>(-0.0) : identity_bits(combine, t);
}

/// True if `bits` is the value of identity_bits or of neutral_bits.
constexpr bool is_identity(std::int64_t bits, combiner combine, dtype t) {
  return bits == identity_bits(combine, t) || bits == neutral_bits(combine, t);
}

}  // namespace partita
