/// Building blocks of neural networks, as plain functions of tensors.
#pragma once

#include <cstdint>

#include <partita/dsl/ops.hpp>

namespace partita::nn {

namespace detail {
/// 1 / sqrt(x), usable in constant evaluation (Newton's method); 1 where x is no extent (the trace
/// has failed then).
constexpr double inverse_square_root(double x) {
  if (!(x > 0)) return 1;
  double root = x < 1 ? 1 : x;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2) root = next;
  return 1 / root;
}
}  // namespace detail

/// exp(x) / sum(exp(x)) along the last dimension, shifted by the maximum.
template <Tensor X>
constexpr auto softmax(const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto shifted = exp(x - keep_last(stop_gradient(reduce_max<last>(x))));
    return shifted / keep_last(sum<last>(shifted));
  }
}

/// Logarithm of the softmax along the last dimension.
template <Tensor X>
constexpr auto log_softmax(const X& x) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto shifted = x - keep_last(stop_gradient(reduce_max<last>(x)));
    return shifted - keep_last(log(sum<last>(exp(shifted))));
  }
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias along the last dimension.
///
/// Shapes    x (..., d), scale (d), bias (d) -> (..., d)
template <Tensor X, Tensor Scale, Tensor Bias>
constexpr auto layer_norm(const X& x, const Scale& scale, const Bias& bias, double epsilon = 1e-5) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    constexpr int last = X::rank - 1;
    const auto centered = x - keep_last(mean<last>(x));
    const auto variance = mean<last>(centered * centered);
    return centered * keep_last(rsqrt(variance + epsilon)) * scale + bias;
  }
}

/// GELU by the tanh approximation (Hendrycks and Gimpel, arXiv:1606.08415).
template <Tensor X>
constexpr auto gelu(const X& x) {
  return x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.7978845608028654) + 1);
}

/// GELU with the error function.
template <Tensor X>
constexpr auto gelu_erf(const X& x) {
  return x * 0.5 * (erf(x * 0.7071067811865476) + 1);
}

/// x with elements set to 0 with probability `rate`, the others multiplied by 1 / (1 - rate).
///
/// Errors    S122 the rate is not in [0, 1), S123 the key is not a rank-0 tensor of i64
template <Tensor X, Tensor Key>
constexpr auto dropout(const X& x, const Key& key, double rate) {
  if constexpr (!X::is_valid) {
    return x;
  } else {
    const bool in_range = rate >= 0 && rate < 1;
    if (x.context() != nullptr && !in_range) {
      text number;
      print_number(number, rate);
      x.context()->p.error.record("S122", "dropout: rate ", number, " is not in [0, 1)");
    }
    const double kept = in_range ? 1 - rate : 1;
    return select(bernoulli(key, kept, x), x * (1 / kept), 0);
  }
}

/// Scores with those of later positions at a large negative number, so that softmax ignores them.
///
/// Shapes    scores (..., queries, keys) -> the same; position i sees the keys 0 to i
template <Tensor Scores>
constexpr auto causal_mask(const Scores& scores) {
  if constexpr (!Scores::is_valid) {
    return scores;
  } else {
    constexpr int query = Scores::rank - 2, key = Scores::rank - 1;
    const auto queries = dim<query>(scores);
    const auto keys = dim<key>(scores);
    const auto seen = iota<std::int32_t, 0>(scores, queries, keys) >=
                      iota<std::int32_t, 1>(scores, queries, keys);
    return select(seen, scores, -1e30);
  }
}

/// Scaled dot-product attention in which a position sees itself and what comes before it.
///
/// Shapes    queries, keys, values (batch, position, heads, k) -> (batch, heads, position, k)
/// Source    Vaswani et al., arXiv:1706.03762, section 3.2.1
template <Tensor Q, Tensor K, Tensor V>
constexpr auto causal_attention(const Q& queries, const K& keys, const V& values) {
  if constexpr (!Q::is_valid || !K::is_valid || !V::is_valid) {
    return invalid_tensor{};
  } else {
    static_assert(Q::rank == 4, "partita: causal_attention takes (batch, position, heads, k)");
    const double scale = detail::inverse_square_root(static_cast<double>(queries.shape()[3]));
    const auto scores = dot_general<axes<0, 2>, axes<0, 2>, axes<3>, axes<3>>(
        queries * scale, keys);                         // (b, h, s, s)
    const auto weights = softmax(causal_mask(scores));  // (b, h, s, s)
    return dot_general<axes<0, 1>, axes<0, 2>, axes<3>, axes<1>>(weights, values);
  }
}

/// Self-attention of several heads. The three projections are one product, `qkv`; they are told
/// apart by its dimension of size 3, so that a slice of the heads holds whole heads.
///
/// Shapes    x (batch, position, d), qkv (d, 3, heads, k), out (heads, k, d) -> (batch, position,
/// d)
template <Tensor X, Tensor QKV, Tensor Out>
constexpr auto causal_self_attention(const X& x, const QKV& qkv, const Out& out) {
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

/// Mean over all positions of -log softmax(logits)[target].
///
/// Shapes    logits (..., classes), targets (...) of an integer type -> ()
template <Tensor Logits, Tensor Targets>
constexpr auto cross_entropy(const Logits& logits, const Targets& targets) {
  if constexpr (!Logits::is_valid || !Targets::is_valid) {
    return invalid_tensor{};
  } else {
    constexpr int last = Logits::rank - 1;
    using index = typename Targets::element;
    static_assert(is_integer(dtype_of<index>),
                  "nn::cross_entropy: targets are indices of classes, "
                  "of an integer element type");
    const auto classes = iota<index, 0>(logits, dim<last>(logits));
    const auto chosen = equal(keep_last(targets), classes);
    const auto picked = select(chosen, log_softmax(logits), 0);
    return -(sum(picked) * partita::detail::reciprocal(targets.shape().elements()));
  }
}

}  // namespace partita::nn
