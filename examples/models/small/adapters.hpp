/// Low-rank adapters (LoRA): the weights are frozen, and their adapters are trained.
///
/// Source    Hu et al. (LoRA), arXiv:2106.09685
#pragma once

#include <cstdint>
#include <utility>

#include "step.hpp"

namespace small::adapters {

constexpr std::int64_t rows = 8, width = 16, hidden = 32, rank = 2;

struct frozen_weights {
  using up_matrix = pt::tensor<float, width, hidden>;
  using down_matrix = pt::tensor<float, hidden, width>;
  BOOST_HANA_DEFINE_STRUCT(frozen_weights, (up_matrix, up), (down_matrix, down));
};
struct adapters {
  using in_up = pt::tensor<float, width, rank>;
  using out_up = pt::tensor<float, rank, hidden>;
  using in_down = pt::tensor<float, hidden, rank>;
  using out_down = pt::tensor<float, rank, width>;
  BOOST_HANA_DEFINE_STRUCT(adapters, (in_up, up_a), (out_up, up_b), (in_down, down_a),
                           (out_down, down_b));
};
constexpr auto loss = [](const adapters& p, const frozen_weights& w, const auto& x, const auto& y) {
  const auto h = pt::nn::gelu(matmul(x, w.up) + matmul(matmul(x, p.up_a), p.up_b));
  const auto out = matmul(h, w.down) + matmul(matmul(h, p.down_a), p.down_b);
  return pt::nn::mean_squared_error(x + out, y);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<frozen_weights>("frozen"), pt::input<float, rows, width>("x"),
                pt::input<float, rows, width>("y"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<adapters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<adapters>(x...); });
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"frozen.up", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"frozen", pt::first_divisible_dim}}, "Z3");

}  // namespace small::adapters
