// Ops beyond arithmetic: bits, formats, special functions, constants element by element.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

using namespace partita;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

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
array list(const std::vector<T>& x, shape s = {}) {
  if (s.rank == 0) s = {static_cast<std::int64_t>(x.size())};
  array a(tensor_type{dtype_of<T>, s});
  std::copy(x.begin(), x.end(), a.template mutable_data<T>());
  return a;
}
template <class T>
std::vector<T> values(const array& a) {
  return {a.template data<T>(), a.template data<T>() + a.size()};
}
std::vector<double> wide(const array& a) { return values<double>(as_type(a, dtype::f64)); }

/// Runs one op of a scalar.
template <class T>
T at(const op_def& op, T x) {
  return run(op, {array(x)}).item<T>();
}
/// True if the numbers are equal, both NaN, or closer than `bound` epsilon of the maximum of 1 and
/// `want`.
template <class T>
bool near(T got, double want, double bound) {
  if (std::isnan(want) || std::isinf(want))
    return std::isnan(want) ? std::isnan(got) : static_cast<double>(got) == want;
  return std::fabs(static_cast<double>(got) - want) <=
         bound * static_cast<double>(std::numeric_limits<T>::epsilon()) *
             std::max(1., std::fabs(want));
}

}  // namespace

TEST_CASE("bitcast_convert keeps the bits, the lowest ones first") {
  const auto cast = [](const array& x, dtype to) {
    return run(def<op::bitcast_convert>, {x}, {}, {to, {}});
  };
  const array one = list<float>({1.f, -0.f});
  CHECK(values<std::uint32_t>(cast(one, dtype::u32)) ==
        std::vector<std::uint32_t>{0x3f800000u, 0x80000000u});
  const array bytes = cast(one, dtype::u8);
  CHECK(bytes.type() == tensor_type{dtype::u8, {2, 4}});
  CHECK(values<std::uint8_t>(bytes) == std::vector<std::uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0x80});
  CHECK(partita::equal(cast(bytes, dtype::f32), one));
  CHECK(cast(one, dtype::f64).type() == tensor_type{dtype::f64, {}});
  CHECK(cast(one, dtype::i64).item<std::int64_t>() ==
        static_cast<std::int64_t>(0x800000003f800000u));
  CHECK(cast(list<std::uint16_t>({0x3c00, 0xfc00}), dtype::f16).data<f16>()[0] == f16(1.f));
  CHECK(float(cast(list<std::int16_t>({0x3f80}), dtype::bf16).data<bf16>()[0]) == 1.f);
  // NaNs keep their bits, too.
  const array nan = list<std::uint32_t>({0x7f800001u, 0xffc12345u});
  CHECK(partita::equal(cast(cast(nan, dtype::f32), dtype::u32), nan));
  // In both directions, in buffers of all sizes.
  for (dtype from : {dtype::i8, dtype::u16, dtype::f32, dtype::f64})
    for (dtype to : {dtype::u8, dtype::bf16, dtype::i32, dtype::u64})
      for (std::int64_t n : {0, 1, 7, 100}) {
        data::random r{7};
        array x(
            tensor_type{from, {n, size_of(from) < size_of(to) ? size_of(to) / size_of(from) : 1}});
        for (std::int64_t i = 0; i < x.type().bytes(); ++i)
          x.mutable_bytes()[i] = static_cast<std::byte>(r.in(0, 255));
        const array y = cast(x, to), back = cast(y, from);
        CHECK(y.type().bytes() == x.type().bytes());
        CHECK(back.type() == x.type());
        CHECK(std::memcmp(back.bytes(), x.bytes(), static_cast<std::size_t>(x.type().bytes())) ==
              0);
      }
}

