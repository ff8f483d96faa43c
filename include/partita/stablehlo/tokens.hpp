/// The tokens of the MLIR text of StableHLO modules.
#pragma once

#include <cstddef>
#include <string_view>

#include <partita/stablehlo/op_text.hpp>
#include <partita/support/error.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita::stablehlo_detail {

constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
constexpr bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '.' || c == '-';
}
/// Returns the text without its quotes, if it has any.
constexpr std::string_view without_quotes(std::string_view s) {
  return s.size() >= 2 && s.front() == '"' ? s.substr(1, s.size() - 2) : s;
}

/// Reads tokens and attributes of a module. After the first error every function returns at once.
///
/// Errors    H001 something else is expected, H002 brackets that do not match
class tokens {
 public:
  constexpr explicit tokens(std::string_view all) : all_(all) { match_braces(); }

  failure error;

  constexpr std::string_view all() const { return all_; }
  constexpr std::string_view view(piece_of_text p) const {
    return all_.substr(p.begin, p.end - p.begin);
  }
  constexpr bool failed() const { return error.is_set; }
  constexpr std::size_t position() const { return at_; }
  /// Continues at the beginning of a range, and stops at its end.
  constexpr void enter(piece_of_text p) {
    at_ = p.begin;
    end_ = p.end;
  }
  constexpr piece_of_text rest() const { return {at_, end_}; }

