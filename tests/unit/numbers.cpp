// Conversions between numbers and text, compared with the standard library's.
#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <partita/partita.hpp>

namespace pt = partita;

namespace {

constexpr std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }
constexpr double from_bits(std::uint64_t b) { return std::bit_cast<double>(b); }

constexpr pt::text printed(double v) {
  pt::text out;
  pt::print_number(out, v);
  return out;
}
/// Returns the parsed number; if the text is not a number, a NaN with a payload that no number
/// parses to.
constexpr double read(std::string_view in) {
  pt::scanner s(in);
  double v = 0;
  return pt::read_number(s, v) && s.done() ? v : from_bits(~std::uint64_t{0});
}
constexpr bool round_trips(double v) { return bits(read(printed(v))) == bits(v); }
constexpr bool is_number(std::string_view in) { return bits(read(in)) != ~std::uint64_t{0}; }

/// Significant digits of a decimal number.
std::size_t digits(std::string_view number) {
  std::string only;
  for (char c : number.substr(0, number.find('e')))
    if (c >= '0' && c <= '9') only += c;
  only.erase(0, only.find_first_not_of('0'));
  while (only.size() > 1 && only.back() == '0') only.pop_back();
  return only.size();
}

std::uint64_t state = 1;
std::uint64_t any_bits() {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Checks that the text reads back as the same number, here and by the standard library. The text
/// is `%g` with six digits where they suffice, otherwise as short as that of std::to_chars.
void check(double v) {
  const pt::text mine = printed(v);
  const std::string_view text = mine;
  if (bits(read(text)) != bits(v)) CHECK_MESSAGE(false, text, " reads as another number");
  double standard = 0;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, standard);
  if (parsed.ptr != end || (bits(standard) != bits(v) && v != 0))
    CHECK_MESSAGE(false, text, " is another number to std::from_chars");
  char buffer[40];
  const auto shortest = std::to_chars(buffer, buffer + 40, v, std::chars_format::scientific);
  const std::size_t least = digits({buffer, static_cast<std::size_t>(shortest.ptr - buffer)});
  // Below a power of two, neighbours are closer: a shorter decimal that is not the nearest may
  // exist.
  const bool power_of_two = (bits(v) & ((std::uint64_t{1} << 52) - 1)) == 0;
  if (digits(text) > 6 && digits(text) != least && !(power_of_two && digits(text) == least + 1))
    CHECK_MESSAGE(false, text, " has more digits than it needs");
}

}  // namespace

// These run at compile time; the test cases below run the same at run time.
static_assert(printed(0.1) == "0.1" && printed(1.0 / 3) == "0.3333333333333333");
static_assert(printed(1e22) == "1e22" && printed(5e-324) == "4.94066e-324");
static_assert(round_trips(1.7976931348623157e308) && round_trips(2.2250738585072011e-308));
static_assert(round_trips(-0.0) && bits(read("-0")) == bits(-0.0));
static_assert(round_trips(std::numeric_limits<double>::infinity()));
static_assert(printed(from_bits(0xfff8000000000000u)) == "-nan");
static_assert(printed(from_bits(0xfff8000000000001u)) == "nan(0xfff8000000000001)");
static_assert(round_trips(std::numeric_limits<double>::quiet_NaN()));

TEST_CASE("numbers read back as the same bits") {
  for (int i = 0; i < 20000; ++i) {
    const double v = from_bits(any_bits());
    if (v == v && std::isfinite(v)) check(v);
    if (v != v) CHECK(round_trips(v));
  }
  for (int i = 0; i < 5000; ++i) {
    check(from_bits(any_bits() >> 12));                       // subnormal
    check(static_cast<double>(any_bits() % 2000000) / 1000);  // few digits
    check(
        static_cast<double>(static_cast<float>(from_bits(any_bits() >> 2 | 0x3000000000000000u))));
    check(std::ldexp(1.0, static_cast<int>(any_bits() % 2098) - 1074));  // powers of two
  }
  for (double v : {0.0, -0.0, 5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308,
                   1.7976931348623157e308, 9007199254740993.0, 123456.0, 999999.5, 9999995.0,
                   9.999995, 99999.95, 1e23, 8.5e-5, 1e-4, 0.3})
    for (double each : {v, -v}) check(each);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(printed(infinity) == "inf");
  CHECK(printed(-infinity) == "-inf");
  for (std::uint64_t b :
       {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff0000000000001u, 0xffffffffffffffffu})
    CHECK(round_trips(from_bits(b)));
}

TEST_CASE("decimal numbers are read to the nearest value, like std::from_chars") {
  const auto agree = [](const std::string& in) {
    double standard = 0;
    const auto r = std::from_chars(in.data(), in.data() + in.size(), standard);
    REQUIRE(r.ptr == in.data() + in.size());
    if (r.ec == std::errc::result_out_of_range)  // the standard leaves the value open
      standard = in.find("e-") == std::string::npos ? HUGE_VAL : 0;
    if (bits(read(in)) != bits(standard)) CHECK_MESSAGE(false, in, " is read as ", read(in));
  };
  for (int i = 0; i < 20000; ++i) {
    std::string in = std::to_string(any_bits());
    if (i % 2 == 0) in.insert(1, ".");
    if (i % 3 == 0) in += std::to_string(any_bits());
    agree(in + "e" + std::to_string(static_cast<int>(any_bits() % 700) - 370));
  }
  // Ties and their neighbours.
  for (const char* in :
       {"9007199254740993", "9007199254740993.0000000000000000000000001",
        "9007199254740992.9999999", "2.4703282292062327e-324", "2.4703282292062328e-324",
        "1.7976931348623158e308", "1.7976931348623159e308", "1e400", "1e-400", "0e999999999",
        "1e999999999", "1e-999999999", "2.2250738585072011e-308", "000.5",
        "0.000000000000000000000000000000000000000000001"})
    agree(in);
  CHECK(read("1e+5") == 1e5);
  for (std::string in :
       {"", "-", ".5", "5.", "1e", "1e+-5", "e5", "x", "nan(", "-nan(0x7ff8000000000001)",
        "nan(0x12)", "nan(0x7ff0000000000000)", "0x10", "1e99999999999", "--1", "+1", "1 "})
    CHECK_MESSAGE(!is_number(in), in);
}

TEST_CASE("integers are read in the range of 64 bits") {
  const auto integer = [](std::string_view in, std::int64_t& out) {
    pt::scanner s(in);
    return s.integer(out) && s.done();
  };
  std::int64_t v = 7;
  CHECK((integer("9223372036854775807", v) && v == std::numeric_limits<std::int64_t>::max()));
  CHECK((integer("-9223372036854775808", v) && v == std::numeric_limits<std::int64_t>::min()));
  CHECK((integer("-0", v) && v == 0));
  for (std::string in : {"9223372036854775808", "-9223372036854775809", "99999999999999999999", "",
                         "-", "1.5", "+1"})
    CHECK_MESSAGE(!integer(in, v), in);
}
