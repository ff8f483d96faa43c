/// Lesson 1: How does a C++ function become a program? `trace` calls it once and records its ops.
///
/// You learn to write a model with operators and functions as in NumPy, to name its inputs and
/// outputs, and to run it on arrays with `evaluate`.
///
/// Output: the recorded program, one op per line, then the rows of h and their mean, 2.25.
// ctest:
#include <iostream>
#include <tuple>

#include <partita/cpu.hpp>      // arrays, evaluate
#include <partita/partita.hpp>  // the language
#include <xtensor/xarray.hpp>

namespace pt = partita;

// The model is a generic function. It mentions neither sizes nor devices, so the same function
// serves every size and every mesh. `pt::output` names a result.
constexpr auto layer = [](auto x, auto w, auto b) {
  const auto h = pt::nn::relu(matmul(x, w) + b);  // adds b, of rank 1, to each row
  return std::tuple{pt::output("h", h), pt::output("mean", mean(h))};
};

int main() {
  // `trace` calls the model with handles in place of arrays. Each operation on a handle appends an
  // op to the program, and a shape that does not fit is an error here. Each `input` gives an
  // element type, a shape and a name. Look for `matmul` and `maximum`, which is relu, in the
  // printed program.
  const pt::program f = pt::trace(layer, pt::input<float, 4, 3>("x"), pt::input<float, 3, 2>("w"),
                                  pt::input<float, 2>("b"));
  std::cout << pt::print(f);

  // A program is data: `evaluate` runs it on arrays. This is the reference that a partitioned
  // program has to reproduce.
  const xt::xarray<float> x{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}};
  const xt::xarray<float> w{{1, -1}, {2, -2}, {3, -3}};
  const xt::xarray<float> b{0, 4};
  const pt::results r = pt::evaluate(f, x, w, b);  // arrays in the order of the inputs
  const auto h = r["h"].to_xarray<float>();
  std::cout << "h:\n";
  for (std::size_t i = 0; i < 4; ++i) std::cout << "  " << h(i, 0) << ' ' << h(i, 1) << '\n';
  std::cout << "mean: " << r["mean"].item<float>() << '\n';

  // The numbers are small integers, so the comparison is exact.
  const xt::xarray<float> expected{{1, 3}, {2, 2}, {3, 1}, {6, 0}};
  return pt::equal(r["h"], expected) && r["mean"].item<float>() == 2.25f ? 0 : 1;
}

// Read more: examples/guide/1_mesh_and_sharding.md. Next lesson: 02_mesh_and_tactic.cpp
