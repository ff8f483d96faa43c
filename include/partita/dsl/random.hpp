/// Random numbers as functions of a key: the same key yields the same numbers on every mesh.
///
/// A key is a rank-0 tensor of i64, such as an input or the result of `random_key`; any value is
/// valid. Use each key once, either to draw numbers or to derive keys (`split`, `fold_in`): draws
/// from one key are not independent of each other. Element n of a draw, in row-major order, comes
/// from `random_bits(key, n)` (see op/random.hpp).
///
/// A draw has the shape of a tensor, `uniform<float>(key, x)`, or the given extents,
/// `uniform<float>(key, dim<0>(x), extent<16>{})`, or is one number, `uniform<float>(key)`.
#pragma once

#include <array>
#include <utility>

#include <partita/dsl/elementwise.hpp>

namespace partita {

namespace dsl_detail {

/// Requires a rank-0 tensor of i64.
///
/// Errors    S123 the key is not a rank-0 tensor of i64
constexpr void need_key(builder& b, std::string_view name, value_id key) {
  if (key < 0) return;
  if (b.type(key) != tensor_type{dtype::i64, {}})
    b.p.error.record("S123", name, ": the key has type ", b.type(key), "; tensor<i64> is needed");
}

/// Returns `scale` times the position of each element in row-major order, plus `offset`. The
/// contribution of each dimension is computed as a vector and broadcast, so that sharding needs no
/// slices.
constexpr value_id element_counter(builder& b, const shape& to, std::int64_t scale,
                                   std::int64_t offset) {
  value_id sum = ops::integer(b, dtype::i64, offset);
  for (int d = to.rank; d-- > 0; scale = saturating_multiply(scale, to[d])) {
    const value_id along = ops::iota(b, {dtype::i64, {to[d]}}, 0);
    const value_id part = ops::multiply(b, along, ops::integer(b, dtype::i64, scale));
    const std::int64_t dim[] = {d};
    sum = ops::add(b, ops::broadcast_in_dim(b, part, to, dim), sum);
  }
  return sum;
}

/// Returns bits [64 - count, 64) of random words, as integers in a floating-point type that
/// represents them.
constexpr value_id leading_bits(builder& b, value_id words, int count, dtype t) {
  const value_id out = ops::integer(b, dtype::i64, 64 - count);
  return ops::convert(b, ops::shift_right_logical(b, words, out), t);
}
/// Returns 2^-n.
constexpr double fraction(int n) { return n == 0 ? 1 : fraction(n - 1) / 2; }
/// Returns the number of significand bits, including the hidden one.
constexpr int significand(dtype t) {
  if (t == dtype::f64) return 53;
  if (t == dtype::f32) return 24;
  return t == dtype::f16 ? 11 : 8;
}

constexpr value_id uniform(builder& b, value_id key, dtype t, const shape& to) {
  need_key(b, "uniform", key);
  const int bits = significand(t);
  const value_id words = ops::random_bits(b, key, element_counter(b, to, 1, 0));
  return ops::multiply(b, leading_bits(b, words, bits, t), ops::scalar(b, t, fraction(bits)));
}

constexpr value_id normal(builder& b, value_id key, dtype t, const shape& to) {
  need_key(b, "normal", key);
  const dtype wide = t == dtype::f64 ? t : dtype::f32;
  const int bits = significand(wide) - 1;
  const value_id first = ops::random_bits(b, key, element_counter(b, to, 2, 0));
  const value_id second = ops::random_bits(b, key, element_counter(b, to, 2, 1));
  const auto middle = [&](value_id words) {  // midpoint of one of 2^bits equal parts of (0, 1)
    const value_id part = leading_bits(b, words, bits, wide);
    const value_id centre = ops::add(b, part, ops::scalar(b, wide, 0.5));
    return ops::multiply(b, centre, ops::scalar(b, wide, fraction(bits)));
  };
  constexpr double two_pi = 6.283185307179586;
  const value_id logarithm = ops::log(b, middle(first));
  const value_id radius = ops::sqrt(b, ops::multiply(b, logarithm, ops::scalar(b, wide, -2)));
  const value_id angle = ops::multiply(b, middle(second), ops::scalar(b, wide, two_pi));
  return ops::convert(b, ops::multiply(b, radius, ops::cosine(b, angle)), t);
}

/// Applies an emitter (builder, operand ids, extents) with the shape that the arguments describe.
template <class Emit, class Key, class... E>
constexpr auto draw(const Emit& emit, const Key& key, const E&... extents) {
  return apply_with<static_extents<E...>>(emit, actual_extents(extents...), key);
}
template <class Emit, class Key, Tensor X>
constexpr auto draw(const Emit& emit, const Key& key, const X& like) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return draw(emit, key, dim<I>(like)...);
  }
  (std::make_integer_sequence<int, X::rank>{});
}

}  // namespace dsl_detail

