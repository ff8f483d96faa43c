// expect: S020 strict: "x" tensor<256x8xf32> is replicated along "M" by default: 2 copies of 2048
// expect: bytes, where 1024 bytes are allowed; shard it, or place it pt::replicated
#include "mlp.hpp"

#ifdef FAIL
constexpr auto said = pt::manual("M", {{"x", pt::unknown}});
#else
constexpr auto said = pt::manual("M", {{"x", pt::replicated}});
#endif

constexpr auto step = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP, said), {.strict = 1024});
};
static_assert(pt::check<step>.replicated_bytes == 2 * 256);
