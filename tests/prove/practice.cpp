// Typical mistakes: right programs compute the results of their source, wrong ones do not.
#include "practice.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <doctest/doctest.h>

namespace pt = partita;
using namespace practice;

namespace {

using data::str;

/// Small integers, or numbers in [-1, 1]; integer inputs are indices, a few of them out of bounds.
std::vector<pt::array> arguments(const practice_case& c, const pt::program& source, bool real,
                                 std::uint64_t seed) {
  data::random r{seed};
  std::vector<pt::array> out;
  for (int i = 0; i < source.input_count(); ++i) {
    const pt::tensor_type& t = source.input_type(i);
    if (pt::is_integer(t.element))
      out.push_back(data::integers(t, r, -3, c.below + 2));
    else if (real)
      out.push_back(data::fill(
          t, [&](auto) { return static_cast<double>(r.in(-1000000, 1000000)) / 1000000; }));
    else
      out.push_back(data::integers(t, r));
  }
  return out;
}

/// Returns the maximum difference between the results of the devices and of the source; infinite if
/// devices disagree about a replicated value.
double difference(const written& w, const std::vector<pt::array>& x) {
  try {
    return pt::max_difference(pt::emulate(w.device, x), pt::evaluate(w.source, x));
  } catch (const pt::error& e) {
    CHECK(e.code() == "R006");
    return std::numeric_limits<double>::infinity();
  }
}

constexpr std::uint64_t draws = 5;

/// Numbers are at most 1000, sums have less than 256 terms, and no result is more than 64
/// operations away from the inputs: in binary64 another order changes less than 64 * 256 * 1000 *
/// 2^-53 < 2e-9.
constexpr double order_error = 2e-9;
/// Mistakes are far larger than roundings.
constexpr double least_mistake = 1e-3;

std::string text_of(const practice_case& c) { return std::string(c.name); }
std::string text_of(const practice_case& c, const mistake& m) {
  return text_of(c) + ": " + std::string(m.name);
}

}  // namespace

TEST_CASE("practice: right programs compute the results of the source") {
  for (const practice_case& c : all_cases()) {
    CAPTURE(text_of(c));
    const written w = read(c, c.local), wide = read(c, c.local, "f64");
    REQUIRE_MESSAGE(!w.error, str(w.error.message));
    REQUIRE_MESSAGE(!wide.error, str(wide.error.message));
    CHECK(!pt::verify(w.source));
    CHECK(!pt::verify(w.device));
    for (std::uint64_t i = 1; i <= draws; ++i) {
      CHECK(difference(wide, arguments(c, wide.source, true, i)) < order_error);
      if (c.equal == equality::exactly) CHECK(difference(w, arguments(c, w.source, false, i)) == 0);
    }
  }
}

TEST_CASE("practice: wrong programs do not compute the results of the source") {
  int seen = 0;
  for (const practice_case& c : all_cases())
    for (const mistake& m : c.mistakes) {
      CAPTURE(text_of(c, m));
      const std::string text = with(m, c.local);
      REQUIRE(text != "");
      const written wide = read(c, text, "f64");
      REQUIRE_MESSAGE(!wide.error, str(wide.error.message));
      CHECK(!pt::verify(wide.device));
      double most = 0;
      for (std::uint64_t i = 1; i <= draws; ++i)
        most = std::max(most, difference(wide, arguments(c, wide.source, true, i)));
      CHECK(most > least_mistake);
      CHECK(m.stops_at.size() > 0);
      for (std::string_view name : m.stops_at)
        CHECK(text.find(std::string(name) + " = ") != text.npos);
      ++seen;
    }
  CHECK(seen >= 100);
}

TEST_CASE("practice: cases and their mistakes have unique names") {
  std::set<std::string> names;
  for (const practice_case& c : all_cases()) {
    CHECK(names.insert(text_of(c)).second);
    CHECK(c.mistakes.size() > 0);
    for (const mistake& m : c.mistakes) CHECK(names.insert(text_of(c, m)).second);
  }
}
