/// Layers whose parameters are stacked in one tensor; a loop scans over them.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "step.hpp"

namespace small::stacked {

constexpr std::int64_t layers = 4, width = 8, hidden = 16, rows = 8;

struct stack {
  using up_matrices = pt::tensor<float, layers, width, hidden>;
  using down_matrices = pt::tensor<float, layers, hidden, width>;
  using scales = pt::tensor<float, layers, 3>;
  BOOST_HANA_DEFINE_STRUCT(stack, (up_matrices, up), (down_matrices, down), (scales, scale));
};

/// Each layer is residual; x has shape (rows, width).
constexpr auto loss = [](const stack& p, const auto& x) {
  const auto [h, none] = pt::scan(
      [](auto c, const auto& layer) {
        const auto& [up, down, scale] = layer;
        return std::pair{c + matmul(tanh(matmul(c, up)), down) * sum(scale), pt::nothing{}};
      },
      x, std::tuple{p.up, p.down, p.scale});
  return mean(h * h);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, rows, width>("x"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_adam_step<stack>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<stack>(x...); });
};

constexpr pt::mesh mesh{{"B", 4}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z2 =
    pt::manual("B", {{"params", pt::replicated}, {"opt_state", pt::first_divisible_dim}}, "Z2");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"opt_state", pt::first_divisible_dim}}, "Z3");

}  // namespace small::stacked
