/// Which random cases a test tries: its own number of them from seeds of its compiler on, or what
/// the environment says.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <doctest/doctest.h>

namespace random_test {

/// A number that the environment gives.
inline std::optional<long> number_from(const char* name) {
  const char* s = std::getenv(name);
  if (s == nullptr || *s == 0) return std::nullopt;
  return std::atol(s);
}

inline long number_from(const char* name, long otherwise) {
  return number_from(name).value_or(otherwise);
}

/// Where a test of so many cases begins: each compiler tries others.
constexpr long first_of([[maybe_unused]] long cases) {
#ifdef __clang__
  return 1 + cases;
#else
  return 1;
#endif
}

/// Looks for problems: of PARTITA_RANDOM_CASES seeds from PARTITA_RANDOM_FIRST on, up to the first
/// that has one, or of PARTITA_RANDOM_SEED alone. Gives how many there were to be.
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
