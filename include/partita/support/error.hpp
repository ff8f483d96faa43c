/// A user's mistake: a code, a text, and how both reach the user at run time.
#pragma once

#include <exception>
#include <string_view>
#include <type_traits>

#include <partita/support/quoted.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// A message whose control characters, of names in it, are shown as in quotes.
constexpr text on_one_line(std::string_view message) {
  text out;
  for (char c : message)
    if (is_control(c))
      print_escaped(out, c);
    else
      out << c;
  return out;
}

/// What the front doors throw at run time. `what()` is "CODE noun: text".
class error : public std::exception {
 public:
  explicit error(std::string_view message) : message_(on_one_line(message)) { message_ << '\0'; }
  const char* what() const noexcept override { return message_.view().data(); }
  /// The code in front of the text, for example "S003".
  std::string_view code() const {
    const std::string_view all = what();
    return all.substr(0, all.find(' '));
  }

 private:
  text message_;  // <string> would double what including this header costs
};

/// The first mistake found while something is built; empty while all is well.
///
/// The engine carries a mistake as a value: inside constant evaluation a throw would print pages
/// of call stack, where `check<>` prints the text in one diagnostic.
struct failure {
  text message;
  bool is_set = false;  ///< (asked after each op: cheaper than to look whether there is a text)

  constexpr explicit operator bool() const { return is_set; }
  /// Records a mistake; only the first one counts, what follows from it is noise. (Parts by value:
  /// literals of all lengths are one type then, and one function to compile.)
  template <class... Parts>
  constexpr void record(std::string_view code, Parts... parts) {
    if (is_set) return;
    text words;
    words << code << ' ';
    (words << ... << parts);
    set(on_one_line(words));
  }
  constexpr void record(const failure& other) {
    if (!is_set && other.is_set) set(other.message);
  }
  /// This is the mistake, whatever was recorded.
  constexpr void set(const text& words) {
    message = words;
    is_set = true;
  }
  /// Throws `error` at run time; does nothing inside constant evaluation.
  constexpr void raise() const {
    if (is_set && !std::is_constant_evaluated()) throw error(message.view());
  }
};

/// Edit distance (insert, delete, replace), for "did you mean"; `limit` where it is that or more.
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

/// What stands for a name that was not found: the closest one, or one that ends with it, behind a
/// dot ("params.w1" for "w1"). What is too long to be mistyped is not compared.
class closest_name {
 public:
  static constexpr std::size_t longest = 64;

  constexpr explicit closest_name(std::string_view wanted)
      : wanted_(wanted), best_(static_cast<int>(wanted.size() / 2 + 2)) {}

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
  /// What the name lies below, too, where that can be asked for: "layers_0" of "layers_0.up". (Of
  /// what several names lie below once, if they stand together.)
  constexpr void look_at_all_of(std::string_view name) {
    std::size_t same = 0;
    while (same < name.size() && same < last_.size() && name[same] == last_[same]) ++same;
    for (std::size_t i = same; i < name.size(); ++i)
      if (name[i] == '.') look_at(name.substr(0, i));
    look_at(name);
    last_ = name;
  }
  constexpr std::string_view found() const { return found_; }

 private:
  std::string_view wanted_, found_, last_;
  int best_;
};

/// "known: a, b, c; did you mean b?" for a name that was not found; at most `limit` names, of long
/// ones the beginning. `below`: a name stands for all that lie below it.
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
template <class Names>
constexpr text known_names_or_below(std::string_view wanted, const Names& names) {
  return known_names(wanted, names, 8, true);
}

}  // namespace partita
