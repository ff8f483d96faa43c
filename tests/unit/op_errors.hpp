/// The rows of the tables of op errors. Each family of ops has one table,
/// `add_<family>_errors(std::vector<op_error>&)` in op_errors_<family>.hpp; op_errors.cpp checks
/// them all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <partita/ir/builder.hpp>
#include <partita/op/registry.hpp>

/// An invalid op and the full message of its shape rule.
struct op_error {
  std::string_view code;
  const partita::op_def* op;
  std::vector<partita::tensor_type> operands;
  std::vector<std::int64_t> attrs;
  partita::tensor_type declared;
  std::string_view message;
  std::vector<partita::program> regions = {};  ///< nested programs
};

/// Returns a program that accepts values of the first types and returns zeros of the second types.
inline partita::program nested(const std::vector<partita::tensor_type>& inputs,
                               const std::vector<partita::tensor_type>& outputs) {
  partita::builder b;
  for (const auto& t : inputs) partita::ops::parameter(b, "", t);
  for (const auto& t : outputs) b.p.outputs.push_back({partita::ops::constant(b, t, 0), {}});
  return b.p;
}
