// Integer types at the ends of their ranges: wrapping, division, conversion, order, indices, text.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "../data.hpp"

using namespace partita;

namespace {

array run(const op_def& op, std::vector<array> operands, std::vector<std::int64_t> attrs = {},
          const tensor_type& declared = {}) {
  builder b;
  std::vector<value_id> v;
  for (const auto& a : operands) v.push_back(ops::parameter(b, "x", a.type()));
  const value_id r = b.emit(op, v, attrs, declared);
  REQUIRE_MESSAGE(r >= 0, std::string(b.p.error.message.view()));
  return run_op(op, operands, attrs, b.p.type(r));
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

/// The ends of the range, small numbers, and random numbers.
template <class T>
std::vector<T> samples(std::uint64_t seed) {
  using limits = std::numeric_limits<T>;
  std::vector<T> x;
  for (T end : {limits::min(), limits::max(), T(limits::max() / 2), T(0)})
    for (int by : {-2, -1, 0, 1, 2}) x.push_back(static_cast<T>(end + static_cast<T>(by)));
  data::random r{seed};
  for (int i = 0; i < 200; ++i) x.push_back(static_cast<T>(r.next() >> r.in(0, 63)));
  return x;
}
/// Calls f(std::type_identity<T>{}) for every integer type.
template <class F>
void for_integers(F f) {
  f(std::type_identity<std::int8_t>{});
  f(std::type_identity<std::int16_t>{});
  f(std::type_identity<std::int32_t>{});
  f(std::type_identity<std::int64_t>{});
  f(std::type_identity<std::uint8_t>{});
  f(std::type_identity<std::uint16_t>{});
  f(std::type_identity<std::uint32_t>{});
  f(std::type_identity<std::uint64_t>{});
}
/// Compares an op of two operands on all pairs of samples with a function of numbers that are wide
/// enough.
template <class T, class F>
void check_pairs(const op_def& op, F f, std::vector<std::int64_t> attrs = {}) {
  std::vector<T> x, y;
  for (T a : samples<T>(1))
    for (T b : samples<T>(2)) {
      x.push_back(a);
      y.push_back(b);
    }
  const array got = run(op, {list(x), list(y)}, attrs);
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto want = f(static_cast<__int128>(x[i]), static_cast<__int128>(y[i]));
    if (got.element() == dtype::boolean)
      wrong += (got.data<bool>()[i] ? 1 : 0) != want;
    else
      wrong += got.data<T>()[i] != static_cast<T>(want);
  }
  CHECK_MESSAGE(wrong == 0, op.name, " of ", std::string(name_of(dtype_of<T>)));
}

}  // namespace

