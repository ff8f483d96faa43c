// The passes over collectives: programs before and after each, as text and as computed values.
#include <doctest/doctest.h>

#include <partita/spmd/parse.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

/// The result of the fusions when all of them are off.
constexpr pt::passes none{.cancel = false, .to_all_to_all = false, .to_reduce_scatter = false};

/// Returns the ops of the device-local program, after a check that it computes what the source
/// does.
std::string ops(const pt::program& source, const pt::passes& on, const auto&... tactics) {
  const auto p = pt::partition(source, mesh, pt::schedule(tactics...), {.passes = on});
  const auto x = data::arguments(p.source);
  CHECK(pt::equal(pt::emulate(p.device, x), pt::evaluate(p.source, x)));
  CHECK(!pt::verify(p.device));
  const std::string all = str(pt::print(p.device.local, &p.mesh()));
  return all.substr(all.find('\n') + 1);
}

/// The same on a device with slow links and fast memory.
std::string beside(const pt::program& source, const auto&... tactics) {
  const auto on = data::slow_links(1e7);
  const auto plain = pt::partition(source, mesh, pt::schedule(tactics...));
  const auto p = pt::partition(source, mesh, pt::schedule(tactics...), {.overlap = on});
  const auto x = data::arguments(p.source);
  CHECK(pt::equal(pt::emulate(p.device, x), pt::evaluate(p.source, x)));
  CHECK(!pt::verify(p.device));
  CHECK(pt::simulate(p.device, on).time < pt::simulate(plain.device, on).time);
  const std::string all = str(pt::print(p.device.local, &p.mesh()));
  pt::mesh read;
  CHECK(str(pt::print(pt::parse(all, read), &read)) == all);
  return all.substr(all.find('\n') + 1);
}

}  // namespace

TEST_CASE("cancel: a slice undoes a gather") {
  const auto f = pt::trace([](auto x) { return tanh(exp(x)); }, pt::input<float, 8, 4>("x"));
  constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
  CHECK(ops(f, none, BP) == R"(  %xg = all_gather [{"B"}, {}] %x : tensor<8x4xf32>
  %xgs = all_slice [{"B"}, {}] %xg : tensor<2x4xf32>
  %x1 = exp(%xgs) : tensor<2x4xf32>
  %x1g = all_gather [{"B"}, {}] %x1 : tensor<8x4xf32>
  %x1gs = all_slice [{"B"}, {}] %x1g : tensor<2x4xf32>
  %x2 = tanh(%x1gs) : tensor<2x4xf32>
  return %x2 : tensor<2x4xf32>
}
)");
  CHECK(ops(f, {}, BP) == R"(  %x1 = exp(%x) : tensor<2x4xf32>
  %x2 = tanh(%x1) : tensor<2x4xf32>
  return %x2 : tensor<2x4xf32>
}
)");
}

TEST_CASE("to_all_to_all: axes move from one dimension to another") {
  const auto f = pt::trace([](auto x) { return pt::sort<0>(exp(x)); }, pt::input<float, 8, 4>("x"));
  constexpr auto rows = pt::manual("B", {{"x", 0}}, "rows");
  constexpr auto columns = pt::manual("B", {{"result", 1}}, "columns");
  CHECK(ops(f, {.to_all_to_all = false}, rows, columns) == R"(  %x1 = exp(%x) : tensor<2x4xf32>
  %x1g = all_gather [{"B"}, {}] %x1 : tensor<8x4xf32>
  %x1gs = all_slice [{}, {"B"}] %x1g : tensor<8x1xf32>
  %x2 = sort(%x1gs) {dim=0} : tensor<8x1xf32>
  return %x2 : tensor<8x1xf32>
}
)");
  CHECK(ops(f, {}, rows, columns) == R"(  %x1 = exp(%x) : tensor<2x4xf32>
  %x2 = all_to_all {0 -> 1} <"B"> %x1 : tensor<8x1xf32>
  %x3 = sort(%x2) {dim=0} : tensor<8x1xf32>
  return %x3 : tensor<8x1xf32>
}
)");
}

