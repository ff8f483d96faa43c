// Sub-axes at compile time: an axis is split where a reshape needs a part of it, or by a tactic.
#include <string_view>

#include <partita/partita.hpp>

namespace pt = partita;

constexpr pt::mesh mesh{{"A", 8}, {"B", 3}};
constexpr auto A = pt::manual("A", {{"x", 0}}, "A");

constexpr auto unfolded = [] {
  const auto f =
      pt::trace([](auto x, auto w) { return matmul(exp(pt::reshape<4, 4>(tanh(x))), w); },
                pt::input<float, 16>("x"), pt::input<float, 4, 8>("w"));
  return pt::partition(f, mesh, pt::schedule(A));
};
static_assert(pt::check<unfolded>.collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<unfolded>.conflicts == 0);
static_assert(pt::check<unfolded>.input("x").local_shape == pt::shape{2});
static_assert(pt::check<unfolded>.input("w").local_shape == pt::shape{2, 8});
static_assert(pt::check<unfolded>.output(0).local_shape == pt::shape{1, 8});
static_assert(pt::check<unfolded>.input("x").sharding.dim_of(0) == 0);
static_assert(pt::check<unfolded>.input("x").sharding.dim_of(1) == -1);
static_assert(
    pt::explain<unfolded>().substr(0, 98) ==
    R"(all_reduce <"A":(4)2>  %x4  32 bytes  x1  A  matmul(%x3, %w) leaves a sum over "A":(4)2)"
    "\nin all:\n  ");

constexpr auto named = [] {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); }, pt::input<float, 8, 8>("x"),
                           pt::input<float, 8, 4>("w"));
  return pt::partition(
      f, mesh, pt::schedule(pt::manual("A:(1)4", {{"x", 0}}), pt::manual("A:(4)2", {{"w", 1}})));
};
static_assert(pt::check<named>.collectives.total() == 0);
static_assert(pt::check<named>.output(0).local_shape == pt::shape{2, 2});

// Meshes: the parts of an axis.
constexpr pt::mesh split_twice(bool minor_first) {
  pt::mesh m{{"A", 12}, {"B", 5}};
  if (minor_first) {
    m.split(0, 6);  // 6, 2
    m.split(0, 2);  // 2, 3, 2
  } else {
    m.split(0, 2);  // 2, 6
    m.split(2, 3);
  }
  return m;
}
constexpr bool same(const pt::mesh& a, const pt::mesh& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (!(a.part(i) == b.part(i)) || a.order[i] != b.order[i]) return false;
  return true;
}
static_assert(same(split_twice(true), split_twice(false)));
static_assert(split_twice(true).rank == 4 && split_twice(true).whole_rank() == 2);
static_assert(split_twice(true).devices() == 60 && split_twice(true).whole().size(0) == 12);
static_assert(split_twice(true).part(2) == pt::sub_axis{0, 2, 3});
static_assert(split_twice(true).part(3) == pt::sub_axis{0, 6, 2});
static_assert(split_twice(true).order[0] == 0 && split_twice(true).order[1] == 2 &&
              split_twice(true).order[2] == 3 && split_twice(true).order[3] == 1);
static_assert(split_twice(true).parts_of({0, 2, 6}).count == 2);
static_assert(pt::concat(split_twice(true)) == R"({"A":12, "B":5})");
