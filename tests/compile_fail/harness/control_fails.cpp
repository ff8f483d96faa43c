// expect: S101 dot_general: contracted extents differ
// refused: the control does not compile
#include <partita/support/static_error.hpp>

constexpr auto message = [] {
  return std::string_view("S101 dot_general: contracted extents differ");
};
constexpr bool ok = partita::report_static_error<decltype(message)>();
