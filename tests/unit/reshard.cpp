// Resharding from layout to layout, compared with a shortest path over all layouts of small meshes.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <partita/spmd/reshard.hpp>

#include "../reshard_oracle.hpp"

namespace pt = partita;
using namespace reshard_oracle;

namespace {

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
/// Compares the conversions from each layout, or from every n-th one, to all layouts.
void compare(const setting& s, std::size_t every, totals& sum) {
  const auto all = all_layouts(s);
  std::vector<std::vector<std::int64_t>> steps(all.size(), std::vector<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < all.size(); ++k) steps[i][k] = one_step(s, all[i], all[k]);
  const auto step = [&](std::size_t a, std::size_t b) { return steps[a][b]; };
  for (std::size_t i = 0; i < all.size(); i += every) {
    const auto best = shortest(s, all, step, i);
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
void check(const pt::mesh& m, const std::vector<pt::shape>& shapes, std::size_t every = 1) {
  totals t;
  for (const pt::shape& s : shapes) compare({m, s}, every, t);
  pt::text name;
  name << m;
  MESSAGE(std::string(name.view())
          << ": " << t.pairs << " pairs, " << t.ours << " bytes, least " << t.best << ", worst "
          << t.worst << " " << t.worst_pair << ", larger " << t.larger);
  CHECK(t.ours == t.best);
  CHECK(t.worst == 1);
  CHECK(t.larger == 0);
}
std::vector<pt::shape> cubes(std::int64_t n) { return {{n}, {n, n}, {n, n, n}}; }

}  // namespace

TEST_CASE("reshard sends the minimum of bytes for all pairs of layouts of small meshes") {
  check({{"A", 2}}, cubes(16));
  check({{"A", 3}}, cubes(18));
  check({{"A", 4}}, cubes(16));
  check({{"A", 2}, {"B", 2}}, cubes(16));
  check({{"A", 2}, {"B", 4}}, cubes(16));
  check({{"A", 2}, {"B", 3}}, cubes(36));
  check({{"A", 2}, {"B", 2}, {"C", 2}}, cubes(16));
}

TEST_CASE("reshard sends the minimum of bytes for layouts over four and five axes") {
  check({{"A", 2}, {"B", 2}, {"C", 2}, {"D", 2}}, {{16}, {16, 16}, {4, 8}}, 13);
  check({{"A", 2}, {"B", 2}, {"C", 2}, {"D", 2}}, {{4, 8, 16}}, 113);
  check({{"A", 2}, {"B", 3}, {"C", 2}, {"D", 4}}, {{12, 48}}, 29);
  check({{"A", 2}, {"B", 2}, {"C", 2}, {"D", 2}, {"E", 2}}, {{8, 16}}, 293);
}
