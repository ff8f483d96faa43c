/// A stable sort that also works in constant evaluation.
#pragma once

#include <cstddef>

#include <partita/support/vec.hpp>

namespace partita {

/// Sorts a list and keeps the order of equal elements. Sorted runs are merged pairwise; short lists
/// are sorted by insertion.
///
/// Cost      n log r for n elements in r sorted runs
template <class T, class Less>
constexpr void merge_sort(vec<T>& list, const Less& less) {
  constexpr std::size_t few = 16;
  const std::size_t n = list.size();
  T* const all = list.data();
  for (std::size_t i = 1; n <= few && i < n; ++i)
    for (std::size_t k = i; k > 0 && less(all[k], all[k - 1]); --k) {
      const T kept = all[k];
      all[k] = all[k - 1];
      all[k - 1] = kept;
    }
  if (n <= few) return;
  vec<std::size_t> ends;
  for (std::size_t i = 1; i < n; ++i)
    if (less(list[i], list[i - 1])) ends.push_back(i);
  ends.push_back(n);
  vec<T> other;
  while (ends.size() > 1) {
    other.clear();
    vec<std::size_t> merged;
    for (std::size_t run = 0, begin = 0; run < ends.size(); run += 2) {
      const std::size_t middle = ends[run], end = run + 1 < ends.size() ? ends[run + 1] : middle;
      for (std::size_t a = begin, b = middle; a < middle || b < end;)
        other.push_back(a < middle && (b == end || !less(list[b], list[a])) ? list[a++]
                                                                            : list[b++]);
      merged.push_back(end);
      begin = end;
    }
    vec<T> sorted = static_cast<vec<T>&&>(other);
    other = static_cast<vec<T>&&>(list);
    list = static_cast<vec<T>&&>(sorted);
    ends = static_cast<vec<std::size_t>&&>(merged);
  }
}

}  // namespace partita
