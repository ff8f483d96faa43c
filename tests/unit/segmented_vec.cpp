// Elements of a segmented array keep their address.
#include <doctest/doctest.h>

#include <partita/support/segmented_vec.hpp>

namespace {

template <class T>
constexpr bool stays(std::size_t reserved, int n) {
  partita::segmented_vec<T> table;
  table.reserve(reserved);
  partita::vec<const T*> places;
  for (int i = 0; i < n; ++i) {
    table.push_back(T(i));
    places.push_back(&table.back());
  }
  bool same = table.size() == static_cast<std::size_t>(n);
  for (int i = 0; i < n; ++i) same = same && places[i] == &table[i] && table[i] == T(i);
  return same;
}

static_assert(stays<int>(0, 40) && stays<int>(100, 300));

struct nested {
  partita::vec<int> of;
  constexpr nested() = default;
  constexpr explicit nested(int i) { of.push_back(i); }
  friend constexpr bool operator==(const nested& a, const nested& b) {
    return a.of.size() == 1 && b.of.size() == 1 && a.of[0] == b.of[0];
  }
};

}  // namespace

TEST_CASE("elements of a segmented array keep their address") {
  for (std::size_t reserved : {0, 1, 7, 8, 9, 64, 1000}) {
    CHECK(stays<int>(reserved, 5000));
    CHECK(stays<nested>(reserved, 5000));
  }
  partita::segmented_vec<int> none;
  CHECK(none.empty());
}
