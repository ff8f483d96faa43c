/// Names in texts: printed as they are if that reads back, otherwise in quotes.
#pragma once

#include <string_view>

#include <partita/support/scanner.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// True for control characters, which are printed as escape sequences.
constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}
/// True for characters that a name may contain without quotes.
constexpr bool is_plain(char c) {
  return !is_control(c) && c != ' ' && c != ',' && c != '<' && c != '>' && c != '"' && c != '%';
}
/// True if the name can be printed without quotes.
constexpr bool is_plain_name(std::string_view name) {
  bool plain = !name.empty();
  for (char c : name) plain = plain && is_plain(c);
  return plain;
}

/// Appends a character as it is written between quotes: `\"`, `\\`, and control characters as `\n`,
/// `\t` or `\x0b`. All other characters, including those of UTF-8, are unchanged.
constexpr void print_escaped(text& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\')
    out << '\\' << c;
  else if (c == '\n')
    out << "\\n";
  else if (c == '\t')
    out << "\\t";
  else if (is_control(c))
    out << "\\x"
        << "0123456789abcdef"[byte >> 4] << "0123456789abcdef"[byte & 15];
  else
    out << c;
}
/// Returns the name as it is written between quotes, without the quotes.
constexpr text escaped(std::string_view name) {
  text out;
  for (char c : name) print_escaped(out, c);
  return out;
}
/// Appends `"a b"`, with quotes.
constexpr void print_quoted(text& out, std::string_view name) {
  out << '"' << escaped(name) << '"';
}
/// Returns `ab`, or `"a b"` if the name needs quotes.
constexpr text name_text(std::string_view name) {
  if (is_plain_name(name)) return name;
  text out;
  print_quoted(out, name);
  return out;
}
/// Returns a name for a message: a long one is shortened to its beginning.
constexpr text short_name(std::string_view name, std::size_t most = 80) {
  if (name.size() <= most) return name;
  return concat(name.substr(0, most), "... (", name.size(), " characters)");
}

/// Appends the text up to the closing quote; the opening quote has already been read. Returns false
/// if the closing quote is missing or a backslash starts an escape that print_quoted does not
/// write.
constexpr bool read_quoted(scanner& in, text& out) {
  const auto hex = [](char c) {
    if (scanner::is_digit(c)) return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (;;) {
    out << in.take_while([](char c) { return c != '"' && c != '\\'; });
    if (in.accept("\"")) return true;
    if (!in.accept("\\")) return false;
    const std::string_view rest = in.rest().substr(0, 3);
    if (rest.empty()) return false;
    if (rest[0] == '"' || rest[0] == '\\') {
      out << rest[0];
    } else if (rest[0] == 'n') {
      out << '\n';
    } else if (rest[0] == 't') {
      out << '\t';
    } else if (rest[0] == 'x' && rest.size() == 3 && hex(rest[1]) >= 0 && hex(rest[2]) >= 0) {
      out << static_cast<char>(hex(rest[1]) * 16 + hex(rest[2]));
      in.accept(rest.substr(0, 2));
    } else {
      return false;
    }
    in.accept(in.rest().substr(0, 1));
  }
}
/// Appends the name of a value as texts show it: `ab`, `"a b"`, or with a suffix after the quotes,
/// `"a b"g`. A quoted part is normalized to what name_text returns.
constexpr bool read_name(scanner& in, text& out) {
  if (in.accept("\"")) {
    text inside;
    if (!read_quoted(in, inside)) return false;
    out << name_text(inside);
  }
  out << in.take_while(is_plain);
  return !out.empty();
}
/// Returns the name that `shown` represents, without quotes.
constexpr text unquoted(std::string_view shown) {
  scanner in(shown);
  if (!in.accept("\"")) return shown;
  text out;
  read_quoted(in, out);
  return out << in.rest();
}

}  // namespace partita
