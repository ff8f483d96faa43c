// Random layouts of tagged values in sequence, and random ways to shard a step that clips its
// gradients: results, proof, text, and bytes sent.
//
// PARTITA_RANDOM_CASES=n runs n / 10 seeds. Not drawn: padding, see random.cpp.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/prove/prove.hpp>

#include "../data.hpp"
#include "seeds.hpp"

namespace pt = partita;
using data::str;

namespace {

std::uint64_t cases() {
  const auto n = random_test::number_from("PARTITA_RANDOM_CASES");
  return n ? static_cast<std::uint64_t>(*n / 10 + 1) : 300;
}
pt::mesh random_mesh(data::random& r) {
  const std::string_view names[] = {"A", "B", "C"};
  const std::int64_t odd = r.in(0, 2);  // all axes together divide 48
  pt::mesh m;
  for (std::int64_t i = 0, n = r.in(1, 3); i < n; ++i)
    m.push_back({names[i], i == odd ? r.in(2, 4) : 2});
  return m;
}
/// Returns some axes of a mesh, or parts of them, in any order on any dimensions.
pt::dimensions_axes random_layout(data::random& r, const pt::mesh& m, int rank) {
  pt::dimensions_axes l{pt::replicated};
  l.whole = false;
  l.rank = rank;
  std::vector<std::string_view> axes;
  for (int a = 0; a < m.rank; ++a) {
    if (m.size(a) == 4 && r.one_in(3)) {
      const std::string_view parts[][2] = {
          {"A:(1)2", "A:(2)2"}, {"B:(1)2", "B:(2)2"}, {"C:(1)2", "C:(2)2"}};
      for (const std::string_view part : parts[a])
        if (!r.one_in(4)) axes.push_back(part);
    } else if (!r.one_in(4)) {
      axes.push_back(m.name(a));
    }
  }
  for (; !axes.empty(); ++l.count) {
    const auto at = static_cast<std::size_t>(r.in(0, static_cast<std::int64_t>(axes.size()) - 1));
    l.axes[l.count] = axes[at];
    l.dims[l.count] = static_cast<int>(r.in(0, rank - 1));
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return l;
}
void check_program(const pt::partitioned& p, const std::vector<pt::array>& x, bool exact) {
  const pt::results wanted = pt::evaluate(p.source, x), got = pt::emulate(p, x);
  CHECK((exact ? pt::equal(got, wanted) : pt::all_close(got, wanted, 1e-12, 1e-12)));
  const pt::failure bad = pt::verify(p.device);
  CHECK_MESSAGE(!bad, str(bad.message));
  const pt::verdict v = pt::prove(p);
  CHECK_MESSAGE(v.proved, str(v.error.message));
  pt::mesh m = p.device.mesh;
  const std::string text = str(pt::print(p.device));
  const pt::program again = pt::parse(text, m);
  CHECK(!again.error);
  CHECK(str(pt::print(again, &m)) == text);
}

const pt::program& tags_of_rank_2() {
  static const pt::program f = pt::trace(
      [](auto x) {
        const auto a = pt::tag("a", x), b = pt::tag("b", a + a), c = pt::tag("c", -b);
        return pt::output("y", pt::tag("d", pt::transpose<1, 0>(c)));
      },
      pt::input<std::int32_t, 48, 48>("x"));
  return f;
}
const pt::program& tags_of_rank_3() {
  static const pt::program f = pt::trace(
      [](auto x) {
        const auto a = pt::tag("a", x), b = pt::tag("b", a), c = pt::tag("c", b * b);
        return pt::output("y", pt::tag("d", c) + pt::sum<0>(b));
      },
      pt::input<std::int32_t, 48, 48, 48>("x"));
  return f;
}

struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<double, 8, 16>, w1),
                           (pt::tensor<double, 16, 8>, w2));
};
/// A step that clips by one of several norms.
const pt::program& clipping(int norm) {
  const auto traced = [](const auto& size) {
    return pt::trace(
        [&](const auto& p, const auto& m, const auto& x, const auto& y) {
          auto [loss, g] = pt::value_and_grad(
              [&](const auto& q) {
                return pt::nn::mean_squared_error(matmul(tanh(matmul(x, q.w1)), q.w2), y);
              },
              p);
          const auto scale = 1.0 / (1.0 + size(g.w1) + size(g.w2));
          const auto next =
              pt::map_leaves([&](auto a, auto b) { return 0.5 * a + b * scale; }, m, g);
          return std::tuple{
              pt::output("params", pt::map_leaves([](auto a, auto b) { return a - b; }, p, next)),
              pt::output("momentum", next), pt::output("loss", loss)};
        },
        pt::input<params>("params"), pt::input<params>("momentum"), pt::input<double, 16, 8>("x"),
        pt::input<double, 16, 8>("y"));
  };
  static const pt::program all[] = {
      traced([](const auto& g) { return pt::sum(g * g); }),
      traced([](const auto& g) { return pt::sum(pt::abs(g)); }),
      traced([](const auto& g) { return pt::reduce_max(pt::abs(pt::tag("g", -g))); }),
      traced([](const auto& g) { return pt::sum(pt::sum<0>(g) * pt::sum<0>(g)); })};
  return all[norm];
}

}  // namespace