TEST_CASE("to_reduce_scatter: all uses slice a sum alike") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); }, pt::input<float, 8, 4>("x"),
                           pt::input<float, 4, 8>("w"));
  constexpr auto MP = pt::manual("M", {{"w", 0}}, "MP");
  constexpr auto result = pt::manual("M", {{"result", 1}}, "result");
  CHECK(ops(f, {.to_reduce_scatter = false}, MP, result) ==
        R"(  %x1 = matmul(%x, %w) : tensor<8x8xf32>
  %x2 = all_reduce <"M"> %x1 : tensor<8x8xf32>
  %x2s = all_slice [{}, {"M"}] %x2 : tensor<8x4xf32>
  return %x2s : tensor<8x4xf32>
}
)");
  CHECK(ops(f, {}, MP, result) == R"(  %x1 = matmul(%x, %w) : tensor<8x8xf32>
  %x2 = reduce_scatter [{}, {"M"}] %x1 : tensor<8x4xf32>
  return %x2 : tensor<8x4xf32>
}
)");
}

namespace {
/// Two layers that use one sharded weight.
pt::program twice() {
  return pt::trace([](auto x, auto w) { return matmul(tanh(matmul(x, w)), w); },
                   pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
}
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z3 = pt::manual("B", {{"w", 0}}, "Z3");
}  // namespace

TEST_CASE("share_gathers: a value is gathered once and kept") {
  CHECK(ops(twice(), {.share_gathers = false}, BP, Z3) ==
        R"(  %wg = all_gather [{"B"}, {}] %w : tensor<8x8xf32>
  %x1 = matmul(%x, %wg) : tensor<2x8xf32>
  %x2 = tanh(%x1) : tensor<2x8xf32>
  %wg2 = all_gather [{"B"}, {}] %w : tensor<8x8xf32>
  %x3 = matmul(%x2, %wg2) : tensor<2x8xf32>
  return %x3 : tensor<2x8xf32>
}
)");
  // Two products use it, without another gather in between and without more memory, so this is the
  // default.
  for (const pt::passes& on : {pt::passes{}, pt::passes{.share_gathers = true}})
    CHECK(ops(twice(), on, BP, Z3) ==
          R"(  %wg = all_gather [{"B"}, {}] %w : tensor<8x8xf32>
  %x1 = matmul(%x, %wg) : tensor<2x8xf32>
  %x2 = tanh(%x1) : tensor<2x8xf32>
  %x3 = matmul(%x2, %wg) : tensor<2x8xf32>
  return %x3 : tensor<2x8xf32>
}
)");
}

TEST_CASE("share_gathers: also for a value that is moved in between") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto turned = pt::reverse<0>(pt::transpose<1, 0>(w));
        const auto again = pt::reshape<8, 8>(pt::reshape<8, 4, 2>(w));
        return matmul(tanh(matmul(tanh(matmul(x, w)), turned)), again);
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
  CHECK(ops(f, {.share_gathers = true}, BP, Z3) ==
        R"(  %wg = all_gather [{"B"}, {}] %w : tensor<8x8xf32>
  %x1 = matmul(%x, %wg) : tensor<2x8xf32>
  %x2 = tanh(%x1) : tensor<2x8xf32>
  %x3 = transpose(%wg) {dims=[1, 0]} : tensor<8x8xf32>
  %x4 = reverse(%x3) {dims=[0]} : tensor<8x8xf32>
  %x5 = matmul(%x2, %x4) : tensor<2x8xf32>
  %x6 = tanh(%x5) : tensor<2x8xf32>
  %x7 = reshape(%wg) : tensor<8x4x2xf32>
  %x8 = reshape(%x7) : tensor<8x8xf32>
  %x9 = matmul(%x6, %x8) : tensor<2x8xf32>
  return %x9 : tensor<2x8xf32>
}
)");
  // A reversed value is not in its original place any more.
  const auto mirrored =
      pt::trace([](auto x, auto w) { return matmul(matmul(x, w), pt::reverse<0>(w)); },
                pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
  CHECK(ops(mirrored, {.share_gathers = true}, BP, Z3) ==
        R"(  %wg = all_gather [{"B"}, {}] %w : tensor<8x8xf32>
  %x1 = matmul(%x, %wg) : tensor<2x8xf32>
  %x2 = permute {mirrored} <"B"> %w : tensor<2x8xf32>
  %x3 = reverse(%x2) {dims=[0]} : tensor<2x8xf32>
  %x3g = all_gather [{"B"}, {}] %x3 : tensor<8x8xf32>
  %x4 = matmul(%x1, %x3g) : tensor<2x8xf32>
  return %x4 : tensor<2x8xf32>
}
)");
}

