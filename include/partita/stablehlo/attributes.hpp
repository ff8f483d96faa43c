/// Values of attributes: lists of numbers, windows, elements of constants.
#pragma once

#include <bit>

#include <partita/ir/dtype.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/registry.hpp>
#include <partita/stablehlo/syntax.hpp>
#include <partita/support/number_text.hpp>

namespace partita::stablehlo_detail {

/// Splits `[a, b]`, `<a, b>` or `a, b` at the outermost level and trims blanks.
constexpr vec<std::string_view> parts_of(std::string_view list) {
  vec<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  std::size_t begin = 0;
  const auto put = [&](std::size_t end) {
    std::string_view part = list.substr(begin, end - begin);
    while (!part.empty() && is_space(part.front())) part.remove_prefix(1);
    while (!part.empty() && is_space(part.back())) part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '<' || c == '(' || c == '{') ++depth;
    const bool arrow = c == '>' && i > 0 && list[i - 1] == '-';
    if (!arrow && (c == ']' || c == '>' || c == ')' || c == '}')) --depth;
    if (c == ',' && depth == 0) put(i);
  }
  put(list.size());
  return parts;
}
/// Returns the text between the first opening bracket and the last closing one.
constexpr std::string_view inside(std::string_view value, char open, char close) {
  const std::size_t begin = value.find(open), end = value.rfind(close);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return value.substr(begin + 1, end - begin - 1);
}

/// Reads a number, `true` or `false`; a type may follow it.
constexpr bool read_integer(std::string_view value, std::int64_t& out) {
  while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
  if (value.starts_with("true")) return out = 1, true;
  if (value.starts_with("false")) return out = 0, true;
  scanner in(value);
  if (!in.integer(out)) return false;
  return in.done() || is_space(in.rest()[0]) || in.rest()[0] == ':';
}

