// Sizes at and beyond 64 bits: one error and never a wrapped number; costs that stop at the limit.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;
using unit::thrown;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 40;
constexpr std::int64_t most = INT64_MAX;

/// Returns the error of a program that is built by hand from f32 inputs of these shapes.
std::string built(const std::vector<pt::shape>& inputs, auto f) {
  pt::builder b;
  std::vector<pt::value_id> ids;
  for (const auto& s : inputs) ids.push_back(pt::ops::parameter(b, "", {pt::dtype::f32, s}));
  f(b, ids);
  return str(b.p.error.message);
}
std::string code(const std::string& message) { return message.substr(0, 4); }

}  // namespace

static_assert((pt::checked(most) - 1 + 1).value_or(0) == most);
static_assert((pt::checked(most) + 1 - 1).overflowed());
static_assert((pt::checked(huge) * huge * 0).overflowed());
static_assert(pt::saturating_add(most, 1) == most && pt::saturating_add(-most, -2) == INT64_MIN);
static_assert(pt::saturating_multiply(-huge, huge) == INT64_MIN);
static_assert(pt::shape{huge, huge, 0}.elements() == 0 && !pt::shape{huge, huge, 0}.fits());
static_assert(pt::shape{huge, huge}.elements() == pt::saturated);
static_assert(pt::tensor_type{pt::dtype::f64, {pt::max_elements}}.bytes() == most / 16 * 8);
static_assert(pt::shape{pt::max_elements}.fits() && !pt::shape{pt::max_elements + 1}.fits());

TEST_CASE("M005 more devices than a mesh can have") {
  CHECK(str(pt::validate(pt::mesh{{"a", huge}, {"b", huge}}).message) ==
        "M005 mesh: {\"a\":1099511627776, \"b\":1099511627776} has more than 2^59 - 1 devices, the "
        "most that are supported");
  CHECK(code(str(pt::validate(pt::mesh{{"a", most}}).message)) == "M005");
  CHECK(!pt::validate(pt::mesh{{"a", pt::max_devices}}));
  CHECK(pt::mesh{{"a", huge}, {"b", huge}}.devices() == pt::saturated);
}

TEST_CASE("S118 inputs with too many elements") {
  const auto traced = [](std::int64_t m, std::int64_t n) {
    return thrown([&] {
      pt::trace([](auto x) { return exp(x); }, pt::input<float, pt::dyn, pt::dyn>("x", m, n));
    });
  };
  CHECK(traced(huge, huge) ==
        "S118 trace: input \"x\": tensor<1099511627776x1099511627776xf32> has more than 2^59 - 1 "
        "elements, the most that a tensor can have");
  CHECK(code(traced(most, most)) == "S118");
  CHECK(code(traced(most, 0)) == "S118");  // its strides would overflow
  CHECK(traced(pt::max_elements, 1) == "no error");
  CHECK(code(traced(-5, 1)) == "S116");
}

TEST_CASE("S118 results with too many elements") {
  CHECK(built({{}},
              [](auto& b, auto& x) {
                pt::ops::broadcast_in_dim(b, x[0], {huge, huge}, {});
              }) ==
        "S118 broadcast_in_dim: tensor<1099511627776x1099511627776xf32> has more than 2^59 - 1 "
        "elements, the most that a tensor can have");
  CHECK(code(built({{huge, 1}, {1, huge}}, [](auto& b, auto& x) {
          const std::int64_t one[] = {1}, zero[] = {0};
          pt::ops::dot_general(b, x[0], x[1], {{}, {}, one, zero});
        })) == "S118");
  CHECK(code(built({{pt::max_elements}, {pt::max_elements}}, [](auto& b, auto& x) {
          pt::ops::concatenate(b, {x.data(), x.size()}, 0);
        })) == "S118");
  std::vector<pt::shape> many(40, pt::shape{pt::max_elements});
  CHECK(code(built(many, [](auto& b, auto& x) {
          pt::ops::concatenate(b, {x.data(), x.size()}, 0);
        })) == "S118");
  // 2^64 elements do not count as 0.
  CHECK(code(built({{}}, [](auto& b, auto& x) {
          const auto y = pt::ops::broadcast_in_dim(b, x[0], {1LL << 32, 1LL << 32}, {});
          pt::ops::reshape(b, y, {0, 3});
        })) == "S118");
  CHECK(code(built({{}}, [](auto& b, auto&) {
          pt::ops::iota(b, {pt::dtype::f32, {huge, huge}}, 0);
        })) == "S118");
}

