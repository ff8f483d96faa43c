module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x64xf32>, %arg1: tensor<32x64xf32>, %arg2: tensor<16x32xf32>, %arg3: tensor<16x64xf32>) -> (tensor<32x64xf32> {jax.result_info = "result[0]"}, tensor<32x64xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, []>] manual_axes={"R"} (%arg4: tensor<4x64xf32>, %arg5: tensor<4x64xf32>, %arg6: tensor<2x32xf32>, %arg7: tensor<2x64xf32>) {
      %1 = "stablehlo.all_gather"(%arg4) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> : (tensor<4x64xf32>) -> tensor<32x64xf32>
      %2 = stablehlo.dot_general %arg6, %1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
      %3 = stablehlo.tanh %2 : tensor<2x64xf32>
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
      %5 = stablehlo.subtract %4, %3 : tensor<2x64xf32>
      %6 = stablehlo.subtract %3, %arg7 : tensor<2x64xf32>
      %7 = stablehlo.multiply %6, %6 : tensor<2x64xf32>
      %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
      %9 = stablehlo.multiply %8, %6 : tensor<2x64xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %10 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
      %11 = stablehlo.divide %10, %cst_2 : tensor<f32>
      %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_4 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
      %12 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
      %14 = stablehlo.multiply %13, %9 : tensor<2x64xf32>
      %15 = stablehlo.multiply %14, %5 : tensor<2x64xf32>
      %16 = stablehlo.multiply %15, %3 : tensor<2x64xf32>
      %17 = stablehlo.add %15, %16 : tensor<2x64xf32>
      %18 = stablehlo.dot_general %17, %arg6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x64xf32>, tensor<2x32xf32>) -> tensor<64x32xf32>
      %19 = stablehlo.transpose %18, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
      %cst_5 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %20 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x64xf32>
      %21 = stablehlo.multiply %20, %arg5 : tensor<4x64xf32>
      %22 = "stablehlo.reduce_scatter"(%19) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %31 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %31 : tensor<f32>
      }) : (tensor<32x64xf32>) -> tensor<4x64xf32>
      %cst_6 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %23 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x64xf32>
      %24 = stablehlo.divide %22, %23 : tensor<4x64xf32>
      %25 = stablehlo.add %21, %24 : tensor<4x64xf32>
      %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %26 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x64xf32>
      %27 = stablehlo.multiply %26, %25 : tensor<4x64xf32>
      %28 = stablehlo.subtract %arg4, %27 : tensor<4x64xf32>
      %29 = "stablehlo.all_reduce"(%11) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %31 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %31 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_8 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %30 = stablehlo.divide %29, %cst_8 : tensor<f32>
      sdy.return %28, %25, %30 : tensor<4x64xf32>, tensor<4x64xf32>, tensor<f32>
    } : (tensor<32x64xf32>, tensor<32x64xf32>, tensor<16x32xf32>, tensor<16x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<f32>)
    return %0#0, %0#1, %0#2 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<f32>
  }
}
