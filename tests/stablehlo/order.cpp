// Total order of floats: comparisons, sort and top_k, as XLA computes them.
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write.hpp>

#include "../data.hpp"
#include "modules.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float positive_nan = std::bit_cast<float>(0x7fc00000u),
            negative_nan = std::bit_cast<float>(0xffc00000u);

pt::array floats(const std::vector<float>& x) {
  pt::array a(pt::tensor_type{pt::dtype::f32, {static_cast<std::int64_t>(x.size())}});
  std::copy(x.begin(), x.end(), a.mutable_data<float>());
  return a;
}
pt::program read(const std::string& module) {
  pt::program p = pt::read_stablehlo(module);
  REQUIRE_MESSAGE(!p.error, str(p.error.message), "\n", module);
  return p;
}
std::vector<std::int32_t> positions(const pt::array& a) {
  return {a.data<std::int32_t>(), a.data<std::int32_t>() + a.size()};
}
/// The bits, which distinguish NaN values and zeros.
std::vector<std::uint32_t> bits(const pt::array& a) {
  std::vector<std::uint32_t> list;
  for (std::int64_t i = 0; i < a.size(); ++i)
    list.push_back(std::bit_cast<std::uint32_t>(a.data<float>()[i]));
  return list;
}
/// Sorts values with their positions by a comparison of `t` floats.
std::string sort_module(const std::string& how, const std::string& n) {
  const std::string t = "tensor<" + n + "xf32>", i = "tensor<" + n + "xi32>";
  return modules::around(
      "%x: " + t, "    %i = stablehlo.iota dim = 0 : " + i +
                      "\n    %s:2 = \"stablehlo.sort\"(%x, %i) <{dimension = 0 : "
                      "i64, is_stable = true}> ({\n    ^bb0(%a: tensor<f32>, %b: "
                      "tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):\n" +
                      how + "      stablehlo.return %r : tensor<i1>\n    }) : (" + t + ", " + i +
                      ") -> (" + t + ", " + i + ")\n    return %s#0, %s#1 : " + t + ", " + i);
}
std::string compared(const std::string& direction, const std::string& type) {
  return "      %r = stablehlo.compare " + direction + ", %a, %b, " + type +
         " : (tensor<f32>, tensor<f32>) -> tensor<i1>\n";
}

}  // namespace

TEST_CASE("sort uses the total order") {
  const std::vector<float> x{0.f,  -0.f, 1.f,  positive_nan, negative_nan,
                             -1.f, inf,  -inf, -0.f,         0.f};
  const pt::array given = floats(x);
  const pt::results up = pt::evaluate(read(sort_module(compared("LT", "TOTALORDER"), "10")), given);
  CHECK(positions(up[1]) == std::vector<std::int32_t>{4, 7, 5, 1, 8, 0, 9, 2, 6, 3});
  CHECK(bits(up[0]) ==
        bits(floats({negative_nan, -inf, -1.f, -0.f, -0.f, 0.f, 0.f, 1.f, inf, positive_nan})));
  const pt::results down =
      pt::evaluate(read(sort_module(compared("GT", "TOTALORDER"), "10")), given);
  CHECK(positions(down[1]) == std::vector<std::int32_t>{3, 6, 2, 0, 9, 1, 8, 5, 7, 4});
  // FLOAT treats zeros as equal.
  const pt::results equal =
      pt::evaluate(read(sort_module(compared("LT", "FLOAT"), "4")), floats({0.f, -0.f, -1.f, 0.f}));
  CHECK(positions(equal[1]) == std::vector<std::int32_t>{2, 0, 1, 3});
  // The program is the same after writing and reading it.
  const pt::program p = read(sort_module(compared("GT", "TOTALORDER"), "10"));
  const pt::results again = pt::evaluate(read(str(pt::write_stablehlo(p))), given);
  CHECK(positions(again[1]) == positions(down[1]));
}

