/// Cases of sort, top_k, argmax and argmin, and optimization_barrier.
#pragma once

#include "op_case.hpp"

namespace laws {

inline void add_order_cases(std::vector<op_case>& list) {
  using namespace pt::op;
  const auto put = [&](const pt::op_def& op, std::vector<tensor_type> operands, ints attrs = {},
                       std::int64_t low = -3, std::int64_t high = 3) {
    list.push_back({&op, operands, attrs, {}, low, high});
  };
  // dim, keys, descending; few different values, so that there are ties
  put(pt::def<sort>, {f32({4, 6})}, {1, 1, 0});
  put(pt::def<sort>, {f32({4, 6})}, {0, 1, 1});
  put(pt::def<sort>, {i32({2, 7, 3}), f64({2, 7, 3})}, {1, 1, 0});
  put(pt::def<sort>, {{dtype::u8, {5, 4}}, i1({5, 4}), f32({5, 4})}, {0, 2, 0});
  put(pt::def<sort>, {{dtype::bf16, {1, 8}}, i32({1, 8})}, {1, 2, 1});
  put(pt::def<sort>, {f64({9})}, {0, 1, 0});
  for (dtype t :
       {dtype::i8, dtype::i16, dtype::i64, dtype::u8, dtype::u16, dtype::u32, dtype::u64}) {
    put(pt::def<sort>, {{t, {4, 6}}, {t, {4, 6}}}, {1, 1, 0}, -100, 100);
    put(pt::def<top_k>, {{t, {4, 6}}, {t, {4, 6}}}, {3}, -100, 100);
    put(pt::def<reduce>, {{t, {4, 6}}, {t, {4, 6}}}, {7, 1}, -9, 9);
  }
  // k; values and positions, both of few different values
  put(pt::def<top_k>, {f32({4, 6}), i32({4, 6})}, {2});
  put(pt::def<top_k>, {f64({2, 24}), {dtype::i64, {2, 24}}}, {3});
  put(pt::def<top_k>, {{dtype::bf16, {3, 12}}, i32({3, 12})}, {1});
  put(pt::def<top_k>, {i32({2, 3, 7}), {dtype::u8, {2, 3, 7}}}, {7});
  put(pt::def<top_k>, {f64({8}), i32({8})}, {1});
  put(pt::def<top_k>, {{dtype::f16, {6, 1}}, i32({6, 1})}, {1});
  put(pt::def<top_k>, {i1({4, 8}), {dtype::u8, {4, 8}}}, {2});
  put(pt::def<top_k>, {i1({4, 5}), i32({4, 5})}, {0});
  // argmax (7) and argmin (8): values and positions, both of few different values; then dims
  put(pt::def<reduce>, {f32({4, 6}), i32({4, 6})}, {7, 1});
  put(pt::def<reduce>, {f32({4, 6}), i32({4, 6})}, {8, 0});
  put(pt::def<reduce>, {f64({4, 3, 6}), {dtype::i64, {4, 3, 6}}}, {7, 0, 2});
  put(pt::def<reduce>, {i32({2, 5, 3}), {dtype::u8, {2, 5, 3}}}, {8, 1});
  put(pt::def<reduce>, {{dtype::bf16, {8, 4}}, i32({8, 4})}, {8, 1});
  put(pt::def<reduce>, {f64({9}), i32({9})}, {8, 0});
  put(pt::def<reduce>, {f32({4, 2}), i32({4, 2})}, {7});
  // A flag that is set if the combiner commutes; dims; the number of identities and the identities;
  // results; steps: op, type, operands, attributes. The cases are the maximum (8: maximum) and the
  // composition of maps (a, b): x -> a x + b (6: multiply, 4: add).
  const auto put_greatest = [&](tensor_type t, ints dims) {
    ints attrs{1, static_cast<std::int64_t>(dims.size())};
    attrs.insert(attrs.end(), dims.begin(), dims.end());
    for (std::int64_t n : ints{1, pt::identity_bits(pt::combiner::max, t.element)})
      attrs.push_back(n);
    for (std::int64_t n : ints{2, 8, -1, 2, 0, 1, 0}) attrs.push_back(n);
    put(pt::def<fold>, {t}, attrs);
  };
  const auto put_maps = [&](tensor_type t, ints dims) {
    const std::int64_t e = -1;  // the type of the first input
    ints attrs{0, static_cast<std::int64_t>(dims.size())};
    attrs.insert(attrs.end(), dims.begin(), dims.end());
    for (std::int64_t n : ints{2, pt::identity_bits(pt::combiner::multiply, t.element)})
      attrs.push_back(n);
    for (std::int64_t n : ints{0, 4, 6, 6, e, 2, 2, 0, 0, 6, e, 2, 2, 1, 0, 4, e, 2, 5, 3, 0})
      attrs.push_back(n);
    put(pt::def<fold>, {t, t}, attrs);
  };
  put_greatest(f64({4, 6}), {1});
  put_greatest(f64({6}), {0});
  put_greatest(i32({2, 4, 3}), {0, 2});
  put_greatest({dtype::u8, {4, 3}}, {0});
  put_greatest(f64({4, 2}), {});
  put_maps(i32({4, 6}), {1});
  put_maps(i32({6, 2, 2}), {0, 2});
  put_maps({dtype::u16, {4, 3}}, {0});
  put_maps(f64({2, 4}), {1});
  put(pt::def<optimization_barrier>, {f32({4, 6})});
  put(pt::def<optimization_barrier>, {f32({4, 6}), i32({5, 1, 2}), f64({})});
  put(pt::def<optimization_barrier>, {i1({7}), f64({3})});
  // More factors or operands than a byte can count.
  put(pt::def<optimization_barrier>, std::vector<tensor_type>(70, i32({2, 3})));
  put(pt::def<sort>, std::vector<tensor_type>(300, i32({2, 2})), {1, 1, 0});
  put(pt::def<concatenate>, std::vector<tensor_type>(300, i32({2, 2})), {0});
}

}  // namespace laws
