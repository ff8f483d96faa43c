/// Sorting and selecting.
#pragma once

#include <partita/dsl/apply.hpp>

namespace partita {

namespace dsl_detail {
template <int Dim, std::size_t N, int Keys, bool Descending>
struct sort_emitter {
  constexpr value_id operator()(builder& b, const value_id* v, const shape&) const {
    return ops::sort(b, {v, N}, Dim, Keys, Descending);
  }
};
}  // namespace dsl_detail

/// Sorts along a dimension in ascending order. The sort is stable; NaN comes last.
///
/// Errors    S188 dimension out of range
template <int Dim, Tensor X>
constexpr auto sort(const X& x) {
  return dsl_detail::apply(dsl_detail::sort_emitter<Dim, 1, 1, false>{}, x);
}
/// Sorts along a dimension in descending order. The sort is stable; NaN comes first.
template <int Dim, Tensor X>
constexpr auto sort_descending(const X& x) {
  return dsl_detail::apply(dsl_detail::sort_emitter<Dim, 1, 1, true>{}, x);
}
/// Sorts several tensors by the first `Keys` of them, most significant first: `auto [k, v] =
/// sort_by<0>(keys, values)`. The sort is stable.
///
/// Errors    S187 shapes differ, S188 dimension or number of keys out of range
template <int Dim, int Keys = 1, Tensor X, Tensor... More>
constexpr auto sort_by(const X& key, const More&... more) {
  return dsl_detail::apply_results<1 + sizeof...(More)>(
      dsl_detail::sort_emitter<Dim, 1 + sizeof...(More), Keys, false>{}, key, more...);
}
/// Returns the positions (i32) that sort x along a dimension in ascending order.
///
/// Errors    S188 dimension out of range
template <int Dim, Tensor X>
constexpr auto argsort(const X& x) {
  return std::get<1>(dsl_detail::apply_results<2>(
      [](builder& b, const value_id* v, const shape&) -> value_id {
        if (b.failed() || v[0] < 0) return -1;
        const shape s = b.type(v[0]).shape;
        if (Dim < 0 || Dim >= s.rank)
          return ops::sort(b, {v, 1}, Dim, 1, false);  // the shape rule reports it
        const value_id pair[] = {v[0], ops::iota(b, tensor_type{dtype::i32, s}, Dim)};
        return ops::sort(b, pair, Dim, 1, false);
      },
      x));
}
/// Returns the K largest elements along the last dimension, largest first, and their positions
/// (i32): `auto [values, positions] = top_k<4>(x)`. Among equal elements the smallest position
/// comes first.
///
/// Shapes    (..., n) -> (..., K), (..., K)
/// Errors    S189 K is above n, or rank 0
template <std::int64_t K, Tensor X>
constexpr auto top_k(const X& x) {
  return dsl_detail::apply_results<2>(
      [](builder& b, const value_id* v, const shape&) { return ops::top_k(b, v[0], K); }, x);
}

}  // namespace partita
