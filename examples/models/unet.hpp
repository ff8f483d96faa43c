/// UNet: the paper's diffusion model, and its tactics.
///
/// The network has three levels: three residual blocks per level on the way down, four on the way
/// up, and two blocks with an attention in the middle. A block is two pairs of convolutions; the
/// first convolution of a pair has four times the channels. The paper does not state the number of
/// pairs. With two, and without a bias in the shortcuts where the channels change, the model has
/// the 502 parameter tensors that Table 2 implies.
///
/// Source    PartIR, arXiv:2401.11202, sections 7.1 and 7.3, appendices A.3 and A.6; Ho et al.,
///           arXiv:2006.11239, appendix B (the layout of the network)
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "training.hpp"

namespace paper {

struct unet_sizes {
  std::int64_t batch;
  std::int64_t height, width;  ///< of the images; multiples of 4
  std::int64_t channels;       ///< of the images
  std::int64_t base;    ///< channels of the first level, a multiple of 8; they double per level
  std::int64_t blocks;  ///< per level on the way down; one more on the way up
  std::int64_t pairs;   ///< pairs of convolutions per block
  std::int64_t heads;
};

inline constexpr unet_sizes UNet{.batch = 64,
                                 .height = 64,
                                 .width = 32,
                                 .channels = 4,
                                 .base = 64,
                                 .blocks = 3,
                                 .pairs = 2,
                                 .heads = 16};
/// Sizes that explain the paper's Table 3 (memory within 10 %): images of 16 x 8 x 4, the
/// resolution of appendix A.3, one per device, and 72 channels. The table alone implies at most 200
/// Mi parameters, since three copies of them fit into BP's peak, and few activations.
inline constexpr unet_sizes UNet_inferred = [] {
  unet_sizes s = UNet;
  s.batch = 8;
  s.height = 16;
  s.width = 8;
  s.base = 72;
  return s;
}();
inline constexpr int unet_levels = 3;

using images = pt::tensor<float, pt::dyn, pt::dyn, pt::dyn, pt::dyn>;  // (b, height, width, c)

// ---- Parameters -------------------------------------------------------------------------------

struct conv_params {
  BOOST_HANA_DEFINE_STRUCT(conv_params, (pt::tensor<float, 3, 3, pt::dyn, pt::dyn>, weights),
                           (vector, bias));
};

/// A norm and a convolution, twice; the time embedding is added after the first convolution.
struct conv_pair {
  BOOST_HANA_DEFINE_STRUCT(conv_pair, (norm_params, norm_in), (conv_params, widen),
                           (linear_params, time), (norm_params, norm_wide), (conv_params, narrow));
};
struct residual_block {
  BOOST_HANA_DEFINE_STRUCT(residual_block, (std::vector<conv_pair>, pairs),
                           (std::vector<matrix>, shortcut));  // empty if the channels stay
};

struct attention_params {
  using projection = pt::tensor<float, pt::dyn, pt::dyn, pt::dyn>;
  BOOST_HANA_DEFINE_STRUCT(attention_params, (norm_params, norm),             //
                           (projection, queries), (matrix, queries_bias),     // (c, heads, k)
                           (projection, keys), (matrix, keys_bias),           //
                           (projection, values), (matrix, values_bias),       //
                           (projection, attended), (vector, attended_bias));  // (heads, k, c)
};

struct unet {
  BOOST_HANA_DEFINE_STRUCT(unet, (std::vector<linear_params>, time), (conv_params, input),
                           (std::vector<std::vector<residual_block>>, down),
                           (std::vector<conv_params>, downsample), (residual_block, middle_in),
                           (attention_params, attention), (residual_block, middle_out),
                           (std::vector<std::vector<residual_block>>, up),
                           (std::vector<conv_params>, upsample), (norm_params, output_norm),
                           (conv_params, output));
};

/// Makes the unbound parameters of a network of these sizes.
struct unet_maker {
  unet_sizes sizes;

  std::int64_t time_features() const { return 4 * sizes.base; }
  std::int64_t channels(int level) const { return sizes.base << level; }

