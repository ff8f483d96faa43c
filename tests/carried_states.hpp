// A training step with a loop of its own over microbatches. The loop carries a mean of the first
// stage's input, a key that is split, the result of the second stage, and sums.
#pragma once

#include <array>
#include <tuple>

#include <partita/partita.hpp>

namespace carried {

namespace pt = partita;

inline constexpr auto front = [](const auto& x, const auto& w, const auto& mean, const auto& key,
                                 const auto& echo) {
  return matmul(pt::nn::dropout(x - mean, key, 0.5) + echo, w);
};
inline constexpr auto back = [](const auto& h, const auto& w, const auto& y) {
  return matmul(h, w) * y;
};
inline constexpr auto step_with = [](double part, const auto& xs, const auto& ys, const auto& w1,
                                     const auto& w2, const auto& mean, const auto& key,
                                     const auto& echo) {
  const auto body = [&](const auto& carried, const auto& slices) {
    const auto& x = std::get<0>(slices);
    const auto& y = std::get<1>(slices);
    const auto& m = std::get<3>(carried);
    const auto& e = std::get<5>(carried);
    const auto keys = pt::split<2>(std::get<4>(carried));
    const auto next_mean = pt::named("front", [part](const auto& a, const auto& b) {
      return a * part + pt::sum<0>(b) * 0.25;
    })(m, x);
    const auto out_of = [&](const auto& w) {
      return pt::named("back", back)(pt::named("front", front)(x, w[0], m, keys[1], e), w[1], y);
    };
    const std::array w{w1, w2};
    const auto [loss, g] = pt::value_and_grad([&](const auto& v) { return sum(out_of(v)); }, w);
    const auto next_echo =
        pt::named("back", [](const auto& v) { return pt::sum<0>(v); })(out_of(w));
    return std::pair{std::tuple{std::get<0>(carried) + loss, std::get<1>(carried) + g[0],
                                std::get<2>(carried) + g[1], next_mean, keys[0], next_echo},
                     pt::named("front", [](const auto& v) { return pt::sum<0>(v); })(x)};
  };
  const auto zero = pt::full_like(w1, 0);
  const auto [last, seen] = pt::scan(
      body, std::tuple{pt::full_like(sum(w1), 0), zero, pt::full_like(w2, 0), mean, key, echo},
      std::tuple{xs, ys});
  return std::tuple{pt::output("loss", std::get<0>(last)),
                    pt::output("w1", w1 - std::get<1>(last)),
                    pt::output("w2", w2 - std::get<2>(last)),
                    pt::output("mean", std::get<3>(last)),
                    pt::output("key", std::get<4>(last)),
                    pt::output("echo", std::get<5>(last)),
                    pt::output("seen", seen)};
};
inline constexpr auto step = [](const auto&... in) { return step_with(0.5, in...); };
constexpr pt::program traced() {
  return pt::trace(step, pt::input<double, 6, 4, 4>("xs"), pt::input<double, 6, 4, 4>("ys"),
                   pt::input<double, 4, 4>("w1"), pt::input<double, 4, 4>("w2"),
                   pt::input<double, 4>("mean"), pt::input<std::int64_t>("key"),
                   pt::input<double, 4>("echo"));
}

}  // namespace carried
