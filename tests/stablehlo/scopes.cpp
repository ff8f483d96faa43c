#include <doctest/doctest.h>

#include <string>

#include <partita/cpu.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/partita.hpp>
#include <partita/report/explain.hpp>
#include <partita/run/mpmd.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/stablehlo/read.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

/// A training step of two layers as JAX lowers it: the second layer is a function that is called
/// twice, forward and again in the derivative.
constexpr std::string_view two_layers = R"m(#loc = loc(unknown)
#loc1 = loc("params['w'][0]")
#loc4 = loc("/home/me/net.py":10:28 to :31)
#loc5 = loc("layer"(#loc4))
module @jit_step {
  func.func public @main(%arg0: tensor<8x16xf32> loc(#loc1), %arg1: tensor<16x8xf32> loc("params['w'][1]"), %arg2: tensor<32x8xf32> loc("x")) -> (tensor<32x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32> loc(#loc10)
    %cst = stablehlo.constant dense<1.0> : tensor<f32> loc(#loc11)
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x16xf32> loc(#loc11)
    %2 = stablehlo.subtract %1, %0 : tensor<32x16xf32> loc(#loc11)
    %3 = call @second(%2, %arg1) : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32> loc(#loc12)
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<32x8xf32>) -> tensor<8x32xf32> loc(#loc13)
    %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32> loc(fused["jit(step)/jvp(layers_1)/attn/transpose"(#loc5), #loc4])
    %6 = call @second(%2, %arg1) : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32> loc("jit(step)/transpose(jvp(layers_1))/attn/jit(second)")
    %7 = stablehlo.add %5, %6 : tensor<32x8xf32> loc(callsite("jit(step)/add" at #loc4))
    return %7 : tensor<32x8xf32> loc(#loc)
  } loc(#loc)
  func.func private @second(%arg0: tensor<32x16xf32>, %arg1: tensor<16x8xf32>) -> tensor<32x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32> loc("dot_general"(#loc5))
    %1 = stablehlo.tanh %0 : tensor<32x8xf32> loc("jit(step)/alone/tanh")
    return %1 : tensor<32x8xf32>
  }
}
#loc10 = loc("jit(step)/jvp(layers_0)/attn/dot_general"(#loc5))
#loc11 = loc("jit(step)/jvp(layers_0)/attn/sub"(callsite(#loc5 at #loc5)))
#loc12 = loc("jit(step)/jvp(layers_1)/attn/jit(second)"(#loc5))
#loc13 = loc("jit(step)/jvp(layers_1)/attn/transpose"(#loc5))
)m";

/// The gradient of two layers, h = h + tanh(h w + 1), as JAX lowers it.
constexpr std::string_view gradient = R"m(module @jit_step {
  func.func public @main(%arg0: tensor<8x8xf32> loc("params[0]"), %arg1: tensor<8x8xf32> loc("params[1]"), %arg2: tensor<16x8xf32> loc("x")) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/dot_general")
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/add")
    %2 = stablehlo.add %0, %1 : tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/add")
    %3 = stablehlo.tanh %2 : tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/tanh")
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/sub")
    %5 = stablehlo.subtract %4, %3 : tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/sub")
    %6 = stablehlo.add %arg2, %3 : tensor<16x8xf32> loc("jit(step)/jvp(layers_0)/add")
    %7 = stablehlo.dot_general %6, %arg1, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("jit(step)/jvp(layers_1)/dot_general")
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x8xf32> loc("jit(step)/jvp(layers_1)/add")
    %9 = stablehlo.add %7, %8 : tensor<16x8xf32> loc("jit(step)/jvp(layers_1)/add")
    %10 = stablehlo.tanh %9 : tensor<16x8xf32> loc("jit(step)/jvp(layers_1)/tanh")
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x8xf32> loc("jit(step)/jvp(layers_1)/sub")
    %12 = stablehlo.subtract %11, %10 : tensor<16x8xf32> loc("jit(step)/jvp(layers_1)/sub")
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x8xf32> loc("jit(step)/transpose(jvp())/broadcast_in_dim")
    %14 = stablehlo.multiply %13, %12 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_1))/mul")
    %15 = stablehlo.multiply %14, %10 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_1))/mul")
    %16 = stablehlo.add %14, %15 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_1))/add_any")
    %17 = stablehlo.dot_general %16, %6, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> loc("jit(step)/transpose(jvp(layers_1))/dot_general")
    %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(step)/transpose(jvp(layers_1))/transpose")
    %19 = stablehlo.dot_general %16, %arg1, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_1))/dot_general")
    %20 = stablehlo.add %13, %19 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_1))/add_any")
    %21 = stablehlo.multiply %20, %5 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_0))/mul")
    %22 = stablehlo.multiply %21, %3 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_0))/mul")
    %23 = stablehlo.add %21, %22 : tensor<16x8xf32> loc("jit(step)/transpose(jvp(layers_0))/add_any")
    %24 = stablehlo.dot_general %23, %arg2, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> loc("jit(step)/transpose(jvp(layers_0))/dot_general")
    %25 = stablehlo.transpose %24, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(step)/transpose(jvp(layers_0))/transpose")
    return %25, %18 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
)m";

