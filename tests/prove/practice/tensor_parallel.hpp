/// Tensor parallelism as people write it by hand: Megatron, vocabularies, experts, softmax over a
/// sharded dimension.
#pragma once

#include "cases.hpp"

namespace practice {

inline std::vector<practice_case> tensor_parallel() {
  return {
      // Columns of the first matrix, rows of the second one, one reduction; its bias is added after
      // that.
      {"Megatron MLP",
       R"(func @main(%x: tensor<8x4xf32>, %w1: tensor<4x16xf32>, %b1: tensor<16xf32>, %w2: tensor<16x4xf32>, %b2: tensor<4xf32>) {
  %p = matmul(%x, %w1) : tensor<8x16xf32>
  %bb1 = broadcast_in_dim(%b1) {dims=[1]} : tensor<8x16xf32>
  %h = add(%p, %bb1) : tensor<8x16xf32>
  %zero = constant {0} : tensor<f32>
  %a = maximum(%h, %zero) : tensor<8x16xf32>
  %z = matmul(%a, %w2) : tensor<8x4xf32>
  %bb2 = broadcast_in_dim(%b2) {dims=[1]} : tensor<8x4xf32>
  %y = add(%z, %bb2) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%x: tensor<4x4xf32>, %w1: tensor<4x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x4xf32>, %b2: tensor<4xf32>) attributes {mesh = {"B":2, "M":2}} {
  %bb1 = broadcast_in_dim(%b1) {dims=[1]} : tensor<4x8xf32>
  %p = matmul(%x, %w1) : tensor<4x8xf32>
  %h = add(%bb1, %p) : tensor<4x8xf32>
  %zero = constant {0} : tensor<f32>
  %a = maximum(%zero, %h) : tensor<4x8xf32>
  %part = matmul(%a, %w2) : tensor<4x4xf32>
  %z = all_reduce <"M"> %part : tensor<4x4xf32>
  %bb2 = broadcast_in_dim(%b2) {dims=[1]} : tensor<4x4xf32>
  %y = add(%z, %bb2) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([{}, {"M"}])", R"([{"M"}])", R"([{"M"}, {}])", R"([{}])"},
       {R"([{"B"}, {}])"},
       {
           {"the bias is added before the reduction",
            {{R"(  %z = all_reduce <"M"> %part : tensor<4x4xf32>
  %bb2 = broadcast_in_dim(%b2) {dims=[1]} : tensor<4x4xf32>
  %y = add(%z, %bb2) : tensor<4x4xf32>
)",
              R"(  %bb2 = broadcast_in_dim(%b2) {dims=[1]} : tensor<4x4xf32>
  %z = add(%part, %bb2) : tensor<4x4xf32>
  %y = all_reduce <"M"> %z : tensor<4x4xf32>
)"}},
            {"%z"}},
           {"not reduced",
            {{R"(  %y = add(%z, %bb2) : tensor<4x4xf32>
)",
              R"(  %y = add(%part, %bb2) : tensor<4x4xf32>
)"}},
            {"%y"}},
           {"reduced over the wrong axis",
            {{R"(  %z = all_reduce <"M"> %part : tensor<4x4xf32>
)",
              R"(  %z = all_reduce <"B"> %part : tensor<4x4xf32>
)"}},
            {"%z"}},
       },
       equality::exactly,
       4},
      // Activations are kept transposed, as column vectors.
      {"Megatron MLP, features first",
       R"(func @main(%x: tensor<8x4xf32>, %w1: tensor<4x16xf32>, %b1: tensor<16xf32>, %w2: tensor<16x4xf32>, %b2: tensor<4xf32>) {
  %p = matmul(%x, %w1) : tensor<8x16xf32>
  %bb1 = broadcast_in_dim(%b1) {dims=[1]} : tensor<8x16xf32>
  %h = add(%p, %bb1) : tensor<8x16xf32>
  %zero = constant {0} : tensor<f32>
  %a = maximum(%h, %zero) : tensor<8x16xf32>
  %z = matmul(%a, %w2) : tensor<8x4xf32>
  %bb2 = broadcast_in_dim(%b2) {dims=[1]} : tensor<8x4xf32>
  %y = add(%z, %bb2) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%x: tensor<4x4xf32>, %w1: tensor<4x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x4xf32>, %b2: tensor<4xf32>) attributes {mesh = {"B":2, "M":2}} {
  %xt = transpose(%x) {dims=[1, 0]} : tensor<4x4xf32>
  %p = dot_general(%w1, %xt) {contract=[0]x[0]} : tensor<8x4xf32>
  %bb1 = broadcast_in_dim(%b1) {dims=[0]} : tensor<8x4xf32>
  %h = add(%p, %bb1) : tensor<8x4xf32>
  %zero = constant {0} : tensor<f32>
  %a = maximum(%h, %zero) : tensor<8x4xf32>
  %part = dot_general(%w2, %a) {contract=[0]x[0]} : tensor<4x4xf32>
  %z = all_reduce <"M"> %part : tensor<4x4xf32>
  %bb2 = broadcast_in_dim(%b2) {dims=[0]} : tensor<4x4xf32>
  %yt = add(%z, %bb2) : tensor<4x4xf32>
  %y = transpose(%yt) {dims=[1, 0]} : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([{}, {"M"}])", R"([{"M"}])", R"([{"M"}, {}])", R"([{}])"},
       {R"([{"B"}, {}])"},
       {
           {"not transposed back",
            {{R"(  %y = transpose(%yt) {dims=[1, 0]} : tensor<4x4xf32>
)",
              R"(  %y = tag "y" %yt : tensor<4x4xf32>
)"}},
            {"%y"}},
           {"activation of partial sums",
            {{R"(  %z = all_reduce <"M"> %part : tensor<4x4xf32>
)",
              R"(  %early = maximum(%part, %zero) : tensor<4x4xf32>
  %z = all_reduce <"M"> %early : tensor<4x4xf32>
)"}},
            {"%early"}},
       },
       equality::exactly,
       4},
      // The cotangent of the input is a sum over the columns, that of the parameters a sum over the
      // batch.
      {"Megatron MLP, backward",
       R"(func @main(%x: tensor<8x4xf32>, %w1: tensor<4x16xf32>, %w2: tensor<16x4xf32>, %dy: tensor<8x4xf32>) {
  %h = matmul(%x, %w1) : tensor<8x16xf32>
  %zero = constant {0} : tensor<f32>
  %on = compare(%h, %zero) {gt} : tensor<8x16xi1>
  %a = select(%on, %h, %zero) : tensor<8x16xf32>
  %g2 = dot_general(%a, %dy) {contract=[0]x[0]} : tensor<16x4xf32>
  %da = dot_general(%dy, %w2) {contract=[1]x[1]} : tensor<8x16xf32>
  %dh = select(%on, %da, %zero) : tensor<8x16xf32>
  %g1 = dot_general(%x, %dh) {contract=[0]x[0]} : tensor<4x16xf32>
  %dx = dot_general(%dh, %w1) {contract=[1]x[1]} : tensor<8x4xf32>
  return %dx, %g1, %g2 : tensor<8x4xf32>, tensor<4x16xf32>, tensor<16x4xf32>
}
)",
       R"(func @main(%x: tensor<4x4xf32>, %w1: tensor<4x8xf32>, %w2: tensor<8x4xf32>, %dy: tensor<4x4xf32>) attributes {mesh = {"B":2, "M":2}} {
  %h = matmul(%x, %w1) : tensor<4x8xf32>
  %zero = constant {0} : tensor<f32>
  %on = compare(%h, %zero) {gt} : tensor<4x8xi1>
  %t = transpose(%w2) {dims=[1, 0]} : tensor<4x8xf32>
  %da = matmul(%dy, %t) : tensor<4x8xf32>
  %dh = select(%on, %da, %zero) : tensor<4x8xf32>
  %back = dot_general(%dh, %w1) {contract=[1]x[1]} : tensor<4x4xf32>
  %dx = all_reduce <"M"> %back : tensor<4x4xf32>
  %p1 = dot_general(%x, %dh) {contract=[0]x[0]} : tensor<4x8xf32>
  %g1 = all_reduce <"B"> %p1 : tensor<4x8xf32>
  %a = select(%on, %h, %zero) : tensor<4x8xf32>
  %p2 = dot_general(%a, %dy) {contract=[0]x[0]} : tensor<8x4xf32>
  %g2 = all_reduce <"B"> %p2 : tensor<8x4xf32>
  return %dx, %g1, %g2 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([{}, {"M"}])", R"([{"M"}, {}])", R"([{"B"}, {}])"},
       {R"([{"B"}, {}])", R"([{}, {"M"}])", R"([{"M"}, {}])"},
       {
           {"the cotangent of the input is not reduced",
            {{R"(  return %dx, %g1, %g2 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
)",
              R"(  return %back, %g1, %g2 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
)"}},
            {"%back"}},
           {"a gradient is reduced over the wrong axis",
            {{R"(  %g1 = all_reduce <"B"> %p1 : tensor<4x8xf32>
)",
              R"(  %g1 = all_reduce <"M"> %p1 : tensor<4x8xf32>
)"}},
            {"%g1"}},
           {"a gradient is reduced over all axes",
            {{R"(  %g2 = all_reduce <"B"> %p2 : tensor<8x4xf32>
)",
              R"(  %g2 = all_reduce <"B", "M"> %p2 : tensor<8x4xf32>
)"}},
            {"%g2"}},
           {"a gradient is not reduced",
            {{R"(  return %dx, %g1, %g2 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
)",
              R"(  return %dx, %g1, %p2 : tensor<4x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>
)"}},
            {"%p2"}},
       },
       equality::exactly,
       4},
      // Two of four heads on each device; the projection after them is a sum over heads.
      {"Megatron attention",
       R"(func @main(%x: tensor<8x6xf32>, %wq: tensor<6x4x2xf32>, %wk: tensor<6x4x2xf32>, %wv: tensor<6x4x2xf32>, %wo: tensor<4x2x6xf32>) {
  %q = dot_general(%x, %wq) {contract=[1]x[0]} : tensor<8x4x2xf32>
  %k = dot_general(%x, %wk) {contract=[1]x[0]} : tensor<8x4x2xf32>
  %v = dot_general(%x, %wv) {contract=[1]x[0]} : tensor<8x4x2xf32>
  %qk = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<4x8x8xf32>
  %c = constant {0.5} : tensor<f32>
  %scaled = multiply(%qk, %c) : tensor<4x8x8xf32>
  %i = iota {dim=0} : tensor<8x8xi32>
  %j = iota {dim=1} : tensor<8x8xi32>
  %seen = compare(%i, %j) {ge} : tensor<8x8xi1>
  %mask = broadcast_in_dim(%seen) {dims=[1, 2]} : tensor<4x8x8xi1>
  %never = constant {-1e9} : tensor<f32>
  %s = select(%mask, %scaled, %never) : tensor<4x8x8xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<4x8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<4x8x8xf32>
  %d = subtract(%s, %mm) : tensor<4x8x8xf32>
  %e = exp(%d) : tensor<4x8x8xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<4x8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<4x8x8xf32>
  %a = divide(%e, %ll) : tensor<4x8x8xf32>
  %o = dot_general(%a, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<4x8x2xf32>
  %y = dot_general(%o, %wo) {contract=[0, 2]x[0, 1]} : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
)",
       R"(func @main(%x: tensor<8x6xf32>, %wq: tensor<6x2x2xf32>, %wk: tensor<6x2x2xf32>, %wv: tensor<6x2x2xf32>, %wo: tensor<2x2x6xf32>) attributes {mesh = {"M":2}} {
  %q = dot_general(%x, %wq) {contract=[1]x[0]} : tensor<8x2x2xf32>
  %k = dot_general(%x, %wk) {contract=[1]x[0]} : tensor<8x2x2xf32>
  %v = dot_general(%x, %wv) {contract=[1]x[0]} : tensor<8x2x2xf32>
  %c = constant {0.5} : tensor<f32>
  %qk = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<2x8x8xf32>
  %scaled = multiply(%c, %qk) : tensor<2x8x8xf32>
  %i = iota {dim=0} : tensor<8x8xi32>
  %j = iota {dim=1} : tensor<8x8xi32>
  %seen = compare(%i, %j) {ge} : tensor<8x8xi1>
  %mask = broadcast_in_dim(%seen) {dims=[1, 2]} : tensor<2x8x8xi1>
  %never = constant {-1e9} : tensor<f32>
  %s = select(%mask, %scaled, %never) : tensor<2x8x8xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<2x8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<2x8x8xf32>
  %d = subtract(%s, %mm) : tensor<2x8x8xf32>
  %e = exp(%d) : tensor<2x8x8xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<2x8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<2x8x8xf32>
  %a = divide(%e, %ll) : tensor<2x8x8xf32>
  %o = dot_general(%a, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<2x8x2xf32>
  %part = dot_general(%o, %wo) {contract=[0, 2]x[0, 1]} : tensor<8x6xf32>
  %y = all_reduce <"M"> %part : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
)",
       {R"([{}, {}])", R"([{}, {"M"}, {}])", R"([{}, {"M"}, {}])", R"([{}, {"M"}, {}])",
        R"([{"M"}, {}, {}])"},
       {R"([{}, {}])"},
       {
           {"not reduced",
            {{R"(  return %y : tensor<8x6xf32>
)",
              R"(  return %part : tensor<8x6xf32>
)"}},
            {"%part"}},
           {"reduced twice",
            {{R"(  return %y : tensor<8x6xf32>
)",
              R"(  %y2 = all_reduce <"M"> %y : tensor<8x6xf32>
  return %y2 : tensor<8x6xf32>
)"}},
            {"%y2"}},
           {"scaled by the number of devices",
            {{R"(  %y = all_reduce <"M"> %part : tensor<8x6xf32>
)",
              R"(  %sum = all_reduce <"M"> %part : tensor<8x6xf32>
  %y = multiply(%sum, %c) : tensor<8x6xf32>
)"}},
            {"%y"}},
       },
       equality::up_to_sums,
       4},
      // The scale is a power of two: it may be applied to queries or to scores.
      {"attention, queries scaled",
       R"(func @main(%x: tensor<8x6xf32>, %wq: tensor<6x4x2xf32>, %wk: tensor<6x4x2xf32>, %wv: tensor<6x4x2xf32>, %wo: tensor<4x2x6xf32>) {
  %q = dot_general(%x, %wq) {contract=[1]x[0]} : tensor<8x4x2xf32>
  %k = dot_general(%x, %wk) {contract=[1]x[0]} : tensor<8x4x2xf32>
  %v = dot_general(%x, %wv) {contract=[1]x[0]} : tensor<8x4x2xf32>
  %qk = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<4x8x8xf32>
  %c = constant {0.5} : tensor<f32>
  %scaled = multiply(%qk, %c) : tensor<4x8x8xf32>
  %i = iota {dim=0} : tensor<8x8xi32>
  %j = iota {dim=1} : tensor<8x8xi32>
  %seen = compare(%i, %j) {ge} : tensor<8x8xi1>
  %mask = broadcast_in_dim(%seen) {dims=[1, 2]} : tensor<4x8x8xi1>
  %never = constant {-1e9} : tensor<f32>
  %s = select(%mask, %scaled, %never) : tensor<4x8x8xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<4x8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<4x8x8xf32>
  %d = subtract(%s, %mm) : tensor<4x8x8xf32>
  %e = exp(%d) : tensor<4x8x8xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<4x8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<4x8x8xf32>
  %a = divide(%e, %ll) : tensor<4x8x8xf32>
  %o = dot_general(%a, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<4x8x2xf32>
  %y = dot_general(%o, %wo) {contract=[0, 2]x[0, 1]} : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
)",
       R"(func @main(%x: tensor<8x6xf32>, %wq: tensor<6x2x2xf32>, %wk: tensor<6x2x2xf32>, %wv: tensor<6x2x2xf32>, %wo: tensor<2x2x6xf32>) attributes {mesh = {"M":2}} {
  %q = dot_general(%x, %wq) {contract=[1]x[0]} : tensor<8x2x2xf32>
  %k = dot_general(%x, %wk) {contract=[1]x[0]} : tensor<8x2x2xf32>
  %v = dot_general(%x, %wv) {contract=[1]x[0]} : tensor<8x2x2xf32>
  %c = constant {0.5} : tensor<f32>
  %qs = multiply(%q, %c) : tensor<8x2x2xf32>
  %scaled = dot_general(%qs, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<2x8x8xf32>
  %i = iota {dim=0} : tensor<8x8xi32>
  %j = iota {dim=1} : tensor<8x8xi32>
  %seen = compare(%i, %j) {ge} : tensor<8x8xi1>
  %mask = broadcast_in_dim(%seen) {dims=[1, 2]} : tensor<2x8x8xi1>
  %never = constant {-1e9} : tensor<f32>
  %s = select(%mask, %scaled, %never) : tensor<2x8x8xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<2x8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<2x8x8xf32>
  %d = subtract(%s, %mm) : tensor<2x8x8xf32>
  %e = exp(%d) : tensor<2x8x8xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<2x8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<2x8x8xf32>
  %a = divide(%e, %ll) : tensor<2x8x8xf32>
  %o = dot_general(%a, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<2x8x2xf32>
  %part = dot_general(%o, %wo) {contract=[0, 2]x[0, 1]} : tensor<8x6xf32>
  %y = all_reduce <"M"> %part : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
)",
       {R"([{}, {}])", R"([{}, {"M"}, {}])", R"([{}, {"M"}, {}])", R"([{}, {"M"}, {}])",
        R"([{"M"}, {}, {}])"},
       {R"([{}, {}])"},
       {
           {"queries and scores scaled",
            {{R"(  %m = reduce(%s) {max, dims=[2]} : tensor<2x8xf32>
)",
              R"(  %s2 = multiply(%s, %c) : tensor<2x8x8xf32>
  %m = reduce(%s2) {max, dims=[2]} : tensor<2x8xf32>
)"},
             {R"(  %d = subtract(%s, %mm) : tensor<2x8x8xf32>
)",
              R"(  %d = subtract(%s2, %mm) : tensor<2x8x8xf32>
)"}},
            {"%s2", "%m"}},
       },
       equality::up_to_sums,
       4},
      // One matrix for all three, sliced along the heads of each of them.
      {"fused queries, keys and values",
       R"(func @main(%x: tensor<8x6xf32>, %w: tensor<6x3x4x2xf32>) {
  %f = dot_general(%x, %w) {contract=[1]x[0]} : tensor<8x3x4x2xf32>
  %q3 = slice(%f) {[:, 0:1, :, :]} : tensor<8x1x4x2xf32>
  %q = reshape(%q3) : tensor<8x4x2xf32>
  %k3 = slice(%f) {[:, 1:2, :, :]} : tensor<8x1x4x2xf32>
  %k = reshape(%k3) : tensor<8x4x2xf32>
  %v3 = slice(%f) {[:, 2:3, :, :]} : tensor<8x1x4x2xf32>
  %v = reshape(%v3) : tensor<8x4x2xf32>
  %s = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<4x8x8xf32>
  %o = dot_general(%s, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<4x8x2xf32>
  return %o : tensor<4x8x2xf32>
}
)",
       R"(func @main(%x: tensor<8x6xf32>, %w: tensor<6x3x4x2xf32>) attributes {mesh = {"M":2}} {
  %ws = all_slice [{}, {}, {"M"}, {}] %w : tensor<6x3x2x2xf32>
  %f = dot_general(%x, %ws) {contract=[1]x[0]} : tensor<8x3x2x2xf32>
  %q3 = slice(%f) {[:, 0:1, :, :]} : tensor<8x1x2x2xf32>
  %q = reshape(%q3) : tensor<8x2x2xf32>
  %k3 = slice(%f) {[:, 1:2, :, :]} : tensor<8x1x2x2xf32>
  %k = reshape(%k3) : tensor<8x2x2xf32>
  %v3 = slice(%f) {[:, 2:3, :, :]} : tensor<8x1x2x2xf32>
  %v = reshape(%v3) : tensor<8x2x2xf32>
  %s = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<2x8x8xf32>
  %o = dot_general(%s, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<2x8x2xf32>
  return %o : tensor<2x8x2xf32>
}
)",
       {R"([{}, {}])", R"([{}, {}, {}, {}])"},
       {R"([{"M"}, {}, {}])"},
       {
           {"heads are split as columns of the fused matrix",
            {{R"(  %ws = all_slice [{}, {}, {"M"}, {}] %w : tensor<6x3x2x2xf32>
)",
              R"(  %columns = reshape(%w) : tensor<6x24xf32>
  %half = all_slice [{}, {"M"}] %columns : tensor<6x12xf32>
  %ws = reshape(%half) : tensor<6x3x2x2xf32>
)"}},
            {"%half", "%ws", "%f", "%q3", "%q", "%s"}},
       },
       equality::exactly,
       4},
      // Three heads on two devices: the last device has a head of padding, with equal attention
      // weights.
      {"heads split unevenly",
       R"(func @main(%q: tensor<8x3x2xf32>, %k: tensor<8x3x2xf32>) {
  %s = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<3x8x8xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<3x8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<3x8x8xf32>
  %d = subtract(%s, %mm) : tensor<3x8x8xf32>
  %e = exp(%d) : tensor<3x8x8xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<3x8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<3x8x8xf32>
  %a = divide(%e, %ll) : tensor<3x8x8xf32>
  %t = reduce(%a) {add, dims=[0]} : tensor<8x8xf32>
  %n = constant {3} : tensor<f32>
  %y = divide(%t, %n) : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
)",
       R"(func @main(%q: tensor<8x2x2xf32>, %k: tensor<8x2x2xf32>) attributes {mesh = {"M":2}} {
  %s = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<2x8x8xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<2x8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<2x8x8xf32>
  %d = subtract(%s, %mm) : tensor<2x8x8xf32>
  %e = exp(%d) : tensor<2x8x8xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<2x8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<2x8x8xf32>
  %a = divide(%e, %ll) : tensor<2x8x8xf32>
  %i = iota {dim=0} : tensor<2xi32>
  %start = shard_start {2 <"M">} : tensor<i32>
  %head = add(%start, %i) : tensor<2xi32>
  %heads = constant {3} : tensor<i32>
  %there = compare(%head, %heads) {lt} : tensor<2xi1>
  %mask = broadcast_in_dim(%there) {dims=[0]} : tensor<2x8x8xi1>
  %zero = constant {0} : tensor<f32>
  %only = select(%mask, %a, %zero) : tensor<2x8x8xf32>
  %part = reduce(%only) {add, dims=[0]} : tensor<8x8xf32>
  %t = all_reduce <"M"> %part : tensor<8x8xf32>
  %n = constant {3} : tensor<f32>
  %y = divide(%t, %n) : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
)",
       {R"([{}, {"M"}, {}])", R"([{}, {"M"}, {}])"},
       {R"([{}, {}])"},
       {
           {"the head of padding is summed",
            {{R"(  %part = reduce(%only) {add, dims=[0]} : tensor<8x8xf32>
)",
              R"(  %part = reduce(%a) {add, dims=[0]} : tensor<8x8xf32>
)"}},
            {"%part"}},
           {"the head of padding is counted",
            {{R"(  %n = constant {3} : tensor<f32>
)",
              R"(  %n = constant {4} : tensor<f32>
)"}},
            {"%y"}},
           {"heads are numbered from 0 on each device",
            {{R"(  %there = compare(%head, %heads) {lt} : tensor<2xi1>
)",
              R"(  %there = compare(%i, %heads) {lt} : tensor<2xi1>
)"}},
            {"%only", "%part"}},
       },
       equality::up_to_sums,
       4},
      // The maximum and the sum of exponentials are those of the global row.
      {"softmax over a sharded dimension",
       R"(func @main(%x: tensor<8x16xf32>) {
  %m = reduce(%x) {max, dims=[1]} : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x16xf32>
  %d = subtract(%x, %mm) : tensor<8x16xf32>
  %e = exp(%d) : tensor<8x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<8x16xf32>
  %y = divide(%e, %ll) : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
)",
       R"(func @main(%x: tensor<8x4xf32>) attributes {mesh = {"M":4}} {
  %pm = reduce(%x) {max, dims=[1]} : tensor<8xf32>
  %m = all_reduce <@max> <"M"> %pm : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x4xf32>
  %d = subtract(%x, %mm) : tensor<8x4xf32>
  %e = exp(%d) : tensor<8x4xf32>
  %pl = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %l = all_reduce <"M"> %pl : tensor<8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<8x4xf32>
  %y = divide(%e, %ll) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       {R"([{}, {"M"}])"},
       {R"([{}, {"M"}])"},
       {
           {"the maximum is not reduced",
            {{R"(  %m = all_reduce <@max> <"M"> %pm : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x4xf32>
)",
              R"(  %mm = broadcast_in_dim(%pm) {dims=[0]} : tensor<8x4xf32>
)"}},
            {"%d"}},
           {"the sum is not reduced",
            {{R"(  %l = all_reduce <"M"> %pl : tensor<8xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<8x4xf32>
)",
              R"(  %ll = broadcast_in_dim(%pl) {dims=[0]} : tensor<8x4xf32>
)"}},
            {"%y"}},
           {"the sum is a maximum",
            {{R"(  %l = all_reduce <"M"> %pl : tensor<8xf32>
)",
              R"(  %l = all_reduce <@max> <"M"> %pl : tensor<8xf32>
)"}},
            {"%l"}},
       },
       equality::up_to_sums,
       4},
      // The logit of the target is read on the device that has its class.
      {"vocabulary-parallel cross entropy",
       R"(func @main(%z: tensor<8x16xf32>, %t: tensor<8xi32>) {
  %m = reduce(%z) {max, dims=[1]} : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x16xf32>
  %d = subtract(%z, %mm) : tensor<8x16xf32>
  %e = exp(%d) : tensor<8x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %log = log(%l) : tensor<8xf32>
  %j = iota {dim=0} : tensor<16xi32>
  %cc = broadcast_in_dim(%j) {dims=[1]} : tensor<8x16xi32>
  %tt = broadcast_in_dim(%t) {dims=[0]} : tensor<8x16xi32>
  %is = compare(%tt, %cc) {eq} : tensor<8x16xi1>
  %zero = constant {0} : tensor<f32>
  %only = select(%is, %d, %zero) : tensor<8x16xf32>
  %target = reduce(%only) {add, dims=[1]} : tensor<8xf32>
  %each = subtract(%log, %target) : tensor<8xf32>
  %sum = reduce(%each) {add, dims=[0]} : tensor<f32>
  %c = constant {0.125} : tensor<f32>
  %loss = multiply(%sum, %c) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       R"(func @main(%z: tensor<8x4xf32>, %t: tensor<8xi32>) attributes {mesh = {"M":4}} {
  %pm = reduce(%z) {max, dims=[1]} : tensor<8xf32>
  %m = all_reduce <@max> <"M"> %pm : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x4xf32>
  %d = subtract(%z, %mm) : tensor<8x4xf32>
  %e = exp(%d) : tensor<8x4xf32>
  %pl = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %l = all_reduce <"M"> %pl : tensor<8xf32>
  %log = log(%l) : tensor<8xf32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %j = iota {dim=0} : tensor<4xi32>
  %class = add(%j, %start) : tensor<4xi32>
  %cc = broadcast_in_dim(%class) {dims=[1]} : tensor<8x4xi32>
  %tt = broadcast_in_dim(%t) {dims=[0]} : tensor<8x4xi32>
  %is = compare(%tt, %cc) {eq} : tensor<8x4xi1>
  %zero = constant {0} : tensor<f32>
  %only = select(%is, %d, %zero) : tensor<8x4xf32>
  %pt = reduce(%only) {add, dims=[1]} : tensor<8xf32>
  %target = all_reduce <"M"> %pt : tensor<8xf32>
  %each = subtract(%log, %target) : tensor<8xf32>
  %sum = reduce(%each) {add, dims=[0]} : tensor<f32>
  %c = constant {0.125} : tensor<f32>
  %loss = multiply(%c, %sum) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       {R"([{}, {"M"}])", R"([{}])"},
       {R"([])"},
       {
           {"classes are numbered from 0 on each device",
            {{R"(  %cc = broadcast_in_dim(%class) {dims=[1]} : tensor<8x4xi32>
)",
              R"(  %cc = broadcast_in_dim(%j) {dims=[1]} : tensor<8x4xi32>
)"}},
            {"%cc", "%is", "%only"}},
           {"the target's logit is not reduced",
            {{R"(  %each = subtract(%log, %target) : tensor<8xf32>
)",
              R"(  %each = subtract(%log, %pt) : tensor<8xf32>
)"}},
            {"%each"}},
           {"the maximum is not reduced",
            {{R"(  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x4xf32>
)",
              R"(  %mm = broadcast_in_dim(%pm) {dims=[0]} : tensor<8x4xf32>
)"}},
            {"%d"}},
           {"the logarithm is taken before the reduction",
            {{R"(  %l = all_reduce <"M"> %pl : tensor<8xf32>
  %log = log(%l) : tensor<8xf32>
)",
              R"(  %own = log(%pl) : tensor<8xf32>
  %log = all_reduce <"M"> %own : tensor<8xf32>
)"}},
            {"%own"}},
       },
       equality::up_to_sums,
       16},
      // As log_softmax writes it.
      {"vocabulary-parallel cross entropy, logarithms of all classes",
       R"(func @main(%z: tensor<8x16xf32>, %t: tensor<8xi32>) {
  %m = reduce(%z) {max, dims=[1]} : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x16xf32>
  %d = subtract(%z, %mm) : tensor<8x16xf32>
  %e = exp(%d) : tensor<8x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %log = log(%l) : tensor<8xf32>
  %ll = broadcast_in_dim(%log) {dims=[0]} : tensor<8x16xf32>
  %p = subtract(%d, %ll) : tensor<8x16xf32>
  %j = iota {dim=0} : tensor<16xi32>
  %cc = broadcast_in_dim(%j) {dims=[1]} : tensor<8x16xi32>
  %tt = broadcast_in_dim(%t) {dims=[0]} : tensor<8x16xi32>
  %is = compare(%tt, %cc) {eq} : tensor<8x16xi1>
  %zero = constant {0} : tensor<f32>
  %only = select(%is, %p, %zero) : tensor<8x16xf32>
  %sum = reduce(%only) {add, dims=[0, 1]} : tensor<f32>
  %c = constant {0.125} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<f32>
  %loss = negate(%mean) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       R"(func @main(%z: tensor<8x4xf32>, %t: tensor<8xi32>) attributes {mesh = {"M":4}} {
  %pm = reduce(%z) {max, dims=[1]} : tensor<8xf32>
  %m = all_reduce <@max> <"M"> %pm : tensor<8xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<8x4xf32>
  %d = subtract(%z, %mm) : tensor<8x4xf32>
  %e = exp(%d) : tensor<8x4xf32>
  %pl = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %l = all_reduce <"M"> %pl : tensor<8xf32>
  %log = log(%l) : tensor<8xf32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %j = iota {dim=0} : tensor<4xi32>
  %class = add(%j, %start) : tensor<4xi32>
  %cc = broadcast_in_dim(%class) {dims=[1]} : tensor<8x4xi32>
  %tt = broadcast_in_dim(%t) {dims=[0]} : tensor<8x4xi32>
  %is = compare(%tt, %cc) {eq} : tensor<8x4xi1>
  %zero = constant {0} : tensor<f32>
  %ll = broadcast_in_dim(%log) {dims=[0]} : tensor<8x4xf32>
  %p = subtract(%d, %ll) : tensor<8x4xf32>
  %only = select(%is, %p, %zero) : tensor<8x4xf32>
  %rows = reduce(%only) {add, dims=[1]} : tensor<8xf32>
  %part = reduce(%rows) {add, dims=[0]} : tensor<f32>
  %c = constant {0.125} : tensor<f32>
  %minus = negate(%part) : tensor<f32>
  %mean = multiply(%minus, %c) : tensor<f32>
  %loss = all_reduce <"M"> %mean : tensor<f32>
  return %loss : tensor<f32>
}
)",
       {R"([{}, {"M"}])", R"([{}])"},
       {R"([])"},
       {
           {"not reduced",
            {{R"(  return %loss : tensor<f32>
)",
              R"(  return %mean : tensor<f32>
)"}},
            {"%mean"}},
       },
       equality::up_to_sums,
       16},
      // Each device has four rows of the table and reads zeros for the others. A gather clamps, so
      // tokens are clamped first.
      {"a vocabulary-parallel embedding",
       R"(func @main(%table: tensor<16x4xf32>, %tokens: tensor<8xi32>) {
  %y = gather(%table, %tokens) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%table: tensor<4x4xf32>, %tokens: tensor<8xi32>) attributes {mesh = {"M":4}} {
  %first = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %token = clamp(%first, %tokens, %last) : tensor<8xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%token, %start) : tensor<8xi32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %first) {ge} : tensor<8xi1>
  %high = compare(%own, %rows) {lt} : tensor<8xi1>
  %here = and(%low, %high) : tensor<8xi1>
  %h = gather(%table, %own) : tensor<8x4xf32>
  %mask = broadcast_in_dim(%here) {dims=[0]} : tensor<8x4xi1>
  %zero = constant {0} : tensor<f32>
  %part = select(%mask, %h, %zero) : tensor<8x4xf32>
  %y = all_reduce <"M"> %part : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{}])"},
       {R"([{}, {}])"},
       {
           {"tokens of others are not masked",
            {{R"(  %y = all_reduce <"M"> %part : tensor<8x4xf32>
)",
              R"(  %y = all_reduce <"M"> %h : tensor<8x4xf32>
)"}},
            {"%h", "%y"}},
           {"tokens are not clamped, as a lookup does",
            {{R"(  %last = constant {15} : tensor<i32>
  %token = clamp(%first, %tokens, %last) : tensor<8xi32>
)",
              ""},
             {R"(subtract(%token, %start))", R"(subtract(%tokens, %start))"}},
            {"%h", "%part", "%y"}},
           {"local rows are looked up with global tokens",
            {{R"(  %h = gather(%table, %own) : tensor<8x4xf32>
)",
              R"(  %h = gather(%table, %token) : tensor<8x4xf32>
)"}},
            {"%h", "%part", "%y"}},
           {"not reduced",
            {{R"(  return %y : tensor<8x4xf32>
)",
              R"(  return %part : tensor<8x4xf32>
)"}},
            {"%part"}},
       },
       equality::exactly,
       16},
      // Tokens of other blocks read the first row, which is masked again; positions are sliced
      // after the reduction.
      {"a vocabulary-parallel embedding, other tokens masked twice",
       R"(func @main(%table: tensor<16x4xf32>, %tokens: tensor<8xi32>) {
  %y = gather(%table, %tokens) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%table: tensor<4x4xf32>, %tokens: tensor<8xi32>) attributes {mesh = {"M":4}} {
  %zero = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %below = minimum(%tokens, %last) : tensor<8xi32>
  %token = maximum(%below, %zero) : tensor<8xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %rows = constant {4} : tensor<i32>
  %end = add(%start, %rows) : tensor<i32>
  %before = compare(%token, %start) {lt} : tensor<8xi1>
  %behind = compare(%token, %end) {ge} : tensor<8xi1>
  %other = or(%before, %behind) : tensor<8xi1>
  %own = subtract(%token, %start) : tensor<8xi32>
  %row = select(%other, %zero, %own) : tensor<8xi32>
  %h = gather(%table, %row) : tensor<8x4xf32>
  %mask = broadcast_in_dim(%other) {dims=[0]} : tensor<8x4xi1>
  %nothing = constant {0} : tensor<f32>
  %part = select(%mask, %nothing, %h) : tensor<8x4xf32>
  %y = reduce_scatter [{"M"}, {}] %part : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{}])"},
       {R"([{"M"}, {}])"},
       {
           {"the first row of the next piece is taken for an own one",
            {{R"(%behind = compare(%token, %end) {ge})",
              R"(%behind = compare(%token, %end) {gt})"}},
            {"%part", "%y"}},
           {"tokens of others look up the first row",
            {{R"(%part = select(%mask, %nothing, %h))", R"(%part = select(%mask, %h, %h))"}},
            {"%part", "%y"}},
           {"a slice where a reduce_scatter is due",
            {{R"(reduce_scatter [{"M"}, {}])", R"(all_slice [{"M"}, {}])"}},
            {"%y"}},
           {"pieces of another size",
            {{R"(shard_start {4 <"M">})", R"(shard_start {3 <"M">})"}},
            {"%h", "%part", "%y"}},
       },
       equality::exactly,
       16},
      // A number of 0 or 1 for each token multiplies its row; tokens are sharded, too.
      {"a vocabulary-parallel embedding of a batch",
       R"(func @main(%table: tensor<8x4xf32>, %tokens: tensor<4x6xi32>) {
  %y = gather(%table, %tokens) : tensor<4x6x4xf32>
  return %y : tensor<4x6x4xf32>
}
)",
       R"(func @main(%table: tensor<4x4xf32>, %tokens: tensor<2x6xi32>) attributes {mesh = {"B":2, "M":2}} {
  %zero = constant {0} : tensor<i32>
  %last = constant {7} : tensor<i32>
  %token = clamp(%zero, %tokens, %last) : tensor<2x6xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%token, %start) : tensor<2x6xi32>
  %most = constant {3} : tensor<i32>
  %row = clamp(%zero, %own, %most) : tensor<2x6xi32>
  %here = compare(%row, %own) {eq} : tensor<2x6xi1>
  %low = compare(%own, %zero) {ge} : tensor<2x6xi1>
  %high = compare(%most, %own) {ge} : tensor<2x6xi1>
  %both = and(%low, %high) : tensor<2x6xi1>
  %h = gather(%table, %row) : tensor<2x6x4xf32>
  %number = convert(%both) : tensor<2x6xf32>
  %mask = broadcast_in_dim(%number) {dims=[0, 1]} : tensor<2x6x4xf32>
  %part = multiply(%mask, %h) : tensor<2x6x4xf32>
  %y = all_reduce <"M"> %part : tensor<2x6x4xf32>
  return %y : tensor<2x6x4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{"B"}, {}])"},
       {R"([{"B"}, {}, {}])"},
       {
           {"reduced over the wrong axis",
            {{R"(all_reduce <"M">)", R"(all_reduce <"B">)"}},
            {"%y"}},
           {"the last token is another one",
            {{"%last = constant {7}", "%last = constant {6}"}},
            {"%h", "%part", "%y"}},
           {"a mask of one side",
            {{R"(%number = convert(%both))", R"(%number = convert(%low))"}},
            {"%part", "%y"}},
       },
       equality::exactly,
       8},
      // The index drops rows of other devices; the batch is sharded, too.
      {"the gradient of a vocabulary-parallel embedding",
       R"(func @main(%tokens: tensor<8xi32>, %dy: tensor<8x4xf32>) {
  %zero = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %token = clamp(%zero, %tokens, %last) : tensor<8xi32>
  %g = scatter(%token, %dy) {add} : tensor<16x4xf32>
  return %g : tensor<16x4xf32>
}
)",
       R"(func @main(%tokens: tensor<4xi32>, %dy: tensor<4x4xf32>) attributes {mesh = {"B":2, "M":4}} {
  %zero = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %token = clamp(%zero, %tokens, %last) : tensor<4xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%token, %start) : tensor<4xi32>
  %part = scatter(%own, %dy) {add} : tensor<4x4xf32>
  %g = all_reduce <"B"> %part : tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}
)",
       {R"([{"B"}])", R"([{"B"}, {}])"},
       {R"([{"M"}, {}])"},
       {
           {"global indices in a local piece",
            {{"%part = scatter(%own, %dy)", "%part = scatter(%token, %dy)"}},
            {"%part", "%g"}},
           {"not reduced", {{"return %g", "return %part"}}, {"%part"}},
           {"reduced over the pieces", {{R"(all_reduce <"B">)", R"(all_reduce <"M">)"}}, {"%g"}},
       },
       equality::exactly,
       16},
      // Counts that start from earlier ones: one device starts from them, the others from zero.
      {"products of a batch, on top of earlier ones",
       R"(func @main(%old: tensor<6x4xf32>, %i: tensor<8xi32>, %u: tensor<8x4xf32>) {
  %y = scatter(%old, %i, %u) {multiply} : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
)",
       R"(func @main(%old: tensor<6x4xf32>, %i: tensor<2xi32>, %u: tensor<2x4xf32>) attributes {mesh = {"B":4}} {
  %start = shard_start {2 <"B">} : tensor<i32>
  %zero = constant {0} : tensor<i32>
  %first = compare(%start, %zero) {eq} : tensor<i1>
  %one = constant {1} : tensor<f32>
  %from = select(%first, %old, %one) : tensor<6x4xf32>
  %part = scatter(%from, %i, %u) {multiply} : tensor<6x4xf32>
  %y = all_reduce <@multiply> <"B"> %part : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
)",
       {R"([{}, {}])", R"([{"B"}])", R"([{"B"}, {}])"},
       {R"([{}, {}])"},
       {
           {"every device starts from the earlier ones",
            {{"scatter(%from, %i, %u)", "scatter(%old, %i, %u)"}},
            {"%part"}},
           {"the others start from zeros",
            {{"%one = constant {1}", "%one = constant {0}"}},
            {"%from", "%part", "%y"}},
           {"two devices start from the earlier ones",
            {{R"(shard_start {2 <"B">})", R"(shard_start {0 <"B">})"}},
            {"%from", "%part", "%y"}},
           {"updates are added",
            {{"scatter(%from, %i, %u) {multiply}", "scatter(%from, %i, %u) {add}"}},
            {"%from", "%part"}},
       },
       equality::exactly,
       6},
      // Bytes as tokens: they are counted from the start of the block in a wider type.
      {"a vocabulary-parallel embedding of bytes",
       R"(func @main(%table: tensor<16x4xf32>, %tokens: tensor<8xu8>) {
  %y = gather(%table, %tokens) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%table: tensor<4x4xf32>, %tokens: tensor<8xu8>) attributes {mesh = {"M":4}} {
  %first = constant {0} : tensor<u8>
  %last = constant {15} : tensor<u8>
  %token = clamp(%first, %tokens, %last) : tensor<8xu8>
  %wide = convert(%token) : tensor<8xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%wide, %start) : tensor<8xi32>
  %zero = constant {0} : tensor<i32>
  %nothing = constant {0} : tensor<f32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<8xi1>
  %high = compare(%own, %rows) {lt} : tensor<8xi1>
  %here = and(%low, %high) : tensor<8xi1>
  %h = gather(%table, %own) : tensor<8x4xf32>
  %mask = broadcast_in_dim(%here) {dims=[0]} : tensor<8x4xi1>
  %part = select(%mask, %h, %nothing) : tensor<8x4xf32>
  %y = all_reduce <"M"> %part : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{}])"},
       {R"([{}, {}])"},
       {
           {"a smaller last token",
            {{"%last = constant {15}", "%last = constant {14}"}},
            {"%h", "%part", "%y"}},
           {"the greatest where the sum is due",
            {{R"(all_reduce <"M"> %part)", R"(all_reduce <@max> <"M"> %part)"}},
            {"%y"}},
       },
       equality::exactly,
       40},
      {"one row of a table that is looked up by a byte",
       R"(func @main(%table: tensor<16x4xf32>, %token: tensor<u8>) {
  %y = gather(%table, %token) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
       R"(func @main(%table: tensor<4x4xf32>, %token: tensor<u8>) attributes {mesh = {"M":4}} {
  %first = constant {0} : tensor<u8>
  %last = constant {15} : tensor<u8>
  %clamped = clamp(%first, %token, %last) : tensor<u8>
  %wide = convert(%clamped) : tensor<i32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%wide, %start) : tensor<i32>
  %zero = constant {0} : tensor<i32>
  %nothing = constant {0} : tensor<f32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<i1>
  %high = compare(%own, %rows) {lt} : tensor<i1>
  %here = and(%low, %high) : tensor<i1>
  %h = gather(%table, %own) : tensor<4xf32>
  %mask = broadcast_in_dim(%here) {dims=[]} : tensor<4xi1>
  %part = select(%mask, %h, %nothing) : tensor<4xf32>
  %y = all_reduce <"M"> %part : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
       {R"([{"M"}, {}])", R"([])"},
       {R"([{}])"},
       {
           {"a smaller last token",
            {{"%last = constant {15}", "%last = constant {14}"}},
            {"%h", "%part", "%y"}},
           {"a token that is not clamped, but goes around",
            {{"%clamped = clamp(%first, %token, %last)", "%clamped = and(%token, %last)"}},
            {"%h", "%part", "%y"}},
       },
       equality::exactly,
       40},
      // Complete rows: their start is 0, whatever the source states.
      {"a column that is looked up by a byte",
       R"(func @main(%x: tensor<6x8xf32>, %p: tensor<i8>) {
  %y = dynamic_slice(%x, %p, %p) {sizes=[-1, 1]} : tensor<6x1xf32>
  return %y : tensor<6x1xf32>
}
)",
       R"(func @main(%x: tensor<6x4xf32>, %p: tensor<i8>) attributes {mesh = {"M":2}} {
  %first = constant {0} : tensor<i8>
  %last = constant {7} : tensor<i8>
  %clamped = clamp(%first, %p, %last) : tensor<i8>
  %wide = convert(%clamped) : tensor<i32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%wide, %start) : tensor<i32>
  %zero = constant {0} : tensor<i32>
  %nothing = constant {0} : tensor<f32>
  %columns = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<i1>
  %high = compare(%own, %columns) {lt} : tensor<i1>
  %here = and(%low, %high) : tensor<i1>
  %h = dynamic_slice(%x, %zero, %own) {sizes=[-1, 1]} : tensor<6x1xf32>
  %part = select(%here, %h, %nothing) : tensor<6x1xf32>
  %y = all_reduce <"M"> %part : tensor<6x1xf32>
  return %y : tensor<6x1xf32>
}
)",
       {R"([{}, {"M"}])", R"([])"},
       {R"([{}, {}])"},
       {
           {"a smaller last column",
            {{"%last = constant {7}", "%last = constant {6}"}},
            {"%h", "%part", "%y"}},
           {"the first column of each piece",
            {{"dynamic_slice(%x, %zero, %own)", "dynamic_slice(%x, %zero, %zero)"}},
            {"%h", "%part", "%y"}},
       },
       equality::exactly,
       40},
      // The same with masked updates: zeros are added to the first row.
      {"the gradient of a vocabulary-parallel embedding, masked",
       R"(func @main(%tokens: tensor<8xi32>, %dy: tensor<8x4xf32>) {
  %zero = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %token = clamp(%zero, %tokens, %last) : tensor<8xi32>
  %none = constant {0} : tensor<16x4xf32>
  %g = scatter(%none, %token, %dy) {add} : tensor<16x4xf32>
  return %g : tensor<16x4xf32>
}
)",
       R"(func @main(%tokens: tensor<8xi32>, %dy: tensor<8x4xf32>) attributes {mesh = {"M":4}} {
  %zero = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %token = clamp(%zero, %tokens, %last) : tensor<8xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%token, %start) : tensor<8xi32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<8xi1>
  %high = compare(%own, %rows) {lt} : tensor<8xi1>
  %here = and(%low, %high) : tensor<8xi1>
  %row = select(%here, %own, %zero) : tensor<8xi32>
  %mask = broadcast_in_dim(%here) {dims=[0]} : tensor<8x4xi1>
  %nothing = constant {0} : tensor<f32>
  %masked = select(%mask, %dy, %nothing) : tensor<8x4xf32>
  %none = constant {0} : tensor<4x4xf32>
  %g = scatter(%none, %row, %masked) {add} : tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}
)",
       {R"([{}])", R"([{}, {}])"},
       {R"([{"M"}, {}])"},
       {
           {"updates are not masked",
            {{"scatter(%none, %row, %masked)", "scatter(%none, %row, %dy)"}},
            {"%g"}},
           {"updates are assigned",
            {{"scatter(%none, %row, %masked) {add}", "scatter(%none, %row, %masked) {assign}"}},
            {"%g"}},
           {"the rows of another piece",
            {{R"(%own = subtract(%token, %start))", R"(%own = subtract(%start, %token))"}},
            {"%masked", "%g"}},
       },
       equality::exactly,
       16},
      // The logit of the target is read on its device, and reduced.
      {"vocabulary-parallel cross entropy, the target looked up",
       R"(func @main(%z: tensor<8x16xf32>, %t: tensor<8xi32>) {
  %e = exp(%z) : tensor<8x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<8xf32>
  %log = log(%l) : tensor<8xf32>
  %target = gather(%z, %t) {offset_dims=[], collapsed_slice_dims=[1], operand_batching_dims=[0], start_indices_batching_dims=[0], start_index_map=[1], index_vector_dim=1, slice_sizes=[1, 1]} : tensor<8xf32>
  %loss = subtract(%log, %target) : tensor<8xf32>
  return %loss : tensor<8xf32>
}
)",
       R"(func @main(%z: tensor<4x4xf32>, %t: tensor<4xi32>) attributes {mesh = {"B":2, "M":4}} {
  %e = exp(%z) : tensor<4x4xf32>
  %pl = reduce(%e) {add, dims=[1]} : tensor<4xf32>
  %l = all_reduce <"M"> %pl : tensor<4xf32>
  %log = log(%l) : tensor<4xf32>
  %zero = constant {0} : tensor<i32>
  %last = constant {15} : tensor<i32>
  %class = clamp(%zero, %t, %last) : tensor<4xi32>
  %start = shard_start {4 <"M">} : tensor<i32>
  %own = subtract(%class, %start) : tensor<4xi32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<4xi1>
  %high = compare(%own, %rows) {lt} : tensor<4xi1>
  %here = and(%low, %high) : tensor<4xi1>
  %row = select(%here, %own, %zero) : tensor<4xi32>
  %found = gather(%z, %row) {offset_dims=[], collapsed_slice_dims=[1], operand_batching_dims=[0], start_indices_batching_dims=[0], start_index_map=[1], index_vector_dim=1, slice_sizes=[1, 1]} : tensor<4xf32>
  %nothing = constant {0} : tensor<f32>
  %part = select(%here, %found, %nothing) : tensor<4xf32>
  %target = all_reduce <"M"> %part : tensor<4xf32>
  %loss = subtract(%log, %target) : tensor<4xf32>
  return %loss : tensor<4xf32>
}
)",
       {R"([{"B"}, {"M"}])", R"([{"B"}])"},
       {R"([{"B"}])"},
       {
           {"the target's logit is not masked",
            {{R"(all_reduce <"M"> %part)", R"(all_reduce <"M"> %found)"}},
            {"%target", "%loss"}},
           {"the target's logit is not reduced",
            {{"subtract(%log, %target)", "subtract(%log, %part)"}},
            {"%loss"}},
           {"reduced with the losses",
            {{R"(  %target = all_reduce <"M"> %part : tensor<4xf32>
  %loss = subtract(%log, %target) : tensor<4xf32>
)",
              R"(  %each = subtract(%log, %part) : tensor<4xf32>
  %loss = all_reduce <"M"> %each : tensor<4xf32>
)"}},
            {"%each"}},
       },
       equality::up_to_sums,
       16},
      // A nonlinear function of the combined outputs: of their sum over experts, which are sharded.
      {"outputs of experts",
       R"(func @main(%x: tensor<8x4xf32>, %w: tensor<4x4x6xf32>, %gate: tensor<8x4xf32>) {
  %h = dot_general(%x, %w) {contract=[1]x[1]} : tensor<8x4x6xf32>
  %g = broadcast_in_dim(%gate) {dims=[0, 1]} : tensor<8x4x6xf32>
  %p = multiply(%h, %g) : tensor<8x4x6xf32>
  %c = reduce(%p) {add, dims=[1]} : tensor<8x6xf32>
  %zero = constant {0} : tensor<f32>
  %y = maximum(%c, %zero) : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
)",
       R"(func @main(%x: tensor<8x4xf32>, %w: tensor<1x4x6xf32>, %gate: tensor<8x1xf32>) attributes {mesh = {"E":4}} {
  %w2 = reshape(%w) : tensor<4x6xf32>
  %h = matmul(%x, %w2) : tensor<8x6xf32>
  %own = reshape(%gate) : tensor<8xf32>
  %g = broadcast_in_dim(%own) {dims=[0]} : tensor<8x6xf32>
  %p = multiply(%g, %h) : tensor<8x6xf32>
  %c = all_reduce <"E"> %p : tensor<8x6xf32>
  %zero = constant {0} : tensor<f32>
  %y = maximum(%c, %zero) : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}
)",
       {R"([{}, {}])", R"([{"E"}, {}, {}])", R"([{}, {"E"}])"},
       {R"([{}, {}])"},
       {
           {"combined before the reduction of a nonlinear op",
            {{R"(  %c = all_reduce <"E"> %p : tensor<8x6xf32>
  %zero = constant {0} : tensor<f32>
  %y = maximum(%c, %zero) : tensor<8x6xf32>
)",
              R"(  %zero = constant {0} : tensor<f32>
  %c = maximum(%p, %zero) : tensor<8x6xf32>
  %y = all_reduce <"E"> %c : tensor<8x6xf32>
)"}},
            {"%c", "%y"}},
           {"the greatest where the sum is due",
            {{R"(  %c = all_reduce <"E"> %p : tensor<8x6xf32>
)",
              R"(  %c = all_reduce <@max> <"E"> %p : tensor<8x6xf32>
)"}},
            {"%c"}},
       },
       equality::exactly,
       4},
      // Tokens go to the device of their expert by all_to_all, and return by another one.
      {"expert parallelism",
       R"(func @main(%x: tensor<4x3x5xf32>, %send: tensor<4x3x4x2xf32>, %w1: tensor<4x5x6xf32>, %w2: tensor<4x6x5xf32>) {
  %in = dot_general(%send, %x) {batch=[0]x[0], contract=[1]x[1]} : tensor<4x4x2x5xf32>
  %h = dot_general(%in, %w1) {batch=[1]x[0], contract=[3]x[1]} : tensor<4x4x2x6xf32>
  %zero = constant {0} : tensor<f32>
  %a = maximum(%h, %zero) : tensor<4x4x2x6xf32>
  %o = dot_general(%a, %w2) {batch=[0]x[0], contract=[3]x[1]} : tensor<4x4x2x5xf32>
  %y = dot_general(%send, %o) {batch=[0]x[1], contract=[2, 3]x[0, 2]} : tensor<4x3x5xf32>
  return %y : tensor<4x3x5xf32>
}
)",
       R"(func @main(%x: tensor<1x3x5xf32>, %send: tensor<1x3x4x2xf32>, %w1: tensor<1x5x6xf32>, %w2: tensor<1x6x5xf32>) attributes {mesh = {"E":4}} {
  %in = dot_general(%send, %x) {batch=[0]x[0], contract=[1]x[1]} : tensor<1x4x2x5xf32>
  %there = all_to_all {0 -> 1} <"E"> %in : tensor<4x1x2x5xf32>
  %h = dot_general(%there, %w1) {batch=[1]x[0], contract=[3]x[1]} : tensor<1x4x2x6xf32>
  %zero = constant {0} : tensor<f32>
  %a = maximum(%h, %zero) : tensor<1x4x2x6xf32>
  %o = dot_general(%a, %w2) {batch=[0]x[0], contract=[3]x[1]} : tensor<1x4x2x5xf32>
  %back = all_to_all {0 -> 1} <"E"> %o : tensor<4x1x2x5xf32>
  %y = dot_general(%send, %back) {batch=[0]x[1], contract=[2, 3]x[0, 2]} : tensor<1x3x5xf32>
  return %y : tensor<1x3x5xf32>
}
)",
       {R"([{"E"}, {}, {}])", R"([{"E"}, {}, {}, {}])", R"([{"E"}, {}, {}])", R"([{"E"}, {}, {}])"},
       {R"([{"E"}, {}, {}])"},
       {
           {"tokens stay where they are",
            {{R"(  %there = all_to_all {0 -> 1} <"E"> %in : tensor<4x1x2x5xf32>
)",
              R"(  %there = reshape(%in) : tensor<4x1x2x5xf32>
)"}},
            {"%there", "%h"}},
           {"outputs stay where they are",
            {{R"(  %back = all_to_all {0 -> 1} <"E"> %o : tensor<4x1x2x5xf32>
)",
              R"(  %back = reshape(%o) : tensor<4x1x2x5xf32>
)"}},
            {"%back", "%y"}},
       },
       equality::exactly,
       4},
      // Of two layers and their mean squared error; the source has derivatives as reverse mode
      // writes them.
      {"a traced training step",
       R"(func @main(%params.w1: tensor<4x16xf32>, %params.b1: tensor<16xf32>, %params.w2: tensor<16x4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>) {
  %x1 = matmul(%x, %params.w1) : tensor<8x16xf32>
  %x2 = broadcast_in_dim(%params.b1) {dims=[1]} : tensor<8x16xf32>
  %x3 = add(%x1, %x2) : tensor<8x16xf32>
  %x4 = tanh(%x3) : tensor<8x16xf32>
  %x5 = matmul(%x4, %params.w2) : tensor<8x4xf32>
  %x6 = subtract(%x5, %y) : tensor<8x4xf32>
  %x7 = multiply(%x6, %x6) : tensor<8x4xf32>
  %x8 = reduce(%x7) {add, dims=[0, 1]} : tensor<f32>
  %x9 = constant {0.03125} : tensor<f32>
  %loss = multiply(%x8, %x9) : tensor<f32>
  %x10 = constant {1} : tensor<f32>
  %x11 = multiply(%x10, %x9) : tensor<f32>
  %x12 = broadcast_in_dim(%x11) {dims=[]} : tensor<8x4xf32>
  %x13 = multiply(%x12, %x6) : tensor<8x4xf32>
  %x14 = multiply(%x12, %x6) : tensor<8x4xf32>
  %x15 = add(%x13, %x14) : tensor<8x4xf32>
  %x16 = dot_general(%x4, %x15) {contract=[0]x[0]} : tensor<16x4xf32>
  %x17 = constant {0.25} : tensor<f32>
  %x18 = multiply(%x16, %x17) : tensor<16x4xf32>
  %params.w2' = subtract(%params.w2, %x18) : tensor<16x4xf32>
  %x19 = dot_general(%x15, %params.w2) {contract=[1]x[1]} : tensor<8x16xf32>
  %x20 = multiply(%x4, %x4) : tensor<8x16xf32>
  %x21 = subtract(%x10, %x20) : tensor<8x16xf32>
  %x22 = multiply(%x19, %x21) : tensor<8x16xf32>
  %x23 = reduce(%x22) {add, dims=[0]} : tensor<16xf32>
  %x24 = multiply(%x23, %x17) : tensor<16xf32>
  %params.b1' = subtract(%params.b1, %x24) : tensor<16xf32>
  %x25 = dot_general(%x, %x22) {contract=[0]x[0]} : tensor<4x16xf32>
  %x26 = multiply(%x25, %x17) : tensor<4x16xf32>
  %params.w1' = subtract(%params.w1, %x26) : tensor<4x16xf32>
  return %params.w1', %params.b1', %params.w2', %loss : tensor<4x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<f32>
}
)",
       R"(func @main(%w1: tensor<4x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x4xf32>, %x: tensor<4x4xf32>, %y: tensor<4x4xf32>) attributes {mesh = {"B":2, "M":2}} {
  %p = matmul(%x, %w1) : tensor<4x8xf32>
  %bb = broadcast_in_dim(%b1) {dims=[1]} : tensor<4x8xf32>
  %h = add(%p, %bb) : tensor<4x8xf32>
  %a = tanh(%h) : tensor<4x8xf32>
  %part = matmul(%a, %w2) : tensor<4x4xf32>
  %z = all_reduce <"M"> %part : tensor<4x4xf32>
  %e = subtract(%z, %y) : tensor<4x4xf32>
  %q = multiply(%e, %e) : tensor<4x4xf32>
  %t = reduce(%q) {add, dims=[0, 1]} : tensor<f32>
  %c = constant {0.03125} : tensor<f32>
  %own = multiply(%t, %c) : tensor<f32>
  %loss = all_reduce <"B"> %own : tensor<f32>
  %half = multiply(%e, %c) : tensor<4x4xf32>
  %de = add(%half, %half) : tensor<4x4xf32>
  %p2 = dot_general(%a, %de) {contract=[0]x[0]} : tensor<8x4xf32>
  %g2 = all_reduce <"B"> %p2 : tensor<8x4xf32>
  %da = dot_general(%de, %w2) {contract=[1]x[1]} : tensor<4x8xf32>
  %one = constant {1} : tensor<f32>
  %aa = multiply(%a, %a) : tensor<4x8xf32>
  %slope = subtract(%one, %aa) : tensor<4x8xf32>
  %dh = multiply(%slope, %da) : tensor<4x8xf32>
  %pb = reduce(%dh) {add, dims=[0]} : tensor<8xf32>
  %gb = all_reduce <"B"> %pb : tensor<8xf32>
  %p1 = dot_general(%x, %dh) {contract=[0]x[0]} : tensor<4x8xf32>
  %g1 = all_reduce <"B"> %p1 : tensor<4x8xf32>
  %rate = constant {0.25} : tensor<f32>
  %s1 = multiply(%rate, %g1) : tensor<4x8xf32>
  %w1' = subtract(%w1, %s1) : tensor<4x8xf32>
  %sb = multiply(%rate, %gb) : tensor<8xf32>
  %b1' = subtract(%b1, %sb) : tensor<8xf32>
  %s2 = multiply(%rate, %g2) : tensor<8x4xf32>
  %w2' = subtract(%w2, %s2) : tensor<8x4xf32>
  return %w1', %b1', %w2', %loss : tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<f32>
}
)",
       {R"([{}, {"M"}])", R"([{"M"}])", R"([{"M"}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([{}, {"M"}])", R"([{"M"}])", R"([{"M"}, {}])", R"([])"},
       {
           {"the bias' gradient is not reduced",
            {{R"(  %sb = multiply(%rate, %gb) : tensor<8xf32>
)",
              R"(  %sb = multiply(%rate, %pb) : tensor<8xf32>
)"}},
            {"%b1'"}},
           {"activations are not reduced",
            {{R"(  %e = subtract(%z, %y) : tensor<4x4xf32>
)",
              R"(  %e = subtract(%part, %y) : tensor<4x4xf32>
)"}},
            {"%e"}},
           {"the loss is that of the own rows",
            {{R"(  return %w1', %b1', %w2', %loss : tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<f32>
)",
              R"(  return %w1', %b1', %w2', %own : tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<f32>
)"}},
            {"%own"}},
           {"a gradient is reduced over the wrong axis",
            {{R"(  %g2 = all_reduce <"B"> %p2 : tensor<8x4xf32>
)",
              R"(  %g2 = all_reduce <"M"> %p2 : tensor<8x4xf32>
)"}},
            {"%g2"}},
       },
       equality::up_to_sums,
       4},
      // The derivative of a square as people write it, 2 e / n in one constant.
      {"a traced training step, two as a factor",
       R"(func @main(%params.w1: tensor<4x16xf32>, %params.b1: tensor<16xf32>, %params.w2: tensor<16x4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>) {
  %x1 = matmul(%x, %params.w1) : tensor<8x16xf32>
  %x2 = broadcast_in_dim(%params.b1) {dims=[1]} : tensor<8x16xf32>
  %x3 = add(%x1, %x2) : tensor<8x16xf32>
  %x4 = tanh(%x3) : tensor<8x16xf32>
  %x5 = matmul(%x4, %params.w2) : tensor<8x4xf32>
  %x6 = subtract(%x5, %y) : tensor<8x4xf32>
  %x7 = multiply(%x6, %x6) : tensor<8x4xf32>
  %x8 = reduce(%x7) {add, dims=[0, 1]} : tensor<f32>
  %x9 = constant {0.03125} : tensor<f32>
  %loss = multiply(%x8, %x9) : tensor<f32>
  %x10 = constant {1} : tensor<f32>
  %x11 = multiply(%x10, %x9) : tensor<f32>
  %x12 = broadcast_in_dim(%x11) {dims=[]} : tensor<8x4xf32>
  %x13 = multiply(%x12, %x6) : tensor<8x4xf32>
  %x14 = multiply(%x12, %x6) : tensor<8x4xf32>
  %x15 = add(%x13, %x14) : tensor<8x4xf32>
  %x16 = dot_general(%x4, %x15) {contract=[0]x[0]} : tensor<16x4xf32>
  %x17 = constant {0.25} : tensor<f32>
  %x18 = multiply(%x16, %x17) : tensor<16x4xf32>
  %params.w2' = subtract(%params.w2, %x18) : tensor<16x4xf32>
  %x19 = dot_general(%x15, %params.w2) {contract=[1]x[1]} : tensor<8x16xf32>
  %x20 = multiply(%x4, %x4) : tensor<8x16xf32>
  %x21 = subtract(%x10, %x20) : tensor<8x16xf32>
  %x22 = multiply(%x19, %x21) : tensor<8x16xf32>
  %x23 = reduce(%x22) {add, dims=[0]} : tensor<16xf32>
  %x24 = multiply(%x23, %x17) : tensor<16xf32>
  %params.b1' = subtract(%params.b1, %x24) : tensor<16xf32>
  %x25 = dot_general(%x, %x22) {contract=[0]x[0]} : tensor<4x16xf32>
  %x26 = multiply(%x25, %x17) : tensor<4x16xf32>
  %params.w1' = subtract(%params.w1, %x26) : tensor<4x16xf32>
  return %params.w1', %params.b1', %params.w2', %loss : tensor<4x16xf32>, tensor<16xf32>, tensor<16x4xf32>, tensor<f32>
}
)",
       R"(func @main(%w1: tensor<4x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x4xf32>, %x: tensor<4x4xf32>, %y: tensor<4x4xf32>) attributes {mesh = {"B":2, "M":2}} {
  %p = matmul(%x, %w1) : tensor<4x8xf32>
  %bb = broadcast_in_dim(%b1) {dims=[1]} : tensor<4x8xf32>
  %h = add(%p, %bb) : tensor<4x8xf32>
  %a = tanh(%h) : tensor<4x8xf32>
  %part = matmul(%a, %w2) : tensor<4x4xf32>
  %z = all_reduce <"M"> %part : tensor<4x4xf32>
  %e = subtract(%z, %y) : tensor<4x4xf32>
  %q = multiply(%e, %e) : tensor<4x4xf32>
  %t = reduce(%q) {add, dims=[0, 1]} : tensor<f32>
  %c = constant {0.03125} : tensor<f32>
  %own = multiply(%t, %c) : tensor<f32>
  %loss = all_reduce <"B"> %own : tensor<f32>
  %n = constant {0.0625} : tensor<f32>
  %de = multiply(%e, %n) : tensor<4x4xf32>
  %p2 = dot_general(%a, %de) {contract=[0]x[0]} : tensor<8x4xf32>
  %g2 = all_reduce <"B"> %p2 : tensor<8x4xf32>
  %da = dot_general(%de, %w2) {contract=[1]x[1]} : tensor<4x8xf32>
  %one = constant {1} : tensor<f32>
  %aa = multiply(%a, %a) : tensor<4x8xf32>
  %slope = subtract(%one, %aa) : tensor<4x8xf32>
  %dh = multiply(%slope, %da) : tensor<4x8xf32>
  %pb = reduce(%dh) {add, dims=[0]} : tensor<8xf32>
  %gb = all_reduce <"B"> %pb : tensor<8xf32>
  %p1 = dot_general(%x, %dh) {contract=[0]x[0]} : tensor<4x8xf32>
  %g1 = all_reduce <"B"> %p1 : tensor<4x8xf32>
  %rate = constant {0.25} : tensor<f32>
  %s1 = multiply(%rate, %g1) : tensor<4x8xf32>
  %w1' = subtract(%w1, %s1) : tensor<4x8xf32>
  %sb = multiply(%rate, %gb) : tensor<8xf32>
  %b1' = subtract(%b1, %sb) : tensor<8xf32>
  %s2 = multiply(%rate, %g2) : tensor<8x4xf32>
  %w2' = subtract(%w2, %s2) : tensor<8x4xf32>
  return %w1', %b1', %w2', %loss : tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<f32>
}
)",
       {R"([{}, {"M"}])", R"([{"M"}])", R"([{"M"}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([{}, {"M"}])", R"([{"M"}])", R"([{"M"}, {}])", R"([])"},
       {
           {"the factor forgotten",
            {{R"(  %n = constant {0.0625} : tensor<f32>
)",
              R"(  %n = constant {0.03125} : tensor<f32>
)"}},
            {"%de", "%p2", "%da", "%w1'"}},
       },
       equality::up_to_sums,
       4},
  };
}

}  // namespace practice
