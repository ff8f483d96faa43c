module @jit_experts attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x4x8xf32>, %arg1: tensor<8x8x16xf32>) -> (tensor<64x4x16xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<64x4x8xf32>) -> tensor<8x8x4x8xf32>
    %1 = stablehlo.dot_general %arg1, %0, batching_dims = [0] x [1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x4x8xf32>) -> tensor<8x16x8x4xf32>
    %2 = stablehlo.transpose %1, dims = [2, 0, 3, 1] : (tensor<8x16x8x4xf32>) -> tensor<8x8x4x16xf32>
    %3 = stablehlo.reshape %2 : (tensor<8x8x4x16xf32>) -> tensor<64x4x16xf32>
    return %3 : tensor<64x4x16xf32>
  }
}
