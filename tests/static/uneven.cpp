// Uneven dimensions at compile time: local shapes are those of the padded sizes, and collectives
// those of sizes that divide.
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) {
  return matmul(pt::nn::relu(matmul(x, w1)), w2);
};
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP", pt::uneven::pad);
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP", pt::uneven::pad);
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3", pt::uneven::pad);

template <int Rows, int In, int Hidden, int Out>
constexpr auto step = [] {
  auto f = pt::trace(mlp, pt::input<float, Rows, In>("x"), pt::input<float, In, Hidden>("w1"),
                     pt::input<float, Hidden, Out>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP, Z3));
};
constexpr const auto& even = pt::check<step<12, 8, 16, 8>>;
constexpr const auto& uneven = pt::check<step<10, 7, 15, 5>>;

static_assert(even.collectives == pt::collectives{.all_gather = 2, .all_reduce = 1});
static_assert(uneven.collectives == even.collectives);
static_assert(uneven.conflicts == 0 && uneven.error().empty());
static_assert(uneven.input("x").global_shape == pt::shape{10, 7});
static_assert(uneven.input("x").local_shape == pt::shape{3, 8});  // its columns meet the rows of w1
static_assert(uneven.input("w1").local_shape == pt::shape{2, 8});
static_assert(uneven.input("w2").local_shape == pt::shape{8, 2});
static_assert(uneven.output("result").global_shape == pt::shape{10, 5});
static_assert(uneven.output("result").local_shape == pt::shape{3, 8});
static_assert(uneven.collective_bytes == even.collective_bytes);
static_assert(uneven.argument_bytes == 4 * (3 * 8 + 2 * 8 + 8 * 2));

// Fewer rows than devices: the other devices hold only padding.
static_assert(pt::check<step<1, 1, 1, 1>>.input("x").local_shape == pt::shape{1, 4});
static_assert(pt::check<step<1, 1, 1, 1>>.collectives == even.collectives);

// A dimension that the axis divides is the same as without the policy.
constexpr auto plain = [] {
  auto f = pt::trace(mlp, pt::input<float, 12, 8>("x"), pt::input<float, 8, 16>("w1"),
                     pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh,
                       pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w1", 1}}),
                                    pt::manual("B", {{"w1", 0}, {"w2", 1}}, pt::uneven::refuse)));
};
static_assert(pt::check<plain>.ops == even.ops && pt::check<plain>.bytes == even.bytes);

// The first dimension that the axis divides, or the largest.
constexpr auto placed = [] {
  auto f = pt::trace(
      [](auto x, auto y) {
        return std::tuple{pt::output("a", x * 2), pt::output("b", y * 2)};
      },
      pt::input<float, 3, 7, 6>("x"), pt::input<float, 3, 8>("y"));
  return pt::partition(
      f, mesh,
      pt::schedule(pt::manual("B", {{"x", pt::first_divisible_dim}, {"y", pt::first_divisible_dim}},
                              pt::uneven::pad)));
};
static_assert(pt::check<placed>.input("x").local_shape == pt::shape{3, 2, 6});
static_assert(pt::check<placed>.input("y").local_shape == pt::shape{3, 2});

// A dimension that combines several grows by the most major one, but not by one with fewer
// positions than blocks, which would leave too much padding.
template <int... Extents>
constexpr auto reshaped = [](auto from) {
  auto f = pt::trace([](auto x) { return pt::reshape<Extents...>(x * 2) + 1; }, from);
  return pt::partition(f, mesh, pt::schedule(BP));
};
constexpr auto merged = [] { return reshaped<60>(pt::input<float, 10, 6>("x")); };
constexpr auto split = [] { return reshaped<15, 2>(pt::input<float, 30>("x")); };
constexpr auto halves = [] { return reshaped<2, 15>(pt::input<float, 30>("x")); };
static_assert(pt::check<merged>.collectives.total() == 0);
static_assert(pt::check<merged>.input("x").local_shape == pt::shape{3, 6});
static_assert(pt::check<merged>.output(0).local_shape == pt::shape{18});
static_assert(pt::check<split>.collectives.total() == 0);
static_assert(pt::check<split>.input("x").local_shape == pt::shape{8});
static_assert(pt::check<split>.output(0).local_shape == pt::shape{4, 2});
static_assert(pt::check<halves>.collectives == pt::collectives{.all_gather = 1});
static_assert(pt::check<halves>.input("x").local_shape == pt::shape{8});
static_assert(pt::check<halves>.output(0).local_shape == pt::shape{2, 15});
