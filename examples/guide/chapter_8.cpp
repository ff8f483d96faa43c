/// Chapter 8 of the guide: a module from JAX, partitioned by a text, and written for XLA.
// ctest:
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include <partita/partita.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write_annotated.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "guide.hpp"

namespace pt = partita;

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(PARTITA_SOURCE_DIR) + "/examples/guide/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

int main(int argc, char** argv) {
  guide::page page(argc, argv);

  const pt::program f = pt::read_stablehlo(read_file("forward.mlir"));
  std::cout << pt::print(f);

  page.shows(
      R"(func @main(%params.w1: tensor<8x16xf32>, %params.w2: tensor<16x8xf32>, %x: tensor<256x8xf32>) {
  %dot_general.0 = matmul(%x, %params.w1) : tensor<256x16xf32>
  %tanh = tanh(%dot_general.0) : tensor<256x16xf32>
  %dot_general.1 = matmul(%tanh, %params.w2) : tensor<256x8xf32>
  return %dot_general.1 as "result" : tensor<256x8xf32>
}
)");

  const pt::mesh mesh{{"B", 4}, {"M", 2}};
  const pt::text_schedule schedule = pt::read_schedule(
      "BP: manual B {x: 0}\n"
      "MP: manual M {params.w1: 1}");
  const pt::partitioned p = pt::partition(f, mesh, schedule.tactics, schedule.options());
  std::cout << pt::print(p);

  page.shows(
      R"(func @main(%params.w1: tensor<8x8xf32>, %params.w2: tensor<8x8xf32>, %x: tensor<64x8xf32>) attributes {mesh =
        {"B":4, "M":2}} {
  %x1 = matmul(%x, %params.w1) : tensor<64x8xf32>
  %x2 = tanh(%x1) : tensor<64x8xf32>
  %x3 = matmul(%x2, %params.w2) : tensor<64x8xf32>
  %x4 = all_reduce <"M"> %x3 : tensor<64x8xf32>
  return %x4 : tensor<64x8xf32>
}
)");

  std::cout << pt::write_stablehlo(p.device);

  page.shows(
      R"(module @partita attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 8 : i32} {
  func.func public @main(%arg0: tensor<8x8xf32> {mhlo.frontend_attributes = {partita.layout = "[{}, {\22M\22}]"}}
        loc("params.w1"), %arg1: tensor<8x8xf32> {mhlo.frontend_attributes = {partita.layout = "[{\22M\22}, {}]"}}
        loc("params.w2"), %arg2: tensor<64x8xf32> {mhlo.frontend_attributes = {partita.layout = "[{\22B\22}, {}]"}}
        loc("x")) -> (tensor<64x8xf32> {jax.result_info = "result.result", mhlo.frontend_attributes =
        {partita.layout = "[{\22B\22}, {}]"}}) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) ->
        tensor<64x8xf32>
    %1 = stablehlo.tanh %0 : tensor<64x8xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) ->
        tensor<64x8xf32>
    %3 = "stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>}>
        ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = stablehlo.add %4, %5 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<64x8xf32>) -> tensor<64x8xf32>
    return %3 : tensor<64x8xf32>
  }
}
)");

  std::cout << guide::some_lines(pt::write_annotated_stablehlo(p), 3);

  page.shows(
      R"(module @partita attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["B"=4, "M"=2]>
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"M"}]>}
        loc("params.w1"), %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"M"}, {}]>}
        loc("params.w2"), %arg2: tensor<256x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"B"}, {}]>} loc("x")) ->
        (tensor<256x8xf32> {jax.result_info = "result.result", sdy.sharding = #sdy.sharding<@mesh, [{"B"}, {}]>}) {
...
)");

  return page.result();
}
