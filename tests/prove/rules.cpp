// Single rules of the checker that no model needs.
#include <doctest/doctest.h>

#include "does.hpp"

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;
using proof_test::by_claims;
using proof_test::does;

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
  return by_claims(source, d);
}

}  // namespace

TEST_CASE("rules: two dimensions padded with different scalars depend on the order") {
  const auto program = [](int first) {
    std::string out =
        "(%x: tensor<2x2xf32>)\n  %c0 = constant {0} : tensor<f32>\n"
        "  %c1 = constant {1} : tensor<f32>\n";
    std::string of = "%x";
    int extents[] = {2, 2};
    for (int k = 0; k < 2; ++k) {
      const int d = k == 0 ? first : 1 - first;
      extents[d] += 2;
      const std::string to = "%y" + std::to_string(k);
      out += "  " + to + " = pad(" + of + ", %c" + std::to_string(d) + ") {low=[0, 0], high=[" +
             (d == 0 ? "2, 0" : "0, 2") + "]} : tensor<" + std::to_string(extents[0]) + "x" +
             std::to_string(extents[1]) + "xf32>\n";
      of = to;
    }
    return out + "  %s = negate(%y1) : tensor<4x4xf32>\n  return %s : tensor<4x4xf32>\n";
  };
  CHECK(does(program(0), program(0)));
  CHECK(does(program(1), program(1)));
  CHECK_FALSE(does(program(0), program(1)));
  CHECK_FALSE(does(program(1), program(0)));
}

TEST_CASE("rules: a value that is padded along one dimension can be padded along another") {
  const std::string in = "(%x: tensor<2x2xf32>)\n  %c0 = constant {0} : tensor<f32>\n"
                         "  %c1 = constant {1} : tensor<f32>\n",
                    out =
                        "  %s = reduce(%y) {add, dims=[0]} : tensor<4xf32>\n  return %s : "
                        "tensor<4xf32>\n";
  const std::string source =
      in + "  %y = pad(%x, %c1) {low=[0, 0], high=[0, 2]} : tensor<2x4xf32>\n" + out;
  const std::string local =
      in + "  %p = pad(%x, %c0) {low=[0, 0], high=[2, 0]} : tensor<4x2xf32>\n" +
      "  %y = pad(%p, %c1) {low=[0, 0], high=[0, 2]} : tensor<4x4xf32>\n" + out;
  CHECK(does(source, source));
  CHECK_FALSE(does(source, local));
}

