module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<32x16xf32>) -> (tensor<32x16xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{"R"}, {}]>] manual_axes={"R"} (%arg3: tensor<4x16xf32>, %arg4: tensor<4x16xf32>, %arg5: tensor<4x16xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3:6 = stablehlo.while(%iterArg = %arg3, %iterArg_1 = %c, %iterArg_2 = %2, %iterArg_3 = %1, %iterArg_4 = %arg4, %iterArg_5 = %arg5) : tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>
      cond {
        %c_6 = stablehlo.constant dense<8> : tensor<i32>
        %6 = stablehlo.compare LT, %iterArg_1, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %6 : tensor<i1>
      } do {
        %6:4 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5) : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
        %c_6 = stablehlo.constant dense<1> : tensor<i32>
        %7 = stablehlo.add %iterArg_1, %c_6 : tensor<i32>
        stablehlo.return %iterArg, %7, %6#0, %6#1, %6#2, %6#3 : tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>
      }
      %4 = stablehlo.broadcast_in_dim %3#3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x16xf32>
      %5 = stablehlo.divide %3#2, %4 : tensor<4x16xf32>
      sdy.return %5 : tensor<4x16xf32>
    } : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
    return %0 : tensor<32x16xf32>
  }
  func.func private @closed_call(%arg0: tensor<4x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<4x1xf32>, %arg3: tensor<4x16xf32>, %arg4: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
    %0 = stablehlo.transpose %arg3, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.exponential %1 : tensor<4x4xf32>
    %3 = "stablehlo.collective_permute"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %4 = "stablehlo.collective_permute"(%arg4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %5 = stablehlo.dot_general %2, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %6 = stablehlo.add %arg1, %5 : tensor<4x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %9 = stablehlo.add %arg2, %8 : tensor<4x1xf32>
    return %6, %9, %3, %4 : tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
}
