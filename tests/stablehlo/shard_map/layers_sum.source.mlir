module @jit_layers_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x8x8xf32>, %arg1: tensor<16x8xf32>) -> (tensor<3x8x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x16x8xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3x16x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x16x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3:6 = stablehlo.while(%iterArg = %arg0, %iterArg_7 = %c, %iterArg_8 = %arg1, %iterArg_9 = %0, %iterArg_10 = %1, %iterArg_11 = %2) : tensor<3x8x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>
    cond {
      %c_12 = stablehlo.constant dense<3> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg_7, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %11 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_7) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
      %12:4 = func.call @closed_call(%iterArg_8, %11) : (tensor<16x8xf32>, tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      %13 = func.call @dynamic_update_index_in_dim(%iterArg_9, %12#1, %iterArg_7) : (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>
      %14 = func.call @dynamic_update_index_in_dim(%iterArg_10, %12#2, %iterArg_7) : (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>
      %15 = func.call @dynamic_update_index_in_dim(%iterArg_11, %12#3, %iterArg_7) : (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>
      %c_12 = stablehlo.constant dense<1> : tensor<i32>
      %16 = stablehlo.add %iterArg_7, %c_12 : tensor<i32>
      stablehlo.return %iterArg, %16, %12#0, %13, %14, %15 : tensor<3x8x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>
    }
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %5 = stablehlo.multiply %4, %3#2 : tensor<16x8xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %6 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %8 = stablehlo.multiply %7, %5 : tensor<16x8xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x8x8xf32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %10:7 = stablehlo.while(%iterArg = %arg0, %iterArg_7 = %3#3, %iterArg_8 = %3#4, %iterArg_9 = %3#5, %iterArg_10 = %c_6, %iterArg_11 = %8, %iterArg_12 = %9) : tensor<3x8x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x8x8xf32>
    cond {
      %c_13 = stablehlo.constant dense<3> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg_10, %c_13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %c_13 = stablehlo.constant dense<3> : tensor<i32>
      %11 = stablehlo.subtract %c_13, %iterArg_10 : tensor<i32>
      %c_14 = stablehlo.constant dense<1> : tensor<i32>
      %12 = stablehlo.subtract %11, %c_14 : tensor<i32>
      %13 = func.call @dynamic_index_in_dim(%iterArg, %12) : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
      %14 = func.call @dynamic_index_in_dim_0(%iterArg_7, %12) : (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>
      %15 = func.call @dynamic_index_in_dim_0(%iterArg_8, %12) : (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>
      %16 = func.call @dynamic_index_in_dim_0(%iterArg_9, %12) : (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>
      %17:2 = func.call @closed_call_1(%iterArg_11, %13, %14, %15, %16) : (tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<8x8xf32>)
      %18 = func.call @dynamic_update_index_in_dim_2(%iterArg_12, %17#1, %12) : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
      %c_15 = stablehlo.constant dense<1> : tensor<i32>
      %19 = stablehlo.add %iterArg_10, %c_15 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_7, %iterArg_8, %iterArg_9, %19, %17#0, %18 : tensor<3x8x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x8x8xf32>
    }
    return %10#6 : tensor<3x8x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x8x8xf32>, %arg1: tensor<i32>) -> tensor<8x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 8] : (tensor<3x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
  func.func private @closed_call(%arg0: tensor<16x8xf32>, %arg1: tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.tanh %0 : tensor<16x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %3 = stablehlo.subtract %2, %1 : tensor<16x8xf32>
    %4 = stablehlo.add %arg0, %1 : tensor<16x8xf32>
    return %4, %arg0, %1, %3 : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x16x8xf32>, %arg1: tensor<16x8xf32>, %arg2: tensor<i32>) -> tensor<3x16x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x8xf32>) -> tensor<1x16x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x16x8xf32>, tensor<1x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x8xf32>
    return %1 : tensor<3x16x8xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<3x16x8xf32>, %arg1: tensor<i32>) -> tensor<16x8xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 8] : (tensor<3x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    return %1 : tensor<16x8xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<16x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<16x8xf32>, %arg3: tensor<16x8xf32>, %arg4: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.multiply %arg0, %arg4 : tensor<16x8xf32>
    %1 = stablehlo.multiply %0, %arg3 : tensor<16x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<16x8xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<16x8xf32>
    return %6, %4 : tensor<16x8xf32>, tensor<8x8xf32>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<3x8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>) -> tensor<3x8x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x8xf32>
    return %1 : tensor<3x8x8xf32>
  }
}
