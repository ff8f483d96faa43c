module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["B"=4, "M"=2]> {stablehlo.mesh = {axes = [{name = "B", size = 4 : i64}, {name = "M", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<32x64xf32>, %arg1: tensor<16x32xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<32x64xf32> {jax.result_info = "result[1]"}) {
    %0:7 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {"M"}]>, <@mesh, [{"B"}, {}]>] out_shardings=[<@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}]>, <@mesh, [{}]>, <@mesh, []>] manual_axes={"B", "M"} (%arg2: tensor<32x32xf32>, %arg3: tensor<4x32xf32>) {
      %2 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
      %3 = stablehlo.tanh %2 : tensor<4x32xf32>
      %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %5 = stablehlo.subtract %4, %3 : tensor<4x32xf32>
      %6 = stablehlo.multiply %3, %3 : tensor<4x32xf32>
      %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %8 = stablehlo.multiply %7, %3 : tensor<4x32xf32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %9 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x32xf32>, tensor<f32>) -> tensor<f32>
      %cst_3 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
      %10 = stablehlo.divide %9, %cst_3 : tensor<f32>
      %11 = "stablehlo.all_reduce"(%10) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %15 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %15 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %12 = stablehlo.divide %11, %cst_4 : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1xf32>
      %cst_5 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %14 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1xf32>
      sdy.return %arg3, %3, %5, %8, %13, %14, %12 : tensor<4x32xf32>, tensor<4x32xf32>, tensor<4x32xf32>, tensor<4x32xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>
    } : (tensor<32x64xf32>, tensor<16x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<8xf32>, tensor<1xf32>, tensor<f32>)
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = sdy.manual_computation(%cst, %0#0, %0#1, %0#2, %0#3, %0#4, %0#5) in_shardings=[<@mesh, []>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}, {}]>, <@mesh, [{"B", "M"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, [{}, {"M"}]>] manual_axes={"B", "M"} (%arg2: tensor<f32>, %arg3: tensor<4x32xf32>, %arg4: tensor<4x32xf32>, %arg5: tensor<4x32xf32>, %arg6: tensor<4x32xf32>, %arg7: tensor<1xf32>, %arg8: tensor<1xf32>) {
      %2 = stablehlo.reshape %arg7 : (tensor<1xf32>) -> tensor<f32>
      %3 = stablehlo.reshape %arg8 : (tensor<1xf32>) -> tensor<f32>
      %4 = stablehlo.divide %arg2, %3 : tensor<f32>
      %5 = stablehlo.divide %4, %2 : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %7 = stablehlo.multiply %6, %arg6 : tensor<4x32xf32>
      %8 = stablehlo.multiply %7, %arg5 : tensor<4x32xf32>
      %9 = stablehlo.multiply %8, %arg4 : tensor<4x32xf32>
      %10 = stablehlo.add %8, %9 : tensor<4x32xf32>
      %11 = stablehlo.dot_general %10, %arg3, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<32x32xf32>
      %12 = stablehlo.transpose %11, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %13 = "stablehlo.all_reduce"(%12) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg9: tensor<f32>, %arg10: tensor<f32>):
        %14 = stablehlo.add %arg9, %arg10 : tensor<f32>
        stablehlo.return %14 : tensor<f32>
      }) : (tensor<32x32xf32>) -> tensor<32x32xf32>
      sdy.return %13 : tensor<32x32xf32>
    } : (tensor<f32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<8xf32>, tensor<1xf32>) -> tensor<32x64xf32>
    return %0#6, %1 : tensor<f32>, tensor<32x64xf32>
  }
}
