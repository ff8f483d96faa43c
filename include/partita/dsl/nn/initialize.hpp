/// Initial values of parameters, drawn from a seed and each parameter's name; they are the same on
/// every mesh.
#pragma once

#include <string_view>

#include <partita/dsl/nn/check.hpp>
#include <partita/dsl/tree.hpp>

namespace partita::nn {

/// The initial elements of a parameter: all `mean`, or `mean` plus `spread` times a draw.
struct initial_values {
  enum class draw : std::uint8_t { none, normal, uniform };  ///< uniform: in [-1, 1)
  draw kind = draw::none;
  double mean = 0, spread = 0;
};

/// All elements 0.
inline constexpr initial_values zeros{};
/// All elements 1.
inline constexpr initial_values ones{initial_values::draw::none, 1, 0};
/// All elements `value`.
constexpr initial_values constant(double value) { return {initial_values::draw::none, value, 0}; }
/// Draws from the normal distribution with this standard deviation and mean.
constexpr initial_values normal(double deviation, double mean = 0) {
  return {initial_values::draw::normal, mean, deviation};
}
/// Draws uniformly from low to high; rounding may yield both ends.
constexpr initial_values uniform(double low, double high) {
  return {initial_values::draw::uniform, (low + high) / 2, (high - low) / 2};
}

/// The number of inputs per output of a layer (fan-in), and of outputs per input (fan-out).
struct fans {
  double in = 1, out = 1;
};
/// Returns the fans of weights (window..., in, out): the window's extents count on both sides. For
/// a vector, both are its extent.
constexpr fans fans_of(const shape& s) {
  if (s.rank == 0) return {};
  const int last = s.rank - 1;
  double window = 1;
  for (int d = 0; d < last - 1; ++d) window *= static_cast<double>(s[d]);
  return {window * static_cast<double>(s[last > 0 ? last - 1 : 0]),
          window * static_cast<double>(s[last])};
}

/// Draws normally with variance 1 / in. Source: LeCun et al., "Efficient BackProp", 1998
constexpr initial_values lecun_normal(const fans& f) {
  return normal(detail::inverse_square_root(f.in));
}
/// Draws uniformly with variance 1 / in.
constexpr initial_values lecun_uniform(const fans& f) {
  const double bound = detail::inverse_square_root(f.in / 3);
  return uniform(-bound, bound);
}
/// Draws normally with variance 2 / (in + out). Source: Glorot and Bengio, AISTATS 2010
constexpr initial_values glorot_normal(const fans& f) {
  return normal(detail::inverse_square_root((f.in + f.out) / 2));
}
/// Draws uniformly with variance 2 / (in + out).
constexpr initial_values glorot_uniform(const fans& f) {
  const double bound = detail::inverse_square_root((f.in + f.out) / 6);
  return uniform(-bound, bound);
}
/// Draws normally with variance 2 / in. Source: He et al., arXiv:1502.01852
constexpr initial_values he_normal(const fans& f) {
  return normal(detail::inverse_square_root(f.in / 2));
}
/// Draws uniformly with variance 2 / in.
constexpr initial_values he_uniform(const fans& f) {
  const double bound = detail::inverse_square_root(f.in / 6);
  return uniform(-bound, bound);
}

namespace detail {

/// Returns a hash of a name (FNV-1a, 64 bits).
constexpr std::int64_t hash(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return static_cast<std::int64_t>(h);
}

/// Emits the initial value of one parameter.
///
/// Errors    S116 dynamic extent missing, S195 random numbers for a type that is not floating point
constexpr value_id emit_initial(builder& b, value_id key, std::string_view path,
                                const tensor_type& type, const initial_values& v) {
  for (auto e : type.shape)
    if (e < 0)
      b.p.error.record("S116", "initialize: parameter \"", path, "\" has shape ", type.shape,
                       "; give its dynamic extents, all 0 or above");
  if (v.kind != initial_values::draw::none && !is_floating(type.element))
    b.p.error.record("S195", "initialize: parameter \"", path, "\" has type ", type,
                     "; random numbers are floating point, others start as nn::constant");
  if (b.failed()) return -1;
  if (v.kind == initial_values::draw::none) return ops::constant(b, type, v.mean);
  const value_id own = ops::random_bits(b, key, ops::integer(b, dtype::i64, hash(path)));
  double spread = v.spread, mean = v.mean;
  value_id drawn = -1;
  if (v.kind == initial_values::draw::normal) {
    drawn = partita::dsl_detail::normal(b, own, type.element, type.shape);
  } else {  // [0, 1) -> [-1, 1)
    drawn = partita::dsl_detail::uniform(b, own, type.element, type.shape);
    mean -= spread;
    spread *= 2;
  }
  const auto spread_to = [&](double number) {
    return ops::broadcast_in_dim(b, ops::scalar(b, type.element, number), type.shape, {});
  };
  const value_id scaled = ops::multiply(b, drawn, spread_to(spread));
  return mean == 0 ? scaled : ops::add(b, scaled, spread_to(mean));
}

}  // namespace detail

/// Returns initial values of all tensors of a tree (unbound, as for `input`), as a tree of the same
/// type:
///
/// ```cpp
/// trace([&](auto key) { return output("params", nn::initialize(key, spec, rule)); },
///       input<std::int64_t>("key"));
/// constexpr auto rule = [](std::string_view path, const shape& s) {
///   if (path.ends_with("bias")) return nn::zeros;
///   return nn::lecun_normal(nn::fans_of(s));
/// };
/// ```
///
/// The values of a tensor depend on the key and on its path ("layers.3.mlp.up"), type and rule, but
/// not on other tensors or on the mesh.
///
/// Errors    S123 the key is not a rank-0 tensor of i64, S195 random numbers for a type that is not
///           floating point, S116 dynamic extent missing
template <Tensor Key, Tree Params, class Rule>
constexpr Params initialize(const Key& key, const Params& spec, const Rule& rule) {
  constexpr auto check = [](failure& error, const tensor_type* t) {
    if (t[0] != tensor_type{dtype::i64, {}})
      error.record("S123", "initialize: the key has type ", t[0], "; tensor<i64> is needed");
  };
  const auto seed = detail::checked(check, key);
  Params result = spec;
  for_each_leaf(
      [&](auto& leaf, std::string_view path) {
        using T = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (!decltype(seed)::is_valid) {
          leaf = seed;
        } else {
          builder* b = seed.context();
          leaf = b == nullptr ? T(nullptr, seed.id())
                              : T(b, detail::emit_initial(*b, seed.id(), path, leaf.type(),
                                                          rule(path, leaf.shape())));
        }
      },
      text(), result);
  return result;
}

}  // namespace partita::nn
