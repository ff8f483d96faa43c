/// Broadcasts that repeat one contiguous run of dimensions, and values padded along one dimension.
#pragma once

#include <algorithm>
#include <cstdint>

namespace partita::run_detail {

/// result[i] = source[i / inner % count]. With a period, each period of the result is padded:
/// result[i] = source[i / period * inside + j] if j = i % period - low is in [0, inside), else
/// `value`.
struct repetition {
  std::int64_t count = 1, inner = 1;
  std::int64_t period = 0, low = 0, inside = 0;
  std::int64_t value = 0;  ///< the bits of an element

  /// Writes elements [begin, begin + n).
  template <class T>
  void fill(std::int64_t begin, std::int64_t n, const T* source, T* out) const {
    const std::int64_t end = begin + n;
    if (period > 0) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t j = i % period - low;
        const bool within = j >= 0 && j < inside;
        const std::int64_t run =
            std::min(j < 0 ? -j : (within ? inside : period - low) - j, end - i);
        out = within ? std::copy_n(source + i / period * inside + j, run, out)
                     : std::fill_n(out, run, static_cast<T>(value));
        i += run;
      }
    } else if (inner == 1) {
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
