// Finds next states among the results of a module, and reads its attributes of arguments and
// results. Sharding, memory and emitted modules follow from both.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <partita/op/parse.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/report/memory.hpp>
#include <partita/report/report.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_annotated.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

std::string replaced(std::string all, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = all.find(what, at)) != std::string::npos; at += by.size())
    all.replace(at, what.size(), by);
  return all;
}

/// A step of gradient descent with momentum, whose states have one type. `donated`: as JAX writes
/// it, the k-th donated argument is paired with the k-th result of its type. `order`: the order of
/// the results params "p", momentum "m" and loss "l"; `path`: the text after the number of a
/// result.
std::string step(bool donated, const std::string& order, const std::string& path = "['w']") {
  std::string results, values, types;
  std::vector<int> states;
  int k = 0;
  for (const char c : order) {
    const std::string type = c == 'l' ? "tensor<f32>" : "tensor<8x8xf32>";
    if (c != 'l') states.push_back(k);
    const std::string comma = k > 0 ? ", " : "";
    results += comma + type + " {jax.result_info = \"result[" + std::to_string(k) + "]" +
               (c == 'l' ? "" : path) + "\"}";
    values += comma + (c == 'p' ? "%p" : c == 'm' ? "%m" : "%l");
    types += comma + type;
    ++k;
  }
  const auto donation = [&](std::size_t i) {
    return donated ? " {tf.aliasing_output = " + std::to_string(states[i]) + " : i32}" : "";
  };
  return "func.func public @main(%w: tensor<8x8xf32>" + donation(0) +
         " loc(\"params['w']\"), %o: tensor<8x8xf32>" + donation(1) +
         " loc(\"opt['w']\"), %x: tensor<16x8xf32> loc(\"x\")) -> (" + results + ") {\n" + R"(
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %t = stablehlo.tanh %y : tensor<16x8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%t init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
  %s = stablehlo.multiply %t, %t : tensor<16x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<16x8xf32>
  %d = stablehlo.subtract %one, %s : tensor<16x8xf32>
  %g = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %b = stablehlo.constant dense<0.5> : tensor<8x8xf32>
  %bo = stablehlo.multiply %b, %o : tensor<8x8xf32>
  %m = stablehlo.add %bo, %g : tensor<8x8xf32>
  %u = stablehlo.multiply %b, %m : tensor<8x8xf32>
  %p = stablehlo.subtract %w, %u : tensor<8x8xf32>
  return )" +
         values + " : " + types + "\n}\n";
}
pt::program read(const std::string& module) {
  const pt::program p = pt::read_stablehlo(module);
  REQUIRE_MESSAGE(!p.error, str(p.error.message), "\n", module);
  return p;
}
std::string output_names(const pt::program& p) {
  std::string list;
  for (int k = 0; k < p.output_count(); ++k) list += (k > 0 ? " " : "") + str(p.output_name(k));
  return list;
}
std::string notes(const pt::program& p) {
  std::string all;
  for (const pt::text& each : p.interface.notes) all += str(each) + "\n";
  return all;
}

}  // namespace

