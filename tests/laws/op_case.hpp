/// A case of the laws: an op with attributes and operand types, small enough to try every divisor.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "../data.hpp"

namespace laws {

namespace pt = partita;
using ints = std::vector<std::int64_t>;
using pt::dtype;
using pt::shape;
using pt::tensor_type;

struct op_case {
  const pt::op_def* op = nullptr;
  std::vector<tensor_type> operands;
  ints attrs;
  tensor_type declared;
  std::int64_t low = -3, high = 3;  ///< of the operands' elements
  /// Makes operand number k, if integers of that range are not suitable.
  pt::array (*make)(const tensor_type&, std::size_t k, data::random&) = nullptr;
  /// The operands are batches of symmetric matrices; derivatives are along symmetric changes.
  bool symmetric = false;
};

/// Returns a, b, ..., z, a1, b1, ...: names for the operands of a case.
inline std::string parameter_name(std::size_t k) {
  const std::string letter(1, static_cast<char>('a' + k % 26));
  return k < 26 ? letter : letter + std::to_string(k / 26);
}

/// Returns a program of the op on parameters a, b, ..., z, a1, b1, ... with one output.
inline pt::program program_of(const op_case& c) {
  pt::builder b;
  std::vector<pt::value_id> x;
  for (std::size_t k = 0; k < c.operands.size(); ++k)
    x.push_back(pt::ops::parameter(b, parameter_name(k), c.operands[k]));
  const pt::value_id y = b.emit(*c.op, x, c.attrs, c.declared);
  if (c.op->role == pt::op_role::tag) b.name_last("y");
  b.p.error.raise();
  b.p.outputs.push_back({y, b.p.intern("result")});
  return b.p;
}

/// Returns the result type, or nothing and an error.
inline tensor_type infer(const pt::op_def& op, const std::vector<tensor_type>& operands,
                         const ints& attrs, const tensor_type& declared, pt::failure& error) {
  pt::infer_context c;
  c.operands = operands;
  c.attrs = attrs;
  c.declared = declared;
  op.infer(c);
  error = c.error;
  return c.result;
}

inline tensor_type f32(shape s) { return {dtype::f32, s}; }
inline tensor_type f64(shape s) { return {dtype::f64, s}; }
inline tensor_type i32(shape s) { return {dtype::i32, s}; }
inline tensor_type i1(shape s) { return {dtype::boolean, s}; }

/// Returns the attributes of a dot_general: the number of batch and contracted dimensions, then the
/// dimensions.
inline ints dots(ints lb, ints rb, ints lc, ints rc) {
  ints a{static_cast<std::int64_t>(lb.size()), static_cast<std::int64_t>(lc.size())};
  for (const auto& part : {lb, rb, lc, rc}) a.insert(a.end(), part.begin(), part.end());
  return a;
}

}  // namespace laws
