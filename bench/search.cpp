/// Compares automatic partitioning of the paper's models with hand-written schedules, and measures
/// the search time.
///
///   bench_search [--inferred] [MODEL ...]     T32, T48, IT32, UNet, GNS, axes; default: all
///
/// `--inferred` uses the sizes that were inferred from the paper's tables.
///
/// For each model the simulator predicts overlapped steps on 8 x 4 of the paper's TPUv3. The rows
/// are the hand-written schedules, then automatic ones with the memory of the fastest of these. If
/// tiling along the searched axis cannot make the arguments fit in that memory, a line says so, and
/// another row searches with the memory of the hand-written schedule that keeps them unsharded.
/// `axes` measures a search of T32 over 32 devices in one to five axes.
///
/// Source    PartIR, section 7.4 and figures 10 and 11
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>

#include "paper_sizes.hpp"

namespace {

namespace pt = partita;

constexpr pt::mesh paper_mesh{{"batch", 8}, {"model", 4}};

class comparison {
 public:
  comparison(const char* model, pt::program p) : model_(model), p_(std::move(p)) {}

  /// Prints a hand-written schedule and returns its peak in bytes. The fastest schedule's peak
  /// becomes the memory of the device.
  template <class... T>
  double by_hand(const char* name, const T&... tactics) {
    const pt::partitioned r = pt::partition(p_, paper_mesh, pt::schedule(tactics...));
    const double time = step_time(r), peak = static_cast<double>(r.cost.peak_bytes);
    print(name, time, r);
    std::printf("\n");
    if (best_ > 0 && best_ <= time) return peak;
    best_ = time;
    on_.memory = peak;
    return peak;
  }
  /// True if the arguments fit in memory after `tactics` when each is also sharded along "model".
  /// Otherwise prints their size and sets the memory to `bytes`.
  template <class... T>
  bool fits(double bytes, const T&... tactics) {
    const pt::partitioned r = pt::partition(p_, paper_mesh, pt::schedule(tactics...));
    const double least =
        static_cast<double>(r.cost.argument_bytes) / static_cast<double>(paper_mesh.size(1));
    if (least <= on_.memory) return true;
    std::printf(
        "%-5s arguments take at least %.0f MB with any tiling along \"model\"; allowed: %.0f MB\n",
        model_, least / 1e6, bytes / 1e6);
    on_.memory = bytes;
    return false;
  }
  /// Prints a lower bound of the step time. A schedule's collectives along "batch" remain with any
  /// tiling along "model": the number of messages stays, and each is at least a shard along
  /// "model". A link carries one collective at a time.
  template <class... T>
  void sends(const char* name, const T&... tactics) const {
    const pt::partitioned r = pt::partition(p_, paper_mesh, pt::schedule(tactics...));
    pt::device faster = on_;
    faster.near.bandwidth *= static_cast<double>(paper_mesh.size(1));
    faster.far.bandwidth *= static_cast<double>(paper_mesh.size(1));
    const double least = pt::simulate(r.device, faster).communication;
    std::printf("%-5s %-14s %9.4f s at least: collectives along \"batch\"; %5.2f of the best\n",
                model_, name, least, least / best_);
  }
  pt::automatic automatic(std::initializer_list<std::string_view> axes) {
    return {axes, on_, {.seconds = 0, .result = &found_}};
  }
  /// Prints a schedule with a search, or its error: the search may tile dimensions that a later
  /// tactic needs.
  template <class... T>
  void searched(const char* name, const T&... tactics) try {
    const std::clock_t began = std::clock();
    const pt::partitioned r = pt::partition(p_, paper_mesh, pt::schedule(tactics...));
    const double busy = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    const double time = step_time(r), evaluations = static_cast<double>(found_.evaluations);
    print(name, time, r);
    std::printf(
        "  %5.2f of the best by hand, bound %9.4f s, %6.0f evaluations in %5.1f s (%5.0f/s; "
        "%5.0f per second of the processor)\n",
        time / best_, found_.bound, evaluations, found_.seconds, evaluations / found_.seconds,
        evaluations / busy);
  } catch (const pt::error& e) {
    std::printf("%-5s %-14s %s\n", model_, name, e.what());
  }

 private:
  const char* model_;
  pt::program p_;
  pt::device on_ = pt::tpu_v3_partir;
  pt::search_result found_;
  double best_ = 0;

