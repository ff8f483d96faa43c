// Gathers in a pipeline's stage whose rows and batch are sharded along one axis of its mesh.
#include <doctest/doctest.h>

#include <tuple>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

TEST_CASE("rows of a stage's gathers stay in place, in each microbatch") {
  const auto front = [](auto u, auto at) { return pt::take<0>(u, at); };
  const auto back = [](auto h, auto v) {
    const auto y = matmul(h, v);
    return pt::sum<0, 1>(y * y);
  };
  const pt::program f = pt::trace(
      [&](auto t, auto w, auto i) {
        const auto loss = [&](auto params) {
          return pt::named("back", back)(pt::named("front", front)(std::get<0>(params), i),
                                         std::get<1>(params));
        };
        const auto [dt, dw] = pt::grad(loss, std::tuple{t, w});
        return std::tuple{pt::output("t", t - dt), pt::output("w", w - dw)};
      },
      pt::input<float, 64, 4>("t"), pt::input<float, 4, 4>("w"), pt::input<std::int32_t, 16>("i"));
  const auto sent = [&](bool keep) {
    const pt::pipelined p =
        pt::partition(f, pt::topology{{"m0", {{"B", 4}}}, {"m1", {{"B", 4}}}},
                      pt::schedule(pt::pipeline({.stages = {{"front"}, {"back"}},
                                                 .batch = {{"i", 0}},
                                                 .microbatches = 2,
                                                 .order = pt::one_f_one_b},
                                                "PP"),
                                   pt::manual("B", {{"i", 0}, {"t", 0}})),
                      {.passes = {.stationary_rows = keep}});
    const auto x = data::arguments(f);
    CHECK(pt::equal(pt::emulate(p, x), pt::evaluate(f, x)));
    CHECK(str(pt::prove(p).error.message) == "");
    std::int64_t bytes = 0;
    for (const auto& unit : p.units) bytes += pt::estimate(unit.device).collective_bytes;
    return bytes;
  };
  const std::int64_t off = sent(false), on = sent(true);
  CHECK_MESSAGE(on < off, on, " bytes, without it ", off);
}
