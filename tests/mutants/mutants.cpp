// Mutants of device-local programs: running both programs shows which mutants compute something
// else than the source.
//
// PARTITA_MUTANTS=n makes n mutants of programs of at most 120 ops on 16 devices; of all programs
// with PARTITA_MUTANTS_OF=all; from random program m on with PARTITA_MUTANTS_FIRST=m.
// PARTITA_MUTANTS_STEPS=n tries them element by element up to n steps. (The default is 3 million.
// With prove's own 25 million, mutants of the small UNet would take seconds each and dominate the
// time.) PARTITA_MUTANT_SUBJECT=s makes mutants of random program s only, and prints them.
// PARTITA_PROVED_CASES=n proves the partitioned programs of n random cases, from number m on with
// PARTITA_PROVED_FIRST=m, and lists those that are not proved.
#include <doctest/doctest.h>

#include <cmath>
#include <iostream>

#include "../random/seeds.hpp"
#include "mutants.hpp"
#include "subjects.hpp"

#include <partita/run/refute.hpp>

using namespace mutants;
using data::str;

namespace {

constexpr long default_mutants = 3000;
constexpr int of_random_program = 50, of_model = 50;
constexpr int refuted_of = 20;  ///< one mutant in this number, per kind, is run for refutation too

struct counts {
  long made = 0, refused = 0, equal = 0, different = 0, unknown = 0, proved = 0;
  long refuted = 0, refuted_though_equal = 0;
  counts& operator+=(const counts& c) {
    made += c.made, refused += c.refused, proved += c.proved;
    equal += c.equal, different += c.different, unknown += c.unknown;
    refuted += c.refuted, refuted_though_equal += c.refuted_though_equal;
    return *this;
  }
};
std::ostream& operator<<(std::ostream& out, const counts& c) {
  return out << c.made << " (" << c.equal << " equal, of which " << c.proved << " are proved, "
             << c.different << " different, of which " << c.refuted << " are refuted, " << c.unknown
             << " unknown), and refused by verify " << c.refused;
}

struct statistics {
  counts by_kind[kind_count];
  long random_programs = 0, models = 0, tries = 0, not_proved = 0, wrong = 0;
  long not_finite = 0;  ///< proved by elements, but infinities or NaN differ
  long rounded = 0;     ///< proved and equal over the real numbers, but roundings differ

  counts total() const {
    counts all;
    for (const auto& c : by_kind) all += c;
    return all;
  }
} seen;

std::string layouts(const pt::device_program& d) {
  pt::text out;
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    out << d.local.input_name(static_cast<int>(i)) << ": " << d.input_types[i] << ' ';
    pt::print_layout(out, d.inputs[i], d.input_types[i].shape.rank, d.mesh);
    out << '\n';
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) {
    out << "-> " << d.local.output_name(static_cast<int>(i)) << ": " << d.output_types[i] << ' ';
    pt::print_layout(out, d.outputs[i], d.output_types[i].shape.rank, d.mesh);
    out << '\n';
  }
  return str(out);
}

