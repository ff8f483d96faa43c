// JAX leaves the loss of a gradient in a module although no output needs it.
#include <doctest/doctest.h>

#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

/// `jax.grad` of the mean square of `tanh(x @ w) - y`.
constexpr std::string_view gradient = R"m(module @jit_f {
  func.func public @main(%arg0: tensor<8x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<4x8xf32>) -> (tensor<8x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.tanh %0 : tensor<4x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<4x8xf32>
    %4 = stablehlo.subtract %1, %arg2 : tensor<4x8xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<4x8xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %7 = stablehlo.multiply %6, %4 : tensor<4x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%5 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %9 = stablehlo.divide %8, %cst_2 : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %10 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %12 = stablehlo.multiply %11, %7 : tensor<4x8xf32>
    %13 = stablehlo.multiply %12, %3 : tensor<4x8xf32>
    %14 = stablehlo.multiply %13, %1 : tensor<4x8xf32>
    %15 = stablehlo.add %13, %14 : tensor<4x8xf32>
    %16 = stablehlo.dot_general %15, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %17 = stablehlo.transpose %16, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %17 : tensor<8x8xf32>
  }
})m";

}  // namespace

TEST_CASE("the dead loss of a gradient is neither computed nor sent") {
  const pt::program p = pt::read_stablehlo(gradient);
  REQUIRE(!p.error);
  const pt::mesh mesh{{"B", 4}};
  const auto r = pt::partition(p, mesh, pt::schedule(pt::manual("B", {{"arg1", 0}, {"arg2", 0}})));
  CHECK(r.removed.ops == 4);  // the square, its sum, a constant and the quotient
  CHECK(r.removed.flops == 32 + 32 + 1);
  CHECK(r.collectives == pt::collectives{.all_reduce = 1});
  const auto arguments = data::arguments(p);
  CHECK(pt::all_close(pt::emulate(r, arguments), pt::evaluate(p, arguments)));
  CHECK(pt::prove(r).proved);
  // The emitted module is proved against the original one.
  const pt::device_program back = pt::read_local_stablehlo(pt::write_stablehlo(r.device), mesh);
  REQUIRE(!back.local.error);
  CHECK(pt::prove(p, back).proved);
}
