/// Names of ops that have no name of their own.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Names that a front end found for ops (`layers_3.attn.dot_general`), by op_marks::source. Texts
/// and messages show them, and tactics find values by them. The list is empty for a program without
/// such names.
///
/// (Stored apart from the ops, so passes do not have to copy them: passes keep the numbers.)
class label_list {
 public:
  constexpr bool empty() const { return list_.empty(); }
  constexpr int size() const { return static_cast<int>(list_.size()); }
  /// Returns the name of the op with this number, or an empty view. `op` is its op_def::id: an op
  /// that a pass added on behalf of another one has the same number but is a different op.
  constexpr std::string_view find(int number, std::uint64_t op) const {
    if (number < 0 || number >= size() || list_[number].op != op) return {};
    const label& l = list_[number];
    return {chars_.data() + l.begin, static_cast<std::size_t>(l.size)};
  }
  /// Returns the name of result `index` of `count` results of the op with this number: the op's
  /// name, followed by the result's number if there are several. Results keep their numbers when
  /// others are removed.
  constexpr text result(int number, std::uint64_t op, int index, int count) const {
    const std::string_view name = find(number, op);
    const int k = kept_place(number);
    if (is_kept(k, number) && static_cast<int>(kept_[k].results.size()) == count)
      return concat(name, '.', kept_[k].results[index]);
    return count == 1 ? text(name) : concat(name, '.', index);
  }
  /// Keeps only these results, by their numbers, of an op that has several.
  constexpr void keep_results(int number, const vec<int>& results) {
    if (number < 0 || number >= size()) return;
    const int k = kept_place(number);
    if (!is_kept(k, number)) {
      kept_.push_back({number, results});
      for (int i = static_cast<int>(kept_.size()) - 1; i > k; --i) kept_[i] = kept_[i - 1];
      kept_[k] = {number, results};
      return;
    }
    vec<int> numbers;
    for (const int r : results) numbers.push_back(kept_[k].results[r]);
    kept_[k].results = numbers;
  }

  /// Names the op with the next number; an empty name means that it has none.
  constexpr void add(std::string_view name, std::uint64_t op) {
    list_.push_back({static_cast<int>(chars_.size()), static_cast<int>(name.size()), op});
    chars_.insert_back(name.begin(), name.end());
  }
  /// Adds the name of an op from another list, where it has another number.
  constexpr void add(const label_list& from, int number, std::uint64_t op) {
    const int k = from.kept_place(number);
    if (from.is_kept(k, number)) kept_.push_back({size(), from.kept_[k].results});
    add(from.find(number, op), op);
  }

  /// The name of a value by its id. In a flat program, the results of ops with nested programs are
  /// results of wires.
  struct value_label {
    int value = -1;
    text name;
  };
  vec<value_label> values;

 private:
  struct label {
    int begin = 0, size = 0;
    std::uint64_t op = 0;
  };
  struct kept_results {
    int number = -1;
    vec<int> results;
  };
  vec<char> chars_;
  vec<label> list_;
  vec<kept_results> kept_;  ///< ops that lost results, by number

  /// Returns the first index whose number is at least this one.
  constexpr int kept_place(int number) const {
    int begin = 0, end = static_cast<int>(kept_.size());
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (kept_[middle].number < number)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
  constexpr bool is_kept(int place, int number) const {
    return place < static_cast<int>(kept_.size()) && kept_[place].number == number;
  }
};

}  // namespace partita
