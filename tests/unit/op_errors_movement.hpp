/// Errors of the ops that move data.
#pragma once

#include "op_errors.hpp"

inline void add_movement_errors(std::vector<op_error>& list) {
  using namespace partita;
  using attributes = std::vector<std::int64_t>;
  const auto put = [&](const op_def& op, std::vector<tensor_type> operands, attributes attrs,
                       std::string_view message, tensor_type declared = {}) {
    list.push_back({message.substr(0, 4), &op, operands, attrs, declared, message});
  };
  const auto f32 = [](shape s) { return tensor_type{dtype::f32, s}; };
  const auto i32 = [](shape s) { return tensor_type{dtype::i32, s}; };
  const auto i64 = [](shape s) { return tensor_type{dtype::i64, s}; };
  const auto i1 = [](shape s) { return tensor_type{dtype::boolean, s}; };

  put(def<op::concatenate>, {f32({4})}, {0, 1}, "S114 concatenate: 2 dimensions; one is needed");
  put(def<op::iota>, {}, {}, "S113 iota: 0 dimensions; one is needed", i32({4}));

  const tensor_type rank_nine = f32({1, 1, 1, 1, 1, 1, 1, 1, 1});
  put(def<op::reshape>, {f32({1})}, {},
      "S100 reshape: the result has rank 9; at most 8 is supported", rank_nine);
  put(def<op::broadcast_in_dim>, {f32({1})}, {8},
      "S100 broadcast_in_dim: the result has rank 9; at most 8 is supported", rank_nine);

  put(def<op::slice>, {f32({4, 6})}, {0, 0, 0, 4, 6}, "S115 slice: 2 bounds for tensor<4x6xf32>");
  put(def<op::slice>, {f32({4, 6})}, {0, -1, 4, 6},
      "S115 slice: bounds [-1, 6) are out of range for dimension 1 of tensor<4x6xf32>");
  put(def<op::slice>, {f32({4, 6})}, {3, 0, 2, 6},
      "S115 slice: bounds [3, 2) are out of range for dimension 0 of tensor<4x6xf32>");
  put(def<op::slice>, {f32({4, 6})}, {0, 0, -2, 6},
      "S115 slice: bounds [0, -2) are out of range for dimension 0 of tensor<4x6xf32>");
  put(def<op::slice>, {f32({4})}, {5, ops::whole},
      "S115 slice: bounds [5, 4) are out of range for dimension 0 of tensor<4xf32>");
  put(def<op::slice>, {f32({4, 6})}, {0, 0, 4, 6, 1, 0},
      "S130 slice: stride 0 of dimension 1 of tensor<4x6xf32> is below 1");

  put(def<op::pad>, {f32({4}), i32({})}, {0, 1, 0},
      "S102 pad: element types f32 and i32 differ; use convert");
  put(def<op::pad>, {f32({4, 6}), f32({})}, {0, 1, 0},
      "S131 pad: 3 amounts for tensor<4x6xf32>; 6 are needed");
  put(def<op::pad>, {f32({4}), f32({})}, {1, 1, -1},
      "S132 pad: interior padding -1 of dimension 0 of tensor<4xf32> is negative");
  put(def<op::pad>, {f32({4}), f32({1})}, {1, 1, 0},
      "S133 pad: the padding value tensor<1xf32> is not a scalar");
  put(def<op::pad>, {f32({4}), f32({})}, {-3, -5, 1},
      "S134 pad: low -3, high -5 and interior 1 give dimension 0 of tensor<4xf32> the size -1");

  put(def<op::pad>, {f32({4}), f32({})}, {0, std::int64_t{1} << 62, 0},
      "S118 pad: amount 4611686018427387904 of dimension 0 of tensor<4xf32> is out of range; a "
      "tensor has at most 2^59 - 1 elements");

  put(def<op::roll>, {f32({4, 6})}, {2, 1},
      "S197 roll: dimension 2 is out of range for tensor<4x6xf32>");
  put(def<op::roll>, {f32({4, 6})}, {1},
      "S197 roll: 1 attributes for tensor<4x6xf32>; a dimension and a shift are needed");
  put(def<op::reverse>, {f32({4, 6})}, {1, 0},
      "S135 reverse: dimension 0 is out of order or out of range for tensor<4x6xf32>");
  put(def<op::reverse>, {f32({4, 6})}, {2},
      "S135 reverse: dimension 2 is out of order or out of range for tensor<4x6xf32>");
  put(def<op::reverse>, {f32({4, 6})}, {-1},
      "S135 reverse: dimension -1 is out of order or out of range for tensor<4x6xf32>");

  put(def<op::dynamic_slice>, {}, {}, "S136 dynamic_slice: no operand");
  put(def<op::dynamic_slice>, {f32({4, 6}), i32({})}, {2, 2},
      "S136 dynamic_slice: 1 start indices for tensor<4x6xf32>");
  put(def<op::dynamic_slice>, {f32({4}), f32({})}, {2},
      "S136 dynamic_slice: start index 0 has type tensor<f32>; integer scalars of one type are "
      "needed");
  put(def<op::dynamic_slice>, {f32({4, 6}), i32({}), i64({})}, {2, 2},
      "S136 dynamic_slice: start index 1 has type tensor<i64>; integer scalars of one type are "
      "needed");
  put(def<op::dynamic_slice>, {f32({4}), i32({1})}, {2},
      "S136 dynamic_slice: start index 0 has type tensor<1xi32>; integer scalars of one type are "
      "needed");
  put(def<op::dynamic_slice>, {f32({4}), i32({})}, {2, 1},
      "S137 dynamic_slice: 2 sizes for tensor<4xf32>");
  put(def<op::dynamic_slice>, {f32({4}), i32({})}, {5},
      "S137 dynamic_slice: size 5 is out of range for dimension 0 of tensor<4xf32>");
  put(def<op::dynamic_slice>, {f32({4}), i32({})}, {-2},
      "S137 dynamic_slice: size -2 is out of range for dimension 0 of tensor<4xf32>");
  put(def<op::dynamic_update_slice>, {f32({4})}, {}, "S138 dynamic_update_slice: no update");
  put(def<op::dynamic_update_slice>, {f32({4}), f32({2})}, {},
      "S136 dynamic_update_slice: 0 start indices for tensor<4xf32>");
  put(def<op::dynamic_update_slice>, {f32({4}), i32({2}), i32({})}, {},
      "S102 dynamic_update_slice: element types f32 and i32 differ; use convert");
  put(def<op::dynamic_update_slice>, {f32({4}), f32({5}), i32({})}, {},
      "S138 dynamic_update_slice: update tensor<5xf32> does not fit in tensor<4xf32>");
  put(def<op::dynamic_update_slice>, {f32({4}), f32({}), i32({})}, {},
      "S138 dynamic_update_slice: update tensor<f32> does not fit in tensor<4xf32>");

  put(def<op::gather>, {f32({4, 6}), f32({3})}, {},
      "S111 gather: a table of rank 1 or more and integer indices are needed, not "
      "tensor<4x6xf32> and tensor<3xf32>");
  put(def<op::gather>, {f32({}), i32({3})}, {},
      "S111 gather: a table of rank 1 or more and integer indices are needed, not tensor<f32> and "
      "tensor<3xi32>");
  // offset, collapsed, operand batching, indices batching, map, index vector dimension, sizes
  const auto dims = [&](const attributes& attrs, std::string_view message) {
    put(def<op::gather>, {f32({4, 6}), i32({4, 2})}, attrs, message);
  };
  dims({2, 0},
       "S139 gather: the list offset_dims is incomplete for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({-1, 0},
       "S139 gather: the list offset_dims is incomplete for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 1},
       "S139 gather: the list collapsed_slice_dims is incomplete for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({2, 1, 0, 0, 0, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: offset_dims [1, 0] are out of order or out of range for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 1, 1, 2, 0, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: collapsed_slice_dims [2] are out of order or out of range for "
       "tensor<4x6xf32> and tensor<4x2xi32>");
  dims({1, 1, 0, 1, 0, 1, 2, 1, 1, 1, 1, 1},
       "S139 gather: start_indices_batching_dims [2] are repeated or out of range for "
       "tensor<4x6xf32> and tensor<4x2xi32>");
  dims({1, 1, 1, 0, 0, 0, 2, 1, 1, 1, 1, 1},
       "S139 gather: start_index_map [1, 1] are repeated or out of range for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 1, 1, 0, 0, 0, 2, 0, 1, 3, 1, 1},
       "S139 gather: index_vector_dim is missing or out of range for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1},
       "S139 gather: start_index_map has another length than the index vectors for "
       "tensor<4x6xf32> and tensor<4x2xi32>");
  dims({1, 1, 0, 1, 0, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: operand_batching_dims and start_indices_batching_dims differ in length for "
       "tensor<4x6xf32> and tensor<4x2xi32>");
  dims({1, 1, 0, 0, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: offset, collapsed and batching dimensions do not make up the operand for "
       "tensor<4x6xf32> and tensor<4x2xi32>");
  dims({0, 1, 0, 1, 0, 1, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: a dimension is both collapsed and batching for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 1, 0, 1, 0, 1, 1, 2, 0, 1, 1, 1, 1},
       "S139 gather: index_vector_dim is a batching dimension for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 1, 0, 1, 1, 1, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: batching extents differ: 6 of dimension 1 of the operand, 4 of dimension 0 of "
       "the indices, for tensor<4x6xf32> and tensor<4x2xi32>");
  dims({1, 1, 0, 1, 0, 1, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: a batching dimension has a start index for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  dims({1, 2, 1, 0, 0, 0, 2, 0, 1, 1, 1, 1},
       "S139 gather: offset_dims are out of range for the result for tensor<4x6xf32> and "
       "tensor<4x2xi32>");
  put(def<op::gather>, {f32({2, 1, 1, 1, 1, 1, 1, 1}), i32({1, 1})}, {},
      "S139 gather: the rank of the result is above 8 for tensor<2x1x1x1x1x1x1x1xf32> and "
      "tensor<1x1xi32>");
  dims({1, 1, 1, 0, 0, 0, 2, 0, 1, 1, 1}, "S140 gather: 1 slice sizes for tensor<4x6xf32>");
  dims({1, 1, 1, 0, 0, 0, 2, 0, 1, 1, 1, 7},
       "S140 gather: slice size 7 is out of range for dimension 1 of tensor<4x6xf32>");
  dims({1, 1, 1, 0, 0, 0, 2, 0, 1, 1, 2, 6},
       "S140 gather: slice size 2 is out of range for dimension 0 of tensor<4x6xf32>");

  put(def<op::scatter>, {f32({4})}, {1},
      "S112 scatter: 1 operands; an optional input, indices and updates are needed");
  put(def<op::scatter>, {i32({3}), f32({3, 6})}, {},
      "S141 scatter: an update is one of assign, add, max, min, multiply, and, or", f32({4, 6}));
  put(def<op::scatter>, {i32({3}), f32({3, 6})}, {7},
      "S141 scatter: an update is one of assign, add, max, min, multiply, and, or", f32({4, 6}));
  put(def<op::scatter>, {i32({3}), f32({3, 6})}, {5},
      "S120 scatter: element type f32 is neither an integer type nor i1", f32({4, 6}));
  put(def<op::scatter>, {i32({3}), f32({3, 6})}, {0},
      "S141 scatter: an update that assigns needs an input", f32({4, 6}));
  put(def<op::scatter>, {f32({4, 6}), i32({3}), i32({3, 6})}, {1},
      "S102 scatter: element types f32 and i32 differ; use convert");
  put(def<op::scatter>, {i1({4, 6}), i32({3}), i1({3, 6})}, {1},
      "S104 scatter: element type i1 is not a number");
  put(def<op::scatter>, {f32({4, 6}), i32({3}), f32({3, 6})}, {1, 1, 0},
      "S139 scatter: the list collapsed_slice_dims is incomplete for tensor<4x6xf32> and "
      "tensor<3xi32>");
  put(def<op::scatter>, {f32({4, 6}), f32({3}), f32({3, 6})}, {1},
      "S112 scatter: updates tensor<3x6xf32> are not windows of tensor<4x6xf32> at integer indices "
      "tensor<3xf32>");
  put(def<op::scatter>, {f32({4, 6}), i32({3}), f32({3, 5})}, {1},
      "S112 scatter: updates tensor<3x5xf32> are not windows of tensor<4x6xf32> at integer indices "
      "tensor<3xi32>");
  put(def<op::scatter>, {f32({4, 6}), i32({3}), f32({2, 6})}, {1},
      "S112 scatter: updates tensor<2x6xf32> are not windows of tensor<4x6xf32> at integer indices "
      "tensor<3xi32>");
  put(def<op::scatter>, {f32({4, 6}), i32({3}), f32({3, 7})}, {1, 1, 1, 1, 0, 0, 0, 1, 0, 1},
      "S112 scatter: updates tensor<3x7xf32> are not windows of tensor<4x6xf32> at integer indices "
      "tensor<3xi32>");
}
