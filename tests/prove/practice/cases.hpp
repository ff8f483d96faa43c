/// What a case of practice is.
#pragma once

#include <string_view>
#include <vector>

namespace practice {

/// In which sense the right program computes the source.
enum class equality {
  exactly,           ///< up to the order of sums, and so exactly of small integers
  up_to_sums,        ///< up to the order of sums
  as_real_functions  ///< not even that, but they are the same function of real numbers
};

/// A piece of the text of a program and what stands there instead.
struct edit {
  std::string_view from, to;
};

/// A wrong program: the right one with pieces replaced.
struct mistake {
  std::string_view name;
  std::vector<edit> edits;
  /// The values of which one is the first that is no piece of what the source computes. (Several
  /// where it is a matter of taste: a value that the source does not have may still be known.)
  std::vector<std::string_view> stops_at;
};

/// A source program, a device-local program that somebody wrote for it, and mistakes to make there.
struct practice_case {
  std::string_view name, source, local;
  std::vector<std::string_view> inputs, outputs;  ///< layouts
  std::vector<mistake> mistakes;
  equality equal = equality::up_to_sums;
  int below = 4;  ///< integer inputs are indices of so many places
};

}  // namespace practice
