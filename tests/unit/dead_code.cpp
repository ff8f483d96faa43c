// Ops that no output needs are removed before the first tactic, also in loops, branches and calls.
#include <doctest/doctest.h>

#include <string>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/report/pipeline_explain.hpp>
#include <partita/report/pipeline_report.hpp>

#include "texts.hpp"

namespace {

namespace pt = partita;
using unit::str;

pt::program read(const char* text) {
  pt::program p = pt::parse(text);
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  return p;
}
std::string live_text(const char* text) {
  const pt::program p = read(text);
  const pt::live_program live = pt::without_dead_code(p);
  REQUIRE(live.changed);
  CHECK(!pt::verify(live.p));
  CHECK(!pt::without_dead_code(live.p).changed);
  return str(pt::print(live.p));
}

/// A loss that no output needs, computed from a value that a loop carries, inside the loop and
/// after it.
constexpr const char* loss = R"(func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) {
  %zero = constant {0} : tensor<f32>
  %dead = tanh(%w) : tensor<8x8xf32>
  %h, %l, %s, %t = scan(%w, %x, %zero, %dead) {length=5, constants=1, carried=2, sliced=0, stacked=2} do (%i: tensor<i32>, %v: tensor<8x8xf32>, %h1: tensor<8x8xf32>, %l1: tensor<f32>) {
    %d = matmul(%h1, %v) : tensor<8x8xf32>
    %sum = reduce(%d) {add, dims=[0, 1]} : tensor<f32>
    %l2 = add(%l1, %sum) : tensor<f32>
    return %d, %l2, %d, %sum : tensor<8x8xf32>, tensor<f32>, tensor<8x8xf32>, tensor<f32>
  } : tensor<8x8xf32>, tensor<f32>, tensor<5x8x8xf32>, tensor<5xf32>
  %m = multiply(%l, %l) : tensor<f32>
  return %h, %s : tensor<8x8xf32>, tensor<5x8x8xf32>
})";

}  // namespace

TEST_CASE("unused ops are removed, the others keep their order, inputs stay") {
  CHECK(live_text(R"(func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  %a = exp(%y) : tensor<4xf32>
  %b = tanh(%x) : tensor<4xf32>
  %c = add(%a, %b) : tensor<4xf32>
  %d = negate(%b) : tensor<4xf32>
  return %d : tensor<4xf32>
})") == R"(func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  %x1 = tanh(%x) : tensor<4xf32>
  %d = negate(%x1) : tensor<4xf32>
  return %d : tensor<4xf32>
}
)");
}

TEST_CASE("loops lose carried values that only feed themselves, stacks, and the operands of both") {
  std::string text = loss;
  text.replace(text.find("scan(%w, %x, %zero, %dead)"), 26, "scan(%w, %x, %zero)");
  CHECK(live_text(text.c_str()) == R"(func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) {
  %h, %s = scan(%w, %x) {length=5, constants=1, carried=1, stacked=1} do (%x1: tensor<i32>, %x2: tensor<8x8xf32>, %x3: tensor<8x8xf32>) {
    %x4 = matmul(%x3, %x2) : tensor<8x8xf32>
    return %x4, %x4 : tensor<8x8xf32>, tensor<8x8xf32>
  } : tensor<8x8xf32>, tensor<5x8x8xf32>
  return %h, %s : tensor<8x8xf32>, tensor<5x8x8xf32>
}
)");
  // Two carried values that feed each other, and a condition that needs a third.
  CHECK(live_text(R"(func @main(%x: tensor<4xf32>, %n: tensor<i32>) {
  %c = constant {0} : tensor<i32>
  %a = exp(%x) : tensor<4xf32>
  %r, %s, %t, %u = while(%c, %a, %a, %x) do (%i: tensor<i32>, %p: tensor<4xf32>, %q: tensor<4xf32>, %h: tensor<4xf32>) {
    %b = compare(%i, %i) {ne} : tensor<i1>
    return %b : tensor<i1>
  } do (%i: tensor<i32>, %p: tensor<4xf32>, %q: tensor<4xf32>, %h: tensor<4xf32>) {
    %g = add(%q, %h) : tensor<4xf32>
    %k = tanh(%h) : tensor<4xf32>
    return %i, %g, %p, %k : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %u : tensor<4xf32>
})") == R"(func @main(%x: tensor<4xf32>, %n: tensor<i32>) {
  %x1 = constant {0} : tensor<i32>
  %x2, %u = while(%x1, %x) do (%x3: tensor<i32>, %x4: tensor<4xf32>) {
    %x5 = compare(%x3, %x3) {ne} : tensor<i1>
    return %x5 : tensor<i1>
  } do (%x3: tensor<i32>, %x4: tensor<4xf32>) {
    %x5 = tanh(%x4) : tensor<4xf32>
    return %x3, %x5 : tensor<i32>, tensor<4xf32>
  } : tensor<i32>, tensor<4xf32>
  return %u : tensor<4xf32>
}
)");
}

