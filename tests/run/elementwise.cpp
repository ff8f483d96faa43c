// The elementwise kernels: accuracy, special values, wrapping integers, and random bits.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../data.hpp"

using namespace partita;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

array run(const op_def& op, std::vector<array> operands) {
  builder b;
  std::vector<value_id> v;
  for (const auto& a : operands) v.push_back(ops::parameter(b, "x", a.type()));
  const value_id r = b.emit(op, v, {});
  REQUIRE_MESSAGE(r >= 0, std::string(b.p.error.message.view()));
  return run_op(op, operands, {}, b.p.type(r));
}
template <class T>
array list(const std::vector<T>& x) {
  array a(tensor_type{dtype_of<T>, {static_cast<std::int64_t>(x.size())}});
  std::copy(x.begin(), x.end(), a.template mutable_data<T>());
  return a;
}
template <class T>
std::vector<T> values(const array& a) {
  return {a.template data<T>(), a.template data<T>() + a.size()};
}

/// Returns the distance in units in the last place of T. Equal NaNs, infinities and zeros (with
/// their sign) have distance 0.
template <class T>
double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (rounded != rounded) return got != got ? 0 : inf;
  if (std::isinf(rounded) || rounded == 0)
    return got == rounded && std::signbit(got) == std::signbit(rounded) ? 0 : inf;
  if (!std::isfinite(got)) return inf;
  const T magnitude = std::fabs(rounded);
  const T unit = magnitude < std::numeric_limits<T>::max()
                     ? std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude
                     : magnitude - std::nextafter(magnitude, T(0));
  return static_cast<double>(std::fabs((static_cast<long double>(got) - want) / unit));
}

using function = long double (*)(long double);
struct unary {
  const op_def* op;
  function exact;
  double bound32, bound64;  // units in the last place
};
const unary functions[] = {
    {&def<op::exp>, [](long double x) { return std::exp(x); }, 2, 2},
    {&def<op::expm1>, [](long double x) { return std::expm1(x); }, 2, 2},
    {&def<op::log>, [](long double x) { return std::log(x); }, 2, 2},
    {&def<op::log1p>, [](long double x) { return std::log1p(x); }, 2, 2},
    {&def<op::logistic>,
     [](long double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
     4, 4},
    {&def<op::tanh>, [](long double x) { return std::tanh(x); }, 8, 4},
    {&def<op::erf>, [](long double x) { return std::erf(x); }, 9, 2},
    {&def<op::erfc>, [](long double x) { return std::erfc(x); }, 4, 4},
    {&def<op::sqrt>, [](long double x) { return std::sqrt(x); }, 0.5, 0.5},
    {&def<op::rsqrt>, [](long double x) { return 1 / std::sqrt(x); }, 1.5, 1.5},
    {&def<op::cbrt>, [](long double x) { return std::cbrt(x); }, 4, 4},  // as glibc
    {&def<op::sine>, [](long double x) { return std::sin(x); }, 3, 2},
    {&def<op::cosine>, [](long double x) { return std::cos(x); }, 3, 2},
    {&def<op::tan>, [](long double x) { return std::tan(x); }, 2, 2},
    {&def<op::floor>, [](long double x) { return std::floor(x); }, 0, 0},
    {&def<op::ceil>, [](long double x) { return std::ceil(x); }, 0, 0},
    {&def<op::round_nearest_even>, [](long double x) { return std::nearbyint(x); }, 0, 0},
    {&def<op::round_nearest_away>, [](long double x) { return std::round(x); }, 0, 0},
    {&def<op::abs>, [](long double x) { return std::fabs(x); }, 0, 0},
    {&def<op::negate>, [](long double x) { return -x; }, 0, 0},
    {&def<op::sign>, [](long double x) { return x > 0   ? 1.0L
                                                : x < 0 ? -1.0L
                                                        : x; }, 0, 0},
};

/// Special values, values near the ends of ranges, and values of all magnitudes.
template <class T>
std::vector<T> samples() {
  using limits = std::numeric_limits<T>;
  std::vector<T> x;
  for (double v : {0.,    0.5,    1.,     1.5,   2.5,   7.9,   8.,    20.,  86.,
                   87.4,  88.2,   88.71,  88.73, 90.,   103.9, 104.1, 200., 707.9,
                   708.5, 709.77, 709.79, 745.,  746.2, 1e4,   1e5,   1e30, inf})
    x.insert(x.end(), {static_cast<T>(v), static_cast<T>(-v)});
  for (T v :
       {limits::denorm_min(), limits::min() / 3, limits::min(), limits::epsilon(), limits::max()})
    x.insert(x.end(), {v, -v});
  x.push_back(limits::quiet_NaN());
  data::random r;
  for (int i = 0; i < 20000; ++i) {
    x.push_back(std::bit_cast<T>(
        static_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(r.next())));
    x.push_back(static_cast<T>(static_cast<double>(r.in(-1'000'000, 1'000'000)) / 1e4));
    x.push_back(static_cast<T>(static_cast<double>(r.in(-1'000'000, 1'000'000)) / 1e6));
  }
  return x;
}
template <class T>
void check_functions() {
  const std::vector<T> x = samples<T>();
  for (const auto& f : functions) {
    const std::vector<T> y = values<T>(run(*f.op, {list(x)}));
    const double bound = sizeof(T) == 4 ? f.bound32 : f.bound64;
    double worst = 0;
    T at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double d = ulps(y[i], f.exact(static_cast<long double>(x[i])));
      if (d > worst) worst = d, at = x[i];
    }
    CHECK_MESSAGE(worst <= bound, f.op->name, " of ", at, " is ", worst, " ulp off");
  }
}

}  // namespace

