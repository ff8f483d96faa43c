// Short programs: right ones are proved, and similar ones that are wrong are not.
#include <doctest/doctest.h>

#include "does.hpp"

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;
using proof_test::does;
using proof_test::is_proved;

namespace {

/// True if a program is proved whose source divides the global sum of columns by 3, where each
/// device divides its local sum.
bool scaled_before_reduction(const std::string& element) {
  const auto text = [&](const char* rows, const std::string& mesh, const std::string& body) {
    return "func @main(%x: tensor<" + std::string(rows) + "x" + element + ">)" + mesh + " {\n" +
           "  %n = constant {3} : tensor<" + element + ">\n" + body + "}\n";
  };
  const std::string of = " : tensor<" + element + ">\n";
  const pt::program source = pt::parse(text("8", "",
                                            "  %s = reduce(%x) {add, dims=[0]}" + of +
                                                "  %y = divide(%s, %n)" + of + "  return %y" + of));
  const std::string local =
      text("4", " attributes {mesh = {\"B\":2}}",
           "  %s = reduce(%x) {add, dims=[0]}" + of + "  %p = divide(%s, %n)" + of +
               "  %y = all_reduce <\"B\"> %p" + of + "  return %y" + of);
  pt::device_program d;
  d.local = pt::parse(local, d.mesh);
  REQUIRE_MESSAGE(!source.error, data::str(source.error.message));
  REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
  d.inputs.push_back({});
  d.inputs[0].push_back(0, 0);
  d.outputs.push_back({});
  return is_proved(source, d);
}

}  // namespace

TEST_CASE("short programs: elements that a slice removes are not elements of the padding") {
  const std::string source =
      "(%x: tensor<4xf32>)\n  %s = slice(%x) {[0:2]} : tensor<2xf32>\n"
      "  %y = reduce(%s) {add, dims=[0]} : tensor<f32>\n  return %y : tensor<f32>\n";
  const auto local = [](const std::string& of) {
    return "(%x: tensor<4xf32>)\n  %s = slice(%x) {[0:" + of + "]} : tensor<" + of +
           "xf32>\n  %z = constant {0} : tensor<f32>\n"
           "  %p = pad(%s, %z) {low=[0], high=[4]} : tensor<" +
           std::to_string(std::stoi(of) + 4) +
           "xf32>\n  %y = reduce(%p) {add, dims=[0]} : tensor<f32>\n  return %y : tensor<f32>\n";
  };
  CHECK(does(source, source));
  CHECK_FALSE(does(source, local("4")));
}

TEST_CASE(
    "short programs: a sum may be divided before it is reduced, unless that rounds to integers") {
  CHECK(scaled_before_reduction("f32"));
  CHECK_FALSE(scaled_before_reduction("i32"));
}

TEST_CASE(
    "short programs: a value that is replicated stays so in a loop only if nothing else is added") {
  const auto loop = [](const std::string& joined) {
    return "(%x: tensor<2x3xf32>)\n  %z = constant {0} : tensor<3xf32>\n"
           "  %y = scan(%z, %x) {length=2, carried=1, sliced=1} do (%i: tensor<i32>, %c: "
           "tensor<3xf32>, %r: tensor<3xf32>) {\n    %o = constant {1} : tensor<3xf32>\n    %n = "
           "add(%c, " +
           joined +
           ") : tensor<3xf32>\n    return %n : tensor<3xf32>\n  } : tensor<3xf32>\n"
           "  return %y : tensor<3xf32>\n";
  };
  CHECK(does(loop("%r"), loop("%r")));
  CHECK(does(loop("%o"), loop("%o")));
  CHECK_FALSE(does(loop("%r"), loop("%o")));
  CHECK_FALSE(does(loop("%o"), loop("%r")));
  CHECK_FALSE(does(loop("%r"), loop("%c")));
  CHECK_FALSE(does(loop("%o"), loop("%c")));
}

TEST_CASE(
    "short programs: a value that is constant along a dimension in every iteration is so after the "
    "loop") {
  const auto loop = [](const std::string& first, const std::string& second,
                       const std::string& third) {
    return "(%x: tensor<2x3xf32>)\n  %z = constant {0} : tensor<2x3xf32>\n"
           "  %a, %b, %y = scan(%x, %z, %z) {length=2, carried=3} do (%i: tensor<i32>, %f: "
           "tensor<2x3xf32>, %s: tensor<2x3xf32>, %t: tensor<2x3xf32>) {\n    %n = constant {0} : "
           "tensor<2x3xf32>\n    %m = add(%t, " +
           third + ") : tensor<2x3xf32>\n    return " + first + ", " + second +
           ", %m : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>\n  } : tensor<2x3xf32>, "
           "tensor<2x3xf32>, tensor<2x3xf32>\n  return %y : tensor<2x3xf32>\n";
  };
  CHECK(does(loop("%s", "%n", "%f"), loop("%s", "%n", "%f")));
  CHECK(does(loop("%s", "%f", "%f"), loop("%s", "%f", "%f")));
  CHECK_FALSE(does(loop("%s", "%n", "%f"), loop("%s", "%n", "%s")));
  CHECK(does(loop("%s", "%n", "%f"), loop("%s", "%f", "%f")));
  CHECK(does(loop("%s", "%f", "%f"), loop("%s", "%n", "%f")));
}

