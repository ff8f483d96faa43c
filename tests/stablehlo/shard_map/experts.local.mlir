module @jit_local_experts attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<64x4x8xf32>, %arg1: tensor<8x8x16xf32>) -> (tensor<64x4x16xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"R"}, {}, {}]>, <@mesh, [{"R"}, {}, {}]>] out_shardings=[<@mesh, [{"R"}, {}, {}]>] manual_axes={"R"} (%arg2: tensor<8x4x8xf32>, %arg3: tensor<1x8x16xf32>) {
      %1 = "stablehlo.all_to_all"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 0 : i64}> : (tensor<8x4x8xf32>) -> tensor<8x4x8xf32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.reduce(%arg3 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<1x8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
      %3 = stablehlo.dot_general %1, %2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x4x8xf32>, tensor<8x16xf32>) -> tensor<8x4x16xf32>
      %4 = "stablehlo.all_to_all"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 0 : i64}> : (tensor<8x4x16xf32>) -> tensor<8x4x16xf32>
      sdy.return %4 : tensor<8x4x16xf32>
    } : (tensor<64x4x8xf32>, tensor<8x8x16xf32>) -> tensor<64x4x16xf32>
    return %0 : tensor<64x4x16xf32>
  }
}
