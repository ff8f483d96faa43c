/// Measures what the order of tactics is worth: compares schedules of the U-Net with one tactic
/// that amalgamates all tactics of the schedule. Uses the default sizes and the inferred ones.
///
/// Prints CSV. Sizes are per device, except `replicated_mib`, which sums all copies of values that
/// are replicated by default. Times are milliseconds of a step on the paper's TPUv3, with
/// collectives and kernels in sequence (`ms`) and overlapped (`overlapped_ms`). `slowdown` is the
/// overlapped time over that of the schedule.
///
/// Source    PartIR, arXiv:2401.11202, section 7.4 (PartIR-st in figure 7)
#include <cstdio>
#include <string>
#include <string_view>

#include <partita/cost/simulate.hpp>

#include "../examples/models/unet.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"batch", 8}, {"model", 2}};

double milliseconds(const pt::partitioned& p, bool overlap) {
  return 1e3 * pt::simulate(p.device, pt::tpu_v3_partir, {.overlap = overlap}).time;
}
/// Prints a row. `overlapped` is the overlapped time of the schedule itself, in milliseconds.
void print(std::string_view schedule, std::string_view tactics, const pt::partitioned& p,
           double overlapped) {
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::int64_t replicated = 0;
  for (const auto& each : pt::replicated_by_default(p.core)) replicated += each.total();
  std::printf("%s,%s,%d,%lld,%.0f,%.0f,%.0f,%.0f,%.1f,%.1f,%.2f\n", std::string(schedule).c_str(),
              std::string(tactics).c_str(), static_cast<int>(p.core.conflicts.size()),
              static_cast<long long>(p.collectives.total()), mebibytes(p.cost.collective_bytes),
              mebibytes(replicated), mebibytes(p.cost.argument_bytes), mebibytes(p.cost.peak_bytes),
              milliseconds(p, false), milliseconds(p, true), milliseconds(p, true) / overlapped);
}

template <class... Tactics>
void compare(std::string_view name, const pt::program& p, const Tactics&... tactics) {
  const auto in_turn = pt::partition(p, mesh, pt::schedule(tactics...)),
             at_once = pt::partition(p, mesh, pt::schedule(pt::amalgamated("all", tactics...)));
  print(name, "one by one", in_turn, milliseconds(in_turn, true));
  print(name, "amalgamated", at_once, milliseconds(in_turn, true));
}
void compare_all(std::string_view title, const paper::unet_sizes& sizes) {
  using namespace paper::diffusion;
  const pt::program step = paper::trace_training_step(sizes);
  std::printf(
      "%s\nschedule,tactics,conflicts,collectives,collective_mib,replicated_mib,argument_mib,peak_"
      "mib,ms,overlapped_ms,slowdown\n",
      std::string(title).c_str());
  compare("BP", step, BP);
  compare("BP+Z2", step, BP, Z2);
  compare("BP+Z3", step, BP, Z3);
  compare("BP+MP", step, BP, MP);
  compare("BP+MP+Z3", step, BP, MP, Z3);
}

}  // namespace

int main() {
  compare_all("default sizes", paper::UNet);
  compare_all("inferred sizes", paper::UNet_inferred);
  return 0;
}