TEST_CASE("states: results in any order are recognized by their computation") {
  for (const bool donated : {true, false})
    for (const std::string order : {"pml", "mpl", "lmp", "lpm", "mlp", "plm"}) {
      const pt::program p = read(step(donated, order));
      std::string expected;
      for (std::size_t k = 0; k < order.size(); ++k)
        expected += (k > 0 ? " " : "") + (order[k] == 'p'   ? "params.w"
                                          : order[k] == 'm' ? "opt.w"
                                                            : std::to_string(k));
      CHECK(output_names(p) == expected);
      CHECK(p.interface.notes.empty());
      // ZeRO-2: the optimizer's state is sharded, parameters are not.
      const pt::partitioned r = pt::partition(
          p, mesh,
          pt::schedule(pt::manual("B", {{"x", 0}}),
                       pt::manual("B", {{"params", pt::replicated}, {"opt", 0}}, "Z2")));
      REQUIRE_MESSAGE(!r.error, str(r.error.message));
      for (std::size_t k = 0; k < order.size(); ++k) {
        if (order[k] == 'l') continue;
        const pt::tensor_type local = r.device.local.output_type(static_cast<int>(k));
        CHECK(local.shape == (order[k] == 'p' ? pt::shape{8, 8} : pt::shape{2, 8}));
      }
      const std::string local = str(pt::write_stablehlo(r.device));
      CHECK((local.find("tf.aliasing_output") != std::string::npos ||
             local.find("jax.buffer_donor") != std::string::npos) == donated);
      if (donated && order == "pml") {
        CHECK(local.find("tf.aliasing_output = 0") != std::string::npos);
        CHECK(local.find("tf.aliasing_output = 1") != std::string::npos);
      }
      // If the pair of the module has two layouts, XLA finds another one.
      if (donated && order == "mpl") CHECK(local.find("jax.buffer_donor") != std::string::npos);
      // The program is the same after writing and reading it.
      const pt::program again = read(str(pt::write_stablehlo(p)));
      CHECK(pt::equivalent(again, p));
      CHECK(again.interface.donated(0) == donated);
    }
  // Without equal paths, only donation identifies states.
  CHECK(output_names(read(step(true, "mpl", ""))) == "opt.w params.w 2");
  const pt::program open = read(step(false, "pml", ""));
  CHECK(output_names(open) == "0 1 2");
  CHECK(notes(open) ==
        "results that may be next states, but are sharded independently: \"0\" of \"params.w\"; "
        "donate the argument, or return it under the same name, if both should have the same "
        "layout\n");
  const pt::partitioned r = pt::partition(open, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(str(pt::report(r)).find("note: results that may be next states") != std::string::npos);
}

TEST_CASE("states: a gradient is not a state, even with weight decay") {
  const std::string module = R"(
func.func @main(%w: tensor<8x8xf32> loc("params['w']"), %x: tensor<16x8xf32> loc("x")) -> (tensor<8x8xf32> {jax.result_info = "result['w']"}) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %c = stablehlo.constant dense<0.1> : tensor<8x8xf32>
  %d = stablehlo.multiply %c, %w : tensor<8x8xf32>
  %r = stablehlo.add %g, %d : tensor<8x8xf32>
  return %r : tensor<8x8xf32>
})";
  CHECK(output_names(read(module)) == "w");
}

TEST_CASE("states: recognized through loops, branches and updates in place") {
  const std::string head =
      "func.func @main(%w: tensor<8xf32> {jax.buffer_donor = true} loc(\"w\"), "
      "%i: tensor<i32> loc(\"i\")) -> (tensor<8xf32>, tensor<8xf32>) {\n";
  const std::string other =
      "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %other = stablehlo.constant dense<1.0> : tensor<8xf32>\n";
  for (const std::string made : {
           R"(  %n:2 = stablehlo.while(%j = %i, %a = %w) : tensor<i32>, tensor<8xf32>
  cond {
    %c = stablehlo.compare GT, %j, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %k = stablehlo.add %j, %j : tensor<i32>
    %b = stablehlo.tanh %a : tensor<8xf32>
    stablehlo.return %k, %b : tensor<i32>, tensor<8xf32>
  }
  %r = stablehlo.add %n#1, %other : tensor<8xf32>
)",
           R"(  %r = "stablehlo.case"(%i) ({
    %b = stablehlo.add %w, %other : tensor<8xf32>
    stablehlo.return %b : tensor<8xf32>
  }, {
    stablehlo.return %w : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
)",
           R"(  %one = stablehlo.constant dense<1.0> : tensor<1xf32>
  %r = stablehlo.dynamic_update_slice %w, %one, %i : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
)"}) {
    const pt::program p =
        read(head + other + made + "  return %other, %r : tensor<8xf32>, tensor<8xf32>\n}\n");
    CHECK(output_names(p) == "result0 w");
    CHECK(p.interface.notes.empty());
  }
}

