/// Chapter 3 of the guide: each collective, why it is there, and its bytes and seconds.
// ctest:
#include <iostream>

#include <partita/partita.hpp>
#include <partita/report/sharding_svg.hpp>
#include <partita/report/timeline_svg.hpp>

#include "guide.hpp"

namespace pt = partita;

constexpr pt::mesh mesh{{"B", 4}};

constexpr auto product = [](auto x, auto w) { return pt::output("y", matmul(x, w)); };
constexpr auto traced = [] {
  return pt::trace(product, pt::input<float, 8, 8>("x"), pt::input<float, 8, 4>("w"));
};
constexpr auto shifted = [] {
  return pt::trace([](auto x) { return pt::output("y", pt::roll<1, 0>(x)); },
                   pt::input<float, 8, 8>("x"));
};

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
constexpr auto large = [] {
  const auto f =
      pt::trace(mlp, pt::input<float, 8192, 4096>("x"), pt::input<float, 4096, 16384>("w1"),
                pt::input<float, 16384, 4096>("w2"));
  const auto BP = pt::manual("B", {{"x", 0}}, "BP");
  const auto MP = pt::manual("M", {{"w1", 1}}, "MP");
  const auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");
  return pt::partition(f, {{"B", 4}, {"M", 2}}, pt::schedule(BP, MP, Z3));
};

int main(int argc, char** argv) {
  guide::page page(argc, argv);
  const pt::program f = traced();

  // The whole of w is needed, and each device holds two rows of it.
  const auto gathered = pt::partition(
      f, mesh, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"w", 0}})));
  std::cout << pt::print(gathered);

  page.shows(R"(func @main(%x: tensor<2x8xf32>, %w: tensor<2x4xf32>) attributes {mesh = {"B":4}} {
  %wg = all_gather [{"B"}, {}] %w : tensor<8x4xf32>
  %y = matmul(%x, %wg) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)");

  // The product sums over a dimension that is sharded.
  const auto summed = pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 1}})));
  std::cout << pt::print(summed);

  page.shows(R"(func @main(%x: tensor<8x2xf32>, %w: tensor<2x4xf32>) attributes {mesh = {"B":4}} {
  %x1 = matmul(%x, %w) : tensor<8x4xf32>
  %y = all_reduce <"B"> %x1 : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)");

  // The same, but each device needs two rows of the sum only.
  const auto scattered = pt::partition(
      f, mesh, pt::schedule(pt::manual("B", {{"x", 1}}), pt::manual("B", {{"y", 0}})));
  std::cout << pt::print(scattered);

  page.shows(R"(func @main(%x: tensor<8x2xf32>, %w: tensor<2x4xf32>) attributes {mesh = {"B":4}} {
  %x1 = matmul(%x, %w) : tensor<8x4xf32>
  %y = reduce_scatter [{"B"}, {}] %x1 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)");

  // Each device has two rows, and sorting a column needs all rows.
  const auto exchanged =
      pt::partition(pt::trace([](auto x) { return pt::output("y", pt::sort<0>(x)); },
                              pt::input<float, 8, 8>("x")),
                    mesh, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"y", 1}})));
  std::cout << pt::print(exchanged);

  page.shows(R"(func @main(%x: tensor<2x8xf32>) attributes {mesh = {"B":4}} {
  %x1 = all_to_all {0 -> 1} <"B"> %x : tensor<8x2xf32>
  %y = sort(%x1) {dim=0} : tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}
)");

  // Each row moves to the next place: one row of each device goes to its neighbour.
  const auto shift = pt::partition(shifted(), mesh, pt::schedule(pt::shard({{"x", {"B"}}})));
  std::cout << pt::print(shift);

  page.shows(R"(func @main(%x: tensor<2x8xf32>) attributes {mesh = {"B":4}} {
  %x1 = slice(%x) {[1:2, :]} : tensor<1x8xf32>
  %x2 = permute {+1 around} <"B"> %x1 : tensor<1x8xf32>
  %x3 = concatenate(%x2, %x) {dim=0} : tensor<3x8xf32>
  %y = slice(%x3) {[0:2, :]} : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
)");

  const auto bytes = [](const char* name, const pt::partitioned& p) {
    std::cout << name << ": " << p.cost.collective_bytes << " bytes\n";
  };
  bytes("all_gather", gathered);
  bytes("all_reduce", summed);
  bytes("reduce_scatter", scattered);
  bytes("all_to_all", exchanged);
  bytes("permute", shift);

  page.shows(R"(all_gather: 96 bytes
all_reduce: 192 bytes
reduce_scatter: 96 bytes
all_to_all: 48 bytes
permute: 32 bytes
)");

  std::cout << pt::print_simulation(large(), pt::a100_80);

  page.shows(R"(on {"B":4, "M":2} of A100-80:
  tactic  in turn  overlapped  kernels  collectives     MFU  peak bytes  bytes sent  memory
  BP      4.45 ms     4.45 ms  4.45 ms      0.00 ns  79.1 %   738197504           0  fits
  MP      2.38 ms     2.38 ms  2.23 ms       146 us  74.0 %   402653184    33554432  fits
  Z3      3.24 ms     2.81 ms  2.23 ms      1.00 ms  54.4 %   335544320   234881024  fits
)");

  auto slow = pt::machine(pt::a100_80);
  slow.told[0] = {pt::link_shape::ring, 12.5e9, 10e-6};  // axis "B" over a network of 12.5 GB/s

  page.picture("3_x.svg", pt::sharding_svg(exchanged, "x"));
  page.picture("3_y.svg", pt::sharding_svg(exchanged, "y"));
  page.picture("3_timeline.svg", pt::timeline_svg(large().device, pt::a100_80));
  page.picture("3_slow.svg", pt::timeline_svg(large().device, slow));
  return page.result();
}
