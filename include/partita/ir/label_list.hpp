/// Names of ops that have none of their own.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Names that a front end found for ops (`layers_3.attn.dot_general`), by op_marks::source. They
/// are for people: texts and messages show them, and tactics find values by them. A program without
/// any has an empty list.
///
/// (Kept apart from ops, so that passes do not carry them: these keep the numbers.)
class label_list {
 public:
  constexpr bool empty() const { return list_.empty(); }
  constexpr int size() const { return static_cast<int>(list_.size()); }
  /// The name of the op with this number. `op`: what it is; an op that a pass added for the sake of
  /// another one has its number, and is something else.
  constexpr std::string_view find(int number, std::uint64_t op) const {
    if (number < 0 || number >= size() || list_[number].op != op) return {};
    const label& l = list_[number];
    return {chars_.data() + l.begin, static_cast<std::size_t>(l.size)};
  }
  /// Names the op with the next number; an empty name is none.
  constexpr void add(std::string_view name, std::uint64_t op) {
    list_.push_back({static_cast<int>(chars_.size()), static_cast<int>(name.size()), op});
    chars_.insert_back(name.begin(), name.end());
  }
  /// Adds what another list says of an op with another number.
  constexpr void add(const label_list& from, int number, std::uint64_t op) {
    add(from.find(number, op), op);
  }

  /// A value by its id: in a flat program results of ops with nested programs are those of wires.
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
  vec<char> chars_;
  vec<label> list_;
};

/// The name of result `index` of `count` results of an op that is named: its number stands behind
/// the name, if there are several.
constexpr text result_label(std::string_view name, int index, int count) {
  return count == 1 ? text(name) : concat(name, '.', index);
}

}  // namespace partita
