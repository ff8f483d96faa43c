/// Measures how long it takes to partition the paper's models at full size, and writes their
/// programs for XLA. With figure8.py this reproduces the paper's figure 8.
///
///   bench_figure8 FOLDER     writes to FOLDER:
///       MODEL.mlir             the source program
///       MODEL.SCHEDULE.mlir    the program of one device
///       partition.csv          model, schedule, devices, ops, milliseconds (best of nine) to
///                              partition and to write each module, and bytes of one device for
///                              arguments and at the peak (see xla_memory.py)
///
/// Source    PartIR, arXiv:2401.11202, section 7.5; the schedules are those of Table 2
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <partita/stablehlo/write_local.hpp>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/unet.hpp"
#include "module_folder.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"batch", 8}, {"model", 4}};

/// Returns the milliseconds that `f` takes, the best of nine.
template <class F>
double time_of(const F& f) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 9; ++i) {
    const auto began = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - began;
    best = elapsed.count() < best ? elapsed.count() : best;
  }
  return best;
}

class figure {
 public:
  explicit figure(std::string folder)
      : out_(std::move(folder), "partition.csv",
             "model,schedule,devices,ops,partition_ms,write_source_ms,write_local_ms,argument_"
             "bytes,peak_bytes") {}
  void model(std::string_view name, pt::program p) {
    name_ = name;
    p_ = std::move(p);
    out_.write(name_, pt::write_stablehlo(p_));
  }
  template <class... Tactics>
  void on(std::string_view schedule, const Tactics&... tactics) {
    const auto run = [&] { return pt::partition(p_, mesh, pt::schedule(tactics...)); };
    const pt::partitioned r = run();
    out_.write(name_ + '.' + std::string(schedule), pt::write_stablehlo(r.device));
    std::string row = name_ + ',' + std::string(schedule) + ',' + std::to_string(mesh.devices()) +
                      ',' + std::to_string(ops_of(p_)) + ',' + std::to_string(time_of(run)) + ',';
    row += std::to_string(time_of([&] { pt::write_stablehlo(p_); })) + ',' +
           std::to_string(time_of([&] { pt::write_stablehlo(r.device); })) + ',' +
           std::to_string(r.cost.argument_bytes) + ',' + std::to_string(peak_in_xla(tactics...));
    out_.add_row(row);
  }

  /// Returns the peak with the pass `share_gathers`, in bytes per device: XLA merges equal gathers,
  /// too.
  template <class... Tactics>
  std::int64_t peak_in_xla(const Tactics&... tactics) const {
    return pt::partition(p_, mesh, pt::schedule(tactics...), {.passes = {.share_gathers = true}})
        .cost.peak_bytes;
  }

 private:
  module_folder out_;
  std::string name_;
  pt::program p_;

  /// Returns the number of ops, including those of nested programs.
  static int ops_of(const pt::program& p) {
    int n = p.op_count();
    for (const auto& r : p.regions) n += ops_of(r);
    return n;
  }
};

void add_language_model(figure& f, std::string_view name, const pt::program& step) {
  using namespace paper::transformers;
  f.model(name, step);
  f.on("BP", BP);
  f.on("BP+MP", BP, MP);
  f.on("BP+MP+Z2", BP, MP, Z2);
  f.on("BP+MP+Z3", BP, MP, Z3);
  f.on("BP+MP+Z3+EMB", BP, MP, Z3, EMB);
}
void add_serving(figure& f) {
  using namespace paper::serving;
  f.model("IT32", paper::trace_serving(paper::IT32));
  f.on("BP", BP);
  f.on("BP+MP", BP, MP);
  f.on("BP+MP+MQ", BP, MQ, MP);
}
void add_unet(figure& f) {
  using namespace paper::diffusion;
  f.model("UNet", paper::trace_training_step(paper::UNet));
  f.on("BP", BP);
  f.on("BP+Z2", BP, Z2);
  f.on("BP+Z3", BP, Z3);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) {
    std::puts("bench_figure8 FOLDER");
    return 2;
  }
  figure f(words[1]);
  add_language_model(f, "T32", paper::trace_training_step(paper::T32));
  add_language_model(f, "T48", paper::trace_training_step(paper::T48));
  add_serving(f);
  add_unet(f);
  f.model("GNS", paper::trace_training_step(paper::GNS));
  f.on("ES", paper::graphs::ES);
  return 0;
} catch (const std::exception& e) {
  std::puts(e.what());
  return 1;
}
