// Gradients of the building blocks of networks, and gradients of their squares, compared with
// central differences in binary64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "../data.hpp"

namespace pt = partita;
namespace nn = partita::nn;

namespace {

template <std::int64_t... E>
using t = pt::tensor<double, E...>;

/// Returns a sum of the elements with different weights.
template <class Y>
auto weighted(const Y& y) {
  constexpr std::int64_t n = Y::static_type.shape.elements();
  const auto weights = sin(pt::iota<double, 0>(y, pt::extent<n>{}) * 1.7 + 0.4);
  return sum(pt::reshape<n>(y) * weights);
}

/// Returns numbers of magnitude about 1; no two of one tensor are nearer than 0.01.
std::vector<pt::array> values(const pt::program& p) {
  std::vector<pt::array> all;
  for (int k = 0; k < p.input_count(); ++k)
    all.push_back(data::fill(p.input_type(k), [&](std::int64_t i) {
      const auto scattered =
          (static_cast<std::uint64_t>(i) * 7919u + 31u * std::uint64_t(k)) % 101u;
      return static_cast<double>(scattered) / 60 - 0.71 + 0.0031 * k;
    }));
  return all;
}

/// Compares the gradients that a program returns first with central differences of its last result,
/// element by element.
void compare(const pt::program& p) {
  const pt::executable f(p);
  const auto x = values(p);
  const auto found = f(x);
  double scale = 1;
  for (std::size_t k = 0; k < x.size(); ++k)
    scale = std::max(scale, pt::max_difference(found[k], pt::array(found[k].type())));
  const double h = 1e-5;
  for (std::size_t k = 0; k < x.size(); ++k)
    for (std::int64_t e = 0; e < x[k].size(); ++e) {
      const auto moved = [&](double by) {
        auto changed = x;
        changed[k].mutable_data<double>()[e] += by;
        return f(changed).back().item<double>();
      };
      const double expected = (moved(h) - moved(-h)) / (2 * h), got = found[k].data<double>()[e];
      // Truncation (h^2 times the third derivative) and rounding (2^-53 / h): below 1e-8 of the
      // scale.
      const bool close = std::fabs(got - expected) <= 1e-7 * scale;
      CHECK_MESSAGE(close, "operand ", k, ", element ", e, ": ", got, " instead of ", expected);
    }
}

/// Returns the gradient of a scalar function of a tuple of tensors of these types.
template <class Loss, class... T>
void check_gradient(const Loss& loss, std::tuple<T...>) {
  compare(pt::trace(
      [&](const auto& x) {
        const auto [value, gradients] = pt::value_and_grad(loss, x);
        return std::tuple{pt::output("gradients", gradients), pt::output("loss", value)};
      },
      pt::input<std::tuple<T...>>("x")));
}

enum order { first, both };

/// Checks the first derivatives of a model of tensors, and those of the square of its gradient.
template <order Order = both, class... T, class Model>
void check(const char* name, std::tuple<T...> types, const Model& model) {
  CAPTURE(name);
  const auto loss = [&](const auto& x) {
    const auto y = std::apply(model, x);
    if constexpr (decltype(y)::rank == 0)
      return y;
    else
      return weighted(y);
  };
  check_gradient(loss, types);
  if constexpr (Order == both)
    check_gradient(
        [&](const auto& x) {
          const auto squares = [](const auto&... g) { return (sum(g * g) + ...); };
          return std::apply(squares, pt::grad(loss, x));
        },
        types);
}

template <std::int64_t... E>
using of_one = std::tuple<t<E...>>;

}  // namespace

