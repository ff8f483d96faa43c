/// Ops of a module as written: names, operands, attributes, types and nested programs.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/shape.hpp>
#include <partita/support/vec.hpp>

namespace partita::stablehlo_detail {

/// A range of the module's text.
struct piece_of_text {
  std::size_t begin = 0, end = 0;
};
/// `dims = [0, 1]`; a flag has no value.
struct named_text {
  std::string_view name, value;
};
struct argument_text {
  std::size_t at = 0;
  std::string_view name;  ///< "%arg0"
  tensor_type type;
  std::string_view attributes, location;
};
/// Arguments and body of a nested program, or of a function.
struct region_text {
  vec<argument_text> arguments;
  piece_of_text body;
};
/// An op, `%3 = stablehlo.add %1, %2 : tensor<4xf32>`, in the pretty or the generic form.
struct op_text {
  std::size_t at = 0;
  std::string_view name;  ///< "stablehlo.add"
  struct result_name {
    std::string_view name;   ///< "%3"
    std::int64_t count = 1;  ///< 2 for `%3:2`
  };
  vec<result_name> results;         ///< one, or several: `%values, %indices = ...`
  vec<std::string_view> operands;   ///< "%1", "%25#6"
  vec<std::string_view> inner;      ///< of `while`: the arguments of its programs, in order
  vec<std::string_view> words;      ///< LT, FLOAT, stablehlo.maximum
  std::string_view symbol, quoted;  ///< "f" of @f; the name of a custom_call
  vec<named_text> attributes;       ///< under their names in the generic or the pretty form
  vec<region_text> regions;
  vec<tensor_type> operand_types, result_types;
  bool typed = false;        ///< true if the text states the types
  bool makes_tuple = false;  ///< true if the result is a tuple of values of these types
  std::string_view location;

  constexpr std::int64_t result_count() const {
    std::int64_t n = 0;
    for (const auto& r : results) n += r.count;
    return n;
  }
  /// Returns the value of an attribute as written, or an empty text.
  constexpr std::string_view attribute(std::string_view wanted) const {
    for (const auto& a : attributes)
      if (a.name == wanted) return a.value;
    return {};
  }
  constexpr bool has(std::string_view wanted) const {
    for (const auto& a : attributes)
      if (a.name == wanted) return true;
    return false;
  }
};

}  // namespace partita::stablehlo_detail