TEST_CASE("arithmetic of integers wraps, and division by any number is defined") {
  for_integers([]<class T>(std::type_identity<T>) {
    using wide = __int128;
    constexpr wide bits = 8 * sizeof(T);
    check_pairs<T>(def<op::add>, [](wide x, wide y) { return x + y; });
    check_pairs<T>(def<op::subtract>, [](wide x, wide y) { return x - y; });
    check_pairs<T>(def<op::multiply>, [](wide x, wide y) {
      return static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y);
    });
    check_pairs<T>(def<op::divide>, [](wide x, wide y) { return y == 0 ? -1 : x / y; });
    check_pairs<T>(def<op::remainder>, [](wide x, wide y) { return y == 0 ? x : x % y; });
    check_pairs<T>(def<op::maximum>, [](wide x, wide y) { return x > y ? x : y; });
    check_pairs<T>(def<op::minimum>, [](wide x, wide y) { return x < y ? x : y; });
    check_pairs<T>(def<op::logical_and>, [](wide x, wide y) { return x & y; });
    check_pairs<T>(def<op::logical_or>, [](wide x, wide y) { return x | y; });
    check_pairs<T>(def<op::logical_xor>, [](wide x, wide y) { return x ^ y; });
    check_pairs<T>(def<op::shift_left>, [](wide x, wide y) {
      return y < 0 || y >= bits ? 0 : static_cast<wide>(static_cast<unsigned __int128>(x) << y);
    });
    check_pairs<T>(def<op::shift_right_arithmetic>, [](wide x, wide y) {
      return static_cast<wide>(static_cast<std::make_signed_t<T>>(x)) >>
             (y < 0 || y >= bits ? bits - 1 : y);
    });
    check_pairs<T>(def<op::shift_right_logical>, [](wide x, wide y) {
      return y < 0 || y >= bits ? 0
                                : static_cast<wide>(static_cast<std::make_unsigned_t<T>>(x)) >> y;
    });
    check_pairs<T>(def<op::power>, [](wide x, wide y) {
      if (y < 0) return x == 1 ? wide(1) : x == -1 ? wide(y % 2 == 0 ? 1 : -1) : wide(0);
      std::uint64_t result = 1, base = static_cast<std::uint64_t>(x);
      for (; y > 0; y /= 2, base *= base)
        if (y % 2 != 0) result *= base;
      return static_cast<wide>(result);
    });
    for (std::int64_t d = 0; d < 6; ++d)
      check_pairs<T>(def<op::compare>,
                     [d](wide x, wide y) {
                       const bool all[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
                       return all[d] ? 1 : 0;
                     },
                     {d});
    const std::vector<T> x = samples<T>(3);
    const std::vector<T> magnitude = values<T>(run(def<op::abs>, {list(x)})),
                         sign = values<T>(run(def<op::sign>, {list(x)})),
                         less = values<T>(run(def<op::negate>, {list(x)})),
                         not_x = values<T>(run(def<op::logical_not>, {list(x)})),
                         set = values<T>(run(def<op::popcnt>, {list(x)})),
                         clear = values<T>(run(def<op::count_leading_zeros>, {list(x)}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const wide v = x[i];
      CHECK(magnitude[i] == static_cast<T>(v < 0 ? -v : v));
      CHECK(sign[i] == static_cast<T>((v > 0) - (v < 0)));
      CHECK(less[i] == static_cast<T>(-v));
      CHECK(not_x[i] == static_cast<T>(~v));
      int ones = 0, first = -1;
      for (int k = 0; k < bits; ++k)
        if ((v >> k & 1) != 0) ++ones, first = k;
      CHECK(set[i] == static_cast<T>(ones));
      CHECK(clear[i] == static_cast<T>(bits - 1 - first));
    }
  });
}

TEST_CASE("conversions: integers wrap, floats saturate, to floats round once") {
  for_integers([]<class From>(std::type_identity<From>) {
    const std::vector<From> x = samples<From>(4);
    const auto to = [&](dtype t) { return run(def<op::convert>, {list(x)}, {}, {t, {}}); };
    for_integers([&]<class To>(std::type_identity<To>) {
      const std::vector<To> y = values<To>(to(dtype_of<To>));
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == static_cast<To>(x[i]));
    });
    const array single = to(dtype::f32), twice = to(dtype::f64), brain = to(dtype::bf16),
                half = to(dtype::f16), truth = to(dtype::boolean);
    for (std::size_t i = 0; i < x.size(); ++i) {
      // The nearest number of a format is not further away than its neighbours; a tie goes to the
      // even one.
      const auto exact = static_cast<long double>(x[i]);  // 64 bits
      CHECK(single.data<float>()[i] == static_cast<float>(exact));
      CHECK(twice.data<double>()[i] == static_cast<double>(exact));
      CHECK(truth.data<bool>()[i] == (x[i] != 0));
      const float b = float(brain.data<bf16>()[i]), h = float(half.data<f16>()[i]);
      const auto nearest = [&](int mantissa) {
        if (exact == 0) return exact;
        const int down = std::ilogb(exact) - mantissa;
        return std::ldexp(std::nearbyint(std::ldexp(exact, -down)), down);
      };
      CHECK(static_cast<long double>(b) == nearest(7));
      if (std::fabs(exact) < 65520)
        CHECK(static_cast<long double>(h) == nearest(10));
      else
        CHECK(std::isinf(h));
    }
  });
  for_integers([]<class To>(std::type_identity<To>) {
    using limits = std::numeric_limits<To>;
    const double low = static_cast<double>(limits::min()),
                 high = std::ldexp(1., limits::digits);  // the first that is too large
    const std::vector<double> x = {low,
                                   low - 0.5,
                                   low * 2 - 3,
                                   std::nextafter(high, 0),
                                   high,
                                   high * 4,
                                   -1e300,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::nan(""),
                                   -0.99,
                                   1.99,
                                   100.5};
    const auto wide = values<To>(run(def<op::convert>, {list(x)}, {}, {dtype_of<To>, {}}));
    const std::vector<To> want = {limits::min(),
                                  limits::min(),
                                  limits::min(),
                                  static_cast<To>(std::nextafter(high, 0)),
                                  limits::max(),
                                  limits::max(),
                                  limits::min(),
                                  limits::max(),
                                  limits::min(),
                                  0,
                                  0,
                                  1,
                                  100};
    CHECK(wide == want);
    const auto fh = static_cast<float>(high);
    const auto narrow = values<To>(
        run(def<op::convert>, {list<float>({fh, std::nextafter(fh, 0.f), -1e30f, 1e30f, 7.9f})}, {},
            {dtype_of<To>, {}}));
    CHECK(narrow == std::vector<To>{limits::max(), static_cast<To>(std::nextafter(fh, 0.f)),
                                    limits::min(), limits::max(), 7});
  });
}

