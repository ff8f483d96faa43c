// Random programs, meshes and actions: the partitioned program computes what the source does.
//
// PARTITA_RANDOM_CASES=n runs the seeds 1 to n; PARTITA_RANDOM_SEED=s runs one case and prints it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>

#include "generator.hpp"

namespace pt = partita;
using namespace random_test;
using data::str;

namespace {

/// A user's tactic: actions from a list.
struct listed_tactic {
  const std::vector<random_action>* actions = nullptr;
  constexpr std::string_view name() const { return "listed"; }
  constexpr void apply(pt::tactic_context& c) const {
    for (const auto& a : *actions) {
      if (a.atomic)
        c.atomic(a.value, a.axis);
      else
        c.tile(a.value, a.dim, a.axis);
    }
    c.propagate();
  }
};
static_assert(pt::Tactic<listed_tactic>);

bool same_nest(const pt::nest& a, const pt::nest& b, int count) {
  for (int i = 0; i < count; ++i)
    if (a.loops[i].axis != b.loops[i].axis || a.loops[i].factor != b.loops[i].factor) return false;
  return true;
}

pt::collectives count_by_name(const pt::program& p) {
  pt::collectives n;
  for (const auto& op : p.ops)
    for (auto k : {pt::collective::all_gather, pt::collective::all_reduce,
                   pt::collective::reduce_scatter, pt::collective::all_to_all})
      if (op.def->name == name_of(k)) n.count(k);
  return n;
}

struct statistics {
  std::map<std::string_view, int> ops;
  long cases = 0, loops = 0, conflicts = 0, refused = 0, nested = 0;
  pt::collectives collectives;
} seen;

/// What is wrong with a case, or "".
std::string wrong(const test_case& c, bool count = false) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  try {
    if (const auto f = pt::verify(c.p)) return "source: " + str(f.message);
    const auto inputs = arguments(c);
    const pt::results expected = pt::evaluate(c.p, inputs);
    const auto compare = [&](const pt::results& got, const char* what) -> std::string {
      for (int i = 0; i < expected.size(); ++i) {
        const double tolerance = c.info[at(c.p.outputs[at(i)].value)].tolerance;
        if (got[i].type() != expected[i].type()) return std::string(what) + ": another type";
        const double difference = pt::max_difference(got[i], expected[i]);
        if (!(difference <= tolerance))
          return std::string(what) + ": output " + std::to_string(i) + " differs by " +
                 std::to_string(difference);
      }
      return "";
    };

    pt::core_program core(c.p, c.mesh);
    std::vector<std::vector<random_action>> done(c.tactics.size());
    for (std::size_t t = 0; t < c.tactics.size(); ++t) {
      core.tactic = static_cast<int>(t);
      const auto before = core.nests;
      for (const auto& a : c.tactics[t]) {
        const auto nests = core.nests;
        const auto logged = core.actions.size();
        const pt::failure f =
            a.atomic ? core.atomic(a.value, a.axis) : core.tile(a.value, a.dim, a.axis);
        if (!f) {
          done[t].push_back(a);
        } else {
          const std::string_view code = f.message.view().substr(0, 4);
          if (code != "S003" && code != "S004" && code != "S005") return str(f.message);
          if (core.nests.size() != nests.size() || core.actions.size() != logged)
            return "a refused action changed the program";
          if (count) ++seen.refused;
        }
      }
      core.propagate();
      for (std::size_t o = 0; o < before.size(); ++o)
        if (core.nests[o].count < before[o].count ||
            !same_nest(before[o], core.nests[o], before[o].count))
          return "a loop of op " + std::to_string(o) + " was removed or changed";
      const auto settled = core.nests;
      core.propagate();
      core.actions.pop_back();
      for (std::size_t o = 0; o < settled.size(); ++o)
        if (core.nests[o].count != settled[o].count) return "propagation had not come to an end";

      const pt::lowered l = pt::lower(core);
      if (const auto f = pt::verify(l.device.local)) return "device program: " + str(f.message);
      const auto counts = count_by_name(l.device.local);
      if (!(counts == l.counts) || static_cast<int>(l.notes.size()) != counts.total())
        return "the collectives are miscounted";
      if (!(pt::lower(core, {.fuse = true, .build = false}).counts == counts))
        return "collectives counted without building differ";
      for (int i = 0; i < c.p.input_count(); ++i)
        if (l.device.inputs[at(i)].local(c.p.input_type(i).shape, c.mesh) !=
            l.device.local.input_type(i).shape)
          return "an input's layout and local type differ";
      for (int i = 0; i < c.p.output_count(); ++i)
        if (l.device.outputs[at(i)].local(c.p.output_type(i).shape, c.mesh) !=
            l.device.local.output_type(i).shape)
          return "an output's layout and local type differ";
      if (c.mesh.devices() == 1 && counts.total() > 0) return "collectives on one device";
      if (auto text = compare(pt::emulate(l.device, inputs), "emulate"); !text.empty()) return text;

      if (t + 1 < c.tactics.size()) continue;
      for (std::size_t s = 0; s < done.size(); ++s)
        for (const auto& a : done[s])
          if (core.made(core.holder(a.value)).dim_of(a.axis) != (a.atomic ? -1 : a.dim))
            return "an action was undone";
      const pt::lowered mechanical = pt::lower(core, {.fuse = false});
      if (const auto f = pt::verify(mechanical.device.local))
        return "mechanical lowering: " + str(f.message);
      if (auto text = compare(pt::emulate(mechanical.device, inputs), "mechanical lowering");
          !text.empty())
        return text;
      if (count) {
        for (const auto& n : core.nests) seen.loops += n.count, seen.nested += n.count > 1;
        seen.conflicts += static_cast<long>(core.conflicts.size());
        for (const auto& n : c.p.ops) ++seen.ops[n.def->name];
        seen.collectives.all_gather += counts.all_gather;
        seen.collectives.all_reduce += counts.all_reduce;
        seen.collectives.reduce_scatter += counts.reduce_scatter;
        seen.collectives.all_to_all += counts.all_to_all;
      }
      if (c.seed % 4 != 0) continue;
      // The log replays, and a tactic of the user's that issues the actions does the same.
      const auto loops = pt::print_core(core);
      pt::core_program again(c.p, c.mesh);
      if (const auto f = pt::replay(again, c.p, pt::print_actions(core, c.p).view()))
        return "replay: " + str(f.message);
      if (!(pt::print_core(again) == loops)) return "replay gives other loops";
      if (c.tactics.size() == 1) {
        const auto p = pt::partition(c.p, c.mesh, pt::schedule(listed_tactic{&done[0]}));
        if (!(pt::print_core(p.core) == loops)) return "partition gives other loops";
        if (!(pt::print(p.device.local, &c.mesh) == pt::print(l.device.local, &c.mesh)))
          return "partition gives another program";
      }
      if (auto text =
              compare(pt::emulate(l.device, pt::run_options{.threads = 2, .fuse = false}, inputs),
                      "emulate, op by op");
          !text.empty())
        return text;
    }
  } catch (const std::exception& e) {
    return std::string("exception: ") + e.what();
  }
  return "";
}

