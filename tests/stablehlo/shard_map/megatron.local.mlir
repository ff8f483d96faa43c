module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["B"=4, "M"=2]> {stablehlo.mesh = {axes = [{name = "B", size = 4 : i64}, {name = "M", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<32x64xf32>, %arg1: tensor<64x32xf32>, %arg2: tensor<16x32xf32>, %arg3: tensor<16x32xf32>) -> (tensor<32x64xf32> {jax.result_info = "result[0]['w1']"}, tensor<64x32xf32> {jax.result_info = "result[0]['w2']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}, {"M"}]>, <@mesh, [{"M"}, {}]>, <@mesh, [{"B"}, {}]>, <@mesh, [{"B"}, {}]>] out_shardings=[<@mesh, [{}, {"M"}]>, <@mesh, [{"M"}, {}]>, <@mesh, []>] manual_axes={"B", "M"} (%arg4: tensor<32x32xf32>, %arg5: tensor<32x32xf32>, %arg6: tensor<4x32xf32>, %arg7: tensor<4x32xf32>) {
      %1 = stablehlo.dot_general %arg6, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
      %2 = stablehlo.multiply %1, %1 : tensor<4x32xf32>
      %3 = stablehlo.multiply %2, %1 : tensor<4x32xf32>
      %4 = stablehlo.multiply %1, %1 : tensor<4x32xf32>
      %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %6 = stablehlo.multiply %5, %4 : tensor<4x32xf32>
      %cst_0 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %7 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %8 = stablehlo.multiply %7, %3 : tensor<4x32xf32>
      %9 = stablehlo.add %1, %8 : tensor<4x32xf32>
      %cst_1 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %11 = stablehlo.multiply %10, %9 : tensor<4x32xf32>
      %12 = stablehlo.tanh %11 : tensor<4x32xf32>
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %14 = stablehlo.subtract %13, %12 : tensor<4x32xf32>
      %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %16 = stablehlo.add %15, %12 : tensor<4x32xf32>
      %cst_4 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %18 = stablehlo.multiply %17, %16 : tensor<4x32xf32>
      %19 = stablehlo.multiply %1, %18 : tensor<4x32xf32>
      %20 = stablehlo.dot_general %19, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
      %21 = "stablehlo.all_reduce"(%20) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %61 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %61 : tensor<f32>
      }) : (tensor<4x32xf32>) -> tensor<4x32xf32>
      %22 = stablehlo.subtract %21, %arg7 : tensor<4x32xf32>
      %23 = stablehlo.multiply %22, %22 : tensor<4x32xf32>
      %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %24 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %25 = stablehlo.multiply %24, %22 : tensor<4x32xf32>
      %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %26 = stablehlo.reduce(%23 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x32xf32>, tensor<f32>) -> tensor<f32>
      %cst_7 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
      %27 = stablehlo.divide %26, %cst_7 : tensor<f32>
      %28 = "stablehlo.all_reduce"(%27) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %61 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %61 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_8 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %29 = stablehlo.divide %28, %cst_8 : tensor<f32>
      %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_10 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %30 = stablehlo.divide %cst_9, %cst_10 : tensor<f32>
      %31 = stablehlo.divide %30, %cst_7 : tensor<f32>
      %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %33 = stablehlo.multiply %32, %25 : tensor<4x32xf32>
      %34 = stablehlo.dot_general %33, %19, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<32x32xf32>
      %35 = stablehlo.transpose %34, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %36 = stablehlo.dot_general %33, %arg5, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
      %37 = "stablehlo.all_reduce"(%35) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %61 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %61 : tensor<f32>
      }) : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %38 = stablehlo.multiply %1, %36 : tensor<4x32xf32>
      %39 = stablehlo.multiply %36, %18 : tensor<4x32xf32>
      %40 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %41 = stablehlo.multiply %40, %38 : tensor<4x32xf32>
      %42 = stablehlo.multiply %41, %14 : tensor<4x32xf32>
      %43 = stablehlo.multiply %42, %12 : tensor<4x32xf32>
      %44 = stablehlo.add %42, %43 : tensor<4x32xf32>
      %45 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %46 = stablehlo.multiply %45, %44 : tensor<4x32xf32>
      %47 = stablehlo.add %39, %46 : tensor<4x32xf32>
      %48 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x32xf32>
      %49 = stablehlo.multiply %48, %46 : tensor<4x32xf32>
      %50 = stablehlo.multiply %49, %6 : tensor<4x32xf32>
      %51 = stablehlo.add %47, %50 : tensor<4x32xf32>
      %52 = stablehlo.dot_general %51, %arg6, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<32x32xf32>
      %53 = stablehlo.transpose %52, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %54 = "stablehlo.all_reduce"(%53) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %61 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %61 : tensor<f32>
      }) : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %55 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
      %56 = stablehlo.multiply %55, %54 : tensor<32x32xf32>
      %57 = stablehlo.subtract %arg4, %56 : tensor<32x32xf32>
      %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %58 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<32x32xf32>
      %59 = stablehlo.multiply %58, %37 : tensor<32x32xf32>
      %60 = stablehlo.subtract %arg5, %59 : tensor<32x32xf32>
      sdy.return %57, %60, %29 : tensor<32x32xf32>, tensor<32x32xf32>, tensor<f32>
    } : (tensor<32x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<32x64xf32>, tensor<64x32xf32>, tensor<f32>)
    return %0#0, %0#1, %0#2 : tensor<32x64xf32>, tensor<64x32xf32>, tensor<f32>
  }
}
