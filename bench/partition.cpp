/// Measures the time and memory of `partition`. Tracing is excluded, except in `T32_traced`.
///
/// `layers` varies the number of layers of a transformer's training step (BP, MP, Z3); `devices`
/// keeps 8 layers and varies the mesh. The other benchmarks partition the paper's models at full
/// size, apply passes to T32's collectives, simulate T32, and print its texts.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include <benchmark/benchmark.h>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/transformer.hpp"
#include "../examples/models/unet.hpp"

namespace pt = partita;

namespace {

/// Bytes that are allocated by `new` and not yet freed, and their maximum.
std::atomic<std::int64_t> bytes_in_use = 0, most_bytes = 0;

}  // namespace

// Not inlined: if GCC inlines only one of the pair, it warns of mismatched new and delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* p = std::malloc(size > 0 ? size : 1);
  if (p == nullptr) throw std::bad_alloc();
  const auto now = bytes_in_use += static_cast<std::int64_t>(malloc_usable_size(p));
  if (now > most_bytes) most_bytes = now;
  return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  bytes_in_use -= static_cast<std::int64_t>(malloc_usable_size(p));
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }

namespace {

pt::program training_step(std::int64_t layers, std::int64_t width = 512, std::int64_t heads = 8) {
  return transformer::trace_training_step<transformer::dynamic>(
      {layers, width, heads, width / heads, 4 * width, 128, 64, 1024});
}

/// Returns the number of ops, including those of nested programs.
int ops_of(const pt::program& p) {
  int n = p.op_count();
  for (const auto& r : p.regions) n += ops_of(r);
  return n;
}

template <class... Tactics>
void partition(benchmark::State& state, const pt::program& step, const pt::mesh& mesh,
               const Tactics&... tactics) {
  const auto schedule = pt::schedule(tactics...);
  const std::int64_t before = bytes_in_use;
  most_bytes = before;
  std::size_t actions = 0;
  for (auto _ : state) {
    const pt::partitioned p = pt::partition(step, mesh, schedule);
    benchmark::DoNotOptimize(p.collectives);
    actions = p.core.actions.size();
  }
  state.counters["MiB"] = static_cast<double>(most_bytes - before) / (1 << 20);
  const int ops = ops_of(step);
  state.counters["ops"] = ops;
  state.counters["inputs"] = step.input_count();
  state.counters["actions"] = static_cast<double>(actions);
  state.counters["s_per_op"] = benchmark::Counter(
      ops, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetComplexityN(ops);
}

void layers(benchmark::State& state) {
  using namespace transformer;
  partition(state, training_step(state.range(0)), {{"B", 4}, {"M", 2}}, BP, MP, Z3);
}
BENCHMARK(layers)
    ->RangeMultiplier(2)
    ->Range(1, 32)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

/// The same program and the same actions on a small and a large mesh.
void devices(benchmark::State& state) {
  using namespace transformer;
  partition(state, training_step(8, 8192, 256), {{"B", state.range(0)}, {"M", state.range(1)}}, BP,
            MP, Z3);
}
BENCHMARK(devices)->Args({4, 2})->Args({32, 16})->Args({256, 256})->Unit(benchmark::kMillisecond);

constexpr pt::mesh paper_mesh{{"batch", 8}, {"model", 4}};

void T32(benchmark::State& state) {
  using namespace paper::transformers;
  partition(state, paper::trace_training_step(paper::T32), paper_mesh, BP, MP, Z3, EMB);
}
void T48(benchmark::State& state) {
  using namespace paper::transformers;
  partition(state, paper::trace_training_step(paper::T48), paper_mesh, BP, MP, Z3, EMB);
}
void IT32(benchmark::State& state) {
  using namespace paper::serving;
  partition(state, paper::trace_serving(paper::IT32), paper_mesh, BP, MQ, MP);
}
void UNet(benchmark::State& state) {
  using namespace paper::diffusion;
  partition(state, paper::trace_training_step(paper::UNet), paper_mesh, BP, Z3);
}
void GNS(benchmark::State& state) {
  partition(state, paper::trace_training_step(paper::GNS), paper_mesh, paper::graphs::ES);
}
BENCHMARK(T32)->Unit(benchmark::kMillisecond);
BENCHMARK(T48)->Unit(benchmark::kMillisecond);
BENCHMARK(IT32)->Unit(benchmark::kMillisecond);
BENCHMARK(UNet)->Unit(benchmark::kMillisecond);
BENCHMARK(GNS)->Unit(benchmark::kMillisecond);

/// Traces and partitions the model. This is the library's total work up to the point where another
/// system's partitioner has only received a program.
void T32_traced(benchmark::State& state) {
  using namespace paper::transformers;
  for (auto _ : state) {
    const pt::partitioned p = pt::partition(paper::trace_training_step(paper::T32), paper_mesh,
                                            pt::schedule(BP, MP, Z3, EMB));
    benchmark::DoNotOptimize(p.collectives);
  }
}
BENCHMARK(T32_traced)->Unit(benchmark::kMillisecond);

/// Applies the rewriting passes and counts the collectives that remain and the growth of the peak.
void T32_passes(benchmark::State& state) {
  using namespace paper::transformers;
  const pt::program step = paper::trace_training_step(paper::T32);
  const auto run = [&](const pt::passes& on) {
    return pt::partition(step, paper_mesh, pt::schedule(BP, MP, Z3), {.passes = on});
  };
  const pt::partitioned before = run({});
  pt::partitioned after;
  for (auto _ : state) after = run({.combine_below = 1 << 20, .share_gathers = true});
  const auto count = [&](const char* name, std::int64_t n) {
    state.counters[name] = static_cast<double>(n);
  };
  count("all_reduce", before.collectives.all_reduce);
  count("all_reduce_after", after.collectives.all_reduce);
  count("all_gather", before.collectives.all_gather);
  count("all_gather_after", after.collectives.all_gather);
  state.counters["peak_ratio"] =
      static_cast<double>(after.cost.peak_bytes) / static_cast<double>(before.cost.peak_bytes);
}
BENCHMARK(T32_passes)->Unit(benchmark::kMillisecond);

/// Simulates one step of T32 on a device, or estimates its memory.
template <class Run>
void T32_simulated(benchmark::State& state, const Run& run) {
  using namespace paper::transformers;
  const pt::partitioned p = pt::partition(paper::trace_training_step(paper::T32), paper_mesh,
                                          pt::schedule(BP, MP, Z3, EMB));
  for (auto _ : state) benchmark::DoNotOptimize(run(p));
  state.counters["ops"] = p.device.local.op_count();
}
BENCHMARK_CAPTURE(T32_simulated, one_by_one, [](const auto& p) {
  return pt::simulate(p.device, pt::tpu_v3).time;
}) -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(T32_simulated, overlapped, [](const auto& p) {
  return pt::simulate(p.device, pt::tpu_v3, {.overlap = true}).time;
}) -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(T32_simulated, memory, [](const auto& p) {
  return pt::estimate(p.device).peak_bytes;
}) -> Unit(benchmark::kMillisecond);

/// Simulates the same program on meshes of 8 x 4 and of 1,024 x 16 devices.
void T32_simulated_devices(benchmark::State& state) {
  using namespace paper::transformers;
  paper::language_model_sizes s = paper::T32;
  s.batch = 8192;
  const pt::mesh m{{"batch", state.range(0)}, {"model", state.range(1)}};
  const pt::partitioned p =
      pt::partition(paper::trace_training_step(s), m, pt::schedule(BP, MP, Z3));
  for (auto _ : state) benchmark::DoNotOptimize(pt::simulate(p.device, pt::tpu_v3).time);
}
BENCHMARK(T32_simulated_devices)->Args({8, 4})->Args({1024, 16})->Unit(benchmark::kMillisecond);

/// Prints the texts about T32: a line per collective, the effect of each tactic, the local program.
template <class Text>
void T32_text(benchmark::State& state, const Text& print) {
  using namespace paper::transformers;
  const pt::partitioned p = pt::partition(paper::trace_training_step(paper::T32), paper_mesh,
                                          pt::schedule(BP, MP, Z3, EMB));
  std::size_t size = 0;
  for (auto _ : state) size = print(p).size();
  state.counters["characters"] = static_cast<double>(size);
}
BENCHMARK_CAPTURE(T32_text, explain, [](const auto& p) { return pt::explain(p); })
    -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(T32_text, report, [](const auto& p) { return pt::report(p); })
    -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(T32_text, print_device, [](const auto& p) { return pt::print(p.device); })
    -> Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
