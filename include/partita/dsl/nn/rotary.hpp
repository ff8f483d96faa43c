/// Rotary position embedding.
#pragma once

#include <utility>

#include <partita/dsl/nn/check.hpp>

namespace partita::nn {

/// Pairs of elements of a vector of k that are rotated together: 2i and 2i + 1, or i and i + k / 2.
enum class rotary_pairs : std::uint8_t { interleaved, halves };

namespace detail {

/// Checks rank, size and element type of the vectors.
///
/// Errors    S104, S191
constexpr auto check_rotary = [](failure& error, const tensor_type* t) {
  const shape& s = t[0].shape;
  if (s.rank < 3)
    error.record("S191", "rotary: ", t[0], " is not (..., positions, heads, k)");
  else if (!divides(2, s[s.rank - 1]))
    error.record("S191", "rotary: dimension ", s.rank - 1, " of ", t[0], " has odd size ",
                 s[s.rank - 1], "; its elements are turned in pairs");
  else if (!is_floating(t[0].element))
    error.record("S104", "rotary: element type ", name_of(t[0].element), " is not floating point");
};

/// Returns the positions that `where` describes: a tensor of them, or first, first + 1, ...
template <Tensor X, class Where>
constexpr auto positions_of(const X& x, const Where& where) {
  using real = wide<X>;
  constexpr int positions = X::rank - 3;
  if constexpr (Number<Where>)
    return iota<real, 0>(x, dim<positions>(x)) + where;
  else if constexpr (Where::is_valid && Where::rank == 0)
    return iota<real, 0>(x, dim<positions>(x)) + convert<real>(where);
  else
    return convert<real>(where);
}

/// Rotates each pair of x by its angle; cosines and sines broadcast against (..., s, h, k / 2).
template <rotary_pairs Pairs, Tensor X, Tensor A>
constexpr auto turn(const X& x, const A& cosine, const A& sine) {
  constexpr int last = X::rank - 1;
  if constexpr (Pairs == rotary_pairs::halves) {
    const auto [a, b] = split<2, last>(x);
    return concatenate<last>(a * cosine - b * sine, b * cosine + a * sine);
  } else {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      const auto half = quotient(dim<last>(x), extent<2>{});
      const auto pairs = reshape(x, dim<I>(x)..., half, extent<2>{});
      const auto a = reshape(slice<last + 1, 0, 1>(pairs), dim<I>(x)..., half);
      const auto b = reshape(slice<last + 1, 1, 2>(pairs), dim<I>(x)..., half);
      return reshape(stack<-1>(a * cosine - b * sine, b * cosine + a * sine), dim<I>(x)...,
                     dim<last>(x));
    }
    (std::make_integer_sequence<int, last>{});
  }
}

}  // namespace detail

/// Rotates pairs of elements of x by position * base^(-2i / k), i = 0, ..., k / 2 - 1, so that
/// products of queries and keys depend on the distance of their positions:
///
///     rotary<rotary_pairs::halves>(q, 0)          // positions 0, 1, ...
///     rotary<rotary_pairs::halves>(q, position)   // position, position + 1, ...; or a tensor of
///                                                 // all positions
///
/// Angles are computed in binary64 for f64, and in binary32 for other types.
///
/// Shapes    x (..., positions, heads, k), k even; where: a number, an integer scalar, or integers
///           (positions) or (..., positions) -> (..., positions, heads, k)
/// Errors    S191 k is odd, or x has another rank; S104 x is not floating point; S103 the positions
///           do not broadcast
/// Source    Su et al., arXiv:2104.09864
template <rotary_pairs Pairs, Tensor X, class Where>
requires(Tensor<Where> || Number<Where>)  //
    constexpr auto rotary(const X& x, const Where& where, double base = 10000) {
  const detail::in_scope here("rotary", x);
  const auto vectors = detail::checked(detail::check_rotary, x);
  if constexpr (!decltype(vectors)::is_valid) {
    return vectors;
  } else {
    using real = detail::wide<X>;
    const auto k = dim<X::rank - 1>(x);
    const auto step = iota<real, 0>(x, detail::quotient(k, extent<2>{}));
    const auto frequency = pow(base, step * (-2 * partita::dsl_detail::reciprocal(k.value())));
    const auto angle =
        keep_last(keep_last(detail::positions_of(x, where))) * frequency;  // (..., s, 1, k / 2)
    const auto turned = detail::turn<Pairs>(convert<real>(vectors), cos(angle), sin(angle));
    return convert<typename X::element>(turned);
  }
}

}  // namespace partita::nn
