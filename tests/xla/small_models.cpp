// Forward passes and training steps of the small models on XLA, without Python, sharded over eight
// CPU devices.
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "../../examples/models/small/adapters.hpp"
#include "../../examples/models/small/contrastive.hpp"
#include "../../examples/models/small/diffusion.hpp"
#include "../../examples/models/small/experts.hpp"
#include "../../examples/models/small/llama.hpp"
#include "../../examples/models/small/long_attention.hpp"
#include "../../examples/models/small/recurrence.hpp"
#include "../../examples/models/small/stacked.hpp"
#include "../../examples/models/small/state_space.hpp"
#include "../../examples/models/small/vision.hpp"
#include "../models/inputs.hpp"
#include "xla_test.hpp"

namespace {

namespace pt = partita;

constexpr auto weights = pt::manual("B", {{"params", pt::first_divisible_dim}}, "Z3");
constexpr auto moments = pt::manual("B", {{"opt_state", pt::first_divisible_dim}}, "Z3 of Adam");
constexpr pt::mesh grid{{"B", 4}, {"M", 2}}, row{{"B", 8}};

/// The forward pass and the training step, on all devices of the client.
template <class Forward, class Step, class... Tactics>
void check(xla_tests::xla_test& t, const std::string& name, const Forward& forward,
           const Step& step, const pt::mesh& m, const Tactics&... tactics) {
  t.verdict(name + " on all devices", m.devices() == t.ranks() ? "" : "other devices");
  for (const bool training : {false, true}) {
    const pt::program f = training ? step() : forward();
    const bool adam = pt::print(f).view().find("opt_state") != std::string_view::npos;
    t.check(name + (training ? ", training step" : ", forward"),
            adam ? pt::partition(f, m, pt::schedule(tactics..., moments))
                 : pt::partition(f, m, pt::schedule(tactics...)),
            models::inputs_of(f, [](std::string_view) { return 8; }));
  }
}
template <class Params, class WithBatch>
auto forward_of(const WithBatch& with_batch) {
  return [&] {
    return with_batch([](const auto& loss, const auto&... batch) {
      return pt::trace(loss, pt::input<Params>("params"), batch...);
    });
  };
}

}  // namespace

int main() {
  if (std::getenv("PARTITA_PJRT_PLUGIN") == nullptr) {
    std::cout << "skipped: PARTITA_PJRT_PLUGIN names no plugin\n";
    return 77;
  }
  xla_tests::xla_test t(pt::xla::client({}, {.devices = 8}), false);
  const auto data = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
#define PARTITA_MODEL(name, params, mesh, ...)                                               \
  {                                                                                          \
    using namespace small::name;                                                             \
    check(t, #name, forward_of<small::name::params>(with_batch), traced, mesh, __VA_ARGS__); \
  }
  PARTITA_MODEL(adapters, adapters, grid, BP, MP, Z3)
  PARTITA_MODEL(contrastive, parameters, row, rows, BP)
  PARTITA_MODEL(diffusion, parameters, grid, BP, MP, weights)
  PARTITA_MODEL(experts, parameters, (pt::mesh{{"E", 4}, {"M", 2}}), EP, DP,
                pt::manual("M", {{"params.up", 2}}, "MP"))
  PARTITA_MODEL(llama, parameters, grid, BP, MP, SP, weights)
  PARTITA_MODEL(long_attention, parameters, (pt::mesh{{"B", 2}, {"S", 4}}), data, ulysses, SP)
  PARTITA_MODEL(recurrence, parameters, grid, BP, MP)
  PARTITA_MODEL(stacked, stack, row, BP, weights)
  PARTITA_MODEL(state_space, parameters, grid, BP, MP)
  PARTITA_MODEL(vision, parameters, grid, BP, MP, weights)
#undef PARTITA_MODEL
  return t.differing() == 0 ? 0 : 1;
}
