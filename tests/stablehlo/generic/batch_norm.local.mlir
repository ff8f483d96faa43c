"builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["R"=8]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "R", size = 8 : i64}]}} : () -> ()
  "func.func"() <{function_type = (tensor<32x8xf32>, tensor<8xf32>) -> tensor<32x8xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<32x8xf32>, %arg1: tensor<8xf32>):
    %0 = "sdy.manual_computation"(%arg0, %arg1) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"R"}, {}]>, <@mesh, [{}]>]>, manual_axes = #sdy<manual_axes{"R"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"R"}, {}]>]>}> ({
    ^bb0(%arg2: tensor<4x8xf32>, %arg3: tensor<8xf32>):
      %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %2 = "stablehlo.reduce"(%arg2, %1) <{dimensions = array<i64: 0>}> ({
      ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
        %39 = "stablehlo.add"(%arg10, %arg11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%39) : (tensor<f32>) -> ()
      }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %3 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
      %5 = "stablehlo.divide"(%2, %4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %6 = "stablehlo.all_reduce"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %38 = "stablehlo.add"(%arg8, %arg9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%38) : (tensor<f32>) -> ()
      }) : (tensor<8xf32>) -> tensor<8xf32>
      %7 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
      %9 = "stablehlo.divide"(%6, %8) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
      %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %12 = "stablehlo.subtract"(%arg2, %11) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %13 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
      %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %15 = "stablehlo.subtract"(%arg2, %14) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %16 = "stablehlo.multiply"(%15, %15) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %17 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %18 = "stablehlo.reduce"(%16, %17) <{dimensions = array<i64: 0>}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %37 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%37) : (tensor<f32>) -> ()
      }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %19 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
      %21 = "stablehlo.divide"(%18, %20) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %22 = "stablehlo.all_reduce"(%21) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %36 = "stablehlo.add"(%arg4, %arg5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%36) : (tensor<f32>) -> ()
      }) : (tensor<8xf32>) -> tensor<8xf32>
      %23 = "stablehlo.constant"() <{value = dense<8.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %24 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
      %25 = "stablehlo.divide"(%22, %24) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %26 = "stablehlo.constant"() <{value = dense<9.99999974E-6> : tensor<f32>}> : () -> tensor<f32>
      %27 = "stablehlo.broadcast_in_dim"(%26) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
      %28 = "stablehlo.add"(%25, %27) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %29 = "stablehlo.rsqrt"(%28) : (tensor<8xf32>) -> tensor<8xf32>
      %30 = "stablehlo.broadcast_in_dim"(%29) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
      %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %32 = "stablehlo.multiply"(%12, %31) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %33 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64: 1>}> : (tensor<8xf32>) -> tensor<1x8xf32>
      %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> tensor<4x8xf32>
      %35 = "stablehlo.multiply"(%32, %34) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      "sdy.return"(%35) : (tensor<4x8xf32>) -> ()
    }) : (tensor<32x8xf32>, tensor<8xf32>) -> tensor<32x8xf32>
    "func.return"(%0) : (tensor<32x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
