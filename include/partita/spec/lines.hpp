/// Small texts that people write: words, names, numbers, places for messages.
#pragma once

#include <string_view>
#include <utility>

#include <partita/support/error.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/scanner.hpp>

namespace partita::spec_detail {

/// Reads a text with comments (`# ...` and `// ...`, up to the end of the line). After the first
/// mistake everything returns at once.
class lines {
 public:
  /// `what`: what the text is, for messages.
  constexpr lines(std::string_view all, std::string_view what) : all_(all), what_(what) {}

  failure error;

  constexpr bool failed() const { return error.is_set; }
  constexpr std::size_t position() const { return at_; }
  template <class... Parts>
  constexpr void fail(std::size_t at, std::string_view code, const Parts&... parts) {
    if (failed()) return;
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at; ++i) {
      ++column;
      if (all_[i] == '\n') ++line, column = 1;
    }
    error.record(code, what_, ": ", line, ':', column, ": ", parts...);
  }
  /// Over blanks and comments, on this line only or further.
  constexpr void skip(bool further) {
    while (at_ < all_.size()) {
      const char c = all_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && further)) {
        ++at_;
      } else if (c == '#' || (c == '/' && at_ + 1 < all_.size() && all_[at_ + 1] == '/')) {
        while (at_ < all_.size() && all_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }
  constexpr bool at_end() {
    skip(true);
    return at_ >= all_.size();
  }
  /// Is the rest of the line empty?
  constexpr bool at_line_end() {
    skip(false);
    return at_ >= all_.size() || all_[at_] == '\n';
  }
  constexpr bool starts(std::string_view piece) {
    skip(false);
    return all_.substr(at_, piece.size()) == piece;
  }
  constexpr bool accept(std::string_view piece) {
    if (failed() || !starts(piece)) return false;
    at_ += piece.size();
    return true;
  }
  constexpr void expect(std::string_view piece) {
    if (!accept(piece)) expected(concat('"', piece, '"').view());
  }
  constexpr void expected(std::string_view what) {
    if (failed()) return;
    const bool end = at_line_end();
    const std::string_view found = all_.substr(at_, 24);
    if (end)
      fail(at_, "X001", what, " is expected; the line ends");
    else
      fail(at_, "X001", what, " is expected, not \"", found.substr(0, found.find('\n')), '"');
  }
  /// Characters of names and numbers; `stop`: those that end a word here.
  constexpr std::string_view word(std::string_view stop = {}) {
    skip(false);
    const std::size_t begin = at_;
    constexpr std::string_view marks = " \t\r\n,{}\"#";
    while (at_ < all_.size() && marks.find(all_[at_]) == std::string_view::npos &&
           stop.find(all_[at_]) == std::string_view::npos)
      ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// A word, or anything in quotes.
  constexpr text name(std::string_view stop = {}) {
    if (!accept("\"")) {
      const std::string_view found = word(stop);
      if (found.empty()) expected("a name");
      return found;
    }
    text out;
    scanner in(all_.substr(at_));
    if (!read_quoted(in, out)) fail(at_, "X001", "a name in quotes does not end");
    at_ += in.position();
    return out;
  }
  /// All characters up to `stop` on this line, blanks within included.
  constexpr std::string_view before(char stop) {
    skip(false);
    const std::size_t begin = at_;
    while (at_ < all_.size() && all_[at_] != stop && all_[at_] != '\n') ++at_;
    std::size_t end = at_;
    while (end > begin && (all_[end - 1] == ' ' || all_[end - 1] == '\t' || all_[end - 1] == '\r'))
      --end;
    return all_.substr(begin, end - begin);
  }
  constexpr bool integer(std::int64_t& out) {
    skip(false);
    scanner in(all_.substr(at_));
    if (failed() || !in.integer(out)) return false;
    at_ += in.position();
    return true;
  }
  constexpr std::int64_t number(std::string_view what) {
    std::int64_t n = 0;
    if (!integer(n)) expected(what);
    return n;
  }
  /// A number with a unit: bytes ("16 GiB", "4e9 B") and the like, in units of the first.
  constexpr double quantity(std::string_view what) {
    skip(false);
    const std::size_t begin = at_;
    double v = 0;
    scanner in(all_.substr(at_));
    if (failed() || !read_number(in, v) || !(v >= 0)) {
      expected(what);
      return 0;
    }
    at_ += in.position();
    const std::size_t behind = at_;
    const std::string_view unit = word();
    if (unit.empty()) return v;
    const double factor = factor_of(unit);
    if (factor == 0) {
      at_ = behind;
      fail(begin, "X002", "unit \"", unit,
           "\" is unknown; B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, "
           "FLOP/s with k to P, B/s with k to T, s, ms, us, ns are known");
    }
    return v * factor;
  }

 private:
  static constexpr double factor_of(std::string_view unit) {
    constexpr struct {
      std::string_view prefix;
      double factor;
    } prefixes[] = {{"Ki", 1024.}, {"Mi", 1048576.}, {"Gi", 1073741824.}, {"Ti", 1099511627776.},
                    {"k", 1e3},    {"M", 1e6},       {"G", 1e9},          {"T", 1e12},
                    {"P", 1e15},   {"", 1}};
    for (const auto& [name, factor] :
         {std::pair<std::string_view, double>{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}})
      if (unit == name) return factor;
    for (const auto& p : prefixes) {
      if (!unit.starts_with(p.prefix)) continue;
      const std::string_view rest = unit.substr(p.prefix.size());
      if (rest == "B" || rest == "B/s" || rest == "FLOP/s" || rest == "FLOPS") return p.factor;
    }
    return 0;
  }

  std::string_view all_, what_;
  std::size_t at_ = 0;
};

}  // namespace partita::spec_detail
