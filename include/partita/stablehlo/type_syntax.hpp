/// Parser of tensor types in MLIR text.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/shape.hpp>
#include <partita/stablehlo/tokens.hpp>

namespace partita::stablehlo_detail {

/// Reads types. After the first error every function returns at once.
///
/// Errors    H001 something else is expected, H003 an unsupported type
class type_syntax : public tokens {
 public:
  using tokens::tokens;

  constexpr tensor_type type() {
    tensor_type t;
    skip();
    const std::size_t at = at_;
    if (!accept_word("tensor")) {
      if (failed()) return t;
      if (starts("!") || starts("tuple") || starts("complex") || starts("memref") ||
          starts("vector") || starts("none") || starts("index"))
        fail(at, "H003", "type ", name_with_parameters(),
             " is not supported; tensors of numbers are");
      expected("a tensor type");
      return t;
    }
    expect("<");
    std::int64_t room = INT64_MAX / 16;  // maximum number of elements
    while (!failed() && at_ < end_ && (scanner::is_digit(all_[at_]) || all_[at_] == '?')) {
      if (all_[at_] == '?')
        fail(at, "H003", "a type of dynamic shape, ", type_text(at),
             ", is not supported; lower the function for arguments of fixed shapes");
      std::int64_t extent = 0;
      scanner digits(all_.substr(at_, end_ - at_));
      if (failed()) return t;
      if (!digits.integer(extent) || extent > room) {
        fail(at, "H003", "type ", type_text(at), " has more bytes than an address");
        return t;
      }
      at_ += digits.position();
      if (t.shape.rank == max_rank) {
        fail(at, "H003", "type ", type_text(at), " has a rank above ", max_rank,
             ", which is not supported");
        return t;
      }
      t.shape.push_back(extent);
      if (extent > 0) room /= extent;
      expect("x");
    }
    if (!failed()) t.element = element(at);
    if (!failed() && accept(",")) attribute_value(true);  // an encoding
    expect(">");
    return t;
  }
  constexpr std::string_view type_text(std::size_t at) const {
    const std::size_t end = all_.find('>', at);
    return all_.substr(at, end == std::string_view::npos || end > at + 80 ? 80 : end + 1 - at);
  }
  /// Reads `f32`, `complex<f32>` or `!quant.uniform<i8:f32, 0.5:3>`.
  constexpr std::string_view name_with_parameters() {
    skip();
    const std::size_t begin = at_;
    accept("!");
    word();
    if (at_ < end_ && all_[at_] == '<') bracketed();
    return all_.substr(begin, at_ - begin);
  }
  constexpr dtype element(std::size_t at) {
    const std::string_view name = name_with_parameters();
    constexpr struct {
      std::string_view name;
      dtype type;
    } known[] = {{"f32", dtype::f32}, {"f64", dtype::f64},    {"bf16", dtype::bf16},
                 {"f16", dtype::f16}, {"i1", dtype::boolean}, {"i8", dtype::i8},
                 {"i16", dtype::i16}, {"i32", dtype::i32},    {"i64", dtype::i64},
                 {"ui8", dtype::u8},  {"ui16", dtype::u16},   {"ui32", dtype::u32},
                 {"ui64", dtype::u64}};
    for (const auto& k : known)
      if (k.name == name) return k.type;
    fail(at, "H003", "element type ", name,
         " is not supported; f16, bf16, f32, f64, i1, i8 to i64 and ui8 to ui64 are");
    return dtype::f32;
  }
  /// Reads a type, or the types in `tuple<tensor<f32>, tensor<f32>>`.
  constexpr void type_or_tuple(vec<tensor_type>& to) {
    if (!accept_word("tuple")) {
      to.push_back(type());
      return;
    }
    expect("<");
    while (!failed() && !accept(">")) {
      to.push_back(type());
      if (!accept(",") && !starts(">")) return expected(">");
    }
  }
  /// Reads `tensor<f32>`, or `(tensor<f32>, tensor<f32>)`.
  constexpr void types(vec<tensor_type>& to) {
    if (!accept("(")) {
      do type_or_tuple(to);
      while (!failed() && accept(","));
      return;
    }
    while (!failed() && !accept(")")) {
      type_or_tuple(to);
      skip();
      if (starts("{")) bracketed();  // attributes of a result
      if (!accept(",") && !starts(")")) return expected(")");
    }
  }
};

}  // namespace partita::stablehlo_detail