TEST_CASE("random layouts of values in sequence compute the results of the source") {
  std::int64_t kinds[6] = {};
  for (std::uint64_t seed = 1; seed <= cases(); ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const pt::mesh m = random_mesh(r);
    const bool deep = r.one_in(2);
    const int rank = deep ? 3 : 2;
    const pt::shard_entry entries[] = {{"x", random_layout(r, m, rank)},
                                       {"a", random_layout(r, m, rank)},
                                       {"b", random_layout(r, m, rank)},
                                       {"c", random_layout(r, m, rank)},
                                       {"d", random_layout(r, m, rank)}};
    const auto p = pt::partition(deep ? tags_of_rank_3() : tags_of_rank_2(), m,
                                 pt::schedule(pt::shard(entries)), {.passes = {.relocate = false}});
    for (const auto& n : p.notes) ++kinds[n.kind];
    check_program(p, data::arguments(p.source, seed), true);
    pt::collective_counter counter(p.core, {});
    counter.update();
    CHECK(counter.counts() == p.collectives);
  }
  MESSAGE("gathers " << kinds[0] << ", all-to-alls " << kinds[3] << ", permutes " << kinds[4]);
  CHECK(kinds[pt::collective::all_to_all] > 0);
  CHECK(kinds[pt::collective::permute] > 0);
}

TEST_CASE("random shardings of a step that clips its gradients compute its results") {
  int scattered = 0;
  for (std::uint64_t seed = 1; seed <= cases() / 3; ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const pt::mesh m{{"B", r.one_in(2) ? 2 : 4}, {"M", 2}};
    const pt::program& f = clipping(static_cast<int>(r.in(0, 3)));
    const int d1 = static_cast<int>(r.in(0, 1)), d2 = static_cast<int>(r.in(0, 1));
    const bool whole = r.one_in(3);
    const pt::manual_entry state[] = {{"momentum.w1", d1}, {"momentum.w2", d2}};
    const auto BP = pt::manual("B", {{"x", 0}, {"y", 0}});
    const auto MP = pt::manual("M", {{"params.w1", 1}});
    const auto Z = pt::manual("B", state);
    const auto Z2 = pt::manual("B", {{"params", pt::replicated}});
    const auto p = r.one_in(2) ? (whole ? pt::partition(f, m, pt::schedule(BP, Z2, Z))
                                        : pt::partition(f, m, pt::schedule(BP, Z)))
                               : (whole ? pt::partition(f, m, pt::schedule(BP, MP, Z2, Z))
                                        : pt::partition(f, m, pt::schedule(BP, MP, Z)));
    scattered += static_cast<int>(p.collectives.reduce_scatter);
    std::vector<pt::array> x;
    for (int i = 0; i < p.source.input_count(); ++i)
      x.push_back(data::fill(p.source.input_type(i), [&](std::int64_t) {
        return static_cast<double>(r.in(-100, 100)) / 64;
      }));
    check_program(p, x, false);
  }
  CHECK(scattered > 0);
}
