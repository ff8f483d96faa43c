/// Laws of rewrites of pipelines: rematerialized forwards, absorbed units, merged units, joined
/// calls. Each rewritten pipeline computes the same, is proved, and lists and exports its calls. No
/// mutant that computes something else is proved.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/run/pipeline.hpp>
#include <partita/run/refute_pipeline.hpp>

#include "../data.hpp"
#include "../exported_check.hpp"
#include "../mutants/pipelines.hpp"
#include "seeds.hpp"

namespace random_test {

namespace pt = partita;

struct merging_statistics {
  long again = 0, absorbed = 0, merged = 0, circles = 0, tried = 0, joint = 0, joint_circles = 0,
       calls = 0, functions = 0, of_microbatches = 0, mutants = 0, mutants_proved = 0,
       mutants_refuted = 0, proved = 0, not_proved = 0;

  friend std::ostream& operator<<(std::ostream& out, const merging_statistics& s) {
    return out << s.again << " with forwards run again, " << s.absorbed << " units absorbed, "
               << s.merged << " with units merged by lot, " << s.circles << " that cannot be; "
               << s.tried << " with calls joined by lot, " << s.joint_circles << " that cannot be, "
               << s.joint << " that are: " << s.calls << " joint calls of " << s.functions
               << " functions, " << s.of_microbatches << " of several microbatches; " << s.proved
               << " proved, " << s.not_proved << " not proved; " << s.mutants << " mutants, "
               << s.mutants_proved << " proved, which compute the same, " << s.mutants_refuted
               << " refuted";
  }
};

/// The laws for one case: its inputs, the right results, and the source of random numbers.
class merging_laws {
 public:
  using same = std::function<bool(const pt::results&)>;

  merging_laws(const std::vector<pt::array>& inputs, same is_expected, data::random& r,
               std::uint64_t seed, merging_statistics& seen)
      : x_(inputs), is_expected_(std::move(is_expected)), r_(r), seed_(seed), seen_(seen) {}

  /// Counts whether the pipeline is proved; a right one has to be.
  bool proved(const pt::pipelined& p) {
    const pt::verdict v = pt::prove(p);
    ++(v ? seen_.proved : seen_.not_proved);
    if (!v) MESSAGE("seed ", seed_, " is not proved: ", data::str(v.error.message));
    return v.proved;
  }
  /// Rematerializes forwards, absorbs and merges random units, where channels have enough capacity;
  /// then joins calls.
  std::string problem_of_units(pt::pipelined p) {
    p.channels.capacity = pt::unbounded;
    const auto together = units_by_lot();
    if (r_.one_in(2)) {
      p = pt::rematerialized(p);
      ++seen_.again;
      if (const std::string s = problem(p, "with forwards run again"); !s.empty()) return s;
    }
    if (r_.one_in(2)) {
      const pt::pipelined fewer = pt::absorbed(p);
      seen_.absorbed += static_cast<long>(p.units.size() - fewer.units.size());
      if (pt::absorbed(fewer).units.size() != fewer.units.size()) return "units left to absorb";
      p = fewer;
      if (const std::string s = problem(p, "of absorbed units"); !s.empty()) return s;
    }
    pt::pipelined q;
    try {
      q = pt::merged(p, together);
    } catch (const pt::error& e) {
      ++seen_.circles;
      return e.code() == "O126" ? "" : e.what();
    }
    if (q.units.size() != p.units.size()) {
      ++seen_.merged;
      if (const std::string s = problem(q, "of merged units"); !s.empty()) return s;
    }
    return problem_of_calls(std::move(q));
  }
  /// Joins random calls of any microbatches.
  std::string problem_of_calls(pt::pipelined p) {
    p.channels.capacity = pt::unbounded;
    ++seen_.tried;
    pt::pipelined q;
    try {
      q = pt::merged(p, calls_by_lot());
    } catch (const pt::error& e) {
      ++seen_.joint_circles;
      return e.code() == "O126" ? "" : e.what();
    }
    if (q.joint_calls.empty()) return "";
    ++seen_.joint;
    seen_.calls += static_cast<long>(q.joint_calls.size());
    seen_.functions += static_cast<long>(q.joint_functions.size());
    for (const auto& f : q.joint_functions) {
      if (pt::failure wrong = pt::verify(f.whole.device); wrong) return data::str(wrong.message);
      seen_.of_microbatches += f.parts[0].ahead != f.parts.back().ahead;
    }
    if (const std::string s = problem(q, "of joint calls"); !s.empty()) return s;
    if (seed_ % 4 == 0)
      if (const pt::refutation wrong = pt::refute(q, {.seeds = 2}); wrong.error)
        return "joint calls: " + data::str(wrong.error.message);
    if (const std::string s = problem_of_peak(q); !s.empty()) return "joint calls: " + s;
    if (seed_ <= mutated_cases())
      if (const std::string s = problem_of_mutants(q); !s.empty()) return "joint calls: " + s;
    return "";
  }
  /// Checks that the values at each peak add up to it.
  std::string problem_of_peak(const pt::pipelined& p) const {
    for (const auto& m : pt::peaks_of(p)) {
      std::int64_t all = m.running, of_arguments = 0;
      if (m.memory.arguments < 0 || m.memory.peak < m.memory.arguments) return "negative memory";
      for (const auto& h : m.held) {
        if (h.count < 1 || h.bytes <= 0) return "nothing is held";
        all += h.bytes;
        of_arguments += h.kind == pt::held_kind::argument ? h.bytes : 0;
      }
      if (of_arguments != m.memory.arguments) return "arguments are not all that lies there";
      if (all != m.memory.peak)
        return "of " + std::to_string(m.memory.peak) + " bytes there are " + std::to_string(all);
    }
    return "";
  }
  /// Checks that no mutant that computes something else is proved.
  std::string problem_of_mutants(const pt::pipelined& p) {
    constexpr std::uint64_t of_each = 20;
    for (std::uint64_t i = 0; i < of_each; ++i) {
      pt::pipelined q = p;
      const int kind = mutants::mutate(q, seed_ * of_each + i);
      if (kind < 0) continue;
      ++seen_.mutants;
      const pt::judgement j = pt::prove_or_refute(q, {}, {.seeds = 4});
      seen_.mutants_refuted += j.kind == pt::verdict_kind::refuted;
      if (j.kind != pt::verdict_kind::proved) continue;
      ++seen_.mutants_proved;
      // (Over the real numbers 0 times NaN is 0, and sums are equal in any order: by elements, a
      // program is proved whose devices round a replicated value differently.)
      const bool as_reals = pt::prove(q).by_elements;
      if (const pt::refutation wrong = pt::refute(q, {.seeds = 4}); wrong.refuted) {
        if (as_reals && std::isnan(wrong.got)) continue;
        return "mutant " + std::to_string(i) + " (" +
               std::string(mutants::pipeline_kinds[kind].name) +
               ") is proved and refuted: " + data::str(wrong.error.message);
      }
      if (as_reals) continue;  // (refute has compared its numbers)
      if (!is_expected_(pt::emulate(q, x_)))
        return "mutant " + std::to_string(i) + " (" +
               std::string(mutants::pipeline_kinds[kind].name) + ") is proved";
    }
    return "";
  }

