// expect: S003 tile: dimension 0 of "x" has size 10; axis "B" has size 4, which doesn't divide it
// [a] {"b", "c"}; expect: pad it with pt::pad_uneven, or take another axis: the whole text is
// shown, however long it is.
#include <partita/support/static_error.hpp>

struct message {
  constexpr std::string_view operator()() const {
#ifdef FAIL
    return "S003 tile: dimension 0 of \"x\" has size 10; axis \"B\" has size 4, which doesn't "
           "divide it "
           "[a] {\"b\", \"c\"}; pad it with pt::pad_uneven, or take another axis: the whole text "
           "is shown, "
           "however long it is.";
#else
    return "";
#endif
  }
};

inline constexpr bool none = partita::report_static_error<message>();