TEST_CASE("branches and calls lose results, and the ops that only these need") {
  CHECK(live_text(R"(func @main(%x: tensor<4xf32>, %k: tensor<i32>) {
  %a = exp(%x) : tensor<4xf32>
  %r, %s = case(%k, %x, %a) do (%p: tensor<4xf32>, %q: tensor<4xf32>) {
    %b = negate(%q) : tensor<4xf32>
    return %b, %p : tensor<4xf32>, tensor<4xf32>
  } do (%p: tensor<4xf32>, %q: tensor<4xf32>) {
    %c = tanh(%p) : tensor<4xf32>
    return %q, %c : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %t, %u = call "f"(%s, %r) do (%p: tensor<4xf32>, %q: tensor<4xf32>) {
    %c = tanh(%p) : tensor<4xf32>
    %d = tanh(%q) : tensor<4xf32>
    return %d, %c : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  return %u : tensor<4xf32>
})") == R"(func @main(%x: tensor<4xf32>, %k: tensor<i32>) {
  %x1 = case(%k, %x) do (%x2: tensor<4xf32>) {
    return %x2 : tensor<4xf32>
  } do (%x2: tensor<4xf32>) {
    %x3 = tanh(%x2) : tensor<4xf32>
    return %x3 : tensor<4xf32>
  } : tensor<4xf32>
  %u = call "f"(%x1) do (%x2: tensor<4xf32>) {
    %x3 = tanh(%x2) : tensor<4xf32>
    return %x3 : tensor<4xf32>
  } : tensor<4xf32>
  return %u : tensor<4xf32>
}
)");
}

TEST_CASE("partition drops dead code, reports it, and is proved against the full program") {
  std::string text = loss;
  text.replace(text.find("scan(%w, %x, %zero, %dead)"), 26, "scan(%w, %x, %zero)");
  const pt::program p = read(text.c_str());
  const auto r = pt::partition(p, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(r.removed.ops == 5);
  CHECK(r.removed.flops == 64 + 1 + 5 * (64 + 1));
  CHECK(r.collectives.all_reduce == 0);  // only the dead loss would be summed
  const std::string note = "note: removed 5 ops that no output needs, 390 flop\n";
  CHECK(str(pt::report(r)).find(note) != std::string::npos);
  CHECK(str(pt::explain(r)).find(note) != std::string::npos);
  CHECK(pt::summarize(r).removed_ops == 5);
  CHECK(str(pt::print(r.given())) == str(pt::print(p)));
  CHECK(pt::prove(r).proved);
  CHECK(pt::prove(p, r.device).proved);
  // A program without dead code gets no note.
  const auto live = pt::partition(r.source, pt::mesh{{"B", 4}}, pt::schedule());
  CHECK(live.removed.ops == 0);
  CHECK(live.original.ops.empty());
  CHECK(str(pt::report(live)).find("removed") == std::string::npos);
}

TEST_CASE("a tactic may name a dead tag; the report notes that it was removed") {
  const pt::program p = read(R"(func @main(%x: tensor<4xf32>) {
  %a = exp(%x) : tensor<4xf32>
  %loss = tag "loss" %a : tensor<4xf32>
  %d = negate(%x) : tensor<4xf32>
  return %d : tensor<4xf32>
})");
  const pt::mesh mesh{{"B", 4}};
  const auto r = pt::partition(
      p, mesh, pt::schedule(pt::manual("B", {{"loss", 0}}), pt::manual("B", {{"x", 0}})));
  REQUIRE(r.tactics[0].notes.size() == 1);
  CHECK(str(r.tactics[0].notes[0]) ==
        "no output needs \"loss\"; it was removed, and this line does nothing");
  CHECK(r.input("x").local_shape == pt::shape{1});
  CHECK(unit::thrown([&] {
          (void)pt::partition(p, mesh, pt::schedule(pt::manual("B", {{"lost", 0}})));
        }).starts_with("S006"));
}

TEST_CASE("pipelines make no unit from dead code") {
  const auto model = [](auto x) {
    const auto h = pt::named("s0", [](auto v) { return tanh(v); })(x);
    return sum(pt::named("s1", [](auto v) { return v * v; })(h));
  };
  pt::program p = pt::trace(model, pt::input<float, 8>("x"));
  // A dead derivative: an op in the backward part of s0.
  pt::op_id first = -1;
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.op(o).def->name == "tanh") first = o;
  const pt::value_id h[] = {p.op(first).result, p.op(first).result};
  p.append(pt::def<pt::op::multiply>, h, {}, p.type(h[0]));
  p.ops.back().marks = p.op(first).marks;
  p.ops.back().marks.transposed = 1;
  p.ops.back().marks.origin = p.op(first).marks.source;
  const pt::topology meshes{{"m0", {{"A", 1}}}, {"m1", {{"A", 1}}}};
  const auto r = pt::partition(
      p, meshes,
      pt::schedule(
          pt::pipeline({.stages = {{"s0"}, {"s1"}}, .batch = {{"x", 0}}, .microbatches = 2})),
      {.prove = &pt::no_proof});
  CHECK(r.removed.ops == 1);
  const std::string note = "note: removed 1 op that no output needs, 8 flop\n";
  CHECK(str(pt::report(r)).find(note) != std::string::npos);
  CHECK(str(pt::explain(r)).find(note) != std::string::npos);
}
