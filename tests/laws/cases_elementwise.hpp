/// Cases of the elementwise ops.
#pragma once

#include "op_case.hpp"

namespace laws {

inline void add_elementwise_cases(std::vector<op_case>& list) {
  namespace op = pt::op;
  using list_of_ops = std::initializer_list<const pt::op_def*>;
  const auto put = [&](const pt::op_def& op, std::vector<tensor_type> operands,
                       std::int64_t low = -3, std::int64_t high = 3, ints attrs = {}) {
    list.push_back({&op, operands, attrs, {}, low, high});
  };
  const auto of = [](dtype t, shape s) { return tensor_type{t, s}; };
  constexpr dtype integers[] = {dtype::u8,  dtype::i8,  dtype::i16, dtype::i64,
                                dtype::u16, dtype::u32, dtype::u64};

  for (const pt::op_def* each :
       list_of_ops{&pt::def<op::add>, &pt::def<op::subtract>, &pt::def<op::multiply>,
                   &pt::def<op::divide>, &pt::def<op::remainder>, &pt::def<op::maximum>,
                   &pt::def<op::minimum>, &pt::def<op::power>}) {
    const bool all = each != &pt::def<op::divide> && each != &pt::def<op::remainder> &&
                     each != &pt::def<op::power>;
    const std::int64_t low = all ? -3 : 1;
    put(*each, {f32({4, 6}), f32({4, 6})}, low);
    put(*each, {i32({7, 1, 12}), i32({7, 1, 12})}, -3);
    put(*each, {f32({8}), f32({})}, low);
    put(*each, {f64({}), f64({5, 4})}, low);
    put(*each, {of(dtype::bf16, {2, 3}), of(dtype::bf16, {2, 3})}, low);
    put(*each, {of(dtype::f16, {16}), of(dtype::f16, {16})}, low);
    for (dtype t : integers) put(*each, {of(t, {4, 3}), of(t, {})}, low);
  }
  for (const pt::op_def* each : list_of_ops{&pt::def<op::add>, &pt::def<op::multiply>,
                                            &pt::def<op::maximum>, &pt::def<op::minimum>})
    put(*each, {i1({4, 3}), i1({4, 3})});
  put(pt::def<op::atan2>, {f32({4, 6}), f32({4, 6})});
  put(pt::def<op::atan2>, {f64({5, 1}), f64({})}, 1);
  put(pt::def<op::atan2>, {of(dtype::bf16, {}), of(dtype::bf16, {8})});
  put(pt::def<op::clamp>, {f32({}), f32({4, 6}), f32({})});
  put(pt::def<op::clamp>, {f64({5, 1, 4}), f64({5, 1, 4}), f64({5, 1, 4})});
  put(pt::def<op::clamp>, {i32({12}), i32({12}), i32({})});
  for (dtype t : integers) put(pt::def<op::clamp>, {of(t, {}), of(t, {6}), of(t, {6})});
  put(pt::def<op::clamp>, {of(dtype::f16, {}), of(dtype::f16, {}), of(dtype::f16, {8, 3})});

  for (const pt::op_def* each :
       list_of_ops{&pt::def<op::negate>, &pt::def<op::abs>, &pt::def<op::sign>}) {
    put(*each, {f32({4, 6})});
    put(*each, {i32({1, 7, 12})});
    put(*each, {of(dtype::bf16, {8})});
    for (dtype t : integers) put(*each, {of(t, {6})});
    put(*each, {of(dtype::u8, {})});
  }
  for (const pt::op_def* each :
       list_of_ops{&pt::def<op::floor>, &pt::def<op::ceil>, &pt::def<op::round_nearest_even>,
                   &pt::def<op::logistic>, &pt::def<op::expm1>, &pt::def<op::sine>,
                   &pt::def<op::cosine>, &pt::def<op::tan>, &pt::def<op::tanh>, &pt::def<op::erf>,
                   &pt::def<op::erfc>, &pt::def<op::round_nearest_away>, &pt::def<op::is_finite>}) {
    put(*each, {f32({4, 6})});
    put(*each, {f64({5, 1, 8})});
    put(*each, {of(dtype::f16, {12})});
    put(*each, {f32({})});
  }
  for (const pt::op_def* each : list_of_ops{
           &pt::def<op::exp>, &pt::def<op::log>, &pt::def<op::log1p>, &pt::def<op::sqrt>,
           &pt::def<op::rsqrt>, &pt::def<op::cbrt>, &pt::def<op::lgamma>, &pt::def<op::digamma>}) {
    put(*each, {f32({4, 6})}, 1, 5);
    put(*each, {f64({5, 1, 8})}, 1, 5);
    put(*each, {of(dtype::bf16, {12})}, 1, 5);
    put(*each, {f32({})}, 1, 5);
  }
  put(pt::def<op::cbrt>, {f64({12})});
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16})
    list.push_back({&pt::def<op::erf_inv>,
                    {of(t, {4, 6})},
                    {},
                    {},
                    -1,
                    1,
                    [](const tensor_type& type, std::size_t, data::random& r) {
                      return data::fill(
                          type, [&](auto) { return static_cast<double>(r.in(-19, 19)) / 20; });
                    }});

  for (const pt::op_def* each : list_of_ops{&pt::def<op::logical_and>, &pt::def<op::logical_or>,
                                            &pt::def<op::logical_xor>}) {
    put(*each, {i1({4, 6}), i1({4, 6})});
    put(*each, {i32({5, 1}), i32({})}, -100, 100);
    for (dtype t : integers) put(*each, {of(t, {}), of(t, {12})}, 0, 255);
  }
  put(pt::def<op::logical_not>, {i1({4, 6})});
  for (dtype t : integers) put(pt::def<op::logical_not>, {of(t, {6})});
  for (dtype t : integers) put(pt::def<op::popcnt>, {of(t, {6})}, -100, 100);
  put(pt::def<op::logical_not>, {of(dtype::i64, {7, 1, 8})});
  put(pt::def<op::popcnt>, {i32({4, 6})}, -100, 100);
  put(pt::def<op::popcnt>, {of(dtype::u8, {1, 5})}, 0, 255);
  put(pt::def<op::count_leading_zeros>, {i32({4, 6})}, -100, 100);
  put(pt::def<op::count_leading_zeros>, {of(dtype::u16, {8})}, 0, 999);
  put(pt::def<op::count_leading_zeros>, {of(dtype::i8, {1, 5})}, -3, 99);
  put(pt::def<op::count_leading_zeros>, {of(dtype::u64, {})}, 0, 255);
  for (const pt::op_def* each :
       list_of_ops{&pt::def<op::shift_left>, &pt::def<op::shift_right_arithmetic>,
                   &pt::def<op::shift_right_logical>}) {
    put(*each, {i32({4, 6}), i32({4, 6})}, -40, 40);
    put(*each, {of(dtype::i64, {5, 1}), of(dtype::i64, {})}, -3, 9);
    for (dtype t : integers) put(*each, {of(t, {}), of(t, {12})}, 0, 12);
  }

  for (std::int64_t direction = 0; direction < 6; ++direction) {
    put(pt::def<op::compare>, {f32({4, 6}), f32({4, 6})}, -3, 3, {direction});
    put(pt::def<op::compare>, {i32({1, 5}), i32({})}, -3, 3, {direction});
    put(pt::def<op::compare>, {i1({8}), i1({8})}, -3, 3, {direction});
    for (dtype t : integers)
      put(pt::def<op::compare>, {of(t, {6}), of(t, {6})}, -200, 200, {direction});
  }
  put(pt::def<op::select>, {i1({4, 6}), f32({4, 6}), f32({4, 6})});
  put(pt::def<op::select>, {i1({}), f64({5, 1}), f64({5, 1})});
  put(pt::def<op::select>, {i1({8, 3}), f32({}), f32({8, 3})});
  put(pt::def<op::select>, {i1({12}), i32({}), i32({})});
  for (dtype t : integers) put(pt::def<op::select>, {i1({12}), of(t, {12}), of(t, {})});

  put(pt::def<op::random_bits>, {of(dtype::i64, {}), of(dtype::i64, {4, 6})});
  put(pt::def<op::random_bits>, {of(dtype::i64, {5, 1}), of(dtype::i64, {5, 1})});
  put(pt::def<op::random_bits>, {of(dtype::i64, {8}), of(dtype::i64, {})});
  put(pt::def<op::random_bits>, {of(dtype::i64, {}), of(dtype::i64, {})});
}

}  // namespace laws
