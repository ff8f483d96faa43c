// Products that overlap with rings, and collectives that are awaited: right programs are proved,
// others are not.
#include <doctest/doctest.h>

#include <string>

#include <partita/prove/prove.hpp>
#include <partita/spmd/parse.hpp>

#include "../data.hpp"
#include "../slow_links.hpp"

namespace pt = partita;
using data::str;

namespace {

const pt::overlap_options beside{.on = data::slow_links(1e7)};

/// Returns why the program is not proved, or "", and checks the number of messages.
std::string why(const pt::program& source, const pt::mesh& m, std::int64_t messages,
                const auto&... tactics) {
  const auto p = pt::partition(source, m, pt::schedule(tactics...), {.overlap = beside});
  CHECK_MESSAGE(p.collectives == pt::collectives{.permute = messages}, str(pt::print(p.device)));
  const pt::verdict v = pt::prove(p);
  const auto x = data::arguments(p.source);
  CHECK(pt::equal(pt::emulate(p.device, x), pt::evaluate(p.source, x)));
  return v.proved ? std::string() : str(v.error.message) + "\n" + str(pt::print(p.device));
}
constexpr pt::mesh four{{"B", 4}};
const auto product = pt::trace([](auto x, auto w) { return pt::matmul(x, w); },
                               pt::input<float, 32, 16>("x"), pt::input<float, 16, 24>("w"));
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");

}  // namespace