pt::verdict proved(const subject& s, const pt::device_program& d) {
  static const long steps = random_test::number_from("PARTITA_MUTANTS_STEPS", 3'000'000);
  try {
    const pt::verdict v = pt::prove(s.source, d, {.most_elements = steps});
    // (Otherwise a claim is unsound: the elements contradict it. See prove/overclaimed.cpp.)
    CHECK_MESSAGE(!str(v.error.message).starts_with("Q016"), s.name, ": ", str(v.error.message),
                  "\n", str(pt::print(s.source)), str(pt::print(d)), layouts(d));
    return v;
  } catch (const std::exception& e) {
    FAIL_CHECK(s.name, ": prove throws: ", std::string(e.what()), "\n", str(pt::print(d)));
    return {};
  }
}
void check_unchanged(subject& s) {
  CHECK_MESSAGE(!pt::verify(s.device), s.name);
  CHECK_MESSAGE(s.numbers.compare(s.device) == reference::same, s.name);
  const pt::refutation wrong = pt::refute(s.source, s.device);
  CHECK_MESSAGE(!wrong.refuted, s.name, ": ", str(wrong.error.message));
  const pt::verdict v = proved(s, s.device);
  seen.not_proved += !v.proved;
  if (!v.proved) std::cout << s.name << " is not proved: " << str(v.error.message) << '\n';
}
/// Prints the first mutant of a subject in full.
void fail_on(const subject& s, const mutant& m) {
  static std::string last;
  ++seen.wrong;
  const bool again = s.name == last;
  last = s.name;
  if (again) return;
  FAIL_CHECK(s.name, ": proved, and computes something else: ", kinds[m.kind].name, "\n",
             str(pt::print(s.source)), str(pt::print(s.device)), layouts(s.device), "the mutant:\n",
             str(pt::print(m.program)), layouts(m.program));
}
void count(subject& s, const mutant& m) {
  seen.tries += m.tries;
  if (m.kind < 0) return;
  counts& c = seen.by_kind[m.kind];
  if (pt::verify(m.program)) return static_cast<void>(++c.refused);
  ++c.made;
  const pt::verdict v = proved(s, m.program);
  const bool is_proved = v.proved;
  reference::answer a =
      is_proved ? s.numbers.compare_more(m.program) : s.numbers.compare(m.program);
  if (v.by_elements && a == reference::different) {
    a = s.numbers.compare_finite(s.source, m.program);
    seen.not_finite += a == reference::same;
  }
  if (is_proved && a == reference::different) {
    a = s.numbers.compare_as_reals(s.source, m.program, v.by_elements);
    seen.rounded += a == reference::same;
  }
  ++(a == reference::same ? c.equal : a == reference::different ? c.different : c.unknown);
  if (is_proved && a == reference::different) return fail_on(s, m);
  c.proved += is_proved && a == reference::same;
  if (c.made % refuted_of != 0) return;
  const pt::refutation found = pt::refute(s.source, m.program);
  // (By elements they are equal over the real numbers.)
  const bool refuted = found.refuted, finite = std::isfinite(found.expected - found.got);
  CHECK_MESSAGE(!(refuted && is_proved && (finite || !v.by_elements)), s.name,
                ": proved and refuted: ", kinds[m.kind].name, ": ", str(found.error.message), "\n",
                str(pt::print(m.program)));
  c.refuted += refuted && a == reference::different;
  c.refuted_though_equal += refuted && a == reference::same;
}
void mutate(subject& s, int number, std::uint64_t seed) {
  for (int i = 0; i < number; ++i)
    count(s, make_mutant(s.device, seed * 1000000 + static_cast<std::uint64_t>(i)));
}
bool mutate_random(std::uint64_t seed) {
  const maybe_subject s = random_subject(seed);
  if (s == nullptr) return false;
  ++seen.random_programs;
  check_unchanged(*s);
  mutate(*s, of_random_program, seed);
  return true;
}
void mutate_model(const auto& m, std::uint64_t seed) {
  const maybe_subject s = subject_of(m);
  ++seen.models;
  check_unchanged(*s);
  mutate(*s, of_model, seed);
}

/// Prints one random program and its mutants; those that are proved and differ, in full.
void show(std::uint64_t seed) {
  const maybe_subject s = random_subject(seed);
  if (s == nullptr) return;
  std::cout << str(pt::print(s->source)) << str(pt::print(s->device)) << layouts(s->device);
  check_unchanged(*s);
  mutate(*s, of_random_program, seed);
}

}  // namespace

