"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["R"=8]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}} : () -> ()
  "func.func"() <{function_type = (tensor<3x8x8xf32>, tensor<16x8xf32>) -> tensor<3x8x8xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg17: tensor<3x8x8xf32>, %arg18: tensor<16x8xf32>):
    %29 = "sdy.manual_computation"(%arg17, %arg18) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>, <@mesh, [{"R"}, {}]>]>, manual_axes = #sdy<manual_axes{"R"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>}> ({
    ^bb0(%arg19: tensor<3x8x8xf32>, %arg20: tensor<2x8xf32>):
      %30 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x2x8xf32>
      %32 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %33 = "stablehlo.broadcast_in_dim"(%32) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x2x8xf32>
      %34 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %35 = "stablehlo.broadcast_in_dim"(%34) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x2x8xf32>
      %36 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %37:6 = "stablehlo.while"(%arg19, %36, %arg20, %31, %33, %35) ({
      ^bb0(%arg43: tensor<3x8x8xf32>, %arg44: tensor<i32>, %arg45: tensor<2x8xf32>, %arg46: tensor<3x2x8xf32>, %arg47: tensor<3x2x8xf32>, %arg48: tensor<3x2x8xf32>):
        %76 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %77 = "stablehlo.compare"(%arg44, %76) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%77) : (tensor<i1>) -> ()
      }, {
      ^bb0(%arg37: tensor<3x8x8xf32>, %arg38: tensor<i32>, %arg39: tensor<2x8xf32>, %arg40: tensor<3x2x8xf32>, %arg41: tensor<3x2x8xf32>, %arg42: tensor<3x2x8xf32>):
        %69 = "func.call"(%arg37, %arg38) <{callee = @dynamic_index_in_dim}> : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %70:4 = "func.call"(%arg39, %69) <{callee = @closed_call}> : (tensor<2x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
        %71 = "func.call"(%arg40, %70#1, %arg38) <{callee = @dynamic_update_index_in_dim}> : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %72 = "func.call"(%arg41, %70#2, %arg38) <{callee = @dynamic_update_index_in_dim}> : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %73 = "func.call"(%arg42, %70#3, %arg38) <{callee = @dynamic_update_index_in_dim}> : (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>
        %74 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %75 = "stablehlo.add"(%arg38, %74) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%arg37, %75, %70#0, %71, %72, %73) : (tensor<3x8x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> ()
      }) : (tensor<3x8x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>) -> (tensor<3x8x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>)
      %38 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %39 = "stablehlo.broadcast_in_dim"(%38) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
      %40 = "stablehlo.multiply"(%39, %37#2) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      %41 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %42 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
      %43 = "stablehlo.divide"(%41, %42) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %44 = "stablehlo.broadcast_in_dim"(%43) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
      %45 = "stablehlo.multiply"(%44, %40) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      %46 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %47 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x8x8xf32>
      %48 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %49:7 = "stablehlo.while"(%arg19, %37#3, %37#4, %37#5, %48, %45, %47) ({
      ^bb0(%arg30: tensor<3x8x8xf32>, %arg31: tensor<3x2x8xf32>, %arg32: tensor<3x2x8xf32>, %arg33: tensor<3x2x8xf32>, %arg34: tensor<i32>, %arg35: tensor<2x8xf32>, %arg36: tensor<3x8x8xf32>):
        %67 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %68 = "stablehlo.compare"(%arg34, %67) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%68) : (tensor<i1>) -> ()
      }, {
      ^bb0(%arg23: tensor<3x8x8xf32>, %arg24: tensor<3x2x8xf32>, %arg25: tensor<3x2x8xf32>, %arg26: tensor<3x2x8xf32>, %arg27: tensor<i32>, %arg28: tensor<2x8xf32>, %arg29: tensor<3x8x8xf32>):
        %55 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
        %56 = "stablehlo.subtract"(%55, %arg27) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %57 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %58 = "stablehlo.subtract"(%56, %57) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %59 = "func.call"(%arg23, %58) <{callee = @dynamic_index_in_dim}> : (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>
        %60 = "func.call"(%arg24, %58) <{callee = @dynamic_index_in_dim_0}> : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %61 = "func.call"(%arg25, %58) <{callee = @dynamic_index_in_dim_0}> : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %62 = "func.call"(%arg26, %58) <{callee = @dynamic_index_in_dim_0}> : (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>
        %63:2 = "func.call"(%arg28, %59, %60, %61, %62) <{callee = @closed_call_1}> : (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>)
        %64 = "func.call"(%arg29, %63#1, %58) <{callee = @dynamic_update_index_in_dim_2}> : (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>
        %65 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %66 = "stablehlo.add"(%arg27, %65) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "stablehlo.return"(%arg23, %arg24, %arg25, %arg26, %66, %63#0, %64) : (tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>) -> ()
      }) : (tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>) -> (tensor<3x8x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<3x2x8xf32>, tensor<i32>, tensor<2x8xf32>, tensor<3x8x8xf32>)
      %50 = "stablehlo.all_reduce"(%49#6) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg21: tensor<f32>, %arg22: tensor<f32>):
        %54 = "stablehlo.add"(%arg21, %arg22) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%54) : (tensor<f32>) -> ()
      }) : (tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
      %51 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %52 = "stablehlo.broadcast_in_dim"(%51) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x8x8xf32>
      %53 = "stablehlo.divide"(%50, %52) : (tensor<3x8x8xf32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
      "sdy.return"(%53) : (tensor<3x8x8xf32>) -> ()
    }) : (tensor<3x8x8xf32>, tensor<16x8xf32>) -> tensor<3x8x8xf32>
    "func.return"(%29) : (tensor<3x8x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x8x8xf32>, tensor<i32>) -> tensor<8x8xf32>, sym_name = "dynamic_index_in_dim", sym_visibility = "private"}> ({
  ^bb0(%arg15: tensor<3x8x8xf32>, %arg16: tensor<i32>):
    %25 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %26 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %27 = "stablehlo.dynamic_slice"(%arg15, %arg16, %25, %26) <{slice_sizes = array<i64: 1, 8, 8>}> : (tensor<3x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %28 = "stablehlo.reshape"(%27) : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    "func.return"(%28) : (tensor<8x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg13: tensor<2x8xf32>, %arg14: tensor<8x8xf32>):
    %19 = "stablehlo.dot_general"(%arg13, %arg14) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %20 = "stablehlo.tanh"(%19) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %21 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
    %23 = "stablehlo.subtract"(%22, %20) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %24 = "stablehlo.add"(%arg13, %20) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    "func.return"(%24, %arg13, %20, %23) : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2x8xf32>, tensor<2x8xf32>, tensor<i32>) -> tensor<3x2x8xf32>, sym_name = "dynamic_update_index_in_dim", sym_visibility = "private"}> ({
  ^bb0(%arg10: tensor<3x2x8xf32>, %arg11: tensor<2x8xf32>, %arg12: tensor<i32>):
    %15 = "stablehlo.broadcast_in_dim"(%arg11) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<2x8xf32>) -> tensor<1x2x8xf32>
    %16 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %17 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %18 = "stablehlo.dynamic_update_slice"(%arg10, %15, %arg12, %16, %17) : (tensor<3x2x8xf32>, tensor<1x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x8xf32>
    "func.return"(%18) : (tensor<3x2x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2x8xf32>, tensor<i32>) -> tensor<2x8xf32>, sym_name = "dynamic_index_in_dim_0", sym_visibility = "private"}> ({
  ^bb0(%arg8: tensor<3x2x8xf32>, %arg9: tensor<i32>):
    %11 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %12 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %13 = "stablehlo.dynamic_slice"(%arg8, %arg9, %11, %12) <{slice_sizes = array<i64: 1, 2, 8>}> : (tensor<3x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x8xf32>
    %14 = "stablehlo.reshape"(%13) : (tensor<1x2x8xf32>) -> tensor<2x8xf32>
    "func.return"(%14) : (tensor<2x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>), sym_name = "closed_call_1", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<2x8xf32>, %arg4: tensor<8x8xf32>, %arg5: tensor<2x8xf32>, %arg6: tensor<2x8xf32>, %arg7: tensor<2x8xf32>):
    %4 = "stablehlo.multiply"(%arg3, %arg7) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %5 = "stablehlo.multiply"(%4, %arg6) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %6 = "stablehlo.add"(%4, %5) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %7 = "stablehlo.dot_general"(%6, %arg5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
    %8 = "stablehlo.transpose"(%7) <{permutation = array<i64: 1, 0>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %9 = "stablehlo.dot_general"(%6, %arg4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
    %10 = "stablehlo.add"(%arg3, %9) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    "func.return"(%10, %8) : (tensor<2x8xf32>, tensor<8x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x8x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<3x8x8xf32>, sym_name = "dynamic_update_index_in_dim_2", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<3x8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>):
    %0 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.dynamic_update_slice"(%arg0, %0, %arg2, %1, %2) : (tensor<3x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x8xf32>
    "func.return"(%3) : (tensor<3x8x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
