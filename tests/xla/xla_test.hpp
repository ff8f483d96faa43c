// Runs programs on XLA and compares them with `emulate`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/xla.hpp>

#include "../backend_programs.hpp"

namespace xla_tests {

namespace pt = partita;

/// The allowed difference, relative to the largest element of an output: XLA's kernels round in
/// other places, and sums of 16-bit floats over devices are rounded at each step.
inline double tolerance(pt::dtype t) {
  return t == pt::dtype::bf16 ? 0.05 : t == pt::dtype::f16 ? 0.01 : pt::is_floating(t) ? 1e-4 : 0;
}
inline double largest(const pt::array& a) {
  const pt::array wide = pt::as_type(a, pt::dtype::f64);
  double most = 0;
  for (std::int64_t i = 0; i < wide.size(); ++i)
    most = std::max(most, std::abs(wide.data<double>()[i]));
  return most;
}
/// Real numbers below 1/2, so that a softmax has more than one element that counts.
inline void scale_down(std::vector<pt::array>& x) {
  for (pt::array& a : x)
    if (pt::is_floating(a.element())) {
      pt::array wide = pt::as_type(a, pt::dtype::f64);
      for (std::int64_t i = 0; i < wide.size(); ++i) wide.mutable_data<double>()[i] /= 8;
      a = pt::as_type(wide, a.element());
    }
}

inline pt::array reversed(const pt::array& a) {
  pt::array out(a.type());
  const auto size = static_cast<std::size_t>(pt::size_of(a.element()));
  const auto count = static_cast<std::size_t>(a.size());
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(out.mutable_bytes() + i * size, a.bytes() + (count - 1 - i) * size, size);
  return out;
}

class xla_test {
 public:
  /// `scale`: real inputs are divided by 8.
  explicit xla_test(pt::xla::client c, bool scale = true) : client_(std::move(c)), scale_(scale) {}
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
    if (scale_) scale_down(x);
    try {
      const pt::xla::executable run(p, client_);
      const pt::vec<int> inputs = pt::reused_inputs(p.source);
      pt::xla::sharded_state state;
      for (int step = 0; step < steps; ++step) {
        std::vector<pt::array> others;  // that no output is the next value of
        for (int i = 0; i < p.source.input_count(); ++i)
          if (std::find(inputs.begin(), inputs.end(), i) == inputs.end()) {
            pt::array& each = x[static_cast<std::size_t>(i)];
            if (step > 0) each = reversed(each);  // each step has another batch
            others.push_back(each);
          }
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
    check(name, p, backend_programs::arguments(p.source), steps);
  }

 private:
  pt::xla::client client_;
  bool scale_;
  int differing_ = 0;
};

}  // namespace xla_tests
