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
      %5:8 = stablehlo.while(%iterArg = %arg2, %iterArg_9 = %cst, %iterArg_10 = %c, %iterArg_11 = %arg3, %iterArg_12 = %1, %iterArg_13 = %2, %iterArg_14 = %3, %iterArg_15 = %4) : tensor<3x8x8xf32>, tensor<f32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>
      cond {
        %c_16 = stablehlo.constant dense<3> : tensor<i32>
        %13 = stablehlo.compare LT, %iterArg_10, %c_16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %13 : tensor<i1>
      } do {
        %13 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_10) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %14:5 = func.call @closed_call(%iterArg_9, %iterArg_11, %13) : (tensor<f32>, tensor<2x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
        %15 = func.call @dynamic_update_index_in_dim(%iterArg_12, %14#1, %iterArg_10) : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
        %16 = func.call @dynamic_update_index_in_dim_0(%iterArg_13, %14#2, %iterArg_10) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %17 = func.call @dynamic_update_index_in_dim_0(%iterArg_14, %14#3, %iterArg_10) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %18 = func.call @dynamic_update_index_in_dim_0(%iterArg_15, %14#4, %iterArg_10) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %c_16 = stablehlo.constant dense<1> : tensor<i32>
        %19 = stablehlo.add %iterArg_10, %c_16 : tensor<i32>
        stablehlo.return %iterArg, %iterArg_9, %19, %14#0, %15, %16, %17, %18 : tensor<3x8x8xf32>, tensor<f32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>
      }
      %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %7 = stablehlo.multiply %6, %5#3 : tensor<2x8xf32>
      %cst_5 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %8 = stablehlo.divide %cst_6, %cst_5 : tensor<f32>
      %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %10 = stablehlo.multiply %9, %7 : tensor<2x8xf32>
      %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
      %c_8 = stablehlo.constant dense<0> : tensor<i32>
      %12:7 = stablehlo.while(%iterArg = %5#4, %iterArg_9 = %5#5, %iterArg_10 = %5#6, %iterArg_11 = %5#7, %iterArg_12 = %c_8, %iterArg_13 = %10, %iterArg_14 = %11) : tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>
      cond {
        %c_15 = stablehlo.constant dense<3> : tensor<i32>
        %13 = stablehlo.compare LT, %iterArg_12, %c_15, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %13 : tensor<i1>
      } do {
        %c_15 = stablehlo.constant dense<3> : tensor<i32>
        %13 = stablehlo.subtract %c_15, %iterArg_12 : tensor<i32>
        %c_16 = stablehlo.constant dense<1> : tensor<i32>
        %14 = stablehlo.subtract %13, %c_16 : tensor<i32>
        %15 = func.call @dynamic_index_in_dim_1(%iterArg, %14) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %16 = func.call @dynamic_index_in_dim_2(%iterArg_9, %14) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %17 = func.call @dynamic_index_in_dim_2(%iterArg_10, %14) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %18 = func.call @dynamic_index_in_dim_2(%iterArg_11, %14) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %19:2 = func.call @closed_call_3(%iterArg_13, %15, %16, %17, %18) : (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>)
        %20 = func.call @dynamic_update_index_in_dim_4(%iterArg_14, %19#1, %14) : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
        %c_17 = stablehlo.constant dense<1> : tensor<i32>
        %21 = stablehlo.add %iterArg_12, %c_17 : tensor<i32>
        stablehlo.return %iterArg, %iterArg_9, %iterArg_10, %iterArg_11, %21, %19#0, %20 : tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>
      }
      sdy.return %12#6 : tensor<3x8x8xf32>
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