TEST_CASE("states: those that only the module states, and results that are not states") {
  const auto module = [](const std::string& a, const std::string& b) {
    return "func.func @main(%a: tensor<8xf32>" + a + " loc(\"a\"), %b: tensor<8xf32>" + b +
           " loc(\"b\")) -> (tensor<8xf32>, tensor<8xf32>) {\n"
           "  %r = stablehlo.reverse %a, dims = [0] : tensor<8xf32>\n"
           "  %s = stablehlo.reverse %b, dims = [0] : tensor<8xf32>\n"
           "  return %r, %s : tensor<8xf32>, tensor<8xf32>\n}\n";
  };
  const std::string donor = " {jax.buffer_donor = true}";
  CHECK(output_names(read(module(" {tf.aliasing_output = 1 : i32}", ""))) == "result0 a");
  // One of two results: not identified.
  const pt::program p = read(module(donor, ""));
  CHECK(output_names(p) == "result0 result1");
  CHECK(notes(p) ==
        "no result could be identified as the next state of \"a\", which the module donates; "
        "return each under the name of its argument\n");
  CHECK(output_names(read(module(" {tf.aliasing_output = 1 : i32}", donor))) == "b a");
  CHECK(str(pt::read_stablehlo(module(" {tf.aliasing_output = 2 : i32}", "")).error.message) ==
        "H005 stablehlo: 1:17: tf.aliasing_output = 2 is not the number of a result; there are 2");
  CHECK(str(pt::read_stablehlo(module(" {tf.aliasing_output = x}", "")).error.message)
            .find("tf.aliasing_output = x is not the number of a result") != std::string::npos);
}

TEST_CASE("ports: attributes are kept in all emitted modules") {
  const std::string module = R"(
#mode = "auto"
func.func @main(%a: tensor<8xf32> {mhlo.layout_mode = "{0}", mhlo.memory_kind = "pinned_host", my.own = [1, {b = "x, y"}], mhlo.frontend_attributes = {k = "v"}} loc("a"), %b: tensor<8xf32> {my.flag, mhlo.sharding = "{replicated}"} loc("b")) -> (tensor<8xf32> {jax.result_info = "result", mhlo.layout_mode = #mode, mhlo.memory_kind = "device"}) {
  %h = stablehlo.custom_call @annotate_device_placement(%a) {backend_config = "", has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<8xf32>) -> tensor<8xf32>
  %r = stablehlo.multiply %h, %b : tensor<8xf32>
  return %r : tensor<8xf32>
})";
  const pt::program p = read(module);
  const pt::partitioned r = pt::partition(p, mesh, pt::schedule(pt::manual("B", {{"a", 0}})));
  REQUIRE(!r.error);
  for (const std::string& written :
       {str(pt::write_stablehlo(p)), str(pt::write_stablehlo(r.device)),
        str(pt::write_annotated_stablehlo(r))}) {
    for (const std::string_view each :
         {"mhlo.layout_mode = \"{0}\"", "mhlo.memory_kind = \"pinned_host\"",
          "my.own = [1, {b = \"x, y\"}]", "k = \"v\"", "my.flag", "mhlo.layout_mode = \"auto\"",
          "mhlo.memory_kind = \"device\"", "@annotate_device_placement",
          "_xla_buffer_placement = \"device\""})
      CHECK_MESSAGE(written.find(each) != std::string::npos, each, " in\n", written);
    CHECK(written.find("mhlo.sharding") == std::string::npos);
  }
  const pt::device_program back = pt::read_local_stablehlo(pt::write_stablehlo(r.device), mesh);
  REQUIRE_MESSAGE(!back.local.error, str(back.local.error.message));
  CHECK(str(pt::write_stablehlo(back)) == str(pt::write_stablehlo(r.device)));
  CHECK(pt::prove(p, back).proved);
  CHECK(str(pt::read_stablehlo(replaced(module, "_xla_buffer_placement = \"device\"",
                                        "_xla_buffer_placement = \"moon\""))
                .error.message)
            .find("memory \"moon\" is not one of device, pinned_host, unpinned_host") !=
        std::string::npos);
}

