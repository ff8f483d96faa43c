/// A contrastive loss: compares each image with all texts, and each text with all images.
///
/// Source    Radford et al. (CLIP), arXiv:2103.00020
#pragma once

#include <cstdint>
#include <utility>

#include "step.hpp"

namespace small::contrastive {

constexpr std::int64_t pairs = 8, width = 16, embedded = 8;

struct parameters {
  using projection = pt::tensor<float, width, embedded>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (projection, image), (projection, text),
                           (pt::tensor<float>, scale));
};
constexpr auto loss = [](const parameters& p, const auto& images, const auto& texts) {
  const auto unit = [](const auto& v) {
    return v * pt::rsqrt(pt::keep_last(pt::sum<1>(v * v)) + 1e-6);
  };
  const auto a = unit(matmul(images, p.image)), b = unit(matmul(texts, p.text));
  const auto logits = pt::tag("logits", pt::einsum<"ie,je->ij">(a, b) * exp(p.scale));
  const auto own = pt::iota<std::int32_t, 0>(images, pt::extent<pairs>{});
  return pt::nn::cross_entropy(logits, own) +
         pt::nn::cross_entropy(pt::transpose<1, 0>(logits), own);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, pairs, width>("images"),
                pt::input<float, pairs, width>("texts"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 4}};
/// Each device has the logits of its shard of the images.
constexpr auto rows = pt::manual("B", {{"logits", 0}}, "rows");
constexpr auto BP = pt::manual("B", {{"images", 0}, {"texts", 0}}, "BP");

}  // namespace small::contrastive
