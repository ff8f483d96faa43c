/// Names for copies of what has a name.
#pragma once

#include <partita/support/name_table.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Names that are taken, at most so many.
class copy_names {
 public:
  constexpr explicit copy_names(std::size_t most) : table_(most) {
    names_.reserve(most);  // for good: the table looks into these texts
  }
  /// The name, or that with a number behind it.
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
  vec<int> next_;  ///< by name: the number to try next behind it
};

}  // namespace partita
