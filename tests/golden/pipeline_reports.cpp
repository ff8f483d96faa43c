// Reports on programs over several meshes: values replicated by default, the reason for each
// collective and each transfer, and the difference between two programs.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <partita/mpmd/check_pipeline.hpp>
#include <partita/partita.hpp>
#include <partita/report/pipeline_diff.hpp>
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
constexpr auto plain_step = [] { return partitioned({}, PP, BP, MP); };
constexpr auto explained_step = [] { return partitioned({}, PP, BP, MP, Z3); };

const pt::pipeline_options unsharded{
    .where = {.names = {{"front", "m0"}, {"back", "m1"}}}, .microbatches = 4, .batch = {{"x", 0}}};

}  // namespace

TEST_CASE("strict: values that a mesh replicates by default, with the sizes on that mesh") {
  CHECK(strict_error(1024) == "no error");
  CHECK(
      strict_error(128) ==
      R"(S020 strict: "x" tensor<32x8xf32> is replicated along "M" by default on mesh "m0": 2 copies of 256 bytes, where 128 bytes are allowed, and 2 more values are; shard it, or place it pt::replicated)");
  // w1 has 4 copies on m0 and w2 has 2 on m1, since "B" has these sizes there.
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
  // A mesh of one device replicates nothing, whatever axes the other meshes have.
  const pt::topology single{{"m0", {{"B", 4}}}, {"m1", {{"M", 1}}}};
  for (const auto& v : pt::replicated_by_default(pt::partition(traced(), single, pt::schedule(PP))))
    CHECK(v.mesh == 0);
  CHECK_NOTHROW(pt::partition(traced(), {{"m0", {{"B", 1}}}, {"m1", {{"M", 1}}}},
                              pt::schedule(PP, BP), {.strict = 0}));
}

TEST_CASE("explain: the reason for each collective and each transfer") {
  const pt::pipelined p = partitioned({}, PP, BP, MP, Z3);
  CHECK(
      str(pt::explain(p)) ==
      R"(m0  forward of stage 0        all_gather <"B">      %w1     96 bytes  x4  Z3  matmul(%x7, %w1) in front needs it unsharded: its loop over "B" does not slice it
m1  forward of stage 1        all_gather <"B">      %w2     64 bytes  x4  Z3  matmul(%x9, %w2) in back needs it unsharded: its loop over "B" does not slice it
m1  forward of stage 1        all_reduce <"M">      %x12   128 bytes  x4  MP  matmul(%x9, %w2) in back leaves a sum over "M"
m1  call outside of the loop  all_reduce <"B">      %loss    4 bytes  x1  BP  reduce(%x13) leaves a sum over "B"
m1  backward of stage 1       all_gather <"B">      %w2     64 bytes  x4  Z3  dot_general(%x16, %w2) in the gradient of back needs it unsharded: its loop over "B" does not slice it (backward of matmul(%x9, %w2))
m1  call outside of the loop  reduce_scatter <"B">  %x24    64 bytes  x1  Z3  dot_general(%x9, %x16) in the gradient of back leaves a sum over "B", which its uses slice (backward of matmul(%x9, %w2))
m0  call outside of the loop  reduce_scatter <"B">  %x25    96 bytes  x1  Z3  dot_general(%x7, %x21) in the gradient of front leaves a sum over "B", which its uses slice (backward of matmul(%x7, %w1))
transfers:
  m0 -> m1  %x9   256 bytes  x4  [{"B"}, {"M"}], resharded  for forward of stage 1, backward of stage 1
  m1 -> m0  %x18  256 bytes  x4  [{"B"}, {"M"}], resharded  for backward of stage 0
in all:
  m0  all_gather       x4   384 bytes
  m0  reduce_scatter   x1    96 bytes
  m0  all              x5   480 bytes
  m1  all_gather       x8   512 bytes
  m1  all_reduce       x5   516 bytes
  m1  reduce_scatter   x1    64 bytes
  m1  all             x14  1092 bytes
)");
  CHECK(pt::explain<explained_step>() == pt::explain(p).view());
  // The layout, and the ops that use a value, on its own mesh and on the meshes that it is sent to.
  CHECK(str(pt::explain(p, "w1")) == R"(%w1 : tensor<8x8xf32>
input "w1" on m0 [{"B"}, {"M"}], tensor<2x4xf32> on each device
used by forward of stage 0, call outside of the loop
transfers: none
collectives:
  m0  forward of stage 0  all_gather <"B">  %w1  96 bytes  x4  Z3  matmul(%x7, %w1) in front needs it unsharded: its loop over "B" does not slice it
%w1' : tensor<8x8xf32>
computed by call outside of the loop on m0 [{"B"}, {"M"}], tensor<2x4xf32> on each device
output "w1" on m0 [{"B"}, {"M"}], tensor<2x4xf32> on each device
transfers: none
collectives: none
)");
  CHECK(str(pt::explain(p, "%x9")) == R"(%x9 : tensor<8x8xf32>, for each of 4 microbatches
computed by forward of stage 0 on m0 [{"B"}, {"M"}], tensor<2x4xf32> on each device
used by forward of stage 1, backward of stage 1, backward of stage 0
transfers:
  m0 -> m1  %x9  256 bytes  x4  [{"B"}, {"M"}], resharded  for forward of stage 1, backward of stage 1
collectives: none
)");
  CHECK(str(pt::explain(p, "x24")) == R"(%x24 : tensor<8x8xf32>
computed by call outside of the loop on m1 [{"M"}, {"B"}], tensor<4x4xf32> on each device
used by call outside of the loop
transfers: none
collectives:
  m1  call outside of the loop  reduce_scatter <"B">  %x24  64 bytes  x1  Z3  dot_general(%x9, %x16) in the gradient of back leaves a sum over "B", which its uses slice (backward of matmul(%x9, %w2))
)");
  CHECK(
      str(pt::explain(p, "w3")) ==
      R"(error: O149 explain: the pipeline has no value "w3"; give an input, an output, or a name in the printed pipeline; known: x, w1, w2, loss; did you mean "w1"?
)");
  for (const char* name : {"w1", "w2", "%w1'"})
    CHECK(str(pt::explain(p, "w*")).find(str(pt::explain(p, name)).substr(0, 60)) !=
          std::string::npos);
  // Without shardings there are only transfers.
  CHECK(str(pt::explain(partitioned({}, PP))) == R"(transfers:
  m0 -> m1  %x9   256 bytes  x4  [{}, {}]  for forward of stage 1, backward of stage 1
  m1 -> m0  %x18  256 bytes  x4  [{}, {}]  for backward of stage 0
in all:
  m0  all  x0  0 bytes
  m1  all  x0  0 bytes
)");
  CHECK(str(pt::explain(pt::pipeline(traced(), cluster, pt::gpipe, unsharded), "loss")) ==
        R"(%loss : tensor<f32>
computed by call outside of the loop on m1
output "loss" on m1
used by call outside of the loop
transfers: none
collectives: none
)");
}

