// Values that change from one random layout to another: a device sends at most 1.05 times the
// minimum over all sequences of collectives, over axes and parts of axes of prime size.
//
// Values that every device has, then ops that move elements, with a tile among them, padded or not:
// nothing is sent.
//
// Drawn: meshes of up to four prime factors, ranks 1 to 3, axes and parts of them in any order.
// Not drawn: layouts of padded values, see random.cpp.
#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <vector>

#include <partita/prove/prove.hpp>
#include <partita/spmd/joint_mesh.hpp>

#include "../data.hpp"
#include "../reshard_oracle.hpp"

namespace pt = partita;
using namespace reshard_oracle;
using data::str;

namespace {

const pt::mesh meshes[] = {
    {{"A", 4}},           {{"A", 8}},           {{"A", 12}},
    {{"A", 2}, {"B", 2}}, {{"A", 4}, {"B", 2}}, {{"A", 2}, {"B", 4}},
    {{"A", 8}, {"B", 2}}, {{"A", 2}, {"B", 8}}, {{"A", 4}, {"B", 4}},
    {{"A", 6}, {"B", 2}}, {{"A", 6}, {"B", 4}}, {{"A", 2}, {"B", 2}, {"C", 4}}};

/// Splits the axes of a mesh into parts of prime size.
pt::mesh in_primes(pt::mesh m) {
  for (int a = 0; a < m.rank; ++a)
    for (std::int64_t n = 2; n < m.size(a); ++n)
      if (m.size(a) % n == 0) {
        m.split(a, n);
        a = -1;
        break;
      }
  return m;
}
/// Draws axes, some of them as a major and a minor part, on any dimensions that they divide.
pt::dimensions_axes random_layout(data::random& r, const pt::mesh& m, const pt::shape& s,
                                  bool parts, std::deque<std::string>& names) {
  std::vector<std::pair<std::string, std::int64_t>> axes;
  for (int a = 0; a < m.rank; ++a) {
    const std::string name(m.name(a));
    std::int64_t major = 1;
    while (major == 1 || m.size(a) % major != 0) ++major;
    const std::int64_t minor = m.size(a) / major;
    if (!parts || minor == 1 || r.one_in(2)) {
      axes.push_back({name, m.size(a)});
      continue;
    }
    axes.push_back({name + ":(1)" + std::to_string(major), major});
    axes.push_back({name + ":(" + std::to_string(major) + ")" + std::to_string(minor), minor});
  }
  pt::dimensions_axes l{pt::replicated};
  l.whole = false;
  l.rank = s.rank;
  pt::shape left = s;
  for (; !axes.empty();) {
    const auto at = r.in(0, static_cast<std::int64_t>(axes.size()) - 1);
    const auto [name, size] = axes[static_cast<std::size_t>(at)];
    axes.erase(axes.begin() + at);
    const int d = static_cast<int>(r.in(0, s.rank - 1));
    if (r.one_in(4) || left[d] % size != 0) continue;
    left[d] /= size;
    l.axes[l.count] = names.emplace_back(name);
    l.dims[l.count++] = d;
  }
  return l;
}
/// The minimum of bytes that a device sends to convert a value between layouts over `m`.
std::int64_t minimum(const pt::mesh& m, const pt::shape& shape, const pt::layout& from,
                     const pt::layout& to) {
  const setting s{in_primes(m), shape};
  const auto all = all_layouts(s);
  const auto find = [&](const pt::layout& l) {
    const auto wanted = from_layout(pt::over_parts(l, m, s.mesh), shape.rank);
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), wanted) - all.begin());
  };
  const auto step = [&](std::size_t a, std::size_t b) { return one_step(s, all[a], all[b]); };
  return shortest(s, all, step, find(from))[find(to)].sent;
}
pt::program identity(const pt::shape& s) {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", {pt::dtype::f32, s});
  b.p.outputs = {{pt::ops::tag(b, "y", x), b.p.intern("y")}};
  return b.p;
}

}  // namespace

