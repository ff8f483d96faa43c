/// A training step in two stages, on two meshes of different sizes: batch, model, then ZeRO-3.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/partita.hpp>

namespace two_stages {

namespace pt = partita;

inline constexpr auto layer = [](const auto& h, const auto& w) { return tanh(matmul(h, w)); };
inline constexpr auto model = [](const auto& x, const auto& w1, const auto& w2) {
  const auto [loss, g] = pt::value_and_grad(
      [&](const auto& w) {
        return sum(pt::named("back", layer)(pt::named("front", layer)(x, w[0]), w[1]));
      },
      std::array{w1, w2});
  return std::tuple{pt::output("loss", loss), pt::output("w1", w1 - g[0]),
                    pt::output("w2", w2 - g[1])};
};
constexpr pt::program traced() {
  return pt::trace(model, pt::input<float, 32, 8>("x"), pt::input<float, 8, 8>("w1"),
                   pt::input<float, 8, 8>("w2"));
}

inline constexpr pt::topology cluster{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}};
constexpr auto stages_of(std::int64_t microbatches) {
  return pt::pipeline({.stages = {{"front"}, {"back"}},
                       .batch = {{"x", 0}},
                       .microbatches = microbatches,
                       .order = pt::one_f_one_b},
                      "PP");
}
inline constexpr auto PP = stages_of(4);
inline constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
inline constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
inline constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

template <class... Tactics>
constexpr pt::pipelined partitioned(const pt::partition_options& options, Tactics... tactics) {
  return pt::partition(traced(), cluster, pt::schedule(tactics...), options);
}

}  // namespace two_stages
