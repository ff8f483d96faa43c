// A loop and a branch in every printed form: source, loops, device-local, actions.
#include <doctest/doctest.h>

#include "../data.hpp"

namespace pt = partita;
using data::str;

TEST_CASE("a loop and a branch, partitioned by batch and by a tag inside the loop") {
  const auto f = pt::trace(
      [](auto x, auto w1, auto w2) {
        const auto block = [&](auto, auto h) {
          const auto hidden = pt::tag("hidden", tanh(matmul(h, w1)));
          return h + matmul(hidden, w2);
        };
        const auto h = pt::for_loop(0, 6, block, x);
        return pt::cond(
            sum(h) > 0, [](auto v) { return v; }, [&](auto v) { return v * x; }, h);
      },
      pt::input<float, 8, 4>("x"), pt::input<float, 4, 16>("w1"), pt::input<float, 16, 4>("w2"));
  const pt::mesh mesh{{"B", 4}, {"M", 2}};
  const auto r = pt::partition(
      f, mesh,
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), pt::manual("M", {{"hidden", 1}}, "MP")));
  CHECK(str(pt::print(f)) ==
        R"(func @main(%x: tensor<8x4xf32>, %w1: tensor<4x16xf32>, %w2: tensor<16x4xf32>) {
  %x1 = scan(%w1, %w2, %x) {length=6, constants=2, carried=1} do (%x7: tensor<i32>, %x8: tensor<4x16xf32>, %x9: tensor<16x4xf32>, %x10: tensor<8x4xf32>) {
    %x11 = matmul(%x10, %x8) : tensor<8x16xf32>
    %x12 = tanh(%x11) : tensor<8x16xf32>
    %hidden = tag "hidden" %x12 : tensor<8x16xf32>
    %x13 = matmul(%hidden, %x9) : tensor<8x4xf32>
    %x14 = add(%x10, %x13) : tensor<8x4xf32>
    return %x14 : tensor<8x4xf32>
  } : tensor<8x4xf32>
  %x2 = reduce(%x1) {add, dims=[0, 1]} : tensor<f32>
  %x3 = constant {0} : tensor<f32>
  %x4 = compare(%x2, %x3) {gt} : tensor<i1>
  %x5 = convert(%x4) : tensor<i32>
  %x6 = case(%x5, %x1, %x) do (%x7: tensor<8x4xf32>, %x8: tensor<8x4xf32>) {
    %x9 = multiply(%x7, %x8) : tensor<8x4xf32>
    return %x9 : tensor<8x4xf32>
  } do (%x7: tensor<8x4xf32>, %x8: tensor<8x4xf32>) {
    return %x7 : tensor<8x4xf32>
  } : tensor<8x4xf32>
  return %x6 : tensor<8x4xf32>
}
)");
  CHECK(
      str(pt::print_core(r.core)) ==
      R"(func @main(%x: tensor<8x4xf32>, %w1: tensor<4x16xf32>, %w2: tensor<16x4xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x5 = scan(%w1, %w2, %x) {length=6, constants=2, carried=1} do (%x1: tensor<i32>, %x2: tensor<4x16xf32> [{}, {"M"}], %x3: tensor<16x4xf32> [{"M"}, {}], %x4: tensor<8x4xf32> [{"B"}, {}]) {
    %x8 = loop "B" [#tile<0>] (%rB: range<4>) {
      %x8s = loop "M" [#sum] (%rM: range<2>) {
        %x4s = slice 0 %x4[%rB] : tensor<2x4xf32>
        %x2s = slice 1 %x2[%rM] : tensor<4x8xf32>
        %x6ss = matmul(%x4s, %x2s) : tensor<2x8xf32>
        %x7ss = tanh(%x6ss) : tensor<2x8xf32>
        %hiddenss = tag "hidden" %x7ss : tensor<2x8xf32>
        %x3s = slice 0 %x3[%rM] : tensor<8x4xf32>
        %x8ss = matmul(%hiddenss, %x3s) : tensor<2x4xf32>
        yield %x8ss
      }
      yield %x8s
    } : tensor<8x4xf32>
    %x9 = loop "B" [#tile<0>] (%rB: range<4>) {
      %x4s = slice 0 %x4[%rB] : tensor<2x4xf32>
      %x8s = slice 0 %x8[%rB] : tensor<2x4xf32>
      %x9s = add(%x4s, %x8s) : tensor<2x4xf32>
      yield %x9s
    } : tensor<8x4xf32>
    return %x9 : tensor<8x4xf32>
  } : tensor<8x4xf32>
  %x10 = loop "B" [#sum] (%rB: range<4>) {
    %x5s = slice 0 %x5[%rB] : tensor<2x4xf32>
    %x10s = reduce(%x5s) {add, dims=[0, 1]} : tensor<f32>
    yield %x10s
  } : tensor<f32>
  %x11 = constant {0} : tensor<f32>
  %x12 = compare(%x10, %x11) {gt} : tensor<i1>
  %x13 = convert(%x12) : tensor<i32>
  %x18 = case(%x13, %x5, %x) do (%x14: tensor<8x4xf32> [{"B"}, {}], %x16: tensor<8x4xf32> [{"B"}, {}]) {
    %x19 = loop "B" [#tile<0>] (%rB: range<4>) {
      %x14s = slice 0 %x14[%rB] : tensor<2x4xf32>
      %x16s = slice 0 %x16[%rB] : tensor<2x4xf32>
      %x19s = multiply(%x14s, %x16s) : tensor<2x4xf32>
      yield %x19s
    } : tensor<8x4xf32>
    return %x19 : tensor<8x4xf32>
  } do (%x15: tensor<8x4xf32> [{"B"}, {}], %x17: tensor<8x4xf32> [{"B"}, {}]) {
    return %x15 : tensor<8x4xf32>
  } : tensor<8x4xf32>
  return %x18 : tensor<8x4xf32>
}
)");
  CHECK(
      str(pt::print(r.device)) ==
      R"(func @main(%x: tensor<2x4xf32>, %w1: tensor<4x8xf32>, %w2: tensor<8x4xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x1 = scan(%w1, %w2, %x) {length=6, constants=2, carried=1} do (%x8: tensor<i32>, %x9: tensor<4x8xf32>, %x10: tensor<8x4xf32>, %x11: tensor<2x4xf32>) {
    %x12 = matmul(%x11, %x9) : tensor<2x8xf32>
    %x13 = tanh(%x12) : tensor<2x8xf32>
    %x14 = matmul(%x13, %x10) : tensor<2x4xf32>
    %x15 = all_reduce <"M"> %x14 : tensor<2x4xf32>
    %x16 = add(%x11, %x15) : tensor<2x4xf32>
    return %x16 : tensor<2x4xf32>
  } : tensor<2x4xf32>
  %x2 = reduce(%x1) {add, dims=[0, 1]} : tensor<f32>
  %x3 = all_reduce <"B"> %x2 : tensor<f32>
  %x4 = constant {0} : tensor<f32>
  %x5 = compare(%x3, %x4) {gt} : tensor<i1>
  %x6 = convert(%x5) : tensor<i32>
  %x7 = case(%x6, %x1, %x) do (%x8: tensor<2x4xf32>, %x9: tensor<2x4xf32>) {
    %x10 = multiply(%x8, %x9) : tensor<2x4xf32>
    return %x10 : tensor<2x4xf32>
  } do (%x8: tensor<2x4xf32>, %x9: tensor<2x4xf32>) {
    return %x8 : tensor<2x4xf32>
  } : tensor<2x4xf32>
  return %x7 : tensor<2x4xf32>
}
)");
  const pt::text actions = pt::print_actions(r.core, f);
  CHECK(str(actions) == "tile<%x, 0, \"B\">; propagate;\ntile<%hidden, 1, \"M\">; propagate;\n");
  pt::core_program again(f, mesh);
  CHECK(!pt::replay(again, f, actions.view()));
  CHECK(str(pt::print_core(again)) == str(pt::print_core(r.core)));
  CHECK(r.collectives == pt::collectives{.all_reduce = 6 + 1});
  CHECK(pt::equivalent(pt::parse(pt::print(f)), f));
  const auto x = data::arguments(f);
  // Six steps, sums of 16 terms in another order, values below 64.
  CHECK(pt::max_difference(pt::emulate(r, x), pt::evaluate(f, x)) <= 6 * 16 * 64 * 0x1p-23);
}
