// Training steps of the small models on XLA, without Python, sharded over four CPU devices.
#include <cstdlib>
#include <iostream>
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

template <class... Tactics>
void check(xla_tests::xla_test& t, std::string_view name, const pt::program& f, const pt::mesh& m,
           const Tactics&... tactics) {
  t.check(name, pt::partition(f, m, pt::schedule(tactics...)),
          models::inputs_of(f, [](std::string_view) { return 8; }));
}

}  // namespace

int main() {
  if (std::getenv("PARTITA_PJRT_PLUGIN") == nullptr) {
    std::cout << "skipped: PARTITA_PJRT_PLUGIN names no plugin\n";
    return 77;
  }
  xla_tests::xla_test t(pt::xla::client({}, {.devices = 4}), false);
#define PARTITA_MODEL(name, ...)                  \
  {                                               \
    using namespace small::name;                  \
    check(t, #name, traced(), mesh, __VA_ARGS__); \
  }
  PARTITA_MODEL(adapters, BP, MP, Z3)
  PARTITA_MODEL(contrastive, rows, BP)
  PARTITA_MODEL(diffusion, BP, MP, Z3)
  PARTITA_MODEL(experts, EP, DP)
  PARTITA_MODEL(llama, BP, MP, SP, Z3)
  PARTITA_MODEL(long_attention, ulysses, SP)
  PARTITA_MODEL(recurrence, BP, MP)
  PARTITA_MODEL(stacked, BP, Z3)
  PARTITA_MODEL(state_space, BP, MP)
  PARTITA_MODEL(vision, BP, MP, Z3)
#undef PARTITA_MODEL
  return t.differing() == 0 ? 0 : 1;
}
