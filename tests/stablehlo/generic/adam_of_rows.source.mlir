"builtin.module"() <{sym_name = "jit_adam_step"}> ({
  "func.func"() <{function_type = (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>, tensor<16x32xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<32x8xf32>, %arg1: tensor<32x8xf32>, %arg2: tensor<32x8xf32>, %arg3: tensor<16x32xf32>):
    %0 = "stablehlo.dot_general"(%arg3, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    %1 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x8xf32>
    %3 = "stablehlo.multiply"(%2, %0) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %4 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.constant"() <{value = dense<1.280000e+02> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.divide"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x8xf32>
    %8 = "stablehlo.multiply"(%7, %3) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %9 = "stablehlo.dot_general"(%8, %arg3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<16x8xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %10 = "stablehlo.transpose"(%9) <{permutation = array<i64: 1, 0>}> : (tensor<8x32xf32>) -> tensor<32x8xf32>
    %11 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
    %12 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
    %13 = "stablehlo.multiply"(%12, %arg1) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %14 = "stablehlo.constant"() <{value = dense<1.000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %15 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
    %16 = "stablehlo.multiply"(%15, %10) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %17 = "stablehlo.add"(%13, %16) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %18 = "stablehlo.constant"() <{value = dense<9.900000e-01> : tensor<f32>}> : () -> tensor<f32>
    %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
    %20 = "stablehlo.multiply"(%19, %arg2) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %21 = "stablehlo.constant"() <{value = dense<0.00999999977> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
    %23 = "stablehlo.multiply"(%22, %10) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %24 = "stablehlo.multiply"(%23, %10) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %25 = "stablehlo.add"(%20, %24) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %26 = "stablehlo.constant"() <{value = dense<1.000000e-03> : tensor<f32>}> : () -> tensor<f32>
    %27 = "stablehlo.broadcast_in_dim"(%26) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
    %28 = "stablehlo.multiply"(%27, %17) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %29 = "stablehlo.sqrt"(%25) : (tensor<32x8xf32>) -> tensor<32x8xf32>
    %30 = "stablehlo.constant"() <{value = dense<9.99999993E-9> : tensor<f32>}> : () -> tensor<f32>
    %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
    %32 = "stablehlo.add"(%29, %31) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %33 = "stablehlo.divide"(%28, %32) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %34 = "stablehlo.subtract"(%arg0, %33) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    "func.return"(%34, %17, %25) : (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
