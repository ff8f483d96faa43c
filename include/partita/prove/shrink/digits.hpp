/// Digits of dimensions: which parts of dimensions have the same index.
#pragma once

#include <cstdint>

#include <partita/ir/shape.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// A forest of digits. A dimension is a digit, or is split into a major and a minor digit, as a
/// number is written with digits; digits with the same index belong to one class (union-find).
class digit_forest {
 public:
  /// Adds a digit with `size` positions. Returns -1 for a single position, which needs no digit.
  constexpr int make(std::int64_t size) {
    if (size == 1) return -1;
    nodes_.push_back({size, static_cast<int>(nodes_.size())});
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int count() const { return static_cast<int>(nodes_.size()); }
  constexpr int root(int n) const { return find(n); }
  constexpr std::int64_t size(int n) const { return nodes_[n].size; }
  constexpr bool is_rigid(int n) const { return nodes_[n].rigid; }

  /// Appends the classes of the digits of a dimension, major to minor.
  constexpr void append_digits(int n, vec<int>& to) const {
    if (n < 0) return;
    n = find(n);
    if (nodes_[n].major < 0) return to.push_back(n);
    append_digits(nodes_[n].major, to);
    append_digits(nodes_[n].minor, to);
  }
  constexpr vec<int> digits(int n) const {
    vec<int> all;
    append_digits(n, all);
    return all;
  }

  /// The same index counts through both lists, each major to minor. Digits are split until they
  /// have equal sizes, from both ends; the digits between them keep their sizes.
  constexpr void tie(const vec<int>& x, const vec<int>& y) {
    vec<int> a = reversed(x), b = reversed(y);
    for (const bool from_minor : {false, true}) {
      while (next(a, from_minor) && next(b, from_minor)) {
        const int i = a.back(), j = b.back();
        const std::int64_t m = nodes_[i].size, n = nodes_[j].size;
        const std::int64_t common = m == n ? m : greatest_common_divisor(m, n);
        if (common == 1 || (m != n && m * n == 0)) break;
        if (m > common) split(i, from_minor ? m / common : common);
        if (n > common) split(j, from_minor ? n / common : common);
        if (m > common || n > common) continue;
        a.pop_back();
        b.pop_back();
        unite(i, j);
      }
      a = reversed(a);
      b = reversed(b);
    }
    keep(a);
    keep(b);
  }
  constexpr void tie(int x, int y) { tie(vec<int>{x}, vec<int>{y}); }
  /// All digits keep their sizes.
  constexpr void keep(const vec<int>& list) {
    for (const int n : list)
      for (const int each : digits(n)) nodes_[each].rigid = true;
  }
  constexpr void keep(int n) { keep(vec<int>{n}); }

 private:
  struct node {
    std::int64_t size = 1;
    int parent = -1;
    int major = -1, minor = -1;  ///< of a root that is split
    bool rigid = false;
  };
  vec<node> nodes_;

  constexpr int find(int n) const {
    while (nodes_[n].parent != n) n = nodes_[n].parent;
    return n;
  }
  static constexpr vec<int> reversed(const vec<int>& list) {
    vec<int> all;
    for (std::size_t i = list.size(); i-- > 0;)
      if (list[i] >= 0) all.push_back(list[i]);
    return all;
  }
  /// Replaces the last entry by its most major (or minor) digit. False for an empty list.
  constexpr bool next(vec<int>& list, bool from_minor) const {
    while (!list.empty()) {
      const node& n = nodes_[list.back() = find(list.back())];
      if (n.major < 0) return true;
      list.back() = from_minor ? n.major : n.minor;
      list.push_back(from_minor ? n.minor : n.major);
    }
    return false;
  }
  constexpr void split(int n, std::int64_t major) {
    const int high = make(major), low = make(nodes_[n].size / major);
    nodes_[high].rigid = nodes_[low].rigid = nodes_[n].rigid;
    nodes_[n].major = high;
    nodes_[n].minor = low;
  }
  constexpr void unite(int i, int j) {
    if (i == j) return;
    nodes_[i].rigid = nodes_[i].rigid || nodes_[j].rigid;
    nodes_[j].parent = i;
  }
};

}  // namespace partita::prove_detail
