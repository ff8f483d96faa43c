/// Cases for the laws: ops with attributes and operand types, small enough to try every divisor.
#pragma once

#include "cases_elementwise.hpp"
#include "cases_linalg.hpp"
#include "cases_movement.hpp"
#include "cases_order.hpp"
#include "cases_windows.hpp"

namespace laws {

/// Returns cases of every op of the registry except `parameter`, which computes nothing, and ops
/// with nested programs, whose tile maps are wires (see tests/run/control.cpp).
inline std::vector<op_case> all_cases() {
  using namespace pt::op;
  std::vector<op_case> list;
  const auto put = [&](const pt::op_def& op, std::vector<tensor_type> operands, ints attrs = {},
                       tensor_type declared = {}, std::int64_t low = -3, std::int64_t high = 3) {
    list.push_back({&op, operands, attrs, declared, low, high});
  };
  for (const pt::op_def* op : {&pt::def<tag>, &pt::def<tiling>, &pt::def<stop_gradient>}) {
    put(*op, {f32({4, 6})});
    put(*op, {i1({1, 5, 8})});
    put(*op, {i32({})});
  }
  for (const std::int64_t memory : {0, 1, 2}) put(pt::def<place>, {f32({4, 6})}, {memory});
  put(pt::def<constant>, {}, {pt::ops::constant_bits(dtype::f32, 2.5)}, f32({4, 1, 6}));
  put(pt::def<constant>, {}, {7}, i32({12}));
  put(pt::def<constant>, {}, {1}, i1({5, 2}));
  put(pt::def<constant>, {}, {-1}, {dtype::u64, {3, 2}});
  const auto bits = [](double v) { return pt::ops::constant_bits(dtype::f64, v); };
  const double infinite = std::numeric_limits<double>::infinity();
  put(pt::def<literal>, {}, {bits(1), bits(2.5), bits(-3), bits(-0.), bits(infinite), bits(0.1)},
      f32({2, 3}));
  put(pt::def<literal>, {}, {bits(1), bits(-infinite), bits(5e-324), bits(1e300)}, f64({4}));
  put(pt::def<literal>, {}, {bits(0.1), bits(70000)}, {dtype::f16, {2, 1}});
  put(pt::def<literal>, {}, {-128, 127}, {dtype::i8, {2}});
  put(pt::def<literal>, {}, {-1, 0, INT64_MIN, INT64_MAX}, {dtype::u64, {2, 2}});
  put(pt::def<literal>, {}, {1, 0, 1}, i1({3}));
  put(pt::def<literal>, {}, {7}, i32({}));
  put(pt::def<literal>, {}, {}, f32({3, 0}));
  for (std::int64_t d : {0, 1, 2}) put(pt::def<iota>, {}, {d}, i32({4, 6, 5}));
  put(pt::def<iota>, {}, {0}, f32({1, 8}));
  put(pt::def<iota>, {}, {1}, f64({2, 12}));
  put(pt::def<iota>, {}, {0},
      {dtype::bf16, {6, 2}});  // dimension 0 stays unsliced: sums would round
  put(pt::def<iota>, {}, {0}, {dtype::u8, {10}});
  for (dtype t : {dtype::i8, dtype::i16, dtype::u16, dtype::u32, dtype::u64}) {
    put(pt::def<iota>, {}, {1}, {t, {2, 12}});
    put(pt::def<constant>, {}, {100}, {t, {4, 3}});
  }
  put(pt::def<iota>, {}, {0}, {dtype::i8, {200}});  // stays unsliced: it wraps

  add_elementwise_cases(list);
  put(pt::def<convert>, {f32({4, 6})}, {}, {dtype::i32, {}});
  put(pt::def<convert>, {i32({1, 5})}, {}, {dtype::f64, {}});
  put(pt::def<convert>, {i1({8})}, {}, {dtype::f32, {}});
  put(pt::def<convert>, {f64({12})}, {}, {dtype::bf16, {}});
  put(pt::def<convert>, {f64({2, 3})}, {}, {dtype::f32, {}});
  for (int from = 0; from < pt::dtype_count; ++from)
    for (int to = 0; to < pt::dtype_count; ++to)
      put(pt::def<convert>, {{static_cast<dtype>(from), {6}}}, {}, {static_cast<dtype>(to), {}},
          -300, 300);

  put(pt::def<bitcast_convert>, {f32({4, 6})}, {}, {dtype::u32, {}});
  put(pt::def<bitcast_convert>, {{dtype::i16, {7}}}, {}, {dtype::bf16, {}});
  put(pt::def<bitcast_convert>, {f64({})}, {}, {dtype::i64, {}});
  put(pt::def<bitcast_convert>, {f64({4, 3})}, {}, {dtype::u8, {}}, -300, 300);
  put(pt::def<bitcast_convert>, {i32({1, 6, 5})}, {}, {dtype::f16, {}}, -300, 300);
  put(pt::def<bitcast_convert>, {{dtype::u8, {4, 6, 8}}}, {}, {dtype::f64, {}}, 0, 60);
  put(pt::def<bitcast_convert>, {{dtype::f16, {5, 2}}}, {}, {dtype::i32, {}});
  put(pt::def<bitcast_convert>, {{dtype::i8, {2}}}, {}, {dtype::bf16, {}}, 0, 60);
  put(pt::def<bitcast_convert>, {{dtype::u32, {0, 2}}}, {}, {dtype::u64, {}});
  put(pt::def<reduce_precision>, {f32({4, 6})}, {5, 10});
  put(pt::def<reduce_precision>, {f64({5, 1})}, {8, 1}, {}, -9, 9);
  put(pt::def<reduce_precision>, {f64({2, 12})}, {11, 52});
  put(pt::def<reduce_precision>, {{dtype::bf16, {8}}}, {4, 3});
  put(pt::def<reduce_precision>, {{dtype::f16, {2, 3}}}, {8, 23});
  put(pt::def<reduce_precision>, {f32({})}, {1, 0});

  put(pt::def<broadcast_in_dim>, {f32({})}, {}, f32({4, 3}));
  put(pt::def<broadcast_in_dim>, {f32({4, 1})}, {0, 2}, f32({4, 3, 6}));
  put(pt::def<broadcast_in_dim>, {i32({6, 5})}, {1, 2}, i32({2, 6, 5, 1}));
  put(pt::def<broadcast_in_dim>, {f64({1})}, {0}, f64({12}));
  put(pt::def<transpose>, {f32({4, 6})}, {1, 0});
  put(pt::def<transpose>, {i32({4, 1, 6})}, {2, 0, 1});
  put(pt::def<transpose>, {i1({2, 3, 5, 4})}, {3, 1, 0, 2});
  // reshape: splits, merges, both at once, no common refinement, and dimensions of size 1.
  const std::pair<shape, shape> reshapes[] = {
      {{4, 12}, {4, 2, 3, 2}}, {{4, 2, 3, 2}, {4, 12}}, {{16}, {4, 4}},     {{2, 6}, {4, 3}},
      {{6, 4}, {4, 6}},        {{12, 5}, {3, 4, 5}},    {{1, 6}, {6}},      {{6, 1}, {1, 2, 3}},
      {{8, 9}, {2, 4, 3, 3}},  {{8, 9}, {4, 6, 3}},     {{2, 2, 2}, {8}},   {{3, 4}, {4, 3}},
      {{1, 1}, {1}},           {{24}, {2, 1, 3, 4}},    {{6, 10}, {15, 4}}, {{4, 6}, {2, 12}}};
  for (const auto& [from, to] : reshapes) put(pt::def<reshape>, {i32(from)}, {}, i32(to));
  put(pt::def<reshape>, {f32({1})}, {}, f32({}));
  put(pt::def<reshape>, {f32({})}, {}, f32({1, 1}));

  put(pt::def<dot_general>, {f32({4, 6}), f32({6, 5})}, dots({}, {}, {1}, {0}));
  put(pt::def<dot_general>, {f64({2, 4, 6}), f64({2, 6, 3})}, dots({0}, {0}, {2}, {1}));
  put(pt::def<dot_general>, {i32({6, 4}), i32({8, 6})}, dots({}, {}, {0}, {1}));
  put(pt::def<dot_general>, {f32({4, 2, 3, 5}), f32({3, 5, 4})}, dots({0}, {2}, {3, 2}, {1, 0}));
  put(pt::def<dot_general>, {f32({4}), f32({4})}, dots({}, {}, {0}, {0}));
  put(pt::def<dot_general>, {f32({4}), f32({1, 6})}, dots({}, {}, {}, {}));
  put(pt::def<dot_general>, {f32({7, 1}), f32({1, 7})}, dots({0}, {1}, {}, {}));
  put(pt::def<dot_general>, {{dtype::bf16, {4, 8}}, {dtype::bf16, {8, 4}}}, dots({}, {}, {1}, {0}));

  for (dtype t :
       {dtype::i8, dtype::i16, dtype::i64, dtype::u8, dtype::u16, dtype::u32, dtype::u64}) {
    put(pt::def<dot_general>, {{t, {4, 6}}, {t, {6, 2}}}, dots({}, {}, {1}, {0}), {}, -90, 90);
    put(pt::def<transpose>, {{t, {4, 6}}}, {1, 0});
    put(pt::def<concatenate>, {{t, {4, 3}}, {t, {4, 5}}}, {1});
  }

  put(pt::def<concatenate>, {f32({4, 3}), f32({4, 5})}, {1});
  put(pt::def<concatenate>, {i32({2, 6, 1}), i32({5, 6, 1}), i32({1, 6, 1})}, {0});
  put(pt::def<concatenate>, {i1({2, 2, 3}), i1({2, 2, 4})}, {2});
  const auto whole = pt::ops::whole;
  put(pt::def<slice>, {f32({4, 8})}, {0, 2, whole, 7});
  put(pt::def<slice>, {i32({5, 6, 12})}, {1, 0, 0, 3, whole, whole});
  put(pt::def<slice>, {i1({7})}, {3, 4});
  add_linalg_cases(list);
  add_movement_cases(list);
  add_window_cases(list);
  add_order_cases(list);
  return list;
}

}  // namespace laws
