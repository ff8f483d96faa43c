#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/shardings.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write_annotated.hpp>

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

pt::partitioned partitioned(const pt::program& p, std::string_view schedule) {
  const auto s = pt::read_schedule(schedule);
  if (s.error) FAIL(std::string(s.error.message.view()));
  return pt::partition(p, mesh, s.tactics);
}
int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}
/// Writes the program and reads it back: without shardings it is the same program, with them it has
/// the same layouts.
std::string written(const pt::partitioned& r) {
  const std::string text(pt::write_annotated_stablehlo(r).view());
  INFO(text);
  const pt::program plain = pt::read_stablehlo(text);
  if (plain.error) FAIL(std::string(plain.error.message.view()));
  CHECK(pt::equivalent(plain, pt::read_stablehlo(pt::write_stablehlo(r.source).view())));
  pt::sharding_list shardings;
  const pt::program again = pt::read_stablehlo(text, shardings);
  if (again.error) FAIL(std::string(again.error.message.view()));
  const auto s = pt::schedule_of(shardings, mesh);
  if (s.error) FAIL(std::string(s.error.message.view()));
  const pt::partitioned q = pt::partition(again, mesh, s.tactics);
  for (int i = 0; i < r.source.input_count(); ++i)
    CHECK(q.input(i).sharding == r.input(i).sharding);
  for (int i = 0; i < r.source.output_count(); ++i)
    CHECK(q.output(i).sharding == r.output(i).sharding);
  return text;
}

constexpr auto mlp = [](auto x, auto v, auto w) {
  return matmul(pt::tag("h", tanh(matmul(x, v))), w);
};
constexpr auto in_a_loop = [](auto x, auto w) {
  return pt::for_loop(
      0, 3, [&](auto, auto h) { return pt::tag("h", matmul(h, w)) + matmul(h, w); }, x);
};
constexpr auto in_calls = [](auto x) {
  const auto f = [](auto y) { return -pt::tag("t", tanh(y)); };
  return pt::call("f", f, x) + pt::stop_gradient(x);
};

}  // namespace

TEST_CASE("tags are constrained where the schedule decides their layout") {
  const auto f = pt::trace(mlp, pt::input<float, 16, 8>("x"), pt::input<float, 8, 32>("v"),
                           pt::input<float, 32, 8>("w"));
  const std::string text = written(partitioned(f, R"(BP: manual "B" {x: 0}
MP: manual "M" {h: 1})"));
  CHECK(count(text, "sdy.sharding_constraint") == 1);
  CHECK(text.find(R"( <@mesh, [{"B"}, {"M"}]> : tensor<16x32xf32>)") != std::string::npos);
  CHECK(count(written(partitioned(f, R"(BP: manual "B" {h: replicated})")), " <@mesh, [{}, {}]>") ==
        1);
  // Values that no tactic names have no constraint.
  CHECK(count(written(partitioned(f, R"(BP: manual "B" {w: 1})")), "sdy.sharding_constraint") == 0);
}

TEST_CASE("constraints in loops and functions, over parts of axes, with microbatches") {
  const auto loop = pt::trace(in_a_loop, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
  CHECK(count(written(partitioned(loop, R"(BP: manual "B:(1)2" {h: 0})")),
              R"( <@mesh, [{"B":(1)2}, {}]>)") == 1);
  const auto calls = pt::trace(in_calls, pt::input<float, 16, 8>("x"));
  CHECK(count(written(partitioned(calls, R"(BP: manual "B" {x: 0})")),
              R"( <@mesh, [{"B"}, {}]>)") == 1);
  const auto f = pt::trace(mlp, pt::input<float, 16, 8>("x"), pt::input<float, 8, 32>("v"),
                           pt::input<float, 32, 8>("w"));
  written(partitioned(f, R"(BP: manual "B" {x: 0}
MB: microbatch 2 {x: 0}
MP: manual "M" {h: 1})"));
}

TEST_CASE("values that tactics name by their scopes are constrained") {
  const pt::program p = pt::read_stablehlo(
      R"m(func.func @main(%x: tensor<16x8xf32>, %w: tensor<8x32xf32>, %v: tensor<32x8xf32>) -> tensor<16x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32> loc("jit(f)/up/dot")
  %1 = stablehlo.tanh %0 : tensor<16x32xf32> loc("jit(f)/up/tanh")
  %c = stablehlo.constant dense<0> : tensor<i32>
  %2:2 = stablehlo.while(%i = %c, %h = %1) : tensor<i32>, tensor<16x32xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %4 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %n = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.add %i, %n : tensor<i32>
    %5 = stablehlo.tanh %h : tensor<16x32xf32> loc("jit(f)/while/body/tanh")
    stablehlo.return %4, %5 : tensor<i32>, tensor<16x32xf32>
  } loc("jit(f)/while")
  %3 = stablehlo.dot_general %2#1, %v, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  return %3 : tensor<16x8xf32>
})m");
  const std::string text = written(partitioned(p, R"(BP: manual "B" {up.dot: 0, while: 0}
MP: manual "M" {while.body: 1})"));
  CHECK(count(text, R"(<@mesh, [{"B"}, {"M"}]> : tensor<16x32xf32>)") == 3);
}
