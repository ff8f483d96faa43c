/// Measures what overlapping collectives with kernels gains on the paper's models.
///
///   bench_overlap [MODEL ...]     T32, T48, IT32, UNet, GNS; default: all but T48
///
/// Prints one line per schedule on 8 x 4 TPUv4, with the seconds of a step
///
/// * in program order,
/// * overlapped without more memory than before, with any memory, and also with rings; each with
/// the
///   gain, the numbers of changes, the peak memory and the milliseconds that the pass took,
/// * under list scheduling, where any collective overlaps any kernel that does not depend on it,
///
/// and the peak memory before.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <partita/partita.hpp>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/unet.hpp"

namespace {

namespace pt = partita;

constexpr pt::mesh overlap_mesh{{"batch", 8}, {"model", 4}};

template <class... T>
void overlap_row(const char* model, const char* name, const pt::program& p, const T&... tactics) {
  pt::device on = pt::tpu_v4;
  on.memory = 1e15;
  const pt::partitioned plain = pt::partition(p, overlap_mesh, pt::schedule(tactics...));
  const double before = pt::simulate(plain.device, on).time;
  std::printf("%-5s %-12s %9.5f s", model, name, before);
  const auto with = [&](bool rings, std::int64_t memory) {
    const auto begin = std::chrono::steady_clock::now();
    pt::lowered l;
    l.device = plain.device;
    l.notes = plain.notes;
    l.counts = plain.collectives;
    pt::overlap(l, {.on = on, .rings = rings, .memory = memory});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    const double after = pt::simulate(l.device, on).time;
    int around = 0, early = 0, off = 0;
    for (const auto& each : l.passes)
      (each.name == "rings" ? around : each.name == "early" ? early : off) += each.changed;
    std::printf("  %9.5f s (%4.1f %%, %3d rings, %4d early, %5d ops later, %5.0f MB, %4.0f ms)",
                after, 100 * (before - after) / before, around, early, off,
                static_cast<double>(pt::estimate(l.device).peak_bytes) / 1e6, took.count());
  };
  with(false, 1);  // no more memory than without overlap
  with(false, 0);
  with(true, 0);
  std::printf("  freely %9.5f s, %5.0f MB before\n",
              pt::simulate(plain.device, on, {.overlap = true}).time,
              static_cast<double>(plain.cost.peak_bytes) / 1e6);
  std::fflush(stdout);
}

void overlap_of_language_model(const char* name, const paper::language_model_sizes& sizes) {
  using namespace paper::transformers;
  const pt::program p = paper::trace_training_step(sizes);
  overlap_row(name, "BP", p, BP);
  overlap_row(name, "BP+MP", p, BP, MP);
  overlap_row(name, "BP+MP+Z2", p, BP, MP, Z2);
  overlap_row(name, "BP+MP+Z3", p, BP, MP, Z3);
  overlap_row(name, "BP+MP+Z3+EMB", p, BP, MP, Z3, EMB);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models(argv + 1, argv + argc);
  if (models.empty()) models = {"T32", "IT32", "UNet", "GNS"};
  for (const std::string& each : models) {
    if (each == "T32") overlap_of_language_model("T32", paper::T32);
    if (each == "T48") overlap_of_language_model("T48", paper::T48);
    if (each == "IT32") {
      using namespace paper::serving;
      const pt::program p = paper::trace_serving(paper::IT32);
      overlap_row("IT32", "BP+MP", p, BP, MP);
      overlap_row("IT32", "BP+MP+MQ", p, BP, MQ, MP);
    }
    if (each == "UNet") {
      using namespace paper::diffusion;
      const pt::program p = paper::trace_training_step(paper::UNet);
      overlap_row("UNet", "BP+Z2", p, BP, Z2);
      overlap_row("UNet", "BP+Z3", p, BP, Z3);
    }
    if (each == "GNS")
      overlap_row("GNS", "ES", paper::trace_training_step(paper::GNS), paper::graphs::ES);
  }
  return 0;
}