TEST_CASE("a value that changes its layout is sent as cheaply as possible") {
  int sends = 0, splits = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const pt::mesh m = meshes[r.in(0, 11)];
    pt::shape s;
    for (std::int64_t rank = r.in(1, m.devices() > 12 ? 2 : 3); rank > 0; --rank)
      s.push_back(r.one_in(3) ? 4 << r.in(0, 2) : 24);
    std::deque<std::string> names;
    const bool parts = r.one_in(3);
    const pt::shard_entry entries[] = {{"x", random_layout(r, m, s, parts, names)},
                                       {"y", random_layout(r, m, s, parts, names)}};
    const auto p = pt::partition(identity(s), m, pt::schedule(pt::shard(entries)));
    const auto least = minimum(p.mesh(), s, p.device.inputs[0], p.device.outputs[0]);
    CAPTURE(str(pt::print(p.device)));
    CHECK(100 * p.cost.collective_bytes <= 105 * least);
    sends += least > 0;
    splits += !parts && p.mesh().rank > m.rank;
    if (seed % 4 != 0) continue;
    const auto x = data::arguments(p.source, seed);
    CHECK(pt::equal(pt::emulate(p, x), pt::evaluate(p.source, x)));
    const pt::verdict v = pt::prove(p);
    CHECK_MESSAGE(v.proved, str(v.error.message));
  }
  CHECK(sends > 100);
  CHECK(splits > 10);
}

TEST_CASE("unsharded values are not sent, whatever loops move their elements") {
  int sharded = 0, padded = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const std::int64_t n = r.in(2, 4);
    pt::builder b;
    pt::value_id v = pt::ops::parameter(b, "x", {pt::dtype::f32, {r.in(2, 12), r.in(1, 4)}});
    const auto move = [&] {
      const pt::shape s = b.type(v).shape;
      const std::int64_t low = r.in(0, s[0] / 2), high = r.in(low + 1, s[0]);
      switch (r.in(0, 3)) {
        case 0:
          v = pt::ops::slice(b, v, {low, 0}, {high, s[1]}, {});
          break;
        case 1:
          v = pt::ops::reshape(b, v, {s[1], s[0]});
          break;
        case 2:
          v = pt::ops::transpose(b, v, {1, 0});
          break;
        default:
          v = pt::ops::reverse(b, v, {0});
          break;
      }
    };
    for (std::int64_t ops = r.in(1, 2); ops > 0; --ops) move();
    v = pt::ops::tag(b, "r", v);
    const pt::shape s = b.type(v).shape;
    for (std::int64_t ops = r.in(1, 3); ops > 0; --ops) move();
    b.p.outputs = {{pt::ops::negate(b, v), b.p.intern("y")}};
    const int dim = s[0] % n == 0 ? 0 : s[1] % n == 0 ? 1 : -1;
    const pt::uneven policy = dim < 0 || r.one_in(2) ? pt::uneven::pad : pt::uneven::unsaid;
    const auto p =
        pt::partition(b.p, {{"M", n}},
                      pt::schedule(pt::manual("M", {{"x", pt::replicated}}),
                                   pt::manual("M", {{"r", dim < 0 ? 0 : dim}}, "r", policy)));
    CAPTURE(str(pt::print(b.p)));
    CAPTURE(str(pt::print(p.device)));
    CHECK(p.cost.collective_bytes == 0);
    sharded += p.core.nest_of(p.core.p.producer(p.core.p.outputs[0].value)).count > 0;
    padded += p.core.padded();
    const auto x = data::arguments(p.source, seed);
    CHECK(pt::equal(pt::emulate(p, x), pt::evaluate(p.source, x)));
    const pt::verdict proof = pt::prove(p);
    CHECK_MESSAGE(proof.proved, str(proof.error.message));
  }
  MESSAGE(sharded << " sharded, " << padded << " padded");
}
