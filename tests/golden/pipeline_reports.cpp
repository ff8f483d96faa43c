// What the library says of programs on several meshes: what is replicated by default, why each
// collective and each transfer is there, and what differs between two of them.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <partita/mpmd/check_pipeline.hpp>
#include <partita/partita.hpp>
#include <partita/report/pipeline_explain.hpp>

#include "../data.hpp"
#include "../two_stages.hpp"

namespace pt = partita;
using namespace two_stages;
using data::str;

namespace {

std::string strict_error(std::int64_t bytes) {
  try {
    (void)partitioned({.strict = bytes}, PP, BP, MP);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "no error";
}

constexpr auto strict_step = [] { return partitioned({.strict = 256}, PP, BP, MP, Z3); };
static_assert(pt::check<strict_step>.deadlock_free);

}  // namespace

TEST_CASE("strict: what meshes replicate by default, by the sizes that they have") {
  CHECK(strict_error(1024) == "no error");
  CHECK(
      strict_error(128) ==
      R"(S020 strict: "x" tensor<32x8xf32> is replicated along "M" by default on mesh "m0": 2 copies of 256 bytes, where 128 bytes are allowed, and 2 more values are; shard it, or place it pt::replicated)");
  // w1 is in 4 copies on m0, w2 in 2 on m1, since "B" has these sizes there.
  CHECK(str(pt::print_replicated(partitioned({}, PP, BP, MP), 7)) ==
        R"(256 bytes  x 2 copies  %x    parameter         tensor<32x8xf32>   on m0 along "M"
128 bytes  x 4 copies  %w1   parameter         tensor<8x8xf32>    on m0 along "B"
256 bytes  x 2 copies  %x4   reshape           tensor<8x4x8xf32>  on m0 along "M"
256 bytes  x 2 copies  %x5   transpose         tensor<4x8x8xf32>  on m0 along "M"
128 bytes  x 4 copies  %w1'  subtract          tensor<8x8xf32>    on m0 along "B"
128 bytes  x 2 copies  %w2   parameter         tensor<8x8xf32>    on m1 along "B"
128 bytes  x 2 copies  %x11  broadcast_in_dim  tensor<8x8xf32>    on m1 along "M"
and 4 more, 200 bytes
replicated by default: 1480 bytes on one device, in 11 values
)");
  // A mesh of one device replicates nothing, whatever axes the others have.
  const pt::topology single{{"m0", {{"B", 4}}}, {"m1", {{"M", 1}}}};
  for (const auto& v : pt::replicated_by_default(pt::partition(traced(), single, pt::schedule(PP))))
    CHECK(v.mesh == 0);
  CHECK_NOTHROW(pt::partition(traced(), {{"m0", {{"B", 1}}}, {"m1", {{"M", 1}}}},
                              pt::schedule(PP, BP), {.strict = 0}));
}
