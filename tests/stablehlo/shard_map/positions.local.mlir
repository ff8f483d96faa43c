module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["B"=4, "M"=2]> {stablehlo.mesh = {axes = [{name = "B", size = 4 : i64}, {name = "M", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x32xf32>) -> (tensor<16x32xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"B", "M"}, {}]>] out_shardings=[<@mesh, [{"B", "M"}, {}]>] manual_axes={"B", "M"} (%arg1: tensor<2x32xf32>) {
      %c = stablehlo.constant dense<1> : tensor<ui32>
      %c_0 = stablehlo.constant dense<2> : tensor<ui32>
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.divide %1, %c : tensor<ui32>
      %3 = stablehlo.remainder %2, %c_0 : tensor<ui32>
      %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<i32>
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.multiply %4, %c_1 : tensor<i32>
      %c_2 = stablehlo.constant dense<0> : tensor<i32>
      %6 = stablehlo.add %c_2, %5 : tensor<i32>
      %c_3 = stablehlo.constant dense<2> : tensor<ui32>
      %c_4 = stablehlo.constant dense<4> : tensor<ui32>
      %7 = stablehlo.partition_id : tensor<ui32>
      %8 = stablehlo.divide %7, %c_3 : tensor<ui32>
      %9 = stablehlo.remainder %8, %c_4 : tensor<ui32>
      %10 = stablehlo.convert %9 : (tensor<ui32>) -> tensor<i32>
      %c_5 = stablehlo.constant dense<2> : tensor<i32>
      %11 = stablehlo.multiply %10, %c_5 : tensor<i32>
      %12 = stablehlo.add %6, %11 : tensor<i32>
      %c_6 = stablehlo.constant dense<2> : tensor<i32>
      %13 = stablehlo.multiply %12, %c_6 : tensor<i32>
      %14 = stablehlo.iota dim = 0 : tensor<2xi32>
      %15 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<2xi32>
      %16 = stablehlo.add %15, %14 : tensor<2xi32>
      %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
      %18 = stablehlo.convert %17 : (tensor<2x1xi32>) -> tensor<2x1xf32>
      %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x32xf32>
      %20 = stablehlo.add %arg1, %19 : tensor<2x32xf32>
      sdy.return %20 : tensor<2x32xf32>
    } : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
}
