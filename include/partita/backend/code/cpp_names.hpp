/// Names in files of device code: types, kernels, and identifiers for values.
#pragma once

#include <string>
#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/ir/tile_map.hpp>

namespace partita::backend_detail {

/// True if a list of words, each followed by a blank, contains a word.
inline bool has_word(std::string_view list, std::string_view word) {
  return list.find(' ' + std::string(word) + ' ') != list.npos;
}

/// Words of C++, and names that a file of device code uses.
inline constexpr std::string_view reserved_names =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq INT64_MIN b code combiner d dtype i in inputs kernels main "
    "memory_bytes mesh op out outputs partita run std ";

/// The header in run/kernels that has the kernel of an op that is neither elementwise nor a
/// collective. The kernel has the op's name and `_kernel` after it. (`fold` calls others by their
/// ops: it needs the table of all.)
inline std::string_view kernel_header(std::string_view op) {
  constexpr std::string_view list[][2] = {
      {"movement",
       " constant literal iota bitcast_convert broadcast_in_dim transpose concatenate slice "
       "reverse "
       "roll pad dynamic_slice dynamic_update_slice "},
      {"reduce", " reduce "},
      {"reduce_precision", " reduce_precision "},
      {"window", " reduce_window select_and_scatter select_and_gather "},
      {"cumsum", " cumsum "},
      {"dot_general", " dot_general "},
      {"convolution", " convolution "},
      {"gather", " gather scatter "},
      {"sort", " sort top_k "},
      {"linalg", " cholesky triangular_solve "},
      {"special", " erfc erf_inv lgamma digamma "}};
  for (const auto& [header, ops] : list)
    if (has_word(ops, op)) return header;
  return op == "fold" ? "table" : "";
}

inline std::string_view cpp_name_of(dtype t) {
  constexpr std::string_view names[] = {
      "float",         "double",        "partita::bf16", "partita::f16", "std::int8_t",
      "std::int16_t",  "std::int32_t",  "std::int64_t",  "std::uint8_t", "std::uint16_t",
      "std::uint32_t", "std::uint64_t", "bool"};
  return names[static_cast<int>(t)];
}
inline std::string_view cpp_name_of(combiner c) {
  constexpr std::string_view names[] = {"stack",    "add",         "max",       "min",
                                        "multiply", "logical_and", "logical_or"};
  return names[static_cast<int>(c)];
}
/// `{dtype::f32, {64, 8}}`
inline text cpp_text_of(const tensor_type& t) {
  text s = concat("{dtype::", t.element == dtype::boolean ? "boolean" : name_of(t.element), ", {");
  append_list(s, t.shape.rank, [&](int i) { s << t.shape[i]; });
  return s << "}}";
}
/// An integer of 64 bits.
inline text cpp_text_of(std::int64_t n) {
  if (n == INT64_MIN) return "INT64_MIN";
  return concat(n, n == static_cast<int>(n) ? "" : "LL");
}

}  // namespace partita::backend_detail
