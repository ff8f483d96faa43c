/// What a table of op errors is made of. Each family of ops has one,
/// `add_<family>_errors(std::vector<op_error>&)` in op_errors_<family>.hpp; op_errors.cpp checks
/// them all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <partita/op/registry.hpp>

/// An op that is given something wrong, and the whole message of its shape rule.
struct op_error {
  std::string_view code;
  const partita::op_def* op;
  std::vector<partita::tensor_type> operands;
  std::vector<std::int64_t> attrs;
  partita::tensor_type declared;
  std::string_view message;
};
