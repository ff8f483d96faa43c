/// Any characters as strings of JSON.
///
/// Source    RFC 8259, section 7
#pragma once

#include <string_view>

#include <partita/report/markup.hpp>
#include <partita/support/text.hpp>

namespace partita::report_detail {

/// In quotes. A byte that is of no character is written as that of its number.
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
