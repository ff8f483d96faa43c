/// Measures what halos are worth: the U-Net's training step at full size with the rows of its
/// images sharded, with and without the exchange of borders between neighbours. Prints CSV with
/// sizes per device.
#include <cstdio>

#include "../examples/models/unet.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"batch", 8}, {"space", 4}};

void print(const char* name, const pt::program& p, bool halos, const auto&... tactics) {
  pt::core_program core(p, mesh, {.halos = halos});
  pt::tactic_context context(core);
  (tactics.apply(context), ...);
  context.error.raise();
  const pt::lowered l = pt::lower(core);
  const pt::cost cost = pt::estimate(l.device);
  double permuted = 0;  // bytes
  for (const auto& n : l.notes)
    if (n.kind == pt::collective::permute) permuted += static_cast<double>(n.bytes * n.times);
  std::printf(
      "%s,%lld,%lld,%lld,%.0f,%.0f,%.0f,%.0f\n", name, static_cast<long long>(l.counts.all_gather),
      static_cast<long long>(l.counts.all_reduce), static_cast<long long>(l.counts.permute),
      permuted / (1 << 20), static_cast<double>(cost.collective_bytes) / (1 << 20),
      static_cast<double>(cost.peak_bytes) / (1 << 20), static_cast<double>(cost.flops) / 1e9);
}

}  // namespace

int main() {
  using namespace paper::diffusion;
  const pt::program step = paper::trace_training_step(paper::UNet);
  std::printf("schedule,all_gather,all_reduce,permute,permute_mib,collective_mib,peak_mib,gflop\n");
  print("BP", step, true, BP);
  print("BP+space without halos", step, false, BP, space);
  print("BP+space", step, true, BP, space);
  return 0;
}
