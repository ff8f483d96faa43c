/// Code that the tests of the models share: inputs, and the comparison of two runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "inputs.hpp"

namespace models {

namespace pt = partita;

/// Returns the maximum magnitude of an array, infinite if it contains a NaN.
inline double size_of(const pt::array& a) { return pt::max_difference(a, pt::array(a.type())); }
/// Returns the maximum difference of two runs, relative to the maximum of each output. Some
/// gradients are zero but for roundings, such as that of the bias of keys, which a softmax ignores:
/// these are below 1e-12. All others are above 1e-7 in these tests.
inline double difference(const pt::results& a, const pt::results& b) {
  double worst = 0;
  for (int i = 0; i < a.size(); ++i)
    worst = std::max(worst, pt::max_difference(a[i], b[i]) / std::max(size_of(b[i]), 1e-8));
  return worst;
}

/// A program and its unpartitioned results.
class source {
 public:
  template <class Limit>
  source(pt::program p, const Limit& limit)
      : program_(std::move(p)), inputs_(inputs_of(program_, limit)) {
    whole_ = pt::evaluate(program_, inputs_);
    for (const pt::array& each : whole_) {  // all gradients are there
      CHECK(size_of(each) > 0);
      CHECK(size_of(each) < 1e6);
    }
  }

  /// Checks that the partitioned program gives the same results, and returns its collectives.
  ///
  /// Sums of several hundred binary32 numbers in another order, through about ten products forward
  /// and backward, differ by far less than 1e-4 of the maximum.
  template <class... Tactics>
  pt::collectives emulated(const pt::mesh& mesh, const Tactics&... tactics) const {
    return rewritten({}, mesh, tactics...).collectives;
  }
  /// The same with passes; returns the partitioned program.
  template <class... Tactics>
  pt::partitioned rewritten(const pt::passes& on, const pt::mesh& mesh,
                            const Tactics&... tactics) const {
    return checked(pt::partition(program_, mesh, pt::schedule(tactics...), {.passes = on}));
  }
  /// The same with collectives that overlap with kernels.
  template <class... Tactics>
  pt::partitioned overlapped(const pt::overlapping& how, const pt::mesh& mesh,
                             const Tactics&... tactics) const {
    return checked(pt::partition(program_, mesh, pt::schedule(tactics...), {.overlap = how}));
  }
  const pt::program& program() const { return program_; }
  const pt::results& whole() const { return whole_; }

 private:
  pt::program program_;
  std::vector<pt::array> inputs_;
  pt::results whole_;

  pt::partitioned checked(pt::partitioned p) const {
    CHECK(!pt::verify(p.device));
    CHECK(difference(pt::emulate(p, inputs_), whole_) < 1e-4);
    return p;
  }
};

}  // namespace models
