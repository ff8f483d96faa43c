/// A reader of JSON (RFC 8259) in files, which are untrusted input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <partita/run/file/byte_reader.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/utf8.hpp>

namespace partita::run_detail {

/// Reads a JSON text value by value, in the order that the caller expects.
///
/// Errors    `code`: the text has another form, or skipped values are nested more than 120 deep
class json_reader {
 public:
  /// `wrong` is the statement that an error makes about the text, such as "its header is not JSON".
  json_reader(std::string_view json, const byte_reader& in, std::string_view code,
              std::string_view wrong)
      : s_(json), in_(in), code_(code), wrong_(wrong) {}

  [[noreturn]] void fail(std::string_view what) const {
    in_.fail(code_, wrong_, ": ", what, " at byte ", s_.position());
  }
  /// Reads items up to the closing bracket.
  template <class Item>
  void list(std::string_view open, std::string_view close, const Item& item) {
    need(open, open);
    blank();
    if (s_.accept(close)) return;
    for (;;) {
      item();
      blank();
      if (s_.accept(close)) return;
      need(",", ", or a closing bracket");
    }
  }
  template <class Member>
  void object(const Member& member) {
    list("{", "}", [&] {
      const std::string name = string();
      need(":", ":");
      member(name);
    });
  }
  std::uint64_t number() {
    blank();
    std::uint64_t n = 0;
    const bool zero = s_.starts("0");
    const std::size_t at = s_.position();
    if (!s_.natural(n, INT64_MAX) || (zero && s_.position() > at + 1))
      fail("a whole number below 2^63 is missing");
    return n;
  }
  std::string string() {
    need("\"", "a string");
    std::string out;
    for (;;) {
      out += s_.take_while(
          [](char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; });
      if (s_.accept("\"")) break;
      if (!s_.accept("\\")) fail("a string does not end");
      escape(out);
    }
    if (!is_utf8(out)) fail("a string is not UTF-8");
    return out;
  }
  /// Skips a value of any kind.
  void skip_value(int depth = 0) {
    constexpr int most = 120;
    if (depth > most) fail("values nest too deep");
    blank();
    if (s_.starts("\"")) {
      string();
    } else if (s_.starts("{")) {
      object([&](const std::string&) { skip_value(depth + 1); });
    } else if (s_.starts("[")) {
      list("[", "]", [&] { skip_value(depth + 1); });
    } else if (!s_.accept("null") && !s_.accept("true") && !s_.accept("false")) {
      s_.accept("-");
      const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
      if (s_.take_while(is_digit).empty()) fail("a value is missing");
      if (s_.accept(".") && s_.take_while(is_digit).empty()) fail("a digit is missing");
      if (!s_.accept("e") && !s_.accept("E")) return;
      if (!s_.accept("+")) s_.accept("-");
      if (s_.take_while(is_digit).empty()) fail("a digit is missing");
    }
  }
  /// Reads a word and returns true if it is next; else returns false.
  bool accept(std::string_view word) {
    blank();
    return s_.accept(word);
  }
  void need(std::string_view piece, std::string_view name) {
    if (!accept(piece)) fail(concat(name, " is missing"));
  }
  /// Reads `"name":` after this bracket or comma.
  void need_member(std::string_view before, std::string_view name) {
    need(before, before);
    if (string() != name) fail(concat('"', name, "\" is missing"));
    need(":", ":");
  }
  void need_end() {
    blank();
    if (!s_.done()) fail("unexpected text");
  }

 private:
  scanner s_;
  const byte_reader& in_;
  std::string_view code_, wrong_;

  void blank() {
    s_.take_while([](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
  }
  void escape(std::string& out) {
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    const std::string_view rest = s_.rest();
    const std::size_t which = rest.empty() ? std::string_view::npos : from.find(rest[0]);
    if (which != std::string_view::npos) {
      out += to[which];
      s_.accept(rest.substr(0, 1));
      return;
    }
    std::uint32_t code = unit();
    if (code >= 0xd800 && code < 0xdc00 && s_.accept("\\")) {
      const std::uint32_t low = unit();
      if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair is missing");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code <= 0xdfff) fail("half of a surrogate pair is missing");
    append_utf8(out, code);
  }
  /// Reads an escape such as `u00e9`.
  std::uint32_t unit() {
    std::uint32_t code = 0;
    if (!s_.accept("u")) fail("an escape is unknown");
    for (int i = 0; i < 4; ++i) {
      constexpr std::string_view digits = "0123456789abcdefABCDEF";
      const std::string_view rest = s_.rest();
      const std::size_t d = rest.empty() ? std::string_view::npos : digits.find(rest[0]);
      if (d == std::string_view::npos) fail("a hexadecimal digit is missing");
      code = code << 4 | static_cast<std::uint32_t>(d < 16 ? d : d - 6);
      s_.accept(rest.substr(0, 1));
    }
    return code;
  }
  static void append_utf8(std::string& out, std::uint32_t code) {
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const std::uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(lead[more] | code >> (6 * more));
    for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
  }
};

}  // namespace partita::run_detail
