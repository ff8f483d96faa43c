// Chains of links compared with one operation at a time; built for any machine and for this one.
#include <partita/run/kernels/chain.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace {

using partita::combiner;
using partita::run_detail::chain_link;
using partita::run_detail::link;

std::mt19937_64 generator(1);

/// Returns numbers of either sign and of magnitude between 2^-range and 2^range.
template <class T>
T draw(int range) {
  const T fraction = T(1) + std::generate_canonical<T, 53>(generator);
  const int exponent = static_cast<int>(generator() % static_cast<unsigned>(2 * range)) - range;
  const T size = std::ldexp(generator() % 16 == 0 ? T(1) : fraction, exponent);
  return generator() % 2 == 0 ? size : -size;
}
template <class T>
std::vector<T> draws(std::int64_t n, int range) {
  std::vector<T> x(
      static_cast<std::size_t>(partita::run_detail::round_up(n, partita::run_detail::lanes)));
  for (T& v : x) v = draw<T>(range);
  return x;
}
template <class T>
bool same(T x, T y) {
  return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}
template <class T>
chain_link elements(link what, std::vector<T>& y) {
  return {what, y.data(), 1, 0};
}

/// Returns the error in units of the last place of binary32.
double error(float x, double exact) {
  const float rounded = std::fabs(static_cast<float>(exact));
  const double unit =
      std::max<double>(std::nextafter(rounded, 2 * rounded + 1) - rounded, 0x1p-149);
  return std::fabs(x - exact) / unit;
}
double worst_error(link what, float low, float high, double (*exact)(double)) {
  std::vector<float> x, z;
  for (int i = 0; i < 200'000; ++i)
    x.push_back(low + (high - low) * static_cast<float>(i) / 200'000.f);
  x.resize(
      static_cast<std::size_t>(partita::run_detail::round_up(200'000, partita::run_detail::lanes)));
  z.resize(x.size());
  const chain_link links[] = {
      elements(link::load, x), {what, nullptr, 0, 0}, elements(link::store, z)};
  partita::run_detail::run_chain_of<float>(1, static_cast<std::int64_t>(x.size()), links, 3);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, error(z[i], exact(x[i])));
  return worst;
}

template <class T>
void check_links() {
  const std::int64_t n = 1000,
                     padded = partita::run_detail::round_up(n, partita::run_detail::lanes);
  auto x = draws<T>(n, 20), y = draws<T>(n, 20), z = draws<T>(n, 20);
  const auto check = [&](link what, auto f) {
    const chain_link links[] = {elements(link::load, x), elements(what, y),
                                elements(link::store, z)};
    partita::run_detail::run_chain_of<T>(1, padded, links, 3);
    for (std::size_t i = 0; i < z.size(); ++i) REQUIRE(same(z[i], static_cast<T>(f(x[i], y[i]))));
  };
  check(link::add, [](T a, T b) { return a + b; });
  check(link::subtract, [](T a, T b) { return a - b; });
  check(link::subtract_from, [](T a, T b) { return b - a; });
  check(link::multiply, [](T a, T b) { return a * b; });
  check(link::divide, [](T a, T b) { return a / b; });
  check(link::divide_into, [](T a, T b) { return b / a; });
  check(link::negate, [](T a, T) { return -a; });
}
TEST_CASE("links compute the results of single operations") {
  check_links<float>();
  check_links<double>();
}

template <class T>
void check_division() {
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  const T all_bits = std::nextafter(T(2), T(0));
  std::vector<T> z(512);
  for (int round = 0; round < 3000; ++round) {
    const int range = round % 3 == 0 ? 3 : round % 3 == 1 ? 58 : 120;
    auto x = draws<T>(512, range);
    if (round % 5 == 0)
      for (T special : {T(0), T(-0.), nan, infinity, -infinity, all_bits})
        x[generator() % x.size()] = special;
    T y = draw<T>(range);
    if (round % 7 == 0) y = all_bits;
    if (round % 500 == 1) y = round % 1000 == 1 ? T(0) : infinity;
    const chain_link links[] = {
        elements(link::load, x), {link::divide, &y, 0, 0}, elements(link::store, z)};
    partita::run_detail::run_chain_of<T>(1, 512, links, 3);
    for (std::size_t i = 0; i < z.size(); ++i) REQUIRE(same(z[i], x[i] / y));
  }
}
TEST_CASE("a division by a common number is rounded like any other division") {
  check_division<float>();
  check_division<double>();
}

TEST_CASE("exp, logistic and tanh of binary32 have small errors") {
  CHECK(worst_error(link::exp, -103, 88.7f, [](double x) { return std::exp(x); }) < 2);
  CHECK(worst_error(link::logistic, -87, 90, [](double x) { return 1 / (1 + std::exp(-x)); }) < 4);
  CHECK(worst_error(link::tanh, -10, 10, [](double x) { return std::tanh(x); }) < 8);
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = draws<float>(16, 3), z = x;
  x[0] = std::numeric_limits<float>::quiet_NaN();
  x[1] = infinity;
  x[2] = -infinity;
  const auto map = [&](link what) {
    const chain_link links[] = {
        elements(link::load, x), {what, nullptr, 0, 0}, elements(link::store, z)};
    partita::run_detail::run_chain_of<float>(1, 16, links, 3);
    CHECK(std::isnan(z[0]));
  };
  map(link::exp);
  CHECK(z[1] == infinity);
  CHECK(z[2] == 0);
  map(link::logistic);
  CHECK(z[1] == 1);
  CHECK(z[2] == 0);
  map(link::tanh);
  CHECK(z[1] == 1);
  CHECK(z[2] == -1);
}

template <class T>
void check_rows() {
  // 2 x + b in each column, minus a in each row; values that are stored on the way are read again.
  for (std::int64_t row : {16, 17, 31, 64, 100, 128, 257}) {
    const std::int64_t rows = 5, n = rows * row;
    auto x = draws<T>(n, 3), made = draws<T>(n, 3), out = draws<T>(n, 3), a = draws<T>(rows, 3),
         b = draws<T>(row, 3);
    const chain_link links[] = {elements(link::load, x),          elements(link::store, made),
                                elements(link::add, made),        {link::add, b.data(), 1, -row},
                                {link::subtract, a.data(), 0, 1}, elements(link::store, out)};
    partita::run_detail::run_chain_of<T>(rows, row, links, 6);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      REQUIRE(made[k] == x[k]);
      REQUIRE(out[k] == x[k] + x[k] + b[static_cast<std::size_t>(i % row)] -
                            a[static_cast<std::size_t>(i / row)]);
    }
  }
}
TEST_CASE("operands by row and by column, and values stored on the way, are read") {
  check_rows<float>();
  check_rows<double>();
}

template <class T>
void check_reduction(combiner how, std::int64_t row, const std::function<T(T, T)>& f, T identity,
                     bool exact) {
  const std::int64_t rows = 3;
  auto x = draws<T>(rows * row, 1), squares = x, out = draws<T>(rows, 1);
  for (T& v : squares) v *= v;
  const chain_link plain[] = {elements(link::load, x)};
  const chain_link squared[] = {elements(link::load, x), elements(link::multiply, x)};
  for (const auto& [links, count, values] :
       {std::tuple{plain, std::size_t(1), &x}, std::tuple{squared, std::size_t(2), &squares}}) {
    partita::run_detail::reduce_chain_of<T>(rows, row, links, count, how, out.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      T expected = identity, size = 0;
      for (std::int64_t i = r * row; i < (r + 1) * row; ++i) {
        const T v = (*values)[static_cast<std::size_t>(i)];
        expected = f(expected, v);
        size += std::fabs(v);
      }
      const T made = out[static_cast<std::size_t>(r)];
      CAPTURE(row);
      if (exact)
        REQUIRE(made == expected);
      else  // every order of n additions is within n roundings of the sum of magnitudes
        REQUIRE(std::fabs(made - expected) <=
                static_cast<T>(row) * std::numeric_limits<T>::epsilon() * size);
    }
  }
}
template <class T>
void check_reductions() {
  const T infinity = std::numeric_limits<T>::infinity();
  for (std::int64_t row :
       {1, 2, 3, 15, 16, 17, 33, 64, 100, 127, 128, 129, 255, 256, 257, 1000, 1024, 9000}) {
    check_reduction<T>(combiner::add, row, std::plus<T>{}, 0, false);
    check_reduction<T>(
        combiner::max, row, [](T a, T b) { return std::max(a, b); }, -infinity, true);
    check_reduction<T>(
        combiner::min, row, [](T a, T b) { return std::min(a, b); }, infinity, true);
    if (row <= 100) {
      // Powers of 2, so that products are exact.
      auto x = draws<T>(row, 1);
      T product = 1, out = 0;
      for (std::int64_t i = 0; i < row; ++i)
        product *= x[static_cast<std::size_t>(i)] =
            std::ldexp(T(1), static_cast<int>(generator() % 3) - 1);
      const chain_link load = elements(link::load, x);
      partita::run_detail::reduce_chain_of<T>(1, row, &load, 1, combiner::multiply, &out);
      CHECK(out == product);
    }
  }
}
TEST_CASE("a chain reduces rows of any length") {
  check_reductions<float>();
  check_reductions<double>();
}

TEST_CASE("a row's maximum is NaN if one element is; infinities of both signs are not NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::int64_t row : {5, 64, 300, 1024}) {
    for (std::int64_t at : {std::int64_t(0), row / 2, row - 1}) {
      auto x = draws<float>(2 * row, 3);
      float out[2];
      const chain_link load = elements(link::load, x);
      const auto reduce = [&](combiner how) {
        partita::run_detail::reduce_chain_of<float>(2, row, &load, 1, how, out);
      };
      x[static_cast<std::size_t>(row + at)] = std::numeric_limits<float>::quiet_NaN();
      for (combiner how : {combiner::max, combiner::min}) {
        reduce(how);
        CHECK(!std::isnan(out[0]));
        CHECK(std::isnan(out[1]));
      }
      x[static_cast<std::size_t>(row + at)] = infinity;
      x[static_cast<std::size_t>(row + (at + 1) % row)] = -infinity;
      reduce(combiner::max);
      CHECK(out[1] == infinity);
      reduce(combiner::min);
      CHECK(out[1] == -infinity);
    }
  }
}

}  // namespace