TEST_CASE("reductions, running sums, sorting and positions of all integer types") {
  for_integers([]<class T>(std::type_identity<T>) {
    using limits = std::numeric_limits<T>;
    const array none(tensor_type{dtype_of<T>, {0}});
    const auto all = [&](const array& x, combiner c) {
      return run(def<op::reduce>, {x}, {static_cast<std::int64_t>(c), 0}).template item<T>();
    };
    CHECK(all(none, combiner::add) == 0);
    CHECK(all(none, combiner::max) == limits::min());
    CHECK(all(none, combiner::min) == limits::max());
    CHECK(all(none, combiner::multiply) == 1);
    CHECK(all(none, combiner::logical_and) == static_cast<T>(-1));
    CHECK(all(none, combiner::logical_or) == 0);
    for (combiner c : {combiner::add, combiner::max, combiner::min, combiner::multiply,
                       combiner::logical_and, combiner::logical_or}) {
      const std::int64_t bits = identity_bits(c, dtype_of<T>);
      const array identity = run(def<op::constant>, {}, {bits}, {dtype_of<T>, {}});
      CHECK(identity.item<T>() == all(none, c));
    }
    const std::vector<T> x = samples<T>(5);
    T sum = 0, product = 1, greatest = x[0], least = x[0];
    std::vector<T> running;
    for (T v : x) {
      sum = static_cast<T>(sum + v);
      product = static_cast<T>(static_cast<std::uint64_t>(product) * static_cast<std::uint64_t>(v));
      greatest = std::max(greatest, v);
      least = std::min(least, v);
      running.push_back(sum);
    }
    CHECK(all(list(x), combiner::add) == sum);
    CHECK(all(list(x), combiner::multiply) == product);
    CHECK(all(list(x), combiner::max) == greatest);
    CHECK(all(list(x), combiner::min) == least);
    CHECK(values<T>(run(def<op::cumsum>, {list(x)}, {0, 0, 0})) == running);
    std::vector<T> sorted = x;
    std::sort(sorted.begin(), sorted.end());
    CHECK(values<T>(run(def<op::sort>, {list(x)}, {0, 1, 0})) == sorted);
    // argmax, with positions of the same type
    const array places = run(def<op::iota>, {}, {0}, {dtype_of<T>, {100}});
    builder b;
    const std::vector<T> front(x.begin(), x.begin() + 100);
    const value_id v = ops::parameter(b, "v", list(front).type()),
                   p = ops::parameter(b, "p", places.type());
    const std::int64_t dims[] = {0};
    const value_id most = ops::reduce(b, v, p, ops::extreme::argmax, dims);
    b.p.outputs.push_back({most + 1, b.p.intern("at")});
    const auto at = evaluate(b.p, list(front), places)["at"].template item<T>();
    CHECK(front[static_cast<std::size_t>(at)] == *std::max_element(front.begin(), front.end()));
  });
}

TEST_CASE("indices of every integer type; out of bounds, gather clamps and scatter drops") {
  const std::vector<float> rows = {10, 11, 12, 13, 14};
  for_integers([&]<class T>(std::type_identity<T>) {
    using limits = std::numeric_limits<T>;
    const std::vector<T> at = {0, 4, 5, limits::max(), limits::min(), static_cast<T>(-1), 2};
    const bool has_negative = std::is_signed_v<T>;
    const std::vector<float> want = {10, 14, 14, 14, 10, has_negative ? 10.f : 14.f, 12};
    CHECK(values<float>(run(def<op::gather>, {list(rows), list(at)})) == want);
    const array ones = list<float>(std::vector<float>(at.size(), 1));
    const float at_0 = std::is_signed_v<T> ? 1 : 2;  // the minimum is 0, too
    CHECK(values<float>(run(def<op::scatter>, {list(at), ones}, {1}, {dtype::f32, {5}})) ==
          std::vector<float>{at_0, 0, 1, 0, 1});
    for (std::size_t i = 0; i < at.size(); ++i) {
      const array part = run(def<op::dynamic_slice>, {list(rows), array(at[i])}, {1});
      CHECK(values<float>(part) == std::vector<float>{want[i]});
    }
  });
}

