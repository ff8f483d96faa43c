/// Unique names for copies of named objects.
#pragma once

#include <partita/support/name_table.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A set of names that are in use; its capacity is fixed at construction.
class copy_names {
 public:
  constexpr explicit copy_names(std::size_t most) : table_(most) {
    names_.reserve(most);  // the table refers to these texts, so they must not move
  }
  /// Returns the name, with a number appended if it is already in use.
  constexpr text unique(const text& name) {
    text own = name;
    const int first = table_.find(name);
    if (first >= 0) do
        own = concat(name, next_[first]++);
      while (table_.find(own) >= 0);
    table_.insert((names_.push_back(own), names_.back()), static_cast<int>(next_.size()));
    next_.push_back(2);
    return own;
  }

 private:
  name_table table_;
  vec<text> names_;
  vec<int> next_;  ///< by name: the next number to try as a suffix
};

}  // namespace partita
