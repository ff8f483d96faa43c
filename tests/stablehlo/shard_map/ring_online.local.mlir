module @jit_online_ring attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<32x16xf32>) -> (tensor<32x16xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{"R"}, {}]>] manual_axes={"R"} (%arg3: tensor<4x16xf32>, %arg4: tensor<4x16xf32>, %arg5: tensor<4x16xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x16xf32>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
      %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %4:7 = stablehlo.while(%iterArg = %arg3, %iterArg_2 = %c, %iterArg_3 = %1, %iterArg_4 = %2, %iterArg_5 = %3, %iterArg_6 = %arg4, %iterArg_7 = %arg5) : tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>
      cond {
        %c_8 = stablehlo.constant dense<8> : tensor<i32>
        %7 = stablehlo.compare LT, %iterArg_2, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %7 : tensor<i1>
      } do {
        %7:5 = func.call @closed_call(%iterArg, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7) : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
        %c_8 = stablehlo.constant dense<1> : tensor<i32>
        %8 = stablehlo.add %iterArg_2, %c_8 : tensor<i32>
        stablehlo.return %iterArg, %8, %7#0, %7#1, %7#2, %7#3, %7#4 : tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>
      }
      %5 = stablehlo.broadcast_in_dim %4#3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x16xf32>
      %6 = stablehlo.divide %4#2, %5 : tensor<4x16xf32>
      sdy.return %6 : tensor<4x16xf32>
    } : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
    return %0 : tensor<32x16xf32>
  }
  func.func private @closed_call(%arg0: tensor<4x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<4x1xf32>, %arg3: tensor<4x1xf32>, %arg4: tensor<4x16xf32>, %arg5: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
    %0 = stablehlo.transpose %arg4, dims = [1, 0] : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %4 = stablehlo.convert %arg3 : tensor<4x1xf32>
    %5 = stablehlo.maximum %4, %3 : tensor<4x1xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x4xf32>
    %7 = stablehlo.subtract %1, %6 : tensor<4x4xf32>
    %8 = stablehlo.exponential %7 : tensor<4x4xf32>
    %9 = stablehlo.convert %arg3 : tensor<4x1xf32>
    %10 = stablehlo.subtract %9, %5 : tensor<4x1xf32>
    %11 = stablehlo.exponential %10 : tensor<4x1xf32>
    %12 = "stablehlo.collective_permute"(%arg4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %13 = "stablehlo.collective_permute"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %14 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x16xf32>
    %15 = stablehlo.multiply %arg1, %14 : tensor<4x16xf32>
    %16 = stablehlo.dot_general %8, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %17 = stablehlo.add %15, %16 : tensor<4x16xf32>
    %18 = stablehlo.convert %arg2 : tensor<4x1xf32>
    %19 = stablehlo.multiply %18, %11 : tensor<4x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.reduce(%8 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %22 = stablehlo.add %19, %21 : tensor<4x1xf32>
    return %17, %22, %5, %12, %13 : tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
}
