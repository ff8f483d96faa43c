// Building blocks of networks compared with values that JAX computed (nn.dat, made by nn.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "reference_data.hpp"

namespace pt = partita;
namespace nn = partita::nn;
using reference_data::reference;

namespace {

std::vector<reference> cases() {
  std::vector<reference> list;
  reference_data::read_file(PARTITA_SOURCE_DIR "/tests/reference/nn.dat", list);
  return list;
}

/// Traces the model on inputs of these element types and ranks, with extents that are known when
/// tracing.
template <class T, int Rank>
auto input_like(std::string_view name, const pt::array& a) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return pt::input<T, ((void)I, pt::dyn)...>(name, a.shape()[static_cast<int>(I)]...);
  }
  (std::make_index_sequence<Rank>{});
}

template <class T, int Rank>
struct of {};

/// Compares a model with the case of a name.
class comparison {
 public:
  comparison() : cases_(cases()) {}
  ~comparison() {
    for (const auto& c : cases_)
      CHECK_MESSAGE(compared_.count(c.op) == 1, c.where, ": no model for ", c.op);
  }

  template <class... T, int... Rank, class Model>
  void operator()(std::string_view name, std::tuple<of<T, Rank>...>, const Model& model) {
    CAPTURE(std::string(name));
    const auto c = std::find_if(cases_.begin(), cases_.end(),
                                [&](const auto& each) { return each.op == name; });
    REQUIRE(c != cases_.end());
    REQUIRE(c->operands.size() == sizeof...(T));
    const auto traced = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return pt::trace(model, input_like<T, Rank>(names[I], c->operands[I])...);
    }
    (std::make_index_sequence<sizeof...(T)>{});
    const pt::array found = pt::evaluate(traced, c->operands).only();
    REQUIRE(found.type() == c->results.at(0).type());
    CHECK(c->absolute > 0);
    CHECK(pt::max_difference(found, c->results[0]) <= c->absolute);
    compared_.insert(c->op);
  }

 private:
  static constexpr std::string_view names[] = {"a", "b", "c", "d"};
  std::vector<reference> cases_;
  std::set<std::string> compared_;
};

template <int... Rank>
constexpr std::tuple<of<double, Rank>...> f64{};

using nn::pool_options;
constexpr pool_options same{.size = {2, 3}, .strides = {2, 2}, .padding = pt::same_padding};
constexpr pool_options counted{
    .size = {2, 3}, .strides = {2, 2}, .padding = pt::same_padding, .count_padding = true};
constexpr pool_options given{.size = {2, 2},
                             .strides = {1, 2},
                             .dilation = {2, 1},
                             .padding = pt::explicit_padding({1, 0}, {0, 1})};

}  // namespace