TEST_CASE("overlap: gathered rows go around a ring, and their products are joined") {
  const auto f = pt::trace([](auto x, auto w) { return pt::matmul(x, w); },
                           pt::input<float, 8, 4>("x"), pt::input<float, 4, 8>("w"));
  constexpr auto columns = pt::manual("M", {{"w", 1}}, "columns");
  constexpr auto rows = pt::manual("M", {{"x", 0}}, "rows");
  CHECK(beside(f, columns, rows) == R"(  %x1 = permute {-1 around} <"M"> %x : tensor<4x4xf32>
  %x2 = matmul(%x, %w) : tensor<4x4xf32>
  %x3 = constant {0} : tensor<8x4xf32>
  %x4 = shard_start {4 <"M">} : tensor<i64>
  %x5 = constant {8} : tensor<i64>
  %x6 = constant {0} : tensor<i64>
  %x7 = dynamic_update_slice(%x3, %x2, %x4, %x6) : tensor<8x4xf32>
  %x8 = done(%x1, %x) : tensor<4x4xf32>
  %x9 = matmul(%x8, %w) : tensor<4x4xf32>
  %x10 = constant {4} : tensor<i64>
  %x11 = add(%x4, %x10) : tensor<i64>
  %x12 = remainder(%x11, %x5) : tensor<i64>
  %x13 = dynamic_update_slice(%x7, %x9, %x12, %x6) : tensor<8x4xf32>
  return %x13 : tensor<8x4xf32>
}
)");
}
TEST_CASE("overlap: gathered weights go around a ring, along the contracted dimension") {
  const auto f = pt::trace([](auto x, auto w) { return pt::matmul(x, w); },
                           pt::input<float, 8, 4>("x"), pt::input<float, 4, 8>("w"));
  constexpr auto BP = pt::manual("M", {{"x", 0}}, "BP");
  constexpr auto Z3 = pt::manual("M", {{"w", 0}}, "Z3");
  CHECK(beside(f, BP, Z3) == R"(  %x1 = permute {-1 around} <"M"> %w : tensor<2x8xf32>
  %x2 = shard_start {2 <"M">} : tensor<i64>
  %x3 = constant {4} : tensor<i64>
  %x4 = constant {0} : tensor<i64>
  %x5 = dynamic_slice(%x, %x4, %x2) {sizes=[-1, 2]} : tensor<4x2xf32>
  %x6 = matmul(%x5, %w) : tensor<4x8xf32>
  %x7 = constant {2} : tensor<i64>
  %x8 = add(%x2, %x7) : tensor<i64>
  %x9 = remainder(%x8, %x3) : tensor<i64>
  %x10 = dynamic_slice(%x, %x4, %x9) {sizes=[-1, 2]} : tensor<4x2xf32>
  %x11 = done(%x1, %w) : tensor<2x8xf32>
  %x12 = matmul(%x10, %x11) : tensor<4x8xf32>
  %x13 = add(%x6, %x12) : tensor<4x8xf32>
  return %x13 : tensor<4x8xf32>
}
)");
}
TEST_CASE("overlap: a scattered sum goes around a ring") {
  const auto f = pt::trace([](auto x, auto w) { return pt::matmul(x, w); },
                           pt::input<float, 8, 4>("x"), pt::input<float, 4, 8>("w"));
  constexpr auto sums = pt::manual("M", {{"x", 1}}, "sums");
  constexpr auto rows = pt::manual("M", {{"result", 0}}, "rows");
  CHECK(beside(f, sums, rows) == R"(  %x1 = shard_start {4 <"M">} : tensor<i64>
  %x2 = constant {8} : tensor<i64>
  %x3 = constant {4} : tensor<i64>
  %x4 = add(%x1, %x3) : tensor<i64>
  %x5 = remainder(%x4, %x2) : tensor<i64>
  %x6 = constant {0} : tensor<i64>
  %x7 = dynamic_slice(%x, %x5, %x6) {sizes=[4, -1]} : tensor<4x2xf32>
  %x8 = matmul(%x7, %w) : tensor<4x8xf32>
  %x9 = permute {+1 around} <"M"> %x8 : tensor<4x8xf32>
  %x10 = dynamic_slice(%x, %x1, %x6) {sizes=[4, -1]} : tensor<4x2xf32>
  %x11 = matmul(%x10, %w) : tensor<4x8xf32>
  %x12 = done(%x9, %x8) : tensor<4x8xf32>
  %x13 = add(%x12, %x11) : tensor<4x8xf32>
  return %x13 : tensor<4x8xf32>
}
)");
}
TEST_CASE("overlap: a gather starts as late as possible, and its result is awaited") {
  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        auto y = pt::matmul(pt::matmul(x, w), v);
        return std::tuple{y, pt::sum<0>(x)};
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"), pt::input<float, 8, 8>("v"));
  constexpr auto BP = pt::manual("M", {{"x", 0}}, "BP");
  constexpr auto Z3 = pt::manual("M", {{"v", 0}}, "Z3");
  CHECK(beside(f, BP, Z3) == R"(  %vg = all_gather [{"M"}, {}] %v : tensor<8x8xf32>
  %x1 = reduce(%x) {add, dims=[0]} : tensor<8xf32>
  %x2 = all_reduce <"M"> %x1 : tensor<8xf32>
  %x3 = matmul(%x, %w) : tensor<4x8xf32>
  %x4 = done(%vg, %v) : tensor<8x8xf32>
  %x5 = matmul(%x3, %x4) : tensor<4x8xf32>
  %x6 = done(%x2, %x1) : tensor<8xf32>
  return %x5, %x6 : tensor<4x8xf32>, tensor<8xf32>
}
)");
}