pt::program program_of(std::string_view text) {
  pt::program p = pt::read_stablehlo(text);
  if (p.error) FAIL(std::string(p.error.message.view()));
  return p;
}
pt::partitioned partition(const pt::program& p, std::string_view schedule) {
  const auto s = pt::read_schedule(schedule);
  if (s.error) FAIL(std::string(s.error.message.view()));
  return pt::partition(p, pt::mesh{{"B", 4}, {"M", 2}}, s.tactics);
}
std::string mistake(std::string_view schedule) {
  try {
    partition(program_of(two_layers), schedule);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}
std::string actions(const pt::partitioned& r) {
  return std::string(pt::print_actions(r.core, r.source).view());
}

}  // namespace

TEST_CASE("values are named by the scopes of their ops") {
  CHECK(
      std::string(pt::print(program_of(two_layers)).view()) ==
      R"(func @main(%params.w.0: tensor<8x16xf32>, %params.w.1: tensor<16x8xf32>, %x: tensor<32x8xf32>) {
  %layers_0.attn.dot_general = matmul(%x, %params.w.0) : tensor<32x16xf32>
  %x1 = constant {1} : tensor<f32>
  %x2 = broadcast_in_dim(%x1) {dims=[]} : tensor<32x16xf32>
  %layers_0.attn.sub = subtract(%x2, %layers_0.attn.dot_general) : tensor<32x16xf32>
  %layers_1.attn.second.dot_general = matmul(%layers_0.attn.sub, %params.w.1) : tensor<32x8xf32>
  %alone.tanh.0 = tanh(%layers_1.attn.second.dot_general) : tensor<32x8xf32>
  %layers_1.attn.transpose.0 = transpose(%alone.tanh.0) {dims=[1, 0]} : tensor<8x32xf32>
  %layers_1.attn.transpose.1 = transpose(%layers_1.attn.transpose.0) {dims=[1, 0]} : tensor<32x8xf32>
  %grad.layers_1.attn.second.dot_general = matmul(%layers_0.attn.sub, %params.w.1) : tensor<32x8xf32>
  %alone.tanh.1 = tanh(%grad.layers_1.attn.second.dot_general) : tensor<32x8xf32>
  %add = add(%layers_1.attn.transpose.1, %alone.tanh.1) : tensor<32x8xf32>
  return %add as "result" : tensor<32x8xf32>
}
)");
}

TEST_CASE("a module without locations has no names for inner values") {
  std::string text(two_layers.substr(two_layers.find("module")));
  text.erase(text.find("#loc10 ="));
  for (std::size_t at; (at = text.find(" loc(")) != std::string::npos;) {
    std::size_t end = at + 5;
    for (int depth = 1; depth > 0; ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    text.erase(at, end - at);
  }
  const pt::program p = program_of(text);
  CHECK(p.labels.empty());
  CHECK(std::string(pt::print(p).view()).find("%x4 = subtract(%x3, %x1)") != std::string::npos);
}

TEST_CASE("the steps of one JAX operation have no names") {
  const pt::program p = program_of(
      R"m(func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32> loc("jit(f)/dense/add")
  %1 = stablehlo.add %x, %0 : tensor<4x8xf32> loc("jit(f)/dense/add")
  %2 = stablehlo.multiply %1, %1 : tensor<4x8xf32> loc("jit(f)/pow")
  %3 = stablehlo.multiply %2, %1 : tensor<4x8xf32> loc("jit(f)/pow")
  %4 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32> loc("jit(f)/sub")
  %5 = stablehlo.subtract %3, %4 : tensor<4x8xf32> loc("jit(f)/sub")
  %6 = stablehlo.add %5, %4 : tensor<4x8xf32> loc("jit(f)/last")
  return %6 : tensor<4x8xf32>
})m");
  const std::string text(pt::print(p).view());
  for (std::string_view line :
       {"%dense.add = add(%x, %x1)", "%pow.0 = multiply", "%pow.1 = multiply(%pow.0",
        "%sub.0 = broadcast_in_dim", "%sub.1 = subtract(%pow.1, %sub.0)"})
    CHECK(text.find(std::string(line)) != std::string::npos);
}