TEST_CASE("count_leading_zeros and round_nearest_away have known values") {
  const auto& count = def<op::count_leading_zeros>;
  CHECK(values<std::int8_t>(run(count, {list<std::int8_t>({0, 1, 127, -1, -128})})) ==
        std::vector<std::int8_t>{8, 7, 1, 0, 0});
  CHECK(values<std::uint16_t>(run(count, {list<std::uint16_t>({0, 1, 0x8000, 0x00ff})})) ==
        std::vector<std::uint16_t>{16, 15, 0, 8});
  CHECK(values<std::int32_t>(run(count, {list<std::int32_t>({0, 1, -5, 1 << 20})})) ==
        std::vector<std::int32_t>{32, 31, 0, 11});
  CHECK(values<std::uint64_t>(run(count, {list<std::uint64_t>({0, 1, ~0ull, 1ull << 40})})) ==
        std::vector<std::uint64_t>{64, 63, 0, 23});
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
    const array x = as_type(
        list<double>({0.5, -0.5, 1.5, 2.5, -2.5, 0.375, -0.375, -0., inf, -inf, not_a_number}), t);
    const std::vector<double> y = wide(run(def<op::round_nearest_away>, {x}));
    const double want[] = {1, -1, 2, 3, -3, 0, -0., -0., inf, -inf, not_a_number};
    for (std::size_t i = 0; i < y.size(); ++i)
      CHECK((std::isnan(want[i]) ? std::isnan(y[i])
                                 : y[i] == want[i] && std::signbit(y[i]) == std::signbit(want[i])));
  }
  CHECK(at(def<op::round_nearest_away>, 0x1.fffffffffffffp-2) ==
        0);  // not the truncation of 0.5 + x
}

TEST_CASE(
    "reduce_precision equals a conversion to the format and back, but small numbers become zeros") {
  std::vector<float> x = {0.f,          -0.f,    1.f,     -1.f,      65504.f,
                          65519.9f,     65520.f, -1e30f,  0x1p-14f,  0x1p-14f - 0x1p-26f,
                          0x1.ffcp-15f, 1e-40f,  3.4e38f, 1.0009765f};
  data::random r{3};
  for (int i = 0; i < 20000; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(r.next())));
    x.push_back(static_cast<float>(r.in(-70000, 70000)) / 512);
  }
  const auto same = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
  };
  const auto& reduce = def<op::reduce_precision>;
  const std::vector<float> half = values<float>(run(reduce, {list(x)}, {5, 10}));
  const std::vector<float> brain = values<float>(run(reduce, {list(x)}, {8, 7}));
  const std::vector<float> whole = values<float>(run(reduce, {list(x)}, {8, 23}));
  const std::vector<float> more = values<float>(run(reduce, {list(x)}, {99, 1000}));
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    // The number is rounded as if the format's exponents had no limit; then numbers below the limit
    // become zero.
    const auto rounded = static_cast<float>(
        std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(x[i]), 10 - std::ilogb(x[i]))),
                   std::ilogb(x[i]) - 10));
    const float small = std::copysign(0.f, x[i]);
    const bool lost = std::fabs(x[i]) < 1 && std::fabs(rounded) < 0x1p-14f;
    const bool normal = std::isnormal(x[i]);
    wrong += !same(
        half[i], lost || !(normal || x[i] != x[i] || std::isinf(x[i])) ? small : float(f16(x[i])));
    wrong += !same(brain[i], float(bf16(x[i])));
    wrong += !same(whole[i], x[i]) + !same(more[i], x[i]);
  }
  CHECK(wrong == 0);
  // binary64 to the format of binary32.
  const std::vector<double> d = {1 + 0x1p-24, 1 + 0x1.8p-23, 3.5e38, -1e300,
                                 0x1p-126,    0x1p-127,      -inf};
  CHECK(values<double>(run(reduce, {list(d)}, {8, 23})) ==
        std::vector<double>{1, 1 + 0x1p-22, inf, -inf, 0x1p-126, 0, -inf});
  // 16-bit floats are rounded as they are: a format with the same exponents keeps small ones.
  const array tiny = as_type(list<float>({0x1p-24f, 0x1.1p-15f, 3.f, 70000.f}), dtype::f16);
  CHECK(partita::equal(run(reduce, {tiny}, {5, 10}), tiny));
  CHECK(wide(run(reduce, {tiny}, {4, 10})) == std::vector<double>{0, 0, 3, inf});
  CHECK(wide(run(reduce, {as_type(list<float>({3.f, 5.f, 7.f, 300.f}), dtype::bf16)}, {8, 1})) ==
        std::vector<double>{3, 4, 8, 256});
  // No mantissa bits and one exponent bit: the smallest format has only zeros and infinities.
  CHECK(values<float>(run(reduce, {list<float>({1.f, 1.5f, 2.f, 0.75f, -3.f})}, {8, 0})) ==
        std::vector<float>{1, 2, 2, 0.5, -2});
  CHECK(values<float>(run(reduce, {list<float>({1.f, 1.5f, 0.1f, -3.f})}, {1, 23})) ==
        std::vector<float>{0, 0, 0, -std::numeric_limits<float>::infinity()});
  CHECK(std::isnan(
      run(reduce, {array(std::numeric_limits<float>::quiet_NaN())}, {1, 0}).item<float>()));
}

