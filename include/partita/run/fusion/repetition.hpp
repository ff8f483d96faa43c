/// Broadcasts that repeat one contiguous run of dimensions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace partita::run_detail {

/// result[i] = source[i / inner % count].
struct repetition {
  std::int64_t count = 1, inner = 1;

  /// Writes elements [begin, begin + n).
  template <class T>
  void fill(std::int64_t begin, std::int64_t n, const T* source, T* out) const {
    const std::int64_t end = begin + n;
    if (inner == 1) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t at = i % count, run = std::min(count - at, end - i);
        out = std::copy_n(source + at, run, out);
        i += run;
      }
    } else {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t run = std::min(inner - i % inner, end - i);
        out = std::fill_n(out, run, source[i / inner % count]);
        i += run;
      }
    }
  }
};

}  // namespace partita::run_detail