TEST_CASE("tactics select inner values by name, prefix and pattern") {
  const pt::program p = program_of(two_layers);
  const auto selected = [&](std::string_view name) {
    return actions(partition(p, "M: manual \"M\" {\"" + std::string(name) + "\": 1}"));
  };
  CHECK(selected("layers_0.attn.dot_general") ==
        "tile<%layers_0.attn.dot_general, 1, \"M\">; propagate;\n");
  CHECK(selected("layers_0") ==
        "tile<%layers_0.attn.dot_general, 1, \"M\">; tile<%layers_0.attn.sub, 1, \"M\">; "
        "propagate;\n");
  CHECK(selected("layers_*.attn.**.dot_general") ==
        "tile<%layers_1.attn.second.dot_general, 1, \"M\">; propagate;\n");
  CHECK(selected("grad") == "tile<%grad.layers_1.attn.second.dot_general, 1, \"M\">; propagate;\n");
  CHECK(selected("alone.tanh.1") == "tile<%alone.tanh.1, 1, \"M\">; propagate;\n");
  // A pattern that selects an input selects no inner value.
  CHECK(selected("**").find("layers") == std::string::npos);
}

TEST_CASE("a tactic on an inner value shards like one on its weight, and computes the same") {
  const pt::program p = program_of(two_layers);
  const auto by_value = partition(p, R"(BP: manual "B" {x: 0}
MP: manual "M" {"layers_0.attn.dot_general": 1})");
  const auto by_weight = partition(p, R"(BP: manual "B" {x: 0}
MP: manual "M" {params.w.0: 1})");
  CHECK(by_value.collectives == by_weight.collectives);
  CHECK(by_value.input("params.w.0").sharding == by_weight.input("params.w.0").sharding);
  const std::string why(pt::explain(by_value).view());
  CHECK(why.find("%layers_1.attn.second.dot_general") != std::string::npos);
  const auto arguments = data::arguments(p);
  CHECK(pt::all_close(pt::emulate(by_value.device, arguments), pt::evaluate(p, arguments)));
}

namespace {

/// `h = h w` three times in a loop, where the product has this name; then the ops of the result.
pt::program loop_of(const std::string& name, const std::string& rest) {
  return program_of(
      R"m(func.func @main(%x: tensor<32x8xf32>, %w: tensor<8x8xf32>) -> tensor<32x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %h = %x) : tensor<i32>, tensor<32x8xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("jit(f)/while/cond/lt")
    stablehlo.return %1 : tensor<i1>
  } do {
    %n = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %n : tensor<i32> loc("jit(f)/while/body/add")
    %2 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<32x8xf32>, tensor<8x8xf32>) -> tensor<32x8xf32> loc("jit(f)/while/body/)m" +
      name + R"m(")
    stablehlo.return %1, %2 : tensor<i32>, tensor<32x8xf32>
  } loc("jit(f)/while")
)m" + rest);
}

}  // namespace

TEST_CASE("scopes inside loops, and with microbatches, keep their names") {
  const pt::program p =
      loop_of("dot", R"m(  %3 = stablehlo.tanh %0#1 : tensor<32x8xf32> loc("jit(f)/tanh")
  %4 = stablehlo.negate %3 : tensor<32x8xf32>
  return %4 : tensor<32x8xf32>
})m");
  const auto inside = partition(p, R"(M: manual "M" {"while.body.dot": 1})");
  CHECK(actions(inside) ==
        "tile<%while.body.dot, 1, \"M\">; propagate; settle<%while.body.dot, 2, \"M\">;\n");
  const auto result = partition(p, R"(M: manual "M" {while: 0})");
  CHECK(result.input("x").local_shape == pt::shape{16, 8});
  CHECK(actions(result) == "tile<%while, 0, \"M\">; tile<%while.body.dot, 0, \"M\">; propagate;\n");
  const auto steps = partition(p, R"(MB: microbatch 4 {x: 0}
M: manual "M" {tanh: 1})");
  const auto arguments = data::arguments(p);
  for (const auto* r : {&inside, &result, &steps})
    CHECK(pt::all_close(pt::emulate(r->device, arguments), pt::evaluate(p, arguments)));
}

