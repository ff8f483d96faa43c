/// A compile-time diagnostic that shows a complete text.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

namespace partita {

/// A text as a template argument, so that compilers print it.
template <std::size_t N>
struct fixed_text {
  char chars[N] = {};
  constexpr fixed_text() = default;
  constexpr fixed_text(const char (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) chars[i] = s[i];
  }
  constexpr explicit fixed_text(std::string_view s) {
    // Every element is assigned, the last one too: Clang prints an array with a filler as numbers.
    for (std::size_t i = 0; i < N; ++i) chars[i] = i < s.size() ? s[i] : '\0';
  }
  /// Returns the characters before the terminating zero.
  constexpr std::string_view view() const { return {chars, N - 1}; }
};

/// The type that the compiler prints for a wrong program:
/// `partita_error<fixed_text<77>{"S101 ..."}>`. Clang prints only short strings in full, so there
/// the text is split into pieces.
template <fixed_text... Pieces>
struct partita_error {
  static constexpr bool none = false;
};

namespace support_detail {

#if defined(__clang__)
inline constexpr std::size_t longest_piece = 30;
#else
inline constexpr std::size_t longest_piece = 100000;
#endif

/// Returns the end of the piece that begins at `begin`: after a space if there is one.
constexpr std::size_t piece_end(std::string_view s, std::size_t begin) {
  if (s.size() - begin <= longest_piece) return s.size();
  std::size_t end = begin + longest_piece;
  for (std::size_t i = end; i > begin; --i)
    if (s[i - 1] == ' ') return i;
  return end;
}
constexpr std::size_t piece_begin(std::string_view s, std::size_t number) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < number; ++i) at = piece_end(s, at);
  return at;
}
constexpr std::size_t piece_count(std::string_view s) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < s.size(); at = piece_end(s, at)) ++count;
  return count;
}

template <class Message, std::size_t I>
constexpr auto piece() {
  constexpr std::size_t begin = piece_begin(std::string_view(Message{}()), I);
  constexpr std::size_t end = piece_end(std::string_view(Message{}()), begin);
  return fixed_text<end - begin + 1>(std::string_view(Message{}()).substr(begin, end - begin));
}

template <class Message, std::size_t... I>
partita_error<piece<Message, I>()...> shown(std::index_sequence<I...>);

}  // namespace support_detail

#if !defined(__clang__)
/// The class in which compilation stops. GCC's diagnostic begins with the name of the enclosing
/// class, so the text comes before the instantiation trace. (Clang's begins with the condition.)
template <fixed_text Text>
struct partita_mistake {
  static_assert(partita_error<Text>::none, "partita: see the text in partita_error<...>");
};
#endif

/// Stops the compilation with the text that `Message{}()` returns; does nothing if it is empty.
///
/// (The return type is deduced, so that the compiler stops at the mistake and not later.)
template <class Message>
constexpr auto report_static_error() {
  constexpr std::size_t pieces = support_detail::piece_count(std::string_view(Message{}()));
  if constexpr (pieces > 0) {
#if defined(__clang__)
    using shown = decltype(support_detail::shown<Message>(std::make_index_sequence<pieces>{}));
    static_assert(shown::none, "partita: see the text in partita_error<...>");
#else
    (void)sizeof(partita_mistake<support_detail::piece<Message, 0>()>);
#endif
  }
  return pieces == 0;
}

}  // namespace partita
