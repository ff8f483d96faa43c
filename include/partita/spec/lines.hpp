/// A reader of small texts that people write: words, names, numbers, and positions for messages.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <partita/support/error.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/scanner.hpp>

namespace partita::spec_detail {

/// The quantity of a number in a text: its possible units and its range.
struct measure {
  enum unit_kind : std::uint8_t { plain, bytes, bytes_per_second, flop, flop_per_second, seconds };
  std::string_view what;  ///< for messages: "a number of bytes, like 16 GiB,"
  unit_kind unit = plain;
  double most = 1e18;
  bool zero = false;  ///< true if 0 is in the range
};
inline constexpr double most_bytes = 1e18;  // sums of several fit into 64 bits
constexpr measure bytes_like(std::string_view what) { return {what, measure::bytes, most_bytes}; }
constexpr measure seconds_like(std::string_view what) {
  return {what, measure::seconds, 1e9, true};
}

/// Returns "known: a, b, c; did you mean b?" with all words of a language.
template <class Words>
constexpr text all_words(std::string_view wanted, const Words& words) {
  return known_names(wanted, words, 1 << 20);
}

/// Reads a text with comments (`# ...` and `// ...`, up to the end of the line). After the first
/// error every function returns at once.
class lines {
 public:
  /// `what` names the kind of text in messages.
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
  /// Skips blanks and comments, on this line only or on later lines too.
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
  /// True if the rest of the line is empty.
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
  /// Reads the characters of a name or a number. `stop`: additional characters that end a word.
  constexpr std::string_view word(std::string_view stop = {}) {
    skip(false);
    const std::size_t begin = at_;
    constexpr std::string_view marks = " \t\r\n,{}\"#";
    while (at_ < all_.size() && marks.find(all_[at_]) == std::string_view::npos &&
           stop.find(all_[at_]) == std::string_view::npos)
      ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads a word, or any text in quotes.
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
  /// Reads the characters up to `stop` on this line, including inner blanks.
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
  /// Reads a positive number, 1 to `most`; `what` describes it.
  ///
  /// Errors    X001 it is missing, X020 it is out of range
  constexpr std::int64_t count(std::string_view what, std::int64_t most) {
    skip(false);
    const std::size_t begin = at_;
    const std::int64_t n = number(what);
    if (!failed() && (n < 1 || n > most))
      fail(begin, "X020", n, " is not ", what, "; give 1 to ", most);
    return failed() ? 1 : n;
  }
  /// Reads the number of a dimension. A number above all ranks is accepted; a caller that knows the
  /// shape checks it.
  constexpr int dimension() {
    skip(false);
    const std::size_t begin = at_;
    const std::int64_t dim = number("a dimension");
    if (!failed() && dim < 0)
      fail(begin, "X020", dim, " is not a dimension; they are counted from 0");
    return failed() ? 0 : static_cast<int>(dim > max_dimension ? max_dimension : dim);
  }
  /// Reads a number with a unit, like "16 GiB" or "4e9 B", and returns it in the base unit of its
  /// kind.
  ///
  /// Errors    X001 it is missing, X002 its unit is unknown or of another kind, X020 it
  ///           is out of range
  constexpr double quantity(const measure& m) {
    skip(false);
    const std::size_t begin = at_;
    double v = 0;
    scanner in(all_.substr(at_));
    if (failed() || !read_number(in, v) || v != v) {
      expected(m.what);
      return 0;
    }
    at_ += in.position();
    const std::size_t after = at_;
    const std::string_view unit = word(";");
    if (unit.empty() || (m.unit == measure::plain && !is_unit(unit))) {
      at_ = after;
    } else {
      const double factor = factor_of(unit, m.unit);
      if (factor == 0) {
        at_ = after;
        fail(begin, "X002", "unit \"", unit,
             is_unit(unit) ? "\" is of another kind; " : "\" is unknown; ", units_of(m.unit));
        return 0;
      }
      v *= factor;
    }
    check_range(begin, all_.substr(begin, at_ - begin), m, v);
    return failed() ? 0 : v;
  }
  /// Rejects a value outside of the range of a measure. `written` is the number as in the text.
  ///
  /// Errors    X020
  constexpr void check_range(std::size_t at, std::string_view written, const measure& m, double v) {
    if ((m.zero ? v >= 0 : v > 0) && v <= m.most) return;
    std::string_view what = m.what;
    if (what.ends_with(",")) what.remove_suffix(1);
    text most;
    print_number(most, m.most);
    fail(at, "X020", '"', written, "\" is out of range; give ", what,
         m.zero ? ", from 0 to " : ", above 0 and at most ", most);
  }

  /// Reads `{a, b}`, calling read() for each entry.
  template <class F>
  constexpr void list(const F& read) {
    expect("{");
    do {
      skip(true);
      if (starts("}")) break;
      read();
      skip(true);
    } while (!failed() && accept(","));
    skip(true);
    expect("}");
  }

 private:
  static constexpr int max_dimension = 1 << 20;

  struct unit_name {
    std::string_view name;
    measure::unit_kind kind;
    bool prefixed;
  };
  static constexpr unit_name unit_names[] = {{"B", measure::bytes, true},
                                             {"B/s", measure::bytes_per_second, true},
                                             {"FLOP", measure::flop, true},
                                             {"flop", measure::flop, true},
                                             {"FLOP/s", measure::flop_per_second, true},
                                             {"FLOPS", measure::flop_per_second, true},
                                             {"s", measure::seconds, false},
                                             {"ms", measure::seconds, false},
                                             {"us", measure::seconds, false},
                                             {"ns", measure::seconds, false}};
  static constexpr std::string_view units_of(measure::unit_kind kind) {
    switch (kind) {
      case measure::bytes:
        return "use B, kB, MB, GB, TB, PB, KiB, MiB, GiB or TiB";
      case measure::bytes_per_second:
        return "use B/s, kB/s, MB/s, GB/s, TB/s, PB/s or KiB/s to TiB/s";
      case measure::flop:
        return "use FLOP, kFLOP, MFLOP, GFLOP, TFLOP or PFLOP";
      case measure::flop_per_second:
        return "use FLOP/s, kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s or PFLOP/s";
      case measure::seconds:
        return "use s, ms, us or ns";
      default:
        return "the number has no unit";
    }
  }
  /// Returns the factor of a unit of this kind, or 0.
  static constexpr double factor_of(std::string_view unit, measure::unit_kind kind) {
    constexpr struct {
      std::string_view prefix;
      double factor;
    } prefixes[] = {{"Ki", 1024.}, {"Mi", 1048576.}, {"Gi", 1073741824.}, {"Ti", 1099511627776.},
                    {"k", 1e3},    {"M", 1e6},       {"G", 1e9},          {"T", 1e12},
                    {"P", 1e15},   {"", 1}};
    if (kind == measure::seconds) {
      for (const auto& [name, factor] :
           {std::pair<std::string_view, double>{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}})
        if (unit == name) return factor;
      return 0;
    }
    for (const auto& p : prefixes) {
      if (!unit.starts_with(p.prefix)) continue;
      const std::string_view rest = unit.substr(p.prefix.size());
      for (const unit_name& u : unit_names)
        if (u.kind == kind && u.prefixed && u.name == rest) return p.factor;
    }
    return 0;
  }
  static constexpr bool is_unit(std::string_view unit) {
    for (const unit_name& u : unit_names)
      if (factor_of(unit, u.kind) != 0) return true;
    return false;
  }

  std::string_view all_, what_;
  std::size_t at_ = 0;
};

}  // namespace partita::spec_detail