  /// The number of seeds whose pipelines are also mutated, from the first on:
  /// PARTITA_MUTATED_CASES.
  static std::uint64_t mutated_cases() {
    return static_cast<std::uint64_t>(number_from("PARTITA_MUTATED_CASES", 200));
  }

 private:
  const std::vector<pt::array>& x_;
  same is_expected_;
  data::random& r_;
  std::uint64_t seed_;
  merging_statistics& seen_;

  /// Checks that units verify, results are right in both modes, and the pipeline is proved and
  /// exported.
  std::string problem(const pt::pipelined& p, const std::string& what) {
    for (const auto& u : p.units)
      if (pt::failure f = pt::verify(u.device)) return data::str(f.message);
    if (!proved(p)) return "not proved " + what;
    if (!is_expected_(pt::emulate(p, x_))) return "another result " + what;
    if (!is_expected_(pt::emulate(p, pt::mesh_mode::threads, x_)))
      return "another result " + what + ", in threads";
    return exported_check::fault_of(p);
  }
  static constexpr std::uint64_t mixed(std::uint64_t h, int each) {
    return (h + static_cast<std::uint64_t>(each) + 9) * 0x9e3779b97f4a7c15u;
  }
  using chance = std::function<bool(const pt::fragment_call&, const pt::fragment_call&)>;

  /// Returns random units of one microbatch.
  chance units_by_lot() {
    const std::int64_t lot = r_.in(0, 1 << 20), rare = r_.in(2, 8);
    return [=](const pt::fragment_call& a, const pt::fragment_call& b) {
      if (a.microbatch != b.microbatch) return false;
      std::uint64_t h = static_cast<std::uint64_t>(lot);
      for (const int each : {a.stage, a.transposed, static_cast<int>(a.part), b.stage, b.transposed,
                             static_cast<int>(b.part)})
        h = mixed(h, each);
      return (h >> 40) % static_cast<std::uint64_t>(rare) == 0;
    };
  }
  /// Returns random calls of any microbatches, or the same calls of each pair.
  chance calls_by_lot() {
    const std::int64_t lot = r_.in(0, 1 << 20), rare = r_.in(2, 40);
    const bool near = r_.one_in(2);
    return [=](const pt::fragment_call& a, const pt::fragment_call& b) {
      std::uint64_t h = static_cast<std::uint64_t>(lot);
      for (const int each :
           {a.stage, a.transposed, static_cast<int>(a.part), b.stage, b.transposed,
            static_cast<int>(b.part), near ? b.microbatch - a.microbatch : a.microbatch,
            near ? a.microbatch / 2 - b.microbatch / 2 : b.microbatch})
        h = mixed(h, each);
      return (h >> 40) % static_cast<std::uint64_t>(rare) == 0;
    };
  }
};

}  // namespace random_test
