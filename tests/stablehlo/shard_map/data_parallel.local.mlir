module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x64xf32>, %arg1: tensor<32x64xf32>, %arg2: tensor<16x32xf32>, %arg3: tensor<16x64xf32>) -> (tensor<32x64xf32> {jax.result_info = "result[0]"}, tensor<32x64xf32> {jax.result_info = "result[1]"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, []>] manual_axes={"R"} (%arg4: tensor<32x64xf32>, %arg5: tensor<32x64xf32>, %arg6: tensor<2x32xf32>, %arg7: tensor<2x64xf32>) {
      %1 = stablehlo.dot_general %arg6, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x32xf32>, tensor<32x64xf32>) -> tensor<2x64xf32>
      %2 = stablehlo.tanh %1 : tensor<2x64xf32>
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
      %4 = stablehlo.subtract %3, %2 : tensor<2x64xf32>
      %5 = stablehlo.subtract %2, %arg7 : tensor<2x64xf32>
      %6 = stablehlo.multiply %5, %5 : tensor<2x64xf32>
      %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
      %8 = stablehlo.multiply %7, %5 : tensor<2x64xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %9 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x64xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
      %10 = stablehlo.divide %9, %cst_2 : tensor<f32>
      %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_4 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
      %11 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
      %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<2x64xf32>
      %13 = stablehlo.multiply %12, %8 : tensor<2x64xf32>
      %14 = stablehlo.multiply %13, %4 : tensor<2x64xf32>
      %15 = stablehlo.multiply %14, %2 : tensor<2x64xf32>
      %16 = stablehlo.add %14, %15 : tensor<2x64xf32>
      %17 = stablehlo.dot_general %16, %arg6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x64xf32>, tensor<2x32xf32>) -> tensor<64x32xf32>
      %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
      %cst_5 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %19 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
      %20 = stablehlo.multiply %19, %arg5 : tensor<32x64xf32>
      %21 = "stablehlo.all_reduce"(%18) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %30 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %30 : tensor<f32>
      }) : (tensor<32x64xf32>) -> tensor<32x64xf32>
      %cst_6 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %22 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
      %23 = stablehlo.divide %21, %22 : tensor<32x64xf32>
      %24 = stablehlo.add %20, %23 : tensor<32x64xf32>
      %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %25 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
      %26 = stablehlo.multiply %25, %24 : tensor<32x64xf32>
      %27 = stablehlo.subtract %arg4, %26 : tensor<32x64xf32>
      %28 = "stablehlo.all_reduce"(%10) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %30 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %30 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_8 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %29 = stablehlo.divide %28, %cst_8 : tensor<f32>
      sdy.return %27, %24, %29 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<f32>
    } : (tensor<32x64xf32>, tensor<32x64xf32>, tensor<16x32xf32>, tensor<16x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<f32>)
    return %0#0, %0#1, %0#2 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<f32>
  }
}