TEST_CASE(
    "functions of floats have errors of a few units in the last place; special values are exact") {
  check_functions<float>();
  check_functions<double>();
}

TEST_CASE("16-bit floats are computed in binary32 and rounded once") {
  for (dtype t : {dtype::bf16, dtype::f16}) {
    const array x = as_type(list<float>({-3.5f, -0.75f, 0.f, 0.5f, 1.5f, 2.5f, 1e30f, -1e30f,
                                         std::numeric_limits<float>::quiet_NaN()}),
                            t);
    for (const auto& f : functions) {
      CAPTURE(f.op->name);
      const array want = as_type(run(*f.op, {as_type(x, dtype::f32)}), t);
      CHECK(partita::equal(run(*f.op, {x}), want));
    }
    const array y = as_type(list<float>({2.f, 0.25f, 0.f, 3.f, -1.5f, 7.f, 2.f, 0.5f, 1.f}), t);
    for (const op_def* op : {&def<op::power>, &def<op::remainder>, &def<op::atan2>}) {
      CAPTURE(op->name);
      const array want = as_type(run(*op, {as_type(x, dtype::f32), as_type(y, dtype::f32)}), t);
      CHECK(partita::equal(run(*op, {x, y}), want));
    }
  }
}

TEST_CASE("binary functions of floats: special values are those of IEEE 754") {
  const std::vector<double> special = {0., -0.,   1.,  -1.,  0.5,         -2.,
                                       3., 1e300, inf, -inf, not_a_number};
  std::vector<double> x, y;
  for (double a : special)
    for (double b : special) x.push_back(a), y.push_back(b);
  const auto powers = values<double>(run(def<op::power>, {list(x), list(y)}));
  const auto angles = values<double>(run(def<op::atan2>, {list(x), list(y)}));
  const auto rests = values<double>(run(def<op::remainder>, {list(x), list(y)}));
  const auto greater = values<double>(run(def<op::maximum>, {list(x), list(y)}));
  const auto clamped = values<double>(run(def<op::clamp>, {array(-1.), list(x), list(y)}));
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(x[i]);
    CAPTURE(y[i]);
    CHECK(ulps(powers[i], std::pow(static_cast<long double>(x[i]), y[i])) <= 1);
    CHECK(ulps(angles[i], std::atan2(static_cast<long double>(x[i]), y[i])) <= 1);
    CHECK(ulps(rests[i], std::fmod(x[i], y[i])) == 0);
    const bool no_number = x[i] != x[i] || y[i] != y[i];
    if (no_number) {
      CHECK(greater[i] != greater[i]);
      CHECK(clamped[i] != clamped[i]);
    } else {
      CHECK(greater[i] == std::max(x[i], y[i]));
      CHECK(clamped[i] == std::min(std::max(x[i], -1.), y[i]));
    }
  }
  CHECK(partita::equal(
      run(def<op::is_finite>, {list<float>({0.f, -3e38f, 1e-45f, HUGE_VALF, -HUGE_VALF,
                                            std::numeric_limits<float>::quiet_NaN()})}),
      xt::xarray<bool>{true, true, true, false, false, false}));
}