TEST_CASE("remat of a scope recomputes it for the derivative") {
  const pt::program p = program_of(gradient);
  const auto arguments = data::arguments(p);
  const auto differences = [](const pt::program& q, bool again) {
    int n = 0;
    for (const auto& each : q.ops) n += each.marks.again == again && each.def->name == "subtract";
    return n;
  };
  for (const std::string_view names : {"layers_*", "params", "layers_0, \"layers_1\""}) {
    const auto r = partition(p, pt::concat("R: remat ", names, "\nBP: manual B {x: 0}").view());
    CHECK(r.tactics[0].remat.scopes == 2);
    // Only the derivative reads the differences: they are computed only there.
    CHECK(differences(r.sharded(), false) == 0);
    CHECK(differences(r.sharded(), true) == 2);
    CHECK(pt::all_close(pt::emulate(r, arguments), pt::evaluate(p, arguments)));
    CHECK(data::str(pt::explain(r)).find("grad.layers_0.dot_general") != std::string::npos);
  }
  CHECK(partition(p, "R: remat layers_1").tactics[0].remat.scopes == 1);
  CHECK(mistake("remat grad.layers_1").starts_with("S0"));
}

TEST_CASE("errors name scopes") {
  CHECK(mistake("M: manual \"M\" {\"layers_0.atn.sub\": 1}")
            .find("did you mean \"layers_0.attn.sub\"?") != std::string::npos);
  CHECK(mistake("M: manual \"M\" {layers_7: 1}").find("did you mean \"layers_0\"?") !=
        std::string::npos);
  CHECK(mistake("M: manual \"M\" {\"layers_0.attn.sub\": 2}") ==
        "S002 schedule: 1:1: tile: dimension 2 of \"layers_0.attn.sub\" is out of range; its shape "
        "is [32, 16]");
  const auto message = [](std::string_view op) {
    return std::string(
        pt::read_stablehlo(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = " + std::string(op) +
            "\n  return %0 : tensor<4xf32>\n}\n#loc7 = loc(\"jit(f)/jvp(head)/dot\")\n")
            .error.message.view());
  };
  CHECK(message("stablehlo.what %x : tensor<4xf32> loc(#loc7)").ends_with(", of head.dot"));
  CHECK(message("stablehlo.add %x, %y : tensor<4xf32> loc(#loc7)") ==
        "H006 stablehlo: 2:8: %y is used before it is defined, or not defined at all, of head.dot");
  CHECK(!message("stablehlo.add %x, %y : tensor<4xf32>").ends_with("head.dot"));
}

TEST_CASE("ops that are added and renumbered keep their names") {
  pt::program p = program_of(two_layers);
  for (auto& n : p.ops) n.marks.source += 5;  // as if it were made of a larger program
  pt::label_list labels;
  for (int i = 0; i < 5; ++i) labels.add("", 0);
  for (const auto& n : p.ops) labels.add(p.labels, n.marks.source - 5, n.def->id);
  p.labels = labels;
  const std::string before(pt::print(p).view());
  pt::number_ops(p);
  CHECK(std::string(pt::print(p).view()) == before);
  CHECK(p.ops[0].marks.source == 0);
}

TEST_CASE("texts with names of scopes are read back, and actions replay") {
  const pt::program p = program_of(two_layers);
  CHECK(pt::equivalent(pt::parse(pt::print(p).view()), p));
  const auto r = partition(p, R"(BP: manual "B" {x: 0}
MP: manual "M" {"layers_*.**.dot_general": 1})");
  pt::core_program again(p, pt::mesh{{"B", 4}, {"M", 2}});
  const pt::failure f = pt::replay(again, p, actions(r));
  CHECK(data::str(f.message) == "");
  CHECK(data::str(pt::print_core(again)) == data::str(pt::print_core(r.core)));
}