TEST_CASE("rings of gathers: blocks in another order on each device are proved") {
  CHECK(why(product, four, 3, BP, pt::manual("B", {{"w", 1}})) == "");
  CHECK(why(product, four, 3, pt::manual("B", {{"w", 1}}), BP) == "");
  CHECK(why(product, {{"B", 4}, {"M", 2}}, 7, pt::manual("B", {{"w", 1}}),
            pt::manual("M", {{"w", 1}}), BP, pt::manual("M", {{"x", 0}})) == "");
}
TEST_CASE("rings of gathers: sums that begin elsewhere on each device are proved") {
  CHECK(why(product, four, 3, BP, pt::manual("B", {{"w", 0}})) == "");
  CHECK(why(product, {{"B", 8}}, 7, BP, pt::manual("B", {{"w", 0}})) == "");
}
TEST_CASE("rings of scattered sums are proved") {
  CHECK(why(product, four, 3, pt::manual("B", {{"x", 1}}), pt::manual("B", {{"result", 0}})) == "");
  CHECK(why(product, four, 3, pt::manual("B", {{"x", 1}}), pt::manual("B", {{"result", 1}})) == "");
}
TEST_CASE("rings: one ring for several products, layers, and a loop") {
  const auto twice = pt::trace(
      [](auto x, auto z, auto w) {
        return std::tuple{pt::matmul(x, w), pt::matmul(z, w)};
      },
      pt::input<float, 32, 16>("x"), pt::input<float, 32, 16>("z"), pt::input<float, 16, 24>("w"));
  const auto p = pt::partition(
      twice, four, pt::schedule(pt::manual("B", {{"x", 0}, {"z", 0}}), pt::manual("B", {{"w", 0}})),
      {.passes = {.share_gathers = true}, .overlap = beside});
  CHECK(p.collectives == pt::collectives{.permute = 3});
  CHECK(pt::prove(p).proved);
  const auto layers = pt::trace(
      [](auto x, auto w, auto v) { return pt::matmul(-pt::matmul(x, w), v); },
      pt::input<float, 64, 16>("x"), pt::input<float, 16, 16>("w"), pt::input<float, 16, 8>("v"));
  CHECK(why(layers, four, 6, BP, pt::manual("B", {{"w", 0}, {"v", 1}})) == "");
  const auto loop = pt::trace(
      [](auto x, auto w) {
        return pt::for_loop(
            0, 3, [&](auto, auto h) { return -pt::matmul(h, w); }, x);
      },
      pt::input<float, 64, 16>("x"), pt::input<float, 16, 16>("w"));
  CHECK(why(loop, four, 9, BP, pt::manual("B", {{"w", 0}})) == "");
}
TEST_CASE("rings: rows of one element, padded rows, padded sums") {
  const auto of = [](auto x, auto w, auto pad_x, auto pad_w) {
    const auto f = pt::trace([](auto a, auto b) { return pt::matmul(a, b); }, x, w);
    return why(f, four, 3, pad_x, pad_w);
  };
  const auto rows = pt::manual("B", {{"x", 0}}, "rows", pt::uneven::pad);
  const auto columns = pt::manual("B", {{"w", 1}}, "columns", pt::uneven::pad);
  const auto sums = pt::manual("B", {{"w", 0}}, "sums", pt::uneven::pad);
  const auto row_tensor = [](auto n) { return pt::input<float, n(), 16>("x"); };
  const auto w = pt::input<float, 16, 24>("w");
  CHECK(of(row_tensor([] { return 4; }), w, rows, columns) == "");
  CHECK(of(row_tensor([] { return 2; }), w, rows, columns) == "");
  CHECK(of(row_tensor([] { return 6; }), w, rows, columns) == "");
  CHECK(of(row_tensor([] { return 3; }), w, rows, sums) == "");
  CHECK(of(pt::input<float, 8, 6>("x"), pt::input<float, 6, 24>("w"), rows, sums) == "");
  CHECK(of(pt::input<float, 8, 3>("x"), pt::input<float, 3, 24>("w"), rows, sums) == "");
}
TEST_CASE("rings: convolutions are proved") {
  const auto f = [](const char* x, const char* w, const char* y, const char* dims) {
    const pt::program p = pt::parse(std::string("func @main(%x: tensor<") + x + ">, %w: tensor<" +
                                    w + ">) {\n  %y = convolution(%x, %w) {" + dims +
                                    "} : tensor<" + y + ">\n  return %y : tensor<" + y + ">\n}\n");
    REQUIRE_MESSAGE(!p.error, str(p.error.message));
    return p;
  };
  const auto plain =
      f("8x16xf32", "16x24xf32", "8x24xf32", "lhs=[0, 1], rhs=[0, 1], result=[0, 1]");
  CHECK(why(plain, four, 3, BP, pt::manual("B", {{"w", 1}})) == "");
  CHECK(why(plain, four, 3, BP, pt::manual("B", {{"w", 0}})) == "");
  CHECK(why(plain, four, 3, pt::manual("B", {{"x", 1}}), pt::manual("B", {{"y", 0}})) == "");
  const auto windows = f("8x3x16xf32", "16x24x2xf32", "8x2x24xf32",
                         "lhs=[0, 2, 1], rhs=[0, 1, 2], result=[0, 2, 1]");
  CHECK(why(windows, four, 3, BP, pt::manual("B", {{"w", 1}})) == "");
  CHECK(why(windows, four, 3, BP, pt::manual("B", {{"w", 0}})) == "");
  const auto groups = f("8x4x16xf32", "8x24x4xf32", "8x1x24xf32",
                        "lhs=[0, 2, 1], rhs=[0, 1, 2], result=[0, 2, 1], feature_groups");
  CHECK(why(groups, four, 3, BP, pt::manual("B", {{"w", 2}})) == "");
}
TEST_CASE("rings: windows over features of another device, or of the same one twice") {
  const pt::program windows =
      pt::parse(R"(func @main(%x: tensor<8x3x16xf32>, %w: tensor<16x24x2xf32>) {
  %y = convolution(%x, %w) {lhs=[0, 2, 1], rhs=[0, 1, 2], result=[0, 2, 1]} : tensor<8x2x24xf32>
  return %y : tensor<8x2x24xf32>
}
)");
  const auto p = pt::partition(windows, four, pt::schedule(BP, pt::manual("B", {{"w", 0}})),
                               {.overlap = beside});
  const std::string text = str(pt::print(p.device.local, &p.mesh()));
  const auto proved = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const auto at = changed.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, text);
    changed.replace(at, from.size(), to);
    pt::device_program d = p.device;
    d.local = pt::parse(changed, d.mesh);
    REQUIRE(!d.local.error);
    return pt::prove(p.source, d).proved;
  };
  CHECK(proved("{-1 around}", "{-1 around}"));
  CHECK(!proved("{-1 around}", "{+1 around}"));
  CHECK(!proved("constant {8}", "constant {4}"));
  CHECK(!proved("constant {12}", "constant {8}"));
  CHECK(!proved("result=[0, 2, 1]}", "result=[0, 2, 1], low=[1], high=[-1]}"));
}
TEST_CASE("rings: wrong directions and wrong blocks are not proved") {
  const auto p = pt::partition(product, four, pt::schedule(BP, pt::manual("B", {{"w", 0}})),
                               {.overlap = beside});
  const std::string text = str(pt::print(p.device.local, &p.mesh()));
  const auto proved = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const auto at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    pt::device_program d = p.device;
    d.local = pt::parse(changed, d.mesh);
    REQUIRE(!d.local.error);
    return pt::prove(p.source, d).proved;
  };
  CHECK(proved("{-1 around}", "{-1 around}"));
  CHECK(!proved("{-1 around}", "{+1 around}"));  // the opposite direction
  CHECK(!proved("{-1 around}", "{-1}"));         // the last device receives nothing
  CHECK(!proved("constant {4} : tensor<i64>", "constant {8} : tensor<i64>"));  // another block
  CHECK(!proved("constant {16} : tensor<i64>", "constant {20} : tensor<i64>"));
}
TEST_CASE("rings: blocks that the last device does not send are not proved") {
  const auto p = pt::partition(product, four, pt::schedule(BP, pt::manual("B", {{"w", 1}})),
                               {.overlap = beside});
  std::string text = str(pt::print(p.device.local, &p.mesh()));
  const std::string around = "{-1 around}";
  REQUIRE(text.find(around) != std::string::npos);
  text.replace(text.find(around), around.size(), "{-1}");
  pt::device_program d = p.device;
  d.local = pt::parse(text, d.mesh);
  REQUIRE(!d.local.error);
  CHECK(!pt::prove(p.source, d).proved);
}
TEST_CASE("rings: an update that the source itself makes is matched as it is") {
  const auto f = pt::parse(R"(func @main(%x: tensor<8x8xf32>, %z: tensor<8x8xf32>) {
  %a = constant {0} : tensor<i64>
  %s = slice(%x) {[0:2, 0:8]} : tensor<2x8xf32>
  %y = dynamic_update_slice(%z, %s, %a, %a) : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
)");
  REQUIRE_MESSAGE(!f.error, str(f.error.message));
  const auto p = pt::partition(f, four, pt::schedule(pt::manual("B", {{"x", 1}, {"z", 1}})));
  const pt::verdict v = pt::prove(p);
  CHECK_MESSAGE(v.proved, str(v.error.message));
}
