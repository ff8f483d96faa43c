/// What the order of tactics is worth: schedules against all their tactics amalgamated into one, on
/// the U-Net. Prints CSV; sizes per device, but of what is replicated by default all copies.
///
/// Source    PartIR, arXiv:2401.11202, section 7.4 (PartIR-st in figure 7)
#include <cstdio>
#include <string>
#include <string_view>

#include "../examples/models/unet.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"batch", 8}, {"model", 2}};

void print(std::string_view schedule, std::string_view tactics, const pt::partitioned& p) {
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::int64_t replicated = 0;
  for (const auto& each : pt::replicated_by_default(p.core)) replicated += each.total();
  std::printf("%s,%s,%d,%lld,%.0f,%.0f,%.0f,%.0f\n", std::string(schedule).c_str(),
              std::string(tactics).c_str(), static_cast<int>(p.core.conflicts.size()),
              static_cast<long long>(p.collectives.total()), mebibytes(p.cost.collective_bytes),
              mebibytes(replicated), mebibytes(p.cost.argument_bytes),
              mebibytes(p.cost.peak_bytes));
}

template <class... Tactics>
void compare(std::string_view name, const pt::program& p, const Tactics&... tactics) {
  print(name, "one by one", pt::partition(p, mesh, pt::schedule(tactics...)));
  print(name, "amalgamated",
        pt::partition(p, mesh, pt::schedule(pt::amalgamated("all", tactics...))));
}

}  // namespace

int main() {
  using namespace paper::diffusion;
  const pt::program step = paper::trace_training_step(paper::UNet);
  std::printf(
      "schedule,tactics,conflicts,collectives,collective_mib,replicated_mib,argument_mib,peak_"
      "mib\n");
  compare("BP", step, BP);
  compare("BP+Z2", step, BP, Z2);
  compare("BP+Z3", step, BP, Z3);
  compare("BP+MP", step, BP, MP);
  compare("BP+MP+Z3", step, BP, MP, Z3);
  return 0;
}
