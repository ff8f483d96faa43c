/// One compile-time diagnostic that carries a whole text.
#pragma once

#include <cstddef>
#include <string_view>

namespace partita {

/// A text as a template argument; compilers print it in full.
template <std::size_t N>
struct fixed_text {
  char chars[N] = {};
  constexpr fixed_text() = default;
  constexpr fixed_text(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) chars[i] = s[i];
  }
  constexpr explicit fixed_text(std::string_view s) {
    for (std::size_t i = 0; i + 1 < N && i < s.size(); ++i) chars[i] = s[i];
  }
  constexpr std::string_view view() const { return {chars, N - 1}; }
};

/// What the compiler shows when a program is wrong: `partita_error<fixed_text<N>{"..."}>`.
template <fixed_text Text>
struct partita_error {
  static constexpr bool none = false;
};

/// Stops the compilation with the text that `Message()` returns (empty: all is well).
///
/// `Message` is a captureless callable type that returns something convertible to string_view.
template <class Message>
constexpr bool report_static_error() {
  constexpr std::size_t size = std::string_view(Message{}()).size();
  if constexpr (size > 0) {
    constexpr auto shown = fixed_text<size + 1>(std::string_view(Message{}()));
    static_assert(partita_error<shown>::none, "partita: see the text in partita_error<...>");
  }
  return size == 0;
}

}  // namespace partita
