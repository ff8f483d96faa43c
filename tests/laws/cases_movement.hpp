/// Cases of the ops that move data: slice, pad, reverse, dynamic slices, gather, scatter.
#pragma once

#include "op_case.hpp"

namespace laws {

/// Dimension numbers of gather and scatter as attributes.
struct dimension_numbers {
  ints offset, collapsed, operand_batching, indices_batching, map;
  std::int64_t vector_dim;

  ints with(const ints& before, const ints& after) const {
    ints all = before;
    for (const ints* list : {&offset, &collapsed, &operand_batching, &indices_batching, &map}) {
      all.push_back(static_cast<std::int64_t>(list->size()));
      all.insert(all.end(), list->begin(), list->end());
    }
    all.push_back(vector_dim);
    all.insert(all.end(), after.begin(), after.end());
    return all;
  }
};

inline void add_movement_cases(std::vector<op_case>& list) {
  using namespace pt::op;
  const auto whole = pt::ops::whole;
  const auto put = [&](const pt::op_def& op, std::vector<tensor_type> operands, ints attrs = {},
                       tensor_type declared = {}, std::int64_t low = -3, std::int64_t high = 3) {
    list.push_back({&op, operands, attrs, declared, low, high});
  };
  put(pt::def<slice>, {f32({4, 8})}, {0, 2, whole, 7});
  put(pt::def<slice>, {i32({5, 6, 12})}, {1, 0, 0, 3, whole, whole});
  put(pt::def<slice>, {i1({7})}, {3, 4});
  put(pt::def<slice>, {f32({4, 8})}, {0, 0, whole, 8, 1, 2});
  put(pt::def<slice>, {f32({7, 6, 5})}, {1, 0, 2, whole, whole, whole, 3, 1, 1});
  put(pt::def<slice>, {f32({11, 2})}, {3, 0, 9, whole, 5, 1});
  put(pt::def<slice>, {f64({5, 6})}, {2, 0, 2, whole, 3, 1});  // nothing
  put(pt::def<slice>, {{dtype::bf16, {1, 12}}}, {0, 0, whole, whole, 1, 4});

  put(pt::def<pad>, {f32({4, 6}), f32({})}, {0, 2, 0, 1, 0, 0});
  put(pt::def<pad>, {f32({4, 6}), f32({})}, {1, 0, 0, 0, 2, 0});
  put(pt::def<pad>, {i32({6, 5, 4}), i32({})}, {0, -2, 0, 0, 7, 0, 0, 0, 0});
  put(pt::def<pad>, {f64({7}), f64({})}, {-1, -2, 1});  // removes values and elements
  put(pt::def<pad>, {f64({7}), f64({})}, {-3, 1, 2});
  put(pt::def<pad>, {f64({7, 2}), f64({})}, {-9, 0, 4, 0, 0, 0});  // no element is left
  put(pt::def<pad>, {f32({0, 4}), f32({})}, {3, 0, 2, 0, 5, 0});
  put(pt::def<pad>, {{dtype::bf16, {1, 8}}, {dtype::bf16, {}}}, {2, 0, 0, 0, 3, 0});
  put(pt::def<pad>, {i1({3, 4}), i1({})}, {1, 0, 1, 0, 1, 0});
  put(pt::def<pad>, {f32({}), f32({})});

  put(pt::def<pt::op::reverse>, {f32({4, 6})}, {1});
  put(pt::def<pt::op::reverse>, {i32({4, 1, 6})}, {0, 1});
  put(pt::def<pt::op::reverse>, {i1({2, 3, 5, 4})}, {1, 3});
  put(pt::def<pt::op::reverse>, {{dtype::f16, {7, 12}}}, {0});

  for (std::int64_t shift : {-13, -5, -1, 0, 1, 2, 3, 7, 11}) {
    put(pt::def<pt::op::roll>, {i32({2, 12})}, {1, shift});
    put(pt::def<pt::op::roll>, {f64({6, 1, 3})}, {0, shift});
  }
  put(pt::def<pt::op::roll>, {{dtype::bf16, {0, 3}}}, {0, 2});

  // Starts in range, and out of bounds at both ends.
  put(pt::def<dynamic_slice>, {f32({4, 8}), i32({}), i32({})}, {whole, 5}, {}, 0, 3);
  put(pt::def<dynamic_slice>, {f32({6, 5, 12}), i32({}), i32({}), i32({})}, {2, 1, whole}, {}, -9,
      9);
  put(pt::def<dynamic_slice>, {{dtype::bf16, {7}}, {dtype::i64, {}}}, {3});
  put(pt::def<dynamic_slice>, {i1({1, 6}), {dtype::u8, {}}, {dtype::u8, {}}}, {1, whole});
  put(pt::def<dynamic_slice>, {f64({})});
  put(pt::def<dynamic_update_slice>, {f32({4, 8}), f32({4, 5}), i32({}), i32({})}, {}, {}, 0, 3);
  put(pt::def<dynamic_update_slice>, {f32({6, 12}), f32({1, 12}), i32({}), i32({})}, {}, {}, -9, 9);
  put(pt::def<dynamic_update_slice>, {f64({7, 3}), f64({0, 2}), i32({}), i32({})});
  put(pt::def<dynamic_update_slice>,
      {{dtype::u8, {5, 6}}, {dtype::u8, {2, 6}}, {dtype::i64, {}}, {dtype::i64, {}}});
  put(pt::def<dynamic_update_slice>, {i32({}), i32({})});

  // Rows of a table; indices out of range are clamped.
  put(pt::def<pt::op::gather>, {f32({5, 6}), i32({4})});
  put(pt::def<pt::op::gather>, {f32({3, 2}), i32({12})}, {}, {}, -2, 5);
  put(pt::def<pt::op::gather>, {i32({7, 2, 3}), {dtype::i64, {2, 6}}}, {}, {}, 0, 6);
  put(pt::def<pt::op::gather>, {f64({3}), i32({})});
  put(pt::def<pt::op::gather>, {f64({2, 1}), i32({4})});
  put(pt::def<pt::op::gather>, {i1({4, 1}), {dtype::u8, {12}}});
  put(pt::def<pt::op::gather>, {f64({300, 2}), {dtype::u8, {4}}}, {}, {}, 0, 255);
  for (dtype t :
       {dtype::i8, dtype::i16, dtype::i64, dtype::u8, dtype::u16, dtype::u32, dtype::u64}) {
    put(pt::def<pt::op::gather>, {f32({5, 2}), {t, {4}}}, {}, {}, -2, 7);
    put(pt::def<pt::op::gather>, {{t, {5, 2}}, {t, {2, 4}}}, {}, {}, 0, 7);
    put(pt::def<dynamic_slice>, {f32({4, 8}), {t, {}}, {t, {}}}, {whole, 5}, {}, -2, 9);
    put(pt::def<dynamic_update_slice>, {{t, {6, 12}}, {t, {1, 12}}, {t, {}}, {t, {}}}, {}, {}, 0,
        9);
    put(pt::def<pad>, {{t, {4, 6}}, {t, {}}}, {0, 2, 0, 1, 0, 0});
    for (std::int64_t update = 0; update < 7; ++update)
      put(pt::def<scatter>, {{t, {5, 6}}, {t, {1}}, {t, {1, 6}}},
          dimension_numbers{{1}, {0}, {}, {}, {0}, 1}.with({update}, {}), {}, -1, 5);
  }

  struct layout {
    dimension_numbers n;
    shape tensor, indices, windows;
    ints sizes;
  };
  const layout layouts[] = {
      // A column of a matrix per index.
      {{{0}, {1}, {}, {}, {1}, 1}, {4, 5}, {6}, {4, 6}, {whole, 1}},
      // Index vectors of two starts in the middle; the last dimension is complete.
      {{{2}, {0, 1}, {}, {}, {0, 1}, 1}, {3, 4, 2}, {4, 2, 3}, {4, 3, 2}, {1, 1, whole}},
      {{{2}, {0, 1}, {}, {}, {1, 0}, 0}, {4, 2, 4}, {2, 3, 2}, {3, 2, 4}, {1, 1, whole}},
      // Windows smaller than their dimensions, so that they overlap.
      {{{1, 2}, {}, {}, {}, {0, 1}, 1}, {5, 4}, {6, 2}, {6, 2, 3}, {2, 3}},
      {{{0, 2}, {1}, {}, {}, {0, 1}, 1}, {3, 2, 6}, {4, 2}, {2, 4, 6}, {2, 1, whole}},
      // Batching dimensions: take_along_axis, and those of a larger gather in another order.
      {{{}, {1}, {0}, {0}, {1}, 2}, {4, 5}, {4, 6}, {4, 6}, {1, 1}},
      {{{3}, {1}, {0, 3}, {2, 0}, {1}, 3},
       {4, 3, 6, 2},
       {2, 3, 4, 1},
       {2, 3, 4, 6},
       {1, 1, whole, 1}},
      // No index, and rows that are gathered only in part.
      {{{1}, {}, {}, {}, {}, 1}, {4}, {6, 0}, {6, 4}, {whole}},
      {{{1}, {0}, {}, {}, {0}, 1}, {5, 6}, {4}, {4, 3}, {1, 3}},
      // Windows smaller than each dimension, with batching dimensions and starts for some
      // dimensions.
      {{{0, 2}, {}, {1}, {0}, {0}, 1}, {6, 2, 4}, {2, 1, 2}, {3, 2, 1, 2}, {3, 1, 1}},
      {{{0, 2, 3}, {}, {}, {}, {2, 0}, 0}, {4, 4, 6}, {2, 3}, {2, 3, 1, 2}, {2, 1, 2}},
      {{{}, {0, 1, 2}, {}, {}, {2, 0}, 1}, {3, 2, 4}, {6, 2}, {6}, {1, 1, 1}},
      // A start for a dimension that the window covers.
      {{{1}, {}, {}, {}, {0}, 1}, {4}, {6}, {6, 4}, {whole}},
  };
  for (const auto& l : layouts) {
    put(pt::def<pt::op::gather>, {f32(l.tensor), i32(l.indices)}, l.n.with({}, l.sizes), {}, 0, 3);
    put(pt::def<pt::op::gather>, {f32(l.tensor), i32(l.indices)}, l.n.with({}, l.sizes), {}, -2, 6);
    for (std::int64_t update = 0; update < 7; ++update) {
      // Products have no derivative with respect to updates, and integers have no derivative.
      const auto number = update >= 4 ? i32 : f32;
      for (const auto& [low, high] : {std::pair{0, 1}, {-2, 6}}) {
        put(pt::def<scatter>, {number(l.tensor), i32(l.indices), number(l.windows)},
            l.n.with({update}, {}), {}, low, high);
        // Without an input, the maximum or minimum of nothing is infinite.
        const auto alone = update == 1 ? f32 : i32;
        if (update > 0)
          put(pt::def<scatter>, {i32(l.indices), alone(l.windows)}, l.n.with({update}, {}),
              alone(l.tensor), low, high);
      }
    }
  }
  for (std::int64_t update = 1; update < 7; ++update) {
    const auto number = update >= 4 ? i32 : f32;
    put(pt::def<scatter>, {i32({8}), number({8, 3})}, {update}, number({1, 3}), -1, 1);
    put(pt::def<scatter>, {{dtype::i64, {2, 6}}, i32({2, 6})}, {update}, i32({5}), -1, 4);
    put(pt::def<scatter>, {i32({1, 4}), {dtype::u8, {1, 4, 2}}}, {update}, {dtype::u8, {7, 2}}, 0,
        3);
  }
  put(pt::def<scatter>, {i32({}), f64({4, 5})}, {1}, f64({3, 4, 5}));
  put(pt::def<scatter>, {i32({1, 4}), {dtype::bf16, {1, 4, 2}}}, {1}, {dtype::bf16, {7, 2}});
  put(pt::def<scatter>, {f64({4, 2}), i32({8}), f64({8, 2})}, {0}, {}, 0, 5);
  for (std::int64_t update : {0, 5, 6})
    put(pt::def<scatter>, {i1({4, 6}), i32({5}), i1({5, 6})}, {update}, {}, 0, 3);
  put(pt::def<scatter>, {i32({8, 2}), i1({8})},
      dimension_numbers{{}, {0, 1}, {}, {}, {0, 1}, 1}.with({6}, {}), i1({4, 6}), -1, 6);
  // Several indices, of other types.
  for (dtype t : {dtype::u8, dtype::i16, dtype::u32, dtype::i64, dtype::u64}) {
    const dimension_numbers pairs{{1}, {0}, {}, {}, {1, 0}, 1};
    put(pt::def<pt::op::gather>, {f32({6, 8}), {t, {4, 2}}}, pairs.with({}, {1, 2}), {}, 0, 9);
    put(pt::def<scatter>, {f32({6, 8}), {t, {4, 2}}, f32({4, 2})}, pairs.with({1}, {}), {}, 0, 9);
  }
}

}  // namespace laws