TEST_CASE("special functions: known values, and equations between them") {
  // Source: mathematical tables (Abramowitz and Stegun, chapters 6 and 7), and closed forms.
  constexpr double euler = 0.57721566490153286, log_pi = 1.1447298858494002;
  const std::pair<double, double> gammas[] = {{1, 0},
                                              {2, 0},
                                              {3, std::log(2)},
                                              {0.5, log_pi / 2},
                                              {171, std::log(7.257415615307994e306)},
                                              {0, inf},
                                              {-0., inf},
                                              {-1, inf},
                                              {-7, inf},
                                              {inf, inf},
                                              {-inf, inf},
                                              {-0.5, std::log(2) + log_pi / 2},
                                              {not_a_number, not_a_number}};
  const std::pair<double, double> psis[] = {{1, -euler},
                                            {2, 1 - euler},
                                            {0.5, -euler - 2 * std::log(2)},
                                            {10, 2.2517525890667211},
                                            {-0.5, 2 - euler - 2 * std::log(2)},
                                            {1e10, std::log(1e10) - 0.5e-10},
                                            {1e-8, -1e8 - euler},
                                            {0, not_a_number},
                                            {-3, not_a_number},
                                            {inf, inf},
                                            {-inf, not_a_number},
                                            {1.4616321449683623, 0}};
  const std::pair<double, double> inverses[] = {{0, 0},
                                                {0.5, 0.47693627620446987},
                                                {-0.5, -0.47693627620446987},
                                                {0.99, 1.8213863677184496},
                                                {1e-10, 8.8622692545275801e-11},
                                                {1 - 0x1p-53, 5.8635847487551676},
                                                {1, inf},
                                                {-1, -inf},
                                                {1.5, not_a_number},
                                                {-inf, not_a_number},
                                                {not_a_number, not_a_number}};
  const std::pair<double, double> rests[] = {
      {0, 1},    {1, 0.15729920705028513},    {-1, 1.8427007929497149}, {inf, 0},
      {-inf, 2}, {not_a_number, not_a_number}};
  const auto check = [](const op_def& op, const auto& table, double bound) {
    for (const auto& [x, y] : table) {
      CHECK_MESSAGE(near(at(op, x), y, bound), op.name, " of ", x, " is ", at(op, x), ", not ", y);
      if (static_cast<double>(static_cast<float>(x)) == x)
        CHECK_MESSAGE(near(at(op, static_cast<float>(x)), y, 2), op.name, " of ", x);
    }
  };
  check(def<op::lgamma>, gammas, 4);
  check(def<op::digamma>, psis, 10);
  check(def<op::erf_inv>, inverses, 2);
  check(def<op::erfc>, rests, 4);
  CHECK(std::fabs(at(def<op::erfc>, 20.) / 5.3958656116079009e-176 - 1) < 1e-15);
  CHECK(std::signbit(at(def<op::erf_inv>, -0.)));
  data::random r{5};
  for (int i = 0; i < 3000; ++i) {
    const double x = static_cast<double>(r.in(-8'000'001, 8'000'001)) / 1e6;
    // lgamma(x + 1) - lgamma(x) = log |x|; digamma(x + 1) - digamma(x) = 1 / x
    const double up = at(def<op::lgamma>, x + 1), down = at(def<op::lgamma>, x);
    const double scale = std::max(1., std::fabs(up) + std::fabs(down));
    if (x != std::nearbyint(x) && std::fabs(x - std::nearbyint(x)) > 1e-3) {
      CHECK(std::fabs(up - down - std::log(std::fabs(x))) <= 1e-12 * scale);
      const double steep = at(def<op::digamma>, x);
      CHECK(std::fabs(at(def<op::digamma>, x + 1) - steep - 1 / x) <=
            1e-11 * std::max(1., std::fabs(steep)));
    }
    const double y = at(def<op::erf_inv>, x / 9);
    CHECK(std::fabs(std::erf(y) - x / 9) <= 3e-16);
    CHECK(near(at(def<op::erfc>, x), 1 - std::erf(x), 2));
  }
  for (int k = 1; k < 52; ++k) {  // up to the ends: erfc(erf_inv(1 - q)) = q
    const double q = std::ldexp(1., -k), y = at(def<op::erf_inv>, 1 - q);
    CHECK(std::fabs(std::erfc(y) / q - 1) <= 1e-14 * (1 + 2 * y * y));
  }
  // 16-bit floats are computed in binary32 and rounded.
  for (dtype t : {dtype::bf16, dtype::f16})
    for (const op_def* op :
         {&def<op::erfc>, &def<op::erf_inv>, &def<op::lgamma>, &def<op::digamma>}) {
      const array x = as_type(list<float>({0.25f, 0.5f, -0.75f, 0.875f}), t);
      CHECK(partita::equal(run(*op, {x}), as_type(run(*op, {as_type(x, dtype::f32)}), t)));
    }
}

