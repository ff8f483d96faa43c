/// Modules for the tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace modules {

/// A function of these arguments around a body.
inline std::string around(std::string_view arguments, std::string_view body) {
  return "module @m {\n  func.func public @main(" + std::string(arguments) + ") {\n" +
         std::string(body) + "\n  }\n}\n";
}

/// One op in several spellings with the same meaning.
struct op_forms {
  std::string_view arguments, pretty, generic;
  std::string_view printed;  ///< the last op, as our text has it
};

inline constexpr op_forms ops[] = {
    {"%a: tensor<4x8xf32>, %b: tensor<4x8xf32>", "%0 = stablehlo.add %a, %b : tensor<4x8xf32>",
     "%0 = \"stablehlo.add\"(%a, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
     "add(%a, %b) : tensor<4x8xf32>"},
    {"%a: tensor<4xf32>, %b: tensor<4xf32>",
     "%0 = stablehlo.compare  LT, %a, %b,  FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
     "%0 = \"stablehlo.compare\"(%a, %b) <{compare_type = #stablehlo<comparison_type FLOAT>, "
     "comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xf32>, "
     "tensor<4xf32>) "
     "-> tensor<4xi1>",
     "compare(%a, %b) {lt} : tensor<4xi1>"},
    {"%a: tensor<8xf32>",
     "%0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>",
     "%0 = \"stablehlo.broadcast_in_dim\"(%a) <{broadcast_dimensions = array<i64: 1>}> : "
     "(tensor<8xf32>) -> tensor<4x8xf32>",
     "broadcast_in_dim(%a) {dims=[1]} : tensor<4x8xf32>"},
    {"%a: tensor<4x8xf32>, %b: tensor<8x2xf32>",
     "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, "
     "DEFAULT] "
     ": (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>",
     "%0 = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<"
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = "
     "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x8xf32>, "
     "tensor<8x2xf32>) -> tensor<4x2xf32>",
     "matmul(%a, %b) : tensor<4x2xf32>"},
    {"%a: tensor<4x8xf32>",
     "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
     "%0 = \"stablehlo.transpose\"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> "
     "tensor<8x4xf32>",
     "transpose(%a) {dims=[1, 0]} : tensor<8x4xf32>"},
    {"%a: tensor<4x8xf32>",
     "%0 = stablehlo.slice %a [1:3, 0:8:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>",
     "%0 = \"stablehlo.slice\"(%a) <{limit_indices = array<i64: 3, 8>, start_indices = array<i64: "
     "1, "
     "0>, strides = array<i64: 1, 2>}> : (tensor<4x8xf32>) -> tensor<2x4xf32>",
     "slice(%a) {[1:3, ::2]} : tensor<2x4xf32>"},
    {"%a: tensor<4x8xf32>, %z: tensor<f32>",
     "%0 = stablehlo.pad %a, %z, low = [0, 1], high = [2, -1], interior = [1, 0] : "
     "(tensor<4x8xf32>, tensor<f32>) -> tensor<9x8xf32>",
     "%0 = \"stablehlo.pad\"(%a, %z) <{edge_padding_high = array<i64: 2, -1>, edge_padding_low = "
     "array<i64: 0, 1>, interior_padding = array<i64: 1, 0>}> : (tensor<4x8xf32>, tensor<f32>) -> "
     "tensor<9x8xf32>",
     ""},
    {"", "%0 = stablehlo.iota dim = 1 : tensor<4x8xui32>",
     "%0 = \"stablehlo.iota\"() <{iota_dimension = 1 : i64}> : () -> tensor<4x8xui32>",
     "iota {dim=1} : tensor<4x8xu32>"},
    {"%a: tensor<4x8xf32>, %b: tensor<4x2xf32>",
     "%0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> "
     "tensor<4x10xf32>",
     "%0 = \"stablehlo.concatenate\"(%a, %b) <{dimension = 1 : i64}> : (tensor<4x8xf32>, "
     "tensor<4x2xf32>) -> tensor<4x10xf32>",
     ""},
    {"%a: tensor<4x8xf32>, %z: tensor<f32>",
     "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1] : "
     "(tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>",
     "%0 = \"stablehlo.reduce\"(%a, %z) <{dimensions = array<i64: 1>}> ({\n^bb0(%x: tensor<f32>, "
     "%y: tensor<f32>):\n  %m = \"stablehlo.maximum\"(%y, %x) : (tensor<f32>, tensor<f32>) -> "
     "tensor<f32>\n  \"stablehlo.return\"(%m) : (tensor<f32>) -> ()\n}) : (tensor<4x8xf32>, "
     "tensor<f32>) -> tensor<4xf32>",
     "maximum(%x1, %z) : tensor<4xf32>"},
    {"%a: tensor<8x9x9x3xf32>, %b: tensor<3x3x3x6xf32>",
     "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window "
     "= {stride = [2, 2], pad = [[0, 1], [1, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], "
     "reverse = "
     "[false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
     "precision_config = "
     "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x9x9x3xf32>, "
     "tensor<3x3x3x6xf32>) -> tensor<8x4x4x6xf32>",
     "%0 = \"stablehlo.convolution\"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = "
     "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
     "padding "
     "= dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, window_strides = array<i64: 2, 2>}> : "
     "(tensor<8x9x9x3xf32>, tensor<3x3x3x6xf32>) -> tensor<8x4x4x6xf32>",
     ""},
    {"%a: tensor<4x8xf32>", "%0 = stablehlo.reverse %a, dims = [0] : tensor<4x8xf32>",
     "%0 = \"stablehlo.reverse\"(%a) <{dimensions = array<i64: 0>}> : (tensor<4x8xf32>) -> "
     "tensor<4x8xf32>",
     "reverse(%a) {dims=[0]} : tensor<4x8xf32>"},
    {"%p: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xf32>",
     "%0 = stablehlo.select %p, %a, %b : tensor<4xi1>, tensor<4xf32>",
     "%0 = \"stablehlo.select\"(%p, %a, %b) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> "
     "tensor<4xf32>",
     "select(%p, %a, %b) : tensor<4xf32>"},
    {"%a: tensor<4x8xf32>, %i: tensor<i32>",
     "%0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, "
     "tensor<i32>) -> tensor<1x8xf32>",
     "%0 = \"stablehlo.dynamic_slice\"(%a, %i, %i) <{slice_sizes = array<i64: 1, 8>}> : "
     "(tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
     ""},
    {"%a: tensor<4xui32>", "%0 = stablehlo.bitcast_convert %a : (tensor<4xui32>) -> tensor<4xf32>",
     "%0 = \"stablehlo.bitcast_convert\"(%a) : (tensor<4xui32>) -> tensor<4xf32>",
     "bitcast_convert(%a) : tensor<4xf32>"},
    {"%a: tensor<4xf32>", "%0 = chlo.erf_inv %a : tensor<4xf32> -> tensor<4xf32>",
     "%0 = \"chlo.erf_inv\"(%a) : (tensor<4xf32>) -> tensor<4xf32>", "erf_inv(%a) : tensor<4xf32>"},
    {"%a: tensor<4x9xf32>",
     "%v, %i = chlo.top_k(%a, k = 3) : tensor<4x9xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)",
     "%0:2 = \"chlo.top_k\"(%a) <{k = 3 : i64}> : (tensor<4x9xf32>) -> (tensor<4x3xf32>, "
     "tensor<4x3xi32>)",
     ""},
};

}  // namespace modules