std::optional<long> number_from(const char* name) {
  const char* s = std::getenv(name);
  if (s == nullptr || *s == 0) return std::nullopt;
  return std::atol(s);
}

void check_seed(std::uint64_t seed, int& failures) {
  const test_case c = generator(seed).make();
  const std::string problem = wrong(c, true);
  ++seen.cases;
  if (problem.empty()) return;
  ++failures;
  const std::string_view kind = std::string_view(problem).substr(0, problem.find(' '));
  const test_case small = shrink(c, [&](const test_case& t) {
    const std::string again = wrong(t);
    return std::string_view(again).substr(0, again.find(' ')) == kind;
  });
  FAIL_CHECK(
      "PARTITA_RANDOM_SEED=", seed, "\n", problem, "\nreduced: ", wrong(small), "\n",
      describe(small), "loops:\n", [&] {
        pt::core_program core(small.p, small.mesh);
        for (const auto& t : small.tactics) {
          for (const auto& a : t)
            (void)(a.atomic ? core.atomic(a.value, a.axis) : core.tile(a.value, a.dim, a.axis));
          core.propagate();
        }
        return str(pt::print_core(core, false)) + "device program:\n" +
               str(pt::print(pt::lower(core).device.local, &small.mesh));
      }());
}

}  // namespace

TEST_CASE("random programs: partitioned equals source") {
  int failures = 0;
  if (const auto seed = number_from("PARTITA_RANDOM_SEED")) {
    const test_case c = generator(static_cast<std::uint64_t>(*seed)).make();
    std::cout << describe(c);
    check_seed(static_cast<std::uint64_t>(*seed), failures);
    return;
  }
  const long cases = number_from("PARTITA_RANDOM_CASES").value_or(20000);
  for (long s = 1; s <= cases && failures < 5; ++s)
    check_seed(static_cast<std::uint64_t>(s), failures);
  CHECK(failures == 0);
  std::cout << seen.cases << " cases, " << seen.loops << " loops (" << seen.nested
            << " ops with nests), " << seen.conflicts << " conflicts, " << seen.refused
            << " actions refused; " << str(pt::concat(seen.collectives)) << '\n';
  if (cases < 500 || failures > 0) return;
  // The generator reaches everything.
  CHECK(seen.collectives.all_gather > 0);
  CHECK(seen.collectives.all_reduce > 0);
  CHECK(seen.collectives.reduce_scatter > 0);
  CHECK(seen.collectives.all_to_all > 0);
  CHECK(seen.conflicts > 0);
  CHECK(seen.nested > 0);
  for (const pt::op_def* d : pt::registry)
    if (d != &pt::def<pt::op::tiling>)
      CHECK_MESSAGE(seen.ops[d->name] > 0, d->name, " never occurs");
}