namespace {

template <class T>
void check_integers() {
  using limits = std::numeric_limits<T>;
  using bits = std::make_unsigned_t<T>;
  constexpr int width = 8 * sizeof(T);
  constexpr bool is_signed = limits::is_signed;
  constexpr T all = static_cast<T>(-1);
  std::vector<T> some = {0,
                         1,
                         2,
                         3,
                         7,
                         limits::max(),
                         static_cast<T>(limits::max() - 1),
                         all,
                         static_cast<T>(-7),
                         limits::min(),
                         static_cast<T>(limits::min() + 1),
                         width - 1,
                         width,
                         width + 1,
                         100};
  std::vector<T> x, y;
  for (T a : some)
    for (T b : some) x.push_back(a), y.push_back(b);
  const auto of = [&](const op_def& op) { return values<T>(run(op, {list(x), list(y)})); };
  const auto quotient = of(def<op::divide>), rest = of(def<op::remainder>),
             power = of(def<op::power>), left = of(def<op::shift_left>),
             arithmetic = of(def<op::shift_right_arithmetic>),
             logical = of(def<op::shift_right_logical>), both = of(def<op::logical_and>),
             either = of(def<op::logical_or>), differ = of(def<op::logical_xor>);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T a = x[i], b = y[i];
    CAPTURE(static_cast<std::int64_t>(a));
    CAPTURE(static_cast<std::int64_t>(b));
    if (b == 0) {
      CHECK(quotient[i] == all);
      CHECK(rest[i] == a);
    } else if (is_signed && a == limits::min() && b == all) {
      CHECK(quotient[i] == a);
      CHECK(rest[i] == 0);
    } else {
      CHECK(quotient[i] == static_cast<T>(a / b));
      CHECK(rest[i] == static_cast<T>(a % b));
    }
    // The new position of each bit.
    const bool out = b < 0 || b >= width;
    const bool top = static_cast<bits>(a) >> (width - 1);
    bits l = 0, lo = 0, ar = 0;
    for (int k = 0; k < width; ++k) {
      const auto from = [&](std::int64_t at) {
        return !out && at >= 0 && at < width && (static_cast<bits>(a) >> at & 1) != 0;
      };
      const auto bit = static_cast<bits>(bits(1) << k);
      const std::int64_t by = out ? width : static_cast<std::int64_t>(b);
      if (from(k - by)) l = static_cast<bits>(l | bit);
      if (from(k + by)) lo = static_cast<bits>(lo | bit);
      if (k + by >= width ? top : from(k + by)) ar = static_cast<bits>(ar | bit);
    }
    CHECK(left[i] == static_cast<T>(l));
    CHECK(logical[i] == static_cast<T>(lo));
    CHECK(arithmetic[i] == static_cast<T>(ar));
    CHECK(both[i] == static_cast<T>(a & b));
    CHECK(either[i] == static_cast<T>(a | b));
    CHECK(differ[i] == static_cast<T>(a ^ b));
    if (b >= 0 && b <= 255) {
      std::uint64_t product = 1;
      for (int k = 0; k < static_cast<int>(b); ++k) product *= static_cast<std::uint64_t>(a);
      CHECK(power[i] == static_cast<T>(product));
    } else if (b < 0) {
      CHECK(power[i] == (a == 1 ? 1 : a != all ? 0 : b % 2 == 0 ? 1 : all));
    }
  }
  const auto magnitude = values<T>(run(def<op::abs>, {list(some)})),
             sign = values<T>(run(def<op::sign>, {list(some)})),
             inverse = values<T>(run(def<op::logical_not>, {list(some)})),
             count = values<T>(run(def<op::popcnt>, {list(some)}));
  for (std::size_t i = 0; i < some.size(); ++i) {
    const T a = some[i];
    CHECK(magnitude[i] == (a >= 0 ? a : static_cast<T>(bits(0) - static_cast<bits>(a))));
    CHECK(sign[i] == static_cast<T>((a > 0) - (a < 0)));
    CHECK(inverse[i] == static_cast<T>(~a));
    CHECK(count[i] == std::popcount(static_cast<bits>(a)));
  }
}

}  // namespace