TEST_CASE("memory: donated arguments give their memory to results, others do not") {
  const auto peak = [](const std::string& module) {
    const pt::partitioned r =
        pt::partition(read(module), mesh, pt::schedule(pt::manual("M", {{"x", 1}})));
    REQUIRE(!r.error);
    CHECK(pt::peak_of(r.device).bytes == r.cost.peak_bytes);
    return r.cost.peak_bytes;
  };
  const auto twice = [](const std::string& a, const std::string& b) {
    return "func.func @main(%a: tensor<64xf32>" + a + " loc(\"a\"), %b: tensor<64xf32>" + b +
           " loc(\"b\"), %x: tensor<8x8xf32> loc(\"x\")) -> (tensor<64xf32> {jax.result_info = "
           "\"result['a']\"}, tensor<64xf32> {jax.result_info = \"result['b']\"}) {\n"
           "  %c = stablehlo.tanh %a : tensor<64xf32>\n  %d = stablehlo.tanh %b : tensor<64xf32>\n"
           "  return %c, %d : tensor<64xf32>, tensor<64xf32>\n}\n";
  };
  const std::string donor = " {jax.buffer_donor = true}";
  const std::int64_t arguments = 2 * 64 * 4 + 8 * 4 * 4;
  CHECK(peak(twice(donor, donor)) == arguments);
  CHECK(peak(twice(donor, "")) == arguments + 64 * 4);
  CHECK(peak(twice(" {tf.aliasing_output = 0 : i32}", "")) == arguments + 64 * 4);
  // (If a module donates nothing, next states reuse the memory of states, as in C++ models.)
  CHECK(peak(twice("", "")) == arguments);
  const std::string all = step(true, "pml");
  const pt::partitioned r =
      pt::partition(read(all), mesh, pt::schedule(pt::manual("M", {{"x", 1}})));
  const pt::memory_peak at = pt::peak_of(r.device);
  CHECK(at.knows_derivatives);
  CHECK(at[pt::memory_kind::parameter] > 0);
  CHECK(at[pt::memory_kind::optimizer_state] > 0);
}

TEST_CASE("memory: offloaded values take no memory of the device") {
  const auto module = [](bool offloads) {
    const auto place = [&](const std::string& to, const std::string& from,
                           const std::string& where) {
      return "  %" + to + " = stablehlo.custom_call @annotate_device_placement(%" + from +
             ") {mhlo.frontend_attributes = {_xla_buffer_placement = \"" + where +
             "\"}} : (tensor<64x64xf32>) -> tensor<64x64xf32>\n";
    };
    const std::string product = " : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>\n";
    const std::string kept = offloads ? "h" : "y";
    return "func.func @main(%x: tensor<64x64xf32> loc(\"x\"), %s: tensor<64x64xf32>" +
           std::string(offloads ? " {mhlo.memory_kind = \"pinned_host\"}" : "") +
           " loc(\"s\")) -> (tensor<64x64xf32>, tensor<64x64xf32>) {\n" +
           "  %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]" + product +
           (offloads ? place("h", "y", "pinned_host") : "") +
           "  %a = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0]" + product +
           "  %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]" + product +
           "  %c = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0]" + product +
           (offloads ? place("d", "h", "device") : "") + "  %r = stablehlo.dot_general %c, %" +
           (offloads ? "d" : "y") + ", contracting_dims = [1] x [0]" + product + "  return %r, %s" +
           " : tensor<64x64xf32>, tensor<64x64xf32>\n}\n";
  };
  const std::int64_t block = 64 * 64 * 4;
  const auto figures = [&](bool offloads) {
    const pt::program p = read(module(offloads));
    const pt::partitioned r = pt::partition(p, mesh, pt::schedule());
    REQUIRE(!r.error);
    CHECK(pt::peak_of(r.device).bytes == r.cost.peak_bytes);
    std::int64_t sum = 0;
    const pt::memory_peak peak = pt::peak_of(r.device);
    for (const std::int64_t each : peak.of) sum += each;
    CHECK(sum == peak.bytes);
    return r.cost;
  };
  const pt::cost whole = figures(false), offloaded = figures(true);
  CHECK(whole.argument_bytes == 2 * block);
  CHECK(offloaded.argument_bytes == block);
  CHECK(whole.peak_bytes == 5 * block);
  CHECK(offloaded.peak_bytes == 4 * block);
}

TEST_CASE("place: a C++ model may offload, and derivatives pass") {
  const pt::program p = pt::trace(
      [](const auto& x) {
        return pt::grad(
            [](const auto& v) {
              const auto kept = pt::place<pt::memory_space::pinned_host>(sin(v));
              return sum(pt::place<pt::memory_space::device>(kept) * v);
            },
            x);
      },
      pt::input<float, 8>("x"));
  const std::string printed = str(pt::print(p));
  CHECK_MESSAGE(printed.find(") {pinned_host} : tensor<8xf32>") != std::string::npos, printed);
  CHECK(pt::equivalent(pt::parse(printed), p));
  const pt::partitioned r = pt::partition(p, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(pt::prove(r).proved);
  CHECK(str(pt::print(r.device)).find("{pinned_host}") != std::string::npos);
  const auto x = data::arguments(p);
  CHECK(pt::all_close(pt::emulate(r, x), pt::evaluate(p, x)));
}