TEST_CASE("short programs: a factor passes through a linear loop") {
  const auto loop = [](const std::string& step, const std::string& before,
                       const std::string& behind) {
    return "(%x: tensor<3xf32>)\n  %b = constant {" + before +
           "} : tensor<f32>\n  %a = constant {" + behind +
           "} : tensor<f32>\n  %t = tanh(%x) : tensor<3xf32>\n  %d = multiply(%b, %t) : "
           "tensor<3xf32>\n  %z = scan(%d) {length=4, carried=1} do (%i: tensor<i32>, %c: "
           "tensor<3xf32>) {\n    %n = " +
           step +
           " : tensor<3xf32>\n    %m = add(%n, %c) : tensor<3xf32>\n    return %m : tensor<3xf32>\n"
           "  } : tensor<3xf32>\n  %y = multiply(%z, %a) : tensor<3xf32>\n  return %y : "
           "tensor<3xf32>\n";
  };
  const std::string linear = "reverse(%c) {dims=[0]}", other = "tanh(%c)";
  CHECK(does(loop(linear, "1", "1"), loop(linear, "2", "0.5")));
  CHECK_FALSE(does(loop(linear, "1", "1"), loop(linear, "2", "1")));
  CHECK_FALSE(does(loop(linear, "1", "1"), loop(linear, "1", "0.5")));
  CHECK_FALSE(does(loop(other, "1", "1"), loop(other, "2", "0.5")));
}

TEST_CASE("short programs: an axis that slices a value twice does not complete a reduction") {
  const std::string source =
      "(%x: tensor<4x4xf32>)\n  %s = reduce(%x) {add, dims=[0, 1]} : tensor<f32>\n"
      "  return %s : tensor<f32>\n";
  const auto local = [](const std::string& first, const std::string& body) {
    return "(%x: tensor<4x4xf32>)\n" + first + body +
           "  %r = all_reduce <\"B\"> %s : tensor<f32>\n  return %r : tensor<f32>\n";
  };
  const std::string rows = "  %y = all_slice [{\"B\"}, {}] %x : tensor<2x4xf32>\n";
  const std::string at_once = "  %s = reduce(%z) {add, dims=[0, 1]} : tensor<f32>\n";
  const std::string in_steps =
      "  %t = reduce(%z) {add, dims=[0]} : tensor<2xf32>\n"
      "  %s = reduce(%t) {add, dims=[0]} : tensor<f32>\n";
  const std::string columns = "  %z = all_slice [{}, {\"B\"}] %y : tensor<2x2xf32>\n";
  const std::string again = "  %z = all_slice [{\"B\"}, {}] %y : tensor<1x4xf32>\n";
  const auto over = [&](const std::string& body) { return does(source, body, "\"B\":2"); };
  CHECK(over(local(rows, "  %s = reduce(%y) {add, dims=[0, 1]} : tensor<f32>\n")));
  CHECK_FALSE(over(local(rows + columns, at_once)));
  CHECK_FALSE(over(local(rows + columns, in_steps)));
  CHECK_FALSE(over(local(rows + again, at_once)));
  CHECK_FALSE(over(local(rows + columns + "  %v = reshape(%z) : tensor<4xf32>\n",
                         "  %s = reduce(%v) {add, dims=[0]} : tensor<f32>\n")));
}

TEST_CASE("short programs: stationary weights are proved") {
  const auto proves = [](const pt::program& source, const auto& schedule, int expected) {
    const auto p = pt::partition(source, {{"B", 4}}, schedule, {.passes = {.stationary_above = 1}});
    int moves = 0;
    for (const auto& note : p.notes) moves += note.reason == pt::collective_reason::moved_instead;
    CHECK(moves == expected);
    const pt::verdict v = pt::prove(p);
    CHECK_MESSAGE(v.proved, data::str(v.error.message));
  };
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
  constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
  proves(step, pt::schedule(BP, pt::manual("B", {{"v", 0}, {"w", 1}})), 7);
  proves(step, pt::schedule(BP, pt::manual("B", {{"v", 1}, {"w", 0}})), 7);
  // A kernel whose features or outputs are sharded.
  pt::builder b;
  const std::int64_t roles[] = {0, 1, 2};
  pt::window_dim window;
  window.size = 2;
  const auto x = pt::ops::parameter(b, "x", {pt::dtype::f32, {8, 16, 3}});
  const auto w = pt::ops::parameter(b, "w", {pt::dtype::f32, {16, 64, 2}});
  const auto y = pt::ops::convolution(b, x, w, {roles, roles, roles, {&window, 1}, 1, 1});
  b.p.outputs.push_back({y, b.p.intern("y")});
  for (int dim : {0, 1}) proves(b.p, pt::schedule(BP, pt::manual("B", {{"w", dim}})), 2);
}

