/// Chapter 1 of the guide: a mesh of devices, and which device holds which block of a value.
// ctest:
#include <iostream>

#include <partita/partita.hpp>
#include <partita/report/sharding_svg.hpp>

#include "guide.hpp"

namespace pt = partita;

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

constexpr auto scale = [](auto x, auto s) { return pt::output("y", x * s); };

constexpr auto rows = [] {
  const auto f = pt::trace(scale, pt::input<float, 8, 6>("x"), pt::input<float, 6>("s"));
  return pt::partition(f, mesh, pt::schedule(pt::shard({{"x", {"B"}}})));
};
static_assert(pt::check<rows>.input("x").local_shape == pt::shape{2, 6});
static_assert(pt::check<rows>.argument_bytes == 4 * (2 * 6 + 6));

int main(int argc, char** argv) {
  guide::page page(argc, argv);

  const pt::partitioned by_rows = rows();
  std::cout << pt::show(by_rows, "x");

  page.shows(R"(x [{"B"}, {}] : tensor<8x6xf32>, on each device tensor<2x6xf32>
  [0:2, 0:6]  0 1
  [2:4, 0:6]  2 3
  [4:6, 0:6]  4 5
  [6:8, 0:6]  6 7
)");

  const pt::program f = pt::trace(scale, pt::input<float, 8, 6>("x"), pt::input<float, 6>("s"));

  const pt::partitioned blocks =
      pt::partition(f, mesh, pt::schedule(pt::shard({{"x", {"B", "M"}}})));
  std::cout << pt::show(blocks, "x");

  page.shows(R"(x [{"B"}, {"M"}] : tensor<8x6xf32>, on each device tensor<2x3xf32>
       0:3  3:6
  0:2  0    1
  2:4  2    3
  4:6  4    5
  6:8  6    7
)");

  const pt::partitioned thin =
      pt::partition(f, mesh, pt::schedule(pt::shard({{"x", {{"B", "M"}}}})));
  std::cout << pt::print(blocks);

  page.shows(
      R"(func @main(%x: tensor<2x3xf32>, %s: tensor<3xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = broadcast_in_dim(%s) {dims=[1]} : tensor<2x3xf32>
  %y = multiply(%x, %x1) : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
)");

  try {
    pt::partition(f, mesh, pt::schedule(pt::shard({{"x", {{}, "B"}}})));
  } catch (const pt::error& e) {
    std::cout << e.what() << '\n';
  }

  page.shows(
      R"(S003 tile: dimension 1 of "x" has size 6; axis "B" has size 4, which does not divide it; take "B:(1)2", choose
        another dimension or mesh, or pad it with uneven::pad
)");

  const pt::partitioned padded =
      pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 1}}, "columns", pt::uneven::pad)));

  page.picture("1_rows.svg", pt::sharding_svg(by_rows, "x"));
  page.picture("1_blocks.svg", pt::sharding_svg(blocks, "x"));
  page.picture("1_thin.svg", pt::sharding_svg(thin, "x"));
  page.picture("1_padded.svg", pt::sharding_svg(padded, "x"));
  return page.result();
}
