/// Trains a small network on XLA, and on emulated devices beside it: the program of the guide's
/// chapter 9. The argument, or $PARTITA_PJRT_PLUGIN, is the path of a PJRT plugin.
///
///   mlp_xla /path/to/xla_cpu_pjrt.so
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <tuple>

#include <partita/emulated.hpp>
#include <partita/partita.hpp>
#include <partita/xla.hpp>

namespace pt = partita;

// One step of gradient descent. An output with the name of an input is its next value.
constexpr auto sgd_step = [](auto w1, auto w2, auto x, auto y) {
  const auto loss = [&](auto weights) {
    const auto& [a, b] = weights;
    const auto error = matmul(pt::tanh(matmul(x, a)), b) - y;
    return sum(error * error) * (1.0 / 64);
  };
  const auto weights = std::tuple{w1, w2};
  const auto gradients = pt::grad(loss, weights);
  return std::tuple{pt::output("w1", w1 - 0.1 * std::get<0>(gradients)),
                    pt::output("w2", w2 - 0.1 * std::get<1>(gradients)),
                    pt::output("loss", loss(weights))};
};

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");

constexpr auto step = [] {
  auto f = pt::trace(sgd_step, pt::input<float, 8, 32>("w1"), pt::input<float, 32, 1>("w2"),
                     pt::input<float, 64, 8>("x"), pt::input<float, 64, 1>("y"));
  return pt::partition(f, mesh, pt::schedule(BP, MP));
};

static_assert(pt::expect<pt::check<step>.input("w1").local_shape, pt::shape{8, 16}>);
static_assert(pt::check<step>.collectives.all_gather == 0);

// Runs on every backend: the state stays on the devices.
float train(const pt::BackendExecutable auto& run, const pt::array& w1, const pt::array& w2,
            const pt::array& x, const pt::array& y) {
  auto state = run.place(w1, w2);
  float loss = 0;
  for (int i = 0; i < 100; ++i) {
    const auto out = run(state, x, y);
    loss = *run.whole(out["loss"]).template data<float>();
    state = out.next();
  }
  return loss;
}

namespace {

pt::array made(const pt::shape& s, auto f) {
  pt::array a(pt::tensor_type{pt::dtype::f32, s});
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.mutable_data<float>()[i] = static_cast<float>(f(static_cast<double>(i)));
  return a;
}

}  // namespace

int main(int argc, char** argv) try {
  const pt::array w1 = made({8, 32}, [](double i) { return 0.3 * std::sin(1.7 * i); });
  const pt::array w2 = made({32, 1}, [](double i) { return 0.3 * std::cos(2.3 * i); });
  const pt::array x = made({64, 8}, [](double i) { return std::sin(0.37 * i * i); });
  const pt::array y = made({64, 1}, [](double i) { return std::sin(0.2 * i); });

  const pt::emulated::executable here(step());
  const float expected = train(here, w1, w2, x, y);

  const pt::xla::client devices(argc > 1 ? argv[1] : "", {.devices = 8});
  const pt::xla::executable there(step(), devices);
  const float found = train(there, w1, w2, x, y);

  std::cout << "loss after 100 steps: " << expected << " emulated, " << found << " on "
            << devices.devices() << " devices of platform " << devices.platform() << '\n';
  for (const auto& program : there.compiled())
    std::cout << "memory of a device: " << program.memory.arguments << " bytes of arguments, "
              << program.memory.temporary << " temporary\n";
  return std::abs(expected - found) < 1e-4f ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