TEST_CASE("building blocks of networks give the results of JAX") {
  comparison compare;
  compare("relu", f64<2>, [](auto x) { return nn::relu(x); });
  compare("sigmoid", f64<2>, [](auto x) { return nn::sigmoid(x); });
  compare("silu", f64<2>, [](auto x) { return nn::silu(x); });
  compare("gelu", f64<2>, [](auto x) { return nn::gelu(x); });
  compare("gelu_erf", f64<2>, [](auto x) { return nn::gelu_erf(x); });
  compare("softmax", f64<2>, [](auto x) { return nn::softmax(x); });
  compare("log_softmax", f64<2>, [](auto x) { return nn::log_softmax(x); });
  compare("log_sum_exp", f64<2>, [](auto x) { return nn::log_sum_exp(x); });
  compare("linear", f64<2, 2, 1>, [](auto x, auto w, auto b) { return nn::linear(x, w, b); });
  compare("embedding", std::tuple<of<double, 2>, of<std::int32_t, 2>>{},
          [](auto table, auto rows) { return nn::embedding(table, rows); });

  compare("layer_norm", f64<3, 1, 1>,
          [](auto x, auto scale, auto bias) { return nn::layer_norm(x, scale, bias); });
  compare("layer_norm_jax", f64<3>, [](auto x) {
    const auto one = sum<0, 1>(x) * 0 + 1;
    return nn::layer_norm(x, one, one - 1);
  });
  compare("rms_norm", f64<3, 1>, [](auto x, auto scale) { return nn::rms_norm(x, scale); });
  compare("group_norm_1", f64<4, 1, 1>,
          [](auto x, auto scale, auto bias) { return nn::group_norm<1>(x, scale, bias); });
  compare("group_norm_2", f64<4, 1, 1>,
          [](auto x, auto scale, auto bias) { return nn::group_norm<2>(x, scale, bias); });
  compare("group_norm_4", f64<4, 1, 1>,
          [](auto x, auto scale, auto bias) { return nn::group_norm<4>(x, scale, bias); });

  using nn::rotary_pairs;
  constexpr std::tuple<of<double, 4>, of<std::int32_t, 2>> vectors_at{};
  compare("rotary_halves", f64<4>, [](auto x) { return nn::rotary<rotary_pairs::halves>(x, 3); });
  compare("rotary_interleaved", f64<4>, [](auto x) {
    const auto first = convert<std::int32_t>(sum(x) * 0 + 3);  // a scalar
    return nn::rotary<rotary_pairs::interleaved>(x, first);
  });
  compare("rotary_halves_at", vectors_at,
          [](auto x, auto at) { return nn::rotary<rotary_pairs::halves>(x, at); });
  compare("rotary_interleaved_at", vectors_at,
          [](auto x, auto at) { return nn::rotary<rotary_pairs::interleaved>(x, at); });

  // Numbers of heads that are known only when tracing are divided into groups, even of one. Equal
  // numbers that are known at compile time are not.
  const auto attention = [&](const std::string& name, const auto& queries, const auto& keys) {
    const auto model = [&](auto options) {
      return [=](auto q, auto k, auto v) {
        return nn::attention(queries(q), keys(k), keys(v), options);
      };
    };
    compare(name, f64<4, 4, 4>, model(nn::attention_options{}));
    compare(name + "_causal", f64<4, 4, 4>, model(nn::attention_options{.causal = true}));
    compare(name + "_offset", f64<4, 4, 4>,
            model(nn::attention_options{.causal = true, .offset = 1}));
    compare(name + "_scale", f64<4, 4, 4>, model(nn::attention_options{.scale = 0.25}));
    compare(name + "_mask", std::tuple<of<double, 4>, of<double, 4>, of<double, 4>, of<bool, 4>>{},
            [=](auto q, auto k, auto v, auto mask) {
              return nn::attention(queries(q), keys(k), keys(v), mask);
            });
  };
  const auto unknown = [](auto x) { return x; };
  const auto four = [](auto x) {
    return pt::reshape(x, dim<0>(x), dim<1>(x), pt::extent<4>{}, dim<3>(x));
  };
  const auto one = [](auto x) {
    return pt::reshape(x, dim<0>(x), dim<1>(x), pt::extent<1>{}, dim<3>(x));
  };
  attention("attention_heads", unknown, unknown);
  attention("attention_groups", unknown, unknown);
  attention("attention_groups", four, unknown);
  attention("attention_multi_query", four, one);
  attention("attention_heads", four, four);

  using pt::conv_options;
  compare("conv_1d", f64<3, 3, 1>, [](auto x, auto w, auto b) { return nn::conv(x, w, b); });
  compare("conv_2d", f64<4, 4, 1>, [](auto x, auto w, auto b) {
    return nn::conv<conv_options{
        .strides = {2, 1}, .dilation = {1, 2}, .padding = pt::same_padding, .groups = 2}>(x, w, b);
  });
  compare("conv_2d_padded", f64<4, 4>, [](auto x, auto w) {
    return pt::conv<conv_options{
        .strides = {1, 2}, .padding = pt::explicit_padding({1, 2}, {0, 1}), .groups = 2}>(x, w);
  });
  compare("conv_3d", f64<5, 5, 1>, [](auto x, auto w, auto b) {
    return nn::conv<conv_options{
        .strides = {1, 2, 1}, .dilation = {2, 1, 1}, .padding = pt::same_padding}>(x, w, b);
  });

  compare("max_pool", f64<4>, [](auto x) { return nn::max_pool<same>(x); });
  compare("max_pool_dilated", f64<4>, [](auto x) { return nn::max_pool<given>(x); });
  compare("avg_pool", f64<4>, [](auto x) { return nn::avg_pool<same>(x); });
  compare("avg_pool_dilated", f64<4>, [](auto x) { return nn::avg_pool<given>(x); });
  compare("avg_pool_counted", f64<4>, [](auto x) { return nn::avg_pool<counted>(x); });
  compare("avg_pool_valid", f64<4>, [](auto x) {
    return nn::avg_pool<pool_options{.size = {2, 3}}>(x);
  });

  constexpr std::tuple<of<double, 3>, of<std::int32_t, 2>> logits_and_targets{};
  compare("cross_entropy", logits_and_targets,
          [](auto x, auto t) { return nn::cross_entropy(x, t); });
  compare("cross_entropy_options", logits_and_targets, [](auto x, auto t) {
    return nn::cross_entropy(x, t, {.label_smoothing = 0.1, .z_loss = 0.01});
  });
  compare("binary_cross_entropy", f64<3, 3>,
          [](auto x, auto t) { return nn::binary_cross_entropy(x, t); });
  compare("mean_squared_error", f64<3, 3>,
          [](auto x, auto t) { return nn::mean_squared_error(x, t); });
}
