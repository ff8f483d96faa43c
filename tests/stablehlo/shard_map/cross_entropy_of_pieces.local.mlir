module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<16x8xf32>, %arg1: tensor<8x64xf32>, %arg2: tensor<16xi32>) -> (tensor<f32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {"R"}]>, <@mesh, [{}]>] out_shardings=[<@mesh, []>] manual_axes={"R"} (%arg3: tensor<16x8xf32>, %arg4: tensor<8x8xf32>, %arg5: tensor<16xi32>) {
      %1 = stablehlo.dot_general %arg3, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<16xf32>
      %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %33 = stablehlo.maximum %arg6, %arg7 : tensor<f32>
        stablehlo.return %33 : tensor<f32>
      }) : (tensor<16xf32>) -> tensor<16xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<63> : tensor<i32>
      %4 = func.call @clip(%arg5, %c, %c_0) : (tensor<16xi32>, tensor<i32>, tensor<i32>) -> tensor<16xi32>
      %c_1 = stablehlo.constant dense<1> : tensor<ui32>
      %c_2 = stablehlo.constant dense<8> : tensor<ui32>
      %5 = stablehlo.partition_id : tensor<ui32>
      %6 = stablehlo.divide %5, %c_1 : tensor<ui32>
      %7 = stablehlo.remainder %6, %c_2 : tensor<ui32>
      %8 = stablehlo.convert %7 : (tensor<ui32>) -> tensor<i32>
      %c_3 = stablehlo.constant dense<8> : tensor<i32>
      %9 = stablehlo.multiply %8, %c_3 : tensor<i32>
      %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i32>) -> tensor<16xi32>
      %11 = stablehlo.subtract %4, %10 : tensor<16xi32>
      %c_4 = stablehlo.constant dense<0> : tensor<i32>
      %12 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<16xi32>
      %13 = stablehlo.compare GE, %11, %12, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %c_5 = stablehlo.constant dense<8> : tensor<i32>
      %14 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<16xi32>
      %15 = stablehlo.compare LT, %11, %14, SIGNED : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi1>
      %16 = stablehlo.and %13, %15 : tensor<16xi1>
      %c_6 = stablehlo.constant dense<0> : tensor<i32>
      %c_7 = stablehlo.constant dense<7> : tensor<i32>
      %17 = func.call @clip(%11, %c_6, %c_7) : (tensor<16xi32>, tensor<i32>, tensor<i32>) -> tensor<16xi32>
      %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
      %19 = func.call @take_along_axis(%1, %18) : (tensor<16x8xf32>, tensor<16x1xi32>) -> tensor<16x1xf32>
      %20 = stablehlo.reshape %19 : (tensor<16x1xf32>) -> tensor<16xf32>
      %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %21 = func.call @_where(%16, %20, %cst_8) : (tensor<16xi1>, tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
      %22 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<16xf32>) -> tensor<16x1xf32>
      %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x8xf32>
      %24 = stablehlo.subtract %1, %23 : tensor<16x8xf32>
      %25 = stablehlo.exponential %24 : tensor<16x8xf32>
      %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %26 = stablehlo.reduce(%25 init: %cst_9) applies stablehlo.add across dimensions = [1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<16xf32>
      %27 = stablehlo.log %26 : tensor<16xf32>
      %28 = stablehlo.add %27, %3 : tensor<16xf32>
      %29 = "stablehlo.all_reduce"(%21) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %33 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %33 : tensor<f32>
      }) : (tensor<16xf32>) -> tensor<16xf32>
      %30 = stablehlo.subtract %28, %29 : tensor<16xf32>
      %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %31 = stablehlo.reduce(%30 init: %cst_10) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
      %cst_11 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %32 = stablehlo.divide %31, %cst_11 : tensor<f32>
      sdy.return %32 : tensor<f32>
    } : (tensor<16x8xf32>, tensor<8x64xf32>, tensor<16xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @clip(%arg0: tensor<16xi32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<16xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<16xi32>
    %3 = stablehlo.convert %arg2 : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %5 = stablehlo.minimum %4, %2 : tensor<16xi32>
    return %5 : tensor<16xi32>
  }
  func.func private @take_along_axis(%arg0: tensor<16x8xf32>, %arg1: tensor<16x1xi32>) -> tensor<16x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<16x1xi32>, tensor<16x1xi32>) -> tensor<16x1xi1>
    %c_0 = stablehlo.constant dense<8> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<16x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<16x1xi1>, tensor<16x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<16x1xi32>) -> tensor<16x1x1xi32>
    %c_1 = stablehlo.constant dense<7> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<16x1x1xi32>, tensor<16x1x1xi32>) -> tensor<16x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<16x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<16x1x1xi32>, tensor<16x1x1xi32>) -> tensor<16x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<16x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<16x1x1xi1>, tensor<i1>) -> tensor<16x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<16x8xf32>, tensor<16x1x1xi32>) -> tensor<16x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<16x1xi1>, tensor<16x1xf32>
    return %15 : tensor<16x1xf32>
  }
  func.func private @_where(%arg0: tensor<16xi1>, %arg1: tensor<16xf32>, %arg2: tensor<f32>) -> tensor<16xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<16xi1>, tensor<16xf32>
    return %2 : tensor<16xf32>
  }
}
