/// Sorting.
#pragma once

#include <cstddef>

#include <partita/support/vec.hpp>

namespace partita {

/// Sorts; what neither comes before the other stays in its order. (Few are inserted one by one.)
///
/// Cost      n log n calls of `before`
template <class T, class F>
constexpr void merge_sort(vec<T>& list, const F& before) {
  constexpr std::size_t few = 16;
  const std::size_t count = list.size();
  const auto end_of = [&](std::size_t begin, std::size_t width) {
    return begin + width < count ? begin + width : count;
  };
  T* const all = list.data();
  for (std::size_t begin = 0; begin < count; begin += few)
    for (std::size_t i = begin + 1; i < end_of(begin, few); ++i)
      for (std::size_t k = i; k > begin && before(all[k], all[k - 1]); --k) {
        const T kept = all[k];
        all[k] = all[k - 1];
        all[k - 1] = kept;
      }
  for (std::size_t width = few; width < count; width *= 2) {
    vec<T> merged;
    for (std::size_t begin = 0; begin < count; begin += 2 * width) {
      const std::size_t middle = end_of(begin, width), end = end_of(begin, 2 * width);
      for (std::size_t a = begin, b = middle; a < middle || b < end;) {
        const bool second = a == middle || (b < end && before(list[b], list[a]));
        merged.push_back(list[second ? b++ : a++]);
      }
    }
    list = static_cast<vec<T>&&>(merged);
  }
}

}  // namespace partita
