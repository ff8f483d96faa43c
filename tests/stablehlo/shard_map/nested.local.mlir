module @jit_nested attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["B"=4, "M"=2]> {stablehlo.mesh = {axes = [{name = "B", size = 4 : i64}, {name = "M", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x8xf32>, %arg1: tensor<8x4xf32>) -> (tensor<16x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"B", ?}, {?}]>, <@mesh, [{?}, {?}]>] out_shardings=[<@mesh, [{"B", ?}, {?}]>] manual_axes={"B"} (%arg2: tensor<4x8xf32>, %arg3: tensor<8x4xf32>) {
      %1 = sdy.manual_computation(%arg2, %arg3) in_shardings=[<@mesh, [{?}, {"M", ?}]>, <@mesh, [{"M", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"M"} (%arg4: tensor<4x4xf32>, %arg5: tensor<4x4xf32>) {
        %4 = stablehlo.dot_general %arg4, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
        %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
          %6 = stablehlo.add %arg6, %arg7 : tensor<f32>
          stablehlo.return %6 : tensor<f32>
        }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
        sdy.return %5 : tensor<4x4xf32>
      } : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
      %2 = stablehlo.tanh %1 : tensor<4x4xf32>
      %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}]> : tensor<4x4xf32>
      sdy.return %3 : tensor<4x4xf32>
    } : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    return %0 : tensor<16x4xf32>
  }
}
