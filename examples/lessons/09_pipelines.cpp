/// Lesson 9: several meshes and a pipeline, with sharding inside of its stages.
///
/// Learnt: parts of the model get names, `pipeline` gives them to meshes as stages and runs
/// microbatches through them in an order; it is a tactic, and others shard what is inside;
/// deadlocks and orders are checked while compiling.
///
/// Printed: the order of calls on each mesh, and whether the emulated pipeline gives what one
/// device does.
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
    const auto h = pt::named("first", layer)(x, w[0]);
    const auto y = pt::named("second", layer)(h, w[1]);
    return sum(y * y);
  };
  const auto [value, g] = pt::value_and_grad(loss, std::array{w1, w2});
  return std::tuple{pt::output("w1", w1 - 0.01f * g[0]), pt::output("w2", w2 - 0.01f * g[1]),
                    pt::output("loss", value)};
};

constexpr pt::topology cluster{{"m0", {{"B", 2}}}, {"m1", {{"B", 4}}}};  // of different sizes
constexpr auto PP = pt::pipeline({.stages = {{"first"}, {"second"}},
                                  .batch = {{"x", 0}},
                                  .microbatches = 4,
                                  .order = pt::one_f_one_b},
                                 "PP");
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto traced = [] {
  return pt::trace(training_step, pt::input<float, 32, 4>("x"), pt::input<float, 4, 4>("w1"),
                   pt::input<float, 4, 4>("w2"));
};
constexpr auto step = [] { return pt::partition(traced(), cluster, pt::schedule(BP, PP)); };
static_assert(pt::check<step>.deadlock_free);
static_assert(pt::check<step>.order("m0") == "F0 F1 B0 F2 B1 F3 B2 B3");
static_assert(pt::check<step>.order("m1") == "F0 B0 F1 B1 F2 B2 F3 B3");
static_assert(pt::check<step>.mesh("m0").collectives.all_reduce == 1);  // the gradient of w1, once

int main() {
  const pt::pipelined p = step();
  for (const char* mesh : {"m0", "m1"}) std::cout << mesh << ": " << p.order_of(mesh) << '\n';

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