TEST_CASE("literals: the given elements; equal elements are a constant") {
  const auto f = trace(
      [](auto x) {
        const auto table = literal<float, 2, 3>(x, {1, -0.f, 2.5f, 1e-3f, 4, 5});
        const auto places = literal<std::int64_t, 3>(x, {2, 0, 1});
        const auto truth = literal<bool, 3>(x, {true, false, true});
        const auto half = literal<bf16, 1>(x, {bf16(0.5f)});
        return std::tuple{output("sum", x + table), output("taken", take<1>(x, places)),
                          output("chosen", select(truth, x, literal<float>(x, {7.f}))),
                          output("half", convert<float>(half)),
                          output("most", literal<std::uint64_t, 2>(x, {UINT64_MAX, 1}))};
      },
      input<float, 2, 3>("x"));
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const auto r = evaluate(f, list(x, {2, 3}));
  CHECK(values<float>(r["sum"]) == std::vector<float>{2, 2, 5.5f, 4.001f, 9, 11});
  CHECK(values<float>(r["taken"]) == std::vector<float>{3, 1, 2, 6, 4, 5});
  CHECK(values<float>(r["chosen"]) == std::vector<float>{1, 7, 3, 4, 7, 6});
  CHECK(values<float>(r["half"]) == std::vector<float>{0.5f});
  CHECK(values<std::uint64_t>(r["most"]) == std::vector<std::uint64_t>{UINT64_MAX, 1});
  const auto made = [](const tensor_type& t, std::vector<std::int64_t> bits) {
    builder b;
    const value_id v = ops::literal(b, t, bits);
    return v < 0 ? std::string(b.p.error.message.view())
                 : std::string(b.p.op(b.p.producer(v)).def->name);
  };
  CHECK(made({dtype::i32, {3}}, {7, 7, 7}) == "constant");
  CHECK(made({dtype::i32, {3}}, {7, 7, 8}) == "literal");
  CHECK(made({dtype::i32, {}}, {7}) == "constant");
  CHECK(made({dtype::f32, {0, 2}}, {}) == "constant");
  CHECK(made({dtype::f64, {2}}, {0, INT64_MIN}) == "literal");  // 0 and -0
  CHECK(made({dtype::u8, {2}}, {256, 256}) ==
        "S117 constant: 256 is not a value of element type u8");
  CHECK(made({dtype::u8, {2}}, {7, 7, 7}) ==
        "S144 literal: 3 elements are given; tensor<2xu8> has 2");
}