TEST_CASE("integers wrap; divisions by zero and shifts beyond the width are defined") {
  check_integers<std::int32_t>();
  check_integers<std::int64_t>();
  check_integers<std::uint8_t>();
}

TEST_CASE("booleans: add and maximum are or, multiply and minimum are and") {
  const xt::xarray<bool> x = {false, false, true, true}, y = {false, true, false, true};
  const array either = xt::xarray<bool>{false, true, true, true},
              both = xt::xarray<bool>{false, false, false, true};
  for (const op_def* op : {&def<op::logical_or>, &def<op::add>, &def<op::maximum>})
    CHECK(partita::equal(run(*op, {x, y}), either));
  for (const op_def* op : {&def<op::logical_and>, &def<op::multiply>, &def<op::minimum>})
    CHECK(partita::equal(run(*op, {x, y}), both));
  CHECK(partita::equal(run(def<op::logical_xor>, {x, y}),
                       xt::xarray<bool>{false, true, true, false}));
  CHECK(partita::equal(run(def<op::logical_not>, {x}), xt::xarray<bool>{true, true, false, false}));
}

TEST_CASE("typed functions broadcast and accept numbers") {
  const auto p = trace(
      [](auto x, auto column, auto i, auto u) {
        return std::tuple{output("clamp", clamp(-1, x, column)),
                          output("clamp_number", clamp(column, x, 1.5)),
                          output("pow", pow(x, 2) + pow(2, column)),
                          output("remainder", x % 2),
                          output("atan2", atan2(column, x)),
                          output("select", select((is_finite(x) & !(x < 0)) | equal(x, -2), x, 9)),
                          output("integers", (i % 3) + ((i >> 1) ^ (i << 2))),
                          output("bytes", u >> 1),
                          output("bytes_arithmetic", shift_right_arithmetic(u, 1)),
                          output("bits", (~i & 6) | popcnt(i)),
                          output("logical", shift_right_logical(i, 28)),
                          output("masks", (x > 0) ^ true)};
      },
      input<float, 3>("x"), input<float, 2, 1>("column"), input<std::int32_t, 2>("i"),
      input<std::uint8_t, 2>("u"));
  const xt::xarray<float> x = {-2.f, -0.5f, 3.f};
  const array column = data::fill({dtype::f32, {2, 1}}, [](std::int64_t i) { return 2 * i; });
  const results r =
      evaluate(p, x, column, xt::xarray<std::int32_t>{-7, 5}, xt::xarray<std::uint8_t>{200, 7});
  CHECK(partita::equal(r["clamp"], xt::xarray<float>{{-1, -0.5, 0}, {-1, -0.5, 2}}));
  CHECK(partita::equal(r["clamp_number"], xt::xarray<float>{{0, 0, 1.5}, {1.5, 1.5, 1.5}}));
  CHECK(partita::equal(r["pow"], xt::xarray<float>{{5, 1.25, 10}, {8, 4.25, 13}}));
  CHECK(partita::equal(r["remainder"], xt::xarray<float>{-0.f, -0.5f, 1.f}));
  const float pi = std::numbers::pi_v<float>;
  const xt::xarray<float> angles = {
      {pi, pi, 0.f}, {std::atan2(2.f, -2.f), std::atan2(2.f, -0.5f), std::atan2(2.f, 3.f)}};
  CHECK(all_close(r["atan2"], angles, 3e-7, 0));
  CHECK(partita::equal(r["select"], xt::xarray<float>{-2, 9, 3}));
  CHECK(partita::equal(r["integers"], xt::xarray<std::int32_t>{-1 + (-4 ^ -28), 2 + (2 ^ 20)}));
  CHECK(partita::equal(r["bytes"], xt::xarray<std::uint8_t>{100, 3}));
  CHECK(partita::equal(r["bytes_arithmetic"], xt::xarray<std::uint8_t>{228, 3}));
  CHECK(partita::equal(r["bits"], xt::xarray<std::int32_t>{6 | 30, 2}));
  CHECK(partita::equal(r["logical"], xt::xarray<std::int32_t>{15, 0}));
  CHECK(partita::equal(r["masks"], xt::xarray<bool>{true, true, false}));
}

