module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x32xf32>) -> (tensor<16x32xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.iota dim = 0 : tensor<16xi32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<16xi32>) -> tensor<16x1xi32>
    %2 = stablehlo.convert %1 : (tensor<16x1xi32>) -> tensor<16x1xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x32xf32>
    %4 = stablehlo.add %arg0, %3 : tensor<16x32xf32>
    return %4 : tensor<16x32xf32>
  }
}
