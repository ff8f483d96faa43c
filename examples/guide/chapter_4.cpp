/// Chapter 4 of the guide: a conflict, its report, and four ways to settle it.
// ctest:
#include <iostream>

#include <partita/partita.hpp>
#include <partita/report/sharding_svg.hpp>

#include "guide.hpp"

namespace pt = partita;

constexpr auto scores = [](auto x, auto w) {
  const auto h = pt::tag("h", tanh(matmul(x, w)));
  return pt::output("s", matmul(h, pt::transpose<1, 0>(h)));
};
constexpr auto traced = [] {
  return pt::trace(scores, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
};
constexpr pt::mesh mesh{{"M", 4}};
constexpr auto alone = pt::manual("M", {{"x", 0}}, "alone");
constexpr auto rows = pt::amalgamated("rows", alone);
constexpr auto with_conflict = [] { return pt::partition(traced(), mesh, pt::schedule(rows)); };

constexpr auto order = pt::manual("M", {{"s", 0}}, "order");
constexpr auto by_order = [] { return pt::partition(traced(), mesh, pt::schedule(order, rows)); };
static_assert(pt::check<by_order>.conflicts == 0);
static_assert(pt::check<by_order>.collectives == pt::collectives{.all_gather = 1});

constexpr auto keep = pt::manual("M", {{"h", pt::replicated}}, "keep");
constexpr auto by_tag = [] { return pt::partition(traced(), mesh, pt::schedule(keep, rows)); };
static_assert(pt::check<by_tag>.conflicts == 0);

constexpr pt::mesh two_axes{{"R", 2}, {"C", 2}};
constexpr auto by_axes = [] {
  const auto R = pt::manual("R", {{"s", 0}}, "R");
  const auto C = pt::manual("C", {{"s", 1}}, "C");
  return pt::partition(traced(), two_axes, pt::schedule(R, C));
};
static_assert(pt::check<by_axes>.conflicts == 0);

constexpr auto by_cost = [] { return pt::partition(traced(), mesh, pt::schedule(alone)); };
static_assert(pt::check<by_cost>.conflicts == 0);

int main(int argc, char** argv) {
  guide::page page(argc, argv);

  std::cout << pt::report(with_conflict());

  page.shows(R"(after rows:
  actions: tile<%x, 0, "M">; propagate;
  collectives: all_gather 2, all_reduce 0, reduce_scatter 0, all_to_all 0
  sharded inputs:
    x [{"M"}, {}] : tensor<16x8xf32> -> tensor<4x8xf32>
  conflicts: 1
    %s (dot_general) along "M": #tile<0> from operand %h by tactic 1 ("rows"), and #tile<1> from operand %x3 by
        tactic 1 ("rows")
      would be settled by manual("M", {{"h", replicated}}) as an earlier tactic (replicated), or by tag("x3", x) on
        %x3 and manual("M", {{"x3", replicated}}) as an earlier tactic (#tile<0>)
per device: 4640 flop, 3072 bytes read and written, arguments 384 bytes, results 1024 bytes, peak 2432 bytes, sent
        768 bytes, messages along "M" 6
possible with passes share_gathers: all_gather 2 -> 1, sent 768 -> 384 bytes, peak 2432 -> 2432 bytes
)");

  std::cout << pt::print(with_conflict());

  page.shows(R"(func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) attributes {mesh = {"M":4}} {
  %x1 = matmul(%x, %w) : tensor<4x8xf32>
  %x2 = tanh(%x1) : tensor<4x8xf32>
  %x3 = transpose(%x2) {dims=[1, 0]} : tensor<8x4xf32>
  %x2g = all_gather [{"M"}, {}] %x2 : tensor<16x8xf32>
  %x3g = all_gather [{}, {"M"}] %x3 : tensor<8x16xf32>
  %s = matmul(%x2g, %x3g) : tensor<16x16xf32>
  return %s : tensor<16x16xf32>
}
)");

  std::cout << pt::print(by_order());

  page.shows(R"(func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) attributes {mesh = {"M":4}} {
  %x1 = matmul(%x, %w) : tensor<4x8xf32>
  %x2 = tanh(%x1) : tensor<4x8xf32>
  %x3 = transpose(%x2) {dims=[1, 0]} : tensor<8x4xf32>
  %x3g = all_gather [{}, {"M"}] %x3 : tensor<8x16xf32>
  %s = matmul(%x2, %x3g) : tensor<4x16xf32>
  return %s : tensor<4x16xf32>
}
)");

  std::cout << pt::print(by_axes());

  page.shows(
      R"(func @main(%x: tensor<16x8xf32>, %w: tensor<8x8xf32>) attributes {mesh = {"R":2, "C":2}} {
  %x1 = matmul(%x, %w) : tensor<16x8xf32>
  %x2 = tanh(%x1) : tensor<16x8xf32>
  %x2s = all_slice [{"C"}, {}] %x2 : tensor<8x8xf32>
  %x3 = transpose(%x2s) {dims=[1, 0]} : tensor<8x8xf32>
  %x2s2 = all_slice [{"R"}, {}] %x2 : tensor<8x8xf32>
  %s = matmul(%x2s2, %x3) : tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}
)");

  std::cout << pt::report(by_cost());

  page.shows(R"(after alone:
  actions: tile<%x, 0, "M">; propagate; settle<%s, 0, "M">;
  collectives: all_gather 1, all_reduce 0, reduce_scatter 0, all_to_all 0
  sharded inputs:
    x [{"M"}, {}] : tensor<16x8xf32> -> tensor<4x8xf32>
  conflicts: 0
  note: settled by cost: "s" along "M" is sliced on dimension 0
per device: 1568 flop, 1920 bytes read and written, arguments 384 bytes, results 256 bytes, peak 1280 bytes, sent
        384 bytes, messages along "M" 3
)");

  const auto line = [](const char* name, const pt::partitioned& p) {
    std::cout << name << ": " << p.cost.flops << " flop, " << p.cost.collective_bytes
              << " bytes sent, peak " << p.cost.peak_bytes << " bytes\n";
  };
  line("conflict", with_conflict());
  line("by order", by_order());
  line("by tag", by_tag());
  line("by axes", by_axes());
  line("by cost", by_cost());

  page.shows(R"(conflict: 4640 flop, 768 bytes sent, peak 2432 bytes
by order: 1568 flop, 384 bytes sent, peak 1280 bytes
by tag: 4640 flop, 384 bytes sent, peak 2432 bytes
by axes: 3200 flop, 0 bytes sent, peak 1792 bytes
by cost: 1568 flop, 384 bytes sent, peak 1280 bytes
)");

  page.picture("4_order.svg", pt::sharding_svg(by_order(), "s"));
  page.picture("4_tag.svg", pt::sharding_svg(by_tag(), "s"));
  page.picture("4_axes.svg", pt::sharding_svg(by_axes(), "s"));
  return page.result();
}
