/// Lesson 1: a model is a function of tensors; `trace` makes a program of it, `evaluate` runs
/// the program.
///
/// Learnt: inputs with names and shapes, operators and functions as in NumPy, outputs with
/// names, arrays in and out.
///
/// Printed: the program, op by op, and what it gives for a batch of four.
// ctest:
#include <iostream>
#include <tuple>

#include <partita/cpu.hpp>      // arrays, evaluate
#include <partita/partita.hpp>  // the language
#include <xtensor/xarray.hpp>

namespace pt = partita;

// Any types that have these operations: the model says nothing of sizes, and nothing of devices.
constexpr auto layer = [](auto x, auto w, auto b) {
  const auto h = pt::nn::relu(matmul(x, w) + b);  // b, of rank 1, is added to each row
  return std::tuple{pt::output("h", h), pt::output("mean", mean(h))};
};

int main() {
  // Run once on handles, the model writes down what it does.
  const pt::program f = pt::trace(layer, pt::input<float, 4, 3>("x"), pt::input<float, 3, 2>("w"),
                                  pt::input<float, 2>("b"));
  std::cout << pt::print(f);

  const xt::xarray<float> x{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}};
  const xt::xarray<float> w{{1, -1}, {2, -2}, {3, -3}};
  const xt::xarray<float> b{0, 4};
  const pt::results r = pt::evaluate(f, x, w, b);  // in the order of the inputs
  const auto h = r["h"].to_xarray<float>();
  std::cout << "h:\n";
  for (std::size_t i = 0; i < 4; ++i) std::cout << "  " << h(i, 0) << ' ' << h(i, 1) << '\n';
  std::cout << "mean: " << r["mean"].item<float>() << '\n';

  const xt::xarray<float> expected{{1, 3}, {2, 2}, {3, 1}, {6, 0}};
  return pt::equal(r["h"], expected) && r["mean"].item<float>() == 2.25f ? 0 : 1;
}