TEST_CASE("short programs: an accumulator of a loop may be sliced and gathered again") {
  const std::string head = "(%x: tensor<4x6xf32>)\n";
  const auto source = head +
                      "  %y = reduce(%x) {add, dims=[0]} : tensor<6xf32>\n"
                      "  return %y : tensor<6xf32>\n";
  const auto local = [&](const char* back) {
    return head +
           "  %z = constant {0} : tensor<6xf32>\n"
           "  %y = scan(%z, %x) {length=4, carried=1, sliced=1} do (%i: tensor<i32>, "
           "%c: tensor<6xf32>, %r: tensor<6xf32>) {\n"
           "    %a = all_slice [{\"B\"}] %c : tensor<3xf32>\n"
           "    %b = all_slice [{\"B\"}] %r : tensor<3xf32>\n"
           "    %s = add(%a, %b) : tensor<3xf32>\n    %g = " +
           back +
           "    return %t : tensor<6xf32>\n  } : tensor<6xf32>\n"
           "  return %y : tensor<6xf32>\n";
  };
  CHECK(does(source,
             local("all_gather [{\"B\"}] %s : tensor<6xf32>\n"
                   "    %t = reshape(%g) : tensor<6xf32>\n"),
             "\"B\":2"));
  CHECK_FALSE(does(source,
                   local("all_gather [{\"B\"}] %s : tensor<6xf32>\n"
                         "    %t = reverse(%g) {dims=[0]} : tensor<6xf32>\n"),
                   "\"B\":2"));
}

TEST_CASE("short programs: the value where no device sends is not a position") {
  const auto rows = [](const std::string& start) {
    return "(%x: tensor<8xf32>)\n  %s = shard_start {4 <\"B\">} : tensor<i64>\n" + start +
           "  %y = dynamic_slice(%x, %a) {sizes=[4]} : tensor<4xf32>\n"
           "  %r = all_gather [{\"B\"}] %y : tensor<8xf32>\n  return %r : tensor<8xf32>\n";
  };
  const std::string source =
      "(%x: tensor<8xf32>)\n  %n = negate(%x) : tensor<8xf32>\n"
      "  %y = negate(%n) : tensor<8xf32>\n  return %y : tensor<8xf32>\n";
  const auto moved = [](const std::string& map, int number) {
    return "  %p = permute {" + map + "} <\"B\"> %s : tensor<i64>\n  %c = constant {" +
           std::to_string(number) + "} : tensor<i64>\n  %a = add(%p, %c) : tensor<i64>\n";
  };
  const std::string mesh = "\"B\":2";
  CHECK(does(source, rows("  %z = constant {0} : tensor<i64>\n  %a = add(%s, %z) : tensor<i64>\n"),
             mesh));
  CHECK_FALSE(does(source, rows(moved("+1", 4)), mesh));
  CHECK_FALSE(does(source, rows(moved("-1", -4)), mesh));
}

