/// The parts of a case of practice.
#pragma once

#include <string_view>
#include <vector>

namespace practice {

/// The sense in which the right program computes the results of the source.
enum class equality {
  exactly,           ///< up to the order of sums, so exactly on small integers
  up_to_sums,        ///< up to the order of sums
  as_real_functions  ///< only as the same function of real numbers
};

/// A piece of the text of a program, and its replacement.
struct edit {
  std::string_view from, to;
};

/// A wrong program: the right one with pieces replaced.
struct mistake {
  std::string_view name;
  std::vector<edit> edits;
  /// The values at which a checker may stop: the first value that is not a block of a value of the
  /// source. (Several values if there is a choice: the checker may know a value that the source
  /// does not have.)
  std::vector<std::string_view> stops_at;
};

/// A source program, a device-local program written for it, and mistakes in that program.
struct practice_case {
  std::string_view name, source, local;
  std::vector<std::string_view> inputs, outputs;  ///< layouts
  std::vector<mistake> mistakes;
  equality equal = equality::up_to_sums;
  int below = 4;  ///< integer inputs are indices below this
};

}  // namespace practice
