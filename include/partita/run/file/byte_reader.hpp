/// A reader for the bytes of a file, which are untrusted input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <partita/support/error.hpp>

namespace partita::run_detail {

/// Reads the bytes of a file from the beginning.
///
/// Errors    N002 the file ends too early
class byte_reader {
 public:
  byte_reader(std::string_view bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  template <class... Parts>
  [[noreturn]] void fail(std::string_view code, const Parts&... parts) const {
    throw error(concat(code, " file: \"", file_, "\": ", parts...));
  }
  std::size_t left() const { return bytes_.size() - at_; }
  void go_to(std::uint64_t at) {
    if (at > bytes_.size()) fail("N002", "it ends before byte ", at, "; it has ", bytes_.size());
    at_ = static_cast<std::size_t>(at);
  }
  std::string_view take(std::uint64_t n) {
    if (n > left())
      fail("N002", "it ends after ", bytes_.size(), " bytes; ", n - left(), " more are expected");
    at_ += static_cast<std::size_t>(n);
    return bytes_.substr(at_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }
  /// Reads a little-endian number of 2, 4 or 8 bytes.
  std::uint64_t number(int bytes) {
    const std::string_view from = take(static_cast<std::uint64_t>(bytes));
    std::uint64_t v = 0;
    for (std::size_t i = from.size(); i-- > 0;) v = v << 8 | static_cast<unsigned char>(from[i]);
    return v;
  }

 private:
  std::string_view bytes_, file_;
  std::size_t at_ = 0;
};

}  // namespace partita::run_detail
