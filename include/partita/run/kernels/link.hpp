/// What chains of arithmetic are made of; see kernels/chain.hpp.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>

namespace partita::detail {

/// What a link does to x; y is its operand.
enum class link : std::uint8_t {
  none,
  add,            ///< x + y
  subtract,       ///< x - y
  subtract_from,  ///< y - x
  multiply,       ///< x * y
  divide,         ///< x / y
  divide_into,    ///< y / x
  negate,
  exp,
  logistic,
  tanh,
};
/// The link that does the same if the running value is the other operand.
constexpr link flipped(link l) {
  switch (l) {
    case link::subtract:
      return link::subtract_from;
    case link::divide:
      return link::divide_into;
    default:
      return l;
  }
}

/// Elements, or one value for all of them (then `lanes` copies of it lie there).
struct chain_operand {
  const void* data = nullptr;
  bool splat = false;
};
struct chain_link {
  link what = link::none;
  chain_operand operand = {};
};

/// The link that an op is, on elements of a computed type.
inline link link_of(const op_def* op, dtype t) {
  if (t != dtype::f32 && t != dtype::f64) return link::none;
  if (op == &def<op::add>) return link::add;
  if (op == &def<op::subtract>) return link::subtract;
  if (op == &def<op::multiply>) return link::multiply;
  if (op == &def<op::divide>) return link::divide;
  if (op == &def<op::negate>) return link::negate;
  if (t == dtype::f64) return link::none;
  if (op == &def<op::exp>) return link::exp;
  if (op == &def<op::logistic>) return link::logistic;
  if (op == &def<op::tanh>) return link::tanh;
  return link::none;
}

}  // namespace partita::detail
