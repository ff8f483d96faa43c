// A loop over microbatches in every printed form: source, with the loop, device-local.
#include <doctest/doctest.h>

#include "../data.hpp"

namespace pt = partita;
using data::str;

TEST_CASE("one layer's gradient over four microbatches and a mesh") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& v) {
              const auto y = matmul(x, v);
              return sum(y * y);
            },
            w);
        return std::tuple{pt::output("w", w - g), pt::output("loss", loss)};
      },
      pt::input<float, 32, 8>("x"), pt::input<float, 8, 8>("w"));
  const pt::mesh mesh{{"B", 2}};
  const auto r = pt::partition(
      f, mesh, pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), pt::microbatch(4, {{"x", 0}})));
  CHECK(str(pt::print(r.source)) == R"(func @main(%x: tensor<32x8xf32>, %w: tensor<8x8xf32>) {
  %x1 = matmul(%x, %w) : tensor<32x8xf32>
  %x2 = multiply(%x1, %x1) : tensor<32x8xf32>
  %loss = reduce(%x2) {add, dims=[0, 1]} : tensor<f32>
  %x3 = constant {1} : tensor<f32>
  %x4 = broadcast_in_dim(%x3) {dims=[]} : tensor<32x8xf32>
  %x5 = multiply(%x4, %x1) : tensor<32x8xf32>
  %x6 = multiply(%x4, %x1) : tensor<32x8xf32>
  %x7 = add(%x5, %x6) : tensor<32x8xf32>
  %x8 = dot_general(%x, %x7) {contract=[0]x[0]} : tensor<8x8xf32>
  %w' = subtract(%w, %x8) : tensor<8x8xf32>
  return %w', %loss : tensor<8x8xf32>, tensor<f32>
}
)");
  CHECK(str(pt::print(r.rewritten)) == R"(func @main(%x: tensor<32x8xf32>, %w: tensor<8x8xf32>) {
  %x1 = constant {0} : tensor<f32>
  %x2 = constant {0} : tensor<8x8xf32>
  %x3 = reshape(%x) : tensor<8x4x8xf32>
  %x4 = transpose(%x3) {dims=[1, 0, 2]} : tensor<4x8x8xf32>
  %loss, %x5 = scan(%w, %x1, %x2, %x4) {length=4, constants=1, carried=2, sliced=1} do (%x6: tensor<i32>, %x7: tensor<8x8xf32>, %x8: tensor<f32>, %x9: tensor<8x8xf32>, %x10: tensor<8x8xf32>) {
    %x11 = matmul(%x10, %x7) : tensor<8x8xf32>
    %x12 = multiply(%x11, %x11) : tensor<8x8xf32>
    %x13 = reduce(%x12) {add, dims=[0, 1]} : tensor<f32>
    %x14 = constant {1} : tensor<f32>
    %x15 = broadcast_in_dim(%x14) {dims=[]} : tensor<8x8xf32>
    %x16 = multiply(%x15, %x11) : tensor<8x8xf32>
    %x17 = multiply(%x15, %x11) : tensor<8x8xf32>
    %x18 = add(%x16, %x17) : tensor<8x8xf32>
    %x19 = dot_general(%x10, %x18) {contract=[0]x[0]} : tensor<8x8xf32>
    %x20 = add(%x8, %x13) : tensor<f32>
    %x21 = add(%x9, %x19) : tensor<8x8xf32>
    return %x20, %x21 : tensor<f32>, tensor<8x8xf32>
  } : tensor<f32>, tensor<8x8xf32>
  %w' = subtract(%w, %x5) : tensor<8x8xf32>
  return %w', %loss : tensor<8x8xf32>, tensor<f32>
}
)");
  CHECK(str(pt::print(r.device.local, &mesh)) ==
        R"(func @main(%x: tensor<16x8xf32>, %w: tensor<8x8xf32>) attributes {mesh = {"B":2}} {
  %x1 = constant {0} : tensor<f32>
  %x2 = constant {0} : tensor<8x8xf32>
  %x3 = reshape(%x) : tensor<4x4x8xf32>
  %x4 = transpose(%x3) {dims=[1, 0, 2]} : tensor<4x4x8xf32>
  %x5, %x6 = scan(%w, %x1, %x2, %x4) {length=4, constants=1, carried=2, sliced=1} do (%x8: tensor<i32>, %x9: tensor<8x8xf32>, %x10: tensor<f32>, %x11: tensor<8x8xf32>, %x12: tensor<4x8xf32>) {
    %x13 = matmul(%x12, %x9) : tensor<4x8xf32>
    %x14 = multiply(%x13, %x13) : tensor<4x8xf32>
    %x15 = reduce(%x14) {add, dims=[0, 1]} : tensor<f32>
    %x16 = constant {1} : tensor<f32>
    %x17 = broadcast_in_dim(%x16) {dims=[]} : tensor<4x8xf32>
    %x18 = multiply(%x17, %x13) : tensor<4x8xf32>
    %x19 = multiply(%x17, %x13) : tensor<4x8xf32>
    %x20 = add(%x18, %x19) : tensor<4x8xf32>
    %x21 = dot_general(%x12, %x20) {contract=[0]x[0]} : tensor<8x8xf32>
    %x22 = add(%x10, %x15) : tensor<f32>
    %x23 = add(%x11, %x21) : tensor<8x8xf32>
    return %x22, %x23 : tensor<f32>, tensor<8x8xf32>
  } : tensor<f32>, tensor<8x8xf32>
  %loss, %x7 = all_reduce <"B"> %x5, %x6 : tensor<f32>, tensor<8x8xf32>
  %w' = subtract(%w, %x7) : tensor<8x8xf32>
  return %w', %loss : tensor<8x8xf32>, tensor<f32>
}
)");
  CHECK(str(pt::report(r)) == R"(after BP:
  actions: tile<%x, 0, "B">; propagate;
  collectives: all_gather 0, all_reduce 2, reduce_scatter 0, all_to_all 0
  sharded inputs:
    x [{"B"}, {}] : tensor<32x8xf32> -> tensor<16x8xf32>
  conflicts: 0
after microbatch:
  actions:
  collectives: all_gather 0, all_reduce 2, reduce_scatter 0, all_to_all 0
  sharded inputs:
    none new
  conflicts: 0
combined: 2 collectives are launched as 1
per device: 5060 flop, 17508 bytes read and written, arguments 768 bytes, results 260 bytes, peak 1928 bytes, sent 260 bytes, messages along "B" 2
)");
}
