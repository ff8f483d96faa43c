/// Sequence and context parallelism, halos, caches and random numbers as people write them by hand.
#pragma once

#include "cases.hpp"

namespace practice {

inline std::vector<practice_case> sequence_parallel() {
  return {
      // Normalization on the positions of each device, the MLP between a gather and a
      // reduce_scatter.
      {"sequence parallelism",
       R"(func @main(%x: tensor<16x4xf32>, %scale: tensor<4xf32>, %bias: tensor<4xf32>, %w1: tensor<4x8xf32>, %w2: tensor<8x4xf32>) {
  %sum = reduce(%x) {add, dims=[1]} : tensor<16xf32>
  %c = constant {0.25} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<16xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<16x4xf32>
  %d = subtract(%x, %mm) : tensor<16x4xf32>
  %dd = multiply(%d, %d) : tensor<16x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<16xf32>
  %var = multiply(%ss, %c) : tensor<16xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%var, %eps) : tensor<16xf32>
  %r = rsqrt(%v) : tensor<16xf32>
  %rr = broadcast_in_dim(%r) {dims=[0]} : tensor<16x4xf32>
  %n = multiply(%d, %rr) : tensor<16x4xf32>
  %g = broadcast_in_dim(%scale) {dims=[1]} : tensor<16x4xf32>
  %b = broadcast_in_dim(%bias) {dims=[1]} : tensor<16x4xf32>
  %ng = multiply(%n, %g) : tensor<16x4xf32>
  %norm = add(%ng, %b) : tensor<16x4xf32>
  %h = matmul(%norm, %w1) : tensor<16x8xf32>
  %a = tanh(%h) : tensor<16x8xf32>
  %z = matmul(%a, %w2) : tensor<16x4xf32>
  %y = add(%x, %z) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%x: tensor<4x4xf32>, %scale: tensor<4xf32>, %bias: tensor<4xf32>, %w1: tensor<4x2xf32>, %w2: tensor<2x4xf32>) attributes {mesh = {"M":4}} {
  %sum = reduce(%x) {add, dims=[1]} : tensor<4xf32>
  %c = constant {0.25} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<4xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<4x4xf32>
  %d = subtract(%x, %mm) : tensor<4x4xf32>
  %dd = multiply(%d, %d) : tensor<4x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<4xf32>
  %var = multiply(%ss, %c) : tensor<4xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%var, %eps) : tensor<4xf32>
  %r = rsqrt(%v) : tensor<4xf32>
  %rr = broadcast_in_dim(%r) {dims=[0]} : tensor<4x4xf32>
  %n = multiply(%d, %rr) : tensor<4x4xf32>
  %g = broadcast_in_dim(%scale) {dims=[1]} : tensor<4x4xf32>
  %ng = multiply(%g, %n) : tensor<4x4xf32>
  %b = broadcast_in_dim(%bias) {dims=[1]} : tensor<4x4xf32>
  %norm = add(%b, %ng) : tensor<4x4xf32>
  %all = all_gather [{"M"}, {}] %norm : tensor<16x4xf32>
  %h = matmul(%all, %w1) : tensor<16x2xf32>
  %a = tanh(%h) : tensor<16x2xf32>
  %part = matmul(%a, %w2) : tensor<16x4xf32>
  %z = reduce_scatter [{"M"}, {}] %part : tensor<4x4xf32>
  %y = add(%z, %x) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{}])", R"([{}])", R"([{}, {"M"}])", R"([{"M"}, {}])"},
       {R"([{"M"}, {}])"},
       {
           {"a slice where a reduce_scatter is due",
            {{R"(  %z = reduce_scatter [{"M"}, {}] %part : tensor<4x4xf32>
)",
              R"(  %z = all_slice [{"M"}, {}] %part : tensor<4x4xf32>
)"}},
            {"%z", "%y"}},
           {"the residual is added before the reduction",
            {{R"(  %z = reduce_scatter [{"M"}, {}] %part : tensor<4x4xf32>
  %y = add(%z, %x) : tensor<4x4xf32>
)",
              R"(  %xx = all_gather [{"M"}, {}] %x : tensor<16x4xf32>
  %s = add(%part, %xx) : tensor<16x4xf32>
  %y = reduce_scatter [{"M"}, {}] %s : tensor<4x4xf32>
)"}},
            {"%s"}},
       },
       equality::up_to_sums,
       4},
      // Scale and bias are replicated, positions are sharded.
      {"gradients of a layer norm under sequence parallelism",
       R"(func @main(%x: tensor<16x4xf32>, %dy: tensor<16x4xf32>) {
  %sum = reduce(%x) {add, dims=[1]} : tensor<16xf32>
  %c = constant {0.25} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<16xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<16x4xf32>
  %d = subtract(%x, %mm) : tensor<16x4xf32>
  %dd = multiply(%d, %d) : tensor<16x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<16xf32>
  %var = multiply(%ss, %c) : tensor<16xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%var, %eps) : tensor<16xf32>
  %r = rsqrt(%v) : tensor<16xf32>
  %rr = broadcast_in_dim(%r) {dims=[0]} : tensor<16x4xf32>
  %n = multiply(%d, %rr) : tensor<16x4xf32>
  %p = multiply(%dy, %n) : tensor<16x4xf32>
  %dscale = reduce(%p) {add, dims=[0]} : tensor<4xf32>
  %dbias = reduce(%dy) {add, dims=[0]} : tensor<4xf32>
  return %dscale, %dbias : tensor<4xf32>, tensor<4xf32>
}
)",
       R"(func @main(%x: tensor<4x4xf32>, %dy: tensor<4x4xf32>) attributes {mesh = {"M":4}} {
  %sum = reduce(%x) {add, dims=[1]} : tensor<4xf32>
  %c = constant {0.25} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<4xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<4x4xf32>
  %d = subtract(%x, %mm) : tensor<4x4xf32>
  %dd = multiply(%d, %d) : tensor<4x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<4xf32>
  %var = multiply(%ss, %c) : tensor<4xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%var, %eps) : tensor<4xf32>
  %r = rsqrt(%v) : tensor<4xf32>
  %rr = broadcast_in_dim(%r) {dims=[0]} : tensor<4x4xf32>
  %n = multiply(%d, %rr) : tensor<4x4xf32>
  %p = multiply(%n, %dy) : tensor<4x4xf32>
  %ps = reduce(%p) {add, dims=[0]} : tensor<4xf32>
  %pb = reduce(%dy) {add, dims=[0]} : tensor<4xf32>
  %dscale = all_reduce <"M"> %ps : tensor<4xf32>
  %dbias = all_reduce <"M"> %pb : tensor<4xf32>
  return %dscale, %dbias : tensor<4xf32>, tensor<4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{"M"}, {}])"},
       {R"([{}])", R"([{}])"},
       {
           {"not reduced",
            {{R"(  return %dscale, %dbias : tensor<4xf32>, tensor<4xf32>
)",
              R"(  return %ps, %pb : tensor<4xf32>, tensor<4xf32>
)"}},
            {"%ps"}},
           {"one of them not reduced",
            {{R"(  return %dscale, %dbias : tensor<4xf32>, tensor<4xf32>
)",
              R"(  return %dscale, %pb : tensor<4xf32>, tensor<4xf32>
)"}},
            {"%pb"}},
       },
       equality::up_to_sums,
       4},
      // A quarter and a division by four are the same number; the square root follows the
      // broadcast; the scale precedes the data.
      {"a layer norm whose mean divides",
       R"(func @main(%x: tensor<16x4xf32>, %scale: tensor<4xf32>) {
  %sum = reduce(%x) {add, dims=[1]} : tensor<16xf32>
  %c = constant {0.25} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<16xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<16x4xf32>
  %d = subtract(%x, %mm) : tensor<16x4xf32>
  %dd = multiply(%d, %d) : tensor<16x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<16xf32>
  %var = multiply(%ss, %c) : tensor<16xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%var, %eps) : tensor<16xf32>
  %r = rsqrt(%v) : tensor<16xf32>
  %rr = broadcast_in_dim(%r) {dims=[0]} : tensor<16x4xf32>
  %n = multiply(%d, %rr) : tensor<16x4xf32>
  %g = broadcast_in_dim(%scale) {dims=[1]} : tensor<16x4xf32>
  %y = multiply(%n, %g) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%x: tensor<4x4xf32>, %scale: tensor<4xf32>) attributes {mesh = {"M":4}} {
  %sum = reduce(%x) {add, dims=[1]} : tensor<4xf32>
  %count = constant {4} : tensor<f32>
  %mean = divide(%sum, %count) : tensor<4xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<4x4xf32>
  %d = subtract(%x, %mm) : tensor<4x4xf32>
  %dd = multiply(%d, %d) : tensor<4x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<4xf32>
  %var = divide(%ss, %count) : tensor<4xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%eps, %var) : tensor<4xf32>
  %vv = broadcast_in_dim(%v) {dims=[0]} : tensor<4x4xf32>
  %rr = rsqrt(%vv) : tensor<4x4xf32>
  %n = multiply(%rr, %d) : tensor<4x4xf32>
  %g = broadcast_in_dim(%scale) {dims=[1]} : tensor<4x4xf32>
  %y = multiply(%g, %n) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"M"}, {}])", R"([{}])"},
       {R"([{"M"}, {}])"},
       {
           {"the mean of another number of features",
            {{R"(  %count = constant {4} : tensor<f32>
)",
              R"(  %count = constant {16} : tensor<f32>
)"}},
            {"%mean", "%d"}},
       },
       equality::up_to_sums,
       4},
      // The source draws for each element of the global array: counters are those of global rows.
      {"dropout",
       R"(func @main(%x: tensor<8x4xf32>, %key: tensor<i64>) {
  %row = iota {dim=0} : tensor<8xi64>
  %width = constant {4} : tensor<i64>
  %major = multiply(%row, %width) : tensor<8xi64>
  %mj = broadcast_in_dim(%major) {dims=[0]} : tensor<8x4xi64>
  %column = iota {dim=0} : tensor<4xi64>
  %mn = broadcast_in_dim(%column) {dims=[1]} : tensor<8x4xi64>
  %counter = add(%mj, %mn) : tensor<8x4xi64>
  %bits = random_bits(%key, %counter) : tensor<8x4xi64>
  %by = constant {40} : tensor<i64>
  %high = shift_right_logical(%bits, %by) : tensor<8x4xi64>
  %number = convert(%high) : tensor<8x4xf32>
  %unit = constant {5.9604644775390625e-8} : tensor<f32>
  %u = multiply(%number, %unit) : tensor<8x4xf32>
  %rate = constant {0.5} : tensor<f32>
  %kept = compare(%u, %rate) {lt} : tensor<8x4xi1>
  %two = constant {2} : tensor<f32>
  %scaled = multiply(%x, %two) : tensor<8x4xf32>
  %zero = constant {0} : tensor<f32>
  %y = select(%kept, %scaled, %zero) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%x: tensor<2x4xf32>, %key: tensor<i64>) attributes {mesh = {"B":4}} {
  %i = iota {dim=0} : tensor<2xi64>
  %start = shard_start {2 <"B">} : tensor<i64>
  %row = add(%i, %start) : tensor<2xi64>
  %width = constant {4} : tensor<i64>
  %major = multiply(%row, %width) : tensor<2xi64>
  %mj = broadcast_in_dim(%major) {dims=[0]} : tensor<2x4xi64>
  %column = iota {dim=0} : tensor<4xi64>
  %mn = broadcast_in_dim(%column) {dims=[1]} : tensor<2x4xi64>
  %counter = add(%mj, %mn) : tensor<2x4xi64>
  %bits = random_bits(%key, %counter) : tensor<2x4xi64>
  %by = constant {40} : tensor<i64>
  %high = shift_right_logical(%bits, %by) : tensor<2x4xi64>
  %number = convert(%high) : tensor<2x4xf32>
  %unit = constant {5.9604644775390625e-8} : tensor<f32>
  %u = multiply(%number, %unit) : tensor<2x4xf32>
  %rate = constant {0.5} : tensor<f32>
  %kept = compare(%u, %rate) {lt} : tensor<2x4xi1>
  %two = constant {2} : tensor<f32>
  %scaled = multiply(%x, %two) : tensor<2x4xf32>
  %zero = constant {0} : tensor<f32>
  %y = select(%kept, %scaled, %zero) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([])"},
       {R"([{"B"}, {}])"},
       {
           {"the same key and counters on all shards",
            {{R"(  %major = multiply(%row, %width) : tensor<2xi64>
)",
              R"(  %major = multiply(%i, %width) : tensor<2xi64>
)"}},
            {"%major", "%mj", "%counter", "%bits", "%y"}},
           {"rows are counted from a piece of another size",
            {{R"(  %start = shard_start {2 <"B">} : tensor<i64>
)",
              R"(  %start = shard_start {1 <"B">} : tensor<i64>
)"}},
            {"%row", "%start", "%y"}},
       },
       equality::exactly,
       100},
      // The start of the block is added to the counters of local rows: products of sums of
      // integers.
      {"dropout, the start added to the counters",
       R"(func @main(%x: tensor<8x4xf32>, %key: tensor<i64>) {
  %row = iota {dim=0} : tensor<8xi64>
  %width = constant {4} : tensor<i64>
  %major = multiply(%row, %width) : tensor<8xi64>
  %mj = broadcast_in_dim(%major) {dims=[0]} : tensor<8x4xi64>
  %column = iota {dim=0} : tensor<4xi64>
  %mn = broadcast_in_dim(%column) {dims=[1]} : tensor<8x4xi64>
  %counter = add(%mj, %mn) : tensor<8x4xi64>
  %bits = random_bits(%key, %counter) : tensor<8x4xi64>
  %by = constant {40} : tensor<i64>
  %high = shift_right_logical(%bits, %by) : tensor<8x4xi64>
  %number = convert(%high) : tensor<8x4xf32>
  %unit = constant {5.9604644775390625e-8} : tensor<f32>
  %u = multiply(%number, %unit) : tensor<8x4xf32>
  %rate = constant {0.5} : tensor<f32>
  %kept = compare(%u, %rate) {lt} : tensor<8x4xi1>
  %two = constant {2} : tensor<f32>
  %scaled = multiply(%x, %two) : tensor<8x4xf32>
  %zero = constant {0} : tensor<f32>
  %y = select(%kept, %scaled, %zero) : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
)",
       R"(func @main(%x: tensor<2x4xf32>, %key: tensor<i64>) attributes {mesh = {"B":4}} {
  %row = iota {dim=0} : tensor<2xi64>
  %width = constant {4} : tensor<i64>
  %major = multiply(%row, %width) : tensor<2xi64>
  %mj = broadcast_in_dim(%major) {dims=[0]} : tensor<2x4xi64>
  %column = iota {dim=0} : tensor<4xi64>
  %mn = broadcast_in_dim(%column) {dims=[1]} : tensor<2x4xi64>
  %own = add(%mj, %mn) : tensor<2x4xi64>
  %start = shard_start {8 <"B">} : tensor<i64>
  %counter = add(%own, %start) : tensor<2x4xi64>
  %bits = random_bits(%key, %counter) : tensor<2x4xi64>
  %by = constant {40} : tensor<i64>
  %high = shift_right_logical(%bits, %by) : tensor<2x4xi64>
  %number = convert(%high) : tensor<2x4xf32>
  %unit = constant {5.9604644775390625e-8} : tensor<f32>
  %u = multiply(%number, %unit) : tensor<2x4xf32>
  %rate = constant {0.5} : tensor<f32>
  %kept = compare(%u, %rate) {lt} : tensor<2x4xi1>
  %two = constant {2} : tensor<f32>
  %scaled = multiply(%x, %two) : tensor<2x4xf32>
  %zero = constant {0} : tensor<f32>
  %y = select(%kept, %scaled, %zero) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([])"},
       {R"([{"B"}, {}])"},
       {
           {"the start in rows where that in elements is due",
            {{R"(  %start = shard_start {8 <"B">} : tensor<i64>
)",
              R"(  %start = shard_start {2 <"B">} : tensor<i64>
)"}},
            {"%own", "%counter", "%bits", "%y"}},
           {"a key of its own for each device",
            {{R"(  %counter = add(%own, %start) : tensor<2x4xi64>
  %bits = random_bits(%key, %counter) : tensor<2x4xi64>
)",
              R"(  %fold = random_bits(%key, %start) : tensor<i64>
  %bits = random_bits(%fold, %own) : tensor<2x4xi64>
)"}},
            {"%fold", "%bits", "%y"}},
       },
       equality::exactly,
       100},
      // A stencil of three points: the last element of the previous block and the first of the next
      // block.
      {"a halo",
       R"(func @main(%x: tensor<16xf32>) {
  %zero = constant {0} : tensor<f32>
  %wide = pad(%x, %zero) {low=[1], high=[1]} : tensor<18xf32>
  %before = slice(%wide) {[0:16]} : tensor<16xf32>
  %behind = slice(%wide) {[2:18]} : tensor<16xf32>
  %sides = add(%before, %behind) : tensor<16xf32>
  %two = constant {2} : tensor<f32>
  %middle = multiply(%x, %two) : tensor<16xf32>
  %y = subtract(%middle, %sides) : tensor<16xf32>
  return %y : tensor<16xf32>
}
)",
       R"(func @main(%x: tensor<4xf32>) attributes {mesh = {"S":4}} {
  %last = slice(%x) {[3:4]} : tensor<1xf32>
  %left = permute {+1} <"S"> %last : tensor<1xf32>
  %first = slice(%x) {[0:1]} : tensor<1xf32>
  %right = permute {-1} <"S"> %first : tensor<1xf32>
  %wide = concatenate(%left, %x, %right) {dim=0} : tensor<6xf32>
  %behind = slice(%wide) {[2:6]} : tensor<4xf32>
  %before = slice(%wide) {[0:4]} : tensor<4xf32>
  %sides = add(%before, %behind) : tensor<4xf32>
  %two = constant {2} : tensor<f32>
  %middle = multiply(%two, %x) : tensor<4xf32>
  %y = subtract(%middle, %sides) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
       {R"([{"S"}])"},
       {R"([{"S"}])"},
       {
           {"the element before the last is sent",
            {{R"(  %last = slice(%x) {[3:4]} : tensor<1xf32>
)",
              R"(  %last = slice(%x) {[2:3]} : tensor<1xf32>
)"}},
            {"%left", "%wide", "%before", "%sides"}},
           {"a window that starts one too far",
            {{R"(  %behind = slice(%wide) {[2:6]} : tensor<4xf32>
)",
              R"(  %behind = slice(%wide) {[1:5]} : tensor<4xf32>
)"}},
            {"%behind", "%sides"}},
           {"the ends take from each other",
            {{R"(  %left = permute {+1} <"S"> %last : tensor<1xf32>
)",
              R"(  %left = permute {+1 around} <"S"> %last : tensor<1xf32>
)"}},
            {"%left", "%wide", "%before", "%sides"}},
           {"borders go the wrong way",
            {{R"(  %left = permute {+1} <"S"> %last : tensor<1xf32>
)",
              R"(  %left = permute {-1} <"S"> %last : tensor<1xf32>
)"}},
            {"%left", "%wide", "%before", "%sides"}},
       },
       equality::exactly,
       4},
      // Rows of an image with two channels; the window has five positions, the borders two.
      {"the halo of a convolution",
       R"(func @main(%x: tensor<1x16x2xf32>, %w: tensor<5x2x3xf32>) {
  %y = convolution(%x, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1], low=[2], high=[2]} : tensor<1x16x3xf32>
  return %y : tensor<1x16x3xf32>
}
)",
       R"(func @main(%x: tensor<1x4x2xf32>, %w: tensor<5x2x3xf32>) attributes {mesh = {"S":4}} {
  %first = slice(%x) {[:, 0:2, :]} : tensor<1x2x2xf32>
  %right = permute {-1} <"S"> %first : tensor<1x2x2xf32>
  %last = slice(%x) {[:, 2:4, :]} : tensor<1x2x2xf32>
  %left = permute {+1} <"S"> %last : tensor<1x2x2xf32>
  %wide = concatenate(%left, %x, %right) {dim=1} : tensor<1x8x2xf32>
  %y = convolution(%wide, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1]} : tensor<1x4x3xf32>
  return %y : tensor<1x4x3xf32>
}
)",
       {R"([{}, {"S"}, {}])", R"([{}, {}, {}])"},
       {R"([{}, {"S"}, {}])"},
       {
           {"off by one",
            {{R"(  %last = slice(%x) {[:, 2:4, :]} : tensor<1x2x2xf32>
)",
              R"(  %last = slice(%x) {[:, 1:3, :]} : tensor<1x2x2xf32>
)"}},
            {"%left", "%wide", "%y"}},
           {"a border of one, and zeros",
            {{R"(  %wide = concatenate(%left, %x, %right) {dim=1} : tensor<1x8x2xf32>
)",
              R"(  %near = slice(%left) {[:, 1:2, :]} : tensor<1x1x2xf32>
  %zero = constant {0} : tensor<f32>
  %far = pad(%near, %zero) {low=[0, 1, 0], high=[0, 0, 0]} : tensor<1x2x2xf32>
  %wide = concatenate(%far, %x, %right) {dim=1} : tensor<1x8x2xf32>
)"}},
            {"%far", "%wide", "%y"}},
           {"the ends take from each other",
            {{R"(  %left = permute {+1} <"S"> %last : tensor<1x2x2xf32>
)",
              R"(  %left = permute {+1 around} <"S"> %last : tensor<1x2x2xf32>
)"}},
            {"%left", "%wide", "%y"}},
           {"left and right exchanged",
            {{R"(  %wide = concatenate(%left, %x, %right) {dim=1} : tensor<1x8x2xf32>
)",
              R"(  %wide = concatenate(%right, %x, %left) {dim=1} : tensor<1x8x2xf32>
)"}},
            {"%wide", "%y"}},
       },
       equality::exactly,
       4},
      // The position is a global one: rows of the cache are numbered from the start of the block.
      {"a cache, written through a mask",
       R"(func @main(%cache: tensor<16x4xf32>, %new: tensor<4xf32>, %at: tensor<i32>) {
  %row = iota {dim=0} : tensor<16xi32>
  %is = compare(%row, %at) {eq} : tensor<16xi1>
  %mask = broadcast_in_dim(%is) {dims=[0]} : tensor<16x4xi1>
  %rows = broadcast_in_dim(%new) {dims=[1]} : tensor<16x4xf32>
  %cache' = select(%mask, %rows, %cache) : tensor<16x4xf32>
  return %cache' : tensor<16x4xf32>
}
)",
       R"(func @main(%cache: tensor<4x4xf32>, %new: tensor<4xf32>, %at: tensor<i32>) attributes {mesh = {"S":4}} {
  %start = shard_start {4 <"S">} : tensor<i32>
  %i = iota {dim=0} : tensor<4xi32>
  %row = add(%start, %i) : tensor<4xi32>
  %is = compare(%row, %at) {eq} : tensor<4xi1>
  %rows = broadcast_in_dim(%new) {dims=[1]} : tensor<4x4xf32>
  %mask = broadcast_in_dim(%is) {dims=[0]} : tensor<4x4xi1>
  %cache' = select(%mask, %rows, %cache) : tensor<4x4xf32>
  return %cache' : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{}])", R"([])"},
       {R"([{"S"}, {}])"},
       {
           {"local indices",
            {{R"(  %is = compare(%row, %at) {eq} : tensor<4xi1>
)",
              R"(  %is = compare(%i, %at) {eq} : tensor<4xi1>
)"}},
            {"%is", "%mask", "%cache'"}},
       },
       equality::exactly,
       16},
      // The device that has the position returns the row.
      {"one position of a cache",
       R"(func @main(%cache: tensor<16x4xf32>, %at: tensor<i32>) {
  %zero = constant {0} : tensor<i32>
  %y = dynamic_slice(%cache, %at, %zero) {sizes=[1, -1]} : tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}
)",
       R"(func @main(%cache: tensor<4x4xf32>, %at: tensor<i32>) attributes {mesh = {"S":4}} {
  %zero = constant {0} : tensor<i32>
  %end = constant {15} : tensor<i32>
  %inside = clamp(%zero, %at, %end) : tensor<i32>
  %start = shard_start {4 <"S">} : tensor<i32>
  %own = subtract(%inside, %start) : tensor<i32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<i1>
  %high = compare(%own, %rows) {lt} : tensor<i1>
  %here = and(%low, %high) : tensor<i1>
  %found = dynamic_slice(%cache, %own, %zero) {sizes=[1, -1]} : tensor<1x4xf32>
  %nothing = constant {-0} : tensor<f32>
  %part = select(%here, %found, %nothing) : tensor<1x4xf32>
  %y = all_reduce <"S"> %part : tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([])"},
       {R"([{}, {}])"},
       {
           {"the others are not masked",
            {{R"(all_reduce <"S"> %part)", R"(all_reduce <"S"> %found)"}},
            {"%found", "%y"}},
           {"the position is not clamped",
            {{R"(subtract(%inside, %start))", R"(subtract(%at, %start))"}},
            {"%found", "%part", "%y"}},
           {"ones stand for nothing",
            {{R"(%nothing = constant {-0})", R"(%nothing = constant {1})"}},
            {"%part", "%y"}},
       },
       equality::exactly,
       20},
      // The device that has the position writes; the others keep their rows. An update clamps, so
      // the position is clamped first.
      {"a cache, updated in place",
       R"(func @main(%cache: tensor<16x4xf32>, %new: tensor<1x4xf32>, %at: tensor<i32>) {
  %zero = constant {0} : tensor<i32>
  %cache' = dynamic_update_slice(%cache, %new, %at, %zero) : tensor<16x4xf32>
  return %cache' : tensor<16x4xf32>
}
)",
       R"(func @main(%cache: tensor<4x4xf32>, %new: tensor<1x4xf32>, %at: tensor<i32>) attributes {mesh = {"S":4}} {
  %zero = constant {0} : tensor<i32>
  %end = constant {15} : tensor<i32>
  %inside = clamp(%zero, %at, %end) : tensor<i32>
  %start = shard_start {4 <"S">} : tensor<i32>
  %own = subtract(%inside, %start) : tensor<i32>
  %rows = constant {4} : tensor<i32>
  %low = compare(%own, %zero) {ge} : tensor<i1>
  %high = compare(%own, %rows) {lt} : tensor<i1>
  %here = and(%low, %high) : tensor<i1>
  %written = dynamic_update_slice(%cache, %new, %own, %zero) : tensor<4x4xf32>
  %cache' = select(%here, %written, %cache) : tensor<4x4xf32>
  return %cache' : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{}, {}])", R"([])"},
       {R"([{"S"}, {}])"},
       {
           {"the global index in a local piece",
            {{R"(  %written = dynamic_update_slice(%cache, %new, %own, %zero) : tensor<4x4xf32>
)",
              R"(  %written = dynamic_update_slice(%cache, %new, %at, %zero) : tensor<4x4xf32>
)"}},
            {"%written", "%cache'"}},
           {"every device writes",
            {{R"(  return %cache' : tensor<4x4xf32>
)",
              R"(  return %written : tensor<4x4xf32>
)"}},
            {"%written"}},
           {"off by one at the end of a piece",
            {{R"(  %high = compare(%own, %rows) {lt} : tensor<i1>
)",
              R"(  %high = compare(%own, %rows) {le} : tensor<i1>
)"}},
            {"%here", "%written", "%cache'"}},
       },
       equality::exactly,
       16},
      // Caches are sharded over the batch: a position is the same on all devices.
      {"a cache of its own for each sequence",
       R"(func @main(%cache: tensor<8x16x4xf32>, %new: tensor<8x1x4xf32>, %at: tensor<i32>) {
  %zero = constant {0} : tensor<i32>
  %cache' = dynamic_update_slice(%cache, %new, %zero, %at, %zero) : tensor<8x16x4xf32>
  return %cache' : tensor<8x16x4xf32>
}
)",
       R"(func @main(%cache: tensor<2x16x4xf32>, %new: tensor<2x1x4xf32>, %at: tensor<i32>) attributes {mesh = {"B":4}} {
  %zero = constant {0} : tensor<i32>
  %cache' = dynamic_update_slice(%cache, %new, %zero, %at, %zero) : tensor<2x16x4xf32>
  return %cache' : tensor<2x16x4xf32>
}
)",
       {R"([{"B"}, {}, {}])", R"([{"B"}, {}, {}])", R"([])"},
       {R"([{"B"}, {}, {}])"},
       {
           {"a position that is moved by the device",
            {{R"(  %cache' = dynamic_update_slice(%cache, %new, %zero, %at, %zero) : tensor<2x16x4xf32>
)",
              R"(  %start = shard_start {1 <"B">} : tensor<i32>
  %there = add(%at, %start) : tensor<i32>
  %cache' = dynamic_update_slice(%cache, %new, %zero, %there, %zero) : tensor<2x16x4xf32>
)"}},
            {"%there", "%cache'"}},
       },
       equality::exactly,
       16},
      // Keys go around once for the maximum score of each row, and values once for the sums.
      {"ring attention",
       R"(func @main(%q: tensor<16x4xf32>, %k: tensor<16x4xf32>, %v: tensor<16x4xf32>) {
  %s = dot_general(%q, %k) {contract=[1]x[1]} : tensor<16x16xf32>
  %m = reduce(%s) {max, dims=[1]} : tensor<16xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<16x16xf32>
  %d = subtract(%s, %mm) : tensor<16x16xf32>
  %e = exp(%d) : tensor<16x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<16xf32>
  %o = matmul(%e, %v) : tensor<16x4xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<16x4xf32>
  %y = divide(%o, %ll) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %v: tensor<4x4xf32>) attributes {mesh = {"S":4}} {
  %s0 = dot_general(%q, %k) {contract=[1]x[1]} : tensor<4x4xf32>
  %k1 = permute {+1 around} <"S"> %k : tensor<4x4xf32>
  %s1 = dot_general(%q, %k1) {contract=[1]x[1]} : tensor<4x4xf32>
  %k2 = permute {+1 around} <"S"> %k1 : tensor<4x4xf32>
  %s2 = dot_general(%q, %k2) {contract=[1]x[1]} : tensor<4x4xf32>
  %k3 = permute {+1 around} <"S"> %k2 : tensor<4x4xf32>
  %s3 = dot_general(%q, %k3) {contract=[1]x[1]} : tensor<4x4xf32>
  %m0 = reduce(%s0) {max, dims=[1]} : tensor<4xf32>
  %m1 = reduce(%s1) {max, dims=[1]} : tensor<4xf32>
  %m2 = reduce(%s2) {max, dims=[1]} : tensor<4xf32>
  %m3 = reduce(%s3) {max, dims=[1]} : tensor<4xf32>
  %m01 = maximum(%m0, %m1) : tensor<4xf32>
  %m23 = maximum(%m2, %m3) : tensor<4xf32>
  %m = maximum(%m01, %m23) : tensor<4xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<4x4xf32>
  %d0 = subtract(%s0, %mm) : tensor<4x4xf32>
  %e0 = exp(%d0) : tensor<4x4xf32>
  %p0 = reduce(%e0) {add, dims=[1]} : tensor<4xf32>
  %o0 = matmul(%e0, %v) : tensor<4x4xf32>
  %v1 = permute {+1 around} <"S"> %v : tensor<4x4xf32>
  %d1 = subtract(%s1, %mm) : tensor<4x4xf32>
  %e1 = exp(%d1) : tensor<4x4xf32>
  %p1 = reduce(%e1) {add, dims=[1]} : tensor<4xf32>
  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
  %l1 = add(%p0, %p1) : tensor<4xf32>
  %a1 = add(%o0, %o1) : tensor<4x4xf32>
  %v2 = permute {+1 around} <"S"> %v1 : tensor<4x4xf32>
  %d2 = subtract(%s2, %mm) : tensor<4x4xf32>
  %e2 = exp(%d2) : tensor<4x4xf32>
  %p2 = reduce(%e2) {add, dims=[1]} : tensor<4xf32>
  %o2 = matmul(%e2, %v2) : tensor<4x4xf32>
  %l2 = add(%l1, %p2) : tensor<4xf32>
  %a2 = add(%a1, %o2) : tensor<4x4xf32>
  %v3 = permute {+1 around} <"S"> %v2 : tensor<4x4xf32>
  %d3 = subtract(%s3, %mm) : tensor<4x4xf32>
  %e3 = exp(%d3) : tensor<4x4xf32>
  %p3 = reduce(%e3) {add, dims=[1]} : tensor<4xf32>
  %o3 = matmul(%e3, %v3) : tensor<4x4xf32>
  %l3 = add(%l2, %p3) : tensor<4xf32>
  %a3 = add(%a2, %o3) : tensor<4x4xf32>
  %ll = broadcast_in_dim(%l3) {dims=[0]} : tensor<4x4xf32>
  %y = divide(%a3, %ll) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{"S"}, {}])", R"([{"S"}, {}])"},
       {R"([{"S"}, {}])"},
       {
           {"values do not follow the keys",
            {{R"(  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
)",
              R"(  %o1 = matmul(%e1, %v) : tensor<4x4xf32>
)"}},
            {"%o0", "%o1"}},
           {"values go round the other way",
            {{R"(  %v1 = permute {+1 around} <"S"> %v : tensor<4x4xf32>
)",
              R"(  %v1 = permute {-1 around} <"S"> %v : tensor<4x4xf32>
)"}},
            {"%o0", "%o1"}},
           {"the chain is no ring",
            {{R"(  %v1 = permute {+1 around} <"S"> %v : tensor<4x4xf32>
)",
              R"(  %v1 = permute {+1} <"S"> %v : tensor<4x4xf32>
)"}},
            {"%v1", "%o0", "%o1", "%v2"}},
           {"one step too few",
            {{R"(  %y = divide(%a3, %ll) : tensor<4x4xf32>
)",
              R"(  %y = divide(%a2, %ll) : tensor<4x4xf32>
)"}},
            {"%y", "%a2"}},
           {"a block is counted twice",
            {{R"(  %a3 = add(%a2, %o3) : tensor<4x4xf32>
)",
              R"(  %a3 = add(%a2, %o2) : tensor<4x4xf32>
)"}},
            {"%a3", "%y"}},
       },
       equality::up_to_sums,
       4},
      // The maximum of all scores is reduced over the devices.
      {"ring attention, one maximum for all rows",
       R"(func @main(%q: tensor<16x4xf32>, %k: tensor<16x4xf32>, %v: tensor<16x4xf32>) {
  %s = dot_general(%q, %k) {contract=[1]x[1]} : tensor<16x16xf32>
  %m = reduce(%s) {max, dims=[0, 1]} : tensor<f32>
  %d = subtract(%s, %m) : tensor<16x16xf32>
  %e = exp(%d) : tensor<16x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<16xf32>
  %o = matmul(%e, %v) : tensor<16x4xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<16x4xf32>
  %y = divide(%o, %ll) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %v: tensor<4x4xf32>) attributes {mesh = {"S":4}} {
  %s0 = dot_general(%q, %k) {contract=[1]x[1]} : tensor<4x4xf32>
  %k1 = permute {+1 around} <"S"> %k : tensor<4x4xf32>
  %s1 = dot_general(%q, %k1) {contract=[1]x[1]} : tensor<4x4xf32>
  %k2 = permute {+1 around} <"S"> %k1 : tensor<4x4xf32>
  %s2 = dot_general(%q, %k2) {contract=[1]x[1]} : tensor<4x4xf32>
  %k3 = permute {+1 around} <"S"> %k2 : tensor<4x4xf32>
  %s3 = dot_general(%q, %k3) {contract=[1]x[1]} : tensor<4x4xf32>
  %m0 = reduce(%s0) {max, dims=[0, 1]} : tensor<f32>
  %m1 = reduce(%s1) {max, dims=[0, 1]} : tensor<f32>
  %m2 = reduce(%s2) {max, dims=[0, 1]} : tensor<f32>
  %m3 = reduce(%s3) {max, dims=[0, 1]} : tensor<f32>
  %m01 = maximum(%m0, %m1) : tensor<f32>
  %m012 = maximum(%m01, %m2) : tensor<f32>
  %own = maximum(%m012, %m3) : tensor<f32>
  %m = all_reduce <@max> <"S"> %own : tensor<f32>
  %d0 = subtract(%s0, %m) : tensor<4x4xf32>
  %e0 = exp(%d0) : tensor<4x4xf32>
  %p0 = reduce(%e0) {add, dims=[1]} : tensor<4xf32>
  %o0 = matmul(%e0, %v) : tensor<4x4xf32>
  %v1 = permute {+1 around} <"S"> %v : tensor<4x4xf32>
  %d1 = subtract(%s1, %m) : tensor<4x4xf32>
  %e1 = exp(%d1) : tensor<4x4xf32>
  %p1 = reduce(%e1) {add, dims=[1]} : tensor<4xf32>
  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
  %l1 = add(%p0, %p1) : tensor<4xf32>
  %a1 = add(%o0, %o1) : tensor<4x4xf32>
  %v2 = permute {+1 around} <"S"> %v1 : tensor<4x4xf32>
  %d2 = subtract(%s2, %m) : tensor<4x4xf32>
  %e2 = exp(%d2) : tensor<4x4xf32>
  %p2 = reduce(%e2) {add, dims=[1]} : tensor<4xf32>
  %o2 = matmul(%e2, %v2) : tensor<4x4xf32>
  %l2 = add(%l1, %p2) : tensor<4xf32>
  %a2 = add(%a1, %o2) : tensor<4x4xf32>
  %v3 = permute {+1 around} <"S"> %v2 : tensor<4x4xf32>
  %d3 = subtract(%s3, %m) : tensor<4x4xf32>
  %e3 = exp(%d3) : tensor<4x4xf32>
  %p3 = reduce(%e3) {add, dims=[1]} : tensor<4xf32>
  %o3 = matmul(%e3, %v3) : tensor<4x4xf32>
  %l3 = add(%l2, %p3) : tensor<4xf32>
  %a3 = add(%a2, %o3) : tensor<4x4xf32>
  %ll = broadcast_in_dim(%l3) {dims=[0]} : tensor<4x4xf32>
  %y = divide(%a3, %ll) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{"S"}, {}])", R"([{"S"}, {}])"},
       {R"([{"S"}, {}])"},
       {
           {"values do not follow the keys",
            {{R"(  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
)",
              R"(  %o1 = matmul(%e1, %v) : tensor<4x4xf32>
)"}},
            {"%o0", "%o1"}},
           {"a block with a maximum of its own",
            {{R"(  %d0 = subtract(%s0, %m) : tensor<4x4xf32>
)",
              R"(  %d0 = subtract(%s0, %m0) : tensor<4x4xf32>
)"}},
            {"%d0", "%m0"}},
       },
       equality::up_to_sums,
       4},
      // Sums are rescaled whenever a greater score follows: equal as functions of real numbers.
      {"ring attention, online softmax",
       R"(func @main(%q: tensor<16x4xf32>, %k: tensor<16x4xf32>, %v: tensor<16x4xf32>) {
  %s = dot_general(%q, %k) {contract=[1]x[1]} : tensor<16x16xf32>
  %m = reduce(%s) {max, dims=[1]} : tensor<16xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<16x16xf32>
  %d = subtract(%s, %mm) : tensor<16x16xf32>
  %e = exp(%d) : tensor<16x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<16xf32>
  %o = matmul(%e, %v) : tensor<16x4xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<16x4xf32>
  %y = divide(%o, %ll) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %v: tensor<4x4xf32>) attributes {mesh = {"S":4}} {
  %s0 = dot_general(%q, %k) {contract=[1]x[1]} : tensor<4x4xf32>
  %b0 = reduce(%s0) {max, dims=[1]} : tensor<4xf32>
  %mm0 = broadcast_in_dim(%b0) {dims=[0]} : tensor<4x4xf32>
  %d0 = subtract(%s0, %mm0) : tensor<4x4xf32>
  %e0 = exp(%d0) : tensor<4x4xf32>
  %p0 = reduce(%e0) {add, dims=[1]} : tensor<4xf32>
  %o0 = matmul(%e0, %v) : tensor<4x4xf32>
  %k1 = permute {+1 around} <"S"> %k : tensor<4x4xf32>
  %v1 = permute {+1 around} <"S"> %v : tensor<4x4xf32>
  %s1 = dot_general(%q, %k1) {contract=[1]x[1]} : tensor<4x4xf32>
  %b1 = reduce(%s1) {max, dims=[1]} : tensor<4xf32>
  %m1 = maximum(%b0, %b1) : tensor<4xf32>
  %f1 = subtract(%b0, %m1) : tensor<4xf32>
  %c1 = exp(%f1) : tensor<4xf32>
  %cc1 = broadcast_in_dim(%c1) {dims=[0]} : tensor<4x4xf32>
  %mm1 = broadcast_in_dim(%m1) {dims=[0]} : tensor<4x4xf32>
  %d1 = subtract(%s1, %mm1) : tensor<4x4xf32>
  %e1 = exp(%d1) : tensor<4x4xf32>
  %p1 = reduce(%e1) {add, dims=[1]} : tensor<4xf32>
  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
  %lc1 = multiply(%p0, %c1) : tensor<4xf32>
  %l1 = add(%lc1, %p1) : tensor<4xf32>
  %ac1 = multiply(%o0, %cc1) : tensor<4x4xf32>
  %a1 = add(%ac1, %o1) : tensor<4x4xf32>
  %k2 = permute {+1 around} <"S"> %k1 : tensor<4x4xf32>
  %v2 = permute {+1 around} <"S"> %v1 : tensor<4x4xf32>
  %s2 = dot_general(%q, %k2) {contract=[1]x[1]} : tensor<4x4xf32>
  %b2 = reduce(%s2) {max, dims=[1]} : tensor<4xf32>
  %m2 = maximum(%m1, %b2) : tensor<4xf32>
  %f2 = subtract(%m1, %m2) : tensor<4xf32>
  %c2 = exp(%f2) : tensor<4xf32>
  %cc2 = broadcast_in_dim(%c2) {dims=[0]} : tensor<4x4xf32>
  %mm2 = broadcast_in_dim(%m2) {dims=[0]} : tensor<4x4xf32>
  %d2 = subtract(%s2, %mm2) : tensor<4x4xf32>
  %e2 = exp(%d2) : tensor<4x4xf32>
  %p2 = reduce(%e2) {add, dims=[1]} : tensor<4xf32>
  %o2 = matmul(%e2, %v2) : tensor<4x4xf32>
  %lc2 = multiply(%l1, %c2) : tensor<4xf32>
  %l2 = add(%lc2, %p2) : tensor<4xf32>
  %ac2 = multiply(%a1, %cc2) : tensor<4x4xf32>
  %a2 = add(%ac2, %o2) : tensor<4x4xf32>
  %k3 = permute {+1 around} <"S"> %k2 : tensor<4x4xf32>
  %v3 = permute {+1 around} <"S"> %v2 : tensor<4x4xf32>
  %s3 = dot_general(%q, %k3) {contract=[1]x[1]} : tensor<4x4xf32>
  %b3 = reduce(%s3) {max, dims=[1]} : tensor<4xf32>
  %m3 = maximum(%m2, %b3) : tensor<4xf32>
  %f3 = subtract(%m2, %m3) : tensor<4xf32>
  %c3 = exp(%f3) : tensor<4xf32>
  %cc3 = broadcast_in_dim(%c3) {dims=[0]} : tensor<4x4xf32>
  %mm3 = broadcast_in_dim(%m3) {dims=[0]} : tensor<4x4xf32>
  %d3 = subtract(%s3, %mm3) : tensor<4x4xf32>
  %e3 = exp(%d3) : tensor<4x4xf32>
  %p3 = reduce(%e3) {add, dims=[1]} : tensor<4xf32>
  %o3 = matmul(%e3, %v3) : tensor<4x4xf32>
  %lc3 = multiply(%l2, %c3) : tensor<4xf32>
  %l3 = add(%lc3, %p3) : tensor<4xf32>
  %ac3 = multiply(%a2, %cc3) : tensor<4x4xf32>
  %a3 = add(%ac3, %o3) : tensor<4x4xf32>
  %ll = broadcast_in_dim(%l3) {dims=[0]} : tensor<4x4xf32>
  %y = divide(%a3, %ll) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{"S"}, {}])", R"([{"S"}, {}])"},
       {R"([{"S"}, {}])"},
       {
           {"the sum of exponentials is not scaled",
            {{R"(  %l2 = add(%lc2, %p2) : tensor<4xf32>
)",
              R"(  %l2 = add(%l1, %p2) : tensor<4xf32>
)"}},
            {"%d0"}},
       },
       equality::as_real_functions,
       4},
      // Positions are exchanged for heads, and back after attention.
      {"Ulysses",
       R"(func @main(%q: tensor<16x4x2xf32>, %k: tensor<16x4x2xf32>, %v: tensor<16x4x2xf32>) {
  %s = dot_general(%q, %k) {batch=[1]x[1], contract=[2]x[2]} : tensor<4x16x16xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<4x16xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<4x16x16xf32>
  %d = subtract(%s, %mm) : tensor<4x16x16xf32>
  %e = exp(%d) : tensor<4x16x16xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<4x16xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<4x16x16xf32>
  %a = divide(%e, %ll) : tensor<4x16x16xf32>
  %o = dot_general(%a, %v) {batch=[0]x[1], contract=[2]x[0]} : tensor<4x16x2xf32>
  %y = transpose(%o) {dims=[1, 0, 2]} : tensor<16x4x2xf32>
  return %y : tensor<16x4x2xf32>
}
)",
       R"(func @main(%q: tensor<4x4x2xf32>, %k: tensor<4x4x2xf32>, %v: tensor<4x4x2xf32>) attributes {mesh = {"S":4}} {
  %qh = all_to_all {0 -> 1} <"S"> %q : tensor<16x1x2xf32>
  %kh = all_to_all {0 -> 1} <"S"> %k : tensor<16x1x2xf32>
  %vh = all_to_all {0 -> 1} <"S"> %v : tensor<16x1x2xf32>
  %s = dot_general(%qh, %kh) {batch=[1]x[1], contract=[2]x[2]} : tensor<1x16x16xf32>
  %m = reduce(%s) {max, dims=[2]} : tensor<1x16xf32>
  %mm = broadcast_in_dim(%m) {dims=[0, 1]} : tensor<1x16x16xf32>
  %d = subtract(%s, %mm) : tensor<1x16x16xf32>
  %e = exp(%d) : tensor<1x16x16xf32>
  %l = reduce(%e) {add, dims=[2]} : tensor<1x16xf32>
  %ll = broadcast_in_dim(%l) {dims=[0, 1]} : tensor<1x16x16xf32>
  %a = divide(%e, %ll) : tensor<1x16x16xf32>
  %o = dot_general(%a, %vh) {batch=[0]x[1], contract=[2]x[0]} : tensor<1x16x2xf32>
  %back = all_to_all {0 -> 1} <"S"> %o : tensor<4x4x2xf32>
  %y = transpose(%back) {dims=[1, 0, 2]} : tensor<4x4x2xf32>
  return %y : tensor<4x4x2xf32>
}
)",
       {R"([{"S"}, {}, {}])", R"([{"S"}, {}, {}])", R"([{"S"}, {}, {}])"},
       {R"([{"S"}, {}, {}])"},
       {
           {"heads and positions exchanged",
            {{R"(  return %y : tensor<4x4x2xf32>
)",
              R"(  return %back : tensor<4x4x2xf32>
)"}},
            {"%back"}},
           {"heads as positions",
            {{R"(  %vh = all_to_all {0 -> 1} <"S"> %v : tensor<16x1x2xf32>
)",
              R"(  %vt = transpose(%v) {dims=[1, 0, 2]} : tensor<4x4x2xf32>
  %vh = all_to_all {0 -> 1} <"S"> %vt : tensor<16x1x2xf32>
)"}},
            {"%vh", "%o"}},
       },
       equality::up_to_sums,
       4},
      // Keys and values are gathered; the rows of the mask are those of the local queries.
      {"context parallelism with a causal mask",
       R"(func @main(%q: tensor<16x4xf32>, %k: tensor<16x4xf32>, %v: tensor<16x4xf32>) {
  %s = dot_general(%q, %k) {contract=[1]x[1]} : tensor<16x16xf32>
  %i = iota {dim=0} : tensor<16xi32>
  %rows = broadcast_in_dim(%i) {dims=[0]} : tensor<16x16xi32>
  %columns = iota {dim=1} : tensor<16x16xi32>
  %seen = compare(%rows, %columns) {ge} : tensor<16x16xi1>
  %never = constant {-1e9} : tensor<f32>
  %t = select(%seen, %s, %never) : tensor<16x16xf32>
  %m = reduce(%t) {max, dims=[1]} : tensor<16xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<16x16xf32>
  %d = subtract(%t, %mm) : tensor<16x16xf32>
  %e = exp(%d) : tensor<16x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<16xf32>
  %o = matmul(%e, %v) : tensor<16x4xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<16x4xf32>
  %y = divide(%o, %ll) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %v: tensor<4x4xf32>) attributes {mesh = {"S":4}} {
  %i = iota {dim=0} : tensor<4xi32>
  %start = shard_start {4 <"S">} : tensor<i32>
  %row = add(%i, %start) : tensor<4xi32>
  %rows = broadcast_in_dim(%row) {dims=[0]} : tensor<4x16xi32>
  %columns = iota {dim=1} : tensor<4x16xi32>
  %seen = compare(%columns, %rows) {le} : tensor<4x16xi1>
  %ka = all_gather [{"S"}, {}] %k : tensor<16x4xf32>
  %s = dot_general(%q, %ka) {contract=[1]x[1]} : tensor<4x16xf32>
  %never = constant {-1e9} : tensor<f32>
  %t = select(%seen, %s, %never) : tensor<4x16xf32>
  %m = reduce(%t) {max, dims=[1]} : tensor<4xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<4x16xf32>
  %d = subtract(%t, %mm) : tensor<4x16xf32>
  %e = exp(%d) : tensor<4x16xf32>
  %va = all_gather [{"S"}, {}] %v : tensor<16x4xf32>
  %o = matmul(%e, %va) : tensor<4x4xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<4xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<4x4xf32>
  %y = divide(%o, %ll) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{"S"}, {}])", R"([{"S"}, {}])"},
       {R"([{"S"}, {}])"},
       {
           {"rows are numbered from 0 on each device",
            {{R"(  %rows = broadcast_in_dim(%row) {dims=[0]} : tensor<4x16xi32>
)",
              R"(  %rows = broadcast_in_dim(%i) {dims=[0]} : tensor<4x16xi32>
)"}},
            {"%rows", "%seen", "%t", "%m"}},
       },
       equality::up_to_sums,
       4},
      // The source contains the ops of reverse mode: a product with ones, reshapes before
      // broadcasts.
      {"the scale of a traced layer norm",
       R"(func @main(%scale: tensor<4xf32>, %x: tensor<16x4xf32>, %dy: tensor<16x4xf32>) {
  %x1 = constant {1} : tensor<f32>
  %x2 = broadcast_in_dim(%x1) {dims=[]} : tensor<16x4xf32>
  %x3 = multiply(%x2, %dy) : tensor<16x4xf32>
  %x4 = reduce(%x) {add, dims=[1]} : tensor<16xf32>
  %x5 = constant {0.25} : tensor<f32>
  %x6 = multiply(%x4, %x5) : tensor<16xf32>
  %x7 = reshape(%x6) : tensor<16x1xf32>
  %x8 = broadcast_in_dim(%x7) {dims=[0, 1]} : tensor<16x4xf32>
  %x9 = subtract(%x, %x8) : tensor<16x4xf32>
  %x10 = multiply(%x9, %x9) : tensor<16x4xf32>
  %x11 = reduce(%x10) {add, dims=[1]} : tensor<16xf32>
  %x12 = multiply(%x11, %x5) : tensor<16xf32>
  %x13 = constant {1e-5} : tensor<f32>
  %x14 = add(%x12, %x13) : tensor<16xf32>
  %x15 = rsqrt(%x14) : tensor<16xf32>
  %x16 = reshape(%x15) : tensor<16x1xf32>
  %x17 = broadcast_in_dim(%x16) {dims=[0, 1]} : tensor<16x4xf32>
  %x18 = multiply(%x9, %x17) : tensor<16x4xf32>
  %x19 = multiply(%x3, %x18) : tensor<16x4xf32>
  %x20 = reduce(%x19) {add, dims=[0]} : tensor<4xf32>
  %scale' = subtract(%scale, %x20) : tensor<4xf32>
  return %scale' : tensor<4xf32>
}
)",
       R"(func @main(%scale: tensor<4xf32>, %x: tensor<4x4xf32>, %dy: tensor<4x4xf32>) attributes {mesh = {"M":4}} {
  %sum = reduce(%x) {add, dims=[1]} : tensor<4xf32>
  %c = constant {0.25} : tensor<f32>
  %mean = multiply(%sum, %c) : tensor<4xf32>
  %mm = broadcast_in_dim(%mean) {dims=[0]} : tensor<4x4xf32>
  %d = subtract(%x, %mm) : tensor<4x4xf32>
  %dd = multiply(%d, %d) : tensor<4x4xf32>
  %ss = reduce(%dd) {add, dims=[1]} : tensor<4xf32>
  %var = multiply(%ss, %c) : tensor<4xf32>
  %eps = constant {1e-5} : tensor<f32>
  %v = add(%var, %eps) : tensor<4xf32>
  %r = rsqrt(%v) : tensor<4xf32>
  %rr = broadcast_in_dim(%r) {dims=[0]} : tensor<4x4xf32>
  %n = multiply(%d, %rr) : tensor<4x4xf32>
  %p = multiply(%n, %dy) : tensor<4x4xf32>
  %own = reduce(%p) {add, dims=[0]} : tensor<4xf32>
  %g = all_reduce <"M"> %own : tensor<4xf32>
  %scale' = subtract(%scale, %g) : tensor<4xf32>
  return %scale' : tensor<4xf32>
}
)",
       {R"([{}])", R"([{"M"}, {}])", R"([{"M"}, {}])"},
       {R"([{}])"},
       {
           {"not reduced",
            {{R"(  %scale' = subtract(%scale, %g) : tensor<4xf32>
)",
              R"(  %scale' = subtract(%scale, %own) : tensor<4xf32>
)"}},
            {"%scale'"}},
           {"reduced twice",
            {{R"(  %scale' = subtract(%scale, %g) : tensor<4xf32>
)",
              R"(  %g2 = all_reduce <"M"> %g : tensor<4xf32>
  %scale' = subtract(%scale, %g2) : tensor<4xf32>
)"}},
            {"%g2"}},
       },
       equality::up_to_sums,
       4},
      // The source divides exponentials, the devices divide the sums with the values.
      {"ring attention for a source that divides first",
       R"(func @main(%q: tensor<16x4xf32>, %k: tensor<16x4xf32>, %v: tensor<16x4xf32>) {
  %s = dot_general(%q, %k) {contract=[1]x[1]} : tensor<16x16xf32>
  %m = reduce(%s) {max, dims=[1]} : tensor<16xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<16x16xf32>
  %d = subtract(%s, %mm) : tensor<16x16xf32>
  %e = exp(%d) : tensor<16x16xf32>
  %l = reduce(%e) {add, dims=[1]} : tensor<16xf32>
  %ll = broadcast_in_dim(%l) {dims=[0]} : tensor<16x16xf32>
  %a = divide(%e, %ll) : tensor<16x16xf32>
  %y = matmul(%a, %v) : tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}
)",
       R"(func @main(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %v: tensor<4x4xf32>) attributes {mesh = {"S":4}} {
  %s0 = dot_general(%q, %k) {contract=[1]x[1]} : tensor<4x4xf32>
  %k1 = permute {+1 around} <"S"> %k : tensor<4x4xf32>
  %s1 = dot_general(%q, %k1) {contract=[1]x[1]} : tensor<4x4xf32>
  %k2 = permute {+1 around} <"S"> %k1 : tensor<4x4xf32>
  %s2 = dot_general(%q, %k2) {contract=[1]x[1]} : tensor<4x4xf32>
  %k3 = permute {+1 around} <"S"> %k2 : tensor<4x4xf32>
  %s3 = dot_general(%q, %k3) {contract=[1]x[1]} : tensor<4x4xf32>
  %m0 = reduce(%s0) {max, dims=[1]} : tensor<4xf32>
  %m1 = reduce(%s1) {max, dims=[1]} : tensor<4xf32>
  %m2 = reduce(%s2) {max, dims=[1]} : tensor<4xf32>
  %m3 = reduce(%s3) {max, dims=[1]} : tensor<4xf32>
  %m01 = maximum(%m0, %m1) : tensor<4xf32>
  %m23 = maximum(%m2, %m3) : tensor<4xf32>
  %m = maximum(%m01, %m23) : tensor<4xf32>
  %mm = broadcast_in_dim(%m) {dims=[0]} : tensor<4x4xf32>
  %d0 = subtract(%s0, %mm) : tensor<4x4xf32>
  %e0 = exp(%d0) : tensor<4x4xf32>
  %p0 = reduce(%e0) {add, dims=[1]} : tensor<4xf32>
  %o0 = matmul(%e0, %v) : tensor<4x4xf32>
  %v1 = permute {+1 around} <"S"> %v : tensor<4x4xf32>
  %d1 = subtract(%s1, %mm) : tensor<4x4xf32>
  %e1 = exp(%d1) : tensor<4x4xf32>
  %p1 = reduce(%e1) {add, dims=[1]} : tensor<4xf32>
  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
  %l1 = add(%p0, %p1) : tensor<4xf32>
  %a1 = add(%o0, %o1) : tensor<4x4xf32>
  %v2 = permute {+1 around} <"S"> %v1 : tensor<4x4xf32>
  %d2 = subtract(%s2, %mm) : tensor<4x4xf32>
  %e2 = exp(%d2) : tensor<4x4xf32>
  %p2 = reduce(%e2) {add, dims=[1]} : tensor<4xf32>
  %o2 = matmul(%e2, %v2) : tensor<4x4xf32>
  %l2 = add(%l1, %p2) : tensor<4xf32>
  %a2 = add(%a1, %o2) : tensor<4x4xf32>
  %v3 = permute {+1 around} <"S"> %v2 : tensor<4x4xf32>
  %d3 = subtract(%s3, %mm) : tensor<4x4xf32>
  %e3 = exp(%d3) : tensor<4x4xf32>
  %p3 = reduce(%e3) {add, dims=[1]} : tensor<4xf32>
  %o3 = matmul(%e3, %v3) : tensor<4x4xf32>
  %l3 = add(%l2, %p3) : tensor<4xf32>
  %a3 = add(%a2, %o3) : tensor<4x4xf32>
  %ll = broadcast_in_dim(%l3) {dims=[0]} : tensor<4x4xf32>
  %y = divide(%a3, %ll) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
       {R"([{"S"}, {}])", R"([{"S"}, {}])", R"([{"S"}, {}])"},
       {R"([{"S"}, {}])"},
       {
           {"values do not follow the keys",
            {{R"(  %o1 = matmul(%e1, %v1) : tensor<4x4xf32>
)",
              R"(  %o1 = matmul(%e1, %v) : tensor<4x4xf32>
)"}},
            {"%o0", "%o1"}},
       },
       equality::as_real_functions,
       4},
      // The first point follows the last one.
      {"a ring of points",
       R"(func @main(%x: tensor<16xf32>) {
  %before = roll(%x) {dim=0, shift=1} : tensor<16xf32>
  %y = subtract(%x, %before) : tensor<16xf32>
  return %y : tensor<16xf32>
}
)",
       R"(func @main(%x: tensor<4xf32>) attributes {mesh = {"S":4}} {
  %last = slice(%x) {[3:4]} : tensor<1xf32>
  %left = permute {+1 around} <"S"> %last : tensor<1xf32>
  %others = slice(%x) {[0:3]} : tensor<3xf32>
  %before = concatenate(%left, %others) {dim=0} : tensor<4xf32>
  %y = subtract(%x, %before) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
       {R"([{"S"}])"},
       {R"([{"S"}])"},
       {
           {"a chain where the ring is due",
            {{R"(  %left = permute {+1 around} <"S"> %last : tensor<1xf32>
)",
              R"(  %left = permute {+1} <"S"> %last : tensor<1xf32>
)"}},
            {"%left", "%before", "%y"}},
           {"the point behind",
            {{R"(  %left = permute {+1 around} <"S"> %last : tensor<1xf32>
)",
              R"(  %left = permute {-1 around} <"S"> %last : tensor<1xf32>
)"}},
            {"%left", "%before", "%y"}},
           {"the first point is sent",
            {{R"(  %last = slice(%x) {[3:4]} : tensor<1xf32>
)",
              R"(  %last = slice(%x) {[0:1]} : tensor<1xf32>
)"}},
            {"%left", "%before", "%y"}},
       },
       equality::exactly,
       4},
  };
}

}  // namespace practice