TEST_CASE("S118 amounts that overflow") {
  const auto padded = [](std::int64_t low, std::int64_t high, std::int64_t interior) {
    return code(built({{4}, {}}, [&](auto& b, auto& x) {
      const std::int64_t l[] = {low}, h[] = {high}, i[] = {interior};
      pt::ops::pad(b, x[0], x[1], l, h, i);
    }));
  };
  CHECK(padded(1LL << 62, 1LL << 62, 0) == "S118");
  CHECK(padded(most, INT64_MIN, 0) == "S118");
  CHECK(padded(0, 0, 1LL << 62) == "S118");
  CHECK(padded(0, 0, pt::max_elements) == "S118");
  CHECK(padded(0, 0, pt::max_elements / 4) == "");
  CHECK(padded(-5, 0, 0) == "S134");
  CHECK(code(built({{4}}, [](auto& b, auto& x) {
          const std::int64_t start[] = {0}, limit[] = {4}, stride[] = {most};
          pt::ops::slice(b, x[0], start, limit, stride);
        })) == "S118");
  const auto window = [](std::int64_t n, pt::window_dim w) {
    return code(built({{n}}, [&](auto& b, auto& x) {
      pt::ops::reduce_window(b, x[0], pt::combiner::add, {&w, 1});
    }));
  };
  constexpr std::int64_t limit = pt::op::window_limit;
  CHECK(window(huge, {1, 1, limit, 1, 0, 0}) == "S118");
  CHECK(window(4, {limit, limit, limit, limit, limit, limit}) == "S118");
  CHECK(window(4, {1, limit, limit, limit, limit, limit}) == "");
  CHECK(window(4, {1, 1, 1, 1, limit + 1, 0}) == "S151");
  pt::window_dim dilated;
  dilated.dilation = limit;
  CHECK(code(built({{1, 1, 4}, {1, 1, huge}}, [&](auto& b, auto& x) {
          const std::int64_t dims[] = {0, 1, 2};
          pt::ops::convolution(b, x[0], x[1], {dims, dims, dims, {&dilated, 1}, 1, 1});
        })) == "S118");
}

TEST_CASE("flops of the largest windows are found quickly") {
  constexpr std::int64_t limit = pt::op::window_limit;
  CHECK(pt::window_dim{3, 1, 1, 1, 1, 1}.pairs(4) == 10);
  CHECK(pt::window_dim{limit, 1, 1, 1, limit - 1, 0}.pairs(limit) == limit * limit);
  CHECK(pt::window_dim{limit, limit, limit, limit, limit, limit}.pairs(4) >= 0);
  CHECK(pt::window_dim{1, 1, limit, 1, 0, 0}.pairs(1 << 20) > 0);
  CHECK(pt::window_dim{limit, 1, 1, limit, limit, limit}.pairs(1LL << 58) >= 0);
}

TEST_CASE("an op of the largest sizes has a derivative") {
  const auto f = pt::trace(
      [](auto x) { return pt::grad([](auto y) { return pt::sum(roll<INT64_MIN, 0>(y) * y); }, x); },
      pt::input<float, 6>("x"));
  CHECK(!f.error);
}

TEST_CASE("costs stop at the limit and the report notes it") {
  std::string in =
      "%y = exp(%c) : tensor<1048576xf32>\nreturn %y : tensor<1048576xf32>\n} : "
      "tensor<1048576xf32>\n";
  const std::string loop =
      "%y = scan(%c) {length=2147483647, carried=1} do (%i: tensor<i32>, %c: tensor<1048576xf32>) "
      "{\n";
  in = loop + in;
  for (int k = 0; k < 2; ++k)
    in = loop + in + "return %y : tensor<1048576xf32>\n} : tensor<1048576xf32>\n";
  const pt::program p = pt::parse("func @main(%c: tensor<1048576xf32>) {\n" + in +
                                  "return %y : tensor<1048576xf32>\n}");
  REQUIRE(str(p.error.message) == "");
  const pt::cost c = pt::estimate(p);
  CHECK(c.flops == pt::saturated);
  CHECK(c.bytes == pt::saturated);
  CHECK(c.argument_bytes == 4 << 20);
  pt::text figure;
  pt::print_figure(figure, c.flops);
  CHECK(str(figure) == ">= 2^63 - 1");
}