TEST_CASE("compare uses the total order") {
  const std::vector<float> ordered{negative_nan, -inf, -1.f, -0.f,        0.f,
                                   1e-45f,       1.f,  inf,  positive_nan};
  std::vector<float> x, y;
  for (float a : ordered)
    for (float b : ordered) x.push_back(a), y.push_back(b);
  const std::string n = std::to_string(x.size());
  int direction = 0;
  for (const char* name : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
    const std::string t = "tensor<" + n + "xf32>", r = "tensor<" + n + "xi1>";
    const pt::program p = read(modules::around(
        "%x: " + t + ", %y: " + t, "    %r = stablehlo.compare " + std::string(name) +
                                       ", %x, %y,  TOTALORDER : (" + t + ", " + t + ") -> " + r +
                                       "\n    return %r : " + r));
    const pt::array made = pt::evaluate(p, floats(x), floats(y))[0];
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t a = i / ordered.size(), b = i % ordered.size();
      const bool want[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
      CHECK(made.data<bool>()[i] == want[direction]);
    }
    ++direction;
  }
}

TEST_CASE("a comparison type that does not match is an error") {
  const auto error_of = [](const std::string& type, const std::string& element) {
    const std::string t = "tensor<4x" + element + ">";
    return str(
        pt::read_stablehlo(
            modules::around("%x: " + t, "    %r = stablehlo.compare LT, %x, %x, " + type + " : (" +
                                            t + ", " + t +
                                            ") -> tensor<4xi1>\n    return %r : tensor<4xi1>"))
            .error.message);
  };
  for (const auto& [type, element] :
       {std::pair{"FLOAT", "f32"}, std::pair{"TOTALORDER", "bf16"}, std::pair{"SIGNED", "i32"},
        std::pair{"UNSIGNED", "ui8"}, std::pair{"UNSIGNED", "i1"}})
    CHECK(error_of(type, element) == "");
  for (const auto& [type, element] :
       {std::pair{"FLOAT", "i32"}, std::pair{"TOTALORDER", "i32"}, std::pair{"SIGNED", "f32"},
        std::pair{"UNSIGNED", "i32"}, std::pair{"SIGNED", "ui8"}, std::pair{"TOTAL", "f32"}})
    CHECK(error_of(type, element).starts_with("H005 stablehlo: 3:"));
}

TEST_CASE("top_k returns the maxima in total order") {
  const pt::program p = read(modules::around(
      "%x: tensor<5xf32>",
      "    %v, %i = chlo.top_k(%x, k = 5) : tensor<5xf32> -> (tensor<5xf32>, tensor<5xi32>)\n"
      "    return %v, %i : tensor<5xf32>, tensor<5xi32>"));
  const pt::results quotients =
      pt::evaluate(p, floats({negative_nan, 1.f, 1.f, negative_nan, 1.f}));
  CHECK(positions(quotients[1]) == std::vector<std::int32_t>{1, 2, 4, 0, 3});
  const pt::results zeros = pt::evaluate(p, floats({-0.f, positive_nan, 0.f, -inf, negative_nan}));
  CHECK(positions(zeros[1]) == std::vector<std::int32_t>{1, 2, 0, 3, 4});
  // If the positions do not matter, it is written as a sort.
  pt::builder b;
  const pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {5}});
  const pt::value_id at = pt::ops::parameter(b, "at", {pt::dtype::i32, {5}});
  const pt::value_id top = b.emit(pt::def<pt::op::top_k>, {x, at}, {5});
  for (int i = 0; i < 2; ++i) b.p.outputs.push_back({top + i, {}});
  std::string module = str(pt::write_stablehlo(b.p));
  // (The decomposition itself, which XLA runs.)
  for (std::size_t at_name; (at_name = module.find("composite \"partita.")) != std::string::npos;)
    module.replace(at_name, 19, "composite \"other.");
  pt::array order(pt::tensor_type{pt::dtype::i32, {5}});
  for (int i = 0; i < 5; ++i) order.mutable_data<std::int32_t>()[i] = 9 - i;
  for (const auto& values : {floats({-0.f, positive_nan, 0.f, -inf, negative_nan}),
                             floats({0.f, 0.f, -0.f, positive_nan, positive_nan})}) {
    const pt::results made = pt::evaluate(read(module), values, order);
    const pt::results want = pt::evaluate(b.p, values, order);
    CHECK(positions(made[1]) == positions(want[1]));
    CHECK(bits(made[0]) == bits(want[0]));
  }
}
