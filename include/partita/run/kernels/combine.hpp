/// Combiners on elements, shared by reductions, windows, running sums, scatters and collectives.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <partita/ir/tile_map.hpp>
#include <partita/run/kernels/elementwise.hpp>

namespace partita::run_detail {

/// Combines x with y. `and` and `or` apply to integers and bool only.
template <combiner C>
struct combine {
  static constexpr combiner what = C;
  template <class T>
  static T one(T x, T y) {
    if constexpr (C == combiner::max)
      return maximum_lanes::one(x, y);
    else if constexpr (C == combiner::min)
      return minimum_lanes::one(x, y);
    else if constexpr (C == combiner::logical_and)
      return static_cast<T>(x & y);
    else if constexpr (C == combiner::logical_or)
      return static_cast<T>(x | y);
    else if constexpr (C == combiner::multiply)
      return multiply_lanes::one(x, y);
    else
      return add_lanes::one(x, y);
  }
  template <class T>
  static constexpr T identity() {
    using limits = std::numeric_limits<T>;
    if constexpr (C == combiner::max)
      return limits::has_infinity ? -limits::infinity() : limits::lowest();
    else if constexpr (C == combiner::min)
      return limits::has_infinity ? limits::infinity() : limits::max();
    else if constexpr (C == combiner::multiply)
      return T(1);
    else if constexpr (C == combiner::logical_and)
      return static_cast<T>(-1);  // all bits; true
    else
      return T(0);
  }
};

/// The type of partial sums: binary64 for binary32.
template <class T>
using wider = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// Returns the combiner for elements of type T: for bool, sums and maxima are "or", products and
/// minima are "and".
template <class T>
constexpr combiner combiner_of(combiner c) {
  using enum combiner;
  if (!std::is_same_v<T, bool>) return c;
  if (c == add || c == max) return logical_or;
  return c == multiply || c == min ? logical_and : c;
}
/// Calls `f(combine<C>{})` for a combiner that supports elements of type T.
template <class T, class F>
decltype(auto) with_combiner(combiner c, F&& f) {
  using enum combiner;
  c = combiner_of<T>(c);
  if constexpr (std::is_integral_v<T>) {
    if (c == logical_or) return f(combine<logical_or>{});
    if (c == logical_and) return f(combine<logical_and>{});
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (c == add) return f(combine<add>{});
    if (c == max) return f(combine<max>{});
    if (c == min) return f(combine<min>{});
    if (c == multiply) return f(combine<multiply>{});
  }
  throw error(concat("P001 internal error: combiner ", name_of(c), " does not combine elements of ",
                     name_of(dtype_of<T>), "; please report"));
}

/// Applies F elementwise to two operands of a computed type.
template <class F, class T>
void combine_block(std::int64_t n, const void* const* in, void* out) {
  const auto* __restrict x = static_cast<const T*>(in[0]);
  const auto* __restrict y = static_cast<const T*>(in[1]);
  auto* __restrict z = static_cast<T*>(out);
  for_lanes(n, [=](std::int64_t i) { z[i] = F::one(x[i], y[i]); });
}

/// Calls with_computed_type for ops that accept numbers only.
template <class F>
void with_number_type(dtype t, F&& f) {
  with_computed_type(t, [&]<class T>(std::type_identity<T> type) {
    if constexpr (!std::is_same_v<T, bool>) f(type);
  });
}

}  // namespace partita::run_detail
