// refused: too many lines
// expect: S999 model: a mistake
// lines: 1 2
#include <partita/support/static_error.hpp>

struct message {
  constexpr std::string_view operator()() const {
#ifdef FAIL
    return "S999 model: a mistake";
#else
    return "";
#endif
  }
};

inline constexpr bool none = partita::report_static_error<message>();
