/// The demo's training step, and a wider one, on XLA without Python: eight CPU devices in this
/// process, schedule BP, MP, Z3 over {"B": 4, "M": 2}. bench/xla_step.py runs the same modules by
/// JAX beside it.
///
///   bench_xla_step --write FOLDER          writes demo.mlir and wider.mlir
///   bench_xla_step demo|wider STEPS        after each line of input: milliseconds per step, of
///   STEPS bench_xla_step call                    prints microseconds of a call with 100 arguments
///
/// PARTITA_PJRT_PLUGIN names the plugin.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/run/file/whole_file.hpp>
#include <partita/xla.hpp>

#include "../examples/models/transformer.hpp"

namespace pt = partita;

namespace {

using clock_type = std::chrono::steady_clock;
double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

constexpr transformer::sizes demo{.layers = 2,
                                  .width = 64,
                                  .heads = 4,
                                  .key = 16,
                                  .hidden = 256,
                                  .vocabulary = 84,
                                  .context = 64,
                                  .batch = 32};
constexpr transformer::sizes wider{.layers = 4,
                                   .width = 256,
                                   .heads = 4,
                                   .key = 64,
                                   .hidden = 1024,
                                   .vocabulary = 84,
                                   .context = 64,
                                   .batch = 32};

pt::partitioned step_of(std::string_view name) {
  return pt::partition(
      transformer::trace_training_step<transformer::dynamic>(name == "wider" ? wider : demo),
      pt::mesh{{"B", 4}, {"M", 2}},
      pt::schedule(transformer::BP, transformer::MP, transformer::Z3));
}
std::vector<pt::array> arguments(const pt::program& p) {
  std::vector<pt::array> list;
  transformer::random_stream random(1);
  for (int i = 0; i < p.input_count(); ++i) {
    pt::array a(p.input_type(i));
    if (a.element() == pt::dtype::i32)
      for (std::int64_t k = 0; k < a.size(); ++k)
        a.mutable_data<std::int32_t>()[k] =
            a.shape().rank == 0 ? 0 : static_cast<std::int32_t>(random.below(84));
    else if (p.input_name(i).starts_with("params"))
      transformer::initialise(p.input_name(i), a.shape(), 2, 1, a.mutable_data<float>());
    list.push_back(std::move(a));
  }
  return list;
}

void write(const std::string& folder) {
  for (const char* name : {"demo", "wider"}) {
    const pt::partitioned p = step_of(name);
    pt::vec<pt::argument_donation> donations(p.device.inputs.size(), {});
    const pt::vec<int> reused = pt::reused_inputs(p.source);
    for (int k = 0; k < p.device.local.output_count(); ++k)
      if (reused[k] >= 0 && p.device.local.input_type(reused[k]) == p.device.local.output_type(k))
        donations[reused[k]] = {true, k};
    pt::run_detail::write_file(folder + "/" + name + ".mlir",
                               pt::write_stablehlo(p.device, donations).view());
  }
}
void time_steps(std::string_view name, int steps) {
  const pt::partitioned p = step_of(name);
  const pt::xla::client cpus({}, {.devices = 8});
  const pt::xla::executable run(p, cpus);
  const auto x = arguments(p.source);
  const auto placed = run.place(x);  // its tokens and targets serve all steps
  auto state = run(placed).next();
  const auto one_step = [&] {
    const auto out = run(placed, state);
    run.whole(out["loss"]);
    state = out.next();
  };
  for (int i = 0; i < 3; ++i) one_step();
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = clock_type::now();
    for (int i = 0; i < steps; ++i) one_step();
    std::printf("%.4f\n", 1e3 * seconds_since(start) / steps);
    std::fflush(stdout);
  }
}
/// A call that does next to nothing: one output, which is an input plus another. The time is that
/// of the fastest of 40 rounds, since other programs on the machine only add to it.
void time_call() {
  const auto model = [](const auto& x) { return x[0] + x[99]; };
  std::vector<pt::tensor<float, pt::dyn>> list(100, pt::tensor<float, pt::dyn>(4));
  const auto f = pt::trace(model, pt::input("x", list));
  const auto p = pt::partition(f, pt::mesh{{"B", 1}}, pt::schedule());
  const pt::xla::client cpu({}, {.devices = 1});
  const pt::xla::executable run(p, cpu);
  const auto state = run.place(arguments(f));
  for (int i = 0; i < 100; ++i) run(state);
  constexpr int calls = 50;
  double best = 1;
  for (int round = 0; round < 40; ++round) {
    const auto start = clock_type::now();
    for (int i = 0; i < calls; ++i) run(state);
    best = std::min(best, seconds_since(start) / calls);
  }
  std::printf("%.2f\n", 1e6 * best);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  try {
    if (what == "--write" && argc > 2)
      write(argv[2]);
    else if (what == "call")
      time_call();
    else if ((what == "demo" || what == "wider") && argc > 2)
      time_steps(what, std::atoi(argv[2]));
    else
      return std::fputs("bench_xla_step --write FOLDER | demo STEPS | wider STEPS | call\n",
                        stderr),
             2;
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
