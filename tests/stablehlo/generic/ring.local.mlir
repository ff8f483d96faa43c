"builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["R"=8]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}} : () -> ()
  "func.func"() <{function_type = (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg7: tensor<32x16xf32>, %arg8: tensor<32x16xf32>, %arg9: tensor<32x16xf32>):
    %12 = "sdy.manual_computation"(%arg7, %arg8, %arg9) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>]>, manual_axes = #sdy<manual_axes{"R"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"R"}, {}]>]>}> ({
    ^bb0(%arg10: tensor<4x16xf32>, %arg11: tensor<4x16xf32>, %arg12: tensor<4x16xf32>):
      %13 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
      %15 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %16 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x16xf32>
      %17 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %18:6 = "stablehlo.while"(%arg10, %17, %16, %14, %arg11, %arg12) ({
      ^bb0(%arg19: tensor<4x16xf32>, %arg20: tensor<i32>, %arg21: tensor<4x16xf32>, %arg22: tensor<4x1xf32>, %arg23: tensor<4x16xf32>, %arg24: tensor<4x16xf32>):
        %24 = "stablehlo.constant"() <{value = dense<8> : tensor<i32>}> : () -> tensor<i32>
        %25 = "stablehlo.compare"(%arg20, %24) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%25) : (tensor<i1>) -> ()
      }, {
      ^bb0(%arg13: tensor<4x16xf32>, %arg14: tensor<i32>, %arg15: tensor<4x16xf32>, %arg16: tensor<4x1xf32>, %arg17: tensor<4x16xf32>, %arg18: tensor<4x16xf32>):
        %21:4 = "func.call"(%arg13, %arg15, %arg16, %arg17, %arg18) <{callee = @closed_call}> : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
        %22 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %23 = "stablehlo.add"(%arg14, %22) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%arg13, %23, %21#0, %21#1, %21#2, %21#3) : (tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> ()
      }) : (tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<i32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>)
      %19 = "stablehlo.broadcast_in_dim"(%18#3) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x1xf32>) -> tensor<4x16xf32>
      %20 = "stablehlo.divide"(%18#2, %19) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      "sdy.return"(%20) : (tensor<4x16xf32>) -> ()
    }) : (tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x16xf32>
    "func.return"(%12) : (tensor<32x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<4x1xf32>, %arg3: tensor<4x16xf32>, %arg4: tensor<4x16xf32>):
    %0 = "stablehlo.transpose"(%arg3) <{permutation = array<i64: 1, 0>}> : (tensor<4x16xf32>) -> tensor<16x4xf32>
    %1 = "stablehlo.dot_general"(%arg0, %0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %2 = "stablehlo.exponential"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = "stablehlo.collective_permute"(%arg3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %4 = "stablehlo.collective_permute"(%arg4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %5 = "stablehlo.dot_general"(%2, %arg4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %6 = "stablehlo.add"(%arg1, %5) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.reduce"(%2, %7) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %11 = "stablehlo.add"(%arg5, %arg6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4x1xf32>
    %10 = "stablehlo.add"(%arg2, %9) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    "func.return"(%6, %10, %3, %4) : (tensor<4x16xf32>, tensor<4x1xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
