// Appendix B of PartIR (seed 000): loops over several axes; and reductions other than sums.
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "printed.hpp"

namespace {

constexpr pt::mesh mesh{{"a", 4}, {"b", 2}};

/// z = x y with x = h w.
pt::program products() {
  return pt::trace([](auto h, auto w, auto y) { return matmul(tag("x", matmul(h, w)), y); },
                   pt::input<float, 16, 8>("h"), pt::input<float, 8, 4>("w"),
                   pt::input<float, 4, 8>("y"));
}
pt::program product() {
  return pt::trace([](auto x, auto y) { return matmul(x, y); }, pt::input<float, 16, 8>("x"),
                   pt::input<float, 8, 4>("y"));
}

TEST_CASE("appendix B.1.1: a tiling loop inside a reduction loop is found") {
  constexpr auto A = pt::manual("a", {{"w", 0}}), B = pt::manual("b", {{"h", 0}});
  const auto p = pt::partition(products(), mesh, pt::schedule(A, B));
  CHECK(
      core(p) ==
      R"(func @main(%h: tensor<16x8xf32>, %w: tensor<8x4xf32>, %y: tensor<4x8xf32>) attributes {mesh = {"a":4, "b":2}} {
  %x1 = loop "a" [#sum] (%ra: range<4>) {
    %x1s = loop "b" [#tile<0>] (%rb: range<2>) {
      %hs = slice 1 %h[%ra] : tensor<16x2xf32>
      %hss = slice 0 %hs[%rb] : tensor<8x2xf32>
      %ws = slice 0 %w[%ra] : tensor<2x4xf32>
      %x1ss = matmul(%hss, %ws) : tensor<8x4xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<16x4xf32>
  %x2 = loop "b" [#tile<0>] (%rb: range<2>) {
    %x1s = slice 0 %x1[%rb] : tensor<8x4xf32>
    %xs = tag "x" %x1s : tensor<8x4xf32>
    %x2s = matmul(%xs, %y) : tensor<8x8xf32>
    yield %x2s
  } : tensor<16x8xf32>
  return %x2 : tensor<16x8xf32>
}
)");
  check_meaning(p);
  // Tactics in the opposite order give the opposite nest and the same device-local program.
  const auto q = pt::partition(products(), mesh, pt::schedule(B, A));
  CHECK(core(q).find(R"(loop "b" [#tile<0>] (%rb: range<2>) {
    %x1s = loop "a" [#sum] (%ra: range<4>) {)") != std::string::npos);
  CHECK(local(q) == local(p));
  check_meaning(q);
}

TEST_CASE("appendix B.1.1: a tiling loop after a slice and another tiling loop is found") {
  constexpr auto A = pt::manual("a", {{"h", 0}}), B = pt::manual("b", {{"h", 0}});
  const auto p = pt::partition(products(), mesh, pt::schedule(A, B));
  CHECK(
      core(p) ==
      R"(func @main(%h: tensor<16x8xf32>, %w: tensor<8x4xf32>, %y: tensor<4x8xf32>) attributes {mesh = {"a":4, "b":2}} {
  %x2 = loop "a" [#tile<0>] (%ra: range<4>) {
    %x2s = loop "b" [#tile<0>] (%rb: range<2>) {
      %hs = slice 0 %h[%ra] : tensor<4x8xf32>
      %hss = slice 0 %hs[%rb] : tensor<2x8xf32>
      %x1ss = matmul(%hss, %w) : tensor<2x4xf32>
      %xss = tag "x" %x1ss : tensor<2x4xf32>
      %x2ss = matmul(%xss, %y) : tensor<2x8xf32>
      yield %x2ss
    }
    yield %x2s
  } : tensor<16x8xf32>
  return %x2 : tensor<16x8xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("appendix B.1.2: deep tiling continues where the value is already sliced") {
  constexpr auto A = pt::manual("a", {{"x", 1}}), B = pt::manual("b", {{"x", 1}});
  const auto p = pt::partition(product(), mesh, pt::schedule(A, B));
  CHECK(
      core(p) ==
      R"(func @main(%x: tensor<16x8xf32>, %y: tensor<8x4xf32>) attributes {mesh = {"a":4, "b":2}} {
  %x1 = loop "a" [#sum] (%ra: range<4>) {
    %x1s = loop "b" [#sum] (%rb: range<2>) {
      %xs = slice 1 %x[%ra] : tensor<16x2xf32>
      %xss = slice 1 %xs[%rb] : tensor<16x1xf32>
      %ys = slice 0 %y[%ra] : tensor<2x4xf32>
      %yss = slice 0 %ys[%rb] : tensor<1x4xf32>
      %x1ss = matmul(%xss, %yss) : tensor<16x4xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<16x4xf32>
  return %x1 : tensor<16x4xf32>
}
)");
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<16x1xf32>, %y: tensor<1x4xf32>) attributes {mesh = {"a":4, "b":2}} {
  %x1 = matmul(%x, %y) : tensor<16x4xf32>
  %x2 = all_reduce <"a", "b"> %x1 : tensor<16x4xf32>
  return %x2 : tensor<16x4xf32>
}
)");
  check_meaning(p);
}

TEST_CASE("appendix B: two dimensions of one value, by four tactics on three axes") {
  constexpr pt::mesh cube{{"a", 2}, {"b", 2}, {"c", 2}};
  const auto p =
      pt::partition(product(), cube,
                    pt::schedule(pt::manual("a", {{"x", 0}}), pt::manual("b", {{"x", 1}}),
                                 pt::manual("c", {{"x", 0}}), pt::manual("a", {{"y", 1}})));
  // The rows of the result are sliced over "a" already, so y is gathered; the sum is over "b".
  CHECK(
      local(p) ==
      R"(func @main(%x: tensor<4x4xf32>, %y: tensor<4x2xf32>) attributes {mesh = {"a":2, "b":2, "c":2}} {
  %yg = all_gather [{}, {"a"}] %y : tensor<4x4xf32>
  %x1 = matmul(%x, %yg) : tensor<4x4xf32>
  %x2 = all_reduce <"b"> %x1 : tensor<4x4xf32>
  return %x2 : tensor<4x4xf32>
}
)");
  check_meaning(p);
}

void check_run(const pt::partitioned& p) {
  check_meaning(p);
  const auto x = data::arguments(p.source);
  CHECK(pt::equal(pt::temporal(p, x), pt::evaluate(p.source, x)));
}
std::string quoted(const char* before, std::string_view name, const char* after) {
  return before + std::string(name) + after;
}

template <class T, class Reduce>
void check_reduction(std::string_view name, const Reduce& reduce) {
  const pt::program source = pt::trace(reduce, pt::input<T, 8, 6>("x"));
  const auto p = pt::partition(source, mesh, pt::schedule(pt::manual("a", {{"x", 0}})));
  const std::string word = quoted("loop \"a\" [#sum<@", name, ">]");
  CHECK_MESSAGE(core(p).find(word) != std::string::npos, core(p));
  const std::string collective = quoted("all_reduce <@", name, "> <\"a\">");
  CHECK_MESSAGE(local(p).find(collective) != std::string::npos, local(p));
  check_run(p);
  // Over two axes: a loop inside a loop, one collective.
  const auto q = pt::partition(
      source, mesh, pt::schedule(pt::manual("b", {{"x", 0}}), pt::manual("a", {{"x", 0}})));
  CHECK(core(q).find(word) != std::string::npos);
  CHECK(core(q).find(quoted("loop \"b\" [#sum<@", name, ">]")) != std::string::npos);
  CHECK(local(q).find(quoted("all_reduce <@", name, "> <\"a\", \"b\">")) != std::string::npos);
  CHECK(q.collectives == pt::collectives{.all_reduce = 1});
  check_run(q);
  // A value that is reduced over "a" and then sliced over "b" is scattered over "b".
  const auto r = pt::partition(
      source, mesh, pt::schedule(pt::manual("b", {{"x", 0}}), pt::manual("b", {{"result", 0}})));
  CHECK(local(r).find(quoted("reduce_scatter <@", name, "> [{\"b\"}]")) != std::string::npos);
  check_run(r);
}
TEST_CASE("reductions other than sums are loops and collectives with their combiner") {
  check_reduction<float>("max", [](auto x) { return pt::reduce_max<0>(x); });
  check_reduction<float>("min", [](auto x) { return pt::reduce_min<0>(x); });
  check_reduction<std::int32_t>("multiply", [](auto x) { return pt::prod<0>(x); });
  check_reduction<bool>("and", [](auto x) { return pt::all<0>(x); });
  check_reduction<bool>("or", [](auto x) { return pt::any<0>(x); });
}

/// The reduction of each of three steps: stacked, and combined over the steps.
template <class T, class Reduce, class Combine>
pt::partitioned check_reduction_in_scan(std::string_view name, const Reduce& reduce,
                                        const Combine& combine) {
  const pt::program source = pt::trace(
      [&](auto xs, auto start) {
        const auto step = [&](auto c, auto x) {
          const auto r = reduce(x);
          return std::pair{combine(c, r), r};
        };
        const auto [last, each] = pt::scan(step, start, xs);
        return std::tuple{pt::output("last", last), pt::output("each", each)};
      },
      pt::input<T, 3, 8, 6>("xs"), pt::input<T, 6>("start"));
  const auto p = pt::partition(source, mesh, pt::schedule(pt::manual("a", {{"xs", 1}})));
  CHECK(core(p).find(quoted("loop \"a\" [#sum<@", name, ">]")) != std::string::npos);
  CHECK(local(p).find(quoted(" = all_reduce <@", name, "> <\"a\">")) != std::string::npos);
  CHECK(p.collectives == pt::collectives{.all_reduce = 3});
  CHECK(p.collectives_as_written == pt::collectives{.all_reduce = 1});
  check_run(p);
  // Steps that are also a sharded dimension, and the loop over two axes.
  check_run(pt::partition(
      source, mesh, pt::schedule(pt::manual("b", {{"xs", 1}}), pt::manual("a", {{"xs", 1}}))));
  check_run(pt::partition(
      source, mesh, pt::schedule(pt::manual("b", {{"xs", 2}}), pt::manual("a", {{"xs", 1}}))));
  return p;
}
TEST_CASE("reductions other than sums in a scan: a loop and a collective in each step") {
  const auto p = check_reduction_in_scan<float>(
      "max", [](auto x) { return pt::reduce_max<0>(x); },
      [](auto c, auto r) { return maximum(c, r); });
  CHECK(
      core(p) ==
      R"(func @main(%xs: tensor<3x8x6xf32>, %start: tensor<6xf32>) attributes {mesh = {"a":4, "b":2}} {
  %last, %each = scan(%start, %xs) {length=3, carried=1, sliced=1, stacked=1} do (%x1: tensor<i32>, %x2: tensor<6xf32>, %x3: tensor<8x6xf32> [{"a"}, {}]) {
    %x4 = loop "a" [#sum<@max>] (%ra: range<4>) {
      %x3s = slice 0 %x3[%ra] : tensor<2x6xf32>
      %x4s = reduce(%x3s) {max, dims=[0]} : tensor<6xf32>
      yield %x4s
    } : tensor<6xf32>
    %x5 = maximum(%x2, %x4) : tensor<6xf32>
    return %x5, %x4 : tensor<6xf32>, tensor<6xf32>
  } : tensor<6xf32>, tensor<3x6xf32>
  return %last, %each : tensor<6xf32>, tensor<3x6xf32>
}
)");
  CHECK(
      local(p) ==
      R"(func @main(%xs: tensor<3x2x6xf32>, %start: tensor<6xf32>) attributes {mesh = {"a":4, "b":2}} {
  %last, %each = scan(%start, %xs) {length=3, carried=1, sliced=1, stacked=1} do (%x1: tensor<i32>, %x2: tensor<6xf32>, %x3: tensor<2x6xf32>) {
    %x4 = reduce(%x3) {max, dims=[0]} : tensor<6xf32>
    %x5 = all_reduce <@max> <"a"> %x4 : tensor<6xf32>
    %x6 = maximum(%x2, %x5) : tensor<6xf32>
    return %x6, %x5 : tensor<6xf32>, tensor<6xf32>
  } : tensor<6xf32>, tensor<3x6xf32>
  return %last, %each : tensor<6xf32>, tensor<3x6xf32>
}
)");
  check_reduction_in_scan<float>(
      "min", [](auto x) { return pt::reduce_min<0>(x); },
      [](auto c, auto r) { return minimum(c, r); });
  check_reduction_in_scan<std::int32_t>(
      "multiply", [](auto x) { return pt::prod<0>(x); }, [](auto c, auto r) { return c * r; });
  check_reduction_in_scan<bool>(
      "and", [](auto x) { return pt::all<0>(x); }, [](auto c, auto r) { return c & r; });
  check_reduction_in_scan<bool>(
      "or", [](auto x) { return pt::any<0>(x); }, [](auto c, auto r) { return c | r; });
}

}  // namespace