TEST_CASE("all partitioned random programs are proved") {
  const long cases = random_test::number_from("PARTITA_PROVED_CASES", 500);
  const long first = random_test::number_from("PARTITA_PROVED_FIRST", 1);
  long made = 0, not_proved = 0, too_large = 0, by_elements = 0;
  const auto prove = [&](std::uint64_t seed, const auto& partition) {
    try {
      const auto c = random_test::generator(seed).make();
      if (c.mesh.rank == 0) return;
      data::random r{seed * 71 + 3};
      const pt::device_program d = partition(c, r);
      const pt::verdict v = pt::prove(c.p, d);
      ++made;
      not_proved += !v.proved;
      too_large += v.undecided && str(v.error.message).ends_with("(prove_options.most_elements)");
      by_elements += v.by_elements;
      if (!v.proved) std::cout << "seed " << seed << ": " << str(v.error.message) << '\n';
    } catch (const pt::error&) {  // the tactics may be impossible
    }
  };
  const auto begin = static_cast<std::uint64_t>(first);
  for (std::uint64_t seed = begin; seed < begin + static_cast<std::uint64_t>(cases); ++seed) {
    prove(seed, by_actions);
    prove(seed, by_schedule);
  }
  std::cout << not_proved << " of " << made << " partitioned random programs are not proved, "
            << by_elements << " are element by element\n";
  CHECK(made > cases);
  CHECK(not_proved == too_large);
  CHECK(400 * too_large <= made);
}
/// x - (x + y) rounds differently from -y.
TEST_CASE("roundings are told apart from real differences") {
  const pt::program source = pt::parse(
      "func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) {\n"
      "  %z = negate(%y) : tensor<4xf32>\n  return %z : tensor<4xf32>\n}\n");
  REQUIRE(!source.error);
  const auto some = [](const pt::tensor_type& t, data::random& r, double from) {
    return data::fill(t,
                      [&](std::int64_t) { return from + static_cast<double>(r.in(1, 999)) / 777; });
  };
  reference numbers(2, 4, [&](int i) {
    sample s;
    data::random r{static_cast<std::uint64_t>(i) + 1};
    s.inputs = {some(source.input_type(0), r, 1000), some(source.input_type(1), r, 0)};
    s.expected = pt::evaluate(source, s.inputs).arrays();
    s.bounds = {0};
    return s;
  });
  const auto minus = [&](const std::string& sum) {
    pt::device_program d;
    d.local = pt::parse(
        "func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) attributes {mesh = {\"B\":1}} {\n"
        "  %s = add(" +
            sum +
            ") : tensor<4xf32>\n"
            "  %z = subtract(%x, %s) : tensor<4xf32>\n  return %z : tensor<4xf32>\n}\n",
        d.mesh);
    REQUIRE(!d.local.error);
    d.input_types = {source.input_type(0), source.input_type(1)};
    d.output_types = {source.output_type(0)};
    d.inputs.resize(2);
    d.outputs.resize(1);
    return d;
  };
  CHECK(numbers.compare(minus("%x, %y")) == reference::different);
  CHECK(numbers.compare_as_reals(source, minus("%x, %y")) == reference::same);
  CHECK(numbers.compare_as_reals(source, minus("%x, %x")) == reference::different);
  CHECK(pt::prove(source, minus("%x, %y")).proved);
}
TEST_CASE("mutants of device-local programs that differ from their source are not proved") {
  if (const long s = random_test::number_from("PARTITA_MUTANT_SUBJECT", 0); s > 0)
    return show(static_cast<std::uint64_t>(s));
  const long wanted = random_test::number_from("PARTITA_MUTANTS", default_mutants);
  const auto models = small_models();
  const auto by_hand = practice::all_cases();
  const auto first = static_cast<std::uint64_t>(
      random_test::number_from("PARTITA_MUTANTS_FIRST", random_test::first_of(default_mutants)));
  std::uint64_t seed = first;
  for (; seen.total().made < wanted; ++seed) {
    mutate_random(seed);
    if (seed % 50 == 0) mutate_model(models[seed / 50 % models.size()], seed);
    if (seed % 10 == 0) mutate_model(by_hand[seed / 10 % by_hand.size()], seed);
  }
  for (int k = 0; k < kind_count; ++k)
    std::cout << kinds[k].name << ": " << seen.by_kind[k] << '\n';
  const counts all = seen.total();
  std::cout << seen.random_programs << " random programs of " << seed - first << " seeds, "
            << seen.models << " models and programs by hand (" << seen.not_proved
            << " not proved): " << all << ", " << seen.tries
            << " draws of a kind and a place; proved though different: " << seen.wrong
            << " (and in infinities and NaN alone: " << seen.not_finite
            << ", in roundings alone: " << seen.rounded
            << "); refuted where a few samples agree: " << all.refuted_though_equal << '\n';
  if (wanted < 10000) return;
  for (int k = 0; k < kind_count; ++k) {
    CHECK_MESSAGE(seen.by_kind[k].equal > 0, kinds[k].name);
    CHECK_MESSAGE(seen.by_kind[k].different > 0, kinds[k].name);
  }
  CHECK(all.different > all.made / 3);
  CHECK(all.equal > all.made / 20);
  CHECK(all.made > all.refused);
}
