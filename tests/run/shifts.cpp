// Shifts in their usual spellings become one op, which costs one permute along a sharded dimension.
#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/stablehlo/read.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

/// Returns the shift, and the bytes that its gradient sends.
template <class F>
pt::program with_gradient(const F& shift) {
  const auto f = [&](auto x, auto y) {
    const auto loss = [&](auto v) { return sum(shift(v) * y); };
    return std::tuple{shift(x), pt::grad(loss, x)};
  };
  return pt::trace(f, pt::input<float, 4, 16>("x"), pt::input<float, 4, 16>("y"));
}
int count(const pt::program& p, std::string_view name) {
  int n = 0;
  for (pt::op_id o = 0; o < p.op_count(); ++o) n += p.op(o).def->name == name;
  return n;
}
/// Checks that the program `becomes` this op and needs one permute over two and four devices each.
void check_shift(const pt::program& p, std::string_view becomes) {
  CAPTURE(str(pt::print(p)));
  const int shifts = count(p, becomes);
  CHECK(shifts > 0);
  CHECK(count(p, "slice") + count(p, "concatenate") == 0);
  const auto inputs = data::arguments(p);
  for (std::int64_t n : {2, 4}) {
    const auto x = pt::manual("S", {{"x", 1}}), y = pt::manual("S", {{"y", 1}});
    const auto r = p.input_count() == 1 ? pt::partition(p, pt::mesh{{"S", n}}, pt::schedule(x))
                                        : pt::partition(p, pt::mesh{{"S", n}}, pt::schedule(x, y));
    CAPTURE(str(pt::print(r.device)));
    CHECK(r.collectives == pt::collectives{.permute = shifts});
    CHECK(pt::equal(pt::emulate(r, inputs), pt::evaluate(p, inputs)));
    const pt::verdict v = pt::prove(r);
    CHECK_MESSAGE(v.proved, str(v.error.message));
  }
}
/// Forward and backward.
template <class F>
void check_shift(const F& shift, std::string_view becomes) {
  const pt::program p = with_gradient(shift);
  CHECK(count(p, becomes) == 2);
  check_shift(p, becomes);
}

}  // namespace

TEST_CASE("a slice of a pad becomes a pad that shifts zeros in") {
  check_shift(
      [](auto x) { return pt::slice<1, 0, 16>(pt::pad<pt::axes<0, 1>, pt::axes<0, 0>>(x, 0)); },
      "pad");
  check_shift(
      [](auto x) { return pt::slice<1, 2, 18>(pt::pad<pt::axes<0, 0>, pt::axes<0, 2>>(x, 0)); },
      "pad");
}
TEST_CASE("a pad of a slice, and zeros next to a slice, become a pad") {
  check_shift(
      [](auto x) { return pt::pad<pt::axes<0, 1>, pt::axes<0, 0>>(pt::slice<1, 0, 15>(x), 0); },
      "pad");
  check_shift(
      [](auto x) {
        return pt::concatenate<1>(pt::slice<1, 3, 16>(x), pt::full_like(pt::slice<1, 0, 3>(x), 0));
      },
      "pad");
}
TEST_CASE("two exchanged slices become a roll") {
  check_shift(
      [](auto x) { return pt::concatenate<1>(pt::slice<1, 4, 16>(x), pt::slice<1, 0, 4>(x)); },
      "roll");
  check_shift(
      [](auto x) { return pt::concatenate<1>(-pt::slice<1, 15, 16>(x), -pt::slice<1, 0, 15>(x)); },
      "roll");
}
TEST_CASE("exchanged halves, one of them negated, become a roll times a sign") {
  check_shift(
      [](auto x) { return pt::concatenate<1>(-pt::slice<1, 8, 16>(x), pt::slice<1, 0, 8>(x)); },
      "roll");
  check_shift(
      [](auto x) { return pt::concatenate<1>(pt::slice<1, 8, 16>(x), -pt::slice<1, 0, 8>(x)); },
      "roll");
}

TEST_CASE("the same from StableHLO, as jnp.roll, jnp.pad and rotate_half write it") {
  const auto read = [](std::string_view body) {
    const std::string_view names[] = {"x"};
    const pt::text module = pt::concat(
        "func.func public @main(%arg0: tensor<4x16xf32>) -> "
        "tensor<4x16xf32> {\n",
        body, "  return %9 : tensor<4x16xf32>\n}\n");
    return pt::read_stablehlo(module, names);
  };
  check_shift(read(R"(
    %0 = stablehlo.slice %arg0 [0:4, 13:16] : (tensor<4x16xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.slice %arg0 [0:4, 0:13] : (tensor<4x16xf32>) -> tensor<4x13xf32>
    %9 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x3xf32>, tensor<4x13xf32>) -> tensor<4x16xf32>
)"),
              "roll");
  check_shift(read(R"(
    %0 = stablehlo.slice %arg0 [0:4, 8:16] : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.negate %0 : tensor<4x8xf32>
    %2 = stablehlo.slice %arg0 [0:4, 0:8] : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %9 = stablehlo.concatenate %1, %2, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
)"),
              "roll");
  check_shift(read(R"(
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.pad %arg0, %cst, low = [0, 2], high = [0, 0], interior = [0, 0] : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x18xf32>
    %9 = stablehlo.slice %0 [0:4, 0:16] : (tensor<4x18xf32>) -> tensor<4x16xf32>
)"),
              "pad");
  check_shift(read(R"(
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %1 = stablehlo.slice %arg0 [0:4, 0:15] : (tensor<4x16xf32>) -> tensor<4x15xf32>
    %9 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x1xf32>, tensor<4x15xf32>) -> tensor<4x16xf32>
)"),
              "pad");
}

namespace {

/// Returns the bytes that a device sends for the halos of a program; nothing else is sent.
std::int64_t sent(const pt::program& p, std::int64_t devices, std::int64_t permutes) {
  const auto r =
      pt::partition(p, pt::mesh{{"S", devices}}, pt::schedule(pt::manual("S", {{"x", 0}})));
  CAPTURE(str(pt::print(r.device)));
  CHECK(r.collectives == pt::collectives{.permute = permutes});
  const auto inputs = data::arguments(p);
  CHECK(pt::equal(pt::emulate(r, inputs), pt::evaluate(p, inputs)));
  const pt::verdict v = pt::prove(r);
  CHECK_MESSAGE(v.proved, str(v.error.message));
  std::int64_t bytes = 0;
  for (const auto& n : pt::lower(r.core).notes) bytes += n.bytes * n.times;
  return bytes;
}
template <std::int64_t Low, std::int64_t High>
pt::program padded() {
  return pt::trace([](auto x) { return pt::pad<pt::axes<Low>, pt::axes<High>>(x, 0); },
                   pt::input<float, 16>("x"));
}

}  // namespace

TEST_CASE("16 elements padded to 32: only existing elements are sent, and only to users") {
  // 4 devices: blocks of 4 become blocks of 8. Devices 1 and 2 need the blocks of 0 and 3; for a
  // gather each device would send its 4 elements to three others.
  CHECK(sent(padded<8, 8>(), 4, 2) == (4 + 4) * 4);
  // 8 devices: blocks of 2 become blocks of 4 on the 4 middle devices. A gather sends 14.
  CHECK(sent(padded<8, 8>(), 8, 4) == 4 * 2 * 4);
  // On one side: device 3 of 4 needs the block of 2, device 2 those of 0 and 1.
  CHECK(sent(padded<16, 0>(), 4, 2) == (4 + 4) * 4);
  CHECK(sent(padded<0, 16>(), 4, 2) == (4 + 4) * 4);
}
