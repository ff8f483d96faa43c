/// User errors: a code and a text, and how both reach the user at run time.
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>

#include <partita/support/quoted.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// Returns a message with its control characters escaped, as in a quoted name.
constexpr text on_one_line(std::string_view message) {
  text out;
  for (char c : message)
    if (is_control(c))
      print_escaped(out, c);
    else
      out << c;
  return out;
}

/// The exception that the public functions throw at run time. `what()` is "CODE noun: text".
class error : public std::exception {
 public:
  explicit error(std::string_view message) : message_(on_one_line(message)) { message_ << '\0'; }
  const char* what() const noexcept override { return message_.view().data(); }
  /// Returns the code at the start of the text, for example "S003".
  std::string_view code() const {
    const std::string_view all = what();
    return all.substr(0, all.find(' '));
  }

 private:
  text message_;  // <string> would double what including this header costs
};

/// The first error found while something is built; empty as long as nothing failed.
///
/// The engine passes an error as a value. A throw inside constant evaluation would print pages of
/// call stack, while `check<>` prints the text in one diagnostic.
struct failure {
  text message;
  bool is_set = false;  ///< (tested after each op: cheaper than testing the text)

  constexpr explicit operator bool() const { return is_set; }
  /// Records an error. Only the first one counts, because later ones usually follow from it. (Parts
  /// are passed by value: string literals of all lengths then have one type, and one function is
  /// compiled.)
  template <class... Parts>
  constexpr void record(std::string_view code, Parts... parts) {
    if (is_set) return;
    text words;
    words << code << ' ';
    (words << ... << parts);
    set(on_one_line(words));
  }
  /// Records another failure's error, if it has one and none is recorded yet.
  constexpr void record(const failure& other) {
    if (!is_set && other.is_set) set(other.message);
  }
  /// Replaces whatever was recorded.
  constexpr void set(const text& words) {
    message = words;
    is_set = true;
  }
  /// Throws `error` at run time; does nothing inside constant evaluation.
  constexpr void raise() const {
    if (is_set && !std::is_constant_evaluated()) throw error(message.view());
  }
};

/// Returns the edit distance (insert, delete, replace) for "did you mean", or `limit` if it is at
/// least that.
constexpr int edit_distance(std::string_view a, std::string_view b, int limit = 1 << 20) {
  const std::size_t apart = a.size() < b.size() ? b.size() - a.size() : a.size() - b.size();
  if (apart >= static_cast<std::size_t>(limit)) return limit;
  vec<int> row(b.size() + 1, 0);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0], least = static_cast<int>(i);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      int best = replace;
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
      if (best < least) least = best;
    }
    if (least >= limit) return limit;
  }
  return row[b.size()] < limit ? row[b.size()] : limit;
}

/// Finds the known name that a misspelled name most likely means: the closest one, or one that ends
/// with it after a dot ("params.w1" for "w1"). Names longer than `longest` are not compared.
class closest_name {
 public:
  static constexpr std::size_t longest = 64;

  constexpr explicit closest_name(std::string_view wanted)
      : wanted_(wanted), best_(static_cast<int>(wanted.size() / 2 + 2)) {}

  /// Considers a known name.
  constexpr void look_at(std::string_view name) {
    if (wanted_.empty() || wanted_.size() > longest || name.size() > longest) return;
    const bool ends = name.size() > wanted_.size() &&
                      name.substr(name.size() - wanted_.size()) == wanted_ &&
                      name[name.size() - wanted_.size() - 1] == '.';
    const int distance = ends ? 1 : edit_distance(wanted_, name, best_);
    if (distance >= best_) return;
    best_ = distance;
    found_ = name;
  }
  /// Considers a name and every prefix of it that ends before a dot ("layers_0" of "layers_0.up"),
  /// for contexts in which a prefix selects all names below it. A prefix shared by consecutive
  /// names is considered once.
  constexpr void look_at_all_of(std::string_view name) {
    std::size_t same = 0;
    while (same < name.size() && same < last_.size() && name[same] == last_[same]) ++same;
    for (std::size_t i = same; i < name.size(); ++i)
      if (name[i] == '.') look_at(name.substr(0, i));
    look_at(name);
    last_ = name;
  }
  /// Returns the best match, or an empty view.
  constexpr std::string_view found() const { return found_; }

 private:
  std::string_view wanted_, found_, last_;
  int best_;
};

/// Returns "known: a, b, c; did you mean b?" for a name that was not found. Lists at most `limit`
/// names and shortens long ones. With `below`, a name also selects all names below it, so prefixes
/// are suggested too.
template <class Names>
constexpr text known_names(std::string_view wanted, const Names& names, int limit = 8,
                           bool below = false) {
  constexpr std::size_t longest = closest_name::longest;
  text out;
  out << "known: ";
  int shown = 0;
  closest_name closest(wanted);
  for (std::string_view name : names) {
    if (shown < limit)
      out << (shown == 0 ? "" : ", ") << name.substr(0, longest)
          << (name.size() > longest ? "..." : "");
    ++shown;
    if (below)
      closest.look_at_all_of(name);
    else
      closest.look_at(name);
  }
  if (shown == 0) out << "none";
  if (shown > limit) out << " and " << shown - limit << " more";
  if (!closest.found().empty()) out << "; did you mean \"" << closest.found() << "\"?";
  return out;
}
/// Returns known_names for contexts in which a prefix selects all names below it.
template <class Names>
constexpr text known_names_or_below(std::string_view wanted, const Names& names) {
  return known_names(wanted, names, 8, true);
}

}  // namespace partita