  /// Returns "line 3, column 8".
  constexpr text place(std::size_t at) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at && i < all_.size(); ++i) {
      ++column;
      if (all_[i] == '\n') ++line, column = 1;
    }
    return concat(line, ':', column);
  }
  template <class... Parts>
  constexpr void fail(std::size_t at, std::string_view code, const Parts&... parts) {
    if (!failed()) error.record(code, "stablehlo: ", place(at), ": ", parts...);
  }

  // ---- Tokens --------------------------------------------------------------------------------

  constexpr void skip() {
    while (at_ < end_) {
      if (is_space(all_[at_]))
        ++at_;
      else if (all_[at_] == '/' && at_ + 1 < end_ && all_[at_ + 1] == '/')
        while (at_ < end_ && all_[at_] != '\n') ++at_;
      else
        return;
    }
  }
  constexpr bool at_end() {
    skip();
    return at_ >= end_;
  }
  constexpr bool starts(std::string_view piece) {
    skip();
    return all_.substr(at_, end_ - at_).substr(0, piece.size()) == piece;
  }
  constexpr bool accept(std::string_view piece) {
    if (failed() || !starts(piece)) return false;
    at_ += piece.size();
    return true;
  }
  /// Accepts a word that is not the beginning of a longer one.
  constexpr bool accept_word(std::string_view piece) {
    if (failed() || !starts(piece)) return false;
    const std::size_t after = at_ + piece.size();
    if (after < end_ && is_word_char(all_[after])) return false;
    at_ = after;
    return true;
  }
  constexpr void expect(std::string_view piece) {
    if (!accept(piece)) expected(concat('"', piece, '"').view());
  }
  constexpr void expected(std::string_view what) {
    if (failed()) return;
    skip();
    const std::string_view found = all_.substr(at_, end_ - at_).substr(0, 24);
    if (found.empty())
      fail(at_, "H001", what, " is expected; the text ends");
    else
      fail(at_, "H001", what, " is expected, not \"", found.substr(0, found.find('\n')), '"');
  }
  constexpr std::string_view word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < end_ && is_word_char(all_[at_]) && !starts_arrow()) ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads `%arg0` or `%3#1`.
  constexpr std::string_view value_name() {
    skip();
    const std::size_t begin = at_;
    if (!accept("%")) {
      expected("a value");
      return {};
    }
    while (at_ < end_ && (is_word_char(all_[at_]) || all_[at_] == '#') && !starts_arrow()) ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads `@main` or `@"a b"`; returns it without the `@` and the quotes.
  constexpr std::string_view symbol() {
    expect("@");
    if (failed()) return {};
    if (at_ < end_ && all_[at_] == '"') return without_quotes(quoted());
    return word();
  }
  /// Reads a text in quotes; returns it with its quotes.
  constexpr std::string_view quoted() {
    skip();
    const std::size_t begin = at_;
    expect("\"");
    while (!failed() && at_ < end_ && all_[at_] != '"') at_ += all_[at_] == '\\' ? 2 : 1;
    if (at_ >= end_ && !failed()) fail(begin, "H001", "a text in quotes does not end");
    if (failed()) return {};
    ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads from an opening bracket to the matching closing one, both included.
  constexpr std::string_view bracketed() {
    skip();
    const std::size_t begin = at_;
    vec<char> open;
    while (at_ < end_ && !failed()) {
      const char c = all_[at_];
      if (c == '"') {
        quoted();
        continue;
      }
      if (c == '(' || c == '[' || c == '{' || c == '<') open.push_back(c);
      const bool arrow = c == '>' && at_ > begin && all_[at_ - 1] == '-';
      if ((c == ')' || c == ']' || c == '}' || c == '>') && !arrow) {
        const char wanted = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';
        if (open.empty() || open.back() != wanted) break;
        open.pop_back();
      }
      ++at_;
      if (open.empty()) return all_.substr(begin, at_ - begin);
    }
    fail(begin, "H002", "a bracket \"", all_.substr(begin, 1), "\" is not closed");
    return {};
  }
  /// Reads the value of an attribute as written; in a list, with its type.
  constexpr std::string_view attribute_value(bool in_list) {
    skip();
    const std::size_t begin = at_;
    for (;;) {
      skip();
      if (at_ >= end_ || failed()) break;
      const char c = all_[at_];
      if (c == '"')
        quoted();
      else if (c == '(' || c == '[' || c == '{' || c == '<')
        bracketed();
      else if (is_word_char(c) || c == '#' || c == '@' || c == '!' || c == '+')
        take_value_word();
      else
        break;
      // A value may continue: `dense` with its brackets, `1` and `dense<1>` with a type.
      const std::size_t after = at_;
      if (at_ < end_ && (all_[at_] == '<' || all_[at_] == '[')) continue;
      if (in_list && (accept("->") || accept(":"))) continue;
      at_ = after;
      break;
    }
    if (at_ == begin) expected("a value of an attribute");
    return all_.substr(begin, at_ - begin);
  }
  /// Reads `#stablehlo.gather` or `-1.5e+00`.
  constexpr void take_value_word() {
    ++at_;
    while (at_ < end_ && (is_word_char(all_[at_]) || all_[at_] == '+') && !starts_arrow()) ++at_;
  }
  /// Reads `{a = 1, b}`, the same in angle brackets, or without brackets up to `close`.
  constexpr void attribute_list(vec<named_text>& to, std::string_view close) {
    while (!failed() && !accept(close)) {
      const std::string_view name = starts("\"") ? without_quotes(quoted()) : word();
      if (name.empty()) return expected("the name of an attribute");
      to.push_back({name, accept("=") ? attribute_value(true) : std::string_view()});
      if (!accept(",") && !starts(close)) return expected(close);
    }
  }
  /// Reads text in braces; returns the range between them.
  constexpr piece_of_text braces() {
    skip();
    const std::size_t begin = at_;
    expect("{");
    if (failed()) return {};
    at_ = partner(begin) + 1;
    return {begin + 1, at_ - 1};
  }

 protected:
  std::string_view all_;
  std::size_t at_ = 0, end_ = 0;

  constexpr bool starts_arrow() const {
    return all_[at_] == '-' && at_ + 1 < end_ && all_[at_ + 1] == '>';
  }
  /// True if the character `c` follows `n` characters and blanks.
  constexpr bool has_after(std::size_t n, char c) const {
    std::size_t i = at_ + n;
    while (i < end_ && is_space(all_[i])) ++i;
    return i < end_ && all_[i] == c;
  }

 private:
  vec<piece_of_text> braces_;  // in the order of their beginnings

  constexpr void match_braces() {
    vec<std::size_t> open;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const char c = all_[i];
      if (c == '"') {
        const std::size_t begin = i++;
        while (i < all_.size() && all_[i] != '"') i += all_[i] == '\\' ? 2 : 1;
        if (i >= all_.size()) return fail(begin, "H001", "a text in quotes does not end");
      } else if (c == '/' && i + 1 < all_.size() && all_[i + 1] == '/') {
        while (i < all_.size() && all_[i] != '\n') ++i;
      } else if (c == '{') {
        braces_.push_back({i, 0});
        open.push_back(braces_.size() - 1);
      } else if (c == '}') {
        if (open.empty()) return fail(i, "H002", "a brace \"}\" closes nothing");
        braces_[open.back()].end = i;
        open.pop_back();
      }
    }
    if (!open.empty()) fail(braces_[open.back()].begin, "H002", "a brace \"{\" is not closed");
    end_ = all_.size();
  }
  /// Returns the position of the brace that closes the one at `begin`.
  constexpr std::size_t partner(std::size_t begin) const {
    std::size_t low = 0, high = braces_.size();
    while (low + 1 < high) {
      const std::size_t middle = (low + high) / 2;
      (braces_[middle].begin <= begin ? low : high) = middle;
    }
    return braces_[low].end;
  }
};

}  // namespace partita::stablehlo_detail
