/// Names in texts: as they are where that reads back, else in quotes.
#pragma once

#include <string_view>

#include <partita/support/scanner.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// Not shown as they are: control characters.
constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}
/// Characters of names that need no quotes.
constexpr bool is_plain(char c) {
  return !is_control(c) && c != ' ' && c != ',' && c != '<' && c != '>' && c != '"' && c != '%';
}
constexpr bool is_plain_name(std::string_view name) {
  bool plain = !name.empty();
  for (char c : name) plain = plain && is_plain(c);
  return plain;
}

/// Appends a character as it stands in quotes: `\"`, `\\`, control characters as `\n`, `\t` or
/// `\x0b`; all others, those of UTF-8 among them, are themselves.
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
/// As it stands in quotes, without them.
constexpr text escaped(std::string_view name) {
  text out;
  for (char c : name) print_escaped(out, c);
  return out;
}
/// `"a b"`.
constexpr void print_quoted(text& out, std::string_view name) {
  out << '"' << escaped(name) << '"';
}
/// `ab`, but `"a b"`.
constexpr text name_text(std::string_view name) {
  if (is_plain_name(name)) return name;
  text out;
  print_quoted(out, name);
  return out;
}
/// A name in a message: of a long one the beginning.
constexpr text short_name(std::string_view name, std::size_t most = 80) {
  if (name.size() <= most) return name;
  return concat(name.substr(0, most), "... (", name.size(), " characters)");
}

/// Appends what stands in quotes; the first one is taken already. False if the last one is missing,
/// or a backslash stands before something else than print_quoted writes.
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
/// Appends the name of a value as texts show it: `ab`, `"a b"`, or with a suffix behind the quotes,
/// `"a b"g`. What stands in quotes is brought to the form that name_text gives it.
constexpr bool read_name(scanner& in, text& out) {
  if (in.accept("\"")) {
    text inside;
    if (!read_quoted(in, inside)) return false;
    out << name_text(inside);
  }
  out << in.take_while(is_plain);
  return !out.empty();
}
/// The name that is shown so: without quotes.
constexpr text unquoted(std::string_view shown) {
  scanner in(shown);
  if (!in.accept("\"")) return shown;
  text out;
  read_quoted(in, out);
  return out << in.rest();
}

}  // namespace partita