TEST_CASE("layers of a module are assigned to meshes by their scopes, with their derivatives") {
  const pt::program p = program_of(gradient);
  const pt::topology meshes{{"m0", {{"B", 4}}}, {"m1", {{"B", 2}}}};
  const auto m = pt::to_mpmd(p, meshes, {.names = {{"layers_0", "m0"}, {"layers_1", "m1"}}});
  std::string parts;
  for (const auto& f : m.fragments)
    for (const auto& o : f.origins)
      parts += std::string(o.name.view()) + (o.transposed > 0 ? "' " : " ");
  CHECK(parts == "layers_0 layers_1 layers_1' layers_0' ");
  CHECK(m.fragments.size() == 4);
  CHECK(m.transfers.size() == 2);  // the activation and its derivative
  CHECK(m.mesh_of_input("params.0") == "m0");
  CHECK(m.mesh_of_input("params.1") == "m1");
  const auto inputs = data::arguments(p);
  CHECK(pt::equal(pt::run_fragments(m, inputs), pt::evaluate(p, inputs)));
}

TEST_CASE("an op without a label belongs to the part of its user") {
  // An addition whose operand is broadcast first: the broadcast has no name.
  constexpr std::string_view text = R"m(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> tensor<8x4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4xf32> loc("jit(f)/layers_0/tanh")
    %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32> loc("jit(f)/layers_1/add")
    %2 = stablehlo.add %1, %1 : tensor<8x4xf32> loc("jit(f)/layers_1/add")
    return %2 : tensor<8x4xf32>
  }
}
)m";
  const pt::topology meshes{{"m0", {{"B", 4}}}, {"m1", {{"B", 2}}}};
  const auto m =
      pt::to_mpmd(program_of(text), meshes, {.names = {{"layers_0", "m0"}, {"layers_1", "m1"}}});
  REQUIRE(m.transfers.size() == 1);
  CHECK(m.source.type(m.transfers[0].value).shape == pt::shape{4});
}

TEST_CASE("an iteration of a loop is not a part: the error has the name of the loop") {
  const pt::program p = loop_of("layers/dot_general", R"m(  return %0#1 : tensor<32x8xf32>
}
)m");
  constexpr pt::topology meshes{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};
  const auto refusal = [&](std::string_view name) -> std::string {
    try {
      pt::to_mpmd(p, meshes, {.names = {{name, "m0"}}});
    } catch (const pt::error& e) {
      return e.what();
    }
    return "";
  };
  const std::string wanted =
      " would be an iteration of scan, which has \"while.body.layers\" in it; a loop runs on one "
      "mesh: assign all of \"while.body.layers\", or unroll it (in C++ a for statement with "
      "named(\"";
  for (const std::string name : {"layers.0", "while.body.layers.0"})
    CHECK(refusal(name).starts_with("O139 mpmd: \"" + name + '"' + wanted));
  CHECK(refusal("while.body.layers").empty());
  CHECK(refusal("layer.0").starts_with("O108 "));
}

TEST_CASE("results of loops keep their numbers if others are dead") {
  const pt::program p =
      program_of(R"m(func.func @main(%x: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<8x8xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r:3 = stablehlo.while(%i = %c0, %l = %z, %h = %x) : tensor<i32>, tensor<f32>, tensor<8x8xf32>
   cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %a = stablehlo.add %i, %c1 : tensor<i32>
    %d = stablehlo.tanh %h : tensor<8x8xf32>
    %e = stablehlo.add %l, %l : tensor<f32>
    stablehlo.return %a, %e, %d : tensor<i32>, tensor<f32>, tensor<8x8xf32>
  } loc("jit(f)/while")
  %s = stablehlo.tanh %r#2 : tensor<8x8xf32>
  return %s : tensor<8x8xf32>
})m");
  const auto r = partition(p, R"(B: manual "B" {"while.2": 0})");
  CHECK(r.removed.ops == 2);
  CHECK(actions(r) == "tile<%while.2, 0, \"B\">; propagate;\n");
  CHECK(data::str(pt::print(r.source)).find("%while.0, %while.2, %while.3 = while(") !=
        std::string::npos);
  const auto dead = partition(p, R"(B: manual "B" {"while.1": 0})");
  REQUIRE(dead.tactics[0].notes.size() == 1);
  CHECK(data::str(dead.tactics[0].notes[0]) ==
        "no output needs \"while.1\"; it was removed, and this line does nothing");
}
