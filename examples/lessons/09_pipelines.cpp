/// Lesson 9: How does a model run on several meshes? A pipeline assigns its parts to stages.
///
/// You learn to name the parts of a model, to assign them to meshes with the tactic `pipeline`, to
/// shard inside the stages, and to check the order of calls at compile time.
///
/// Output: the order of calls on each mesh, and that the pipeline computes the same as one device.
// ctest:
#include <array>
#include <cstdint>
#include <iostream>
#include <tuple>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/mpmd/check_pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/partita.hpp>
#include <partita/run/pipeline.hpp>

namespace pt = partita;

constexpr auto training_step = [](auto x, auto w1, auto w2) {
  const auto layer = [](auto h, auto w) { return tanh(matmul(h, w)); };
  const auto loss = [&](const auto& w) {
    // `named` gives the ops of a call a scope. Their derivatives belong to the same scope.
    const auto h = pt::named("first", layer)(x, w[0]);
    const auto y = pt::named("second", layer)(h, w[1]);
    return sum(y * y);
  };
  const auto [value, g] = pt::value_and_grad(loss, std::array{w1, w2});
  return std::tuple{pt::output("w1", w1 - 0.01f * g[0]), pt::output("w2", w2 - 0.01f * g[1]),
                    pt::output("loss", value)};
};

// Two meshes of different sizes. Each runs one stage, forward and backward, on four microbatches.
// `one_f_one_b` alternates forward and backward calls (1F1B) after a warm-up.
constexpr pt::topology cluster{{"m0", {{"B", 2}}}, {"m1", {{"B", 4}}}};
constexpr auto PP = pt::pipeline({.stages = {{"first"}, {"second"}},
                                  .batch = {{"x", 0}},
                                  .microbatches = 4,
                                  .order = pt::one_f_one_b},
                                 "PP");
// A pipeline is a tactic, so other tactics combine with it: BP shards the batch inside each stage.
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto traced = [] {
  return pt::trace(training_step, pt::input<float, 32, 4>("x"), pt::input<float, 4, 4>("w1"),
                   pt::input<float, 4, 4>("w2"));
};
constexpr auto step = [] { return pt::partition(traced(), cluster, pt::schedule(BP, PP)); };
// F1 is the forward call on microbatch 1, B1 the backward call. m0 is one microbatch ahead of m1.
// Each mesh reduces its gradient once, after the last microbatch.
static_assert(pt::check<step>.deadlock_free);
static_assert(pt::check<step>.order("m0") == "F0 F1 B0 F2 B1 F3 B2 B3");
static_assert(pt::check<step>.order("m1") == "F0 B0 F1 B1 F2 B2 F3 B3");
static_assert(pt::check<step>.mesh("m0").collectives.all_reduce == 1);  // the gradient of w1

int main() {
  const pt::pipelined p = step();
  for (const char* mesh : {"m0", "m1"}) std::cout << mesh << ": " << p.order_of(mesh) << '\n';

  // `emulate` runs all devices of both meshes in this process.
  const pt::program f = traced();
  std::vector<pt::array> inputs;
  for (int i = 0; i < f.input_count(); ++i) {
    inputs.emplace_back(f.input_type(i));
    for (std::int64_t j = 0; j < inputs.back().size(); ++j)
      inputs.back().mutable_data<float>()[j] = static_cast<float>(j * 7 % 11 - 5) / 8;
  }
  const bool same = pt::all_close(pt::emulate(p, inputs), pt::evaluate(f, inputs));
  std::cout << "the pipeline computes " << (same ? "what one device does\n" : "something else\n");
  return same ? 0 : 1;
}

// Read more: examples/guide/6_pipelines.md. Next lesson: 10_simulated_and_automatic.cpp
