/// A partly written module: its inner shardings, the functions that other functions call, and the
/// first error.
#pragma once

#include <partita/ir/mesh.hpp>
#include <partita/ir/program.hpp>
#include <partita/stablehlo/module_text.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>

namespace partita::stablehlo_detail {

class body_writer;

/// Shardings of values inside a program, for a partitioner that reads it: `<@mesh, [{"B"}, {}]>`.
class inner_shardings {
 public:
  /// Adds the sharding of result `result` of the op with this number (op_marks::source).
  constexpr void add(int number, int result, const text& sharding) {
    while (static_cast<int>(first_.size()) <= number) first_.push_back(-1);
    list_.push_back({result, first_[number], sharding});
    first_[number] = static_cast<int>(list_.size()) - 1;
  }
  constexpr const text* find(int number, int result) const {
    const bool known = number >= 0 && number < static_cast<int>(first_.size());
    for (int i = known ? first_[number] : -1; i >= 0; i = list_[i].next)
      if (list_[i].result == result) return &list_[i].sharding;
    return nullptr;
  }

 private:
  struct entry {
    int result = 0, next = -1;
    text sharding;
  };
  vec<int> first_;  ///< by number
  vec<entry> list_;
};

/// A partly written module: the functions that other functions call, and the first error.
class module_writer {
 public:
  text functions;  ///< complete ones
  failure error;
  const partita::mesh* mesh = nullptr;         ///< of a device-local program
  const inner_shardings* shardings = nullptr;  ///< of values of the program
  bool places = true;  ///< false: ops that copy to another memory are not written
  /// Writes ops that only a device-local program has; false for other ops.
  bool (*write_more)(body_writer&, op_id) = nullptr;

  /// Returns an unused name for a function.
  constexpr text new_name(std::string_view of) { return concat("partita.", of, '.', ++names_); }

  /// Returns the name of the function with this key, or null if it is not written yet.
  constexpr const text* find(std::string_view key) const {
    const int i = table_.find(hash_of(key), [&](int k) { return keys_[k].view() == key; });
    return i < 0 ? nullptr : &values_[i];
  }
  constexpr void remember(const text& key, const text& name) {
    keys_.push_back(key);
    values_.push_back(name);
    table_.insert(static_cast<int>(keys_.size()) - 1,
                  [&](int k) { return hash_of(keys_[k].view()); });
  }

 private:
  int names_ = 0;
  vec<text> keys_, values_;
  place_table table_;
};

/// A function being written: its text, and the last number used for a name.
struct function_writer {
  text out;
  int last = -1;
  int depth = 2;
};

}  // namespace partita::stablehlo_detail
