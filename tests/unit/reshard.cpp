// Resharding from layout to layout, compared with a shortest path over all layouts of small meshes.
//
// The oracle shares no code with the search: it builds all layouts and all steps between them, with
// the bytes that a device sends in each, and runs Dijkstra's algorithm.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <partita/spmd/reshard.hpp>

namespace pt = partita;

namespace {

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

void add_all(const setting& s, axes_of_dims l, int axis_mask, std::vector<axes_of_dims>& all) {
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
std::vector<axes_of_dims> all_layouts(const setting& s) {
  std::vector<axes_of_dims> all;
  add_all(s, axes_of_dims(static_cast<std::size_t>(s.shape.rank)), 0, all);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Returns the bytes that a device sends in the single step from a to b, or -1 if no step exists.
std::int64_t one_step(const setting& s, const axes_of_dims& a, const axes_of_dims& b) {
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
std::vector<distance> shortest(const setting& s, const std::vector<axes_of_dims>& all,
                               const std::vector<std::vector<std::int64_t>>& steps,
                               std::size_t from) {
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
      if (steps[best][i] < 0) continue;
      const distance now{d[best].sent + steps[best][i], std::max(d[best].most, s.bytes(all[i]))};
      if (now < d[i]) d[i] = now;
    }
  }
  return d;
}

pt::layout as_layout(const axes_of_dims& l) {
  pt::layout made;
  for (std::size_t d = 0; d < l.size(); ++d)
    for (int axis : l[d]) made.push_back(axis, static_cast<int>(d));
  return made;
}
axes_of_dims from_layout(const pt::layout& l, int rank) {
  axes_of_dims made(static_cast<std::size_t>(rank));
  for (const auto& e : l) made[static_cast<std::size_t>(e.dim)].push_back(e.axis);
  return made;
}

/// Returns the block that a device has along each dimension.
std::vector<std::int64_t> place(const setting& s, const pt::layout& l,
                                const std::vector<std::int64_t>& at) {
  std::vector<std::int64_t> p(static_cast<std::size_t>(s.shape.rank), 0);
  for (const auto& e : l) {
    auto& n = p[static_cast<std::size_t>(e.dim)];
    n = n * s.mesh.size(e.axis) + at[static_cast<std::size_t>(e.axis)];
  }
  return p;
}
std::vector<std::vector<std::int64_t>> devices(const setting& s) {
  std::vector<std::vector<std::int64_t>> list{{}};
  for (int axis = 0; axis < s.mesh.rank; ++axis) {
    std::vector<std::vector<std::int64_t>> next;
    for (const auto& each : list)
      for (std::int64_t i = 0; i < s.mesh.size(axis); ++i) {
        next.push_back(each);
        next.back().push_back(i);
      }
    list = next;
  }
  return list;
}
/// True if a permute gives every device the block that it has afterwards.
bool permutes_rightly(const setting& s, const pt::collective& what, const pt::layout& before,
                      const pt::layout& after) {
  for (const auto& to : devices(s)) {
    std::int64_t number = 0;
    for (const auto& e : what.axes)
      number = number * s.mesh.size(e.axis) + to[static_cast<std::size_t>(e.axis)];
    std::int64_t sender = what.sender(number, s.mesh);
    auto from = to;
    for (int i = what.axes.count; i-- > 0;) {
      const int axis = what.axes[i].axis;
      from[static_cast<std::size_t>(axis)] = sender % s.mesh.size(axis);
      sender /= s.mesh.size(axis);
    }
    if (place(s, before, from) != place(s, after, to)) return false;
  }
  return true;
}

struct way {
  std::int64_t sent = 0, most = 0;
  bool good = true;
};
way chosen(const setting& s, const axes_of_dims& a, const axes_of_dims& b) {
  const pt::tensor_type type{pt::dtype::f32, s.shape};
  pt::layout lies = as_layout(a);
  way w{0, s.bytes(a), true};
  bool last = lies == as_layout(b);
  pt::reshard(lies, as_layout(b), type, s.mesh, {}, [&](const pt::reshard_step& step) {
    const std::int64_t bytes = s.bytes(from_layout(lies, s.shape.rank));
    w.sent += pt::bytes_sent(step.what.kind, step.what.members(s.mesh), bytes);
    w.good = w.good && step.what.after(lies.local(s.shape, s.mesh), s.mesh) ==
                           step.after.local(s.shape, s.mesh);
    if (step.what.kind == pt::collective::permute)
      w.good = w.good && permutes_rightly(s, step.what, lies, step.after);
    else
      w.good = w.good && one_step(s, from_layout(lies, s.shape.rank),
                                  from_layout(step.after, s.shape.rank)) >= 0;
    lies = step.after;
    last = step.last;
    w.most = std::max(w.most, s.bytes(from_layout(lies, s.shape.rank)));
  });
  w.good = w.good && last && lies == as_layout(b);
  return w;
}

struct totals {
  std::int64_t ours = 0, best = 0, pairs = 0, larger = 0;
  double worst = 1;
  std::string worst_pair;
};
std::string named(const setting& s, const axes_of_dims& l) {
  pt::text out;
  pt::print_layout(out, as_layout(l), s.shape.rank, s.mesh);
  return std::string(out.view());
}
void compare(const setting& s, totals& sum) {
  const auto all = all_layouts(s);
  std::vector<std::vector<std::int64_t>> steps(all.size(), std::vector<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < all.size(); ++k) steps[i][k] = one_step(s, all[i], all[k]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto best = shortest(s, all, steps, i);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const way ours = chosen(s, all[i], all[k]);
      const auto pair = [&] { return named(s, all[i]) + " -> " + named(s, all[k]); };
      if (!ours.good) FAIL_CHECK(pair() << ": a step is wrong");
      ++sum.pairs;
      sum.ours += ours.sent;
      sum.best += best[k].sent;
      const std::int64_t ends = std::max(s.bytes(all[i]), s.bytes(all[k]));
      // A block larger than at both ends is permitted only where that sends fewer bytes.
      sum.larger += ours.most > ends && best[k].most <= ends;
      if (ours.sent == 0 && best[k].sent == 0) continue;
      const double ratio = best[k].sent == 0
                               ? 1e9
                               : static_cast<double>(ours.sent) / static_cast<double>(best[k].sent);
      if (ratio > sum.worst) {
        sum.worst = ratio;
        sum.worst_pair =
            pair() + ": " + std::to_string(ours.sent) + " for " + std::to_string(best[k].sent);
      }
    }
  }
}
totals compared(const pt::mesh& m, std::int64_t extent) {
  totals sum;
  for (int rank = 1; rank <= 3; ++rank) {
    pt::shape s;
    for (int d = 0; d < rank; ++d) s.push_back(extent);
    compare({m, s}, sum);
  }
  return sum;
}
void check(const pt::mesh& m, std::int64_t extent) {
  const totals t = compared(m, extent);
  pt::text name;
  name << m;
  MESSAGE(std::string(name.view())
          << ": " << t.pairs << " pairs, " << t.ours << " bytes, least " << t.best << ", worst "
          << t.worst << " " << t.worst_pair << ", larger " << t.larger);
  CHECK(t.ours == t.best);
  CHECK(t.worst == 1);
  CHECK(t.larger == 0);
}

}  // namespace

TEST_CASE("reshard sends the minimum of bytes for all pairs of layouts of small meshes") {
  check({{"A", 2}}, 16);
  check({{"A", 3}}, 18);
  check({{"A", 4}}, 16);
  check({{"A", 2}, {"B", 2}}, 16);
  check({{"A", 2}, {"B", 4}}, 16);
  check({{"A", 2}, {"B", 3}}, 36);
  check({{"A", 2}, {"B", 2}, {"C", 2}}, 16);
}
