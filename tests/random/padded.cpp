// Small programs of floats of any value, with any dimension padded: padding is never part of a
// result, whatever infinities and NaN it meets.
//
// PARTITA_PADDED_CASES=n runs the seeds 1 to n, with PARTITA_PADDED_FIRST=s those from s on.
#include <doctest/doctest.h>

#include <iostream>
#include <string>

#include "generator.hpp"
#include "seeds.hpp"

namespace pt = partita;
using namespace random_test;
using data::str;

namespace {

pt::core_program acted(const test_case& c) {
  pt::core_program core(c.p, c.mesh);
  for (const auto& tactic : c.tactics) {
    for (const auto& a : tactic)
      if (a.possible(c.mesh)) (void)apply(core, a);
    core.propagate();
  }
  return core;
}

/// Returns the error of a case, or "".
std::string wrong(const test_case& c) {
  const auto inputs = arguments(c);
  const pt::results expected = pt::evaluate(c.p, inputs);
  const pt::core_program core = acted(c);
  const auto same = [&](const pt::results& got) {
    for (int i = 0; i < expected.size(); ++i) {
      const auto v = c.p.outputs[static_cast<std::size_t>(i)].value;
      const double tolerance = c.info[static_cast<std::size_t>(v)].tolerance;
      if (tolerance == 0 ? !same_bits(got[i], expected[i])
                         : !(pt::max_difference(got[i], expected[i]) <= tolerance))
        return false;
    }
    return true;
  };
  try {
    if (!same(pt::temporal(core, inputs))) return "temporal differs";
    const pt::lowered l = pt::lower(core);
    if (l.error) return str(l.error.message);
    if (const auto fault = pt::verify(l.device)) return str(fault.message);
    if (!same(pt::emulate(l.device, inputs))) return "emulate differs";
  } catch (const std::exception& e) {
    return std::string("exception: ") + e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("random programs of infinities and NaN: padding is not part of a result") {
  const long first = number_from("PARTITA_PADDED_FIRST", 1),
             cases = number_from("PARTITA_PADDED_CASES", 4000);
  int failures = 0;
  long padded = 0, masked = 0;
  for (long s = first; s < first + cases && failures < number_from("PARTITA_PADDED_FAILURES", 5);
       ++s) {
    const test_case c = generator(static_cast<std::uint64_t>(s)).make_padded();
    const std::string problem = wrong(c);
    const pt::core_program core = acted(c);
    padded += core.padded();
    for (pt::op_id o = 0; o < core.p.op_count(); ++o)
      masked += core.inserted(o) == pt::padding_record::kind::mask;
    if (problem.empty()) continue;
    ++failures;
    const test_case small = shrink(
        c, [&](const test_case& t) { return wrong(t).substr(0, 8) == problem.substr(0, 8); });
    FAIL_CHECK("seed ", s, ": ", problem, "\nreduced: ", wrong(small), "\n", describe(small),
               "loops:\n", str(pt::print_core(acted(small), false)), "device program:\n",
               str(pt::print(pt::lower(acted(small)).device)));
  }
  CHECK(failures == 0);
  std::cout << cases << " cases, " << padded << " padded, " << masked << " masks\n";
  if (cases < 1000 || failures > 0) return;
  CHECK(3 * padded > cases);
  CHECK(masked > 0);
}
