module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["R"=8]> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}}
  func.func public @main(%arg0: tensor<64x8xf32>, %arg1: tensor<4x6xi32>) -> (tensor<4x6x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"R"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}, {}]>] manual_axes={"R"} (%arg2: tensor<8x8xf32>, %arg3: tensor<4x6xi32>) {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<63> : tensor<i32>
      %1 = func.call @clip(%arg3, %c, %c_0) : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
      %c_1 = stablehlo.constant dense<1> : tensor<ui32>
      %c_2 = stablehlo.constant dense<8> : tensor<ui32>
      %2 = stablehlo.partition_id : tensor<ui32>
      %3 = stablehlo.divide %2, %c_1 : tensor<ui32>
      %4 = stablehlo.remainder %3, %c_2 : tensor<ui32>
      %5 = stablehlo.convert %4 : (tensor<ui32>) -> tensor<i32>
      %c_3 = stablehlo.constant dense<8> : tensor<i32>
      %6 = stablehlo.multiply %5, %c_3 : tensor<i32>
      %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %8 = stablehlo.subtract %1, %7 : tensor<4x6xi32>
      %c_4 = stablehlo.constant dense<0> : tensor<i32>
      %9 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %10 = stablehlo.compare GE, %8, %9, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %c_5 = stablehlo.constant dense<8> : tensor<i32>
      %11 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %12 = stablehlo.compare LT, %8, %11, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %13 = stablehlo.and %10, %12 : tensor<4x6xi1>
      %c_6 = stablehlo.constant dense<0> : tensor<i32>
      %c_7 = stablehlo.constant dense<7> : tensor<i32>
      %14 = func.call @clip_0(%8, %c_6, %c_7) : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
      %15 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<4x6xi1>) -> tensor<4x6x1xi1>
      %c_8 = stablehlo.constant dense<0> : tensor<i32>
      %16 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %17 = stablehlo.compare LT, %14, %16, SIGNED : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %c_9 = stablehlo.constant dense<8> : tensor<i32>
      %18 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
      %19 = stablehlo.add %14, %18 : tensor<4x6xi32>
      %20 = stablehlo.select %17, %19, %14 : tensor<4x6xi1>, tensor<4x6xi32>
      %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<4x6xi32>) -> tensor<4x6x1xi32>
      %22 = "stablehlo.gather"(%arg2, %21) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<8x8xf32>, tensor<4x6x1xi32>) -> tensor<4x6x8xf32>
      %c_10 = stablehlo.constant dense<0> : tensor<i32>
      %23 = func.call @_where(%15, %22, %c_10) : (tensor<4x6x1xi1>, tensor<4x6x8xf32>, tensor<i32>) -> tensor<4x6x8xf32>
      %24 = "stablehlo.all_reduce"(%23) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %25 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %25 : tensor<f32>
      }) : (tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
      sdy.return %24 : tensor<4x6x8xf32>
    } : (tensor<64x8xf32>, tensor<4x6xi32>) -> tensor<4x6x8xf32>
    return %0 : tensor<4x6x8xf32>
  }
  func.func private @clip(%arg0: tensor<4x6xi32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x6xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x6xi32>
    %3 = stablehlo.convert %arg2 : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x6xi32>
    return %5 : tensor<4x6xi32>
  }
  func.func private @clip_0(%arg0: tensor<4x6xi32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x6xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x6xi32>
    %3 = stablehlo.convert %arg2 : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<4x6xi32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x6xi32>
    return %5 : tensor<4x6xi32>
  }
  func.func private @_where(%arg0: tensor<4x6x1xi1>, %arg1: tensor<4x6x8xf32>, %arg2: tensor<i32>) -> tensor<4x6x8xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2] : (tensor<4x6x1xi1>) -> tensor<4x6x8xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x6x8xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x6x8xi1>, tensor<4x6x8xf32>
    return %3 : tensor<4x6x8xf32>
  }
}
