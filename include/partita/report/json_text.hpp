/// Texts with arbitrary bytes as JSON strings.
///
/// Source    RFC 8259, section 7
#pragma once

#include <string_view>

#include <partita/report/markup.hpp>
#include <partita/support/text.hpp>

namespace partita::report_detail {

/// Prints `s` in quotes. An invalid byte is escaped as the character with its value.
constexpr void print_json_string(text& out, std::string_view s) {
  constexpr std::string_view digits = "0123456789abcdef";
  out << '"';
  for_each_character(s, [&](std::string_view c) {
    const auto byte = static_cast<unsigned char>(c[0]);
    if (c[0] == '"' || c[0] == '\\')
      out << '\\' << c;
    else if (character_size(c) == 0)
      out << "\\u00" << digits[byte >> 4] << digits[byte & 15];
    else
      out << c;
  });
  out << '"';
}

}  // namespace partita::report_detail
