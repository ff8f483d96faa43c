// The maximum of a range after additions to ranges, compared with a plain list.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include <partita/support/range_maximum.hpp>

namespace pt = partita;

TEST_CASE("range_maximum equals a plain list, in logarithmic work") {
  std::uint64_t state = 7;
  const auto below = [&](int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
  };
  for (int size : {1, 2, 5, 64, 100}) {
    pt::vec<std::int64_t> plain;
    for (int i = 0; i < size; ++i) plain.push_back(below(50));
    pt::range_maximum tree(plain);
    for (int i = 0; i < 200; ++i) {
      const int first = below(size), last = first + 1 + below(size - first);
      CHECK(tree.most(first, last) ==
            *std::max_element(plain.begin() + first, plain.begin() + last));
      const std::int64_t n = below(20);
      tree.add(first, last, n);
      for (int k = first; k < last; ++k) plain[k] += n;
    }
  }
  pt::range_maximum large(pt::vec<std::int64_t>(100000, 1));
  for (int i = 0; i < 1000; ++i) large.add(i, 100000 - i, large.most(i, 100000 - i));
  CHECK(large.work() < 2000 * 4 * 18);
}
