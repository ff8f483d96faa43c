module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["B"=4, "M"=2]> {stablehlo.mesh = {axes = [{name = "B", size = 4 : i64}, {name = "M", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x32xf32>) -> (tensor<16x32xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"B", ?}, {?}]>] out_shardings=[<@mesh, [{"B", ?}, {?}]>] manual_axes={"B"} (%arg1: tensor<4x32xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x32xf32>, tensor<f32>) -> tensor<32xf32>
      %2 = sdy.sharding_constraint %1 <@mesh, [{?}]> : tensor<32xf32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
      %4 = sdy.sharding_constraint %3 <@mesh, [{?}, {?}]> : tensor<1x32xf32>
      %cst_0 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x32xf32>
      %6 = sdy.sharding_constraint %5 <@mesh, [{?}, {?}]> : tensor<1x32xf32>
      %7 = stablehlo.divide %4, %6 : tensor<1x32xf32>
      %8 = sdy.sharding_constraint %7 <@mesh, [{?}, {?}]> : tensor<1x32xf32>
      %9 = "stablehlo.all_reduce"(%8) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %18 = stablehlo.add %arg2, %arg3 : tensor<f32>
        %19 = sdy.sharding_constraint %18 <@mesh, []> : tensor<f32>
        stablehlo.return %19 : tensor<f32>
      }) : (tensor<1x32xf32>) -> tensor<1x32xf32>
      %cst_1 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x32xf32>
      %11 = sdy.sharding_constraint %10 <@mesh, [{?}, {?}]> : tensor<1x32xf32>
      %12 = stablehlo.divide %9, %11 : tensor<1x32xf32>
      %13 = sdy.sharding_constraint %12 <@mesh, [{?}, {?}]> : tensor<1x32xf32>
      %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<4x32xf32>
      %15 = sdy.sharding_constraint %14 <@mesh, [{?}, {?}]> : tensor<4x32xf32>
      %16 = stablehlo.subtract %arg1, %15 : tensor<4x32xf32>
      %17 = sdy.sharding_constraint %16 <@mesh, [{?}, {?}]> : tensor<4x32xf32>
      sdy.return %17 : tensor<4x32xf32>
    } : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
}