TEST_CASE("memory that exceeds the limit for a while stays exact, then stops there") {
  // Ten values of 2^62 bytes are live at once, then one.
  const std::string type = "tensor<576460752303423487xf64>";
  std::string in = "func @main(%x: " + type + ") {\n";
  for (int i = 0; i < 10; ++i) in += "%v" + std::to_string(i) + " = exp(%x) : " + type + "\n";
  in += "%s = optimization_barrier(%v0";
  std::string names = "%s0", types = type;
  for (int i = 1; i < 10; ++i) {
    in += ", %v" + std::to_string(i);
    names += ", %s" + std::to_string(i);
    types += ", " + type;
  }
  in.replace(in.find("%s ="), 2, names);
  in += ") : " + types + "\n%y = exp(%s0) : " + type + "\nreturn %y : " + type + "\n}\n";
  const pt::program p = pt::parse(in);
  REQUIRE(str(p.error.message) == "");
  const pt::live_bytes live(p);
  CHECK(live.peak() == pt::saturated);
  CHECK(live.during.back() == pt::max_elements * 8);  // written over the operand
}

TEST_CASE("S118 padding over huge axes") {
  const auto f = pt::trace([](auto x) { return tag("y", exp(x)); }, pt::input<float, 4, 6, 8>("x"));
  const pt::mesh mesh{{"a", huge / 2}, {"b", 1 << 18}};
  const auto pad = [](std::string_view axis, int dim) {
    return pt::manual(axis, {{"x", dim}}, pt::uneven::pad);
  };
  CHECK(pt::partition(f, mesh, pt::schedule(pad("a", 0))).core.p.input_type(0).shape ==
        pt::shape{huge / 2, 6, 8});
  CHECK(thrown([&] { pt::partition(f, mesh, pt::schedule(pad("a", 0), pad("b", 1))); }) ==
        "S118 tile: dimension 1 of \"x\" has size 6; padded for axis \"b\" of size 262144, "
        "tensor<549755813888x262144x8xf32> has more than 2^59 - 1 elements, the most that a tensor "
        "can have");
  // The note covers the whole dimension, not only the value that the tactic names.
  const auto g = pt::trace([](auto x, auto y) { return matmul(x, y); }, pt::input<float, 4, 6>("x"),
                           pt::input<float, 6, 1 << 20>("y"));
  CHECK(code(thrown([&] { pt::partition(g, mesh, pt::schedule(pad("a", 0))); })) == "S118");
}

TEST_CASE("texts about axes without small divisors terminate") {
  const auto f = pt::trace([](auto x) { return exp(x); }, pt::input<float, 4, 1>("x"));
  const pt::mesh mesh{{"a", 288230376151711717}};  // a prime
  CHECK(code(thrown([&] {
          pt::partition(f, mesh, pt::schedule(pt::manual("a:(3)7", {{"x", 0}})));
        })) == "S022");
  CHECK(code(thrown([&] {
          pt::partition(f, mesh,
                        pt::schedule(pt::manual("a", {{"x", 0}}, pt::uneven::pad),
                                     pt::manual("a", {{"x", 1}})));
        })) == "S004");
}

TEST_CASE("programs of the largest sizes are partitioned, and reports state where figures stop") {
  constexpr std::int64_t n = 1 << 28, k = 1 << 29;
  const auto f = pt::trace(
      [](auto x, auto w1, auto w2) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& w) {
              return pt::sum(pt::tanh(matmul(matmul(x, std::get<0>(w)), std::get<1>(w))));
            },
            std::tuple{w1, w2});
        return std::tuple{pt::output("loss", loss), pt::output("w1", std::get<0>(g)),
                          pt::output("w2", std::get<1>(g))};
      },
      pt::input<double, n, n>("x"), pt::input<double, n, k>("w1"), pt::input<double, k, n>("w2"));
  const pt::mesh mesh{{"B", 4}, {"M", 2}, {"H", 1 << 10}};
  const auto BP = pt::manual("B", {{"x", 0}}), MP = pt::manual("M", {{"w1", 1}});
  const auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}});
  const auto read = [](const pt::partitioned& q) {
    CHECK(q.cost.flops == pt::saturated);
    CHECK(str(pt::report(q)).find("per device: >= 2^63 - 1 flop") != std::string::npos);
    CHECK(str(pt::explain(q)).find('-') == std::string::npos);
    for (const auto& v : pt::replicated_by_default(q)) CHECK(v.total() > 0);
    CHECK(str(pt::print_replicated(q)).find("bytes  x -") == std::string::npos);
  };
  pt::passes on;
  on.combine_below = 1LL << 62;
  on.place = true;
  on.share_gathers = true;
  const auto a = pt::partition(f, mesh, pt::schedule(BP, MP, Z3), {.passes = on});
  on.memory_bound = 1LL << 62;
  const auto b = pt::partition(f, mesh, pt::schedule(BP, Z3), {.passes = on});
  const auto c = pt::partition(f, mesh, pt::schedule(pt::microbatch(4, {{"x", 0}}), BP, MP));
  for (const auto* each : {&a, &b, &c}) read(*each);
  CHECK(str(pt::diff(a, b)).find("-1") == std::string::npos);
}
