module @jit_step {
  func.func public @main(%arg0: tensor<16x32xf32> loc("params['embedding']"), %arg1: tensor<32x16xf32> loc("params['head']"), %arg2: tensor<64x32xf32> loc("params['layers'][0]['down']"), %arg3: tensor<32x64xf32> loc("params['layers'][0]['up']"), %arg4: tensor<64x32xf32> loc("params['layers'][1]['down']"), %arg5: tensor<32x64xf32> loc("params['layers'][1]['up']"), %arg6: tensor<32x16xf32> loc("x"), %arg7: tensor<32x16xf32> loc("y")) -> (tensor<16x32xf32> {jax.result_info = "result[0]['embedding']"}, tensor<32x16xf32> {jax.result_info = "result[0]['head']"}, tensor<64x32xf32> {jax.result_info = "result[0]['layers'][0]['down']"}, tensor<32x64xf32> {jax.result_info = "result[0]['layers'][0]['up']"}, tensor<64x32xf32> {jax.result_info = "result[0]['layers'][1]['down']"}, tensor<32x64xf32> {jax.result_info = "result[0]['layers'][1]['up']"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg6, %arg0, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<32x32xf32> loc("jit(step)/jvp(embedding)/dot_general")
    %1 = stablehlo.dot_general %0, %arg3, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32> loc("jit(step)/jvp(layers_0)/dot_general")
    %2 = stablehlo.tanh %1 : tensor<32x64xf32> loc("jit(step)/jvp(layers_0)/tanh")
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x64xf32> loc("jit(step)/jvp(layers_0)/sub")
    %4 = stablehlo.subtract %3, %2 : tensor<32x64xf32> loc("jit(step)/jvp(layers_0)/sub")
    %5 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32> loc("jit(step)/jvp(layers_0)/dot_general")
    %6 = stablehlo.add %0, %5 : tensor<32x32xf32> loc("jit(step)/jvp(layers_0)/add")
    %7 = stablehlo.dot_general %6, %arg5, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32> loc("jit(step)/jvp(layers_1)/dot_general")
    %8 = stablehlo.tanh %7 : tensor<32x64xf32> loc("jit(step)/jvp(layers_1)/tanh")
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<32x64xf32> loc("jit(step)/jvp(layers_1)/sub")
    %10 = stablehlo.subtract %9, %8 : tensor<32x64xf32> loc("jit(step)/jvp(layers_1)/sub")
    %11 = stablehlo.dot_general %8, %arg4, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32> loc("jit(step)/jvp(layers_1)/dot_general")
    %12 = stablehlo.add %6, %11 : tensor<32x32xf32> loc("jit(step)/jvp(layers_1)/add")
    %13 = stablehlo.dot_general %12, %arg1, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x16xf32>) -> tensor<32x16xf32> loc("jit(step)/jvp(head)/dot_general")
    %14 = stablehlo.subtract %13, %arg7 : tensor<32x16xf32> loc("jit(step)/jvp(loss)/sub")
    %15 = stablehlo.multiply %14, %14 : tensor<32x16xf32> loc("jit(step)/jvp(loss)/integer_pow")
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<32x16xf32> loc("jit(step)/jvp(loss)/mul")
    %17 = stablehlo.multiply %16, %14 : tensor<32x16xf32> loc("jit(step)/jvp(loss)/mul")
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc("jit(step)/jvp(loss)/reduce_sum")
    %18 = stablehlo.reduce(%15 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x16xf32>, tensor<f32>) -> tensor<f32> loc("jit(step)/jvp(loss)/reduce_sum")
    %cst_3 = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %19 = stablehlo.divide %18, %cst_3 : tensor<f32> loc("jit(step)/jvp(loss)/div")
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %20 = stablehlo.divide %cst_4, %cst_5 : tensor<f32> loc("jit(step)/transpose(jvp(loss))/div")
    %21 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<f32>) -> tensor<32x16xf32> loc("jit(step)/transpose(jvp(loss))/broadcast_in_dim")
    %22 = stablehlo.multiply %21, %17 : tensor<32x16xf32> loc("jit(step)/transpose(jvp(loss))/mul")
    %23 = stablehlo.dot_general %22, %12, contracting_dims = [0] x [0] : (tensor<32x16xf32>, tensor<32x32xf32>) -> tensor<16x32xf32> loc("jit(step)/transpose(jvp(head))/dot_general")
    %24 = stablehlo.transpose %23, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32> loc("jit(step)/transpose(jvp(head))/transpose")
    %25 = stablehlo.dot_general %22, %arg1, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x32xf32> loc("jit(step)/transpose(jvp(head))/dot_general")
    %26 = stablehlo.dot_general %25, %8, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_1))/dot_general")
    %27 = stablehlo.transpose %26, dims = [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32> loc("jit(step)/transpose(jvp(layers_1))/transpose")
    %28 = stablehlo.dot_general %25, %arg4, contracting_dims = [1] x [1] : (tensor<32x32xf32>, tensor<64x32xf32>) -> tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_1))/dot_general")
    %29 = stablehlo.multiply %28, %10 : tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_1))/mul")
    %30 = stablehlo.multiply %29, %8 : tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_1))/mul")
    %31 = stablehlo.add %29, %30 : tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_1))/add_any")
    %32 = stablehlo.dot_general %31, %6, contracting_dims = [0] x [0] : (tensor<32x64xf32>, tensor<32x32xf32>) -> tensor<64x32xf32> loc("jit(step)/transpose(jvp(layers_1))/dot_general")
    %33 = stablehlo.transpose %32, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_1))/transpose")
    %34 = stablehlo.dot_general %31, %arg5, contracting_dims = [1] x [1] : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x32xf32> loc("jit(step)/transpose(jvp(layers_1))/dot_general")
    %35 = stablehlo.add %25, %34 : tensor<32x32xf32> loc("jit(step)/transpose(jvp(layers_1))/add_any")
    %36 = stablehlo.dot_general %35, %2, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x64xf32>) -> tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_0))/dot_general")
    %37 = stablehlo.transpose %36, dims = [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32> loc("jit(step)/transpose(jvp(layers_0))/transpose")
    %38 = stablehlo.dot_general %35, %arg2, contracting_dims = [1] x [1] : (tensor<32x32xf32>, tensor<64x32xf32>) -> tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_0))/dot_general")
    %39 = stablehlo.multiply %38, %4 : tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_0))/mul")
    %40 = stablehlo.multiply %39, %2 : tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_0))/mul")
    %41 = stablehlo.add %39, %40 : tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_0))/add_any")
    %42 = stablehlo.dot_general %41, %0, contracting_dims = [0] x [0] : (tensor<32x64xf32>, tensor<32x32xf32>) -> tensor<64x32xf32> loc("jit(step)/transpose(jvp(layers_0))/dot_general")
    %43 = stablehlo.transpose %42, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32> loc("jit(step)/transpose(jvp(layers_0))/transpose")
    %44 = stablehlo.dot_general %41, %arg3, contracting_dims = [1] x [1] : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x32xf32> loc("jit(step)/transpose(jvp(layers_0))/dot_general")
    %45 = stablehlo.add %35, %44 : tensor<32x32xf32> loc("jit(step)/transpose(jvp(layers_0))/add_any")
    %46 = stablehlo.dot_general %45, %arg6, contracting_dims = [0] x [0] : (tensor<32x32xf32>, tensor<32x16xf32>) -> tensor<32x16xf32> loc("jit(step)/transpose(jvp(embedding))/dot_general")
    %47 = stablehlo.transpose %46, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32> loc("jit(step)/transpose(jvp(embedding))/transpose")
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x32xf32> loc("jit(step)/mul")
    %49 = stablehlo.multiply %48, %47 : tensor<16x32xf32> loc("jit(step)/mul")
    %50 = stablehlo.subtract %arg0, %49 : tensor<16x32xf32> loc("jit(step)/sub")
    %cst_7 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<32x16xf32> loc("jit(step)/mul")
    %52 = stablehlo.multiply %51, %24 : tensor<32x16xf32> loc("jit(step)/mul")
    %53 = stablehlo.subtract %arg1, %52 : tensor<32x16xf32> loc("jit(step)/sub")
    %cst_8 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<64x32xf32> loc("jit(step)/mul")
    %55 = stablehlo.multiply %54, %37 : tensor<64x32xf32> loc("jit(step)/mul")
    %56 = stablehlo.subtract %arg2, %55 : tensor<64x32xf32> loc("jit(step)/sub")
    %cst_9 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<32x64xf32> loc("jit(step)/mul")
    %58 = stablehlo.multiply %57, %43 : tensor<32x64xf32> loc("jit(step)/mul")
    %59 = stablehlo.subtract %arg3, %58 : tensor<32x64xf32> loc("jit(step)/sub")
    %cst_10 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %60 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<64x32xf32> loc("jit(step)/mul")
    %61 = stablehlo.multiply %60, %27 : tensor<64x32xf32> loc("jit(step)/mul")
    %62 = stablehlo.subtract %arg4, %61 : tensor<64x32xf32> loc("jit(step)/sub")
    %cst_11 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<32x64xf32> loc("jit(step)/mul")
    %64 = stablehlo.multiply %63, %33 : tensor<32x64xf32> loc("jit(step)/mul")
    %65 = stablehlo.subtract %arg5, %64 : tensor<32x64xf32> loc("jit(step)/sub")
    return %50, %53, %56, %59, %62, %65, %19 : tensor<16x32xf32>, tensor<32x16xf32>, tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x32xf32>, tensor<32x64xf32>, tensor<f32>
  }
}
