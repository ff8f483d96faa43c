module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x8xf32>) -> (tensor<32x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{"R"}, {}]>] manual_axes={"R"} (%arg1: tensor<4x8xf32>) {
      %1 = stablehlo.is_finite %arg1 : (tensor<4x8xf32>) -> tensor<4x8xi1>
      %c = stablehlo.constant dense<true> : tensor<i1>
      %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.and across dimensions = [0, 1] : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
      %3 = stablehlo.convert %2 : (tensor<i1>) -> tensor<i32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>):
        %7 = stablehlo.maximum %arg2, %arg3 : tensor<i32>
        stablehlo.return %7 : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %5 = stablehlo.compare GT, %4, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = func.call @_where(%5, %arg1, %cst) : (tensor<i1>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
      sdy.return %6 : tensor<4x8xf32>
    } : (tensor<32x8xf32>) -> tensor<32x8xf32>
    return %0 : tensor<32x8xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<4x8xf32>, %arg2: tensor<f32>) -> tensor<4x8xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
