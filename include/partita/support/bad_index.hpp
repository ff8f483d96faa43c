/// The exception for an array index that is out of bounds.
#pragma once

#include <cstddef>
#include <exception>

namespace partita {

/// A broken invariant of the library: an array index that is out of bounds.
class index_error : public std::exception {
 public:
  index_error(long long index, std::size_t size) {
    add("internal error: index ");
    if (index < 0) add("-");
    add_number(index < 0 ? -static_cast<unsigned long long>(index)
                         : static_cast<unsigned long long>(index));
    add(" is out of bounds for an array of size ");
    add_number(size);
    add("; please report");
  }
  const char* what() const noexcept override { return chars_; }

 private:
  char chars_[128] = {};
  int size_ = 0;

  void add(const char* s) {
    while (*s != 0) chars_[size_++] = *s++;
  }
  void add_number(unsigned long long n) {
    if (n > 9) add_number(n / 10);
    chars_[size_++] = static_cast<char>('0' + n % 10);
  }
};

namespace support_detail {
[[noreturn]] inline void throw_bad_index(long long index, std::size_t size) {
  throw index_error(index, size);
}
}  // namespace support_detail

}  // namespace partita
