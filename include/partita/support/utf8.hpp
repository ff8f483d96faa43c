/// Decoding of UTF-8.
///
/// Source    RFC 3629
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace partita {

/// Returns the number of bytes of the first character of `s`, which must not be empty, or 0 if it
/// is invalid. Sets `code` to its code point.
constexpr std::size_t utf8_size(std::string_view s, std::uint32_t& code) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned first = at(0);
  code = first;
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || s.size() < size) return 0;
  code = first & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0u) != 0x80u) return 0;
    code = code << 6 | (at(i) & 0x3fu);
  }
  const bool overlong = code < (size == 4   ? 0x10000u
                                : size == 3 ? 0x800u
                                            : 0x80u),
             surrogate = code >= 0xd800 && code <= 0xdfff;
  return overlong || surrogate || code > 0x10ffff ? 0 : size;
}
/// True if `s` is valid UTF-8.
constexpr bool is_utf8(std::string_view s) {
  std::uint32_t code = 0;
  while (!s.empty()) {
    const std::size_t size = utf8_size(s, code);
    if (size == 0) return false;
    s.remove_prefix(size);
  }
  return true;
}

}  // namespace partita
