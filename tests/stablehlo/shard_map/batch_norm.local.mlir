module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x8xf32>, %arg1: tensor<8xf32>) -> (tensor<32x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"R"}, {}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{"R"}, {}]>] manual_axes={"R"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.reduce(%arg2 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %cst_0 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %3 = stablehlo.divide %1, %2 : tensor<8xf32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %29 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %29 : tensor<f32>
      }) : (tensor<8xf32>) -> tensor<8xf32>
      %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %6 = stablehlo.divide %4, %5 : tensor<8xf32>
      %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %9 = stablehlo.subtract %arg2, %8 : tensor<4x8xf32>
      %10 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
      %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %12 = stablehlo.subtract %arg2, %11 : tensor<4x8xf32>
      %13 = stablehlo.multiply %12, %12 : tensor<4x8xf32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %14 = stablehlo.reduce(%13 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %cst_3 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %16 = stablehlo.divide %14, %15 : tensor<8xf32>
      %17 = "stablehlo.all_reduce"(%16) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %29 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %29 : tensor<f32>
      }) : (tensor<8xf32>) -> tensor<8xf32>
      %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %19 = stablehlo.divide %17, %18 : tensor<8xf32>
      %cst_5 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
      %20 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %21 = stablehlo.add %19, %20 : tensor<8xf32>
      %22 = stablehlo.rsqrt %21 : tensor<8xf32>
      %23 = stablehlo.broadcast_in_dim %22, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
      %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %25 = stablehlo.multiply %9, %24 : tensor<4x8xf32>
      %26 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
      %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %28 = stablehlo.multiply %25, %27 : tensor<4x8xf32>
      sdy.return %28 : tensor<4x8xf32>
    } : (tensor<32x8xf32>, tensor<8xf32>) -> tensor<32x8xf32>
    return %0 : tensor<32x8xf32>
  }
}