TEST_CASE("stationary: the smaller operand moves instead of the weights") {
  const auto w = pt::input<float, 16, 16>("w");
  // Each device has 128 bytes of x, 128 of y and 256 of a block of w: 480 bytes are sent, not 768.
  const auto f =
      pt::trace([](auto x, auto w) { return matmul(x, w); }, pt::input<float, 8, 16>("x"), w);
  constexpr auto columns = pt::manual("B", {{"w", 1}}, "columns");
  CHECK(ops(f, {.stationary_above = 288}, BP, columns) ==
        R"(  %xg = all_gather [{"B"}, {}] %x : tensor<8x16xf32>
  %x1 = matmul(%xg, %w) : tensor<8x4xf32>
  %x2 = all_to_all {1 -> 0} <"B"> %x1 : tensor<2x16xf32>
  return %x2 : tensor<2x16xf32>
}
)");
  CHECK(ops(f, {.stationary_above = 288}, BP, Z3) ==
        R"(  %x1 = all_to_all {0 -> 1} <"B"> %x : tensor<8x4xf32>
  %x2 = matmul(%x1, %w) : tensor<8x16xf32>
  %x3 = reduce_scatter [{"B"}, {}] %x2 : tensor<2x16xf32>
  return %x3 : tensor<2x16xf32>
}
)");
  CHECK(ops(f, {.stationary_above = 289}, BP, columns) == ops(f, {}, BP, columns));
  CHECK(ops(f, {.stationary_above = 289}, BP, Z3) == ops(f, {}, BP, Z3));
  // A value that is the same in each step of a loop may be gathered before the loop.
  const auto loop = pt::trace(
      [](auto x, auto w) {
        return pt::for_loop(
            0, 4, [&](auto, auto h) { return matmul(h, w); }, x);
      },
      pt::input<float, 8, 16>("x"), w);
  CHECK(ops(loop, {.stationary_above = 1}, BP, Z3) == ops(loop, {}, BP, Z3));
  // Another use needs it unsharded: nothing would be saved.
  const auto whole =
      pt::trace([](auto x, auto w) { return matmul(x, w) + pt::sum<0>(pt::sort<0>(w)); },
                pt::input<float, 8, 16>("x"), w);
  CHECK(ops(whole, {.stationary_above = 1}, BP, Z3) == ops(whole, {}, BP, Z3));
}