TEST_CASE("numbers of all integer types as constants and as text") {
  for_integers([]<class T>(std::type_identity<T>) {
    using limits = std::numeric_limits<T>;
    const dtype t = dtype_of<T>;
    for (T v : {limits::min(), limits::max(), T(limits::max() / 2 + 1), T(0), T(7)}) {
      builder b;
      const value_id c = b.emit(def<op::constant>, {}, {static_cast<std::int64_t>(v)}, {t, {2}});
      REQUIRE(c >= 0);
      b.p.outputs.push_back({c, b.p.intern("result")});
      const std::string text(print(b.p).view());
      CHECK(text.find("{" + std::to_string(v) + "}") != text.npos);
      const program again = parse(text);
      CHECK_MESSAGE(equivalent(again, b.p), std::string(again.error.message.view()));
      CHECK(values<T>(evaluate(again)[0]) == std::vector<T>{v, v});
    }
    // One number too large and one too small, as text.
    const auto said = [&](std::string_view number) {
      return std::string(parse(concat("func @main() {\n  %y = constant {", number, "} : tensor<",
                                      name_of(t), ">\n  return %y : tensor<", name_of(t), ">\n}\n"))
                             .error.message.view()
                             .substr(0, 4));
    };
    const __int128 most = static_cast<__int128>(limits::max()) + 1;
    std::string digits;
    for (__int128 n = most; n > 0; n /= 10)
      digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(n % 10)));
    const bool wide = sizeof(T) == 8;
    CHECK(said(digits) == (wide ? "P011" : "S117"));
    CHECK(said(std::to_string(limits::max())) == "");
    CHECK(said(std::is_signed_v<T> ? "-9223372036854775809" : "-1") ==
          (std::is_signed_v<T> || wide ? "P011" : "S117"));
    // The same as values.
    builder b;
    const double last = static_cast<double>(limits::max() / 2 + 1);
    const value_id c = ops::constant(b, {t, {}}, last),
                   least = ops::constant(b, {t, {}}, static_cast<double>(limits::min()));
    REQUIRE_MESSAGE(least >= 0, std::string(b.p.error.message.view()));
    b.p.outputs.push_back({c, b.p.intern("c")});
    b.p.outputs.push_back({least, b.p.intern("least")});
    const auto r = evaluate(b.p);
    CHECK(r["c"].template item<T>() == T(limits::max() / 2 + 1));
    CHECK(r["least"].template item<T>() == limits::min());
    CHECK(ops::constant(b, {t, {}}, std::ldexp(1., limits::digits)) == -1);
  });
}

TEST_CASE("integers through containers and the typed language") {
  const xt::xarray<std::uint64_t> big = {UINT64_MAX, 1, 1ull << 63};
  const xt::xarray<std::int8_t> small = {-128, 127, 5};
  CHECK(array(big).element() == dtype::u64);
  CHECK(array(small).element() == dtype::i8);
  CHECK(array(xt::xarray<std::uint16_t>{1}).element() == dtype::u16);
  CHECK(array(xt::xarray<unsigned long>{1}).element() == dtype::u64);
  CHECK(array(xt::xarray<unsigned long long>{1}).element() == dtype::u64);
  CHECK(array(big).to_xarray<std::uint64_t>() == big);
  const auto f = trace(
      [](auto b, auto s) {
        return std::tuple{output("more", b + 1),     output("half", b >> 1),
                          output("less", b < 2),     output("twice", s * 2),
                          output("quarter", s >> 2), output("as", convert<std::uint32_t>(s))};
      },
      input<std::uint64_t, 3>("b"), input<std::int8_t, 3>("s"));
  const auto r = evaluate(f, big, small);
  CHECK(values<std::uint64_t>(r["more"]) == std::vector<std::uint64_t>{0, 2, (1ull << 63) + 1});
  CHECK(values<std::uint64_t>(r["half"]) ==
        std::vector<std::uint64_t>{UINT64_MAX / 2, 0, 1ull << 62});
  CHECK(partita::equal(r["less"], xt::xarray<bool>{false, true, false}));
  CHECK(values<std::int8_t>(r["twice"]) == std::vector<std::int8_t>{0, -2, 10});
  CHECK(values<std::int8_t>(r["quarter"]) == std::vector<std::int8_t>{-32, 31, 1});
  CHECK(values<std::uint32_t>(r["as"]) == std::vector<std::uint32_t>{4294967168u, 127, 5});
}
