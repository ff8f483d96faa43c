// Random programs on formulas, as a proof by elements runs them, with numbers for some elements of
// inputs. Elements that are the same formula have the same value, and elements that are numbers
// have that value, whatever the other inputs are.
//
// PARTITA_FORMULAS_CASES=n runs n seeds, from s on with PARTITA_FORMULAS_FIRST=s.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "generator.hpp"
#include "seeds.hpp"

#include <partita/prove/by_elements.hpp>

namespace pt = partita;
using namespace random_test;

namespace {

using pt::prove_detail::element;
using pt::prove_detail::tensors;

/// Returns the elements of an array as `constant` stores them.
std::vector<std::int64_t> bits_of(const pt::array& x) {
  std::vector<std::int64_t> all;
  const auto n = static_cast<std::size_t>(x.size()),
             size = static_cast<std::size_t>(pt::size_of(x.element()));
  if (pt::is_floating(x.element())) {
    const pt::array wide = pt::as_type(x, pt::dtype::f64);
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(std::bit_cast<std::int64_t>(wide.data<double>()[i]));
    return all;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t bits = 0;
    std::memcpy(&bits, x.bytes() + i * size, size);  // (little-endian)
    all.push_back(pt::prove_detail::wrapped(x.element(), bits));
  }
  return all;
}

class formulas_of {
 public:
  static constexpr std::size_t samples = 6;

  /// Looks at all values.
  explicit formulas_of(const test_case& c) : p_(c.p), r_{c.seed * 131 + 7} {
    p_.outputs = {};
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(p_.types.size()); ++v)
      p_.outputs.push_back({v, {}});
    a_.most_steps = 300'000;
    draw_inputs(c);
  }
  /// Returns the first error, or "".
  std::string wrong() {
    const pt::mesh alone;
    const pt::prove_detail::devices one(alone);
    pt::prove_detail::element_interpreter run(a_, one, true);
    const pt::vec<tensors> made = run.run(p_, formulas_);
    if (run.stopped()) return "";
    std::vector<pt::results> results;
    for (const auto& each : inputs_) results.push_back(pt::evaluate(p_, each));
    for (int k = 0; k < p_.output_count(); ++k) {
      std::vector<std::vector<std::int64_t>> bits;
      for (const auto& each : results) bits.push_back(bits_of(each[k]));
      for (std::size_t n = 0; n < bits[0].size(); ++n) {
        worths worth = {};
        for (std::size_t s = 0; s < samples; ++s) worth[s] = bits[s][n];
        ++elements;
        if (!is_right(made[k].all[n], worth))
          return "element " + std::to_string(n) + " of value " +
                 std::to_string(p_.outputs[k].value) + ", " + words(made[k].all[n], worth) + "\n" +
                 data::str(pt::print(p_));
      }
    }
    return "";
  }
  long elements = 0, equal = 0, numbers = 0;

 private:
  pt::program p_;
  data::random r_;
  pt::prove_detail::algebra a_;
  pt::vec<tensors> formulas_;
  std::vector<std::vector<pt::array>> inputs_;
  using worths = std::array<std::int64_t, samples>;
  std::map<std::tuple<pt::dtype, std::uint64_t, std::uint64_t>, worths> seen_;

  /// Replaces some elements of some inputs by the numbers of the first sample.
  void draw_inputs(const test_case& c) {
    for (std::size_t s = 0; s < samples; ++s) {
      test_case other = c;
      other.seed = c.seed + s * 1000003;
      inputs_.push_back(arguments(other));
    }
    const std::int64_t few = r_.in(0, 5);
    for (int i = 0; i < p_.input_count(); ++i) {
      const pt::tensor_type& t = p_.input_type(i);
      const auto at = static_cast<std::size_t>(i);
      const std::vector<std::int64_t> first = bits_of(inputs_[0][at]);
      tensors made = pt::prove_detail::no_elements_yet(t, 1);
      for (std::size_t n = 0; n < first.size(); ++n)
        made.all[n] = r_.in(0, 4) < few
                          ? pt::prove_detail::number_of_bits(t.element, first[n])
                          : a_.unknown(t.element, pt::prove_detail::drawing(3)
                                                      .add(i)
                                                      .add(static_cast<std::int64_t>(n))
                                                      .drawn());
      for (auto& each : inputs_) each[at] = with_numbers(made, inputs_[0][at], each[at]);
      formulas_.push_back(made);
    }
  }
  static pt::array with_numbers(const tensors& made, const pt::array& first,
                                const pt::array& other) {
    const pt::array x = pt::as_type(first, pt::dtype::f64), y = pt::as_type(other, pt::dtype::f64);
    return data::fill(made.type, [&](std::int64_t n) {
      return (made.all[static_cast<std::size_t>(n)].known ? x : y).data<double>()[n];
    });
  }
  bool is_right(const element& x, const worths& worth) {
    const auto agree = [&](std::int64_t a, std::int64_t b) {
      return a == b || (pt::is_floating(x.type) && are_near(a, b));
    };
    if (x.known) {
      ++numbers;
      return std::ranges::all_of(worth, [&](auto each) { return agree(each, x.number); });
    }
    const auto [at, is_new] = seen_.try_emplace({x.type, x.of.a, x.of.b}, worth);
    equal += !is_new;
    return std::ranges::equal(at->second, worth, agree);
  }
  /// Returns the expected and the actual values of an element in the samples.
  std::string words(const element& x, const worths& worth) const {
    std::string all;
    for (std::size_t s = 0; s < samples; ++s) {
      const auto expected = x.known ? x.number : seen_.at({x.type, x.of.a, x.of.b})[s];
      for (const auto bits : {expected, worth[s]})
        all += ' ' + std::to_string(pt::is_floating(x.type) ? std::bit_cast<double>(bits)
                                                            : static_cast<double>(bits));
      all += ';';
    }
    return all;
  }
  /// Formulas of real numbers may round in other places, and 0 times an infinity is 0.
  static bool are_near(std::int64_t a, std::int64_t b) {
    const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
    if (std::isnan(x) || std::isnan(y)) return true;
    return std::abs(x - y) <= 1e-3 * std::max({1.0, std::abs(x), std::abs(y)});
  }
};

}  // namespace

TEST_CASE("random programs on formulas: equal formulas have equal values") {
  const long first = number_from("PARTITA_FORMULAS_FIRST", 1),
             cases = number_from("PARTITA_FORMULAS_CASES", 300);
  long elements = 0, equal = 0, numbers = 0;
  for (long seed = first; seed < first + cases; ++seed) {
    const test_case c = generator(static_cast<std::uint64_t>(seed)).make();
    if (c.wild) continue;  // (as real numbers)
    formulas_of f(c);
    const std::string wrong = f.wrong();
    CHECK_MESSAGE(wrong.empty(), "PARTITA_FORMULAS_FIRST=", seed, ": ", wrong);
    elements += f.elements, equal += f.equal, numbers += f.numbers;
  }
  std::cout << elements << " elements, " << equal << " as others, " << numbers << " numbers\n";
  CHECK(equal > cases);
  CHECK(numbers > cases);
}
