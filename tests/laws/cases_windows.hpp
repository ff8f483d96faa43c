/// Cases of reductions with all combiners, of sliding windows, and of convolutions.
#pragma once

#include "op_case.hpp"

namespace laws {

/// A window dimension: size, stride, base dilation, window dilation, low and high padding.
inline pt::window_dim sliding(std::int64_t size, std::int64_t stride = 1, std::int64_t low = 0,
                              std::int64_t high = 0, std::int64_t base_dilation = 1,
                              std::int64_t dilation = 1) {
  return {size, stride, base_dilation, dilation, low, high, false};
}
/// The attributes as they are stored after the first one.
inline ints with_windows(std::int64_t first, const std::vector<pt::window_dim>& w) {
  pt::vec<std::int64_t> attrs;
  attrs.push_back(first);
  pt::op::store_windows(attrs, w);
  return ints(attrs.begin(), attrs.end());
}
/// The attributes of a convolution. Without dimension numbers the order is batch, feature,
/// spatial... and input feature, output feature, spatial...
struct conv_case {
  std::vector<pt::window_dim> windows;
  ints lhs = {}, rhs = {}, result = {};
  bool grouped = false;
  std::int64_t batch_groups = 1;

  ints attrs() const {
    ints usual;
    for (std::size_t d = 0; d < windows.size() + 2; ++d)
      usual.push_back(static_cast<std::int64_t>(d));
    pt::vec<std::int64_t> a;
    for (const ints* list : {&lhs, &rhs, &result})
      for (auto d : list->empty() ? usual : *list) a.push_back(d);
    pt::op::store_windows(a, windows, false);
    for (const auto& w : windows) a.push_back(w.reversed ? 1 : 0);
    a.push_back(grouped ? 1 : 0);
    a.push_back(batch_groups);
    return ints(a.begin(), a.end());
  }
};

inline void add_window_cases(std::vector<op_case>& list) {
  using namespace pt::op;
  const auto put = [&](const pt::op_def& op, std::vector<tensor_type> operands, ints attrs,
                       std::int64_t low = -3, std::int64_t high = 3) {
    list.push_back({&op, operands, attrs, {}, low, high});
  };
  const auto number = [](pt::combiner c) { return static_cast<std::int64_t>(c); };
  using pt::combiner;
  constexpr dtype integers[] = {dtype::u8,  dtype::i8,  dtype::i16, dtype::i64,
                                dtype::u16, dtype::u32, dtype::u64};

  for (auto combine : {combiner::add, combiner::max, combiner::min, combiner::multiply}) {
    const auto c = number(combine);
    put(pt::def<reduce>, {f32({4, 6})}, {c, 1}, -2, 2);
    put(pt::def<reduce>, {i32({4, 5, 6})}, {c, 0, 2});
    put(pt::def<reduce>, {f64({1, 12})}, {c, 0, 1}, -2, 2);
    put(pt::def<reduce>, {f64({3, 5, 7})}, {c, 0, 2}, -1, 1);
    put(pt::def<reduce>, {{dtype::bf16, {8, 2}}}, {c, 0}, -1, 2);
    for (dtype t : integers) {
      put(pt::def<reduce>, {{t, {6}}}, {c, 0}, -200, 200);
      put(pt::def<reduce>, {{t, {2, 3, 4}}}, {c, 1}, -200, 200);
      put(pt::def<reduce_window>, {{t, {4, 6}}}, with_windows(c, {sliding(1), sliding(2)}), -9, 9);
    }

    put(pt::def<reduce_window>, {f32({4, 6})}, with_windows(c, {sliding(1), sliding(2)}), -2, 2);
    put(pt::def<reduce_window>, {f64({2, 7, 5})},
        with_windows(c, {sliding(1), sliding(3, 2, 1, 1), sliding(2, 1, 0, 1)}), -2, 2);
    put(pt::def<reduce_window>, {f64({6, 9})},
        with_windows(c, {sliding(1), sliding(2, 3, 1, 0, 2, 3)}), -2, 2);
    put(pt::def<reduce_window>, {f64({9, 4})}, with_windows(c, {sliding(3, 2, -1, -2), sliding(1)}),
        -2, 2);
    put(pt::def<reduce_window>, {i32({5, 1, 12})},
        with_windows(c, {sliding(7, 1, 9, 9), sliding(1), sliding(1)}));
    put(pt::def<reduce_window>, {{dtype::bf16, {4, 5}}}, with_windows(c, {sliding(1), sliding(5)}),
        -1, 2);
    put(pt::def<reduce_window>, {f32({6})}, with_windows(c, {sliding(1)}));
  }
  for (auto combine : {combiner::logical_and, combiner::logical_or}) {
    const auto c = number(combine);
    put(pt::def<reduce>, {i1({4, 6})}, {c, 1});
    put(pt::def<reduce>, {i1({12})}, {c, 0});
    put(pt::def<reduce>, {i32({4, 5, 6})}, {c, 0, 2}, -100, 100);
    for (dtype t : integers) put(pt::def<reduce>, {{t, {8}}}, {c, 0}, -100, 255);
    put(pt::def<reduce_window>, {i1({4, 6})}, with_windows(c, {sliding(1), sliding(3, 1, 1, 1)}));
    put(pt::def<reduce_window>, {i32({6, 5})}, with_windows(c, {sliding(1), sliding(2, 2)}), 0, 99);
  }

  for (std::int64_t select : {0, 1}) {
    const auto a = with_windows(select, {sliding(1), sliding(3, 2, 1, 1), sliding(1)});
    for (dtype t : {dtype::f32, dtype::f64, dtype::i32, dtype::bf16, dtype::i16, dtype::u64}) {
      put(pt::def<select_and_scatter>, {{t, {4, 7, 6}}, {t, {4, 4, 6}}}, a);
      put(pt::def<select_and_gather>, {{t, {4, 7, 6}}, {t, {4, 7, 6}}}, a);
    }
    // Overlapping windows on the last dimension, dilation, negative padding, windows without
    // elements.
    const auto b =
        with_windows(select, {sliding(1), sliding(3, 1, 5, -2), sliding(2, 2, 1, 2, 2, 3)});
    put(pt::def<select_and_scatter>, {f64({2, 5, 4}), f64({2, 6, 4})}, b);
    put(pt::def<select_and_gather>, {f64({2, 5, 4}), f64({2, 5, 4})}, b);
    put(pt::def<select_and_scatter>, {f64({6}), f64({6})}, with_windows(select, {sliding(1)}));
    put(pt::def<select_and_gather>, {f64({6}), f64({6})}, with_windows(select, {sliding(1)}));
  }

  for (std::int64_t reverse : {0, 1})
    for (std::int64_t exclusive : {0, 1}) {
      put(pt::def<pt::op::cumsum>, {f32({4, 6})}, {1, reverse, exclusive});
      put(pt::def<pt::op::cumsum>, {i32({5, 2, 6})}, {0, reverse, exclusive});
      for (dtype t : integers) put(pt::def<pt::op::cumsum>, {{t, {4, 6}}}, {1, reverse, exclusive});
      put(pt::def<pt::op::cumsum>, {f64({2, 7, 3})}, {1, reverse, exclusive});
      put(pt::def<pt::op::cumsum>, {{dtype::bf16, {1, 8}}}, {0, reverse, exclusive});
      for (std::int64_t combine : {2, 3, 4}) {
        put(pt::def<pt::op::cumsum>, {f64({3, 12})}, {1, reverse, exclusive, combine});
        put(pt::def<pt::op::cumsum>, {f32({3, 12})}, {1, reverse, exclusive, combine});
        put(pt::def<pt::op::cumsum>, {i32({6, 4})}, {0, reverse, exclusive, combine});
      }
      for (std::int64_t combine : {5, 6}) {
        put(pt::def<pt::op::cumsum>, {i1({3, 4})}, {1, reverse, exclusive, combine});
        put(pt::def<pt::op::cumsum>, {{dtype::u8, {8}}}, {0, reverse, exclusive, combine}, 0, 200);
      }
    }

  const auto conv = [&](const conv_case& c, dtype t, shape lhs, shape rhs) {
    put(pt::def<convolution>, {{t, lhs}, {t, rhs}}, c.attrs(), -2, 2);
  };
  // 0, 1, 2 and 3 spatial dimensions.
  conv({{}}, dtype::f32, {4, 6}, {6, 5});
  conv({{sliding(0)}}, dtype::f64, {2, 3, 7}, {3, 4, 3});
  conv({{sliding(0, 2, 1, 1), sliding(0, 1, 0, 2)}}, dtype::f64, {2, 3, 5, 4}, {3, 2, 3, 2});
  conv({{sliding(0), sliding(0, 1, 1), sliding(0)}}, dtype::f32, {2, 1, 3, 4, 2}, {1, 3, 2, 3, 2});
  // NHWC, HWIO, and an unusual order.
  const std::vector<pt::window_dim> two = {sliding(0, 1, 1, 1), sliding(0, 2, 1, 1)};
  conv({two, {0, 3, 1, 2}, {2, 3, 0, 1}, {0, 3, 1, 2}}, dtype::f32, {2, 5, 6, 4}, {3, 3, 4, 6});
  conv({two, {0, 3, 1, 2}, {2, 3, 0, 1}, {0, 3, 1, 2}}, dtype::bf16, {2, 5, 6, 4}, {3, 3, 4, 6});
  conv({two, {2, 0, 3, 1}, {1, 3, 0, 2}, {3, 1, 0, 2}}, dtype::f64, {4, 5, 2, 6}, {3, 4, 3, 2});
  // Dilations, negative padding, reversed windows.
  conv({{sliding(0, 1, 2, 1, 2, 1), sliding(0, 2, -1, 1, 1, 2)}}, dtype::f64, {2, 2, 4, 7},
       {2, 3, 3, 2});
  auto back = sliding(0, 2, 1, 2, 3, 2);
  back.reversed = true;
  conv({{back, sliding(0, 3, 2, -1)}}, dtype::f64, {1, 2, 3, 6}, {2, 3, 3, 2});
  back.stride = 1;
  conv({{back}}, dtype::i32, {3, 2, 5}, {2, 2, 4});
  // Groups: of features (several per group, and depthwise), of the batch.
  conv({{sliding(0, 1, 1, 0)}, {}, {}, {}, true}, dtype::f64, {2, 6, 4}, {2, 6, 3});
  conv({{sliding(0, 2)}, {}, {}, {}, true}, dtype::i32, {4, 12, 5}, {3, 8, 2});
  conv({two, {0, 3, 1, 2}, {2, 3, 0, 1}, {0, 3, 1, 2}, true}, dtype::f64, {1, 3, 4, 6},
       {2, 3, 1, 6});
  conv({{sliding(0)}, {}, {}, {}, true}, dtype::f64, {2, 2, 4}, {1, 6, 3});
  conv({{sliding(0, 2, 1)}, {}, {}, {}, false, 2}, dtype::f64, {4, 3, 5}, {3, 6, 2});
  back.base_dilation = 1;
  conv({{back}, {}, {}, {}, false, 3}, dtype::f64, {6, 2, 4}, {2, 3, 2});
  conv({{back}, {}, {}, {}, true}, dtype::f64, {2, 4, 5}, {2, 2, 2});
  // No position, and a window without elements.
  conv({{sliding(0)}}, dtype::f32, {2, 3, 2}, {3, 4, 3});
  conv({{sliding(0)}}, dtype::f32, {2, 3, 2}, {3, 4, 0});
}

/// Windows over sharded dimensions: all small ones with as many positions as blocks permit.
inline void add_halo_cases(std::vector<op_case>& list) {
  using namespace pt::op;
  using pt::combiner;
  const auto put = [&](const pt::op_def& op, std::vector<tensor_type> operands, ints attrs,
                       std::int64_t low = -3, std::int64_t high = 3) {
    list.push_back({&op, operands, attrs, {}, low, high});
  };
  int number = 0;
  for (std::int64_t n : {4, 6, 8, 12})
    for (std::int64_t size : {1, 2, 3, 5})
      for (std::int64_t stride : {1, 2, 3})
        for (std::int64_t base : {1, 2})
          for (std::int64_t low : {-1, 0, 1, 2, 4})
            for (std::int64_t high : {-2, 0, 1, 2, 3}) {
              const std::int64_t dilation = ++number % 5 == 0 ? 2 : 1;
              pt::window_dim w = sliding(size, stride, low, high, base, dilation);
              const std::int64_t m = w.positions(n);
              if (pt::op::common_extent(n, m) < 2) continue;
              const auto combine = static_cast<combiner>(1 + number % 4);
              put(pt::def<reduce_window>, {f64({n})},
                  with_windows(static_cast<std::int64_t>(combine), {w}), -2, 2);
              conv_case c{{w}};
              c.windows[0].reversed = number % 3 == 0;
              put(pt::def<convolution>, {f64({1, 2, n}), f64({2, 1, size})}, c.attrs());
              const auto select = with_windows(number % 2, {w});
              put(pt::def<select_and_scatter>, {f64({n}), f64({m})}, select);
              put(pt::def<select_and_gather>, {f64({n}), f64({n})}, select);
              // The derivative of the window: few positions, many taps.
              const auto e = w.exchanged(n, m);
              put(pt::def<convolution>, {f64({2, 1, n}), f64({1, 2, m})}, conv_case{{e}}.attrs());
            }
  for (std::int64_t size : {2, 3, 5})
    for (std::int64_t stride : {1, 2, 3})
      for (std::int64_t low : {0, 1, 2, 4}) {
        pt::window_dim w = sliding(size, stride, low);
        w.high = w.high_for(24, 24 / stride);  // with padding, and one position per stride
        const auto select = with_windows(++number % 2, {w});
        put(pt::def<select_and_scatter>, {i32({24}), i32({24 / stride})}, select, -1, 1);
        put(pt::def<select_and_gather>, {i32({24}), i32({24})}, select, -1, 1);
      }
  for (std::int64_t n : {4, 6, 9})
    for (std::int64_t low : {-2, 0, 1, 3})
      for (std::int64_t high : {-1, 0, 2, 5})
        for (std::int64_t interior : {0, 1, 2})
          if (n + low + high > 0)
            put(pt::def<pt::op::pad>, {i32({2, n}), i32({})}, {0, low, 0, high, 0, interior});
  for (std::int64_t n : {4, 8, 12})
    for (std::int64_t start : {0, 1, 2, 3})
      for (std::int64_t limit = start + 1; limit <= n; ++limit)
        for (std::int64_t stride : {1, 2, 3})
          put(pt::def<pt::op::slice>, {i32({n, 2})}, {start, 0, limit, pt::ops::whole, stride, 1});
}

}  // namespace laws
