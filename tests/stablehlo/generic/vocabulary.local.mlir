"builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["R"=8]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}} : () -> ()
  "func.func"() <{function_type = (tensor<64x8xf32>, tensor<4x6xi32>) -> tensor<4x6x8xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg9: tensor<64x8xf32>, %arg10: tensor<4x6xi32>):
    %16 = "sdy.manual_computation"(%arg9, %arg10) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"R"}, {}]>, <@mesh, [{}, {}]>]>, manual_axes = #sdy<manual_axes{"R"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>}> ({
    ^bb0(%arg11: tensor<8x8xf32>, %arg12: tensor<4x6xi32>):
      %17 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %18 = "stablehlo.constant"() <{value = dense<63> : tensor<i32>}> : () -> tensor<i32>
      %19 = "func.call"(%arg12, %17, %18) <{callee = @clip}> : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
      %20 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
      %21 = "stablehlo.constant"() <{value = dense<8> : tensor<ui32>}> : () -> tensor<ui32>
      %22 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %23 = "stablehlo.divide"(%22, %20) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %24 = "stablehlo.remainder"(%23, %21) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %25 = "stablehlo.convert"(%24) : (tensor<ui32>) -> tensor<i32>
      %26 = "stablehlo.constant"() <{value = dense<8> : tensor<i32>}> : () -> tensor<i32>
      %27 = "stablehlo.multiply"(%25, %26) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %28 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
      %29 = "stablehlo.subtract"(%19, %28) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %30 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
      %32 = "stablehlo.compare"(%29, %31) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %33 = "stablehlo.constant"() <{value = dense<8> : tensor<i32>}> : () -> tensor<i32>
      %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
      %35 = "stablehlo.compare"(%29, %34) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %36 = "stablehlo.and"(%32, %35) : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
      %37 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %38 = "stablehlo.constant"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32>
      %39 = "func.call"(%29, %37, %38) <{callee = @clip_0}> : (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>
      %40 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x6xi1>) -> tensor<4x6x1xi1>
      %41 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %42 = "stablehlo.broadcast_in_dim"(%41) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
      %43 = "stablehlo.compare"(%39, %42) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi1>
      %44 = "stablehlo.constant"() <{value = dense<8> : tensor<i32>}> : () -> tensor<i32>
      %45 = "stablehlo.broadcast_in_dim"(%44) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
      %46 = "stablehlo.add"(%39, %45) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %47 = "stablehlo.select"(%43, %46, %39) : (tensor<4x6xi1>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
      %48 = "stablehlo.broadcast_in_dim"(%47) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<4x6xi32>) -> tensor<4x6x1xi32>
      %49 = "stablehlo.gather"(%arg11, %48) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<8x8xf32>, tensor<4x6x1xi32>) -> tensor<4x6x8xf32>
      %50 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %51 = "func.call"(%40, %49, %50) <{callee = @_where}> : (tensor<4x6x1xi1>, tensor<4x6x8xf32>, tensor<i32>) -> tensor<4x6x8xf32>
      %52 = "stablehlo.all_reduce"(%51) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
        %53 = "stablehlo.add"(%arg13, %arg14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%53) : (tensor<f32>) -> ()
      }) : (tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
      "sdy.return"(%52) : (tensor<4x6x8xf32>) -> ()
    }) : (tensor<64x8xf32>, tensor<4x6xi32>) -> tensor<4x6x8xf32>
    "func.return"(%16) : (tensor<4x6x8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>, sym_name = "clip", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<4x6xi32>, %arg7: tensor<i32>, %arg8: tensor<i32>):
    %10 = "stablehlo.convert"(%arg7) : (tensor<i32>) -> tensor<i32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
    %12 = "stablehlo.maximum"(%11, %arg6) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    %13 = "stablehlo.convert"(%arg8) : (tensor<i32>) -> tensor<i32>
    %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
    %15 = "stablehlo.minimum"(%14, %12) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    "func.return"(%15) : (tensor<4x6xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x6xi32>, tensor<i32>, tensor<i32>) -> tensor<4x6xi32>, sym_name = "clip_0", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<4x6xi32>, %arg4: tensor<i32>, %arg5: tensor<i32>):
    %4 = "stablehlo.convert"(%arg4) : (tensor<i32>) -> tensor<i32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
    %6 = "stablehlo.maximum"(%5, %arg3) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    %7 = "stablehlo.convert"(%arg5) : (tensor<i32>) -> tensor<i32>
    %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4x6xi32>
    %9 = "stablehlo.minimum"(%8, %6) : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>
    "func.return"(%9) : (tensor<4x6xi32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4x6x1xi1>, tensor<4x6x8xf32>, tensor<i32>) -> tensor<4x6x8xf32>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4x6x1xi1>, %arg1: tensor<4x6x8xf32>, %arg2: tensor<i32>):
    %0 = "stablehlo.convert"(%arg2) : (tensor<i32>) -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<4x6x1xi1>) -> tensor<4x6x8xi1>
    %2 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x6x8xf32>
    %3 = "stablehlo.select"(%1, %arg1, %2) : (tensor<4x6x8xi1>, tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
    "func.return"(%3) : (tensor<4x6x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