TEST_CASE("stationary: replicas do not move") {
  const auto w = pt::input<float, 16, 16>("w");
  const auto f =
      pt::trace([](auto x, auto w) { return matmul(x, w); }, pt::input<float, 8, 16>("x"), w);
  // Each two devices along M have the same block of x.
  constexpr auto along_both = pt::manual("M", {{"w", 0}});
  const std::string gathered = ops(f, {}, BP, Z3, along_both);
  CHECK(gathered.find(R"(all_gather [{"B", "M"}, {}] %w)") != std::string::npos);
  CHECK(ops(f, {.stationary_above = 1}, BP, Z3, along_both) == gathered);
  // In a loop, the carried value moves.
  const auto loop = pt::trace(
      [](auto x, auto w) {
        return std::get<0>(pt::for_loop(
            0, 4,
            [&](auto, auto state) {
              const auto e = -std::get<1>(state);
              return std::tuple{matmul(std::get<0>(state), e), e};
            },
            std::tuple{x, w}));
      },
      pt::input<float, 8, 16>("x"), w);
  CHECK(
      ops(loop, {.stationary_above = 1}, BP, Z3) ==
      R"(  %x1, %x2 = scan(%x, %w) {length=4, carried=2} do (%x3: tensor<i32>, %x4: tensor<2x16xf32>, %x5: tensor<4x16xf32>) {
    %x6 = negate(%x5) : tensor<4x16xf32>
    %x7 = all_to_all {0 -> 1} <"B"> %x4 : tensor<8x4xf32>
    %x8 = matmul(%x7, %x6) : tensor<8x16xf32>
    %x9 = reduce_scatter [{"B"}, {}] %x8 : tensor<2x16xf32>
    return %x9, %x6 : tensor<2x16xf32>, tensor<4x16xf32>
  } : tensor<2x16xf32>, tensor<4x16xf32>
  return %x1 : tensor<2x16xf32>
}
)");
  CHECK(ops(loop, {.stationary_above = 1}, BP, Z3, along_both) ==
        ops(loop, {}, BP, Z3, along_both));
}

TEST_CASE("stationary: a training step moves each activation once") {
  const auto step = pt::trace(
      [](auto x, auto v, auto w) {
        const auto loss = [=](const auto& params) {
          const auto y = matmul(matmul(x, std::get<0>(params)), std::get<1>(params));
          return pt::sum<0, 1>(y * y);
        };
        const auto [dv, dw] = pt::grad(loss, std::tuple{v, w});
        return std::tuple{pt::output("v", v - dv), pt::output("w", w - dw)};
      },
      pt::input<float, 8, 16>("x"), pt::input<float, 16, 16>("v"), pt::input<float, 16, 16>("w"));
  CHECK(ops(step, {.stationary_above = 1}, BP, Z3) ==
        R"(  %x1 = matmul(%x, %v) : tensor<2x16xf32>
  %x2 = constant {1} : tensor<f32>
  %x3 = broadcast_in_dim(%x2) {dims=[]} : tensor<2x16xf32>
  %x4 = all_to_all {0 -> 1} <"B"> %x1 : tensor<8x4xf32>
  %x5 = matmul(%x4, %w) : tensor<8x16xf32>
  %x6 = reduce_scatter [{"B"}, {}] %x5 : tensor<2x16xf32>
  %x7 = multiply(%x3, %x6) : tensor<2x16xf32>
  %x8 = multiply(%x3, %x6) : tensor<2x16xf32>
  %x9 = add(%x7, %x8) : tensor<2x16xf32>
  %x9g = all_gather [{"B"}, {}] %x9 : tensor<8x16xf32>
  %x10 = dot_general(%x4, %x9g) {contract=[0]x[0]} : tensor<4x16xf32>
  %w' = subtract(%w, %x10) : tensor<4x16xf32>
  %x11 = dot_general(%x9g, %w) {contract=[1]x[1]} : tensor<8x4xf32>
  %x12 = all_to_all {1 -> 0} <"B"> %x11 : tensor<2x16xf32>
  %x13 = dot_general(%x, %x12) {contract=[0]x[0]} : tensor<16x16xf32>
  %x14 = all_reduce <"B"> %x13 : tensor<16x16xf32>
  %v' = subtract(%v, %x14) : tensor<16x16xf32>
  return %v', %w' : tensor<16x16xf32>, tensor<4x16xf32>
}
)");
}

