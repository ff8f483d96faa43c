"builtin.module"() <{sym_name = "jit_layers_loss"}> ({
  "func.func"() <{function_type = (tensor<3x8x8xf32>, tensor<16x8xf32>) -> tensor<3x8x8xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg17: tensor<3x8x8xf32>, %arg18: tensor<16x8xf32>):
    %29 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %30 = "stablehlo.broadcast_in_dim"(%29) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x16x8xf32>
    %31 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %32 = "stablehlo.broadcast_in_dim"(%31) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x16x8xf32>
    %33 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x16x8xf32>
    %35 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %36:6 = "stablehlo.while"(%arg17, %35, %arg18, %30, %32, %34) ({
    ^bb0(%arg39: tensor<3x8x8xf32>, %arg40: tensor<i32>, %arg41: tensor<16x8xf32>, %arg42: tensor<3x16x8xf32>, %arg43: tensor<3x16x8xf32>, %arg44: tensor<3x16x8xf32>):
      %70 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %71 = "stablehlo.compare"(%arg40, %70) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%71) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg33: tensor<3x8x8xf32>, %arg34: tensor<i32>, %arg35: tensor<16x8xf32>, %arg36: tensor<3x16x8xf32>, %arg37: tensor<3x16x8xf32>, %arg38: tensor<3x16x8xf32>):
      %63 = "func.call"(%arg33, %arg34) <{callee = @dynamic_index_in_dim}> : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
      %64:4 = "func.call"(%arg35, %63) <{callee = @closed_call}> : (tensor<16x8xf32>, tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      %65 = "func.call"(%arg36, %64#1, %arg34) <{callee = @dynamic_update_index_in_dim}> : (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>
      %66 = "func.call"(%arg37, %64#2, %arg34) <{callee = @dynamic_update_index_in_dim}> : (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>
      %67 = "func.call"(%arg38, %64#3, %arg34) <{callee = @dynamic_update_index_in_dim}> : (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>
      %68 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %69 = "stablehlo.add"(%arg34, %68) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%arg33, %69, %64#0, %65, %66, %67) : (tensor<3x8x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>) -> ()
    }) : (tensor<3x8x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>) -> (tensor<3x8x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>)
    %37 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %38 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x8xf32>
    %39 = "stablehlo.multiply"(%38, %36#2) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %40 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %41 = "stablehlo.constant"() <{value = dense<1.280000e+02> : tensor<f32>}> : () -> tensor<f32>
    %42 = "stablehlo.divide"(%40, %41) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %43 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x8xf32>
    %44 = "stablehlo.multiply"(%43, %39) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %45 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %46 = "stablehlo.broadcast_in_dim"(%45) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x8x8xf32>
    %47 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %48:7 = "stablehlo.while"(%arg17, %36#3, %36#4, %36#5, %47, %44, %46) ({
    ^bb0(%arg26: tensor<3x8x8xf32>, %arg27: tensor<3x16x8xf32>, %arg28: tensor<3x16x8xf32>, %arg29: tensor<3x16x8xf32>, %arg30: tensor<i32>, %arg31: tensor<16x8xf32>, %arg32: tensor<3x8x8xf32>):
      %61 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %62 = "stablehlo.compare"(%arg30, %61) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%62) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg19: tensor<3x8x8xf32>, %arg20: tensor<3x16x8xf32>, %arg21: tensor<3x16x8xf32>, %arg22: tensor<3x16x8xf32>, %arg23: tensor<i32>, %arg24: tensor<16x8xf32>, %arg25: tensor<3x8x8xf32>):
      %49 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %50 = "stablehlo.subtract"(%49, %arg23) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %51 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %52 = "stablehlo.subtract"(%50, %51) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %53 = "func.call"(%arg19, %52) <{callee = @dynamic_index_in_dim}> : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
      %54 = "func.call"(%arg20, %52) <{callee = @dynamic_index_in_dim_0}> : (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>
      %55 = "func.call"(%arg21, %52) <{callee = @dynamic_index_in_dim_0}> : (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>
      %56 = "func.call"(%arg22, %52) <{callee = @dynamic_index_in_dim_0}> : (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>
      %57:2 = "func.call"(%arg24, %53, %54, %55, %56) <{callee = @closed_call_1}> : (tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<8x8xf32>)
      %58 = "func.call"(%arg25, %57#1, %52) <{callee = @dynamic_update_index_in_dim_2}> : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
      %59 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %60 = "stablehlo.add"(%arg23, %59) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%arg19, %arg20, %arg21, %arg22, %60, %57#0, %58) : (tensor<3x8x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x8x8xf32>) -> ()
    }) : (tensor<3x8x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x8x8xf32>) -> (tensor<3x8x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<3x16x8xf32>, tensor<i32>, tensor<16x8xf32>, tensor<3x8x8xf32>)
    "func.return"(%48#6) : (tensor<3x8x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>, sym_name = "dynamic_index_in_dim", sym_visibility = "private"}> ({
  ^bb0(%arg15: tensor<3x8x8xf32>, %arg16: tensor<i32>):
    %25 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %26 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %27 = "stablehlo.dynamic_slice"(%arg15, %arg16, %25, %26) <{slice_sizes = array<i64: 1, 8, 8>}> : (tensor<3x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %28 = "stablehlo.reshape"(%27) : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    "func.return"(%28) : (tensor<8x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x8xf32>, tensor<8x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg13: tensor<16x8xf32>, %arg14: tensor<8x8xf32>):
    %19 = "stablehlo.dot_general"(%arg13, %arg14) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %20 = "stablehlo.tanh"(%19) : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %21 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<16x8xf32>
    %23 = "stablehlo.subtract"(%22, %20) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %24 = "stablehlo.add"(%arg13, %20) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    "func.return"(%24, %arg13, %20, %23) : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x16x8xf32>, tensor<16x8xf32>, tensor<i32>) -> tensor<3x16x8xf32>, sym_name = "dynamic_update_index_in_dim", sym_visibility = "private"}> ({
  ^bb0(%arg10: tensor<3x16x8xf32>, %arg11: tensor<16x8xf32>, %arg12: tensor<i32>):
    %15 = "stablehlo.broadcast_in_dim"(%arg11) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<16x8xf32>) -> tensor<1x16x8xf32>
    %16 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %17 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %18 = "stablehlo.dynamic_update_slice"(%arg10, %15, %arg12, %16, %17) : (tensor<3x16x8xf32>, tensor<1x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x16x8xf32>
    "func.return"(%18) : (tensor<3x16x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x16x8xf32>, tensor<i32>) -> tensor<16x8xf32>, sym_name = "dynamic_index_in_dim_0", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<3x16x8xf32>, %arg9: tensor<i32>):
    %11 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %12 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %13 = "stablehlo.dynamic_slice"(%arg8, %arg9, %11, %12) <{slice_sizes = array<i64: 1, 16, 8>}> : (tensor<3x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %14 = "stablehlo.reshape"(%13) : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    "func.return"(%14) : (tensor<16x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<8x8xf32>), sym_name = "closed_call_1", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<16x8xf32>, %arg4: tensor<8x8xf32>, %arg5: tensor<16x8xf32>, %arg6: tensor<16x8xf32>, %arg7: tensor<16x8xf32>):
    %4 = "stablehlo.multiply"(%arg3, %arg7) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %5 = "stablehlo.multiply"(%4, %arg6) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %6 = "stablehlo.add"(%4, %5) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %7 = "stablehlo.dot_general"(%6, %arg5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %8 = "stablehlo.transpose"(%7) <{permutation = array<i64: 1, 0>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %9 = "stablehlo.dot_general"(%6, %arg4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %10 = "stablehlo.add"(%arg3, %9) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    "func.return"(%10, %8) : (tensor<16x8xf32>, tensor<8x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>, sym_name = "dynamic_update_index_in_dim_2", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<3x8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>):
    %0 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.dynamic_update_slice"(%arg0, %0, %arg2, %1, %2) : (tensor<3x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x8xf32>
    "func.return"(%3) : (tensor<3x8x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
