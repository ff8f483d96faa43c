module @jit_adam_of_rows attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<32x8xf32>, %arg1: tensor<32x8xf32>, %arg2: tensor<32x8xf32>, %arg3: tensor<16x32xf32>) -> (tensor<32x8xf32> {jax.result_info = "result[0]"}, tensor<32x8xf32> {jax.result_info = "result[1]"}, tensor<32x8xf32> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>] manual_axes={"R"} (%arg4: tensor<32x8xf32>, %arg5: tensor<4x8xf32>, %arg6: tensor<4x8xf32>, %arg7: tensor<2x32xf32>) {
      %1 = stablehlo.dot_general %arg7, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x32xf32>, tensor<32x8xf32>) -> tensor<2x8xf32>
      %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %3 = stablehlo.multiply %2, %1 : tensor<2x8xf32>
      %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %4 = stablehlo.divide %cst_0, %cst_1 : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %6 = stablehlo.multiply %5, %3 : tensor<2x8xf32>
      %7 = stablehlo.dot_general %6, %arg7, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x8xf32>, tensor<2x32xf32>) -> tensor<8x32xf32>
      %8 = stablehlo.transpose %7, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>
      %9 = "stablehlo.all_reduce"(%8) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %49 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %49 : tensor<f32>
      }) : (tensor<32x8xf32>) -> tensor<32x8xf32>
      %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<32x8xf32>
      %11 = stablehlo.divide %9, %10 : tensor<32x8xf32>
      %c = stablehlo.constant dense<1> : tensor<ui32>
      %c_3 = stablehlo.constant dense<8> : tensor<ui32>
      %12 = stablehlo.partition_id : tensor<ui32>
      %13 = stablehlo.divide %12, %c : tensor<ui32>
      %14 = stablehlo.remainder %13, %c_3 : tensor<ui32>
      %15 = stablehlo.convert %14 : (tensor<ui32>) -> tensor<i32>
      %c_4 = stablehlo.constant dense<4> : tensor<i32>
      %16 = stablehlo.multiply %15, %c_4 : tensor<i32>
      %c_5 = stablehlo.constant dense<0> : tensor<i32>
      %17 = stablehlo.compare LT, %16, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_6 = stablehlo.constant dense<32> : tensor<i32>
      %18 = stablehlo.add %16, %c_6 : tensor<i32>
      %19 = stablehlo.select %17, %18, %16 : tensor<i1>, tensor<i32>
      %c_7 = stablehlo.constant dense<0> : tensor<i32>
      %20 = stablehlo.dynamic_slice %11, %19, %c_7, sizes = [4, 8] : (tensor<32x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
      %c_8 = stablehlo.constant dense<1> : tensor<ui32>
      %c_9 = stablehlo.constant dense<8> : tensor<ui32>
      %21 = stablehlo.partition_id : tensor<ui32>
      %22 = stablehlo.divide %21, %c_8 : tensor<ui32>
      %23 = stablehlo.remainder %22, %c_9 : tensor<ui32>
      %24 = stablehlo.convert %23 : (tensor<ui32>) -> tensor<i32>
      %c_10 = stablehlo.constant dense<4> : tensor<i32>
      %25 = stablehlo.multiply %24, %c_10 : tensor<i32>
      %c_11 = stablehlo.constant dense<0> : tensor<i32>
      %26 = stablehlo.compare LT, %25, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_12 = stablehlo.constant dense<32> : tensor<i32>
      %27 = stablehlo.add %25, %c_12 : tensor<i32>
      %28 = stablehlo.select %26, %27, %25 : tensor<i1>, tensor<i32>
      %c_13 = stablehlo.constant dense<0> : tensor<i32>
      %29 = stablehlo.dynamic_slice %arg4, %28, %c_13, sizes = [4, 8] : (tensor<32x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
      %cst_14 = stablehlo.constant dense<0.899999976> : tensor<f32>
      %30 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %31 = stablehlo.multiply %30, %arg5 : tensor<4x8xf32>
      %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
      %32 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %33 = stablehlo.multiply %32, %20 : tensor<4x8xf32>
      %34 = stablehlo.add %31, %33 : tensor<4x8xf32>
      %cst_16 = stablehlo.constant dense<9.900000e-01> : tensor<f32>
      %35 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %36 = stablehlo.multiply %35, %arg6 : tensor<4x8xf32>
      %cst_17 = stablehlo.constant dense<0.00999999977> : tensor<f32>
      %37 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %38 = stablehlo.multiply %37, %20 : tensor<4x8xf32>
      %39 = stablehlo.multiply %38, %20 : tensor<4x8xf32>
      %40 = stablehlo.add %36, %39 : tensor<4x8xf32>
      %cst_18 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
      %41 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %42 = stablehlo.multiply %41, %34 : tensor<4x8xf32>
      %43 = stablehlo.sqrt %40 : tensor<4x8xf32>
      %cst_19 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
      %44 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %45 = stablehlo.add %43, %44 : tensor<4x8xf32>
      %46 = stablehlo.divide %42, %45 : tensor<4x8xf32>
      %47 = stablehlo.subtract %29, %46 : tensor<4x8xf32>
      %48 = "stablehlo.all_gather"(%47) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<32x8xf32>
      sdy.return %48, %34, %40 : tensor<32x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
    } : (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>, tensor<16x32xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
    return %0#0, %0#1, %0#2 : tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>
  }
}