// The results of JAX at kinks and ends, which central differences do not test.
TEST_CASE("derivatives at kinks and at the ends of logarithms are those of JAX") {
  const auto gradients = [](auto f, std::vector<double> x, std::vector<double> y) {
    const auto n = static_cast<std::int64_t>(x.size());
    const auto p = trace(
        [&](auto a, auto b) {
          const auto [value, g] = value_and_grad(
              [&](const auto& both) { return sum(f(both[0], both[1])); }, std::array{a, b});
          return std::tuple{output("x", g[0]), output("y", g[1])};
        },
        input<double, dyn>("a", n), input<double, dyn>("b", n));
    const results r = evaluate(p, list(x), list(y));
    return std::pair{values<double>(r["x"]), values<double>(r["y"])};
  };
  using numbers = std::vector<double>;
  const auto power =
      gradients([](auto x, auto y) { return pow(x, y); }, {0, 0, 0, -2, -2, 3}, {0, 2, 1, 3, 2, 0});
  CHECK(power.first == numbers{0, 0, 1, 12, -4, 0});
  CHECK(numbers(power.second.begin(), power.second.begin() + 3) == numbers{0, 0, 0});
  CHECK(power.second[3] != power.second[3]);  // no real derivative there
  CHECK(power.second[5] == doctest::Approx(std::log(3)));
  const auto clamped = gradients([](auto x, auto low) { return clamp(low, x, 2); },
                                 {-3, -1, 0, 2, 5, 1}, {-1, -1, -1, -1, -1, 3});
  CHECK(clamped.first == numbers{0, 0, 1, 0, 0, 0});
  CHECK(clamped.second == numbers{1, 0, 0, 0, 0, 0});
  const auto steps = gradients(
      [](auto x, auto y) { return floor(x) + ceil(y) + round_nearest_even(x) + sign(y) + abs(x); },
      {0, -2.5, 3}, {0, 1.5, -2});
  CHECK(steps.first == numbers{0, -1, 1});
  CHECK(steps.second == numbers{0, 0, 0});
  const auto rest = gradients([](auto x, auto y) { return x % y; }, {7, -7, 6}, {2, 2, 3});
  CHECK(rest.first == numbers{1, 1, 1});
  CHECK(rest.second == numbers{-3, 3, -2});
}
