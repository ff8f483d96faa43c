/// Names that a model gives to parts of itself.
#pragma once

#include <string_view>

#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The named parts of a program (`named("layer1", f)(x)`), each call of a part by itself, and which
/// ops are of which part, by op_marks::source. Parts stand in each other: an op is of the innermost
/// one it was written in, and so of those around. A derivative is of the part of the op it derives.
/// A program without such names has an empty list.
///
/// (Kept apart from ops, as labels are: passes keep the numbers.)
class scope_list {
 public:
  constexpr bool empty() const { return list_.empty(); }
  /// How many parts there are, a part that is called twice counted twice.
  constexpr int count() const { return static_cast<int>(list_.size()); }
  constexpr std::string_view name(int scope) const { return view(list_[scope].name); }
  /// The part around it, or -1.
  constexpr int outer(int scope) const { return list_[scope].outer; }
  /// How many calls of parts of this name came before.
  constexpr int call(int scope) const { return list_[scope].call; }
  /// The innermost part that two parts (-1: none) stand in, or are, or -1.
  constexpr int common(int a, int b) const {
    while (a != b)  // parts around a part come before it
      if (a > b)
        a = outer(a);
      else
        b = outer(b);
    return a;
  }
  /// The part of the op with this number, or -1.
  constexpr int of(int number) const {
    return number < 0 || number >= static_cast<int>(of_op_.size()) ? -1 : of_op_[number];
  }

  /// One more part, in `outer` or (-1) in none.
  constexpr int open(std::string_view name, int outer) {
    const int n = number_of(name);
    list_.push_back({n, outer, names_[n].calls++});
    return count() - 1;
  }
  /// The op with this number is of a part.
  constexpr void put(int number, int scope) {
    if (number >= static_cast<int>(of_op_.size()))
      of_op_.resize(static_cast<std::size_t>(number) + 1, -1);
    of_op_[number] = scope;
  }
  /// Ops have got other numbers: those of op i are of part `of_op[i]`.
  constexpr void renumber(vec<int>&& of_op) { of_op_ = static_cast<vec<int>&&>(of_op); }

 private:
  struct scope {
    int name = -1, outer = -1, call = 0;
  };
  struct part_name {
    int begin = 0, size = 0, calls = 0;
  };
  vec<char> chars_;
  vec<part_name> names_;  ///< each once
  place_table places_;
  vec<scope> list_;
  vec<int> of_op_;

  constexpr std::string_view view(int name) const {
    const part_name& n = names_[name];
    return {chars_.data() + n.begin, static_cast<std::size_t>(n.size)};
  }
  constexpr int number_of(std::string_view name) {
    const int known = places_.find(hash_of(name), [&](int i) { return same_chars(view(i), name); });
    if (known >= 0) return known;
    names_.push_back({static_cast<int>(chars_.size()), static_cast<int>(name.size()), 0});
    chars_.insert_back(name.begin(), name.end());
    const int fresh = static_cast<int>(names_.size()) - 1;
    places_.insert(fresh, [&](int i) { return hash_of(view(i)); });
    return fresh;
  }
};

}  // namespace partita
