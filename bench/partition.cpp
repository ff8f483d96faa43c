/// How long `partition` takes on a transformer's training step (BP, MP, Z3), tracing excluded.
///
/// `steps` runs over the number of layers; `devices` keeps 8 layers and changes the mesh.
#include <benchmark/benchmark.h>

#include "../examples/models/transformer.hpp"

namespace pt = partita;

namespace {

pt::program training_step(std::int64_t layers, std::int64_t width = 512, std::int64_t heads = 8) {
  return transformer::trace_training_step<transformer::dynamic>(
      {layers, width, heads, width / heads, 4 * width, 128, 64, 1024});
}

void partition(benchmark::State& state, const pt::program& step, const pt::mesh& mesh) {
  const auto schedule = pt::schedule(transformer::BP, transformer::MP, transformer::Z3);
  std::size_t actions = 0;
  for (auto _ : state) {
    const pt::partitioned p = pt::partition(step, mesh, schedule);
    benchmark::DoNotOptimize(p.collectives);
    actions = p.core.actions.size();
  }
  state.counters["ops"] = step.op_count();
  state.counters["inputs"] = step.input_count();
  state.counters["actions"] = static_cast<double>(actions);
  state.counters["s_per_op"] = benchmark::Counter(
      step.op_count(), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetComplexityN(step.op_count());
}

void layers(benchmark::State& state) {
  partition(state, training_step(state.range(0)), {{"B", 4}, {"M", 2}});
}
BENCHMARK(layers)
    ->RangeMultiplier(2)
    ->Range(1, 32)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

/// The same program and the same actions on a small and a large mesh.
void devices(benchmark::State& state) {
  partition(state, training_step(8, 8192, 256), {{"B", state.range(0)}, {"M", state.range(1)}});
}
BENCHMARK(devices)->Args({4, 2})->Args({32, 16})->Args({256, 256})->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
