/// The links of chains of arithmetic; see kernels/chain.hpp.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>

namespace partita::run_detail {

/// The effect of a link on the running value x; y is its operand.
enum class link : std::uint8_t {
  none,
  load,           ///< x = y
  store,          ///< writes x to y, and keeps x
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
/// Returns the link with the same effect if the running value is the other operand.
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

/// The first link of a chain loads. Element i, in a row r, has its operand at
/// i * by_element + r * by_row.
struct chain_link {
  link what;
  void* operand;
  std::int64_t by_element;  ///< 1, or 0 if all elements of a row share one value
  std::int64_t by_row;
};

/// True if chains support elements of this computed type.
constexpr bool links_up(dtype t) { return t == dtype::f32 || t == dtype::f64; }

/// Returns the link that computes an op on elements of a computed type.
constexpr link link_of(const op_def* op, dtype t) {
  if (!links_up(t)) return link::none;
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

}  // namespace partita::run_detail