  static conv_params conv(std::int64_t in, std::int64_t out) {
    return {.weights = {in, out}, .bias = vector(out)};
  }
  residual_block block(std::int64_t in, std::int64_t out) const {
    residual_block b;
    for (std::int64_t i = 0; i < sizes.pairs; ++i) {
      const std::int64_t from = i == 0 ? in : out;
      b.pairs.push_back({.norm_in = norm_params_of(from),
                         .widen = conv(from, 4 * out),
                         .time = linear_params_of(time_features(), 4 * out),
                         .norm_wide = norm_params_of(4 * out),
                         .narrow = conv(4 * out, out)});
    }
    if (in != out) b.shortcut.push_back(matrix(in, out));
    return b;
  }
  attention_params attention(std::int64_t c) const {
    const std::int64_t heads = sizes.heads, k = c / heads;
    return {.norm = norm_params_of(c),
            .queries = {c, heads, k},
            .queries_bias = {heads, k},
            .keys = {c, heads, k},
            .keys_bias = {heads, k},
            .values = {c, heads, k},
            .values_bias = {heads, k},
            .attended = {heads, k, c},
            .attended_bias = vector(c)};
  }
  unet make() const {
    unet u;
    u.time = {linear_params_of(sizes.base, time_features()),
              linear_params_of(time_features(), time_features())};
    u.input = conv(sizes.channels, sizes.base);
    std::vector<std::int64_t> kept{sizes.base};  // channels of the skip connections
    std::int64_t c = sizes.base;
    for (int level = 0; level < unet_levels; ++level) {
      auto& blocks = u.down.emplace_back();
      for (std::int64_t i = 0; i < sizes.blocks; ++i) {
        blocks.push_back(block(c, channels(level)));
        kept.push_back(c = channels(level));
      }
      if (level + 1 == unet_levels) break;
      u.downsample.push_back(conv(c, c));
      kept.push_back(c);
    }
    u.middle_in = block(c, c);
    u.attention = attention(c);
    u.middle_out = block(c, c);
    for (int level = unet_levels - 1; level >= 0; --level) {
      auto& blocks = u.up.emplace_back();
      for (std::int64_t i = 0; i <= sizes.blocks; ++i) {
        blocks.push_back(block(c + kept.back(), channels(level)));
        kept.pop_back();
        c = channels(level);
      }
      if (level > 0) u.upsample.push_back(conv(c, c));
    }
    u.output_norm = norm_params_of(c);
    u.output = conv(c, sizes.channels);
    return u;
  }
};

// ---- The model --------------------------------------------------------------------------------

constexpr pt::conv_options same{.padding = pt::same_padding};
constexpr pt::conv_options halving{.strides = {2, 2}, .padding = pt::same_padding};

template <pt::conv_options Options = same>
images convolve(const conv_params& p, const images& x) {
  return pt::nn::conv<Options>(x, p.weights, p.bias);
}
inline images activated(const norm_params& p, const images& x) {
  return pt::nn::silu(pt::nn::group_norm<8>(x, p.scale, p.bias));
}

/// Embeds times (b) as sines and cosines (b, features), followed by two layers.
inline matrix embed_times(const unet& p, const vector& times, std::int64_t features) {
  const auto step = pt::iota<float, 0>(times, features / 2);
  const auto angle =
      pt::expand_dims<1>(times) * pt::pow(1e-4, step * (2.0 / static_cast<double>(features)));
  const auto waves = pt::concatenate<1>(pt::sin(angle), pt::cos(angle));
  const auto hidden = pt::nn::silu(linear(p.time[0], waves));
  return pt::nn::silu(linear(p.time[1], hidden));
}

inline images apply_pair(const conv_pair& p, const images& x, const matrix& time) {
  const auto shift = linear(p.time, time);  // (b, 4c)
  const images wide =
      convolve(p.widen, activated(p.norm_in, x)) + pt::expand_dims<1>(pt::expand_dims<1>(shift));
  return convolve(p.narrow, activated(p.norm_wide, wide));
}

inline images apply_block(const residual_block& p, images x, const matrix& time) {
  for (std::size_t i = 0; i < p.pairs.size(); ++i) {
    const bool changes = i == 0 && !p.shortcut.empty();
    const images past = changes ? images(pt::nn::linear(x, p.shortcut[0])) : x;
    x = past + apply_pair(p.pairs[i], x, time);
  }
  return x;
}

/// Applies attention over all positions of an image.
inline images apply_attention(const attention_params& p, const images& x) {
  const images normed = pt::nn::group_norm<8>(x, p.norm.scale, p.norm.bias);
  const pt::extent<pt::dyn> positions = x.shape()[1] * x.shape()[2];
  const auto rows = pt::reshape(normed, pt::dim<0>(x), positions, pt::dim<3>(x));
  const auto project = [&](const auto& weights, const auto& bias) {
    return pt::einsum<"bpc,chk->bphk">(rows, weights) + bias;
  };
  const auto heads =
      pt::nn::attention(project(p.queries, p.queries_bias), project(p.keys, p.keys_bias),
                        project(p.values, p.values_bias));
  const auto y = pt::einsum<"bphk,hkc->bpc">(heads, p.attended) + p.attended_bias;
  return x + pt::reshape(y, pt::dim<0>(x), pt::dim<1>(x), pt::dim<2>(x), pt::dim<3>(x));
}

/// Returns the images at twice the height and width; each pixel is repeated four times.
inline images doubled(const images& x) {
  using extent = pt::extent<pt::dyn>;
  const pt::shape& s = x.shape();
  return pt::reshape(pt::broadcast_in_dim<0, 1, 3, 5>(x, extent(s[0]), extent(s[1]), extent(2),
                                                      extent(s[2]), extent(2), extent(s[3])),
                     extent(s[0]), extent(2 * s[1]), extent(2 * s[2]), extent(s[3]));
}

/// Predicts the noise in images (b, height, width, c) at times (b).
inline images predict_noise(const unet& p, const images& noisy, const vector& times) {
  const matrix time = embed_times(p, times, p.time[0].weights.shape()[0]);
  images x = convolve(p.input, noisy);
  std::vector<images> kept{x};
  for (std::size_t level = 0; level < p.down.size(); ++level) {
    for (const auto& block : p.down[level]) kept.push_back(x = apply_block(block, x, time));
    if (level < p.downsample.size()) kept.push_back(x = convolve<halving>(p.downsample[level], x));
  }
  x = apply_block(p.middle_in, x, time);
  x = apply_attention(p.attention, x);
  x = apply_block(p.middle_out, x, time);
  for (std::size_t level = 0; level < p.up.size(); ++level) {
    for (const auto& block : p.up[level]) {
      x = apply_block(block, pt::concatenate<3>(x, kept.back()), time);
      kept.pop_back();
    }
    if (level < p.upsample.size()) x = convolve(p.upsample[level], doubled(x));
  }
  return convolve(p.output, activated(p.output_norm, x));
}

inline pt::program trace_training_step(const unet_sizes& s) {
  const auto loss = [](const auto& p, const auto& noisy, const auto& times, const auto& noise) {
    return pt::nn::mean_squared_error(predict_noise(p, noisy, times), noise);
  };
  const images each(s.batch, s.height, s.width, s.channels);
  return trace_training_step(loss, unet_maker{s}.make(), pt::input("images", each),
                             pt::input("times", vector(s.batch)), pt::input("noise", each));
}

// ---- Tactics ----------------------------------------------------------------------------------

namespace diffusion {

/// Megatron's placement: shards the channels between the convolutions of a pair, and the heads.
constexpr auto megatron = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".widen.weights")) return 3;
  if (name.ends_with(".queries")) return 1;
  return pt::unknown;
};

/// Batch parallelism.
constexpr auto BP = pt::manual("batch", {{"images", 0}, {"times", 0}, {"noise", 0}}, "BP");
/// Model parallelism.
constexpr auto MP = pt::manual("model", {{"params", megatron}}, "MP");
/// Shards the rows of the images; convolutions exchange halos. Not in the paper.
constexpr auto space = pt::manual("space", {{"images", 1}, {"noise", 1}}, "space");
/// ZeRO-2: the optimizer's state sharded along the batch axis, the parameters replicated.
constexpr auto Z2 =
    pt::manual("batch", {{"params", pt::replicated}, {"opt_state", pt::first_divisible_dim}}, "Z2");
/// ZeRO-3: the parameters sharded, too.
constexpr auto Z3 = pt::manual(
    "batch", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

}  // namespace diffusion

}  // namespace paper
