// expect: S101 dot_general: contracted extents differ
// refused: the text is missing
#include <partita/support/static_error.hpp>

#ifdef FAIL
constexpr auto message = [] { return std::string_view("S102 dot_general: element types differ"); };
constexpr bool ok = partita::report_static_error<decltype(message)>();
#endif