/// Returns a key with a value known at trace time, in the program of `of`.
template <Tensor X>
constexpr auto random_key(const X& of, std::int64_t seed) {
  if constexpr (!X::is_valid) {
    return of;
  } else {
    using key = tensor<std::int64_t>;
    if (of.context() == nullptr) return key(nullptr, of.id());
    return key(of.context(), ops::integer(*of.context(), dtype::i64, seed));
  }
}

/// Returns the nth key derived from a key. n is a number or a rank-0 tensor of i64, such as a step
/// count.
///
/// Errors    S123 the key is not a rank-0 tensor of i64
template <Tensor Key, class N>
requires(Tensor<N> || Number<N>) constexpr auto fold_in(const Key& key, const N& n) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        dsl_detail::need_key(b, "fold_in", v[0]);
        return ops::random_bits(b, v[0], v[1]);
      },
      key, dsl_detail::operand_like(key, n));
}

/// Returns N independent keys, as a std::array: `const auto keys = split<3>(key)`, then `keys[0]`.
///
/// (`const auto [a, b, c] = split<3>(key)` works unless a lambda uses `a`: Clang does not accept
/// captured structured bindings in constant expressions. For `check`, let the lambda capture `[&, a
/// = a]`.)
///
/// Errors    S123 the key is not a rank-0 tensor of i64
template <int N = 2, Tensor Key>
constexpr auto split(const Key& key) {
  return [&]<int... I>(std::integer_sequence<int, I...>) { return std::array{fold_in(key, I)...}; }
  (std::make_integer_sequence<int, N>{});
}

/// Draws uniformly from [0, 1): multiples of 2^-24 (f32), 2^-53 (f64), 2^-8 (bf16) or 2^-11 (f16),
/// all equally likely.
///
/// Errors    S123 the key is not a rank-0 tensor of i64
template <ElementType T, Tensor Key, class... Shape>
requires(is_floating(dtype_of<T>)) constexpr auto uniform(const Key& key, const Shape&... shape) {
  return dsl_detail::draw(
      [](builder& b, const value_id* v, const partita::shape& to) {
        return dsl_detail::uniform(b, v[0], dtype_of<T>, to);
      },
      key, shape...);
}

/// Draws from the standard normal distribution, computed in binary64 for f64 and in binary32 for
/// other types. The values are finite, at most 5.8 (8.6 for f64) in magnitude, and symmetric about
/// 0.
///
/// Errors    S123 the key is not a rank-0 tensor of i64
/// Source    Box and Muller, 1958, the cosine half, from the words with counters 2n and 2n + 1
template <ElementType T, Tensor Key, class... Shape>
requires(is_floating(dtype_of<T>)) constexpr auto normal(const Key& key, const Shape&... shape) {
  return dsl_detail::draw(
      [](builder& b, const value_id* v, const partita::shape& to) {
        return dsl_detail::normal(b, v[0], dtype_of<T>, to);
      },
      key, shape...);
}

/// Draws true with probability p, which is a number (rounded to a float) or a tensor that
/// broadcasts.
///
/// Errors    S122 p is not in [0, 1], S123 the key is not a rank-0 tensor of i64
template <Tensor Key, class P, class... Shape>
requires(Tensor<P> || Number<P>)  //
    constexpr auto bernoulli(const Key& key, const P& p, const Shape&... shape) {
  if constexpr (Tensor<P>) {
    return uniform<typename P::element>(key, shape...) < p;
  } else {
    const auto drawn = uniform<float>(key, shape...);
    if constexpr (decltype(drawn)::is_valid)
      if (drawn.context() != nullptr && !(p >= 0 && p <= 1)) {
        text number;
        print_number(number, static_cast<double>(p));
        drawn.context()->p.error.record("S122", "bernoulli: probability ", number,
                                        " is not in [0, 1]");
      }
    return drawn < p;
  }
}

}  // namespace partita