/// Reads the numbers of `[0, 1]`, `array<i64: 0, 1>`, `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`
/// (row-major), or one number. Sets `splat` for `dense<0>`, whose one number fills a tensor of any
/// size.
constexpr bool read_integers(std::string_view value, vec<std::int64_t>& out, bool& splat) {
  splat = false;
  if (value.starts_with("array<")) {
    const std::string_view all = inside(value, '<', '>');
    const std::size_t colon = all.find(':');
    if (colon == std::string_view::npos) return true;
    value = all.substr(colon + 1);
  } else if (value.starts_with("dense<")) {
    const std::size_t end = value.find('>');
    if (end == std::string_view::npos) return false;
    value = value.substr(6, end - 6);
    splat = value.find('[') == std::string_view::npos && !value.empty();
  }
  std::size_t begin = 0;
  const auto is_end = [](char c) { return c == ',' || c == '[' || c == ']' || is_space(c); };
  while (begin < value.size()) {
    if (is_end(value[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < value.size() && !is_end(value[end])) ++end;
    std::int64_t n = 0;
    if (value[begin] == ':') return true;  // the type
    if (!read_integer(value.substr(begin, end - begin), n)) return false;
    out.push_back(n);
    begin = end;
  }
  return true;
}

/// Rounds a number to its type and returns it in the encoding of a constant's attribute.
constexpr std::int64_t as_bits(dtype t, double v) {
  if (t == dtype::f32) v = static_cast<double>(static_cast<float>(v));
  if (t == dtype::bf16) v = static_cast<double>(static_cast<float>(bf16(static_cast<float>(v))));
  if (t == dtype::f16) v = static_cast<double>(static_cast<float>(f16(static_cast<float>(v))));
  return std::bit_cast<std::int64_t>(v);
}
/// Converts the bits of an element to the encoding of a constant's attribute.
constexpr std::int64_t from_element_bits(dtype t, std::uint64_t bits) {
  const auto sign_extended = [&](int width) {
    const int unused = 64 - width;
    return static_cast<std::int64_t>(bits << unused) >> unused;
  };
  switch (t) {
    case dtype::f64:
      return static_cast<std::int64_t>(bits);
    case dtype::f32: {
      const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      return std::bit_cast<std::int64_t>(static_cast<double>(f));
    }
    case dtype::bf16: {
      const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
      return std::bit_cast<std::int64_t>(static_cast<double>(f));
    }
    case dtype::f16: {
      f16 h;
      h.bits = static_cast<std::uint16_t>(bits);
      return std::bit_cast<std::int64_t>(static_cast<double>(static_cast<float>(h)));
    }
    case dtype::boolean:
      return (bits & 1) != 0 ? 1 : 0;
    case dtype::i8:
    case dtype::i16:
    case dtype::i32:
    case dtype::i64:
    case dtype::u8:
    case dtype::u16:
    case dtype::u32:
    case dtype::u64:
      break;
  }
  const int width = static_cast<int>(8 * size_of(t));
  if (is_unsigned(t))
    return static_cast<std::int64_t>(width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1));
  return sign_extended(width);
}
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Reads one element of `dense<...>` as written.
constexpr bool read_element(std::string_view word, dtype t, std::int64_t& bits) {
  if (word == "true" || word == "false") {
    if (t != dtype::boolean) return false;
    bits = word == "true";
    return true;
  }
  const bool negative = word.starts_with("-");
  if (word.substr(negative ? 1 : 0).starts_with("0x")) {
    std::uint64_t v = 0;
    const std::string_view digits = word.substr(negative ? 3 : 2);
    if (digits.empty() || digits.size() > 16) return false;
    for (char c : digits) {
      if (hex_digit(c) < 0) return false;
      v = v * 16 + static_cast<std::uint64_t>(hex_digit(c));
    }
    bits = from_element_bits(t, negative ? 0 - v : v);
    return true;
  }
  scanner in(word);
  if (is_floating(t)) {
    text lower;
    for (char c : word) lower << (c == 'E' ? 'e' : c);
    scanner digits(lower);
    double v = 0;
    if (!read_number(digits, v) || !digits.done()) return false;
    bits = as_bits(t, v);
    return true;
  }
  if (t == dtype::u64) {
    std::uint64_t v = 0;
    if (!in.natural(v) || !in.done()) return false;
    bits = static_cast<std::int64_t>(v);
    return true;
  }
  return in.integer(bits) && in.done() && op::is_integer_of(t, bits);
}

/// Reads the elements of `dense<...>`, row-major, in the encoding of a constant's attribute; only
/// one element if all are equal. Returns false and sets `fault` if the text does not fit the type.
constexpr bool read_dense(std::string_view value, const tensor_type& type, vec<std::int64_t>& bits,
                          text& fault) {
  const auto refuse = [&](auto... parts) {
    (fault << ... << parts);
    return false;
  };
  if (value.starts_with("dense_resource<"))
    return refuse("the elements of a constant are omitted from the text; print the full module");
  if (!value.starts_with("dense<")) return refuse("elements, \"dense<...>\", are expected");
  // (In the generic form, the type follows the elements.)
  std::size_t end = 6;
  for (bool quoted = false; end < value.size() && (quoted || value[end] != '>'); ++end)
    if (value[end] == '"') quoted = !quoted;
  const std::string_view all = value.substr(6, end - 6);
  const std::int64_t count = type.shape.elements(), size = size_of(type.element);
  if (all.starts_with("\"0x")) {
    const std::string_view digits = inside(all, '"', '"').substr(2);
    for (char c : digits)
      if (hex_digit(c) < 0)
        return refuse("\"", std::string_view(&c, 1), "\" is not a hexadecimal digit");
    const auto bytes = static_cast<std::int64_t>(digits.size() / 2);
    const auto byte = [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(2 * i);
      return static_cast<std::uint64_t>(hex_digit(digits[at]) * 16 + hex_digit(digits[at + 1]));
    };
    const bool packed = type.element == dtype::boolean && bytes == (count + 7) / 8 && count > 1;
    if (digits.size() % 2 != 0 || (!packed && bytes != count * size && bytes != size))
      return refuse("a constant of type ", type, " has ", count * size, " bytes; ", bytes,
                    " are given");
    const std::int64_t given = packed ? count : bytes / size;
    bits.reserve(static_cast<std::size_t>(given));
    for (std::int64_t i = 0; i < given; ++i) {
      std::uint64_t v = 0;
      if (packed)
        v = byte(i / 8) >> (i % 8);
      else
        for (std::int64_t k = size - 1; k >= 0; --k) v = v << 8 | byte(i * size + k);
      bits.push_back(from_element_bits(type.element, v));
    }
    return true;
  }
  const bool splat = all.find('[') == std::string_view::npos && !all.empty();
  const auto is_end = [](char c) { return c == ',' || c == '[' || c == ']' || is_space(c); };
  std::int64_t seen[max_rank + 1] = {};
  int depth = 0;
  for (std::size_t i = 0; i < all.size();) {
    const char c = all[i];
    if (c == '(') return refuse("complex numbers are not supported");
    if (c == '[') {
      if (depth >= type.shape.rank) return refuse("a constant of type ", type, " is nested deeper");
      ++seen[depth++];
      seen[depth] = 0;
    } else if (c == ']') {
      if (depth == 0) return refuse("a bracket \"]\" closes nothing");
      if (seen[depth] != type.shape[depth - 1])
        return refuse("a constant of type ", type, " has ", type.shape[depth - 1],
                      " elements along dimension ", depth - 1, "; ", seen[depth], " are given");
      --depth;
    }
    if (is_end(c)) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < all.size() && !is_end(all[end])) ++end;
    std::int64_t each = 0;
    if (!read_element(all.substr(i, end - i), type.element, each))
      return refuse("\"", all.substr(i, end - i).substr(0, 40), "\" is not an element of type ",
                    name_of(type.element));
    if (!splat && depth != type.shape.rank)
      return refuse("a constant of type ", type, " is nested less deep");
    ++seen[depth];
    bits.push_back(each);
    i = end;
  }
  if (depth != 0) return refuse("a bracket \"[\" is not closed");
  const auto given = static_cast<std::int64_t>(bits.size());
  if (splat ? given != 1 : given != count)
    return refuse("a constant of type ", type, " has ", count, " elements; ", given, " are given");
  return true;
}

}  // namespace partita::stablehlo_detail
