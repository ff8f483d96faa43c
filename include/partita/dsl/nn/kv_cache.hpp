/// A cache of keys and values of earlier positions, for generating text one position at a time.
#pragma once

#include <partita/dsl/nn/attention.hpp>
#include <partita/dsl/tree.hpp>

namespace partita::nn {

/// Keys and values of up to `length` positions. It is a tree, which loops can carry. Unused
/// positions must hold finite numbers, such as 0.
///
/// Shapes    keys (batch, length, heads, k), values (batch, length, heads, v)
template <Tensor Keys, Tensor Values = Keys>
struct kv_cache {
  BOOST_HANA_DEFINE_STRUCT(kv_cache, (Keys, keys), (Values, values));
};

namespace detail {

/// Writes `block` into `all` (batch, length, heads, k) from a position on.
template <Tensor All, Tensor Block, class Position>
constexpr auto write_at(const All& all, const Block& block, const Position& position) {
  if constexpr (Number<Position>) {
    using scalar = tensor<std::int32_t>;
    builder* b = all.context();
    return write_at(all, block,
                    b == nullptr ? scalar(nullptr, all.id())
                                 : scalar(b, ops::integer(*b, dtype::i32, position)));
  } else {
    const auto zero = partita::dsl_detail::scalar_like(position, 0);
    return dynamic_update_slice(all, block, zero, position, zero, zero);
  }
}

}  // namespace detail

/// Writes keys and values of new positions, starting at `position`, and returns the cache. (A block
/// that reaches past the end is moved back to fit, as dynamic_update_slice does.)
///
/// Shapes    keys (batch, new, heads, k), values (batch, new, heads, v); position: a number or an
///           integer scalar
template <Tensor Keys, Tensor Values, Tensor K, Tensor V, class Position>
requires(Tensor<Position> || Number<Position>)  //
    constexpr kv_cache<Keys, Values> append(const kv_cache<Keys, Values>& cache, const K& keys,
                                            const V& values, const Position& position) {
  return {detail::write_at(cache.keys, keys, position),
          detail::write_at(cache.values, values, position)};
}

/// Computes attention to the used part of a cache. The first query is at `position` and attends to
/// positions 0 to `position`; each later query attends to one more.
///
///     for_loop(0, length, [&](auto i, auto carried) {
///       ...
///       carried.cache = nn::append(carried.cache, k, v, i);
///       const auto y = nn::attend(q, carried.cache, i);
///
/// Shapes    queries (batch, queries, heads, k); position: a number or an i32 scalar -> (batch,
///           queries, heads, v)
/// Errors    as attention
template <Tensor Q, Tensor Keys, Tensor Values, class Position>
requires(Tensor<Position> || Number<Position>)  //
    constexpr auto attend(const Q& queries, const kv_cache<Keys, Values>& cache,
                          const Position& position, double scale = 0) {
  const auto whole = detail::checked(detail::check_heads, queries, cache.keys, cache.values);
  if constexpr (!decltype(whole)::is_valid)
    return whole;
  else
    return attention(whole, cache.keys, cache.values,
                     causal_pattern(whole, dim<1>(whole), dim<1>(cache.keys), position),
                     attention_options{.scale = scale});
}

}  // namespace partita::nn