TEST_CASE("literals as text are exact, and linear in their elements") {
  const auto program_of = [](dtype t, const std::vector<std::int64_t>& bits) {
    builder b;
    const value_id v = ops::literal(b, {t, {static_cast<std::int64_t>(bits.size())}}, bits);
    b.p.error.raise();
    b.p.outputs.push_back({v, b.p.intern("result")});
    return b.p;
  };
  const auto bits = [](double v) { return std::bit_cast<std::int64_t>(v); };
  const program p =
      program_of(dtype::f32, {bits(1), bits(2.5), bits(-3), bits(-0.), bits(inf), bits(-inf),
                              bits(not_a_number), bits(0.1f), 0x7ff0000000000001});
  const std::string text(print(p).view());
  CHECK(text.find("%x1 = literal {1, 2.5, -3, -0, inf, -inf, nan, 0.10000000149011612, "
                  "nan(0x7ff0000000000001)} : tensor<9xf32>") != text.npos);
  CHECK(equivalent(parse(text), p));
  const program q = program_of(dtype::u64, {-1, 0, INT64_MIN});
  CHECK(print(q).view().find("literal {18446744073709551615, 0, 9223372036854775808}") !=
        std::string_view::npos);
  CHECK(equivalent(parse(print(q)), q));
  const auto said = [](std::string_view attributes) {
    return std::string(parse(concat("func @main() {\n  %y = literal ", attributes,
                                    " : tensor<2xi32>\n  return %y : tensor<2xi32>\n}\n"))
                           .error.message.view());
  };
  CHECK(said("{1, 2}") == "");
  CHECK(said("{1,2}") ==
        "P011 parse: attributes of literal: \", \" expected, found \",2\" (line 2, column 16)");
  CHECK(said("{1, x}") ==
        "P011 parse: attributes of literal: \"x\" is not a number of type i32 (line 2, column 16)");
  CHECK(said("{1, 2, 3}") ==
        "S144 literal: 3 elements are given; tensor<2xi32> has 2 (line 2, column 8)");
  CHECK(said("{1, 2147483648}") ==
        "S117 literal: 2147483648 is not a value of element type i32 (line 2, column 8)");
  CHECK(said("") == "S144 literal: 0 elements are given; tensor<2xi32> has 2 (line 2, column 8)");
  // A million elements.
  data::random r{1};
  std::vector<std::int64_t> many;
  for (int i = 0; i < 1'000'000; ++i) many.push_back(r.in(INT32_MIN, INT32_MAX));
  const program big = program_of(dtype::i32, many);
  const program again = parse(print(big));
  CHECK(equivalent(again, big));
  CHECK(values<std::int32_t>(evaluate(again)[0])[999'999] ==
        static_cast<std::int32_t>(many.back()));
}

TEST_CASE("literals on a mesh are replicated, sliced for users that need a block, and proved") {
  const auto f = trace(
      [](auto x, auto w) {
        const auto scale = literal<float, 8>(x, {1, 2, 3, 4, 5, 6, 7, 8});
        const auto again = literal<float, 8>(x, {1, 2, 3, 4, 5, 6, 7, 8});
        const auto places = literal<std::int32_t, 4>(x, {3, 1, 1, 0});
        return std::tuple{output("y", matmul(x * scale, w)),
                          output("z", take<0>(x, places) - again)};
      },
      input<float, 8, 8>("x"), input<float, 8, 4>("w"));
  const mesh m{{"B", 4}, {"M", 2}};
  const auto q = partition(f, m, schedule(manual("B", {{"x", 0}}), manual("M", {{"w", 0}})));
  const auto args = data::arguments(f);
  const auto want = evaluate(f, args), got = emulate(q, args);
  CHECK(partita::equal(want["y"], got["y"]));
  CHECK(partita::equal(want["z"], got["z"]));
  const verdict v = prove(f, q.device);
  CHECK_MESSAGE(v.proved, std::string(v.error.message.view()));
  // A different element makes a different literal.
  std::string text(print(q.device).view());
  const auto at = text.find("{1, 2, 3, 4, 5, 6, 7, 8}");
  REQUIRE(at != text.npos);
  text[at + 4] = '9';
  device_program wrong = q.device;
  wrong.local = parse(text, wrong.mesh);
  REQUIRE_MESSAGE(!wrong.local.error, std::string(wrong.local.error.message.view()));
  CHECK(!prove(f, wrong).proved);
}
