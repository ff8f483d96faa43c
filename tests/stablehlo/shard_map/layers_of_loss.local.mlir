module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<3x8x8xf32>, %arg1: tensor<16x8xf32>) -> (tensor<3x8x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"R"} (%arg2: tensor<3x8x8xf32>, %arg3: tensor<2x8xf32>) {
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x2x8xf32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x2x8xf32>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x2x8xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %5:8 = stablehlo.while(%iterArg = %arg2, %iterArg_10 = %cst, %iterArg_11 = %c, %iterArg_12 = %arg3, %iterArg_13 = %1, %iterArg_14 = %2, %iterArg_15 = %3, %iterArg_16 = %4) : tensor<3x8x8xf32>, tensor<f32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>
      cond {
        %c_17 = stablehlo.constant dense<3> : tensor<i32>
        %14 = stablehlo.compare LT, %iterArg_11, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %14 : tensor<i1>
      } do {
        %14 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_11) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %15:5 = func.call @closed_call(%iterArg_10, %iterArg_12, %14) : (tensor<f32>, tensor<2x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
        %16 = func.call @dynamic_update_index_in_dim(%iterArg_13, %15#1, %iterArg_11) : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
        %17 = func.call @dynamic_update_index_in_dim_0(%iterArg_14, %15#2, %iterArg_11) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %18 = func.call @dynamic_update_index_in_dim_0(%iterArg_15, %15#3, %iterArg_11) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %19 = func.call @dynamic_update_index_in_dim_0(%iterArg_16, %15#4, %iterArg_11) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %c_17 = stablehlo.constant dense<1> : tensor<i32>
        %20 = stablehlo.add %iterArg_11, %c_17 : tensor<i32>
        stablehlo.return %iterArg, %iterArg_10, %20, %15#0, %16, %17, %18, %19 : tensor<3x8x8xf32>, tensor<f32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>
      }
      %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %7 = stablehlo.multiply %6, %5#3 : tensor<2x8xf32>
      %cst_5 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_7 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %8 = stablehlo.divide %cst_6, %cst_7 : tensor<f32>
      %9 = stablehlo.divide %8, %cst_5 : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %11 = stablehlo.multiply %10, %7 : tensor<2x8xf32>
      %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %12 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
      %c_9 = stablehlo.constant dense<0> : tensor<i32>
      %13:7 = stablehlo.while(%iterArg = %5#4, %iterArg_10 = %5#5, %iterArg_11 = %5#6, %iterArg_12 = %5#7, %iterArg_13 = %c_9, %iterArg_14 = %11, %iterArg_15 = %12) : tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>
      cond {
        %c_16 = stablehlo.constant dense<3> : tensor<i32>
        %14 = stablehlo.compare LT, %iterArg_13, %c_16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %14 : tensor<i1>
      } do {
        %c_16 = stablehlo.constant dense<3> : tensor<i32>
        %14 = stablehlo.subtract %c_16, %iterArg_13 : tensor<i32>
        %c_17 = stablehlo.constant dense<1> : tensor<i32>
        %15 = stablehlo.subtract %14, %c_17 : tensor<i32>
        %16 = func.call @dynamic_index_in_dim_1(%iterArg, %15) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %17 = func.call @dynamic_index_in_dim_2(%iterArg_10, %15) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %18 = func.call @dynamic_index_in_dim_2(%iterArg_11, %15) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %19 = func.call @dynamic_index_in_dim_2(%iterArg_12, %15) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %20:2 = func.call @closed_call_3(%iterArg_14, %16, %17, %18, %19) : (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>)
        %21 = func.call @dynamic_update_index_in_dim_4(%iterArg_15, %20#1, %15) : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
        %c_18 = stablehlo.constant dense<1> : tensor<i32>
        %22 = stablehlo.add %iterArg_13, %c_18 : tensor<i32>
        stablehlo.return %iterArg, %iterArg_10, %iterArg_11, %iterArg_12, %22, %20#0, %21 : tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>
      }
      sdy.return %13#6 : tensor<3x8x8xf32>
    } : (tensor<3x8x8xf32>, tensor<16x8xf32>) -> tensor<3x8x8xf32>
    return %0 : tensor<3x8x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x8x8xf32>, %arg1: tensor<i32>) -> tensor<8x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 8] : (tensor<3x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
  func.func private @closed_call(%arg0: tensor<f32>, %arg1: tensor<2x8xf32>, %arg2: tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
    %0 = stablehlo.dot_general %arg1, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %1 = stablehlo.tanh %0 : tensor<2x8xf32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<2x8xf32>
    %4 = stablehlo.add %arg1, %1 : tensor<2x8xf32>
    return %4, %arg2, %arg1, %1, %3 : tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>) -> tensor<3x8x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x8xf32>
    return %1 : tensor<3x8x8xf32>
  }
  func.func private @dynamic_update_index_in_dim_0(%arg0: tensor<3x2x8xf32>, %arg1: tensor<2x8xf32>, %arg2: tensor<i32>) -> tensor<3x2x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<2x8xf32>) -> tensor<1x2x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x2x8xf32>, tensor<1x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x8xf32>
    return %1 : tensor<3x2x8xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<3x8x8xf32>, %arg1: tensor<i32>) -> tensor<8x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 8] : (tensor<3x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<3x2x8xf32>, %arg1: tensor<i32>) -> tensor<2x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 2, 8] : (tensor<3x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x8xf32>) -> tensor<2x8xf32>
    return %1 : tensor<2x8xf32>
  }
  func.func private @closed_call_3(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<2x8xf32>, %arg3: tensor<2x8xf32>, %arg4: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.multiply %arg0, %arg4 : tensor<2x8xf32>
    %1 = stablehlo.multiply %0, %arg3 : tensor<2x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x8xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<2x8xf32>
    %7 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %8 = stablehlo.add %arg5, %arg6 : tensor<f32>
      stablehlo.return %8 : tensor<f32>
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %6, %7 : tensor<2x8xf32>, tensor<8x8xf32>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<3x8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>) -> tensor<3x8x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x8xf32>
    return %1 : tensor<3x8x8xf32>
  }
}
