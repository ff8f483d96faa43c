// Programs of every kind on XLA, without Python: the plugin of $PARTITA_PJRT_PLUGIN with eight CPU
// devices. Results agree with `emulate`. Without a plugin: exit status 77, which skips the test.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <partita/xla.hpp>

#include "../backend_programs.hpp"

using namespace backend_programs;

namespace {

static_assert(pt::BackendExecutable<pt::xla::executable>);

/// The allowed difference, relative to the largest element of an output: XLA's kernels round in
/// other places, and sums of 16-bit floats over devices are rounded at each step.
double tolerance(pt::dtype t) {
  return t == pt::dtype::bf16 ? 0.05 : t == pt::dtype::f16 ? 0.01 : pt::is_floating(t) ? 1e-4 : 0;
}
double largest(const pt::array& a) {
  const pt::array wide = pt::as_type(a, pt::dtype::f64);
  double most = 0;
  for (std::int64_t i = 0; i < wide.size(); ++i)
    most = std::max(most, std::abs(wide.data<double>()[i]));
  return most;
}
/// Real numbers below 1/2, so that a softmax has more than one element that counts.
void scale_down(std::vector<pt::array>& x) {
  for (pt::array& a : x)
    if (pt::is_floating(a.element())) {
      pt::array wide = pt::as_type(a, pt::dtype::f64);
      for (std::int64_t i = 0; i < wide.size(); ++i) wide.mutable_data<double>()[i] /= 8;
      a = pt::as_type(wide, a.element());
    }
}

class xla_test {
 public:
  explicit xla_test(pt::xla::client c) : client_(std::move(c)) {}
  int ranks() const { return client_.devices(); }
  int differing() const { return differing_; }

  void verdict(std::string_view name, const std::string& problem) {
    std::cout << (problem.empty() ? "ok " : "DIFFERS ") << name
              << (problem.empty() ? "" : ": " + problem) << std::endl;
    differing_ += problem.empty() ? 0 : 1;
  }
  /// `steps` runs; after the first, inputs with a next value take it.
  template <class Partitioned>
  void check(std::string_view name, const Partitioned& p, std::vector<pt::array> x, int steps = 1,
             const pt::run_options& = {}) {
    std::string problem;
    scale_down(x);
    try {
      const pt::xla::executable run(p, client_);
      const pt::vec<int> inputs = pt::reused_inputs(p.source);
      pt::xla::sharded_state state;
      for (int step = 0; step < steps; ++step) {
        std::vector<pt::array> others;  // that no output is the next value of
        for (int i = 0; i < p.source.input_count(); ++i)
          if (std::find(inputs.begin(), inputs.end(), i) == inputs.end())
            others.push_back(x[static_cast<std::size_t>(i)]);
        state = step == 0 ? run(x) : run(state.next(), others);
        const pt::results want = pt::emulate(p, x);
        for (int o = 0; o < want.size(); ++o) {
          const pt::array got = run.whole(state.values()[static_cast<std::size_t>(o)]);
          const double allowed = tolerance(want[o].element()) * largest(want[o]);
          if (const auto close = pt::all_close(got, want[o], 0, allowed); !close)
            problem += "output " + want.names()[static_cast<std::size_t>(o)] + " of step " +
                       std::to_string(step) + ": " + close.apart() + "; ";
          if (inputs[o] >= 0) x[static_cast<std::size_t>(inputs[o])] = want[o];
        }
      }
    } catch (const pt::error& e) {
      problem += e.what();
    }
    verdict(name, problem);
  }
  template <class Partitioned>
  void check(std::string_view name, const Partitioned& p, int steps = 1) {
    check(name, p, arguments(p.source), steps);
  }

 private:
  pt::xla::client client_;
  int differing_ = 0;
};

}  // namespace

int main() {
  if (std::getenv("PARTITA_PJRT_PLUGIN") == nullptr) {
    std::cout << "skipped: PARTITA_PJRT_PLUGIN names no plugin\n";
    return 77;
  }
  xla_test t(pt::xla::client({}, {.devices = 4}));
  check_all(t);
  return t.differing() == 0 ? 0 : 1;
}
