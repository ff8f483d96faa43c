/// Data parallelism and sharded optimizers, as people write them by hand.
#pragma once

#include "cases.hpp"

namespace practice {

inline std::vector<practice_case> data_parallel() {
  return {
      // Scaled by the number of rows before the reduction.
      {"the gradient of a replicated parameter",
       R"(func @main(%w: tensor<4x6xf32>, %x: tensor<8x4xf32>, %y: tensor<8x6xf32>) {
  %h = matmul(%x, %w) : tensor<8x6xf32>
  %e = subtract(%h, %y) : tensor<8x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<4x6xf32>
  %c = constant {0.125} : tensor<f32>
  %s = multiply(%g, %c) : tensor<4x6xf32>
  %w' = subtract(%w, %s) : tensor<4x6xf32>
  return %w' : tensor<4x6xf32>
}
)",
       R"(func @main(%w: tensor<4x6xf32>, %x: tensor<4x4xf32>, %y: tensor<4x6xf32>) attributes {mesh = {"B":2, "M":2}} {
  %h = matmul(%x, %w) : tensor<4x6xf32>
  %e = subtract(%h, %y) : tensor<4x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<4x6xf32>
  %c = constant {0.125} : tensor<f32>
  %s = multiply(%g, %c) : tensor<4x6xf32>
  %r = all_reduce <"B"> %s : tensor<4x6xf32>
  %w' = subtract(%w, %r) : tensor<4x6xf32>
  return %w' : tensor<4x6xf32>
}
)",
       {R"([{}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([{}, {}])"},
       {
           {"not reduced",
            {{R"(  %r = all_reduce <"B"> %s : tensor<4x6xf32>
  %w' = subtract(%w, %r) : tensor<4x6xf32>
)",
              R"(  %w' = subtract(%w, %s) : tensor<4x6xf32>
)"}},
            {"%w'"}},
           {"reduced twice",
            {{R"(  %w' = subtract(%w, %r) : tensor<4x6xf32>
)",
              R"(  %r2 = all_reduce <"B"> %r : tensor<4x6xf32>
  %w' = subtract(%w, %r2) : tensor<4x6xf32>
)"}},
            {"%r2"}},
           {"reduced over the wrong axis",
            {{R"(  %r = all_reduce <"B"> %s : tensor<4x6xf32>
)",
              R"(  %r = all_reduce <"M"> %s : tensor<4x6xf32>
)"}},
            {"%r"}},
           {"reduced over all axes",
            {{R"(  %r = all_reduce <"B"> %s : tensor<4x6xf32>
)",
              R"(  %r = all_reduce <"B", "M"> %s : tensor<4x6xf32>
)"}},
            {"%r"}},
           {"a mean where the sum is due",
            {{R"(  %w' = subtract(%w, %r) : tensor<4x6xf32>
)",
              R"(  %half = constant {0.5} : tensor<f32>
  %mean = multiply(%r, %half) : tensor<4x6xf32>
  %w' = subtract(%w, %mean) : tensor<4x6xf32>
)"}},
            {"%mean", "%w'"}},
       },
       equality::exactly,
       4},
      // The sum of all rows first, then the mean.
      {"the gradient, scaled behind the reduction",
       R"(func @main(%w: tensor<4x6xf32>, %x: tensor<8x4xf32>, %y: tensor<8x6xf32>) {
  %h = matmul(%x, %w) : tensor<8x6xf32>
  %e = subtract(%h, %y) : tensor<8x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<4x6xf32>
  %c = constant {0.125} : tensor<f32>
  %s = multiply(%g, %c) : tensor<4x6xf32>
  %w' = subtract(%w, %s) : tensor<4x6xf32>
  return %w' : tensor<4x6xf32>
}
)",
       R"(func @main(%w: tensor<4x6xf32>, %x: tensor<4x4xf32>, %y: tensor<4x6xf32>) attributes {mesh = {"B":2, "M":2}} {
  %h = matmul(%x, %w) : tensor<4x6xf32>
  %e = subtract(%h, %y) : tensor<4x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<4x6xf32>
  %c = constant {0.125} : tensor<f32>
  %r = all_reduce <"B"> %g : tensor<4x6xf32>
  %s = multiply(%c, %r) : tensor<4x6xf32>
  %w' = subtract(%w, %s) : tensor<4x6xf32>
  return %w' : tensor<4x6xf32>
}
)",
       {R"([{}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([{}, {}])"},
       {
           {"a sum where the mean is due",
            {{R"(  %w' = subtract(%w, %s) : tensor<4x6xf32>
)",
              R"(  %w' = subtract(%w, %r) : tensor<4x6xf32>
)"}},
            {"%w'"}},
           {"the mean of the rows of a device",
            {{R"(  %c = constant {0.125} : tensor<f32>
)",
              R"(  %c = constant {0.25} : tensor<f32>
)"}},
            {"%s", "%w'"}},
       },
       equality::exactly,
       4},
      // Each device computes the mean of its four rows; then the means are averaged.
      {"the mean of means",
       R"(func @main(%w: tensor<4x6xf32>, %x: tensor<8x4xf32>, %y: tensor<8x6xf32>) {
  %h = matmul(%x, %w) : tensor<8x6xf32>
  %e = subtract(%h, %y) : tensor<8x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<4x6xf32>
  %c = constant {0.125} : tensor<f32>
  %s = multiply(%g, %c) : tensor<4x6xf32>
  %w' = subtract(%w, %s) : tensor<4x6xf32>
  return %w' : tensor<4x6xf32>
}
)",
       R"(func @main(%w: tensor<4x6xf32>, %x: tensor<4x4xf32>, %y: tensor<4x6xf32>) attributes {mesh = {"B":2, "M":2}} {
  %h = matmul(%x, %w) : tensor<4x6xf32>
  %e = subtract(%h, %y) : tensor<4x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<4x6xf32>
  %c = constant {0.25} : tensor<f32>
  %s = multiply(%g, %c) : tensor<4x6xf32>
  %r = all_reduce <"B"> %s : tensor<4x6xf32>
  %half = constant {0.5} : tensor<f32>
  %mean = multiply(%r, %half) : tensor<4x6xf32>
  %w' = subtract(%w, %mean) : tensor<4x6xf32>
  return %w' : tensor<4x6xf32>
}
)",
       {R"([{}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([{}, {}])"},
       {
           {"a sum of means",
            {{R"(  %w' = subtract(%w, %mean) : tensor<4x6xf32>
)",
              R"(  %w' = subtract(%w, %r) : tensor<4x6xf32>
)"}},
            {"%s", "%r", "%w'"}},
       },
       equality::exactly,
       4},
      // Five rows over four devices: the third has one row, the fourth none. Padding has an error
      // too, that of the bias.
      {"a padded batch",
       R"(func @main(%w: tensor<4x6xf32>, %b: tensor<6xf32>, %x: tensor<5x4xf32>, %y: tensor<5x6xf32>) {
  %h = matmul(%x, %w) : tensor<5x6xf32>
  %bb = broadcast_in_dim(%b) {dims=[1]} : tensor<5x6xf32>
  %z = add(%h, %bb) : tensor<5x6xf32>
  %e = subtract(%z, %y) : tensor<5x6xf32>
  %q = multiply(%e, %e) : tensor<5x6xf32>
  %t = reduce(%q) {add, dims=[0, 1]} : tensor<f32>
  %n = constant {5} : tensor<f32>
  %loss = divide(%t, %n) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       R"(func @main(%w: tensor<4x6xf32>, %b: tensor<6xf32>, %x: tensor<2x4xf32>, %y: tensor<2x6xf32>) attributes {mesh = {"B":4}} {
  %start = shard_start {2 <"B">} : tensor<i32>
  %i = iota {dim=0} : tensor<2xi32>
  %row = add(%i, %start) : tensor<2xi32>
  %rows = constant {5} : tensor<i32>
  %there = compare(%row, %rows) {lt} : tensor<2xi1>
  %mask = broadcast_in_dim(%there) {dims=[0]} : tensor<2x6xi1>
  %h = matmul(%x, %w) : tensor<2x6xf32>
  %bb = broadcast_in_dim(%b) {dims=[1]} : tensor<2x6xf32>
  %z = add(%bb, %h) : tensor<2x6xf32>
  %e = subtract(%z, %y) : tensor<2x6xf32>
  %q = multiply(%e, %e) : tensor<2x6xf32>
  %zero = constant {0} : tensor<f32>
  %m = select(%mask, %q, %zero) : tensor<2x6xf32>
  %t = reduce(%m) {add, dims=[0, 1]} : tensor<f32>
  %r = all_reduce <"B"> %t : tensor<f32>
  %n = constant {5} : tensor<f32>
  %loss = divide(%r, %n) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       {R"([{}, {}])", R"([{}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([])"},
       {
           {"padding is counted",
            {{R"(  %n = constant {5} : tensor<f32>
)",
              R"(  %n = constant {8} : tensor<f32>
)"}},
            {"%loss"}},
           {"padding is summed",
            {{R"(  %t = reduce(%m) {add, dims=[0, 1]} : tensor<f32>
)",
              R"(  %t = reduce(%q) {add, dims=[0, 1]} : tensor<f32>
)"}},
            {"%t"}},
           {"rows are numbered from 0 on each device",
            {{R"(  %there = compare(%row, %rows) {lt} : tensor<2xi1>
)",
              R"(  %there = compare(%i, %rows) {lt} : tensor<2xi1>
)"}},
            {"%m", "%t"}},
           {"the mean of means",
            {{R"(  %r = all_reduce <"B"> %t : tensor<f32>
  %n = constant {5} : tensor<f32>
  %loss = divide(%r, %n) : tensor<f32>
)",
              R"(  %two = constant {2} : tensor<f32>
  %mean = divide(%t, %two) : tensor<f32>
  %r = all_reduce <"B"> %mean : tensor<f32>
  %n = constant {4} : tensor<f32>
  %loss = divide(%r, %n) : tensor<f32>
)"}},
            {"%mean", "%r", "%loss"}},
       },
       equality::exactly,
       4},
      // Numerator and denominator are reduced separately: devices have different sums of weights.
      {"a weighted mean",
       R"(func @main(%x: tensor<8x4xf32>, %m: tensor<8xf32>) {
  %q = multiply(%x, %x) : tensor<8x4xf32>
  %l = reduce(%q) {add, dims=[1]} : tensor<8xf32>
  %weight = multiply(%m, %m) : tensor<8xf32>
  %p = multiply(%l, %weight) : tensor<8xf32>
  %above = reduce(%p) {add, dims=[0]} : tensor<f32>
  %below = reduce(%weight) {add, dims=[0]} : tensor<f32>
  %loss = divide(%above, %below) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       R"(func @main(%x: tensor<2x4xf32>, %m: tensor<2xf32>) attributes {mesh = {"B":4}} {
  %weight = multiply(%m, %m) : tensor<2xf32>
  %part = reduce(%weight) {add, dims=[0]} : tensor<f32>
  %below = all_reduce <"B"> %part : tensor<f32>
  %q = multiply(%x, %x) : tensor<2x4xf32>
  %ww = broadcast_in_dim(%weight) {dims=[0]} : tensor<2x4xf32>
  %p = multiply(%ww, %q) : tensor<2x4xf32>
  %t = reduce(%p) {add, dims=[0, 1]} : tensor<f32>
  %above = all_reduce <"B"> %t : tensor<f32>
  %loss = divide(%above, %below) : tensor<f32>
  return %loss : tensor<f32>
}
)",
       {R"([{"B"}, {}])", R"([{"B"}])"},
       {R"([])"},
       {
           {"divided by the own weights only",
            {{R"(  %loss = divide(%above, %below) : tensor<f32>
)",
              R"(  %loss = divide(%above, %part) : tensor<f32>
)"}},
            {"%loss"}},
           {"the mean of means",
            {{R"(  %above = all_reduce <"B"> %t : tensor<f32>
  %loss = divide(%above, %below) : tensor<f32>
)",
              R"(  %own = divide(%t, %part) : tensor<f32>
  %sum = all_reduce <"B"> %own : tensor<f32>
  %devices = constant {4} : tensor<f32>
  %loss = divide(%sum, %devices) : tensor<f32>
)"}},
            {"%own"}},
       },
       equality::as_real_functions,
       4},
      // The table has two gradients, of the input and of the output layer, which are added before
      // the reduction.
      {"a tied embedding",
       R"(func @main(%table: tensor<16x4xf32>, %tokens: tensor<8xi32>, %y: tensor<8x16xf32>) {
  %h = gather(%table, %tokens) : tensor<8x4xf32>
  %z = dot_general(%h, %table) {contract=[1]x[1]} : tensor<8x16xf32>
  %e = subtract(%z, %y) : tensor<8x16xf32>
  %out = dot_general(%e, %h) {contract=[0]x[0]} : tensor<16x4xf32>
  %dh = matmul(%e, %table) : tensor<8x4xf32>
  %in = scatter(%tokens, %dh) {add} : tensor<16x4xf32>
  %g = add(%out, %in) : tensor<16x4xf32>
  %c = constant {0.125} : tensor<f32>
  %s = multiply(%g, %c) : tensor<16x4xf32>
  %table' = subtract(%table, %s) : tensor<16x4xf32>
  return %table' : tensor<16x4xf32>
}
)",
       R"(func @main(%table: tensor<16x4xf32>, %tokens: tensor<2xi32>, %y: tensor<2x16xf32>) attributes {mesh = {"B":4}} {
  %h = gather(%table, %tokens) : tensor<2x4xf32>
  %z = dot_general(%h, %table) {contract=[1]x[1]} : tensor<2x16xf32>
  %e = subtract(%z, %y) : tensor<2x16xf32>
  %dh = matmul(%e, %table) : tensor<2x4xf32>
  %in = scatter(%tokens, %dh) {add} : tensor<16x4xf32>
  %out = dot_general(%e, %h) {contract=[0]x[0]} : tensor<16x4xf32>
  %g = add(%in, %out) : tensor<16x4xf32>
  %r = all_reduce <"B"> %g : tensor<16x4xf32>
  %c = constant {0.125} : tensor<f32>
  %s = multiply(%r, %c) : tensor<16x4xf32>
  %table' = subtract(%table, %s) : tensor<16x4xf32>
  return %table' : tensor<16x4xf32>
}
)",
       {R"([{}, {}])", R"([{"B"}])", R"([{"B"}, {}])"},
       {R"([{}, {}])"},
       {
           {"reduced once",
            {{R"(  %g = add(%in, %out) : tensor<16x4xf32>
  %r = all_reduce <"B"> %g : tensor<16x4xf32>
)",
              R"(  %o = all_reduce <"B"> %out : tensor<16x4xf32>
  %r = add(%in, %o) : tensor<16x4xf32>
)"}},
            {"%r"}},
           {"one gradient forgotten",
            {{R"(  %r = all_reduce <"B"> %g : tensor<16x4xf32>
)",
              R"(  %r = all_reduce <"B"> %in : tensor<16x4xf32>
)"}},
            {"%s", "%table'"}},
       },
       equality::exactly,
       16},
      // One parameter is sharded, the bias is not: its squares count once.
      {"the norm of sharded gradients",
       R"(func @main(%g: tensor<8x4xf32>, %b: tensor<4xf32>) {
  %q = multiply(%g, %g) : tensor<8x4xf32>
  %n1 = reduce(%q) {add, dims=[0, 1]} : tensor<f32>
  %p = multiply(%b, %b) : tensor<4xf32>
  %n2 = reduce(%p) {add, dims=[0]} : tensor<f32>
  %n = add(%n1, %n2) : tensor<f32>
  %norm = sqrt(%n) : tensor<f32>
  %limit = constant {0.5} : tensor<f32>
  %most = maximum(%norm, %limit) : tensor<f32>
  %scale = divide(%limit, %most) : tensor<f32>
  %u = multiply(%g, %scale) : tensor<8x4xf32>
  %v = multiply(%b, %scale) : tensor<4xf32>
  return %u, %v : tensor<8x4xf32>, tensor<4xf32>
}
)",
       R"(func @main(%g: tensor<2x4xf32>, %b: tensor<4xf32>) attributes {mesh = {"M":4}} {
  %p = multiply(%b, %b) : tensor<4xf32>
  %n2 = reduce(%p) {add, dims=[0]} : tensor<f32>
  %q = multiply(%g, %g) : tensor<2x4xf32>
  %rows = reduce(%q) {add, dims=[1]} : tensor<2xf32>
  %part = reduce(%rows) {add, dims=[0]} : tensor<f32>
  %n1 = all_reduce <"M"> %part : tensor<f32>
  %n = add(%n2, %n1) : tensor<f32>
  %norm = sqrt(%n) : tensor<f32>
  %limit = constant {0.5} : tensor<f32>
  %most = maximum(%norm, %limit) : tensor<f32>
  %scale = divide(%limit, %most) : tensor<f32>
  %u = multiply(%g, %scale) : tensor<2x4xf32>
  %v = multiply(%b, %scale) : tensor<4xf32>
  return %u, %v : tensor<2x4xf32>, tensor<4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{}])"},
       {R"([{"M"}, {}])", R"([{}])"},
       {
           {"not reduced",
            {{R"(  %n1 = all_reduce <"M"> %part : tensor<f32>
  %n = add(%n2, %n1) : tensor<f32>
)",
              R"(  %n = add(%n2, %part) : tensor<f32>
)"}},
            {"%n"}},
           {"what is replicated counts on each device",
            {{R"(  %n1 = all_reduce <"M"> %part : tensor<f32>
  %n = add(%n2, %n1) : tensor<f32>
)",
              R"(  %own = add(%n2, %part) : tensor<f32>
  %n = all_reduce <"M"> %own : tensor<f32>
)"}},
            {"%own"}},
           {"reduced behind the root",
            {{R"(  %n1 = all_reduce <"M"> %part : tensor<f32>
  %n = add(%n2, %n1) : tensor<f32>
  %norm = sqrt(%n) : tensor<f32>
)",
              R"(  %root = sqrt(%part) : tensor<f32>
  %n1 = all_reduce <"M"> %root : tensor<f32>
  %n = add(%n2, %n1) : tensor<f32>
  %norm = sqrt(%n) : tensor<f32>
)"}},
            {"%root"}},
       },
       equality::up_to_sums,
       4},
      // All devices have the complete gradient, and each updates its shard of momentum and
      // parameters.
      {"ZeRO 1",
       R"(func @main(%w: tensor<8x6xf32>, %v: tensor<8x6xf32>, %x: tensor<16x8xf32>, %y: tensor<16x6xf32>) {
  %h = matmul(%x, %w) : tensor<16x6xf32>
  %e = subtract(%h, %y) : tensor<16x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<8x6xf32>
  %half = constant {0.5} : tensor<f32>
  %old = multiply(%v, %half) : tensor<8x6xf32>
  %v' = add(%old, %g) : tensor<8x6xf32>
  %rate = constant {0.25} : tensor<f32>
  %step = multiply(%v', %rate) : tensor<8x6xf32>
  %w' = subtract(%w, %step) : tensor<8x6xf32>
  return %w', %v' : tensor<8x6xf32>, tensor<8x6xf32>
}
)",
       R"(func @main(%w: tensor<8x6xf32>, %v: tensor<2x6xf32>, %x: tensor<4x8xf32>, %y: tensor<4x6xf32>) attributes {mesh = {"D":2, "B":2}} {
  %h = matmul(%x, %w) : tensor<4x6xf32>
  %e = subtract(%h, %y) : tensor<4x6xf32>
  %part = dot_general(%x, %e) {contract=[0]x[0]} : tensor<8x6xf32>
  %g = all_reduce <"D", "B"> %part : tensor<8x6xf32>
  %gs = all_slice [{"D", "B"}, {}] %g : tensor<2x6xf32>
  %half = constant {0.5} : tensor<f32>
  %old = multiply(%half, %v) : tensor<2x6xf32>
  %v' = add(%gs, %old) : tensor<2x6xf32>
  %rate = constant {0.25} : tensor<f32>
  %step = multiply(%v', %rate) : tensor<2x6xf32>
  %start = shard_start {2 <"D", "B">} : tensor<i32>
  %zero = constant {0} : tensor<i32>
  %ws = dynamic_slice(%w, %start, %zero) {sizes=[2, -1]} : tensor<2x6xf32>
  %new = subtract(%ws, %step) : tensor<2x6xf32>
  %w' = all_gather [{"D", "B"}, {}] %new : tensor<8x6xf32>
  return %w', %v' : tensor<8x6xf32>, tensor<2x6xf32>
}
)",
       {R"([{}, {}])", R"([{"D", "B"}, {}])", R"([{"D", "B"}, {}])", R"([{"D", "B"}, {}])"},
       {R"([{}, {}])", R"([{"D", "B"}, {}])"},
       {
           {"another shard is updated than is gathered",
            {{R"(  %start = shard_start {2 <"D", "B">} : tensor<i32>
)",
              R"(  %start = shard_start {2 <"B", "D">} : tensor<i32>
)"}},
            {"%new"}},
           {"shards are gathered in another order",
            {{R"(  %w' = all_gather [{"D", "B"}, {}] %new : tensor<8x6xf32>
)",
              R"(  %w' = all_gather [{"B", "D"}, {}] %new : tensor<8x6xf32>
)"}},
            {"%w'"}},
           {"the gradient of another shard",
            {{R"(  %gs = all_slice [{"D", "B"}, {}] %g : tensor<2x6xf32>
)",
              R"(  %gs = all_slice [{"B", "D"}, {}] %g : tensor<2x6xf32>
)"}},
            {"%v'"}},
           {"every device updates the first shard",
            {{R"(  %ws = dynamic_slice(%w, %start, %zero) {sizes=[2, -1]} : tensor<2x6xf32>
)",
              R"(  %ws = slice(%w) {[0:2, :]} : tensor<2x6xf32>
)"}},
            {"%ws", "%new"}},
       },
       equality::exactly,
       4},
      // The gradient is reduced to the shard that its device updates.
      {"ZeRO 2",
       R"(func @main(%w: tensor<8x6xf32>, %v: tensor<8x6xf32>, %x: tensor<16x8xf32>, %y: tensor<16x6xf32>) {
  %h = matmul(%x, %w) : tensor<16x6xf32>
  %e = subtract(%h, %y) : tensor<16x6xf32>
  %g = dot_general(%x, %e) {contract=[0]x[0]} : tensor<8x6xf32>
  %half = constant {0.5} : tensor<f32>
  %old = multiply(%v, %half) : tensor<8x6xf32>
  %v' = add(%old, %g) : tensor<8x6xf32>
  %rate = constant {0.25} : tensor<f32>
  %step = multiply(%v', %rate) : tensor<8x6xf32>
  %w' = subtract(%w, %step) : tensor<8x6xf32>
  return %w', %v' : tensor<8x6xf32>, tensor<8x6xf32>
}
)",
       R"(func @main(%w: tensor<8x6xf32>, %v: tensor<2x6xf32>, %x: tensor<4x8xf32>, %y: tensor<4x6xf32>) attributes {mesh = {"D":2, "B":2}} {
  %h = matmul(%x, %w) : tensor<4x6xf32>
  %e = subtract(%h, %y) : tensor<4x6xf32>
  %part = dot_general(%x, %e) {contract=[0]x[0]} : tensor<8x6xf32>
  %g = reduce_scatter [{"D", "B"}, {}] %part : tensor<2x6xf32>
  %half = constant {0.5} : tensor<f32>
  %old = multiply(%half, %v) : tensor<2x6xf32>
  %v' = add(%g, %old) : tensor<2x6xf32>
  %rate = constant {0.25} : tensor<f32>
  %step = multiply(%v', %rate) : tensor<2x6xf32>
  %ws = all_slice [{"D", "B"}, {}] %w : tensor<2x6xf32>
  %new = subtract(%ws, %step) : tensor<2x6xf32>
  %w' = all_gather [{"D", "B"}, {}] %new : tensor<8x6xf32>
  return %w', %v' : tensor<8x6xf32>, tensor<2x6xf32>
}
)",
       {R"([{}, {}])", R"([{"D", "B"}, {}])", R"([{"D", "B"}, {}])", R"([{"D", "B"}, {}])"},
       {R"([{}, {}])", R"([{"D", "B"}, {}])"},
       {
           {"the gradient is scattered in another order",
            {{R"(  %g = reduce_scatter [{"D", "B"}, {}] %part : tensor<2x6xf32>
)",
              R"(  %g = reduce_scatter [{"B", "D"}, {}] %part : tensor<2x6xf32>
)"}},
            {"%v'"}},
           {"reduced again behind the scatter",
            {{R"(  %v' = add(%g, %old) : tensor<2x6xf32>
)",
              R"(  %g2 = all_reduce <"D"> %g : tensor<2x6xf32>
  %v' = add(%g2, %old) : tensor<2x6xf32>
)"}},
            {"%g2"}},
           {"a slice where a reduce_scatter is due",
            {{R"(  %g = reduce_scatter [{"D", "B"}, {}] %part : tensor<2x6xf32>
)",
              R"(  %g = all_slice [{"D", "B"}, {}] %part : tensor<2x6xf32>
)"}},
            {"%g", "%v'"}},
           {"another shard is updated than is gathered",
            {{R"(  %ws = all_slice [{"D", "B"}, {}] %w : tensor<2x6xf32>
)",
              R"(  %ws = all_slice [{"B", "D"}, {}] %w : tensor<2x6xf32>
)"}},
            {"%new"}},
       },
       equality::exactly,
       4},
      // Parameters are sharded, gathered before each use and again in the backward pass.
      {"ZeRO 3",
       R"(func @main(%w1: tensor<4x8xf32>, %w2: tensor<8x4xf32>, %x: tensor<8x4xf32>, %y: tensor<8x4xf32>) {
  %h = matmul(%x, %w1) : tensor<8x8xf32>
  %z = matmul(%h, %w2) : tensor<8x4xf32>
  %e = subtract(%z, %y) : tensor<8x4xf32>
  %g2 = dot_general(%h, %e) {contract=[0]x[0]} : tensor<8x4xf32>
  %dh = dot_general(%e, %w2) {contract=[1]x[1]} : tensor<8x8xf32>
  %g1 = dot_general(%x, %dh) {contract=[0]x[0]} : tensor<4x8xf32>
  %rate = constant {0.25} : tensor<f32>
  %s1 = multiply(%g1, %rate) : tensor<4x8xf32>
  %s2 = multiply(%g2, %rate) : tensor<8x4xf32>
  %w1' = subtract(%w1, %s1) : tensor<4x8xf32>
  %w2' = subtract(%w2, %s2) : tensor<8x4xf32>
  return %w1', %w2' : tensor<4x8xf32>, tensor<8x4xf32>
}
)",
       R"(func @main(%w1: tensor<1x8xf32>, %w2: tensor<2x4xf32>, %x: tensor<2x4xf32>, %y: tensor<2x4xf32>) attributes {mesh = {"B":4}} {
  %a1 = all_gather [{"B"}, {}] %w1 : tensor<4x8xf32>
  %h = matmul(%x, %a1) : tensor<2x8xf32>
  %a2 = all_gather [{"B"}, {}] %w2 : tensor<8x4xf32>
  %z = matmul(%h, %a2) : tensor<2x4xf32>
  %e = subtract(%z, %y) : tensor<2x4xf32>
  %again = all_gather [{"B"}, {}] %w2 : tensor<8x4xf32>
  %t = transpose(%again) {dims=[1, 0]} : tensor<4x8xf32>
  %dh = matmul(%e, %t) : tensor<2x8xf32>
  %rate = constant {0.25} : tensor<f32>
  %p2 = dot_general(%h, %e) {contract=[0]x[0]} : tensor<8x4xf32>
  %g2 = reduce_scatter [{"B"}, {}] %p2 : tensor<2x4xf32>
  %s2 = multiply(%g2, %rate) : tensor<2x4xf32>
  %w2' = subtract(%w2, %s2) : tensor<2x4xf32>
  %p1 = dot_general(%x, %dh) {contract=[0]x[0]} : tensor<4x8xf32>
  %m1 = multiply(%p1, %rate) : tensor<4x8xf32>
  %s1 = reduce_scatter [{"B"}, {}] %m1 : tensor<1x8xf32>
  %w1' = subtract(%w1, %s1) : tensor<1x8xf32>
  return %w1', %w2' : tensor<1x8xf32>, tensor<2x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {R"([{"B"}, {}])", R"([{"B"}, {}])"},
       {
           {"a slice where a reduce_scatter is due",
            {{R"(  %g2 = reduce_scatter [{"B"}, {}] %p2 : tensor<2x4xf32>
)",
              R"(  %g2 = all_slice [{"B"}, {}] %p2 : tensor<2x4xf32>
)"}},
            {"%g2", "%s2", "%w2'"}},
           {"the gathered parameter is the updated one",
            {{R"(  %again = all_gather [{"B"}, {}] %w2 : tensor<8x4xf32>
)",
              R"(  %d = dot_general(%h, %e) {contract=[0]x[0]} : tensor<8x4xf32>
  %ds = reduce_scatter [{"B"}, {}] %d : tensor<2x4xf32>
  %new = subtract(%w2, %ds) : tensor<2x4xf32>
  %again = all_gather [{"B"}, {}] %new : tensor<8x4xf32>
)"}},
            {"%new", "%dh"}},
           {"a neighbour has the shard",
            {{R"(  %w1' = subtract(%w1, %s1) : tensor<1x8xf32>
)",
              R"(  %n1 = permute {+1 around} <"B"> %s1 : tensor<1x8xf32>
  %w1' = subtract(%w1, %n1) : tensor<1x8xf32>
)"}},
            {"%n1", "%w1'"}},
       },
       equality::exactly,
       4},
  };
}

}  // namespace practice
