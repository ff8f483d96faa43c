module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<3x8x8xf32>, %arg1: tensor<16x8xf32>) -> (tensor<3x8x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{}, {}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"R"} (%arg2: tensor<3x8x8xf32>, %arg3: tensor<2x8xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x2x8xf32>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x2x8xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x2x8xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %4:6 = stablehlo.while(%iterArg = %arg2, %iterArg_8 = %c, %iterArg_9 = %arg3, %iterArg_10 = %1, %iterArg_11 = %2, %iterArg_12 = %3) : tensor<3x8x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>
      cond {
        %c_13 = stablehlo.constant dense<3> : tensor<i32>
        %15 = stablehlo.compare LT, %iterArg_8, %c_13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %15 : tensor<i1>
      } do {
        %15 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_8) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %16:4 = func.call @closed_call(%iterArg_9, %15) : (tensor<2x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
        %17 = func.call @dynamic_update_index_in_dim(%iterArg_10, %16#1, %iterArg_8) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %18 = func.call @dynamic_update_index_in_dim(%iterArg_11, %16#2, %iterArg_8) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %19 = func.call @dynamic_update_index_in_dim(%iterArg_12, %16#3, %iterArg_8) : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %c_13 = stablehlo.constant dense<1> : tensor<i32>
        %20 = stablehlo.add %iterArg_8, %c_13 : tensor<i32>
        stablehlo.return %iterArg, %20, %16#0, %17, %18, %19 : tensor<3x8x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>
      }
      %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %6 = stablehlo.multiply %5, %4#2 : tensor<2x8xf32>
      %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_4 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %7 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %9 = stablehlo.multiply %8, %6 : tensor<2x8xf32>
      %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
      %c_6 = stablehlo.constant dense<0> : tensor<i32>
      %11:7 = stablehlo.while(%iterArg = %arg2, %iterArg_8 = %4#3, %iterArg_9 = %4#4, %iterArg_10 = %4#5, %iterArg_11 = %c_6, %iterArg_12 = %9, %iterArg_13 = %10) : tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>
      cond {
        %c_14 = stablehlo.constant dense<3> : tensor<i32>
        %15 = stablehlo.compare LT, %iterArg_11, %c_14, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %15 : tensor<i1>
      } do {
        %c_14 = stablehlo.constant dense<3> : tensor<i32>
        %15 = stablehlo.subtract %c_14, %iterArg_11 : tensor<i32>
        %c_15 = stablehlo.constant dense<1> : tensor<i32>
        %16 = stablehlo.subtract %15, %c_15 : tensor<i32>
        %17 = func.call @dynamic_index_in_dim(%iterArg, %16) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %18 = func.call @dynamic_index_in_dim_0(%iterArg_8, %16) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %19 = func.call @dynamic_index_in_dim_0(%iterArg_9, %16) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %20 = func.call @dynamic_index_in_dim_0(%iterArg_10, %16) : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %21:2 = func.call @closed_call_1(%iterArg_12, %17, %18, %19, %20) : (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>)
        %22 = func.call @dynamic_update_index_in_dim_2(%iterArg_13, %21#1, %16) : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
        %c_16 = stablehlo.constant dense<1> : tensor<i32>
        %23 = stablehlo.add %iterArg_11, %c_16 : tensor<i32>
        stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %iterArg_10, %23, %21#0, %22 : tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>
      }
      %12 = "stablehlo.all_reduce"(%11#6) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %15 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %15 : tensor<f32>
      }) : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
      %cst_7 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
      %14 = stablehlo.divide %12, %13 : tensor<3x8x8xf32>
      sdy.return %14 : tensor<3x8x8xf32>
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
  func.func private @closed_call(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %1 = stablehlo.tanh %0 : tensor<2x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<2x8xf32>
    %4 = stablehlo.add %arg0, %1 : tensor<2x8xf32>
    return %4, %arg0, %1, %3 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x2x8xf32>, %arg1: tensor<2x8xf32>, %arg2: tensor<i32>) -> tensor<3x2x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<2x8xf32>) -> tensor<1x2x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x2x8xf32>, tensor<1x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x8xf32>
    return %1 : tensor<3x2x8xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<3x2x8xf32>, %arg1: tensor<i32>) -> tensor<2x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 2, 8] : (tensor<3x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x8xf32>) -> tensor<2x8xf32>
    return %1 : tensor<2x8xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<2x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<2x8xf32>, %arg3: tensor<2x8xf32>, %arg4: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.multiply %arg0, %arg4 : tensor<2x8xf32>
    %1 = stablehlo.multiply %0, %arg3 : tensor<2x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<2x8xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<2x8xf32>
    return %6, %4 : tensor<2x8xf32>, tensor<8x8xf32>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<3x8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>) -> tensor<3x8x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x8xf32>
    return %1 : tensor<3x8x8xf32>
  }
}
