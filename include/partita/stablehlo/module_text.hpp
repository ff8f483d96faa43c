/// Building blocks of StableHLO text: types, names, elements of constants, lists.
#pragma once

#include <bit>

#include <partita/ir/program.hpp>
#include <partita/support/number_text.hpp>

namespace partita::stablehlo_detail {

/// Writes `f32`, `ui8` or `i1`.
constexpr void write_element(text& out, dtype t) {
  if (is_unsigned(t))
    out << "ui" << 8 * size_of(t);
  else
    out << name_of(t);
}
/// Writes `tensor<4x8xf32>`.
constexpr void write_type(text& out, const tensor_type& t) {
  out << "tensor<";
  for (int d = 0; d < t.shape.rank; ++d) out << t.shape[d] << 'x';
  write_element(out, t.element);
  out << '>';
}

/// Writes a type in `out << mlir_type{t}`.
struct mlir_type {
  const tensor_type& t;
  friend constexpr text& operator<<(text& out, const mlir_type& m) {
    write_type(out, m.t);
    return out;
  }
};

/// Writes a name in quotes. Characters other than printable ASCII are written as two hexadecimal
/// digits, and so are brackets and quotes in a path, which path_of would otherwise change.
constexpr void write_quoted(text& out, std::string_view name, bool is_path) {
  out << '"';
  for (const char c : name) {
    const bool special = c == '"' || c == '\\' || c < ' ' || c > '~';
    const bool of_a_path = is_path && (c == '\'' || c == '[' || c == ']');
    if (!special && !of_a_path) {
      out << c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out << '\\' << "0123456789ABCDEF"[byte >> 4] << "0123456789ABCDEF"[byte & 15];
  }
  out << '"';
}

/// Writes `[0, 1]`.
constexpr void write_list(text& out, span<const std::int64_t> list) {
  out << '[';
  append_list(out, static_cast<int>(list.size()),
              [&](int i) { out << list[static_cast<std::size_t>(i)]; });
  out << ']';
}
/// Writes `array<i64: 0, 1>`.
constexpr void write_array(text& out, span<const std::int64_t> list) {
  out << "array<i64";
  for (std::size_t i = 0; i < list.size(); ++i) out << (i > 0 ? ", " : ": ") << list[i];
  out << '>';
}

/// Converts the encoding of a constant's attribute to the bits of the element.
constexpr std::uint64_t element_bits(dtype t, std::int64_t kept) {
  const auto number = std::bit_cast<double>(kept);
  switch (t) {
    case dtype::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    case dtype::bf16:
      return bf16(static_cast<float>(number)).bits;
    case dtype::f16:
      return f16(static_cast<float>(number)).bits;
    case dtype::f64:
    case dtype::i8:
    case dtype::i16:
    case dtype::i32:
    case dtype::i64:
    case dtype::u8:
    case dtype::u16:
    case dtype::u32:
    case dtype::u64:
    case dtype::boolean:
      break;
  }
  return static_cast<std::uint64_t>(kept);
}
constexpr void write_hexadecimal(text& out, std::uint64_t bits, std::int64_t bytes) {
  out << "0x";
  for (std::int64_t digit = 2 * bytes; digit-- > 0;)
    out << "0123456789ABCDEF"[bits >> (4 * digit) & 15];
}
/// Writes one element of `dense<...>`.
constexpr void write_number(text& out, dtype t, std::int64_t kept) {
  if (t == dtype::boolean) {
    out << (kept != 0 ? "true" : "false");
  } else if (t == dtype::u64) {
    out << static_cast<std::uint64_t>(kept);
  } else if (!is_floating(t)) {
    out << kept;
  } else if (const auto v = std::bit_cast<double>(kept);
             v != v || (std::bit_cast<std::uint64_t>(v) << 1) >= support_detail::infinity << 1) {
    write_hexadecimal(out, element_bits(t, kept), size_of(t));
  } else {
    text number;
    print_number(number, v);
    const std::string_view digits = number.view();
    const std::size_t e = digits.find('e');
    out << digits.substr(0, e);
    if (digits.find('.') == std::string_view::npos) out << ".0";
    if (e != std::string_view::npos) out << digits.substr(e);
  }
}

/// Writes `dense<2.5>`, in which every element is 2.5.
constexpr void write_splat(text& out, const tensor_type& type, std::int64_t kept) {
  out << "dense<";
  if (type.shape.elements() > 0) write_number(out, type.element, kept);
  out << '>';
}
/// Writes `dense<[[1, 2], [3, 4]]>`; many elements are written as their bytes: `dense<"0x...">`.
constexpr void write_dense(text& out, const tensor_type& type, span<const std::int64_t> kept) {
  constexpr std::size_t written_as_numbers = 16;
  const shape& s = type.shape;
  out << "dense<";
  if (kept.size() > written_as_numbers && type.element != dtype::boolean) {
    out << "\"0x";
    for (const std::int64_t each : kept) {
      const std::uint64_t bits = element_bits(type.element, each);
      for (std::int64_t byte = 0; byte < size_of(type.element); ++byte)
        out << "0123456789ABCDEF"[bits >> (8 * byte + 4) & 15]
            << "0123456789ABCDEF"[bits >> (8 * byte) & 15];
    }
    out << "\">";
    return;
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    // A bracket opens where this index and all later ones start at 0.
    std::int64_t block = 1;
    int opened = 0;
    for (int d = s.rank; d-- > 0; ++opened) {
      block *= s[d];
      if (static_cast<std::int64_t>(i) % block != 0) break;
    }
    if (i > 0) {
      for (int k = 0; k < opened; ++k) out << ']';
      out << ", ";
    }
    for (int k = 0; k < opened; ++k) out << '[';
    write_number(out, type.element, kept[i]);
  }
  for (int d = 0; d < s.rank && !kept.empty(); ++d) out << ']';
  out << '>';
}

/// The name of a value in the text: `%3`, `%3#1`; `%arg2` has the number -3.
struct ssa {
  int number = 0, index = -1;

  friend constexpr text& operator<<(text& out, const ssa& v) {
    if (v.number < 0) return out << "%arg" << -1 - v.number;
    out << '%' << v.number;
    if (v.index >= 0) out << '#' << v.index;
    return out;
  }
};

}  // namespace partita::stablehlo_detail
