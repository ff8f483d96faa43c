/// Lesson 6: How is a training step sharded? Tactics name parameters; gradients follow.
///
/// You learn to keep parameters in a struct, to differentiate with `value_and_grad`, to feed the
/// outputs of a step into the next one, and to store arrays by name with `save` and `load`.
///
/// Output: the report of the step, and the loss at three steps, which falls from 7.1 to below 0.001
/// on the mesh as on one device.
// ctest:
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <tuple>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/files.hpp>  // load, save
#include <partita/partita.hpp>

namespace pt = partita;

// A struct of tensors is a tree. Its leaves have names, such as params.w1. A tactic can name one
// leaf, or all leaves below a prefix such as "params".
struct mlp {
  BOOST_HANA_DEFINE_STRUCT(mlp, (pt::tensor<float, 2, 16>, w1), (pt::tensor<float, 16>, b1),
                           (pt::tensor<float, 16, 1>, w2));
};

constexpr auto training_step = [](auto params, auto state, auto x) {
  const auto y = pt::slice<1, 0, 1>(x) * pt::slice<1, 1, 2>(x);  // target: the columns' product
  const auto loss = [&](const auto& p) {
    return pt::nn::mean_squared_error(matmul(tanh(matmul(x, p.w1) + p.b1), p.w2), y);
  };
  // The gradients are a tree of the same structure as the parameters; so is each of Adam's moments.
  const auto [value, gradients] = pt::value_and_grad(loss, params);
  const auto [next, next_state] = pt::adam({.rate = 0.05}, params, gradients, state);
  // An output with the name of an input is the next state of this input, so both have one layout.
  return std::tuple{pt::output("params", next), pt::output("state", next_state),
                    pt::output("loss", value)};
};

// BP shards the batch. Z3 shards each parameter and each moment of Adam along the same axis, on the
// first dimension that the axis divides.
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}}, "Z3");
constexpr auto step = [] {
  const auto f =
      pt::trace(training_step, pt::input<mlp>("params"),
                pt::input("state", pt::adam_state_for(mlp{})), pt::input<float, 64, 2>("x"));
  return pt::partition(f, {{"B", 4}}, pt::schedule(BP, Z3));
};
// Each device needs only its shard of the three gradients, so each is reduced by a reduce_scatter
// instead of an all_reduce. After BP alone there were four all_reduces, one more for the loss.
static_assert(pt::check<step>.collectives.reduce_scatter == 3);

/// Runs 100 steps and returns their losses; replaces the state in `inputs` by the last one.
std::vector<float> train(const pt::executable& run, std::vector<pt::array>& inputs) {
  std::vector<float> losses;
  for (int i = 0; i < 100; ++i) {
    const auto outputs = run(inputs);  // params, state, loss
    losses.push_back(outputs.back().item<float>());
    std::copy(outputs.begin(), outputs.end() - 1, inputs.begin());
  }
  return losses;
}

int main() {
  const pt::partitioned p = step();
  std::cout << pt::report(p) << '\n';
  // `executable` prepares a program once for many runs: here the program of the devices, emulated,
  // and the source on one device. Both start from the same state.
  std::vector<pt::array> state;  // zeros except w1, w2 and x
  for (int i = 0; i < p.source.input_count(); ++i) state.emplace_back(p.source.input_type(i));
  for (pt::array* a : {&state[0], &state[2], &state.back()})
    for (std::int64_t j = 0; j < a->size(); ++j)
      a->mutable_data<float>()[j] = static_cast<float>(j * 37 % 31 - 15) / 16;
  auto alone = state;
  const auto losses = train(pt::executable(p.device), state);
  const auto expected = train(pt::executable(p.source), alone);
  for (std::size_t i : {0, 10, 99})
    std::cout << "step " << i << ": " << losses[i] << ", on one device " << expected[i] << '\n';
  // `save` writes the parameters by name to an .npz file, which NumPy reads, too.
  const auto file = (std::filesystem::temp_directory_path() / "partita_lesson_6.npz").string();
  pt::save(file, pt::input<mlp>("params"), state[0], state[1], state[2]);
  const bool kept = pt::equal(pt::load(file, p, "params")["params.w2"], state[2]);
  std::filesystem::remove(file);
  return kept && losses[99] < losses[0] / 4 && std::abs(losses[9] - expected[9]) < 1e-4f ? 0 : 1;
}

// Read more: examples/guide/5_training.md. Next lesson: 07_loops_and_microbatches.cpp
