module @jit_ulysses attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<16x8x4xf32>, %arg1: tensor<16x8x4xf32>, %arg2: tensor<16x8x4xf32>) -> (tensor<16x8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"R"}, {}, {}]>, <@mesh, [{"R"}, {}, {}]>, <@mesh, [{"R"}, {}, {}]>] out_shardings=[<@mesh, [{"R"}, {}, {}]>] manual_axes={"R"} (%arg3: tensor<2x8x4xf32>, %arg4: tensor<2x8x4xf32>, %arg5: tensor<2x8x4xf32>) {
      %1 = "stablehlo.all_to_all"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 1 : i64}> : (tensor<2x8x4xf32>) -> tensor<16x1x4xf32>
      %2 = "stablehlo.all_to_all"(%arg4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 1 : i64}> : (tensor<2x8x4xf32>) -> tensor<16x1x4xf32>
      %3 = "stablehlo.all_to_all"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 1 : i64}> : (tensor<2x8x4xf32>) -> tensor<16x1x4xf32>
      %4 = stablehlo.dot_general %1, %2, batching_dims = [1] x [1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x1x4xf32>, tensor<16x1x4xf32>) -> tensor<1x16x16xf32>
      %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<1x16x16xf32>, tensor<f32>) -> tensor<1x16xf32>
      %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
      %7 = stablehlo.maximum %6, %5 : tensor<1x16xf32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<1x16x1xf32>
      %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x16x1xf32>) -> tensor<1x16x16xf32>
      %10 = stablehlo.subtract %4, %9 : tensor<1x16x16xf32>
      %11 = stablehlo.exponential %10 : tensor<1x16x16xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %12 = stablehlo.reduce(%11 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<1x16x16xf32>, tensor<f32>) -> tensor<1x16xf32>
      %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<1x16x1xf32>
      %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2] : (tensor<1x16x1xf32>) -> tensor<1x16x16xf32>
      %15 = stablehlo.divide %11, %14 : tensor<1x16x16xf32>
      %16 = stablehlo.dot_general %3, %15, batching_dims = [1] x [0], contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x1x4xf32>, tensor<1x16x16xf32>) -> tensor<1x4x16xf32>
      %17 = stablehlo.transpose %16, dims = [2, 0, 1] : (tensor<1x4x16xf32>) -> tensor<16x1x4xf32>
      %18 = "stablehlo.all_to_all"(%17) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, split_count = 8 : i64, split_dimension = 0 : i64}> : (tensor<16x1x4xf32>) -> tensor<2x8x4xf32>
      sdy.return %18 : tensor<2x8x4xf32>
    } : (tensor<16x8x4xf32>, tensor<16x8x4xf32>, tensor<16x8x4xf32>) -> tensor<16x8x4xf32>
    return %0 : tensor<16x8x4xf32>
  }
}
