/// Lesson 6: a training step: parameters as a struct, gradients, Adam, and steps that feed one
/// another.
///
/// Learnt: a struct of tensors is a tree, whose leaves have names (params.w1) that tactics select,
/// one by one or by a prefix; `value_and_grad` derives; an output with the name of an input is its
/// next state. Printed: collectives of the step, and the loss as it falls, on one device and on an
/// emulated mesh.
// ctest:
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <tuple>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

struct mlp {
  BOOST_HANA_DEFINE_STRUCT(mlp, (pt::tensor<float, 2, 16>, w1), (pt::tensor<float, 16>, b1),
                           (pt::tensor<float, 16, 1>, w2));
};

constexpr auto training_step = [](auto params, auto state, auto x, auto y) {
  const auto loss = [&](const auto& p) {
    return pt::nn::mean_squared_error(matmul(tanh(matmul(x, p.w1) + p.b1), p.w2), y);
  };
  const auto [value, gradients] = pt::value_and_grad(loss, params);
  const auto [next, next_state] = pt::adam({.rate = 0.05}, params, gradients, state);
  return std::tuple{pt::output("params", next), pt::output("state", next_state),
                    pt::output("loss", value)};
};

constexpr auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}}, "Z3");
constexpr auto step = [] {
  const auto f = pt::trace(training_step, pt::input<mlp>("params"),
                           pt::input("state", pt::adam_state_for(mlp{})),
                           pt::input<float, 64, 2>("x"), pt::input<float, 64, 1>("y"));
  return pt::partition(f, {{"B", 4}}, pt::schedule(BP, Z3));
};
// Three gradients are reduced, and scattered to where the parameters lie; the loss is summed.
static_assert(pt::check<step>.collectives.reduce_scatter == 3);
static_assert(pt::check<step>.input("state.m.w1").local_shape ==
              pt::check<step>.input("params.w1").local_shape);

std::vector<float> train(const pt::executable& run, const pt::program& f) {
  std::vector<pt::array> inputs;  // zeros, and what follows
  for (int i = 0; i < f.input_count(); ++i) inputs.emplace_back(f.input_type(i));
  const auto fill = [&](std::size_t i, auto value) {
    for (std::int64_t j = 0; j < inputs[i].size(); ++j)
      inputs[i].mutable_data<float>()[j] = value(j);
  };
  for (std::size_t i : {0, 2})
    fill(i, [&](std::int64_t j) { return static_cast<float>(j * 37 % 17 - 8) / 16; });
  const std::size_t x = inputs.size() - 2, y = inputs.size() - 1;
  fill(x, [](std::int64_t j) { return static_cast<float>(j * 29 % 31 - 15) / 16; });
  const float* points = inputs[x].data<float>();
  fill(y, [&](std::int64_t j) { return points[2 * j] * points[2 * j + 1]; });  // to be learnt

  std::vector<float> losses;
  for (int i = 0; i < 100; ++i) {
    const auto outputs = run(inputs);  // params and state, in the order of the inputs, and the loss
    losses.push_back(outputs.back().item<float>());
    std::copy(outputs.begin(), outputs.end() - 1, inputs.begin());
  }
  return losses;
}

int main() {
  const pt::partitioned p = step();
  std::cout << pt::report(p).view() << '\n';
  const auto alone = train(pt::executable(p.source), p.source),
             mesh = train(pt::executable(p.device), p.source);
  for (std::size_t i : {0, 10, 99})
    std::cout << "step " << i << ": " << alone[i] << ", on the mesh " << mesh[i] << '\n';
  const bool learnt = alone[99] < alone[0] / 4 && mesh[99] < mesh[0] / 4;
  return learnt && std::abs(alone[0] - mesh[0]) < 1e-5f ? 0 : 1;
}
