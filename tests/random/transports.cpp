// Random partitioned programs on several processes, which are threads with blocks of devices: each
// computes the bits of the emulator. Programs, meshes and tactics are those of random.cpp,
// including padding, parts of axes, loops, passes and overlap.
#include <doctest/doctest.h>

#include <optional>

#include "../thread_processes.hpp"
#include "generator.hpp"
#include "schedule.hpp"
#include "seeds.hpp"

namespace pt = partita;
using namespace random_test;

namespace {

long runs = 0;  // with any number of processes

std::string problem_on(const pt::device_program& d, const std::vector<pt::array>& inputs) {
  std::optional<std::vector<pt::array>> want;
  std::string problem;
  for (std::int64_t count = 2; problem.empty() && count <= 8; ++count) {
    if (count > d.mesh.devices() || !thread_processes::divides(d.mesh, count)) continue;
    if (!want) want = pt::executable(d)(inputs);
    problem = thread_processes::problem_of(d, inputs, *want, count);
    ++runs;
  }
  return problem.empty() ? problem : problem + "\n" + data::str(pt::print(d));
}
/// Checks by actions, and by a schedule of tactics, passes and overlap.
std::string problem_of(std::uint64_t seed) {
  const test_case c = generator(seed).make();
  const std::vector<pt::array> inputs = arguments(c);
  pt::core_program core(c.p, c.mesh, some_core_options(c));
  for (const auto& tactic : c.tactics) {
    for (const auto& a : tactic) (void)apply(core, a);
    core.propagate();
  }
  if (const auto problem = problem_on(pt::lower(core).device, inputs); !problem.empty())
    return problem;
  data::random r{seed * 171 + 3};
  const auto tactics = draw_schedule(c, r);
  const pt::partition_options options{.passes = some_passes(c, r), .overlap = some_overlap(r)};
  std::optional<pt::partitioned> made;
  try {
    made.emplace(pt::partition(c.p, c.mesh, tactics, options));
  } catch (const pt::error&) {  // refused tactics: see random.cpp
    return "";
  }
  return problem_on(made->device, inputs);
}

}  // namespace

TEST_CASE("random programs on 2 to 8 processes compute the bits of the emulator") {
  const long cases = for_each_seed(300, problem_of);
  CHECK(runs > cases);
}
