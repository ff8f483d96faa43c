/// Chapter 6 of the guide: a model in four stages, its orders, their bubbles and their memory.
// ctest:
#include <array>
#include <cmath>
#include <iostream>
#include <tuple>

#include <partita/mpmd/check_pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/mpmd/print_pipeline.hpp>
#include <partita/partita.hpp>
#include <partita/report/pipeline_report.hpp>
#include <partita/report/pipeline_svg.hpp>

#include "guide.hpp"

namespace pt = partita;

struct layer {
  BOOST_HANA_DEFINE_STRUCT(layer, (pt::tensor<float, 4096, 16384>, up),
                           (pt::tensor<float, 16384, 4096>, down));
};
using weights = std::array<layer, 4>;

constexpr auto training_step = [](auto w, auto x) {
  const auto block = [](auto h, const auto& l) { return matmul(tanh(matmul(h, l.up)), l.down); };
  const auto loss = [&](const auto& params) {
    auto h = x;
    for (int i = 0; i < 4; ++i)
      h = pt::named("layers", i, block)(h, params[static_cast<std::size_t>(i)]);
    return sum(h * h);
  };
  const auto [value, g] = pt::value_and_grad(loss, w);
  return std::tuple{pt::output("w", pt::sgd(0.01f, w, g)), pt::output("loss", value)};
};
constexpr auto traced = [] {
  return pt::trace(training_step, pt::input<weights>("w"), pt::input<float, 32768, 4096>("x"));
};

constexpr pt::topology cluster{
    {"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}, {"m2", {{"B", 2}}}, {"m3", {{"B", 2}}}};

constexpr auto PP = [](auto order) {
  return pt::pipeline({.stages = {{"layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3"}},
                       .batch = {{"x", 0}},
                       .microbatches = 8,
                       .order = order},
                      "PP");
};
constexpr auto step = [] {
  return pt::partition(traced(), cluster, pt::schedule(PP(pt::one_f_one_b)));
};
static_assert(pt::check<step>.deadlock_free);
static_assert(pt::check<step>.order("m3") == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");

int main(int argc, char** argv) {
  guide::page page(argc, argv);
  const pt::program f = traced();
  const auto BP = pt::manual("B", {{"x", 0}}, "BP");
  const auto with = [&](auto order) {
    return pt::partition(f, cluster, pt::schedule(PP(order), BP));
  };
  const pt::pipelined gpipe = with(pt::gpipe), one = with(pt::one_f_one_b), zb = with(pt::zb_h1);
  for (const char* mesh : {"m0", "m1", "m2", "m3"})
    std::cout << mesh << ": " << one.order_of(mesh) << '\n';

  page.shows(R"(m0: F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7
m1: F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7
m2: F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7
m3: F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7
)");

  std::cout << guide::some_lines(pt::print(one), 8, 6);

  page.shows(R"(  %x14@m0 = microbatch_slice %x12@m0 : tensor<4096x4096xf32>
  %x16@m0, %x17@m0 = fragment<mesh="m0", origin=["layers.0"], stage=0, calls=8>(%x14@m0, %w.0.up@m0, %w.0.down@m0) {
    %x1 = matmul(%x14, %w.0.up) : tensor<2048x16384xf32>
    %x16 = tanh(%x1) : tensor<2048x16384xf32>
    %x17 = matmul(%x16, %w.0.down) : tensor<2048x4096xf32>
    return %x16 as "x16", %x17 as "x17" : tensor<2048x16384xf32>, tensor<2048x4096xf32>
  }
  %x17@m1 = transfer %x17@m0 : tensor<4096x4096xf32> [{"B"}, {}]
...
)");

  const auto line = [](const char* name, const pt::pipelined& p) {
    const pt::pipeline_time t = pt::simulate(p, pt::a100_80);
    std::cout << name << ": step " << std::lround(t.times.total * 1e3) << " ms, bubble "
              << std::lround(t.times.bubble_of_total() * 100) << " %, peak of m0 "
              << pt::memory_of(p)[0].peak / 1000000 << " MB\n";
  };
  line("GPipe", gpipe);
  line("1F1B", one);
  line("ZB-H1", zb);

  page.shows(R"(GPipe: step 175 ms, bubble 30 %, peak of m0 3154 MB
1F1B: step 189 ms, bubble 35 %, peak of m0 2617 MB
ZB-H1: step 151 ms, bubble 19 %, peak of m0 2617 MB
)");

  std::cout << guide::some_lines(pt::report(one), 6, 12);

  page.shows(
      R"(in all: 4 stages on 4 meshes, 8 microbatches, 14 functions, 48 messages of 3221225472 bytes
m0 {"B":2}:
  stages: 0; at most 4 microbatches in flight
  runs: F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7
  collectives: all_gather 0, all_reduce 2, reduce_scatter 0, all_to_all 0
  per device: arguments 805306368 bytes, peak 2617245696 bytes, in B0
...
)");
  page.picture("6_gpipe.svg", pt::pipeline_svg(gpipe, pt::simulate(gpipe, pt::a100_80)));
  page.picture("6_1f1b.svg", pt::pipeline_svg(one, pt::simulate(one, pt::a100_80)));
  page.picture("6_zb.svg", pt::pipeline_svg(zb, pt::simulate(zb, pt::a100_80)));
  return page.result();
}