TEST_CASE("combine: small sums over the same devices share a message") {
  const auto f = pt::trace(
      [](auto x, auto y) {
        const auto a = pt::sum<0>(x);
        const auto b = pt::sum<0>(y);
        return std::tuple{pt::output("a", exp(a)), pt::output("b", b),
                          pt::output("c", pt::reduce_max<0>(x))};
      },
      pt::input<float, 8, 4>("x"), pt::input<float, 8, 2>("y"));
  constexpr auto rows = pt::manual("B", {{"x", 0}, {"y", 0}}, "rows");
  CHECK(ops(f, {.combine_below = 0}, rows) == R"(  %x1 = reduce(%x) {max, dims=[0]} : tensor<4xf32>
  %c = all_reduce <@max> <"B"> %x1 : tensor<4xf32>
  %x2 = reduce(%y) {add, dims=[0]} : tensor<2xf32>
  %b = all_reduce <"B"> %x2 : tensor<2xf32>
  %x3 = reduce(%x) {add, dims=[0]} : tensor<4xf32>
  %x4 = all_reduce <"B"> %x3 : tensor<4xf32>
  %a = exp(%x4) : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<2xf32>, tensor<4xf32>
}
)");
  CHECK(ops(f, {.combine_below = 24}, rows) == R"(  %x1 = reduce(%x) {max, dims=[0]} : tensor<4xf32>
  %c = all_reduce <@max> <"B"> %x1 : tensor<4xf32>
  %x2 = reduce(%y) {add, dims=[0]} : tensor<2xf32>
  %x3 = reduce(%x) {add, dims=[0]} : tensor<4xf32>
  %b, %x4 = all_reduce <"B"> %x2, %x3 : tensor<2xf32>, tensor<4xf32>
  %a = exp(%x4) : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<2xf32>, tensor<4xf32>
}
)");
  CHECK(ops(f, {.combine_below = 23}, rows) ==
        ops(f, {.combine_below = 0}, rows));  // 16 bytes and 8 exceed the limit
  CHECK(ops(f, {.combine_below = 24}, rows) == ops(f, {}, rows));
}

TEST_CASE("place: gathers run late, together with the ops that only they feed") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(pt::sort<0>(w), tanh(exp(x))); },
                           pt::input<float, 8, 64>("x"), pt::input<float, 8, 8>("w"));
  constexpr auto placed = pt::manual("M", {{"w", 0}}, "placed");
  CHECK(ops(f, {}, placed) == R"(  %wg = all_gather [{"M"}, {}] %w : tensor<8x8xf32>
  %x1 = sort(%wg) {dim=0} : tensor<8x8xf32>
  %x2 = exp(%x) : tensor<8x64xf32>
  %x3 = tanh(%x2) : tensor<8x64xf32>
  %x4 = matmul(%x1, %x3) : tensor<8x64xf32>
  return %x4 : tensor<8x64xf32>
}
)");
  CHECK(ops(f, {.place = true}, placed) == R"(  %x1 = exp(%x) : tensor<8x64xf32>
  %x2 = tanh(%x1) : tensor<8x64xf32>
  %wg = all_gather [{"M"}, {}] %w : tensor<8x8xf32>
  %x3 = sort(%wg) {dim=0} : tensor<8x8xf32>
  %x4 = matmul(%x3, %x2) : tensor<8x64xf32>
  return %x4 : tensor<8x64xf32>
}
)");
}