TEST_CASE("derivatives of activations, linear maps and losses") {
  using x = of_one<3, 4>;
  check<first>("relu", x{}, [](auto v) { return nn::relu(v); });
  check("sigmoid", x{}, [](auto v) { return nn::sigmoid(v); });
  check("silu", x{}, [](auto v) { return nn::silu(v); });
  check("gelu", x{}, [](auto v) { return nn::gelu(v); });
  check("gelu_erf", x{}, [](auto v) { return nn::gelu_erf(v); });
  check("softmax", x{}, [](auto v) { return nn::softmax(v); });
  check("log_softmax", x{}, [](auto v) { return nn::log_softmax(v); });
  check("log_sum_exp", x{}, [](auto v) { return nn::log_sum_exp(v); });
  check("linear", std::tuple<t<2, 3>, t<3, 4>, t<4>>{},
        [](auto v, auto w, auto b) { return nn::linear(v, w, b) * nn::linear(v, w); });
  check("embedding", of_one<3, 2>{}, [](auto table) {
    const auto y = nn::embedding(table, pt::iota<int, 0>(table, pt::extent<5>{}) % 3);
    return y * y;
  });
  check("dropout", x{}, [](auto v) {
    const auto y = nn::dropout(v, pt::random_key(v, 5), 0.5);
    return y * y;
  });
  const auto targets = [](auto v) { return pt::iota<int, 0>(v, pt::extent<3>{}); };
  check("cross_entropy", x{}, [=](auto v) { return nn::cross_entropy(v, targets(v)); });
  check("cross_entropy with options", x{}, [=](auto v) {
    return nn::cross_entropy(v, targets(v), {.label_smoothing = 0.2, .z_loss = 0.3});
  });
  using two = std::tuple<t<3, 4>, t<3, 4>>;
  check("binary_cross_entropy", two{},
        [](auto v, auto to) { return nn::binary_cross_entropy(v, to); });
  check("mean_squared_error", two{}, [](auto v, auto to) { return nn::mean_squared_error(v, to); });
}

TEST_CASE("derivatives of normalizations") {
  using x = std::tuple<t<2, 5>, t<5>, t<5>>;
  check("layer_norm", x{}, [](auto v, auto s, auto b) { return nn::layer_norm(v, s, b); });
  check("rms_norm", std::tuple<t<2, 5>, t<5>>{}, [](auto v, auto s) { return nn::rms_norm(v, s); });
  check("group_norm", std::tuple<t<2, 3, 4>, t<4>, t<4>>{},
        [](auto v, auto s, auto b) { return nn::group_norm<2>(v, s, b); });
}

TEST_CASE("derivatives of attention and rotary embedding") {
  using heads = std::tuple<t<1, 2, 2, 3>, t<1, 3, 2, 3>, t<1, 3, 2, 2>>;
  check("attention", heads{}, [](auto q, auto k, auto v) { return nn::attention(q, k, v); });
  check("attention, causal", heads{}, [](auto q, auto k, auto v) {
    return nn::attention(q, k, v, {.causal = true, .offset = 1});
  });
  using groups = std::tuple<t<1, 2, 4, 2>, t<1, 3, 2, 2>, t<1, 3, 2, 2>>;
  check("attention in groups", groups{}, [](auto q, auto k, auto v) {
    const auto seen = nn::causal_pattern(q, pt::extent<2>{}, pt::extent<3>{}, 0);
    return nn::attention(q, k, v, seen);
  });
  check("attention to a cache", groups{}, [](auto q, auto k, auto v) {
    using empty = pt::tensor<double, 1, 5, 2, 2>;
    const auto zeros = pt::broadcast_in_dim<>(sum(k) * 0, pt::extent<1>{}, pt::extent<5>{},
                                              pt::extent<2>{}, pt::extent<2>{});
    const auto cache = nn::append(nn::kv_cache<empty>{zeros, zeros}, k, v, 1);
    return nn::attend(q, cache, 2);
  });
  check("causal_self_attention", std::tuple<t<1, 3, 2>, t<2, 3, 2, 1>, t<2, 1, 2>>{},
        [](auto x, auto qkv, auto out) { return nn::causal_self_attention(x, qkv, out); });
  using x = of_one<3, 2, 4>;
  check("rotary, halves", x{}, [](auto v) {
    const auto y = nn::rotary<nn::rotary_pairs::halves>(v, 1);
    return y * y;
  });
  check("rotary, interleaved", x{}, [](auto v) {
    const auto y = nn::rotary<nn::rotary_pairs::interleaved>(v, 1);
    return y * y;
  });
}

namespace {
using nn::pool_options;
constexpr pool_options windows{.size = {2, 3}, .strides = {1, 2}, .padding = pt::same_padding};
constexpr pt::conv_options strided{
    .strides = {2, 1}, .dilation = {1, 2}, .padding = pt::same_padding, .groups = 2};
}  // namespace

TEST_CASE("derivatives of convolutions and pooling") {
  check("conv", std::tuple<t<1, 3, 4, 2>, t<2, 2, 1, 4>, t<4>>{}, [](auto x, auto w, auto b) {
    const auto y = nn::conv<strided>(x, w, b);
    return y * y;
  });
  using x = of_one<1, 3, 4, 2>;
  check<first>("max_pool", x{}, [](auto v) { return nn::max_pool<windows>(v); });
  check("avg_pool", x{}, [](auto v) {
    const auto y = nn::avg_pool<windows>(v);
    return y * y;
  });
}
