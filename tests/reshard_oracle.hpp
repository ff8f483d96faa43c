/// The minimum of bytes that a device sends to convert a value from one layout to another.
///
/// It shares no code with the library's search: it builds all layouts and all steps between them,
/// with the bytes that a device sends in each, and runs Dijkstra's algorithm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <partita/ir/layout.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/ir/shape.hpp>

namespace reshard_oracle {

namespace pt = partita;

using axes_of_dims = std::vector<std::vector<int>>;  // by dimension, major to minor

struct setting {
  pt::mesh mesh;
  pt::shape shape;

  std::int64_t pieces(const axes_of_dims& l, int d) const {
    std::int64_t n = 1;
    for (int axis : l[static_cast<std::size_t>(d)]) n *= mesh.size(axis);
    return n;
  }
  bool divides(const axes_of_dims& l) const {
    for (int d = 0; d < shape.rank; ++d)
      if (shape[d] % pieces(l, d) != 0) return false;
    return true;
  }
  std::int64_t bytes(const axes_of_dims& l) const {
    std::int64_t n = 4;
    for (int d = 0; d < shape.rank; ++d) n *= shape[d] / pieces(l, d);
    return n;
  }
};

inline void add_all(const setting& s, axes_of_dims l, int axis_mask,
                    std::vector<axes_of_dims>& all) {
  all.push_back(l);
  for (int axis = 0; axis < s.mesh.rank; ++axis) {
    if (axis_mask >> axis & 1) continue;
    for (std::size_t d = 0; d < l.size(); ++d) {
      l[d].push_back(axis);
      if (s.divides(l)) add_all(s, l, axis_mask | 1 << axis, all);
      l[d].pop_back();
    }
  }
}
inline std::vector<axes_of_dims> all_layouts(const setting& s) {
  std::vector<axes_of_dims> all;
  add_all(s, axes_of_dims(static_cast<std::size_t>(s.shape.rank)), 0, all);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Returns the bytes that a device sends in the single step from a to b, or -1 if no step exists.
inline std::int64_t one_step(const setting& s, const axes_of_dims& a, const axes_of_dims& b) {
  std::vector<int> given, taken;  // axes after the common ones: of a, and of b
  bool both = false;              // true if a dimension has both
  std::int64_t members = 1;
  bool same_pieces = true;
  for (std::size_t d = 0; d < a.size(); ++d) {
    std::size_t k = 0;
    while (k < a[d].size() && k < b[d].size() && a[d][k] == b[d][k]) ++k;
    for (std::size_t i = k; i < a[d].size(); ++i) {
      given.push_back(a[d][i]);
      members *= s.mesh.size(a[d][i]);
    }
    taken.insert(taken.end(), b[d].begin() + static_cast<std::ptrdiff_t>(k), b[d].end());
    both = both || (k < a[d].size() && k < b[d].size());
    same_pieces =
        same_pieces && s.pieces(a, static_cast<int>(d)) == s.pieces(b, static_cast<int>(d));
  }
  const std::int64_t bytes = s.bytes(a);
  std::int64_t best = -1;
  const auto offer = [&](std::int64_t n) { best = best < 0 ? n : std::min(best, n); };
  if (given.empty()) offer(0);
  if (taken.empty()) offer((members - 1) * bytes);
  std::sort(given.begin(), given.end());
  std::sort(taken.begin(), taken.end());
  if (given == taken && !both) offer(bytes - bytes / members);
  if (same_pieces) offer(bytes);
  return best;
}

/// The distance to a layout: the minimum of bytes sent, and the largest block on such a way.
struct distance {
  std::int64_t sent = INT64_MAX, most = INT64_MAX;
  bool operator<(const distance& o) const { return sent != o.sent ? sent < o.sent : most < o.most; }
};
/// `step(a, b)` returns one_step between layouts a and b of the list.
template <class Step>
std::vector<distance> shortest(const setting& s, const std::vector<axes_of_dims>& all,
                               const Step& step, std::size_t from) {
  std::vector<distance> d(all.size());
  std::vector<char> done(all.size(), 0);
  d[from] = {0, s.bytes(all[from])};
  for (std::size_t round = 0; round < all.size(); ++round) {
    std::size_t best = all.size();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!done[i] && d[i].sent != INT64_MAX && (best == all.size() || d[i] < d[best])) best = i;
    if (best == all.size()) break;
    done[best] = 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::int64_t bytes = done[i] ? -1 : step(best, i);
      if (bytes < 0) continue;
      const distance now{d[best].sent + bytes, std::max(d[best].most, s.bytes(all[i]))};
      if (now < d[i]) d[i] = now;
    }
  }
  return d;
}

inline pt::layout as_layout(const axes_of_dims& l) {
  pt::layout made;
  for (std::size_t d = 0; d < l.size(); ++d)
    for (int axis : l[d]) made.push_back(axis, static_cast<int>(d));
  return made;
}
inline axes_of_dims from_layout(const pt::layout& l, int rank) {
  axes_of_dims made(static_cast<std::size_t>(rank));
  for (const auto& e : l) made[static_cast<std::size_t>(e.dim)].push_back(e.axis);
  return made;
}

}  // namespace reshard_oracle
