/// How the ops of the library are written in C++: which function of run/kernels computes each.
#pragma once

#include <string>
#include <string_view>

#include <partita/ir/program.hpp>
#include <partita/op/registry.hpp>

namespace partita::backend_detail {

/// The header in run/kernels that has the kernel of an op.
struct kernel_header {
  std::string_view op, header;
};
/// Ops that are neither elementwise nor collectives. The kernel has the op's name and `_kernel`
/// after it. (`fold` calls others by their ops: it needs the table of all.)
inline constexpr kernel_header kernel_headers[] = {
    {"constant", "movement"},
    {"literal", "movement"},
    {"iota", "movement"},
    {"bitcast_convert", "movement"},
    {"reduce_precision", "reduce_precision"},
    {"broadcast_in_dim", "movement"},
    {"reduce", "reduce"},
    {"reduce_window", "window"},
    {"select_and_scatter", "window"},
    {"select_and_gather", "window"},
    {"cumsum", "cumsum"},
    {"fold", "table"},
    {"transpose", "movement"},
    {"dot_general", "dot_general"},
    {"convolution", "convolution"},
    {"gather", "gather"},
    {"scatter", "gather"},
    {"concatenate", "movement"},
    {"slice", "movement"},
    {"reverse", "movement"},
    {"roll", "movement"},
    {"pad", "movement"},
    {"dynamic_slice", "movement"},
    {"dynamic_update_slice", "movement"},
    {"sort", "sort"},
    {"top_k", "sort"},
    {"cholesky", "linalg"},
    {"triangular_solve", "linalg"},
};
/// Elementwise ops whose class in run/kernels is not the op's name and `_lanes` after it.
struct lanes_name {
  std::string_view op, name;
};
inline constexpr lanes_name lanes_names[] = {
    {"logical_and", "and_lanes"},
    {"logical_or", "or_lanes"},
    {"logical_xor", "xor_lanes"},
    {"logical_not", "not_lanes"},
};

/// True if the class is in the header for special functions.
inline bool is_special(std::string_view op) {
  return op == "erfc" || op == "erf_inv" || op == "lgamma" || op == "digamma";
}

inline std::string_view header_of(std::string_view op) {
  for (const auto& each : kernel_headers)
    if (each.op == op) return each.header;
  return {};
}
inline std::string kernel_of(std::string_view op) {
  return std::string(op == "broadcast_in_dim" ? "broadcast" : op) + "_kernel";
}
inline std::string lanes_of(std::string_view op) {
  for (const auto& each : lanes_names)
    if (each.op == op) return std::string(each.name);
  return std::string(op) + "_lanes";
}
inline std::string_view cpp_name_of(dtype t) {
  constexpr std::string_view names[] = {
      "float",         "double",        "partita::bf16", "partita::f16", "std::int8_t",
      "std::int16_t",  "std::int32_t",  "std::int64_t",  "std::uint8_t", "std::uint16_t",
      "std::uint32_t", "std::uint64_t", "bool"};
  return names[static_cast<int>(t)];
}
inline std::string_view cpp_name_of(combiner c) {
  using enum combiner;
  switch (c) {
    case max:
      return "max";
    case min:
      return "min";
    case multiply:
      return "multiply";
    case logical_and:
      return "logical_and";
    case logical_or:
      return "logical_or";
    default:
      return "add";
  }
}
inline std::string_view comparison_of(ops::direction d) {
  constexpr std::string_view names[] = {"equal_to",   "not_equal_to", "less",
                                        "less_equal", "greater",      "greater_equal"};
  return names[static_cast<int>(d)];
}

}  // namespace partita::backend_detail