TEST_CASE("diff: the changes from one pipeline to another") {
  const pt::pipelined plain = partitioned({}, PP, BP, MP), p = partitioned({}, PP, BP, MP, Z3);
  CHECK(str(pt::diff(plain, p)) == R"(schedule: PP, BP, MP -> PP, BP, MP, Z3
all_gather: 0 -> 12
all_reduce: 7 -> 5
reduce_scatter: 0 -> 2
m0 all_gather: 0 -> 4
m0 all_reduce: 1 -> 0
m0 reduce_scatter: 0 -> 1
m0 bytes sent: 192 -> 480
m0 argument bytes: 384 -> 288
m0 peak bytes: 1088 -> 992
m1 all_gather: 0 -> 8
m1 all_reduce: 6 -> 5
m1 reduce_scatter: 0 -> 1
m1 bytes sent: 644 -> 1092
m1 argument bytes: 128 -> 64
m1 peak bytes: 836 -> 900
input "w1": m0 [{}, {"M"}] tensor<8x4xf32> -> m0 [{"B"}, {"M"}] tensor<2x4xf32>
input "w2": m1 [{"M"}, {}] tensor<4x8xf32> -> m1 [{"M"}, {"B"}] tensor<4x4xf32>
output "w1": m0 [{}, {"M"}] tensor<8x4xf32> -> m0 [{"B"}, {"M"}] tensor<2x4xf32>
output "w2": m1 [{"M"}, {}] tensor<4x8xf32> -> m1 [{"M"}, {"B"}] tensor<4x4xf32>
collectives that only one has:
- m1 call outside of the loop all_reduce <"B"> %x24 128 bytes x1 MP dot_general(%x9, %x16) in the gradient of back leaves a sum over "B" (backward of matmul(%x9, %w2))
- m0 call outside of the loop all_reduce <"B"> %x25 192 bytes x1 MP dot_general(%x7, %x21) in the gradient of front leaves a sum over "B" (backward of matmul(%x7, %w1))
+ m0 forward of stage 0 all_gather <"B"> %w1 96 bytes x4 Z3 matmul(%x7, %w1) in front needs it unsharded: its loop over "B" does not slice it
+ m1 forward of stage 1 all_gather <"B"> %w2 64 bytes x4 Z3 matmul(%x9, %w2) in back needs it unsharded: its loop over "B" does not slice it
+ m1 backward of stage 1 all_gather <"B"> %w2 64 bytes x4 Z3 dot_general(%x16, %w2) in the gradient of back needs it unsharded: its loop over "B" does not slice it (backward of matmul(%x9, %w2))
+ m1 call outside of the loop reduce_scatter <"B"> %x24 64 bytes x1 Z3 dot_general(%x9, %x16) in the gradient of back leaves a sum over "B", which its uses slice (backward of matmul(%x9, %w2))
+ m0 call outside of the loop reduce_scatter <"B"> %x25 96 bytes x1 Z3 dot_general(%x7, %x21) in the gradient of front leaves a sum over "B", which its uses slice (backward of matmul(%x7, %w1))
)");
  CHECK(pt::diff<plain_step, explained_step>() == pt::diff(plain, p).view());
  CHECK(str(pt::diff(p, p)) == "no difference\n");
  // More microbatches, and other meshes for the stages.
  const auto turned = [](int microbatches) {
    return pt::partition(traced(), {{"m1", {{"B", 4}}}, {"m0", {{"B", 4}}}},
                         pt::schedule(stages_of(microbatches), BP));
  };
  CHECK(str(pt::diff(turned(4), turned(8), 1)) == R"(microbatches: 4 -> 8
messages: 8 -> 16
m1 runs: F0 F1 B0 F2 B1 F3 B2 B3 -> F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7
m1 peak bytes: 1600 -> 1440
m0 runs: F0 B0 F1 B1 F2 B2 F3 B3 -> F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7
m0 peak bytes: 1092 -> 932
transfers that only one has:
- m1 -> m0 %x9 256 bytes x4 [{"B"}, {}] for forward of stage 1, backward of stage 1
- and 1 more
+ m1 -> m0 %x9 128 bytes x8 [{"B"}, {}] for forward of stage 1, backward of stage 1
+ and 1 more
)");
  CHECK(str(pt::diff(partitioned({}, PP, BP), turned(4), 2)) ==
        R"(topology: {"m0": {"B":4, "M":2}, "m1": {"B":2, "M":2}} -> {"m1": {"B":4}, "m0": {"B":4}}
m0 stages: 0 -> 1
m0 runs: F0 F1 B0 F2 B1 F3 B2 B3 -> F0 B0 F1 B1 F2 B2 F3 B3
m0 all_reduce: 1 -> 2
m0 bytes sent: 384 -> 390
m0 argument bytes: 512 -> 256
m0 peak bytes: 1600 -> 1092
m0 microbatches in flight: 2 -> 1
m1 stages: 1 -> 0
m1 runs: F0 B0 F1 B1 F2 B2 F3 B3 -> F0 F1 B0 F2 B1 F3 B2 B3
m1 all_reduce: 2 -> 1
m1 bytes sent: 260 -> 384
m1 argument bytes: 256 -> 512
m1 peak bytes: 1412 -> 1600
m1 microbatches in flight: 1 -> 2
input "x": m0 [{"B"}, {}] tensor<8x8xf32> -> m1 [{"B"}, {}] tensor<8x8xf32>
input "w1": m0 [{}, {}] tensor<8x8xf32> -> m1 [{}, {}] tensor<8x8xf32>
and 1 more inputs
output "loss": m1 [] tensor<f32> -> m0 [] tensor<f32>
output "w1": m0 [{}, {}] tensor<8x8xf32> -> m1 [{}, {}] tensor<8x8xf32>
and 1 more outputs
transfers that only one has:
- m0 -> m1 %x9 256 bytes x4 [{"B"}, {}], resharded for forward of stage 1, backward of stage 1
- m1 -> m0 %x18 256 bytes x4 [{"B"}, {}], resharded for backward of stage 0
+ m1 -> m0 %x9 256 bytes x4 [{"B"}, {}] for forward of stage 1, backward of stage 1
+ m0 -> m1 %x18 256 bytes x4 [{"B"}, {}] for backward of stage 0
collectives that only one has:
- m1 call outside of the loop all_reduce <"B"> %loss 4 bytes x1 BP reduce(%x13) leaves a sum over "B"
- m1 call outside of the loop all_reduce <"B"> %x24 256 bytes x1 BP dot_general(%x9, %x16) in the gradient of back leaves a sum over "B" (backward of matmul(%x9, %w2))
- and 1 more
+ m0 call outside of the loop all_reduce <"B"> %loss 6 bytes x1 BP reduce(%x13) leaves a sum over "B"
+ m0 call outside of the loop all_reduce <"B"> %x24 384 bytes x1 BP dot_general(%x9, %x16) in the gradient of back leaves a sum over "B" (backward of matmul(%x9, %w2))
+ and 1 more
)");
}
