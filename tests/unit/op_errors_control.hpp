/// Errors of ops that have nested programs or several results.
#pragma once

#include "op_errors.hpp"

inline void add_control_errors(std::vector<op_error>& list) {
  namespace pt = partita;
  using namespace pt::op;
  using types = std::vector<pt::tensor_type>;
  using numbers = std::vector<std::int64_t>;
  using programs = std::vector<pt::program>;
  const auto f32 = [](pt::shape s) { return pt::tensor_type{pt::dtype::f32, s}; };
  const auto i32 = [](pt::shape s) { return pt::tensor_type{pt::dtype::i32, s}; };
  const pt::tensor_type x = f32({4}), y = f32({5}), i1{pt::dtype::boolean, {}};
  const auto put = [&](std::string_view message, const pt::op_def& op, types operands,
                       numbers attrs = {}, programs regions = {}) {
    list.push_back({message.substr(0, 4), &op, operands, attrs, {}, message, regions});
  };

  const pt::program test = nested({x}, {i1}), step = nested({x}, {x});
  const auto& loop = pt::def<while_loop>;
  put("S180 while: 1 nested programs; 2 are needed", loop, {x}, {}, {step});
  put("S180 while: a nested program has 2 inputs; it is called with 1", loop, {x}, {},
      {nested({x, x}, {i1}), step});
  put("S180 while: a nested program has 0 inputs; it is called with 1", loop, {x}, {},
      {test, nested({}, {x})});
  put("S180 while: the condition returns 2 values; it must return 1", loop, {x}, {},
      {nested({x}, {i1, i1}), step});
  put("S180 while: the body returns 0 values; it must return 1", loop, {x}, {},
      {test, nested({x}, {})});
  put("S180 while: the body returns 2 values; it must return 1", loop, {x}, {},
      {test, nested({x}, {x, x})});
  put("S180 while: it has no results", loop, {}, {}, {nested({}, {i1}), nested({}, {})});
  put("S181 while: input 0 of a nested program has type tensor<4xf32>; it is called with "
      "tensor<5xf32>",
      loop, {y}, {}, {test, nested({y}, {y})});
  put("S182 while: the condition returns tensor<4xf32> as value 0; tensor<i1> is needed", loop, {x},
      {}, {step, step});
  put("S182 while: the body returns tensor<5xf32> as value 1; tensor<4xf32> is needed", loop,
      {x, x}, {}, {nested({x, x}, {i1}), nested({x, x}, {x, y})});

  // length, reversed; constants, carried, sliced, stacked; saved
  const pt::tensor_type index = i32({}), slices = f32({3, 4});
  const pt::program body = nested({index, x, x}, {x, y});
  const auto& scanned = pt::def<scan>;
  put("S180 scan: 0 nested programs; 1 is needed", scanned, {x, slices}, {3, 0, 0, 1, 1, 1, 0});
  put("S180 scan: 6 attributes; 7 are needed", scanned, {x, slices}, {3, 0, 0, 1, 1, 1}, {body});
  put("S180 scan: 1 constant, 1 carried and 1 sliced values; it has 2 operands", scanned,
      {x, slices}, {3, 0, 1, 1, 1, 1, 0}, {body});
  put("S180 scan: -1 constant, 2 carried and 1 sliced values; it has 2 operands", scanned,
      {x, slices}, {3, 0, -1, 2, 1, 1, 0}, {body});
  put("S180 scan: 9223372036854775807 constant, 1 carried and 1 sliced values; it has 2 operands",
      scanned, {x, slices}, {3, 0, INT64_MAX, 1, 1, 1, 0}, {body});
  put("S180 scan: 3 stacked results, 0 of them saved; the body returns 2 values", scanned,
      {x, slices}, {3, 0, 0, 1, 1, 3, 0}, {body});
  put("S180 scan: 0 stacked results, 1 of them saved; the body returns 1 values", scanned,
      {x, slices}, {3, 0, 0, 1, 1, 0, 1}, {nested({index, x, x}, {x})});
  put("S180 scan: a nested program has 2 inputs; it is called with 3", scanned, {x, slices},
      {3, 0, 0, 1, 1, 1, 0}, {nested({index, x}, {x, y})});
  put("S180 scan: the body returns 2 values; it must return 1", scanned, {x, slices},
      {3, 0, 0, 1, 1, 0, 0}, {body});
  put("S180 scan: it has no results", scanned, {slices}, {3, 0, 0, 0, 1, 0, 0},
      {nested({index, x}, {})});
  put("S181 scan: input 0 of a nested program has type tensor<4xf32>; it is called with "
      "tensor<i32>",
      scanned, {x, slices}, {3, 0, 0, 1, 1, 1, 0}, {nested({x, x, x}, {x, y})});
  put("S181 scan: input 2 of a nested program has type tensor<5xf32>; it is called with "
      "tensor<4xf32>",
      scanned, {x, slices}, {3, 0, 0, 1, 1, 1, 0}, {nested({index, x, y}, {x, y})});
  put("S182 scan: the body returns tensor<5xf32> as value 0; tensor<4xf32> is needed", scanned,
      {x, slices}, {3, 0, 0, 1, 1, 1, 0}, {nested({index, x, x}, {y, y})});
  put("S183 scan: the length is -3; it must be between 0 and 2147483647", scanned, {x, slices},
      {-3, 0, 0, 1, 1, 1, 0}, {body});
  put("S184 scan: sliced value 0 has type tensor<3x4xf32>; its first extent must be the length, 2",
      scanned, {x, slices}, {2, 0, 0, 1, 1, 1, 0}, {body});
  put("S184 scan: sliced value 1 has type tensor<f32>; its first extent must be the length, 3",
      scanned, {slices, f32({})}, {3, 0, 0, 0, 2, 1, 0}, {body});

  const auto& branches = pt::def<case_of>;
  put("S180 case: 0 nested programs; 1 or more are needed", branches, {index, x});
  put("S180 case: a nested program has 1 inputs; it is called with 0", branches, {index}, {},
      {step});
  put("S180 case: it has no results", branches, {index}, {}, {nested({}, {})});
  put("S181 case: input 0 of a nested program has type tensor<4xf32>; it is called with "
      "tensor<5xf32>",
      branches, {index, y}, {}, {step});
  put("S185 case: branch 1 returns (tensor<5xf32>), branch 0 returns (tensor<4xf32>)", branches,
      {index, x}, {}, {step, nested({x}, {y})});
  put("S185 case: branch 2 returns (tensor<4xf32>, tensor<4xf32>), branch 0 returns "
      "(tensor<4xf32>)",
      branches, {index, x}, {}, {step, step, nested({x}, {x, x})});
  put("S186 case: the index has type tensor<f32>; tensor<i32> is needed", branches, {f32({}), x},
      {}, {step});
  put("S186 case: the index has type tensor<4xi32>; tensor<i32> is needed", branches, {i32({4}), x},
      {}, {step});
  put("S186 case: the index is missing", branches, {}, {}, {nested({}, {x})});

  put("S180 call: 2 nested programs; 1 is needed", pt::def<call>, {x}, {}, {step, step});
  put("S180 call: a nested program has 1 inputs; it is called with 2", pt::def<call>, {x, x}, {},
      {step});
  put("S180 call: it has no results", pt::def<call>, {x}, {}, {nested({x}, {})});
  put("S181 call: input 0 of a nested program has type tensor<4xf32>; it is called with "
      "tensor<5xf32>",
      pt::def<call>, {y}, {}, {step});
  put("S180 optimization_barrier: it has no results", pt::def<optimization_barrier>, {});

  put("S187 sort: shapes [4] and [5] differ", pt::def<sort>, {x, y}, {0, 1, 0});
  put("S188 sort: 0 operands and 3 attributes; 1 or more and 3 are needed", pt::def<sort>, {},
      {0, 1, 0});
  put("S188 sort: 1 operands and 2 attributes; 1 or more and 3 are needed", pt::def<sort>, {x},
      {0, 1});
  put("S188 sort: dimension 1 is out of range for tensor<4xf32>", pt::def<sort>, {x}, {1, 1, 0});
  put("S188 sort: dimension -1 is out of range for tensor<4xf32>", pt::def<sort>, {x}, {-1, 1, 0});
  put("S188 sort: 2 keys of 1 operands", pt::def<sort>, {x}, {0, 2, 0});
  put("S188 sort: 0 keys of 1 operands", pt::def<sort>, {x}, {0, 0, 0});
  put("S189 top_k: k is 5; the last dimension of tensor<4xf32> must have as many elements",
      pt::def<top_k>, {x, i32({4})}, {5});
  put("S189 top_k: k is -1; 0 or more is needed", pt::def<top_k>, {x, i32({4})}, {-1});
  put("S189 top_k: tensor<f32> has no last dimension", pt::def<top_k>, {f32({}), i32({})}, {1});
  put("S103 top_k: shapes [4] and [5] differ", pt::def<top_k>, {x, i32({5})}, {2});
  put("S120 top_k: element type f32 of the positions is not an integer type", pt::def<top_k>,
      {x, x}, {2});

  put("S149 place: 0 attributes; one of device, pinned_host, unpinned_host is needed",
      pt::def<pt::op::place>, {x}, {});
  put("S149 place: 1 attributes; one of device, pinned_host, unpinned_host is needed",
      pt::def<pt::op::place>, {x}, {3});
  const pt::tensor_type square = f32({4, 4});
  put("S199 dot_general: 2 attributes after the dimensions are not a precision",
      pt::def<dot_general>, {square, square}, {0, 1, 1, 0, 3, 0});
  put("S199 dot_general: 1 attributes after the dimensions are not a precision",
      pt::def<dot_general>, {square, square}, {0, 1, 1, 0, 2});
  put("S199 convolution: 9 attributes after the groups are not two precisions",
      pt::def<convolution>, {square, square},
      {0, 1, 0, 1, 0, 1, 0, 1, 2, 2, 14, 14, 14, 1, 1, 1, 0});
  put("S199 exp: 1 attributes that start with 2 are not an accuracy", pt::def<pt::op::exp>, {x},
      {2});
  put("S198 fold: 1 operands and 1 attributes are not a function of scalars", pt::def<fold>, {x},
      {1});
  put("S198 fold: its steps do not return a scalar of each operand's type", pt::def<fold>, {x},
      {1, 1, 0, 1, 0, 2, 8, 0, 2, 0, 7, 0});
  put("S198 fold: its steps do not return a scalar of each operand's type", pt::def<fold>, {x},
      {1, 1, 0, 1, 0, 2, 99, 0, 2, 0, 1, 0});
  put("S198 fold: its steps do not return a scalar of each operand's type", pt::def<fold>, {x},
      {1, 1, 0, 1, 0, 5, 8, 0, 2, 0, 1, 0});
  put("S198 fold: its steps do not return a scalar of each operand's type", pt::def<fold>, {x},
      {1, 1, 0, 1, 0, 2, 8, 1, 2, 0, 1, 0});
  put("S198 fold: its steps do not return a scalar of each operand's type", pt::def<fold>, {x},
      {1, 1, 0, 1, 0, 2, 8, -3, 2, 0, 1, 0});
  put("S103 fold: shapes [4] and [5] differ", pt::def<fold>, {x, f32({5})},
      {1, 1, 0, 2, 0, 0, 0, 1, 8, 0, 2, 0, 1, 0});
  put("S110 fold: dimension 1 is out of order or out of range for tensor<4xf32>", pt::def<fold>,
      {x}, {1, 1, 1, 1, 0, 2, 8, 0, 2, 0, 1, 0});
  put("S198 fold: dimension 0 of tensor<0xf32> is empty, and no identity is given", pt::def<fold>,
      {f32({0})}, {1, 1, 0, 0, 2, 8, -1, 2, 0, 1, 0});

  put("P017 reduce: 1 operands are given; 2 (values, positions) are needed", pt::def<reduce>, {x},
      {7, 0});
  put("P017 reduce: 2 operands are given; 1 is needed", pt::def<reduce>, {x, i32({4})}, {2, 0});
  put("S103 reduce: shapes [4] and [5] differ", pt::def<reduce>, {x, i32({5})}, {7, 0});
  put("S104 reduce: element type i1 is not a number", pt::def<reduce>,
      {{pt::dtype::boolean, {4}}, i32({4})}, {8, 0});
  put("S110 reduce: dimension 1 is out of order or out of range for tensor<4xf32>", pt::def<reduce>,
      {x, i32({4})}, {8, 1});
  put("S120 reduce: element type f32 of the positions is not an integer type", pt::def<reduce>,
      {x, x}, {7, 0});
  put("S152 reduce: combiner 9 is not one of add (1), max (2), min (3), multiply (4), and (5), or "
      "(6), argmax (7), argmin (8)",
      pt::def<reduce>, {x}, {9, 0});
}
