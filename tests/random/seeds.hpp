/// The random cases that a test tries: its own number of seeds from its compiler's first seed on,
/// or those that the environment sets.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <doctest/doctest.h>

namespace random_test {

/// Returns a number from the environment.
inline std::optional<long> number_from(const char* name) {
  const char* s = std::getenv(name);
  if (s == nullptr || *s == 0) return std::nullopt;
  return std::atol(s);
}

inline long number_from(const char* name, long otherwise) {
  return number_from(name).value_or(otherwise);
}

/// Returns the first seed of a test of this number of cases: each compiler tries others.
constexpr long first_of([[maybe_unused]] long cases) {
#ifdef __clang__
  return 1 + cases;
#else
  return 1;
#endif
}

/// Looks for problems: in PARTITA_RANDOM_CASES seeds from PARTITA_RANDOM_FIRST on, up to the first
/// problem, or in PARTITA_RANDOM_SEED alone. Returns the number of seeds.
template <class Problem>
long for_each_seed(long cases, const Problem& problem_of) {
  long first = number_from("PARTITA_RANDOM_FIRST", first_of(cases));
  cases = number_from("PARTITA_RANDOM_CASES", cases);
  if (const auto one = number_from("PARTITA_RANDOM_SEED")) {
    first = *one;
    cases = 1;
  }
  for (long seed = first; seed < first + cases; ++seed) {
    const std::string problem = problem_of(static_cast<std::uint64_t>(seed));
    REQUIRE_MESSAGE(problem.empty(), "PARTITA_RANDOM_SEED=", seed, ": ", problem);
  }
  return cases;
}

}  // namespace random_test
