// Fused groups compared with single ops, bit by bit: short rows, and values that groups recompute.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

#include "../data.hpp"

using namespace partita;

namespace {

/// True if the bits are equal; all NaN are equal. The sign of a NaN depends on the order in which
/// the compiler passes operands to the processor.
bool same_bits(const array& a, const array& b) {
  if (a.type() != b.type()) return false;
  const auto size = static_cast<std::size_t>(size_of(a.element()));
  const array x = as_type(a, dtype::f64), y = as_type(b, dtype::f64);
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const auto at = static_cast<std::size_t>(i) * size;
    const bool both_nan = std::isnan(x.data<double>()[i]) && std::isnan(y.data<double>()[i]);
    if (!both_nan && std::memcmp(a.bytes() + at, b.bytes() + at, size) != 0) return false;
  }
  return true;
}
/// Returns real values; if `special`, some are not finite or zeros of either sign.
array values(const tensor_type& t, std::uint64_t seed, bool special) {
  data::random r{seed};
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double rare[] = {std::nan(""), inf, -inf, 0., -0., 1e-40, -200};
  return data::fill(t, [&](std::int64_t) {
    return special && r.one_in(40) ? r.pick(rare) : static_cast<double>(r.in(-999, 999)) / 300;
  });
}
/// `twice`, `sum` and `shifted` are read again after a kernel (cumsum) that needs them in memory.
constexpr auto model = [](const auto& x, const auto& y) {
  const auto twice = x + x;
  const auto shifted = twice - y;
  const auto weights = nn::softmax(x * y);
  const auto sum = cumsum<1>(weights * shifted);
  return std::tuple{output("weights", weights), output("norm", nn::softmax(sum * twice) * shifted),
                    output("least", reduce_min<1>(sum - twice))};
};
template <class T>
void check_rows(std::int64_t rows, std::int64_t row) {
  using matrix = tensor<T, dyn, dyn>;
  const program p = trace(model, input("x", matrix(rows, row)), input("y", matrix(rows, row)));
  const executable fused(p), single(p, {.fuse = false});
  for (bool special : {false, true}) {
    const auto seed = static_cast<std::uint64_t>(row);
    const std::vector<array> in = {values(p.input_type(0), seed, special),
                                   values(p.input_type(1), seed + 100, special)};
    const std::vector<array> a = fused(in), b = single(in);
    for (int i = 0; i < p.output_count(); ++i) {
      CAPTURE(row);
      CAPTURE(i);
      REQUIRE(same_bits(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(i)]));
    }
  }
}

}  // namespace

TEST_CASE("fused rows of every short length, of every floating-point type") {
  for (std::int64_t row = 1; row <= 70; ++row) {
    check_rows<float>(row % 3 == 0 ? 37 : 16, row);
    check_rows<double>(19, row);
    if (row % 4 != 1) continue;
    check_rows<bf16>(19, row);
    check_rows<f16>(19, row);
  }
  for (std::int64_t row : {84, 127, 128, 255, 256, 257, 1000}) check_rows<float>(35, row);
}

TEST_CASE("fused groups on large values, whose next blocks are prefetched") {
  check_rows<float>(2049, 64);
}
