/// Chapter 2 of the guide: the paper's chain of two products, and its program after each tactic.
// ctest:
#include <iostream>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/report/sharding_svg.hpp>
#include <partita/report/tactics_svg.hpp>
#include <xtensor/xarray.hpp>

#include "guide.hpp"

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

constexpr auto step = [] {
  const auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP, Z3));
};
static_assert(pt::check<step>.tactic("BP").collectives.total() == 0);
static_assert(pt::check<step>.tactic("MP").collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<step>.collectives == pt::collectives{.all_gather = 2, .all_reduce = 1});

int main(int argc, char** argv) {
  guide::page page(argc, argv);

  const pt::program f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                                  pt::input<float, 16, 8>("w2"));
  std::cout << pt::print(f);

  page.shows(R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) {
  %x1 = matmul(%x, %w1) : tensor<256x16xf32>
  %x2 = matmul(%x1, %w2) : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");

  const pt::partitioned one = pt::partition(f, mesh, pt::schedule(BP));
  std::cout << pt::print_actions(one.core, one.source) << pt::print(one);

  page.shows(R"(tile<%x, 0, "B">; propagate;
func @main(%x: tensor<64x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %w1) : tensor<64x16xf32>
  %x2 = matmul(%x1, %w2) : tensor<64x8xf32>
  return %x2 : tensor<64x8xf32>
}
)");

  std::cout << pt::tile_map_of(f, 3) << '\n';  // op 3 is the first product, after the three inputs

  page.shows(R"(([i, k], [k, j]) -> ([i, j])  reduce={k:add}
)");

  std::cout << pt::print_core(one.core);

  page.shows(
      R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %xs = slice 0 %x[%rB] : tensor<64x8xf32>
    %x1s = matmul(%xs, %w1) : tensor<64x16xf32>
    %x2s = matmul(%x1s, %w2) : tensor<64x8xf32>
    yield %x2s
  } : tensor<256x8xf32>
  return %x2 : tensor<256x8xf32>
}
)");

  const pt::partitioned two = pt::extend(one, pt::schedule(MP));
  std::cout << pt::print(two);

  page.shows(
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = matmul(%x, %w1) : tensor<64x8xf32>
  %x2 = matmul(%x1, %w2) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  return %x3 : tensor<64x8xf32>
}
)");

  const pt::partitioned three = pt::extend(two, pt::schedule(Z3));
  std::cout << pt::print(three);

  page.shows(
      R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<2x8xf32>, %w2: tensor<8x2xf32>) attributes {mesh = {"B":4, "M":2}} {
  %w1g = all_gather [{"B"}, {}] %w1 : tensor<8x8xf32>
  %x1 = matmul(%x, %w1g) : tensor<64x8xf32>
  %w2g = all_gather [{}, {"B"}] %w2 : tensor<8x8xf32>
  %x2 = matmul(%x1, %w2g) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  return %x3 : tensor<64x8xf32>
}
)");

  const xt::xarray<float> x = xt::ones<float>({256, 8});
  const xt::xarray<float> w1 = 2 * xt::ones<float>({8, 16}), w2 = 3 * xt::ones<float>({16, 8});
  const bool same = pt::equal(pt::emulate(three, x, w1, w2), pt::evaluate(f, x, w1, w2));
  page.expect(same, "eight devices compute what one does");

  page.picture("2_w1_BP.svg", pt::sharding_svg(one, "w1"));
  page.picture("2_w1_MP.svg", pt::sharding_svg(two, "w1"));
  page.picture("2_w1_Z3.svg", pt::sharding_svg(three, "w1"));
  page.picture("2_tactics.svg", pt::tactics_svg(three));
  return page.result();
}
