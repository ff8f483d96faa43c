#pragma once

#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
constexpr auto step = [] {
  return pt::partition(pt::trace(mlp, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w1"),
                                 pt::input<float, 6, 2>("w2")),
                       {{"B", 4}, {"M", 2}},
                       pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w1", 1}})));
};
