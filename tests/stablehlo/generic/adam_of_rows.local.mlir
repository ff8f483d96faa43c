"builtin.module"() <{sym_name = "jit_adam_of_rows"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["R"=8]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}} : () -> ()
  "func.func"() <{function_type = (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>, tensor<16x32xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<32x8xf32>, %arg1: tensor<32x8xf32>, %arg2: tensor<32x8xf32>, %arg3: tensor<16x32xf32>):
    %0:3 = "sdy.manual_computation"(%arg0, %arg1, %arg2, %arg3) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>]>, manual_axes = #sdy<manual_axes{"R"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{"R"}, {}]>, <@mesh, [{"R"}, {}]>]>}> ({
    ^bb0(%arg4: tensor<32x8xf32>, %arg5: tensor<4x8xf32>, %arg6: tensor<4x8xf32>, %arg7: tensor<2x32xf32>):
      %1 = "stablehlo.dot_general"(%arg7, %arg4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x32xf32>, tensor<32x8xf32>) -> tensor<2x8xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
      %4 = "stablehlo.multiply"(%3, %1) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      %5 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %6 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<f32>}> : () -> tensor<f32>
      %7 = "stablehlo.divide"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x8xf32>
      %9 = "stablehlo.multiply"(%8, %4) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
      %10 = "stablehlo.dot_general"(%9, %arg7) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x8xf32>, tensor<2x32xf32>) -> tensor<8x32xf32>
      %11 = "stablehlo.transpose"(%10) <{permutation = array<i64: 1, 0>}> : (tensor<8x32xf32>) -> tensor<32x8xf32>
      %12 = "stablehlo.all_reduce"(%11) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %71 = "stablehlo.add"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%71) : (tensor<f32>) -> ()
      }) : (tensor<32x8xf32>) -> tensor<32x8xf32>
      %13 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<32x8xf32>
      %15 = "stablehlo.divide"(%12, %14) : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
      %16 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
      %17 = "stablehlo.constant"() <{value = dense<8> : tensor<ui32>}> : () -> tensor<ui32>
      %18 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %19 = "stablehlo.divide"(%18, %16) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %20 = "stablehlo.remainder"(%19, %17) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %21 = "stablehlo.convert"(%20) : (tensor<ui32>) -> tensor<i32>
      %22 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %23 = "stablehlo.multiply"(%21, %22) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %24 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %25 = "stablehlo.compare"(%23, %24) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %26 = "stablehlo.constant"() <{value = dense<32> : tensor<i32>}> : () -> tensor<i32>
      %27 = "stablehlo.add"(%23, %26) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %28 = "stablehlo.select"(%25, %27, %23) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %29 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %30 = "stablehlo.dynamic_slice"(%15, %28, %29) <{slice_sizes = array<i64: 4, 8>}> : (tensor<32x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
      %31 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
      %32 = "stablehlo.constant"() <{value = dense<8> : tensor<ui32>}> : () -> tensor<ui32>
      %33 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %34 = "stablehlo.divide"(%33, %31) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %35 = "stablehlo.remainder"(%34, %32) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %36 = "stablehlo.convert"(%35) : (tensor<ui32>) -> tensor<i32>
      %37 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %38 = "stablehlo.multiply"(%36, %37) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %39 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %40 = "stablehlo.compare"(%38, %39) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %41 = "stablehlo.constant"() <{value = dense<32> : tensor<i32>}> : () -> tensor<i32>
      %42 = "stablehlo.add"(%38, %41) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %43 = "stablehlo.select"(%40, %42, %38) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %44 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %45 = "stablehlo.dynamic_slice"(%arg4, %43, %44) <{slice_sizes = array<i64: 4, 8>}> : (tensor<32x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
      %46 = "stablehlo.constant"() <{value = dense<0.899999976> : tensor<f32>}> : () -> tensor<f32>
      %47 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x8xf32>
      %48 = "stablehlo.multiply"(%47, %arg5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %49 = "stablehlo.constant"() <{value = dense<1.000000e-01> : tensor<f32>}> : () -> tensor<f32>
      %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x8xf32>
      %51 = "stablehlo.multiply"(%50, %30) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %52 = "stablehlo.add"(%48, %51) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %53 = "stablehlo.constant"() <{value = dense<9.900000e-01> : tensor<f32>}> : () -> tensor<f32>
      %54 = "stablehlo.broadcast_in_dim"(%53) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x8xf32>
      %55 = "stablehlo.multiply"(%54, %arg6) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %56 = "stablehlo.constant"() <{value = dense<0.00999999977> : tensor<f32>}> : () -> tensor<f32>
      %57 = "stablehlo.broadcast_in_dim"(%56) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x8xf32>
      %58 = "stablehlo.multiply"(%57, %30) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %59 = "stablehlo.multiply"(%58, %30) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %60 = "stablehlo.add"(%55, %59) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %61 = "stablehlo.constant"() <{value = dense<1.000000e-03> : tensor<f32>}> : () -> tensor<f32>
      %62 = "stablehlo.broadcast_in_dim"(%61) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x8xf32>
      %63 = "stablehlo.multiply"(%62, %52) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %64 = "stablehlo.sqrt"(%60) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %65 = "stablehlo.constant"() <{value = dense<9.99999993E-9> : tensor<f32>}> : () -> tensor<f32>
      %66 = "stablehlo.broadcast_in_dim"(%65) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x8xf32>
      %67 = "stablehlo.add"(%64, %66) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %68 = "stablehlo.divide"(%63, %67) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %69 = "stablehlo.subtract"(%45, %68) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %70 = "stablehlo.all_gather"(%69) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<32x8xf32>
      "sdy.return"(%70, %52, %60) : (tensor<32x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> ()
    }) : (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>, tensor<16x32xf32>) -> (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
    "func.return"(%0#0, %0#1, %0#2) : (tensor<32x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