TEST_CASE("short programs: a recurrence that starts from the same number everywhere") {
  const auto from_zero = [](const auto& body) {
    return [body](const auto& xs, const auto& w) {
      const auto zero = pt::full_like(pt::sum<0>(xs), 0);
      const auto next = [&](const auto& h, const auto& x) {
        const auto made = body(h, x, w);
        return std::pair{made, made};
      };
      return std::get<1>(pt::scan(next, zero, xs));
    };
  };
  const auto xs = pt::input<float, 6, 8, 8>("xs");
  const auto elman =
      pt::trace(from_zero([](auto h, auto x, auto w) { return tanh(matmul(h, w) + x); }), xs,
                pt::input<float, 8, 8>("w"));
  const auto gated = pt::trace(from_zero([](auto h, auto x, auto w) {
                                 const auto [keep, made] = pt::split<2, 1>(matmul(h, w));
                                 return pt::nn::sigmoid(keep) * h + tanh(made + x);
                               }),
                               xs, pt::input<float, 8, 16>("w"));
  const auto diagonal = pt::trace(from_zero([](auto h, auto x, auto w) { return h * w + x; }), xs,
                                  pt::input<float, 8>("w"));
  const pt::mesh mesh{{"B", 2}, {"M", 2}};
  constexpr auto BP = pt::manual("B", {{"xs", 1}}, "BP");
  constexpr auto MP = pt::manual("M", {{"w", 0}}, "MP");
  constexpr auto columns = pt::manual("M", {{"w", 1}});
  for (const auto& p : {pt::partition(elman, mesh, pt::schedule(BP)),
                        pt::partition(elman, mesh, pt::schedule(BP, MP)),
                        pt::partition(elman, mesh, pt::schedule(MP)),
                        pt::partition(elman, mesh, pt::schedule(BP, columns)),
                        pt::partition(gated, mesh, pt::schedule(BP, columns)),
                        pt::partition(diagonal, mesh, pt::schedule(BP)),
                        pt::partition(diagonal, mesh, pt::schedule(BP, MP))}) {
    const pt::verdict v = pt::prove(p);
    CHECK_MESSAGE(v.proved, data::str(v.error.message));
    // In the body of another iteration, or with a complete value where a sum is due, the result
    // differs.
    std::string local = data::str(pt::print(p.device.local, &p.mesh()));
    for (const auto& [from, to] : {std::pair{"all_reduce <\"M\">", "all_reduce <\"B\">"},
                                   std::pair{"tanh(", "exp("}, std::pair{"multiply(", "add("}}) {
      if (local.find(from) == std::string::npos) continue;
      std::string wrong = local;
      wrong.replace(wrong.find(from), std::string(from).size(), to);
      pt::device_program d = p.device;
      d.local = pt::parse(wrong, d.mesh);
      REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
      CHECK_FALSE(pt::prove(p.source, d).proved);
    }
  }
}

TEST_CASE("short programs: two equal loops are one") {
  const auto loop = [](const std::string& name, const std::string& op) {
    return "  %" + name +
           " = scan(%z, %x) {length=2, carried=1, sliced=1} do (%i: tensor<i32>, "
           "%c: tensor<3xf32>, %r: tensor<3xf32>) {\n    %n = " +
           op +
           "(%c, %r) : tensor<3xf32>\n    %m = tanh(%n) : tensor<3xf32>\n    return %m : "
           "tensor<3xf32>\n  } : tensor<3xf32>\n";
  };
  const std::string in = "(%x: tensor<2x3xf32>, %z: tensor<3xf32>)\n",
                    out = "  return %a, %b : tensor<3xf32>, tensor<3xf32>\n";
  const std::string source = in + loop("a", "add") + loop("b", "add") + out;
  const std::string once =
      in + loop("a", "add") + "  return %a, %a as \"b\" : tensor<3xf32>, tensor<3xf32>\n";
  CHECK(does(source, source));
  CHECK(does(source, once));
  CHECK_FALSE(does(source, in + loop("a", "add") + loop("b", "multiply") + out));
  CHECK_FALSE(does(in + loop("a", "add") + loop("b", "multiply") + out, once));
}

TEST_CASE("short programs: a value on one device and zeros elsewhere sum to the value") {
  const std::string source =
      "(%x: tensor<1xf32>)\n  %y = exp(%x) : tensor<1xf32>\n  return %y : tensor<1xf32>\n";
  const auto local = [](const std::string& device, const std::string& nothing,
                        const std::string& how, const std::string& behind) {
    return "(%x: tensor<1xf32>)\n  %y = exp(%x) : tensor<1xf32>\n  %c = constant {0} : "
           "tensor<f32>\n  %p = pad(%y, %c) {low=[0], high=[3]} : tensor<4xf32>\n"
           "  %s = all_slice [{\"B\"}] %p : tensor<1xf32>\n  %i = shard_start {1 <\"B\">} : "
           "tensor<i64>\n  %d = constant {" +
           device + "} : tensor<i64>\n  %m = compare(%i, %d) {" + how +
           "} : tensor<i1>\n  %z = constant {" + nothing +
           "} : tensor<f32>\n  %o = select(%m, %s, %z) : tensor<1xf32>\n  %r = all_reduce " +
           behind + "<\"B\"> %o : tensor<1xf32>\n  return %r : tensor<1xf32>\n";
  };
  const auto is = [&](const std::string& device, const std::string& nothing,
                      const std::string& how = "eq", const std::string& behind = "") {
    return does(source, local(device, nothing, how, behind), "\"B\":4");
  };
  CHECK(is("0", "0"));
  CHECK(is("0", "-0"));
  CHECK_FALSE(is("1", "0"));
  CHECK_FALSE(is("4", "0"));
  CHECK_FALSE(is("0", "1"));
  CHECK_FALSE(is("0", "0", "ne"));
  CHECK_FALSE(is("0", "0", "eq", "<@min> "));
}
