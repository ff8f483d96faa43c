/// Chapter 5 of the guide: a training step, sharded states, microbatches and rematerialization.
// ctest:
#include <array>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <tuple>
#include <vector>

#include <partita/emulated.hpp>
#include <partita/partita.hpp>
#include <partita/report/memory_svg.hpp>

#include "guide.hpp"

namespace pt = partita;

struct layer {
  BOOST_HANA_DEFINE_STRUCT(layer, (pt::tensor<float, 64, 256>, up),
                           (pt::tensor<float, 256, 64>, down));
};
using weights = std::array<layer, 4>;

constexpr auto loss_of = [](const auto& params, auto x) {
  auto h = x;
  for (const auto& l : params) h = h + matmul(tanh(matmul(h, l.up)), l.down);
  return mean(h * h);
};
constexpr auto training_step = [](auto params, auto velocity, auto x) {
  const auto loss = [&](const auto& p) { return loss_of(p, x); };
  const auto [value, gradients] = pt::value_and_grad(loss, params);
  const auto [next, next_velocity] = pt::sgd(0.1f, {.momentum = 0.9}, params, gradients, velocity);
  return std::tuple{pt::output("params", next), pt::output("velocity", next_velocity),
                    pt::output("loss", value)};
};
template <int Batch>
constexpr auto traced = [] {
  return pt::trace(training_step, pt::input<weights>("params"),
                   pt::input("velocity", pt::momentum_state_for(weights{})),
                   pt::input<float, Batch, 64>("x"));
};
constexpr pt::mesh mesh{{"B", 8}};

constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z2 = pt::manual("B", {{"params", pt::replicated}, {"velocity", 0}}, "Z2");
constexpr auto Z3 = pt::manual("B", {{"params", 0}, {"velocity", 0}}, "Z3");
constexpr auto MB = pt::microbatch(8, {{"x", 0}}, "MB");
constexpr auto R = pt::remat({"params"}, "R");

// Small numbers of both signs.
pt::array numbers(const pt::tensor_type& type) {
  pt::array a(type);
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.mutable_data<float>()[i] = static_cast<float>(i * 37 % 31 - 15) / 256;
  return a;
}

int main(int argc, char** argv) {
  guide::page page(argc, argv);
  const pt::program f = traced<8192>();
  const auto with = [&](auto... tactics) {
    return pt::partition(f, mesh, pt::schedule(tactics...));
  };
  const pt::partitioned batch = with(BP);
  std::cout << guide::some_lines(pt::explain(batch), 3);

  page.shows(R"(all_reduce <"B">  %x18       7 bytes  x1  BP  reduce(%x17) leaves a sum over "B"
all_reduce <"B">  %x28  114688 bytes  x1  BP  dot_general(%x14, %x27) leaves a sum over "B" (backward of
        matmul(%x14, %params.3.down))
all_reduce <"B">  %x34  114688 bytes  x1  BP  dot_general(%x12, %x33) leaves a sum over "B" (backward of
        matmul(%x12, %params.3.up))
...
)");

  const auto line = [](const char* tactics, const pt::partitioned& p) {
    const auto& c = p.collectives;
    std::cout << std::left << std::setw(7) << tactics << std::right << std::setw(3) << c.all_reduce
              << " AR" << std::setw(3) << c.reduce_scatter << " RS" << std::setw(4) << c.all_gather
              << " AG, KiB: sent" << std::setw(6) << p.cost.collective_bytes / 1024 << ", arguments"
              << std::setw(5) << p.cost.argument_bytes / 1024 << ", peak" << std::setw(6)
              << p.cost.peak_bytes / 1024 << ", Mflop" << std::setw(5) << p.cost.flops / 1000000
              << '\n';
  };

  line("BP", with(BP));
  line("BP, Z2", with(BP, Z2));
  line("BP, Z3", with(BP, Z3));
  line("Z3", with(Z3));

  page.shows(R"(BP       9 AR  0 RS   0 AG, KiB: sent   896, arguments 1280, peak  7488, Mflop  777
BP, Z2   1 AR  8 RS   8 AG, KiB: sent   896, arguments  832, peak  6976, Mflop  776
BP, Z3   1 AR  8 RS  15 AG, KiB: sent  1288, arguments  384, peak  6592, Mflop  776
Z3       4 AR  3 RS   7 AG, KiB: sent 43092, arguments 2176, peak 20608, Mflop  780
)");

  std::cout << pt::print_peak(batch, 5);

  page.shows(R"(peak: 7667716 bytes while %x30 = dot_general runs, op 47 of 109
  parameters        524288 bytes   6.8 %
  optimizer state   524288 bytes   6.8 %
  inputs            262144 bytes   3.4 %
  activations      4980736 bytes  65.0 %
  gradients          65536 bytes   0.9 %
  temporaries      1310724 bytes  17.1 %
largest values there:
  1048576 bytes  %x2   tanh         tensor<1024x256xf32>  activations
  1048576 bytes  %x6   tanh         tensor<1024x256xf32>  activations
  1048576 bytes  %x10  tanh         tensor<1024x256xf32>  activations
  1048576 bytes  %x14  tanh         tensor<1024x256xf32>  activations
  1048576 bytes  %x30  dot_general  tensor<1024x256xf32>  temporaries
)");

  line("BP, MB", with(BP, MB));

  page.shows(R"(BP, MB   9 AR  0 RS   0 AG, KiB: sent   896, arguments 1280, peak  2880, Mflop  778
)");

  const pt::partitioned again = with(BP, R);
  line("BP, R", again);
  std::cout << again.tactics[1].notes[0] << '\n';

  page.shows(R"(BP, R    9 AR  0 RS   0 AG, KiB: sent   896, arguments 1280, peak  4352, Mflop  946
recomputes 10 ops of 4 scopes: 1351090176 more flop and 126156800 more bytes read and written; peak of the unsharded
        program 53477380 -> 28311556 bytes
)");

  const pt::partitioned p = pt::partition(traced<64>(), mesh, pt::schedule(BP, Z3));
  std::vector<pt::array> start;  // params and velocity, leaf by leaf
  for (int i = 0; i + 1 < p.source.input_count(); ++i)
    start.push_back(i < 8 ? numbers(p.source.input_type(i)) : pt::array(p.source.input_type(i)));
  const pt::array x = numbers(p.source.input_type(p.source.input_count() - 1));

  pt::results r = pt::emulate(p, start, x);
  for (int i = 1; i < 3; ++i)
    r = pt::emulate(p, std::vector<pt::array>(r.begin(), r.end() - 1), x);  // all but the loss

  const pt::emulated::executable run(p);
  auto state = run.place(start);
  for (int i = 0; i < 3; ++i) state = run(state, x).next();

  page.expect(pt::equal(run.whole(state["loss"]), r["loss"]), "both ways compute the same loss");
  page.expect(r["loss"].item<float>() < pt::emulate(p, start, x)["loss"].item<float>(),
              "the loss falls");

  page.picture("5_memory_BP.svg", pt::memory_svg(with(BP).device));
  page.picture("5_memory_MB.svg", pt::memory_svg(with(BP, MB).device));
  page.picture("5_memory_R.svg", pt::memory_svg(with(BP, R).device));
  return page.result();
}
