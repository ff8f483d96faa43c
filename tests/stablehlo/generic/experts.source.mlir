"builtin.module"() <{sym_name = "jit_experts"}> ({
  "func.func"() <{function_type = (tensor<64x4x8xf32>, tensor<8x8x16xf32>) -> tensor<64x4x16xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<64x4x8xf32>, %arg1: tensor<8x8x16xf32>):
    %0 = "stablehlo.reshape"(%arg0) : (tensor<64x4x8xf32>) -> tensor<8x8x4x8xf32>
    %1 = "stablehlo.dot_general"(%arg1, %0) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x8x16xf32>, tensor<8x8x4x8xf32>) -> tensor<8x16x8x4xf32>
    %2 = "stablehlo.transpose"(%1) <{permutation = array<i64: 2, 0, 3, 1>}> : (tensor<8x16x8x4xf32>) -> tensor<8x8x4x16xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<8x8x4x16xf32>) -> tensor<64x4x16xf32>
    "func.return"(%3) : (tensor<64x4x16xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
