/// Scaled dot-product attention with one key/value head per query head, per group of them, or for
/// all.
#pragma once

#include <utility>

#include <partita/dsl/nn/activation.hpp>
#include <partita/dsl/nn/check.hpp>
#include <partita/dsl/tag.hpp>

namespace partita::nn {

/// Options of attention.
struct attention_options {
  bool causal = false;      ///< a query attends only to keys up to its own position
  std::int64_t offset = 0;  ///< position of the first query; the first key has position 0
  double scale = 0;         ///< factor of the scores; 0 means 1 / sqrt(k)
};

/// Returns the mask of causal attention: query i at position offset + i attends to key j at
/// position j if j is not later.
///
/// Shapes    offset: a number or an i32 scalar -> (queries, keys) of bool, in the program of `of`
template <Tensor X, class Queries, class Keys, class Offset>
requires(Tensor<Offset> || Number<Offset>)  //
    constexpr auto causal_pattern(const X& of, const Queries& queries, const Keys& keys,
                                  const Offset& offset) {
  auto position = iota<std::int32_t, 0>(of, queries, keys);
  if constexpr (Tensor<Offset>)
    return position + offset >= iota<std::int32_t, 1>(of, queries, keys);
  else
    return (offset == 0 ? position : position + offset) >= iota<std::int32_t, 1>(of, queries, keys);
}

namespace detail {

/// A score with no weight in a softmax.
template <ElementType T>
inline constexpr double unseen = dtype_of<T> == dtype::f16 ? -65504 : -1e30;

template <Tensor Seen, Tensor Scores>
constexpr auto hide(const Seen& seen, const Scores& scores) {
  return select(seen, scores, unseen<typename Scores::element>);
}

/// Checks the heads of queries, keys and values.
///
/// Errors    S190
constexpr auto check_heads = [](failure& error, const tensor_type* t) {
  const shape &q = t[0].shape, &k = t[1].shape, &v = t[2].shape;
  if (q.rank != 4 || k.rank != 4 || v.rank != 4)
    error.record("S190", "attention: queries ", t[0], ", keys ", t[1], " and values ", t[2],
                 " are not (batch, positions, heads, k)");
  else if (!same_extent(k[2], v[2]))
    error.record("S190", "attention: keys ", t[1], " have ", k[2], " heads, values ", t[2],
                 " have ", v[2]);
  else if (!divides(k[2], q[2]))
    error.record("S190", "attention: ", k[2], " heads of keys ", t[1], " do not divide the ", q[2],
                 " heads of queries ", t[0]);
};
/// Checks a mask against queries and keys.
///
/// Errors    S193
constexpr auto check_mask = [](failure& error, const tensor_type* t) {
  const shape &mask = t[0].shape, &q = t[1].shape, &k = t[2].shape;
  if (q.rank != 4 || k.rank != 4) return;  // S190
  const shape to{q[0], q[2], q[1], k[1]};
  bool fits = t[0].element == dtype::boolean && mask.rank <= 4;
  for (int d = 0; fits && d < mask.rank; ++d)
    fits = mask[d] == 1 || same_extent(mask[d], to[4 - mask.rank + d]);
  if (!fits)
    error.record("S193", "attention: mask ", t[0], " is not of i1 or does not broadcast to ", to,
                 ", (batch, heads, queries, keys)");
};

/// Tags of values inside attention, for tactics. They are numbered if attention is called several
/// times: "nn.attention.scores", or "nn.attention.scores.0", "nn.attention.scores.1", ...
template <Tensor X>
constexpr auto name_queries(const X& x) {
  return tag("nn.attention.q", x);
}
template <Tensor X>
constexpr auto name_keys(const X& x) {
  return tag("nn.attention.k", x);
}
template <Tensor X>
constexpr auto name_values(const X& x) {
  return tag("nn.attention.v", x);
}
template <Tensor X>
constexpr auto name_scores(const X& x) {
  return tag("nn.attention.scores", x);
}

/// Computes attention with one key head per query head. `mask` maps scores to masked scores.
///
/// Shapes    (b, q, h, k), (b, s, h, k), (b, s, h, v) -> (b, h, q, v)
template <Tensor Q, Tensor K, Tensor V, class Mask>
constexpr auto attend_by_head(const Q& queries, const K& keys, const V& values, double scale,
                              const Mask& mask) {
  const auto scores = name_scores(dot_general<axes<0, 2>, axes<0, 2>, axes<3>, axes<3>>(
      name_queries(queries * scale), name_keys(keys)));  // (b, h, q, s)
  const auto weights = softmax(mask(scores));            // (b, h, q, s)
  return dot_general<axes<0, 1>, axes<0, 2>, axes<3>, axes<1>>(weights, name_values(values));
}

/// Computes attention with g = h / n query heads per key head.
///
/// Shapes    (b, q, h, k), (b, s, n, k), (b, s, n, v) -> (b, q, h, v); mask: scores (b, n, q, g, s)
template <Tensor Q, Tensor K, Tensor V, class Mask>
constexpr auto attend_by_group(const Q& queries, const K& keys, const V& values, double scale,
                               const Mask& mask) {
  const auto group = quotient(dim<2>(queries), dim<2>(keys));
  const auto grouped = reshape(name_queries(queries * scale), dim<0>(queries), dim<1>(queries),
                               dim<2>(keys), group, dim<3>(queries));  // (b, q, n, g, k)
  const auto scores = name_scores(dot_general<axes<0, 2>, axes<0, 2>, axes<4>, axes<3>>(
      grouped, name_keys(keys)));  // (b, n, q, g, s)
  const auto weights = softmax(mask(scores));
  const auto found = transpose<0, 2, 1, 3, 4>(dot_general<axes<0, 1>, axes<0, 2>, axes<4>, axes<1>>(
      weights, name_values(values)));  // (b, q, n, g, v)
  return reshape(found, dim<0>(queries), dim<1>(queries), dim<2>(queries), dim<3>(values));
}

/// Returns the extents (n, g) of n * g heads, or (1, 1) for one head, which broadcasts.
template <std::int64_t Heads, std::int64_t N>
constexpr auto groups_of(extent<Heads> heads, extent<N> n) {
  if constexpr (Heads == 1) {
    return std::pair{extent<1>{}, extent<1>{}};
  } else if constexpr (Heads == dyn) {
    const bool one = heads.value() == 1;
    return std::pair{extent<dyn>{one ? 1 : n.value()},
                     extent<dyn>{one ? 1 : quotient(heads, n).value()}};
  } else {
    return std::pair{n, quotient(heads, n)};
  }
}

/// Converts a mask (..., q, s) or (b, h, q, s) to the shape of scores (b, n, q, g, s).
template <Tensor Mask, class N>
constexpr auto mask_of_groups(const Mask& mask, const N& n) {
  if constexpr (!Mask::is_valid) {
    return mask;
  } else if constexpr (Mask::rank < 4) {
    return mask_of_groups(expand_dims<0>(mask), n);
  } else {
    const auto [heads, group] = groups_of(dim<1>(mask), n);
    return transpose<0, 1, 3, 2, 4>(
        reshape(mask, dim<0>(mask), heads, group, dim<2>(mask), dim<3>(mask)));
  }
}

/// A placeholder for an absent mask.
struct nothing_hidden {};

template <Tensor Q, Tensor K, Tensor V, class Mask>
constexpr auto attention(const Q& q, const K& keys, const V& values, const Mask& mask,
                         const attention_options& options) {
  const in_scope here("attention", q);
  const auto queries = checked(check_heads, q, keys, values);
  if constexpr (!decltype(queries)::is_valid) {
    return invalid_tensor{};
  } else {
    const double scale =
        options.scale != 0 ? options.scale : inverse_square_root(static_cast<double>(q.shape()[3]));
    const auto pattern = [&] {
      return causal_pattern(queries, dim<1>(queries), dim<1>(keys), options.offset);
    };
    constexpr std::int64_t heads = Q::static_type.shape[2], key_heads = K::static_type.shape[2];
    if constexpr (heads != dyn && heads == key_heads) {
      return transpose<0, 2, 1, 3>(
          attend_by_head(queries, keys, values, scale, [&](const auto& all) {
            const auto scores = options.causal ? hide(pattern(), all) : all;
            if constexpr (Tensor<Mask>)
              return hide(mask, scores);
            else
              return scores;
          }));
    } else {
      return attend_by_group(queries, keys, values, scale, [&](const auto& all) {
        const auto scores = options.causal ? hide(expand_dims<1>(pattern()), all) : all;
        if constexpr (Tensor<Mask>)
          return hide(mask_of_groups(mask, dim<2>(keys)), scores);
        else
          return scores;
      });
    }
  }
}

}  // namespace detail

/// Computes softmax(queries keys^T / sqrt(k)) values for each head. There may be fewer heads of
/// keys and values than of queries (grouped-query attention; with one, multi-query attention):
/// query head i uses key head i / (heads / key_heads).
///
///     attention(q, k, v, {.causal = true})
///     attention(q, k, v, mask, {})
///
/// The values inside are tagged for tactics: "nn.attention.q" (times the scale), ".k", ".v" and
/// ".scores" (before the mask). If there are several attentions, the tags are "nn.attention.q.0",
/// "nn.attention.q.1", ..., and "nn.attention.q" selects all. All functions of this file use these
/// tags.
///
/// A query attends to the keys for which the mask is true, and with `causal` only to those up to
/// its position. A query without such keys weighs all keys equally.
///
/// Shapes    queries (batch, queries, heads, k), keys (batch, keys, key_heads, k), values (batch,
///           keys, key_heads, v), mask of bool that broadcasts to (batch, heads, queries, keys) ->
///           (batch, queries, heads, v)
/// Errors    S190 the heads of keys do not divide those of queries, or other ranks; S193 the mask
///           is not of i1, or does not broadcast; S101, S105 extents differ
/// Source    Vaswani et al., arXiv:1706.03762, section 3.2.1; Shazeer, arXiv:1911.02150; Ainslie et
///           al., arXiv:2305.13245
template <Tensor Q, Tensor K, Tensor V>
constexpr auto attention(const Q& queries, const K& keys, const V& values,
                         const attention_options& options = {}) {
  return detail::attention(queries, keys, values, detail::nothing_hidden{}, options);
}
/// Computes attention with a mask.
template <Tensor Q, Tensor K, Tensor V, Tensor Mask>
constexpr auto attention(const Q& queries, const K& keys, const V& values, const Mask& mask,
                         const attention_options& options = {}) {
  const auto seen = detail::checked(detail::check_mask, mask, queries, keys);
  if constexpr (!decltype(seen)::is_valid)
    return seen;
  else
    return detail::attention(queries, keys, values, seen, options);
}

/// Masks the scores of later positions with a large negative number, so that softmax ignores them.
///
/// Shapes    scores (..., queries, keys) -> the same; position i attends to keys 0 to i
template <Tensor Scores>
constexpr auto causal_mask(const Scores& scores) {
  if constexpr (!Scores::is_valid)
    return scores;
  else
    return detail::hide(
        causal_pattern(scores, dim<Scores::rank - 2>(scores), dim<Scores::rank - 1>(scores), 0),
        scores);
}

/// Computes attention in which a position attends to itself and earlier positions. Unlike
/// `attention`, it returns the heads before the positions, as the following projection takes them.
///
/// Shapes    queries, keys, values (batch, position, heads, k) -> (batch, heads, position, k)
/// Errors    S190 another rank, S105 numbers of heads differ
/// Source    Vaswani et al., arXiv:1706.03762, section 3.2.1
template <Tensor Q, Tensor K, Tensor V>
constexpr auto causal_attention(const Q& q, const K& keys, const V& values) {
  const detail::in_scope here("causal_attention", q);
  const auto queries = detail::checked(detail::check_heads, q, keys, values);
  if constexpr (!decltype(queries)::is_valid) {
    return invalid_tensor{};
  } else {
    const double scale = detail::inverse_square_root(static_cast<double>(q.shape()[3]));
    return detail::attend_by_head(queries, keys, values, scale,
                                  [](const auto& scores) { return causal_mask(scores); });
  }
}

/// Computes multi-head causal self-attention. The three projections are one product, `qkv`, with a
/// dimension of size 3 that separates them, so that a shard along the heads contains complete
/// heads.
///
/// Shapes    x (batch, position, d), qkv (d, 3, heads, k), out (heads, k, d) -> (batch, position,
///           d)
template <Tensor X, Tensor QKV, Tensor Out>
constexpr auto causal_self_attention(const X& x, const QKV& qkv, const Out& out) {
  const detail::in_scope here("causal_self_attention", x);
  if constexpr (!X::is_valid) {
    return x;
  } else {
    const auto all = dot_general<axes<>, axes<>, axes<2>, axes<0>>(x, qkv);  // (b, s, 3, h, k)
    if constexpr (!decltype(all)::is_valid) {
      return all;
    } else {
      const auto part = [&](const auto& one) {  // (b, s, 1, h, k)
        return reshape(one, dim<0>(one), dim<1>(one), dim<3>(one), dim<4>(one));
      };
      const auto heads = causal_attention(part(slice<2, 0, 1>(all)), part(slice<2, 1, 2>(all)),
                                          part(slice<2, 2, 3>(all)));  // (b, h, s, k)
      return dot_general<axes<>, axes<>, axes<1, 3>, axes<0, 1>>(heads, out);
    }
  }
}

}  // namespace partita::nn
