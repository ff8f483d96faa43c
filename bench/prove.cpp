/// Measures `prove` beside `partition` of the same program in the same run.
///
///   bench_prove [RUNS]
///
/// Times are the minimum of RUNS (default: 20) runs. The programs are the paper's models at full
/// size, transformers with more layers, one transformer on meshes of 2 to 8,192 devices, and small
/// ones that are proved element by element. `bench_scale --phases prove` has other shapes, up to
/// 100,000 ops.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <partita/prove/prove.hpp>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/transformer.hpp"
#include "../examples/models/unet.hpp"

namespace pt = partita;

namespace {

int runs = 20;

/// Returns the milliseconds that `f` takes, the minimum of all runs.
template <class F>
double minimum(const F& f) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    best = std::min(best, ms.count());
  }
  return best;
}

template <class... Tactics>
void measure(const char* name, const pt::program& source, const pt::mesh& mesh,
             const Tactics&... tactics) {
  pt::partitioned p;
  pt::verdict v;
  const double partitioned =
      minimum([&] { p = pt::partition(source, mesh, pt::schedule(tactics...)); });
  const double proved = minimum([&] { v = pt::prove(p); });
  const int ops = p.source.op_count() + p.device.local.op_count();
  std::printf(
      "%-24s %6d + %6d ops, %4lld devices: partition %8.2f ms, prove %8.2f ms, ratio %.2f, "
      "%5.0f ns per op%s\n",
      name, p.source.op_count(), p.device.local.op_count(), static_cast<long long>(mesh.devices()),
      partitioned, proved, proved / partitioned, 1e6 * proved / ops,
      v.proved ? "" : ", NOT PROVED");
}

pt::program training_step(std::int64_t layers, std::int64_t width = 512, std::int64_t heads = 8) {
  return transformer::trace_training_step<transformer::dynamic>(
      {layers, width, heads, width / heads, 4 * width, 128, 64, 1024});
}

constexpr pt::mesh paper_mesh{{"batch", 8}, {"model", 4}};

void measure_models() {
  {
    using namespace paper::transformers;
    measure("T32 BP+MP+Z3+EMB", paper::trace_training_step(paper::T32), paper_mesh, BP, MP, Z3,
            EMB);
    measure("T48 BP+MP+Z3+EMB", paper::trace_training_step(paper::T48), paper_mesh, BP, MP, Z3,
            EMB);
  }
  {
    using namespace paper::serving;
    measure("IT32 BP+MQ+MP", paper::trace_serving(paper::IT32), paper_mesh, BP, MQ, MP);
  }
  using namespace paper::diffusion;
  measure("UNet BP+Z3", paper::trace_training_step(paper::UNet), paper_mesh, BP, Z3);
  measure("GNS ES", paper::trace_training_step(paper::GNS), paper_mesh, paper::graphs::ES);
}
void measure_growth() {
  using namespace transformer;
  for (int layers : {2, 8, 32, 128, 280})
    measure("transformer", training_step(layers), {{"B", 4}, {"M", 2}}, BP, MP, Z3);
  for (int b = 2; b <= 128; b *= 4)
    measure("8 layers, more devices", training_step(8, 2048, 64), {{"B", b}, {"M", b / 2}}, BP, MP,
            Z3);
}

template <class... Tactics>
void shrink(const char* name, const pt::program& source, const Tactics&... tactics) {
  const pt::partitioned p = pt::partition(source, paper_mesh, pt::schedule(tactics...));
  pt::prove_detail::shrink_verdict v;
  const double ms =
      minimum([&] { v = pt::prove_detail::prove_by_shrinking(p.source, p.device, 25'000'000); });
  std::printf("%-24s by shrinking: %9lld steps, %8.2f ms%s\n", name,
              static_cast<long long>(v.steps), ms,
              v.kind == pt::prove_detail::shrink_verdict::proved ? "" : ", NOT PROVED");
}
/// Proves the paper's models by shrinking alone.
void measure_shrinking() {
  using namespace paper::transformers;
  const pt::program step = paper::trace_training_step(paper::T32);
  shrink("T32 BP+MP+Z3", step, BP, MP, Z3);
  shrink("T32 BP+MP+Z3+EMB", step, BP, MP, Z3, EMB);
  shrink("GNS ES", paper::trace_training_step(paper::GNS), paper::graphs::ES);
  shrink("UNet BP", paper::trace_training_step(paper::UNet), paper::diffusion::BP);
}

/// Proves small programs element by element, the fallback for programs that claims do not prove.
void measure_elements() {
  using namespace transformer;
  for (std::int64_t width : {8, 16, 32}) {
    const pt::program source =
        trace_training_step<dynamic>({1, width, 2, width / 2, 2 * width, 4, 4, 16});
    const auto p = pt::partition(source, {{"B", 2}, {"M", 2}}, pt::schedule(BP, MP, Z3));
    pt::prove_detail::element_verdict v;
    const double ms = minimum(
        [&] { v = pt::prove_detail::prove_by_elements(p.source, p.device, 1'000'000'000); });
    std::printf("1 layer, width %2lld, by elements: %9lld steps, %8.2f ms, %5.1f ns per step%s\n",
                static_cast<long long>(width), static_cast<long long>(v.steps), ms,
                1e6 * ms / static_cast<double>(v.steps),
                v.kind == pt::prove_detail::element_verdict::proved ? "" : ", NOT PROVED");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) runs = std::max(1, std::atoi(argv[1]));
  measure_models();
  measure_growth();
  measure_shrinking();
  measure_elements();
  return 0;
}
