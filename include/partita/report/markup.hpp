/// Texts with arbitrary bytes as XML and HTML, and numbers as SVG needs them.
///
/// Source    XML 1.0, section 2.2: the characters that a document may hold
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <partita/support/text.hpp>
#include <partita/support/utf8.hpp>

namespace partita::report_detail {

/// The size in bytes of the UTF-8 character that `s` begins with; 0 if it is invalid or not allowed
/// in XML.
constexpr std::size_t character_size(std::string_view s) {
  std::uint32_t code = 0;
  const std::size_t size = utf8_size(s, code);
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return control || code == 0xfffe || code == 0xffff ? 0 : size;
}

/// Appends a character; an invalid byte is written as `\x1b`.
constexpr void print_markup(text& out, std::string_view character) {
  const char c = character[0];
  if (character_size(character) == 0)
    out << "\\x"
        << "0123456789abcdef"[static_cast<unsigned char>(c) >> 4]
        << "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  else if (c == '&')
    out << "&amp;";
  else if (c == '<')
    out << "&lt;";
  else if (c == '>')
    out << "&gt;";
  else if (c == '"')
    out << "&quot;";
  else
    out << character;
}
/// Calls f(character) for each character of `s`; an invalid byte counts as one character.
template <class F>
constexpr void for_each_character(std::string_view s, const F& f) {
  while (!s.empty()) {
    const std::size_t size = character_size(s), bytes = size == 0 ? 1 : size;
    f(s.substr(0, bytes));
    s.remove_prefix(bytes);
  }
}
/// Escapes text for an element or a double-quoted attribute. Keeps line ends if `lines`.
constexpr text markup(std::string_view s, bool lines = false) {
  text out;
  for_each_character(s, [&](std::string_view c) {
    if (lines && c[0] == '\n')
      out << '\n';
    else
      print_markup(out, c);
  });
  return out;
}

/// The number of characters of a text.
constexpr std::size_t characters(std::string_view s) {
  std::size_t n = 0;
  for_each_character(s, [&](std::string_view) { ++n; });
  return n;
}
/// Shortens a long text to its beginning and end with `…` between them, since names can differ in
/// either.
constexpr text shortened(std::string_view s, std::size_t most) {
  // (A character has at most four bytes, so the middle of a very long text need not be decoded.)
  const std::size_t all = s.size() > 8 * most ? most + 1 : characters(s);
  if (all <= most) return s;
  const std::size_t head = most / 2, tail = most - head - 1;
  text out;
  std::size_t n = 0;
  for_each_character(s.substr(0, s.size() > 4 * most ? 4 * most : s.size()),
                     [&](std::string_view c) {
                       if (n++ < head) out << c;
                     });
  out << "…";
  const std::string_view rest = s.substr(s.size() > 4 * most ? s.size() - 4 * most : 0);
  const std::size_t count = characters(rest);
  n = 0;
  for_each_character(rest, [&](std::string_view c) {
    if (n++ + tail >= count) out << c;
  });
  return out;
}

/// A coordinate, with one decimal.
constexpr void print_coordinate(text& out, double v) {
  if (!(v > -1e9 && v < 1e9)) v = 0;
  const auto tenths = static_cast<std::int64_t>(v * 10 + (v < 0 ? -0.5 : 0.5));
  const std::int64_t size = tenths < 0 ? -tenths : tenths;
  if (tenths < 0) out << '-';
  out << size / 10;
  if (size % 10 != 0) out << '.' << size % 10;
}

}  // namespace partita::report_detail

namespace partita {

namespace report_detail {
/// Formats `n` with three digits, in the first unit that suits; each unit is `base` times the
/// previous one.
template <std::size_t N>
constexpr text scaled_text(std::int64_t n, int base, const std::string_view (&units)[N]) {
  if (n < base) return concat(n, units[0]);
  double v = static_cast<double>(n);
  std::size_t u = 0;
  for (; v >= base - 0.5 && u + 1 < N; ++u) v /= base;
  const int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
  const std::int64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
  const auto rounded = static_cast<std::int64_t>(v * static_cast<double>(scale) + 0.5);
  text out;
  out << rounded / scale;
  if (decimals > 0) out << '.';
  if (decimals == 2) out << rounded / 10 % 10;
  if (decimals > 0) out << rounded % 10;
  return out << units[u];
}
}  // namespace report_detail

/// Formats a number of bytes with three digits, in a unit that suits: `5.42 MiB`.
constexpr text bytes_text(std::int64_t bytes) {
  constexpr std::string_view units[] = {" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  return report_detail::scaled_text(bytes, 1024, units);
}
/// Formats a number of floating-point operations with three digits: `131 TFLOP`.
constexpr text flop_text(std::int64_t flops) {
  constexpr std::string_view units[] = {" FLOP",  " kFLOP", " MFLOP", " GFLOP",
                                        " TFLOP", " PFLOP", " EFLOP"};
  return report_detail::scaled_text(flops, 1000, units);
}
/// Formats a number with its digits in groups of three: `1,234,567`.
constexpr text grouped(std::int64_t n) {
  const text digits = concat(n);
  const std::string_view all = digits;
  text out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t left = all.size() - i;
    if (i > (all[0] == '-' ? 1u : 0u) && left % 3 == 0) out << ',';
    out << all[i];
  }
  return out;
}

}  // namespace partita
