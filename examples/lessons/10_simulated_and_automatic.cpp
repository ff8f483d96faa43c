/// Lesson 10: what a step takes on a real device, and a search for the strategy.
///
/// Learnt: `check<thunk, device>` and `print_simulation` tell time and memory of a step after
/// each tactic; `automatic` is a tactic that searches for what `manual` would say, alone or
/// between tactics by hand, and tells what it found.
///
/// Printed: the simulation of a schedule by hand, what the search found, and both times.
// ctest:
#include <iostream>
#include <tuple>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>

namespace pt = partita;

constexpr auto training_step = [](auto x, auto w1, auto w2) {
  const auto loss = [&](const auto& w) {
    const auto y = matmul(pt::nn::gelu(matmul(x, std::get<0>(w))), std::get<1>(w));
    return mean(y * y);
  };
  const auto g = pt::grad(loss, std::tuple{w1, w2});
  return std::tuple{pt::output("w1", w1 - 0.1f * std::get<0>(g)),
                    pt::output("w2", w2 - 0.1f * std::get<1>(g))};
};
constexpr auto traced = [] {
  return pt::trace(training_step, pt::input<float, 65536, 1024>("x"),
                   pt::input<float, 1024, 4096>("w1"), pt::input<float, 4096, 1024>("w2"));
};
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto by_hand = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };

// Bounds on a device, as constants.
static_assert(pt::check<by_hand, pt::a100_80>.fits);
static_assert(pt::check<by_hand, pt::a100_80>.step_time < 0.1);  // seconds

int main() {
  std::cout << pt::print_simulation(by_hand(), pt::a100_80) << '\n';

  pt::search_result found;
  const auto A = pt::automatic({"B", "M"}, pt::a100_80, {.evaluations = 500, .result = &found});
  const pt::partitioned p = pt::partition(traced(), mesh, pt::schedule(A));
  std::cout << "found:\n" << pt::print_specification(found);

  const double before = pt::simulate(by_hand().device, pt::a100_80).time;
  const double after = pt::simulate(p.device, pt::a100_80).time;
  std::cout << "by hand " << before * 1e3 << " ms, found " << after * 1e3 << " ms\n";
  return after <= before ? 0 : 1;
}