TEST_CASE("rules: elements that a slice removes are not elements of the padding") {
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

TEST_CASE("rules: a sum may be divided before it is reduced, unless that rounds to integers") {
  CHECK(scaled_before_reduction("f32"));
  CHECK_FALSE(scaled_before_reduction("i32"));
}

TEST_CASE("rules: a value that is replicated stays so in a loop only if nothing else is added") {
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
    "rules: a value that is constant along a dimension in every iteration is so after the loop") {
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
  CHECK_FALSE(does(loop("%s", "%n", "%f"), loop("%s", "%f", "%f")));
  CHECK_FALSE(does(loop("%s", "%f", "%f"), loop("%s", "%n", "%f")));
}

TEST_CASE("rules: the maximum of equal values is that value, the sum is not") {
  const auto loop = [](const std::string& op, const std::string& start) {
    return "(%x: tensor<2x3xf32>)\n  %z = constant {" + start +
           "} : tensor<3xf32>\n"
           "  %y = scan(%x, %z) {length=4, constants=1, carried=1} do (%i: tensor<i32>, %v: "
           "tensor<2x3xf32>, %c: tensor<3xf32>) {\n    %m = reduce(%v) {add, dims=[0]} : "
           "tensor<3xf32>\n    %n = " +
           op +
           "(%c, %m) : tensor<3xf32>\n    return %n : tensor<3xf32>\n  } : tensor<3xf32>\n"
           "  return %y : tensor<3xf32>\n";
  };
  const std::string source =
      "(%x: tensor<2x3xf32>)\n  %y = reduce(%x) {add, dims=[0]} : tensor<3xf32>\n"
      "  return %y : tensor<3xf32>\n";
  CHECK(does(source, loop("maximum", "-inf")));
  CHECK(does(source, loop("minimum", "inf")));
  CHECK_FALSE(does(source, loop("maximum", "0")));
  CHECK_FALSE(does(source, loop("maximum", "inf")));
  CHECK_FALSE(does(source, loop("add", "0")));
}

TEST_CASE("rules: a factor passes through a linear loop") {
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

TEST_CASE("rules: repeated results of a loop may be padded") {
  const auto loop = [](int columns, const std::string& body, const std::string& kept) {
    const std::string all = "tensor<2x" + std::to_string(columns) + "xf32>";
    return "(%v: tensor<2xf32>)\n  %x = broadcast_in_dim(%v) {dims=[0]} : " + all +
           "\n  %y = scan(%x) {length=2, carried=1} do (%i: tensor<i32>, %c: " + all + ") {\n" +
           body + "    return %n : " + all + "\n  } : " + all + "\n" + kept +
           " : tensor<2xf32>\n  return %s : tensor<2xf32>\n";
  };
  const auto step = [](const std::string& op, int columns) {
    return "    %n = " + op + "(%c) : tensor<2x" + std::to_string(columns) + "xf32>\n";
  };
  const std::string whole = "  %s = reduce(%y) {add, dims=[1]}";
  const auto masked = [](int high) {
    return "  %i = iota {dim=1} : tensor<2x4xi32>\n  %b = constant {" + std::to_string(high) +
           "} : tensor<2x4xi32>\n  %m = compare(%i, %b) {lt} : tensor<2x4xi1>\n"
           "  %z = constant {0} : tensor<2x4xf32>\n  %p = select(%m, %y, %z) : tensor<2x4xf32>\n"
           "  %s = reduce(%p) {add, dims=[1]}";
  };
  CHECK(does(loop(3, step("tanh", 3), whole), loop(4, step("tanh", 4), masked(3))));
  CHECK_FALSE(does(loop(3, step("tanh", 3), whole), loop(4, step("tanh", 4), masked(4))));
  CHECK_FALSE(does(loop(3, step("tanh", 3), whole), loop(4, step("tanh", 4), masked(2))));
  CHECK_FALSE(does(loop(3, step("tanh", 3), whole), loop(4, step("tanh", 4), whole)));
  CHECK_FALSE(does(loop(3, step("tanh", 3), whole), loop(4, step("exp", 4), masked(3))));
}

TEST_CASE("rules: two exchanged blocks of a tensor are a roll") {
  const auto parts = [](const std::string& first, const std::string& second) {
    return "(%x: tensor<4xf32>)\n  %a = slice(%x) {[2:4]} : tensor<2xf32>\n"
           "  %b = slice(%x) {[0:2]} : tensor<2xf32>\n  %y = concatenate(" +
           first + ", " + second + ") {dim=0} : tensor<4xf32>\n  return %y : tensor<4xf32>\n";
  };
  const std::string turned =
      "(%x: tensor<4xf32>)\n  %y = roll(%x) {dim=0, shift=2} : tensor<4xf32>\n"
      "  return %y : tensor<4xf32>\n";
  CHECK(does(turned, parts("%a", "%b")));
  CHECK_FALSE(does(turned, parts("%b", "%a")));
  CHECK_FALSE(does(turned, parts("%a", "%a")));
  CHECK_FALSE(does(turned, parts("%b", "%b")));
}

TEST_CASE("rules: a mask keeps the inner elements of a tensor") {
  const auto masked = [](const std::string& direction, int bound, bool reversed) {
    const std::string of = reversed ? "%r" : "%x";
    return "(%x: tensor<4xf32>)\n  %i = iota {dim=0} : tensor<4xi32>\n  %n = constant {" +
           std::to_string(bound) +
           "} : tensor<i32>\n  %r = reverse(%x) {dims=[0]} : tensor<4xf32>\n"
           "  %m = compare(%i, %n) {" +
           direction +
           "} : tensor<4xi1>\n  %z = constant {0} : tensor<f32>\n"
           "  %s = select(%m, " +
           of +
           ", %z) : tensor<4xf32>\n"
           "  %y = reduce(%s) {add, dims=[0]} : tensor<f32>\n  return %y : tensor<f32>\n";
  };
  const std::string sum =
      "(%x: tensor<4xf32>)\n  %y = reduce(%x) {add, dims=[0]} : tensor<f32>\n"
      "  return %y : tensor<f32>\n";
  CHECK(does(sum, masked("lt", 4, false)));
  CHECK(does(sum, masked("ge", 0, false)));
  for (const bool reversed : {false, true}) {
    CHECK_FALSE(does(sum, masked("lt", 3, reversed)));
    CHECK_FALSE(does(sum, masked("gt", 0, reversed)));
    CHECK_FALSE(does(sum, masked("lt", 0, reversed)));
  }
}

TEST_CASE("rules: an axis that slices a value twice does not complete a reduction") {
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

TEST_CASE("rules: an identity matrix of one element may be padded") {
  const auto eye = [](const char* n, const std::string& second) {
    const std::string of = " : tensor<" + std::string(n) + "x" + n;
    return "(%x: tensor<" + std::string(n) + "x" + n + "xf32>)\n  %a = iota {dim=0}" + of +
           "xi32>\n  %b = iota {dim=1}" + of + "xi32>\n" + second + "  %e = compare(%a, %c) {eq}" +
           of + "xi1>\n  %s = select(%e, %x, %x)" + of + "xf32>\n  return %e, %s" + of + "xi1>, " +
           (of + "xf32>\n").substr(3);
  };
  const std::string plain = "  %c = reverse(%b) {dims=[]} : tensor<";
  const std::string more = "  %o = constant {1} : tensor<i32>\n  %c = add(%b, %o) : tensor<";
  CHECK(does(eye("1", plain + "1x1xi32>\n"), eye("4", plain + "4x4xi32>\n")));
  CHECK_FALSE(does(eye("1", plain + "1x1xi32>\n"), eye("4", more + "4x4xi32>\n")));
  CHECK_FALSE(does(eye("1", more + "1x1xi32>\n"), eye("4", plain + "4x4xi32>\n")));
}

TEST_CASE("rules: counters of 16 bits are known as far as they are exact") {
  const auto counted = [](int n) {
    const auto of = [&](int rows) {
      return " : tensor<" + std::to_string(rows) + "x" + std::to_string(n) + "xbf16>\n";
    };
    const std::string x = "(%x: tensor<f32>)\n  %i = iota {dim=1}";
    return does(x + of(4) + "  return %i" + of(4),
                x + of(2) + "  %y = all_gather [{\"B\"}, {}] %i" + of(4) + "  return %y" + of(4),
                "\"B\":2");
  };
  CHECK(counted(256));
  CHECK_FALSE(counted(512));  // (they are equal, but not claimed to be)
}

TEST_CASE("rules: a roll of rows equals a roll of their elements") {
  const auto turned = [](const std::string& shift, const std::string& by) {
    return does(
        "(%x: tensor<8xf32>)\n  %y = reshape(%x) : tensor<2x4xf32>\n"
        "  %z = roll(%y) {dim=0, shift=" +
            shift +
            "} : tensor<2x4xf32>\n"
            "  return %z : tensor<2x4xf32>\n",
        "(%x: tensor<8xf32>)\n  %y = roll(%x) {dim=0, shift=" + by +
            "} : tensor<8xf32>\n"
            "  %z = reshape(%y) : tensor<2x4xf32>\n  return %z : tensor<2x4xf32>\n");
  };
  CHECK(turned("1", "4"));
  CHECK(turned("-1", "4"));
  CHECK(turned("2", "0"));
  CHECK_FALSE(turned("1", "1"));
  CHECK_FALSE(turned("1", "8"));
}

TEST_CASE("rules: a clamp is a maximum of a minimum, and a minimum of a maximum") {
  const auto clamped = [](const std::string& type, const std::string& body, int high) {
    return "(%x: tensor<4x" + type + ">)\n  %l = constant {0} : tensor<" + type +
           ">\n  %h = constant {" + std::to_string(high) + "} : tensor<" + type + ">\n" + body +
           " : tensor<4x" + type + ">\n  return %y : tensor<4x" + type + ">\n";
  };
  const std::string clamp = "  %y = clamp(%l, %x, %h)";
  for (const std::string type : {"f32", "i32"}) {
    const auto in_steps = [&](const std::string& first, const std::string& second, int high) {
      return clamped(type, "  %a = " + first + " : tensor<4x" + type + ">\n  %y = " + second, high);
    };
    const std::string low_first = "maximum(%x, %l)", high_first = "minimum(%x, %h)";
    CHECK(does(clamped(type, clamp, 5), in_steps(low_first, "minimum(%a, %h)", 5)));
    CHECK(does(clamped(type, clamp, 5), in_steps(high_first, "maximum(%a, %l)", 5)));
    CHECK_FALSE(does(clamped(type, clamp, 5), in_steps(high_first, "maximum(%a, %l)", 4)));
    CHECK_FALSE(does(clamped(type, clamp, 5), in_steps(low_first, "maximum(%a, %h)", 5)));
    // If the bounds cross, the last one counts.
    CHECK_FALSE(does(clamped(type, clamp, -1), in_steps(high_first, "maximum(%a, %l)", -1)));
  }
}

TEST_CASE("rules: positions may be padded") {
  const auto local = [](int from) {
    return "(%x: tensor<3xf32>)\n"
           "  %i = iota {dim=0} : tensor<3xf32>\n  %z = constant {0} : tensor<f32>\n"
           "  %p = pad(%i, %z) {low=[0], high=[2]} : tensor<5xf32>\n"
           "  %n = negate(%p) : tensor<5xf32>\n  %s = slice(%n) {[" +
           std::to_string(from) + ":" + std::to_string(from + 3) + "]} : tensor<3xf32>\n" +
           "  %y = add(%s, %x) : tensor<3xf32>\n  return %y : tensor<3xf32>\n";
  };
  const std::string source =
      "(%x: tensor<3xf32>)\n"
      "  %i = iota {dim=0} : tensor<3xf32>\n  %n = negate(%i) : tensor<3xf32>\n"
      "  %y = add(%n, %x) : tensor<3xf32>\n  return %y : tensor<3xf32>\n";
  CHECK(does(source, local(0)));
  CHECK_FALSE(does(source, local(1)));
}

TEST_CASE("rules: a loop may run on more positions than the source has") {
  const auto program = [](int n, const std::string& direction) {
    const std::string shape = "tensor<" + std::to_string(n) + "x1x";
    const std::string t = shape + "i1>";
    return "(%x: tensor<1x1xi1>)\n  %a = iota {dim=0} : " + shape + "i32>\n" +
           "  %b = iota {dim=1} : " + shape + "i32>\n  %c = compare(%a, %b) {" + direction +
           "} : " + t + "\n  %s, %u = scan(%c, %c) {length=1, carried=2} do (%i: tensor<i32>, " +
           "%d: " + t + ", %e: " + t + ") {\n    return %e, %d : " + t + ", " + t + "\n  } : " + t +
           ", " + t + "\n  %f = slice(%s) {[0:1, 0:1]} : tensor<1x1xi1>\n" +
           "  %y = and(%f, %x) : tensor<1x1xi1>\n  return %y : tensor<1x1xi1>\n";
  };
  CHECK(does(program(1, "eq"), program(4, "eq")));
  CHECK_FALSE(does(program(1, "eq"), program(4, "ne")));
}

TEST_CASE("rules: padding a maximum of multiples with a smaller number keeps it") {
  const auto local = [](const std::string& fill) {
    return "(%x: tensor<3xf32>)\n  %f = constant {-2} : tensor<f32>\n"
           "  %m = multiply(%x, %f) : tensor<3xf32>\n  %z = constant {" +
           fill +
           "} : tensor<f32>\n  %p = pad(%m, %z) {low=[0], high=[1]} : tensor<4xf32>\n"
           "  %y = reduce(%p) {max, dims=[0]} : tensor<f32>\n  return %y : tensor<f32>\n";
  };
  const std::string source =
      "(%x: tensor<3xf32>)\n  %f = constant {-2} : tensor<f32>\n"
      "  %m = multiply(%x, %f) : tensor<3xf32>\n"
      "  %y = reduce(%m) {max, dims=[0]} : tensor<f32>\n  return %y : tensor<f32>\n";
  CHECK(does(source, local("-inf")));
  CHECK_FALSE(does(source, local("inf")));
  CHECK_FALSE(does(source, local("0")));
}

TEST_CASE("rules: a dimension that the source does not have may be padded") {
  const auto local = [](int at) {
    return "(%x: tensor<3x4xf32>)\n  %r = reshape(%x) : tensor<3x1x4xf32>\n"
           "  %z = constant {0} : tensor<f32>\n"
           "  %p = pad(%r, %z) {low=[0, 0, 0], high=[0, 2, 0]} : tensor<3x3x4xf32>\n"
           "  %a = exp(%p) : tensor<3x3x4xf32>\n  %s = slice(%a) {[:, " +
           std::to_string(at) + ":" + std::to_string(at + 1) +
           ", :]} : tensor<3x1x4xf32>\n  %y = reshape(%s) : tensor<3x4xf32>\n"
           "  return %y : tensor<3x4xf32>\n";
  };
  const std::string source =
      "(%x: tensor<3x4xf32>)\n  %y = exp(%x) : tensor<3x4xf32>\n  return %y : tensor<3x4xf32>\n";
  CHECK(does(source, local(0)));
  CHECK_FALSE(does(source, local(1)));
}

TEST_CASE("rules: the maximum of a value and a multiple of it is not the value") {
  const auto program = [](const std::string& body) {
    return "(%x: tensor<4xf32>)\n  %n = negate(%x) : tensor<4xf32>\n  %y = " + body +
           " : tensor<4xf32>\n  return %y : tensor<4xf32>\n";
  };
  CHECK(does(program("maximum(%x, %n)"), program("maximum(%n, %x)")));
  CHECK_FALSE(does(program("maximum(%x, %x)"), program("maximum(%x, %n)")));
  CHECK_FALSE(does(program("maximum(%n, %n)"), program("maximum(%x, %n)")));
}

TEST_CASE("rules: a reduction of a constant may be shared among devices") {
  const auto local = [](const std::string& axis) {
    return "()\n  %c = constant {2} : tensor<3xi32>\n"
           "  %s = reduce(%c) {add, dims=[0]} : tensor<i32>\n  %y = all_reduce <\"" +
           axis + "\"> %s : tensor<i32>\n  return %y : tensor<i32>\n";
  };
  const std::string source =
      "()\n  %c = constant {2} : tensor<6xi32>\n  %y = reduce(%c) {add, dims=[0]} : tensor<i32>\n"
      "  return %y : tensor<i32>\n";
  CHECK(does(source, local("B"), "\"B\":2, \"M\":3"));
  CHECK_FALSE(does(source, local("M"), "\"B\":2, \"M\":3"));
}

TEST_CASE("rules: a roll of a part of a dimension, over devices") {
  const auto local = [](const std::string& around) {
    return "(%x: tensor<8x2xf32>)\n  %r = reshape(%x) : tensor<2x8xf32>\n"
           "  %a = all_slice [{}, {\"B\"}] %r : tensor<2x4xf32>\n"
           "  %b = slice(%a) {[:, 0:1]} : tensor<2x1xf32>\n"
           "  %p = permute {-1" +
           around +
           "} <\"B\"> %b : tensor<2x1xf32>\n"
           "  %c = concatenate(%a, %p) {dim=1} : tensor<2x5xf32>\n"
           "  %s = slice(%c) {[:, 1:5]} : tensor<2x4xf32>\n"
           "  %y = all_gather [{}, {\"B\"}] %s : tensor<2x8xf32>\n  return %y : tensor<2x8xf32>\n";
  };
  const std::string source =
      "(%x: tensor<8x2xf32>)\n  %r = reshape(%x) : tensor<2x8xf32>\n"
      "  %y = roll(%r) {dim=1, shift=-1} : tensor<2x8xf32>\n  return %y : tensor<2x8xf32>\n";
  CHECK(does(source, local(" around"), "\"B\":2"));
  CHECK_FALSE(does(source, local(""), "\"B\":2"));
}

TEST_CASE("rules: a scalar selected by a known flag has all dimensions of the result") {
  const auto program = [](int rows, const std::string& flag) {
    const std::string t = "tensor<" + std::to_string(rows) + "x2x";
    std::string out = "(%x: tensor<2x2xf32>, %c: tensor<f32>, %d: tensor<f32>)\n  %t = constant {" +
                      flag + "} : tensor<2x2xi1>\n  %s = select(%t, %c, %d) : tensor<2x2xf32>\n";
    if (rows == 1) out += "  %p = all_slice [{\"B\"}, {}] %s : tensor<1x2xf32>\n";
    out += "  %m = dot_general(" + std::string(rows == 1 ? "%p" : "%s") +
           ", %x) {contract=[1]x[0]} : " + t + "f32>\n";
    if (rows == 1) out += "  %y = all_gather [{\"B\"}, {}] %m : tensor<2x2xf32>\n";
    return out + "  return " + (rows == 1 ? "%y" : "%m") + " : tensor<2x2xf32>\n";
  };
  CHECK(does(program(2, "1"), program(1, "1"), "\"B\":2"));
  CHECK_FALSE(does(program(2, "1"), program(1, "0"), "\"B\":2"));
}

TEST_CASE("rules: neighbours of a constant have the constant") {
  const auto local = [](const std::string& around) {
    return "()\n  %c = constant {1} : tensor<2xf32>\n  %s = slice(%c) {[1:2]} : tensor<1xf32>\n"
           "  %p = permute {+1" +
           around +
           "} <\"B\"> %s : tensor<1xf32>\n  %j = concatenate(%p, %c) {dim=0} : tensor<3xf32>\n"
           "  %w = reduce_window(%j) {add, window=[2]} : tensor<2xf32>\n"
           "  %y = all_gather [{\"B\"}] %w : tensor<4xf32>\n  return %y : tensor<4xf32>\n";
  };
  const std::string source =
      "()\n  %c = constant {1} : tensor<4xf32>\n"
      "  %y = reduce_window(%c) {add, window=[2], low=[1]} : tensor<4xf32>\n"
      "  return %y : tensor<4xf32>\n";
  CHECK(does(source, local(""), "\"B\":2"));
  CHECK_FALSE(does(source, local(" around"), "\"B\":2"));
}

TEST_CASE("rules: an empty scatter is the identity, on every device") {
  const auto program = [](const std::string& update, bool reduces) {
    const std::string t = " : tensor<3xf32>\n";
    return "(%i: tensor<0xi32>, %u: tensor<0xf32>)\n  %s = scatter(%i, %u) {" + update + "}" + t +
           (reduces ? "  %y = all_reduce <\"B\"> %s" + t + "  return %y" + t : "  return %s" + t);
  };
  CHECK(does(program("add", false), program("add", true), "\"B\":2"));
  CHECK_FALSE(does(program("multiply", false), program("add", true), "\"B\":2"));
}

TEST_CASE("rules: the range of a type is no claim about padding") {
  const auto local = [](int at) {
    return "(%x: tensor<3xu8>)\n  %z = constant {0} : tensor<u8>\n"
           "  %p = pad(%x, %z) {low=[0], high=[1]} : tensor<4xu8>\n"
           "  %m = minimum(%p, %z) : tensor<4xu8>\n  %c = convert(%m) : tensor<4xf32>\n"
           "  %e = exp(%c) : tensor<4xf32>\n  %y = slice(%e) {[" +
           std::to_string(at) + ":" + std::to_string(at + 3) +
           "]} : tensor<3xf32>\n  return %y : tensor<3xf32>\n";
  };
  const std::string source =
      "(%x: tensor<3xu8>)\n  %z = constant {0} : tensor<u8>\n  %m = minimum(%x, %z) : "
      "tensor<3xu8>\n"
      "  %c = convert(%m) : tensor<3xf32>\n  %y = exp(%c) : tensor<3xf32>\n"
      "  return %y : tensor<3xf32>\n";
  CHECK(does(source, local(0)));
}

TEST_CASE("rules: stationary weights are proved") {
  const auto proves = [](const pt::program& source, const auto& schedule, int expected) {
    const auto p = pt::partition(source, {{"B", 4}}, schedule, {.passes = {.stationary_above = 1}});
    int moves = 0;
    for (const auto& note : p.notes) moves += note.reason == pt::collective_reason::moved_instead;
    CHECK(moves == expected);
    const pt::verdict v = pt::prove(p, {.most_elements = 0});
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

TEST_CASE("rules: features of a group are adjacent") {
  const std::string head = "(%x: tensor<4x2x8xf32>, %w: tensor<4x8x2xf32>)\n",
                    tail =
                        "  %y = convolution(%x, %v) {lhs=[0, 2, 1], rhs=[0, 1, 2], result=[0, 2, "
                        "1], feature_groups}"
                        " : tensor<4x1x8xf32>\n  return %y : tensor<4x1x8xf32>\n";
  const auto source = head + "  %v = reshape(%w) : tensor<4x8x2xf32>\n" + tail;
  const auto cut = [&](const char* dims, const char* cut) {
    return head + "  %r = reshape(%w) : tensor<4x2x4x2xf32>\n  %t = transpose(%r) {dims=" + dims +
           "} : tensor<" + cut + "xf32>\n  %v = reshape(%t) : tensor<4x8x2xf32>\n" + tail;
  };
  CHECK(does(source, cut("[0, 1, 2, 3]", "4x2x4x2")));
  CHECK_FALSE(does(source, cut("[0, 2, 1, 3]", "4x4x2x2")));
}

TEST_CASE("rules: replicated rows whose copies are sliced off again") {
  const std::string head = "(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>)\n";
  const auto source = head +
                      "  %y = dot_general(%x, %w) {contract=[1]x[0]} : tensor<4x5xf32>\n"
                      "  return %y : tensor<4x5xf32>\n";
  const auto local = [&](const char* cut) {
    return head +
           "  %g = all_gather [{\"B\"}, {}] %x : tensor<8x3xf32>\n"
           "  %p = dot_general(%g, %w) {contract=[1]x[0]} : tensor<8x5xf32>\n"
           "  %y = " +
           cut + " : tensor<4x5xf32>\n  return %y : tensor<4x5xf32>\n";
  };
  CHECK(does(source, local("all_slice [{\"B\"}, {}] %p"), "\"B\":2"));
  CHECK(does(source, local("slice(%p) {[4:8, 0:5]}"), "\"B\":2"));
  CHECK_FALSE(does(source, local("slice(%p) {[2:6, 0:5]}"), "\"B\":2"));
  CHECK_FALSE(
      does("(%x: tensor<4x3xf32>)\n  %s = reduce(%x) {add, dims=[0]} : tensor<3xf32>\n"
           "  return %s : tensor<3xf32>\n",
           "(%x: tensor<4x3xf32>)\n  %g = all_gather [{\"B\"}, {}] %x : tensor<8x3xf32>\n"
           "  %s = reduce(%g) {add, dims=[0]} : tensor<3xf32>\n"
           "  return %s : tensor<3xf32>\n",
           "\"B\":2"));
}

TEST_CASE("rules: an accumulator of a loop may be sliced and gathered again") {
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

TEST_CASE("rules: padding next to the only position of a window is not that position") {
  const auto proves = [](const char* gathered, const char* rest) {
    const std::string conv =
        " = convolution(%x, %v) {lhs=[0, 2, 1], rhs=[0, 1, 2], "
        "result=[0, 2, 1]} : tensor<4x1x3xf32>\n  return %y : "
        "tensor<4x1x3xf32>\n}\n";
    const std::string of = "func @main(%x: tensor<4x1x2xf32>, %w: tensor<2x3x1xf32>)";
    const pt::program p = pt::parse(of + " {\n  %v = reshape(%w) : tensor<2x3x1xf32>\n  %y" + conv);
    pt::device_program d;
    d.local = pt::parse(of + " attributes {mesh = {\"B\":2}} {\n" + gathered + rest + "  %y" + conv,
                        d.mesh);
    REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
    for (int i = 0; i < 2; ++i) d.inputs.push_back({});
    d.inputs[1].push_back(0, 2);
    d.outputs.push_back({});
    return by_claims(p, d);
  };
  CHECK(proves("  %g = all_gather [{}, {}, {\"B\"}] %w : tensor<2x3x2xf32>\n",
               "  %v = slice(%g) {[0:2, 0:3, 0:1]} : tensor<2x3x1xf32>\n"));
  CHECK_FALSE(proves("", "  %v = reshape(%w) : tensor<2x3x1xf32>\n"));
}

TEST_CASE("rules: terms that cancel in one order of a sum cancel in every order") {
  const std::string of = " : tensor<4xf32>\n", args = "(%x: tensor<4xf32>, %y: tensor<4xf32>)\n";
  const std::string first = args + "  %a = subtract(%x, %x)" + of + "  %b = add(%a, %x)" + of +
                            "  %c = multiply(%b, %y)" + of + "  return %c" + of;
  const std::string second = args + "  %a = add(%x, %x)" + of + "  %b = subtract(%a, %x)" + of +
                             "  %c = multiply(%b, %y)" + of + "  return %c" + of;
  const std::string other = args + "  %a = add(%x, %x)" + of + "  %b = add(%a, %x)" + of +
                            "  %c = multiply(%b, %y)" + of + "  return %c" + of;
  CHECK(does(first, second));
  CHECK(does(second, first));
  CHECK_FALSE(does(first, other));
}

TEST_CASE("rules: sums of many terms in another grouping") {
  const auto program = [](bool halves, int last) {
    const std::string of = " : tensor<4xf32>\n";
    std::string args, out;
    for (int i = 0; i < 150; ++i)
      args += (i > 0 ? ", %p" : "%p") + std::to_string(i) + ": tensor<4xf32>";
    int next = 0;
    const auto add = [&](const std::string& a, int b) {
      const std::string to = "%s" + std::to_string(next++);
      out += "  " + to + " = add(" + a + ", " + "%p" + std::to_string(b) + ")" + of;
      return to;
    };
    const int middle = halves ? 75 : 150;
    std::string sum = "%p0", rest = "%p" + std::to_string(last);
    for (int i = 1; i < middle; ++i) sum = add(sum, i == 149 ? last : i);
    for (int i = middle; i < 149; ++i) rest = add(rest, i);
    if (halves) out += "  %all = add(" + rest + ", " + sum + ")" + of;
    return "(" + args + ")\n" + out + "  return " + (halves ? "%all" : sum) + of;
  };
  CHECK(does(program(false, 149), program(true, 149)));
  CHECK(does(program(true, 149), program(false, 149)));
  CHECK_FALSE(does(program(false, 149), program(true, 7)));
}

TEST_CASE("rules: the value where no device sends is not a position") {
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

TEST_CASE("rules: the maximum of the blocks' maxima, and its position") {
  const std::string source =
      "(%x: tensor<6x8xf32>)\n  %i = iota {dim=1} : tensor<6x8xi32>\n"
      "  %v, %y = reduce(%x, %i) {argmax, dims=[1]} : tensor<6xf32>, tensor<6xi32>\n"
      "  return %y : tensor<6xi32>\n";
  struct {
    std::string positions = "%i", values = "%xs", first = "argmax", second = "argmax";
    std::string gathered = "%vs", result = "%y";
    std::string distance = "4";
  } usual;
  const auto local = [](const auto& how) {
    return "(%x: tensor<6x8xf32>)\n  %xs = all_slice [{}, {\"M\"}] %x : tensor<6x4xf32>\n"
           "  %n = iota {dim=1} : tensor<6x4xi32>\n"
           "  %start = shard_start {" +
           how.distance +
           " <\"M\">} : tensor<i32>\n"
           "  %i = add(%n, %start) : tensor<6x4xi32>\n"
           "  %v, %at = reduce(" +
           how.values + ", " + how.positions + ") {" + how.first +
           ", dims=[1]} : tensor<6xf32>, tensor<6xi32>\n"
           "  %w = reshape(%v) : tensor<1x6xf32>\n"
           "  %vs = all_gather [{\"M\"}, {}] %w : tensor<2x6xf32>\n"
           "  %ws = broadcast_in_dim(%v) {dims=[1]} : tensor<2x6xf32>\n"
           "  %a = reshape(%at) : tensor<1x6xi32>\n"
           "  %is = all_gather [{\"M\"}, {}] %a : tensor<2x6xi32>\n"
           "  %p, %y = reduce(" +
           how.gathered + ", %is) {" + how.second +
           ", dims=[0]} : tensor<6xf32>, tensor<6xi32>\n"
           "  return " +
           how.result + " : tensor<6xi32>\n";
  };
  const auto good = [&](const auto& how) { return does(source, local(how), "\"M\":2"); };
  CHECK(good(usual));
  auto wrong = usual;
  wrong.positions = "%n";
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.distance = "3";
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.first = "argmin";
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.second = "argmin";
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.gathered = "%ws";  // the values of one device with the positions of all
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.result = "%at";  // of one device
  CHECK_FALSE(good(wrong));
}

TEST_CASE("rules: the k maxima of the blocks' k maxima, and their positions") {
  const std::string source =
      "(%x: tensor<6x8xf32>)\n  %i = iota {dim=1} : tensor<6x8xi32>\n"
      "  %v, %y = top_k(%x, %i) {k=2} : tensor<6x2xf32>, tensor<6x2xi32>\n"
      "  return %y : tensor<6x2xi32>\n";
  struct {
    std::string positions = "%i", values = "%vs", gathered = "%is", result = "%y";
    std::string k = "2", more = "";
  } usual;
  const auto local = [](const auto& how) {
    const std::string k =
        "{k=" + how.k + "} : tensor<6x" + how.k + "xf32>, tensor<6x" + how.k + "xi32>\n";
    const std::string all = std::to_string(2 * std::stoi(how.k));
    return "(%x: tensor<6x8xf32>)\n  %xs = all_slice [{}, {\"M\"}] %x : tensor<6x4xf32>\n"
           "  %n = iota {dim=1} : tensor<6x4xi32>\n  %start = shard_start {4 <\"M\">} : "
           "tensor<i32>\n"
           "  %i = add(%n, %start) : tensor<6x4xi32>\n"
           "  %v, %at = top_k(%xs, " +
           how.positions + ") " + k + "  %vs = all_gather [{}, {\"M\"}] %v : tensor<6x" + all +
           "xf32>\n  %is = all_gather [{}, {\"M\"}] %at : tensor<6x" + all +
           "xi32>\n  %vv = concatenate(%v, %v) {dim=1} : tensor<6x" + all +
           "xf32>\n  %ii = concatenate(%at, %at) {dim=1} : tensor<6x" + all +
           "xi32>\n  %r = reverse(%vs) {dims=[1]} : tensor<6x" + all + "xf32>\n  %p, %y = top_k(" +
           how.values + ", " + how.gathered +
           ") {k=2} : tensor<6x2xf32>, tensor<6x2xi32>\n  return " + how.result +
           " : tensor<6x2xi32>\n";
  };
  const auto good = [&](const auto& how) { return does(source, local(how), "\"M\":2"); };
  CHECK(good(usual));
  auto wrong = usual;
  wrong.positions = "%n";
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.k = "1";  // one of each block
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.values = "%r";  // values with the positions of others
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.values = "%vv";
  wrong.gathered = "%ii";  // of one device, twice
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.result = "%at";  // of one device
  CHECK_FALSE(good(wrong));
}

TEST_CASE("rules: a function that does not commute, on blocks in their order") {
  // Maps (a, b), x -> a x + b, in sequence.
  const std::string steps =
      "identity=[1, 0], results=[4, 6], steps=[6, -1, 2, 2, 0, 0, 6, -1, 2, 2, 1, 0, 4, -1, 2, 5, "
      "3, 0]} : tensor<4xi32>, tensor<4xi32>\n";
  const std::string source =
      "(%a: tensor<4x8xi32>, %b: tensor<4x8xi32>)\n  %y, %z = fold(%a, %b) {dims=[1], " + steps +
      "  return %z : tensor<4xi32>\n";
  struct {
    std::string first, taken = "%fg", result = "%z";
  } usual;
  usual.first = steps;
  const auto local = [&](const auto& how) {
    const std::string piece = " : tensor<4x2xi32>\n", one = " : tensor<4x1xi32>\n";
    const std::string all = " : tensor<4x4xi32>\n";
    return "(%a: tensor<4x8xi32>, %b: tensor<4x8xi32>)\n  %as = all_slice [{}, {\"M\"}] %a" +
           piece + "  %bs = all_slice [{}, {\"M\"}] %b" + piece +
           "  %p, %q = fold(%as, %bs) {dims=[1], " + how.first + "  %e = reshape(%p)" + one +
           "  %f = reshape(%q)" + one + "  %eg = all_gather [{}, {\"M\"}] %e" + all +
           "  %fg = all_gather [{}, {\"M\"}] %f" + all + "  %er = reverse(%eg) {dims=[1]}" + all +
           "  %fr = reverse(%fg) {dims=[1]}" + all + "  %y, %z = fold(" +
           (how.taken == "%fr" ? "%er" : "%eg") + ", " + how.taken + ") {dims=[1], " + steps +
           "  return " + how.result + " : tensor<4xi32>\n";
  };
  const auto good = [&](const auto& how) { return does(source, local(how), "\"M\":4"); };
  CHECK(good(usual));
  auto wrong = usual;
  wrong.taken = "%fr";  // the last block first
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.taken = "%eg";
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.result = "%q";  // of one device
  CHECK_FALSE(good(wrong));
  wrong = usual;
  wrong.first.replace(wrong.first.find("[6, -1, 2, 2, 0"), 2, "[4");  // a sum where it multiplies
  CHECK_FALSE(good(wrong));
}

TEST_CASE("rules: running sums over blocks, plus the totals of earlier blocks") {
  const auto source = [](const std::string& how) {
    return "(%x: tensor<8x3xf32>)\n  %y = cumsum(%x) {dim=0" + how +
           "} : tensor<8x3xf32>\n  return %y : tensor<8x3xf32>\n";
  };
  struct {
    std::string first = "", second = ", exclusive", taken = "1:2, :", joins = "add";
    std::string from = "%a", to = "%ts", result = "%y";
  } usual;
  const auto local = [](const auto& how) {
    return "(%x: tensor<8x3xf32>)\n  %xs = all_slice [{\"M\"}, {}] %x : tensor<2x3xf32>\n"
           "  %a = cumsum(%xs) {dim=0" +
           how.first + "} : tensor<2x3xf32>\n  %b = cumsum(%xs) {dim=0} : tensor<2x3xf32>\n" +
           "  %l = slice(%b) {[" + how.taken +
           "]} : tensor<1x3xf32>\n  %lg = all_gather [{\"M\"}, {}] %l : tensor<4x3xf32>\n"
           "  %t = cumsum(%lg) {dim=0" +
           how.second +
           "} : tensor<4x3xf32>\n  %ts = all_slice [{\"M\"}, {}] %t : tensor<1x3xf32>\n"
           "  %ls = all_slice [{\"M\"}, {}] %lg : tensor<1x3xf32>\n"
           "  %f = reshape(" +
           how.to +
           ") : tensor<3xf32>\n  %s = broadcast_in_dim(%f) {dims=[1]} : tensor<2x3xf32>\n"
           "  %y = " +
           how.joins + "(%s, " + how.from +
           ") : tensor<2x3xf32>\n  %r = all_gather [{\"M\"}, {}] " + how.result +
           " : tensor<8x3xf32>\n  return %r : tensor<8x3xf32>\n";
  };
  const auto good = [&](const auto& how, const std::string& of = "") {
    return does(source(of), local(how), "\"M\":4");
  };
  CHECK(good(usual));
  auto other = usual;
  other.first = ", exclusive";
  CHECK(good(other, ", exclusive"));
  CHECK_FALSE(good(other));
  CHECK_FALSE(good(usual, ", exclusive"));
  CHECK_FALSE(good(usual, ", reverse"));
  CHECK_FALSE(good(usual, ", combine=max"));
  const auto wrong = [&](auto member, const std::string& text) {
    auto how = usual;
    how.*member = text;
    CHECK_MESSAGE(!good(how), text);
  };
  using parts = decltype(usual);
  wrong(&parts::second, "");                      // the own total, too
  wrong(&parts::second, ", reverse, exclusive");  // those of later blocks
  wrong(&parts::taken, "0:1, :");                 // not the last one
  wrong(&parts::joins, "maximum");
  wrong(&parts::to, "%ls");     // the own total
  wrong(&parts::from, "%xs");   // not a running sum
  wrong(&parts::result, "%a");  // without the earlier totals
}

TEST_CASE("rules: a recurrence that starts from the same number everywhere") {
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
    const pt::verdict v = pt::prove(p, {.most_elements = 0});
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

TEST_CASE("rules: a select of two equal values ignores its flags") {
  const std::string in = "(%x: tensor<3xf32>, %z: tensor<3xf32>, %f: tensor<3xi1>)\n",
                    out = "  return %y : tensor<3xf32>\n";
  const std::string source = in +
                             "  %r = roll(%f) {dim=0, shift=1} : tensor<3xi1>\n"
                             "  %y = select(%r, %x, %x) : tensor<3xf32>\n" +
                             out;
  const auto chosen = [&](const std::string& second) {
    return in + "  %y = select(%f, %x, " + second + ") : tensor<3xf32>\n" + out;
  };
  CHECK(does(source, source));
  CHECK(does(source, chosen("%x")));
  CHECK_FALSE(does(source, chosen("%z")));
}

TEST_CASE("rules: a select with negated flags exchanges its operands") {
  const std::string in = "(%x: tensor<3xf32>, %z: tensor<3xf32>, %f: tensor<3xi1>)\n",
                    out = "  return %y : tensor<3xf32>\n";
  const std::string source = in + "  %y = select(%f, %x, %z) : tensor<3xf32>\n" + out;
  const auto turned = [&](const std::string& chosen) {
    return in + "  %g = not(%f) : tensor<3xi1>\n  %y = select(%g, " + chosen +
           ") : tensor<3xf32>\n" + out;
  };
  CHECK(does(source, turned("%z, %x")));
  CHECK_FALSE(does(source, turned("%x, %z")));
  CHECK(does(turned("%z, %x"), source));
}

// 0.5^1500 is not a double: the remaining factors stay operands.
TEST_CASE("rules: a chain of factors whose product is not a number") {
  const auto chain = [](int links, const std::string& factor) {
    std::string text = "(%x0: tensor<4xf32>)\n  %h = constant {" + factor + "} : tensor<4xf32>\n";
    for (int i = 0; i < links; ++i)
      text += "  %x" + std::to_string(i + 1) + " = multiply(%x" + std::to_string(i) +
              ", %h) : tensor<4xf32>\n";
    return text + "  return %x" + std::to_string(links) + " : tensor<4xf32>\n";
  };
  for (const std::string factor : {"0.5", "-2"}) {
    CHECK(does(chain(1500, factor), chain(1500, factor)));
    CHECK_FALSE(does(chain(1500, factor), chain(1499, factor)));
  }
}

TEST_CASE("rules: two equal loops are one") {
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

TEST_CASE("rules: the same block written to each position, in a different order on each device") {
  const std::string source =
      "(%x: tensor<4xf32>)\n  %b = broadcast_in_dim(%x) {dims=[1]} : tensor<2x4xf32>\n"
      "  %y = reshape(%b) : tensor<8xf32>\n  return %y : tensor<8xf32>\n";
  const auto local = [](const std::string& second, const std::string& update) {
    return "(%x: tensor<4xf32>)\n  %c = constant {0} : tensor<8xf32>\n"
           "  %s = shard_start {4 <\"B\">} : tensor<i32>\n  %n = constant {4} : tensor<i32>\n"
           "  %e = constant {8} : tensor<i32>\n  %t = add(%s, %n) : tensor<i32>\n"
           "  %m = remainder(%t, %e) : tensor<i32>\n  %u = negate(%x) : tensor<4xf32>\n"
           "  %w = dynamic_update_slice(%c, %x, %s) : tensor<8xf32>\n"
           "  %y = dynamic_update_slice(%w, " +
           update + ", " + second +
           ") : tensor<8xf32>\n"
           "  return %y : tensor<8xf32>\n";
  };
  CHECK(does(source, local("%m", "%x"), "\"B\":2"));
  CHECK_FALSE(does(source, local("%s", "%x"), "\"B\":2"));  // the first block again
  CHECK_FALSE(does(source, local("%n", "%x"), "\"B\":2"));  // on the second device again
  CHECK_FALSE(does(source, local("%m", "%u"), "\"B\":2"));
}

TEST_CASE("rules: a block of one element does not contain its padding") {
  const std::string source =
      "(%x: tensor<1xf64>)\n  %i = iota {dim=0} : tensor<1xi32>\n"
      "  %v, %k = top_k(%x, %i) {k=1} : tensor<1xf64>, tensor<1xi32>\n"
      "  return %v : tensor<1xf64>\n";
  CHECK(does(source, source, "\"B\":2"));
  CHECK_FALSE(does(source, source, "\"B\":2", "B"));
}

TEST_CASE("rules: a tensor rolled twice, reversed, and by steps") {
  const std::string in = "(%f: tensor<6xi1>, %x: tensor<6xf32>)\n", of = " : tensor<6xf32>\n";
  const auto program = [&](const std::string& body) {
    return in + body + "  %y = select(%f, %b, %x)" + of + "  return %y" + of;
  };
  const std::string source =
      program("  %a = reverse(%x) {dims=[0]}" + of + "  %b = roll(%a) {dim=0, shift=2}" + of);
  const auto pieces = [&](int cut) {
    const std::string low = std::to_string(cut), part = " : tensor<" + low + "xf32>\n",
                      rest = " : tensor<" + std::to_string(6 - cut) + "xf32>\n";
    return program("  %a = reverse(%x) {dims=[0]}" + of + "  %l = slice(%a) {[0:" + low + "]}" +
                   part + "  %h = slice(%a) {[" + low + ":6]}" + rest +
                   "  %b = concatenate(%h, %l) {dim=0}" + of);
  };
  CHECK(does(source, source));
  CHECK(does(source, pieces(4)));
  CHECK_FALSE(does(source, pieces(2)));
}

TEST_CASE("rules: a multiple of a padded tensor is a padded multiple") {
  const std::string in = "(%x: tensor<3xf32>)\n  %c = constant {1} : tensor<f32>\n",
                    out = "  return %y : tensor<5xf32>\n",
                    pad = ", %c) {low=[0], high=[2]} : tensor<5xf32>\n";
  const std::string source = in + "  %n = negate(%x) : tensor<3xf32>\n  %y = pad(%n" + pad + out;
  CHECK(does(source, source));
  CHECK_FALSE(
      does(source, in + "  %p = pad(%x" + pad + "  %y = negate(%p) : tensor<5xf32>\n" + out));
}

TEST_CASE("rules: whole groups of a flat row of groups") {
  const auto local = [](const std::string& start) {
    return "(%x: tensor<2x4xf32>)\n  %r = reshape(%x) : tensor<8xf32>\n"
           "  %s = shard_start {4 <\"B\">} : tensor<i32>\n  %n = constant {4} : tensor<i32>\n"
           "  %e = constant {8} : tensor<i32>\n  %t = add(%s, %n) : tensor<i32>\n"
           "  %m = remainder(%t, %e) : tensor<i32>\n"
           "  %p = dynamic_slice(%r, " +
           start +
           ") {sizes=[4]} : tensor<4xf32>\n"
           "  %g = all_gather [{\"B\"}] %p : tensor<8xf32>\n  return %g : tensor<8xf32>\n";
  };
  const std::string source =
      "(%x: tensor<2x4xf32>)\n  %r = roll(%x) {dim=0, shift=1} : tensor<2x4xf32>\n"
      "  %g = reshape(%r) : tensor<8xf32>\n  return %g : tensor<8xf32>\n";
  CHECK(does(source, local("%m"), "\"B\":2"));
  CHECK_FALSE(does(source, local("%s"), "\"B\":2"));
}

TEST_CASE("rules: padding between the rows of a flat tensor is not one of its elements") {
  const auto program = [](const std::string& padded, int columns, int taken) {
    const std::string of = "tensor<" + std::to_string(4 * columns) + "xf32>\n",
                      two = "tensor<4x" + std::to_string(columns) + "xf32>\n",
                      at = std::to_string(taken), end = std::to_string(taken + 1);
    std::string text = "(%x: tensor<4x5xf32>, %y: tensor<4x5xf32>)\n";
    for (const char* v : {"x", "y"}) {
      const std::string name(v);
      if (!padded.empty())
        text += "  %z" + name + " = constant {0} : tensor<f32>\n  %p" + name + " = pad(%" + name +
                ", %z" + name + ") {" + padded + "} : " + two;
      text += "  %f" + name + " = reshape(%" + (padded.empty() ? "" : "p") + name + ") : " + of;
    }
    return text + "  %d = dot_general(%fx, %fy) {batch=[0]x[0], contract=[]x[]} : " + of +
           "  %s = slice(%d) {[" + at + ":" + end + "]} : tensor<1xf32>\n" +
           "  return %s : tensor<1xf32>\n";
  };
  const std::string source = program("", 5, 4), low = "low=[0, 1], high=[0, 0]",
                    high = "low=[0, 0], high=[0, 1]";
  CHECK(does(source, source));
  CHECK_FALSE(does(source, program(low, 6, 6)));
  CHECK_FALSE(does(program("", 5, 5), program(high, 6, 5)));
}

TEST_CASE("rules: partial products of equal rows") {
  const std::string in = "(%v: tensor<4xf32>, %m: tensor<4x5xf32>)\n",
                    out = "  return %y : tensor<3x5xf32>\n";
  const auto part = [](const std::string& n, const std::string& of_v, const std::string& of_m) {
    return "  %v" + n + " = slice(%v) {[" + of_v + "]} : tensor<2xf32>\n  %m" + n +
           " = slice(%m) {[" + of_m + ", :]} : tensor<2x5xf32>\n  %b" + n +
           " = broadcast_in_dim(%v" + n + ") {dims=[1]} : tensor<3x2xf32>\n  %p" + n +
           " = dot_general(%b" + n + ", %m" + n + ") {contract=[1]x[0]} : tensor<3x5xf32>\n";
  };
  const auto local = [&](const std::string& second_v, const std::string& second_m,
                         const std::string& sum) {
    return in + part("0", "0:2", "0:2") + part("1", second_v, second_m) + "  %y = add(" + sum +
           ") : tensor<3x5xf32>\n" + out;
  };
  const std::string source = in +
                             "  %b = broadcast_in_dim(%v) {dims=[1]} : tensor<3x4xf32>\n"
                             "  %y = dot_general(%b, %m) {contract=[1]x[0]} : tensor<3x5xf32>\n" +
                             out;
  CHECK(does(source, local("2:4", "2:4", "%p0, %p1")));
  CHECK(does(source, local("2:4", "2:4", "%p1, %p0")));
  CHECK_FALSE(does(source, local("2:4", "2:4", "%p0, %p0")));
  CHECK_FALSE(does(source, local("1:3", "1:3", "%p0, %p1")));
  CHECK_FALSE(does(source, local("2:4", "1:3", "%p0, %p1")));
}

TEST_CASE("rules: a repeated element is reduced as many times") {
  const auto along_ones = [](const std::string& n, const std::string& op, const std::string& type) {
    return "(%x: tensor<3xf32>)\n  %b = broadcast_in_dim(%x) {dims=[0]} : tensor<3x" + n +
           "xf32>\n  %c = reduce(%b) {add, dims=[0]} : tensor<" + n + "xf32>\n  %y = " + op +
           " : tensor<" + type + ">\n  return %y : tensor<" + type + ">\n";
  };
  for (const std::string reduce : {"add", "multiply"}) {
    const std::string op = "reduce(%c) {" + reduce + ", dims=[0]}";
    CHECK(does(along_ones("1", op, "f32"), along_ones("1", op, "f32")));
    CHECK_FALSE(does(along_ones("1", op, "f32"), along_ones("3", op, "f32")));
  }
  const auto first_of = [&](const std::string& n) {
    return "(%x: tensor<3xf32>)\n  %b = broadcast_in_dim(%x) {dims=[0]} : tensor<3x" + n +
           "xf32>\n  %c = cumsum(%b) {dim=1} : tensor<3x" + n +
           "xf32>\n  %y = slice(%c) {[:, 0:1]} : tensor<3x1xf32>\n  return %y : "
           "tensor<3x1xf32>\n";
  };
  CHECK(does(first_of("1"), first_of("1")));
  CHECK_FALSE(does(first_of("1"),
                   "(%x: tensor<3xf32>)\n  %b = broadcast_in_dim(%x) {dims=[0]} : "
                   "tensor<3x4xf32>\n  %c = cumsum(%b) {dim=1} : "
                   "tensor<3x4xf32>\n  %y = slice(%c) {[:, 2:3]} : "
                   "tensor<3x1xf32>\n  return %y : tensor<3x1xf32>\n"));
}

TEST_CASE("rules: a running sum of equal elements is not constant") {
  const auto program = [](const std::string& at) {
    return "(%c: tensor<f32>)\n  %b = broadcast_in_dim(%c) {dims=[]} : tensor<4xf32>\n"
           "  %s = cumsum(%b) {dim=0} : tensor<4xf32>\n  %y = slice(%s) {[" +
           at + "]} : tensor<1xf32>\n  return %y : tensor<1xf32>\n";
  };
  CHECK(does(program("1:2"), program("1:2")));
  CHECK_FALSE(does(program("1:2"), program("2:3")));
}

TEST_CASE("rules: a known flag decides only the op that it decides") {
  const auto with = [](const std::string& op, const std::string& flag) {
    return "(%x: tensor<4xi32>)\n  %n = constant {1} : tensor<4xi32>\n"
           "  %a = compare(%x, %n) {lt} : tensor<4xi1>\n  %b = compare(%n, %n) {" +
           flag + "} : tensor<4xi1>\n  %y = " + op + "(%a, %b) : tensor<4xi1>\n" +
           "  return %y : tensor<4xi1>\n";
  };
  for (const std::string flag : {"lt", "le"})  // false, true
    for (const std::string op : {"and", "or", "xor", "minimum", "maximum", "add", "multiply"}) {
      CAPTURE(op);
      CAPTURE(flag);
      CHECK(does(with(op, flag), with(op, flag)));
      const std::string same = op == "and" ? "minimum" : op == "or" ? "maximum" : op;
      for (const std::string other : {"minimum", "maximum", "xor"})
        if (op != "add" && op != "multiply" && other != same)
          CHECK_FALSE(does(with(op, flag), with(other, flag)));
    }
  CHECK(does(with("and", "lt"), with("minimum", "lt")));
  CHECK(does(with("or", "le"), with("maximum", "le")));
  CHECK_FALSE(does(with("and", "lt"), with("add", "lt")));
}

TEST_CASE("rules: a running op on elements in another order") {
  const std::string exchanged =
      "(%x: tensor<4xi32>)\n  %s = reshape(%x) : tensor<2x2xi32>\n"
      "  %t = transpose(%s) {dims=[1, 0]} : tensor<2x2xi32>\n  %u = reshape(%t) : tensor<4xi32>\n";
  const std::string back =
      "  %v = reshape(%y) : tensor<2x2xi32>\n  %w = transpose(%v) {dims=[1, 0]} : tensor<2x2xi32>\n"
      "  %z = reshape(%w) : tensor<4xi32>\n  return %z : tensor<4xi32>\n";
  for (const std::string how : {"", ", reverse", ", exclusive"}) {
    const std::string op = ") {dim=0" + how + "} : tensor<4xi32>\n";
    const std::string plain =
        "(%x: tensor<4xi32>)\n  %y = cumsum(%x" + op + "  return %y : tensor<4xi32>\n";
    CHECK(does(plain, plain));
    CHECK_FALSE(does(plain, exchanged + "  %y = cumsum(%u" + op + back));
  }
  const std::string steps =
      ") {dims=[0], identity=[1, 0], results=[4, 6], steps=[6, -1, 2, 2, 0, 0, 6, -1, 2, 2, 1, 0, "
      "4, -1, 2, 5, 3, 0]} : tensor<i32>, tensor<i32>\n  return %z : tensor<i32>\n";
  const std::string plain = "(%x: tensor<4xi32>)\n  %y, %z = fold(%x, %x" + steps;
  CHECK(does(plain, plain));
  CHECK_FALSE(does(plain, exchanged + "  %y, %z = fold(%u, %u" + steps));
}

TEST_CASE("rules: a value on one device and zeros elsewhere sum to the value") {
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

TEST_CASE("rules: one element from each of many devices, joined") {
  constexpr int devices = 8;
  const auto local = [](int swapped, int doubled) {
    std::string out =
                    "(%x: tensor<1xf32>)\n  %i = shard_start {1 <\"B\">} : tensor<i64>\n"
                    "  %z = constant {0} : tensor<f32>\n",
                all;
    for (int k = 0; k < devices; ++k) {
      const std::string n = std::to_string(k);
      out += "  %c" + n + " = constant {" + std::to_string(k == swapped ? 0 : k) +
             "} : tensor<i64>\n  %m" + n + " = compare(%i, %c" + n + ") {" +
             (k == doubled ? "ge" : "eq") + "} : tensor<i1>\n  %p" + n + " = select(%m" + n +
             ", %x, %z) : tensor<1xf32>\n";
      all += (k == 0 ? "%p" : ", %p") + n;
    }
    return out + "  %a = concatenate(" + all + ") {dim=0} : tensor<8xf32>\n" +
           "  %s = all_reduce <\"B\"> %a : tensor<8xf32>\n"
           "  %y = exp(%s) : tensor<8xf32>\n  return %y : tensor<8xf32>\n";
  };
  const std::string source =
      "(%x: tensor<8xf32>)\n  %y = exp(%x) : tensor<8xf32>\n  return %y : tensor<8xf32>\n";
  CHECK(does(source, local(-1, -1), "\"B\":8", "B"));
  CHECK_FALSE(does(source, local(3, -1), "\"B\":8", "B"));
  CHECK_FALSE(does(source, local(-1, 5), "\"B\":8", "B"));
}

TEST_CASE("rules: the two operands of select_and_scatter may be padded differently") {
  const std::string source =
      "(%x: tensor<7xf32>, %y: tensor<5xf32>)\n  %o = select_and_scatter(%x, %y) {le, window=[2], "
      "low=[-1], high=[0]} : tensor<7xf32>\n  return %o : tensor<7xf32>\n";
  const auto local = [](const std::string& beside, const std::string& low,
                        const std::string& from) {
    return "(%x: tensor<7xf32>, %y: tensor<5xf32>)\n  %f = constant {9} : tensor<f32>\n"
           "  %z = constant {" +
           beside +
           "} : tensor<f32>\n  %p = pad(%x, %f) {low=[0], high=[2]} : tensor<9xf32>\n"
           "  %q = pad(%y, %z) {low=[0], high=[1]} : tensor<6xf32>\n"
           "  %s = select_and_scatter(%p, %q) {le, window=[2], " +
           low + "} : tensor<9xf32>\n  %o = slice(%s) {[" + from +
           "]} : tensor<7xf32>\n  return %o : tensor<7xf32>\n";
  };
  CHECK(does(source, local("0", "low=[-1], high=[-1]", "0:7")));
  CHECK_FALSE(does(source, local("1", "low=[-1], high=[-1]", "0:7")));
  CHECK_FALSE(does(source, local("0", "low=[-2], high=[0]", "0:7")));
  CHECK_FALSE(does(source, local("0", "low=[0], high=[-2]", "0:7")));
  CHECK_FALSE(does(source, local("0", "low=[-1], high=[-1]", "1:8")));
  // A window that reaches out of bounds reads the padding.
  const std::string beyond =
      "(%x: tensor<7xf32>, %y: tensor<7xf32>)\n  %o = select_and_scatter(%x, %y) {le, window=[2], "
      "low=[0], high=[1]} : tensor<7xf32>\n  return %o : tensor<7xf32>\n";
  const std::string padded =
      "(%x: tensor<7xf32>, %y: tensor<7xf32>)\n  %f = constant {9} : tensor<f32>\n"
      "  %z = constant {0} : tensor<f32>\n  %p = pad(%x, %f) {low=[0], high=[2]} : tensor<9xf32>\n"
      "  %q = pad(%y, %z) {low=[0], high=[1]} : tensor<8xf32>\n"
      "  %s = select_and_scatter(%p, %q) {le, window=[2], low=[0], high=[0]} : tensor<9xf32>\n"
      "  %o = slice(%s) {[0:7]} : tensor<7xf32>\n  return %o : tensor<7xf32>\n";
  CHECK_FALSE(does(beyond, padded));
}

TEST_CASE("rules: a number before positions, as for a class token") {
  const auto joined = [](const std::string& extent, const std::string& number,
                         const std::string& rest) {
    const std::string t = "tensor<" + extent + "x5xf32>";
    return "(%x: " + t + ")\n  %c = constant {" + number +
           "} : tensor<1xi32>\n  %i = iota {dim=0} : tensor<4xi32>\n"
           "  %p = concatenate(%c, %i) {dim=0} : tensor<5xi32>\n"
           "  %f = convert(%p) : tensor<5xf32>\n"
           "  %b = broadcast_in_dim(%f) {dims=[1]} : " +
           t + "\n  %y = add(%x, %b) : " + t + "\n" + rest;
  };
  const std::string source =
      joined("6", "7",
             "  %s = reduce(%y) {add, dims=[0]} : tensor<5xf32>\n  return %s : "
             "tensor<5xf32>\n");
  const auto local = [&](const std::string& number) {
    return joined("3", number,
                  "  %s = reduce(%y) {add, dims=[0]} : tensor<5xf32>\n"
                  "  %r = all_reduce <\"B\"> %s : tensor<5xf32>\n  return %r : tensor<5xf32>\n");
  };
  CHECK(does(source, local("7"), "\"B\":2", "B"));
  CHECK_FALSE(does(source, local("8"), "\"B\":2", "B"));
}

TEST_CASE("rules: more equal rows than in the source, and a masked block of each row") {
  const std::string source =
      "(%x: tensor<3xf32>)\n  %b = broadcast_in_dim(%x) {dims=[1]} : tensor<4x3x3xf32>\n"
      "  %s = reduce(%b) {add, dims=[2]} : tensor<4x3xf32>\n"
      "  %c = broadcast_in_dim(%s) {dims=[0, 1]} : tensor<4x3x3xf32>\n"
      "  %y = subtract(%b, %c) : tensor<4x3x3xf32>\n  return %y : tensor<4x3x3xf32>\n";
  const auto local = [](const std::string& n, const std::string& kept, const std::string& from) {
    const std::string rows = n + "x6x6x", of = " : tensor<" + rows;
    return "(%x: tensor<3xf32>)\n  %0 = constant {0} : tensor<f32>\n  %3 = constant {" + kept +
           "} : tensor<i32>\n  %i = iota {dim=0} : tensor<6xi32>\n"
           "  %l = compare(%i, %3) {lt} : tensor<6xi1>\n"
           "  %p = pad(%x, %0) {low=[0], high=[3]} : tensor<6xf32>\n"
           "  %b = broadcast_in_dim(%p) {dims=[1]}" +
           of + "f32>\n  %f = broadcast_in_dim(%l) {dims=[2]}" + of +
           "i1>\n  %m = select(%f, %b, %0)" + of +
           "f32>\n  %s = reduce(%m) {add, dims=[2]} : tensor<" + n +
           "x6xf32>\n  %c = broadcast_in_dim(%s) {dims=[0, 1]}" + of +
           "f32>\n  %d = subtract(%b, %c)" + of + "f32>\n  %y = slice(%d) {[" + from +
           ", 1:4]} : tensor<4x3x3xf32>\n  return %y : tensor<4x3x3xf32>\n";
  };
  for (const char* n : {"4", "6", "9"}) {
    CHECK(does(source, local(n, "3", "0:4, 0:3")));
    CHECK_FALSE(does(source, local(n, "4", "0:4, 0:3")));
    CHECK_FALSE(does(source, local(n, "3", "0:4, 1:4")));
  }
  CHECK(does(source, local("9", "3", "5:9, 0:3")));
}

TEST_CASE("rules: the source compares positions of many sizes; the block's size decides") {
  std::string eyes;
  for (int n = 1; n <= 40; ++n) {
    const std::string k = std::to_string(n), square = k + "x" + k + "x";
    eyes += "  %i" + k + " = iota {dim=0} : tensor<" + square + "i32>\n  %j" + k +
            " = iota {dim=1} : tensor<" + square + "i32>\n  %e" + k + " = compare(%i" + k + ", %j" +
            k + ") {eq} : tensor<" + square + "i1>\n";
  }
  const std::string source = "(%x: tensor<12x12xf32>)\n  %0 = constant {0} : tensor<f32>\n" + eyes +
                             "  %y = select(%e12, %x, %0) : tensor<12x12xf32>\n"
                             "  %s = reduce(%y) {add, dims=[0]} : tensor<12xf32>\n"
                             "  return %s : tensor<12xf32>\n";
  const auto local = [](const std::string& step) {
    return "(%x: tensor<6x12xf32>)\n  %0 = constant {0} : tensor<f32>\n  %b = shard_start {" +
           step +
           " <\"B\">} : tensor<i32>\n  %i = iota {dim=0} : tensor<6x12xi32>\n"
           "  %k = add(%i, %b) : tensor<6x12xi32>\n  %j = iota {dim=1} : tensor<6x12xi32>\n"
           "  %e = compare(%k, %j) {eq} : tensor<6x12xi1>\n"
           "  %y = select(%e, %x, %0) : tensor<6x12xf32>\n"
           "  %s = reduce(%y) {add, dims=[0]} : tensor<12xf32>\n"
           "  %r = all_reduce <\"B\"> %s : tensor<12xf32>\n  return %r : tensor<12xf32>\n";
  };
  CHECK(does(source, local("6"), "\"B\":2", "B"));
  CHECK_FALSE(does(source, local("5"), "\"B\":2", "B"));
}

TEST_CASE("rules: masked rows of equal positions are those of the other operand") {
  const std::string source =
      "(%x: tensor<4xi32>)\n  %i = iota {dim=1} : tensor<4x4xi32>\n"
      "  %y = dot_general(%i, %i) {batch=[0]x[1], contract=[1]x[0]} : tensor<4xi32>\n"
      "  return %y : tensor<4xi32>\n";
  const auto local = [](const std::string& kept, const std::string& from) {
    return "(%x: tensor<4xi32>)\n  %i = iota {dim=1} : tensor<6x6xi32>\n"
           "  %0 = constant {0} : tensor<i32>\n  %n = constant {" +
           kept +
           "} : tensor<i32>\n  %c = iota {dim=0} : tensor<6xi32>\n"
           "  %l = compare(%c, %n) {lt} : tensor<6xi1>\n"
           "  %a = broadcast_in_dim(%l) {dims=[1]} : tensor<6x6xi1>\n"
           "  %b = broadcast_in_dim(%l) {dims=[0]} : tensor<6x6xi1>\n"
           "  %p = select(%a, %i, %0) : tensor<6x6xi32>\n"
           "  %q = select(%b, %i, %0) : tensor<6x6xi32>\n"
           "  %d = dot_general(%p, %q) {batch=[0]x[1], contract=[1]x[0]} : tensor<6xi32>\n"
           "  %y = slice(%d) {[" +
           from + "]} : tensor<4xi32>\n  return %y : tensor<4xi32>\n";
  };
  CHECK(does(source, local("4", "0:4")));
  CHECK_FALSE(does(source, local("5", "0:4")));
  CHECK_FALSE(does(source, local("4", "1:5")));
}

TEST_CASE(
    "rules: an eye of one element, padded, is a scalar where the other operand is something") {
  const auto program = [](int rows, int n, const std::string& number) {
    const std::string square = std::to_string(n) + "x" + std::to_string(n) + "x";
    const std::string all = std::to_string(rows) + "x" + square;
    const std::string to = std::to_string(rows - 4) + ", ";
    return "(%x: tensor<4x1x1xf32>)\n  %0 = constant {0} : tensor<f32>\n  %5 = constant {" +
           number + "} : tensor<f32>\n  %i = iota {dim=0} : tensor<" + square +
           "i32>\n  %j = iota {dim=1} : tensor<" + square +
           "i32>\n  %e = compare(%i, %j) {eq} : tensor<" + square +
           "i1>\n  %f = broadcast_in_dim(%e) {dims=[1, 2]} : tensor<" + all +
           "i1>\n  %s = select(%f, %5, %0) : tensor<" + all +
           "f32>\n  %p = pad(%x, %0) {low=[0, 0, 0], high=[" + to + std::to_string(n - 1) + ", " +
           std::to_string(n - 1) + "]} : tensor<" + all + "f32>\n  %a = add(%p, %s) : tensor<" +
           all +
           "f32>\n  %y = slice(%a) {[0:4, 0:1, 0:1]} : "
           "tensor<4x1x1xf32>\n  return %y : tensor<4x1x1xf32>\n";
  };
  CHECK(does(program(4, 1, "5"), program(8, 7, "5")));
  CHECK(does(program(4, 1, "5"), program(4, 7, "5")));
  CHECK_FALSE(does(program(4, 1, "5"), program(8, 7, "6")));
}
