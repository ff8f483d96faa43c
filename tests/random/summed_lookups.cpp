// Gathers at computed positions in sums and batches that run in steps: the program with its loops
// and the partitioned program compute the results of the source.
//
// The test prints which of them are not proved; their values are compared anyway.
//
// PARTITA_LOOKUP_CASES=n and PARTITA_LOOKUP_FIRST=s run n seeds from s on.
#include "summed_lookups.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <map>
#include <optional>
#include <string>

#include <partita/prove/prove.hpp>

#include "schedule.hpp"
#include "seeds.hpp"

namespace pt = partita;
using namespace random_test;
using data::str;

namespace {

struct statistics {
  long cases = 0, stepped = 0, sequences = 0, lookups_inside = 0, lookups_beside = 0,
       not_proved = 0;
  std::map<std::string, long> refusals;
} seen;

bool is_lookup(const pt::op_def* d) {
  return d == &def<op::dynamic_slice> || d == &def<op::dynamic_update_slice> ||
         d == &def<op::gather> || d == &def<op::scatter>;
}
void count_lookups(const pt::program& p, bool inside) {
  for (const auto& n : p.ops)
    if (is_lookup(n.def)) ++(inside ? seen.lookups_inside : seen.lookups_beside);
  for (const auto& each : p.regions) count_lookups(each, true);
}

/// Returns the error of a case under a schedule that was drawn for it, or "".
class check {
 public:
  std::string problem;

  check(const test_case& c, const std::vector<lookup_tactic>& schedule, bool count)
      : c_(c), count_(count) {
    for (lookup_tactic t : schedule) {
      std::erase_if(t.of, [&](const auto& each) { return !has_input(each.first); });
      if (!t.of.empty()) schedule_.push_back(t);
    }
    try {
      run();
    } catch (const std::exception& e) {
      problem = std::string("exception: ") + e.what();
    }
  }

 private:
  const test_case& c_;
  const bool count_;
  std::vector<lookup_tactic> schedule_;
  std::vector<pt::array> inputs_;
  std::optional<pt::results> expected_;

  bool has_input(std::string_view name) const {
    bool found = false;
    for (int i = 0; i < c_.p.input_count(); ++i) found = found || c_.p.input_name(i) == name;
    return found;
  }
  bool fail(const std::string& text) {
    if (problem.empty()) problem = text;
    return false;
  }
  bool compare(const pt::results& got, const char* what) {
    for (int i = 0; i < expected_->size(); ++i) {
      const auto v = c_.p.outputs[static_cast<std::size_t>(i)].value;
      const double bound = c_.info[static_cast<std::size_t>(v)].tolerance;
      const double difference = pt::max_difference(got[i], (*expected_)[i]);
      if (!(difference <= bound))
        return fail(std::string(what) + ": output " + std::to_string(i) + " differs by " +
                    std::to_string(difference));
    }
    return true;
  }
  void run() {
    if (const auto f = pt::verify(c_.p)) return static_cast<void>(fail(str(f.message)));
    inputs_ = arguments(c_);
    expected_.emplace(pt::evaluate(c_.p, inputs_));
    if (check_sequence()) check_partitioned();
  }
  /// Checks any loops over an axis as loops in time.
  bool check_sequence() {
    pt::core_program core(c_.p, c_.mesh, {.may_split = false});
    for (const auto& t : schedule_)
      for (const auto& [name, dim] : t.of)
        for (int i = 0; i < c_.p.input_count(); ++i)
          if (c_.p.input_name(i) == name)
            (void)core.tile(core.p.inputs[static_cast<std::size_t>(i)], dim, 0);
    core.propagate();
    const pt::sequential_program s = pt::in_sequence(core, 0);
    if (count_) seen.sequences += s.loops > 0;
    if (s.p.error) return fail("in_sequence: " + str(s.p.error.message));
    return compare(pt::evaluate(s.p, inputs_), "in_sequence");
  }
  bool check_partitioned() {
    data::random r{c_.seed * 171 + 3};
    pt::passes on = some_passes(c_, r);
    std::optional<pt::partitioned> made;
    try {
      made.emplace(pt::partition(
          c_.p, c_.mesh, schedule_,
          {.passes = on, .overlap = some_overlap(r), .verify = true, .prove = pt::no_proof}));
    } catch (const pt::error& e) {  // the tactics may be impossible
      const std::string code(e.code());
      if (count_) ++seen.refusals[code];
      for (const char* mistake : {"S003", "S004", "S005", "S012", "S013"})
        if (code == mistake) return true;
      return fail(std::string("schedule: ") + e.what());
    }
    if (count_) {
      seen.stepped += !(pt::print(made->source) == pt::print(made->sharded()));
      count_lookups(made->sharded(), false);
      const pt::verdict v = pt::prove(*made);
      seen.not_proved += !v.proved;
      if (!v.proved) std::cout << "seed " << c_.seed << ": " << str(v.error.message) << '\n';
    }
    return compare(pt::evaluate(made->sharded(), inputs_), "steps") &&
           compare(pt::temporal(*made, inputs_), "temporal") &&
           compare(pt::emulate(*made, inputs_), "emulate");
  }
};

std::string described(const std::vector<lookup_tactic>& schedule) {
  std::string out;
  for (const auto& t : schedule) {
    out += t.axis.empty() ? "microbatch(" + std::to_string(t.steps) + ")" : t.axis;
    for (const auto& [name, dim] : t.of) out += " " + name + ":" + std::to_string(dim);
    out += t.policy == pt::uneven::pad ? " pad\n" : "\n";
  }
  return out;
}

}  // namespace

TEST_CASE(
    "random gathers in sums and batches that run in steps compute the results of the source") {
  constexpr long default_cases = 800;
  const long first = number_from("PARTITA_LOOKUP_FIRST", first_of(default_cases)),
             cases = number_from("PARTITA_LOOKUP_CASES", default_cases);
  int failures = 0;
  for (long s = first; s < first + cases && failures < 5; ++s) {
    const test_case c = summed_lookups(static_cast<std::uint64_t>(s));
    const auto schedule = lookup_schedule(c);
    const std::string problem = check(c, schedule, true).problem;
    ++seen.cases;
    if (problem.empty()) continue;
    ++failures;
    const auto kind = problem.substr(0, problem.find(' '));
    const test_case small = shrink(c, [&](const test_case& t) {
      const auto again = check(t, schedule, false).problem;
      return again.substr(0, again.find(' ')) == kind;
    });
    FAIL_CHECK("PARTITA_LOOKUP_FIRST=", s, "\n", problem,
               "\nreduced: ", check(small, schedule, false).problem, "\n", describe(small),
               described(schedule));
  }
  CHECK(failures == 0);
  std::cout << seen.cases << " cases, " << seen.stepped << " in steps (" << seen.lookups_inside
            << " lookups in loops, " << seen.lookups_beside << " beside), " << seen.sequences
            << " sequences of loops, " << seen.not_proved << " not proved; refused:";
  for (const auto& [code, count] : seen.refusals) std::cout << ' ' << code << ' ' << count;
  std::cout << '\n';
  if (cases < 1000 || failures > 0) return;
  CHECK(2 * seen.stepped > seen.cases);
  CHECK(seen.sequences > seen.cases / 4);
  CHECK(seen.lookups_inside > seen.cases / 10);
  CHECK(seen.lookups_beside > seen.cases);
  CHECK(200 * seen.not_proved < seen.cases);
}
