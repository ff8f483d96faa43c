/// Names that a model gives to its parts.
#pragma once

#include <string_view>

#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The named parts of a program (`named("layer1", f)(x)`), and the part of each op, by
/// op_marks::source. Each call of a part is a part of its own. Parts nest: an op belongs to the
/// innermost part that it was created in, and so to the parts around it. A derivative belongs to
/// the part of the op that it derives. The list is empty for a program without named parts.
///
/// (Stored apart from the ops, as labels are: passes keep the numbers.)
class scope_list {
 public:
  constexpr bool empty() const { return list_.empty(); }
  /// Returns the number of parts; a part that is called twice counts twice.
  constexpr int count() const { return static_cast<int>(list_.size()); }
  constexpr std::string_view name(int scope) const { return view(list_[scope].name); }
  /// Returns the enclosing part, or -1.
  constexpr int outer(int scope) const { return list_[scope].outer; }
  /// Returns the number of earlier calls of parts with this name.
  constexpr int call(int scope) const { return list_[scope].call; }
  /// Returns the innermost part that contains (or is) both parts, or -1; -1 as an argument means no
  /// part.
  constexpr int common(int a, int b) const {
    while (a != b)  // an enclosing part has a lower number
      if (a > b)
        a = outer(a);
      else
        b = outer(b);
    return a;
  }
  /// Returns the part of the op with this number, or -1.
  constexpr int of(int number) const {
    return number < 0 || number >= static_cast<int>(of_op_.size()) ? -1 : of_op_[number];
  }

  /// Adds a part inside `outer` (-1: at the top level) and returns its number.
  constexpr int open(std::string_view name, int outer) {
    const int n = number_of(name);
    list_.push_back({n, outer, names_[n].calls++});
    return count() - 1;
  }
  /// Puts the op with this number into a part.
  constexpr void put(int number, int scope) {
    if (number >= static_cast<int>(of_op_.size()))
      of_op_.resize(static_cast<std::size_t>(number) + 1, -1);
    of_op_[number] = scope;
  }
  /// Replaces the assignment of ops to parts: op i belongs to part `of_op[i]`.
  constexpr void renumber(vec<int>&& of_op) { of_op_ = static_cast<vec<int>&&>(of_op); }

  // ---- Places -----------------------------------------------------------------------------------
  // Places show people where an op was created; no tactic uses them. Named parts are places too.

  constexpr bool any_places() const { return !places_.empty(); }
  /// Adds a place inside `outer` (-1: at the top level). `file` must last, as __FILE__ does, or be
  /// null.
  constexpr int open_place(std::string_view name, int outer, const char* file = nullptr,
                           int line = 0) {
    places_.push_back({number_of(name), outer, file, line});
    return static_cast<int>(places_.size()) - 1;
  }
  /// Returns the innermost place that contains (or is) both places, or -1.
  constexpr int common_place(int a, int b) const {
    while (a != b)
      if (a > b)
        a = outer_place(a);
      else
        b = outer_place(b);
    return a;
  }
  constexpr int outer_place(int place) const { return places_[place].outer; }
  /// Returns the place of the op with this number, or -1.
  constexpr int place_of(int number) const {
    return number < 0 || number >= static_cast<int>(place_of_op_.size()) ? -1
                                                                         : place_of_op_[number];
  }
  constexpr void put_place(int number, int place) {
    if (number >= static_cast<int>(place_of_op_.size()))
      place_of_op_.resize(static_cast<std::size_t>(number) + 1, -1);
    place_of_op_[number] = place;
  }
  constexpr void renumber_places(vec<int>&& of_op) {
    place_of_op_ = static_cast<vec<int>&&>(of_op);
  }
  /// Returns the path of a place, `layers.3.attention`, or an empty text for -1. (A name repeated
  /// directly inside itself appears once.)
  constexpr text path_of(int place) const {
    if (place < 0) return {};
    const int outer = outer_place(place);
    text path = path_of(outer);
    if (outer >= 0 && places_[outer].name == places_[place].name) return path;
    if (!path.empty()) path << '.';
    return path << view(places_[place].name);
  }
  /// Returns `model.hpp:41`, the line where the innermost place with a known file was opened, or an
  /// empty text.
  constexpr text line_of(int place) const {
    while (place >= 0 && places_[place].file == nullptr) place = outer_place(place);
    if (place < 0) return {};
    std::string_view file = places_[place].file;
    for (std::size_t i = file.size(); i-- > 0;)
      if (file[i] == '/' || file[i] == '\\') {
        file = file.substr(i + 1);
        break;
      }
    return concat(file, ':', places_[place].line);
  }
  /// Returns the place, or the enclosing one if the message already starts with its name: "S190
  /// attention: ...".
  constexpr int around(int place, std::string_view message) const {
    if (place < 0) return place;
    const std::string_view name = view(places_[place].name);
    const std::size_t at = message.find(' ') + 1;
    const bool said =
        message.substr(at, name.size()) == name && message.substr(at + name.size(), 1) == ":";
    return said ? outer_place(place) : place;
  }

 private:
  struct scope {
    int name = -1, outer = -1, call = 0;
  };
  struct part_name {
    int begin = 0, size = 0, calls = 0;
  };
  struct place {
    int name = -1, outer = -1;
    const char* file = nullptr;
    int line = 0;
  };
  vec<char> chars_;
  vec<part_name> names_;  ///< each name once
  place_table name_places_;
  vec<scope> list_;
  vec<int> of_op_;
  vec<place> places_;
  vec<int> place_of_op_;

  constexpr std::string_view view(int name) const {
    const part_name& n = names_[name];
    return {chars_.data() + n.begin, static_cast<std::size_t>(n.size)};
  }
  constexpr int number_of(std::string_view name) {
    const int known =
        name_places_.find(hash_of(name), [&](int i) { return same_chars(view(i), name); });
    if (known >= 0) return known;
    names_.push_back({static_cast<int>(chars_.size()), static_cast<int>(name.size()), 0});
    chars_.insert_back(name.begin(), name.end());
    const int fresh = static_cast<int>(names_.size()) - 1;
    name_places_.insert(fresh, [&](int i) { return hash_of(view(i)); });
    return fresh;
  }
};

}  // namespace partita
