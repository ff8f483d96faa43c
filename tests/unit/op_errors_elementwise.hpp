/// Errors of the elementwise ops.
#pragma once

#include "op_errors.hpp"

inline void add_elementwise_errors(std::vector<op_error>& list) {
  namespace pt = partita;
  namespace op = pt::op;
  using pt::dtype;
  const auto f32 = [](pt::shape s) { return pt::tensor_type{dtype::f32, s}; };
  const auto i32 = [](pt::shape s) { return pt::tensor_type{dtype::i32, s}; };
  const auto i64 = [](pt::shape s) { return pt::tensor_type{dtype::i64, s}; };
  const auto i1 = [](pt::shape s) { return pt::tensor_type{dtype::boolean, s}; };
  const auto put = [&](const pt::op_def& op, std::vector<pt::tensor_type> operands,
                       std::string_view message) {
    list.push_back({message.substr(0, 4), &op, operands, {}, {}, message});
  };

  put(pt::def<op::remainder>, {f32({4}), i32({4})},
      "S102 remainder: element types f32 and i32 differ; use convert");
  put(pt::def<op::remainder>, {f32({4, 6}), f32({6, 4})},
      "S103 remainder: shapes [4, 6] and [6, 4] differ");
  put(pt::def<op::power>, {f32({4}), i32({4})},
      "S102 power: element types f32 and i32 differ; use convert");
  put(pt::def<op::power>, {f32({4, 6}), f32({6, 4})},
      "S103 power: shapes [4, 6] and [6, 4] differ");
  put(pt::def<op::atan2>, {f32({4}), i32({4})},
      "S102 atan2: element types f32 and i32 differ; use convert");
  put(pt::def<op::atan2>, {f32({4, 6}), f32({6, 4})},
      "S103 atan2: shapes [4, 6] and [6, 4] differ");
  put(pt::def<op::remainder>, {i1({4}), i1({4})},
      "S104 remainder: element type i1 is not a number");
  put(pt::def<op::power>, {i1({4}), i1({4})}, "S104 power: element type i1 is not a number");
  put(pt::def<op::atan2>, {i32({4}), i32({4})},
      "S104 atan2: element type i32 is not a floating-point type");
  put(pt::def<op::clamp>, {f32({}), i32({4}), f32({})},
      "S102 clamp: element types f32 and i32 differ; use convert");
  put(pt::def<op::clamp>, {f32({}), f32({4}), f32({5})}, "S103 clamp: shapes [4] and [5] differ");
  put(pt::def<op::abs>, {i1({4})}, "S104 abs: element type i1 is not a number");
  put(pt::def<op::sign>, {i1({4})}, "S104 sign: element type i1 is not a number");
  put(pt::def<op::floor>, {i32({4})}, "S104 floor: element type i32 is not a floating-point type");
  put(pt::def<op::ceil>, {i32({4})}, "S104 ceil: element type i32 is not a floating-point type");
  put(pt::def<op::round_nearest_even>, {i32({4})},
      "S104 round_nearest_even: element type i32 is not a floating-point type");
  put(pt::def<op::round_nearest_away>, {i32({4})},
      "S104 round_nearest_away: element type i32 is not a floating-point type");
  put(pt::def<op::erfc>, {i32({4})}, "S104 erfc: element type i32 is not a floating-point type");
  put(pt::def<op::erf_inv>, {i1({4})},
      "S104 erf_inv: element type i1 is not a floating-point type");
  put(pt::def<op::lgamma>, {i64({4})},
      "S104 lgamma: element type i64 is not a floating-point type");
  put(pt::def<op::digamma>, {i32({4})},
      "S104 digamma: element type i32 is not a floating-point type");
  const auto with = [&](const pt::op_def& op, std::vector<pt::tensor_type> operands,
                        std::vector<std::int64_t> attrs, pt::tensor_type declared,
                        std::string_view message) {
    list.push_back({message.substr(0, 4), &op, operands, attrs, declared, message});
  };
  with(pt::def<op::reduce_precision>, {i32({4})}, {5, 10}, {},
       "S104 reduce_precision: element type i32 is not a floating-point type");
  with(pt::def<op::reduce_precision>, {f32({4})}, {5}, {},
       "S143 reduce_precision: 1 numbers; those of exponent and mantissa bits are needed");
  with(pt::def<op::reduce_precision>, {f32({4})}, {0, 10}, {},
       "S143 reduce_precision: 0 exponent bits and 10 mantissa bits; at least 1 and 0 are needed");
  with(pt::def<op::reduce_precision>, {f32({4})}, {5, -1}, {},
       "S143 reduce_precision: 5 exponent bits and -1 mantissa bits; at least 1 and 0 are needed");
  with(pt::def<op::bitcast_convert>, {i1({8})}, {}, {dtype::u8, {}},
       "S142 bitcast_convert: i1 to u8: the bits of i1 are not defined; use convert");
  with(pt::def<op::bitcast_convert>, {f32({8})}, {}, {dtype::boolean, {}},
       "S142 bitcast_convert: f32 to i1: the bits of i1 are not defined; use convert");
  with(pt::def<op::bitcast_convert>, {f32({4, 3})}, {}, {dtype::f64, {}},
       "S142 bitcast_convert: tensor<4x3xf32> to f64: 2 elements make one; the last dimension "
       "needs this size");
  with(pt::def<op::bitcast_convert>, {{dtype::u8, {}}}, {}, {dtype::bf16, {}},
       "S142 bitcast_convert: tensor<u8> to bf16: 2 elements make one; the last dimension needs "
       "this size");
  with(pt::def<op::bitcast_convert>, {f32({1, 1, 1, 1, 1, 1, 1, 1})}, {}, {dtype::u8, {}},
       "S100 bitcast_convert: the result has rank 9; at most 8 is supported");
  with(pt::def<op::literal>, {}, {1, 2, 3}, i32({2, 2}),
       "S144 literal: 3 elements are given; tensor<2x2xi32> has 4");
  with(pt::def<op::literal>, {}, {}, f32({}),
       "S144 literal: 0 elements are given; tensor<f32> has 1");
  with(pt::def<op::literal>, {}, {1, 300}, {dtype::u8, {2}},
       "S117 literal: 300 is not a value of element type u8");
  with(pt::def<op::literal>, {}, {0, 2}, i1({2}),
       "S117 literal: 2 is not a value of element type i1");
  put(pt::def<op::expm1>, {i32({4})}, "S104 expm1: element type i32 is not a floating-point type");
  put(pt::def<op::log1p>, {i32({4})}, "S104 log1p: element type i32 is not a floating-point type");
  put(pt::def<op::logistic>, {i32({4})},
      "S104 logistic: element type i32 is not a floating-point type");
  put(pt::def<op::cbrt>, {i32({4})}, "S104 cbrt: element type i32 is not a floating-point type");
  put(pt::def<op::sine>, {i32({4})}, "S104 sine: element type i32 is not a floating-point type");
  put(pt::def<op::cosine>, {i32({4})},
      "S104 cosine: element type i32 is not a floating-point type");
  put(pt::def<op::tan>, {i32({4})}, "S104 tan: element type i32 is not a floating-point type");
  put(pt::def<op::is_finite>, {i32({4})},
      "S104 is_finite: element type i32 is not a floating-point type");
  put(pt::def<op::logical_and>, {i1({4}), i32({4})},
      "S102 and: element types i1 and i32 differ; use convert");
  put(pt::def<op::logical_and>, {i32({4}), i32({5})}, "S103 and: shapes [4] and [5] differ");
  put(pt::def<op::logical_and>, {f32({4}), f32({4})},
      "S120 and: element type f32 is neither an integer type nor i1");
  put(pt::def<op::logical_or>, {i1({4}), i32({4})},
      "S102 or: element types i1 and i32 differ; use convert");
  put(pt::def<op::logical_or>, {i32({4}), i32({5})}, "S103 or: shapes [4] and [5] differ");
  put(pt::def<op::logical_or>, {f32({4}), f32({4})},
      "S120 or: element type f32 is neither an integer type nor i1");
  put(pt::def<op::logical_xor>, {i1({4}), i32({4})},
      "S102 xor: element types i1 and i32 differ; use convert");
  put(pt::def<op::logical_xor>, {i32({4}), i32({5})}, "S103 xor: shapes [4] and [5] differ");
  put(pt::def<op::logical_xor>, {f32({4}), f32({4})},
      "S120 xor: element type f32 is neither an integer type nor i1");
  put(pt::def<op::logical_not>, {f32({4})},
      "S120 not: element type f32 is neither an integer type nor i1");
  put(pt::def<op::popcnt>, {i1({4})}, "S120 popcnt: element type i1 is not an integer type");
  put(pt::def<op::count_leading_zeros>, {f32({4})},
      "S120 count_leading_zeros: element type f32 is not an integer type");
  put(pt::def<op::shift_left>, {i32({4}), i64({4})},
      "S102 shift_left: element types i32 and i64 differ; use convert");
  put(pt::def<op::shift_left>, {i32({4}), i32({5})}, "S103 shift_left: shapes [4] and [5] differ");
  put(pt::def<op::shift_left>, {f32({4}), f32({4})},
      "S120 shift_left: element type f32 is not an integer type");
  put(pt::def<op::shift_right_arithmetic>, {i32({4}), i64({4})},
      "S102 shift_right_arithmetic: element types i32 and i64 differ; use convert");
  put(pt::def<op::shift_right_arithmetic>, {i32({4}), i32({5})},
      "S103 shift_right_arithmetic: shapes [4] and [5] differ");
  put(pt::def<op::shift_right_arithmetic>, {f32({4}), f32({4})},
      "S120 shift_right_arithmetic: element type f32 is not an integer type");
  put(pt::def<op::shift_right_logical>, {i32({4}), i64({4})},
      "S102 shift_right_logical: element types i32 and i64 differ; use convert");
  put(pt::def<op::shift_right_logical>, {i32({4}), i32({5})},
      "S103 shift_right_logical: shapes [4] and [5] differ");
  put(pt::def<op::shift_right_logical>, {f32({4}), f32({4})},
      "S120 shift_right_logical: element type f32 is not an integer type");
  put(pt::def<op::random_bits>, {i32({}), i64({4})},
      "S121 random_bits: the key has element type i32; i64 is needed");
  put(pt::def<op::random_bits>, {i64({}), f32({4})},
      "S121 random_bits: the counter has element type f32; i64 is needed");
  put(pt::def<op::random_bits>, {i64({3}), i64({4})},
      "S103 random_bits: shapes [3] and [4] differ");
}