  double step_time(const pt::partitioned& r) const {
    return pt::simulate(r.device, on_, {.overlap = true}).time;
  }
  void print(const char* name, double time, const pt::partitioned& r) const {
    std::printf("%-5s %-14s %9.4f s %9.0f MB", model_, name, time,
                static_cast<double>(r.cost.peak_bytes) / 1e6);
    std::fflush(stdout);
  }
};

void language_model(const char* name, const paper::language_model_sizes& sizes) {
  using namespace paper::transformers;
  comparison c(name, paper::trace_training_step(sizes));
  const double whole = c.by_hand("BP+MP", BP, MP);
  c.by_hand("BP+MP+Z3", BP, MP, Z3);
  c.by_hand("BP+MP+Z3+EMB", BP, MP, Z3, EMB);
  c.searched("AllAuto", c.automatic({"batch", "model"}));
  c.searched("BP+AutoMP+Z3", BP, c.automatic({"model"}), Z3);
  c.searched("BP+AutoMP", BP, c.automatic({"model"}));
  if (!c.fits(whole, BP)) c.searched("BP+AutoMP", BP, c.automatic({"model"}));
}
void serving(const paper::serving_sizes& sizes) {
  using namespace paper::serving;
  comparison c("IT32", paper::trace_serving(sizes));
  c.by_hand("BP+MP", BP, MP);
  c.by_hand("BP+MP+MQ", BP, MQ, MP);
  c.searched("AllAuto", c.automatic({"batch", "model"}));
  c.searched("BP+AutoMP", BP, c.automatic({"model"}));
}
void unet(const paper::unet_sizes& sizes) {
  using namespace paper::diffusion;
  comparison c("UNet", paper::trace_training_step(sizes));
  c.by_hand("BP+Z3", BP, Z3);
  c.by_hand("BP+MP", BP, MP);
  c.by_hand("BP+MP+Z3", BP, MP, Z3);
  c.searched("AllAuto", c.automatic({"batch", "model"}));
  c.searched("BP+AutoMP", BP, c.automatic({"model"}));
  c.searched("BP+AutoMP+Z3", BP, c.automatic({"model"}), Z3);
  c.sends("BP+AutoMP+Z3", BP, Z3);
}
void gns(const paper::gns_sizes& sizes) {
  using paper::graphs::ES;
  comparison c("GNS", paper::trace_training_step(sizes));
  c.by_hand("ES", ES);
  c.searched("AllAuto", c.automatic({"batch", "model"}));
  c.searched("ES+AutoMP", ES, c.automatic({"model"}));
  c.searched("AutoBP", c.automatic({"batch"}));
}
/// Searches with the same number of evaluations over one to five axes.
void axes(const paper::language_model_sizes& sizes) {
  const pt::program p = paper::trace_training_step(sizes);
  pt::device on = pt::tpu_v3_partir;
  on.memory *= 8;
  const pt::mesh meshes[] = {{{"a", 32}},
                             {{"a", 8}, {"b", 4}},
                             {{"a", 4}, {"b", 4}, {"c", 2}},
                             {{"a", 4}, {"b", 2}, {"c", 2}, {"d", 2}},
                             {{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}, {"e", 2}}};
  for (const pt::mesh& m : meshes) {
    pt::vec<pt::text> names;
    for (int i = 0; i < m.whole_rank(); ++i) names.push_back(pt::text(m.name(i)));
    pt::search_result r;
    pt::partition(p, m, pt::schedule(pt::automatic(names, on, {.seconds = 0, .result = &r})));
    std::printf("axes  %d: %6lld evaluations in %5.1f s (%5.0f/s), %.4f s\n", m.whole_rank(),
                static_cast<long long>(r.evaluations), r.seconds,
                static_cast<double>(r.evaluations) / r.seconds, r.after);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool inferred = argc > 1 && std::string_view(argv[1]) == "--inferred";
  const bench::paper_sizes& m = inferred ? bench::inferred_sizes : bench::default_sizes;
  std::vector<std::string> models(argv + 1 + inferred, argv + argc);
  if (models.empty()) models = {"T32", "T48", "IT32", "UNet", "GNS", "axes"};
  for (const std::string& each : models) {
    if (each == "T32") language_model("T32", m.t32);
    if (each == "T48") language_model("T48", m.t48);
    if (each == "IT32") serving(m.it32);
    if (each == "UNet") unet(m.unet);
    if (each == "GNS") gns(m.gns);
    if (each == "axes") axes(m.t32);
  }
  return 0;
}
