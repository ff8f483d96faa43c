// expect: S101 dot_general: contracted extents differ
// refused: more than one error
#include <partita/support/static_error.hpp>

#ifdef FAIL
constexpr auto message = [] {
  return std::string_view("S101 dot_general: contracted extents differ");
};
constexpr bool ok = partita::report_static_error<decltype(message)>();
static_assert(sizeof(char) == 2);
static_assert(sizeof(char) == 3);
#endif
