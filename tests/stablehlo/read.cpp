#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/stablehlo/read.hpp>
#include <xtensor/xarray.hpp>

#include "modules.hpp"

namespace pt = partita;

namespace {

pt::program read(const std::string& text) {
  pt::program p = pt::read_stablehlo(text);
  INFO(text);
  if (p.error) FAIL(std::string(p.error.message.view()));
  return p;
}
std::string mistake(const std::string& text) {
  return std::string(pt::read_stablehlo(text).error.message.view());
}
std::string body(std::string_view op, std::string_view value = "%0") {
  return std::string(op) + "\n return " + std::string(value);
}

}  // namespace

TEST_CASE("the pretty and the generic form of an op are read as one op") {
  for (const auto& each : modules::ops) {
    const bool several = each.pretty.starts_with("%v, %i");
    const pt::program generic =
        read(modules::around(each.arguments, body(each.generic, several ? "%0#1" : "%0")));
    const pt::program pretty =
        read(modules::around(each.arguments, body(each.pretty, several ? "%i" : "%0")));
    CHECK(pt::equivalent(pretty, generic));
    CHECK(pt::print(pretty).view() == pt::print(generic).view());
    const std::string text(pt::print(generic).view());
    INFO(text);
    CHECK(text.find(std::string(each.printed)) != std::string::npos);
  }
}

TEST_CASE("constants: elements, splats, bits, and all types are read") {
  const auto constant = [](std::string_view written) {
    const pt::program p =
        read(modules::around("", body("%0 = stablehlo.constant " + std::string(written))));
    return pt::evaluate(p)[0];
  };
  CHECK(constant("dense<0.5> : tensor<2xf32>").data<float>()[1] == 0.5f);
  CHECK(constant("dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>").data<std::int32_t>()[3] == -4);
  CHECK(std::isinf(constant("dense<0xFF800000> : tensor<f32>").item<float>()));
  CHECK(std::isnan(constant("dense<0x7FC00000> : tensor<f32>").item<float>()));
  CHECK(constant("dense<3.40282347E+38> : tensor<f32>").item<float>() > 3e38f);
  CHECK(constant("dense<true> : tensor<3xi1>").data<bool>()[2]);
  CHECK(constant("dense<[true, false]> : tensor<2xi1>").data<bool>()[1] == false);
  CHECK(constant("dense<18446744073709551615> : tensor<ui64>").item<std::uint64_t>() == UINT64_MAX);
  CHECK(constant("dense<\"0x0000803F00000040\"> : tensor<2xf32>").data<float>()[1] == 2.f);
  CHECK(constant("dense<\"0x0200FFFF\"> : tensor<2xi16>").data<std::int16_t>()[1] == -1);
  CHECK(float(constant("dense<1.5> : tensor<bf16>").item<pt::bf16>()) == 1.5f);
  CHECK(constant("dense<> : tensor<0x3xf32>").size() == 0);
  CHECK(constant("dense<-128> : tensor<i8>").item<std::int8_t>() == -128);
}

TEST_CASE("functions are inlined where they are called") {
  const pt::program p = read(R"(module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "result['y']"}) {
    %0:2 = call @pair(%arg0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1 = func.call @twice(%0#1) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @pair(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = call @twice(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    return %arg0, %0 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})");
  CHECK(p.output_name(0) == "y");
  const pt::array x = pt::evaluate(p, std::vector<pt::array>{pt::array({pt::dtype::f32, {4}})})[0];
  CHECK(x.size() == 4);
  CHECK(std::string(pt::print(p).view()).find("call") == std::string::npos);
}

TEST_CASE("loops capture outer values; names and locations are kept") {
  const pt::program p = read(R"(#loc1 = loc("params['h'][0].w")
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<f32> loc("x"), %arg1: tensor<f32> loc(#loc1)) -> tensor<f32> {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc2)
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<f32>
    cond {
      %c_1 = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      %2 = stablehlo.multiply %iterArg_0, %arg1 : tensor<f32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
    } loc(#loc3)
    return %0#1 : tensor<f32>
  } loc(#loc)
}
#loc2 = loc("a"(#loc1))
)");
  CHECK(p.input_name(0) == "x");
  CHECK(p.input_name(1) == "params.h.0.w");
  CHECK(pt::evaluate(p, 3.f, 2.f)[0].item<float>() == 96.f);
}

TEST_CASE("arguments whose locations do not tell them apart have the names of the text") {
  // (As TensorFlow writes them.)
  const pt::program p = read(R"(#loc = loc("XLA_Args")
func.func @main(%arg0: tensor<f32> loc("XLA_Args"), %arg1: tensor<f32> loc(#loc), %arg2: tensor<f32> loc("c")) -> tensor<f32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
  %1 = stablehlo.add %0, %arg2 : tensor<f32>
  return %1 : tensor<f32>
}
)");
  CHECK(p.input_name(0) == "arg0");
  CHECK(p.input_name(1) == "arg1");
  CHECK(p.input_name(2) == "c");
}

TEST_CASE("case and if are read as branches") {
  const std::string text =
      R"(func.func @main(%i: tensor<i32>, %p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.case"(%i) ({
      stablehlo.return %x : tensor<f32>
    }, {
      %2 = stablehlo.negate %x : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %1 = "stablehlo.if"(%p) ({
      stablehlo.return %0 : tensor<f32>
    }, {
      %2 = stablehlo.add %0, %x : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %1 : tensor<f32>
  })";
  const pt::program p = read(text);
  CHECK(pt::evaluate(p, std::int32_t{1}, true, 3.f)[0].item<float>() == -3.f);
  CHECK(pt::evaluate(p, std::int32_t{0}, false, 3.f)[0].item<float>() == 6.f);
}

TEST_CASE("windows that reach to an end are read as running ops") {
  const auto windows = [](const std::string& op, const std::string& padding) {
    return std::string(
        pt::print(
            read(modules::around(
                "%a: tensor<4x8xf32>",
                "    %z = stablehlo.constant dense<" +
                    std::string(op == "add" ? "0" : "0xFF800000") +
                    "> : tensor<f32>\n    %0 = \"stablehlo.reduce_window\"(%a, %z) "
                    "<{window_dimensions = "
                    "array<i64: 1, 8>, padding = dense<[[0, 0], " +
                    padding +
                    "]> : tensor<2x2xi64>}> ({\n    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n" +
                    "      %1 = stablehlo." + op +
                    " %x, %y : tensor<f32>\n      stablehlo.return %1 : tensor<f32>\n    }) : "
                    "(tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>\n    return %0 : "
                    "tensor<4x8xf32>\n")))
            .view());
  };
  const auto has = [](const std::string& all, const std::string& part) {
    return all.find(part) != std::string::npos;
  };
  CHECK(has(windows("add", "[7, 0]"), "cumsum(%a) {dim=1} "));
  CHECK(has(windows("add", "[0, 7]"), "cumsum(%a) {dim=1, reverse} "));
  CHECK(has(windows("maximum", "[7, 0]"), "cumsum(%a) {dim=1, combine=max} "));
  CHECK(has(windows("add", "[6, 1]"), "reduce_window(%a)"));
}

TEST_CASE("argmax and sort by several keys are recognized") {
  const pt::program p = read(
      R"(func.func @main(%x: tensor<5xf32>, %i: tensor<5xi32>, %z: tensor<f32>, %c: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
    %0:2 = stablehlo.reduce(%x init: %z), (%i init: %c) across dimensions = [0] : (tensor<5xf32>, tensor<5xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>)  {
      %1 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.or %1, %2 : tensor<i1>
      %4 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.compare LT, %k, %l, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = stablehlo.and %4, %5 : tensor<i1>
      %7 = stablehlo.or %3, %6 : tensor<i1>
      %8 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<f32>
      %9 = stablehlo.select %7, %k, %l : tensor<i1>, tensor<i32>
      stablehlo.return %8, %9 : tensor<f32>, tensor<i32>
    }
    return %0#0, %0#1 : tensor<f32>, tensor<i32>
  })");
  CHECK(std::string(pt::print(p).view()).find("argmax") != std::string::npos);
  const pt::program q = read(
      R"(func.func @main(%x: tensor<5xi32>, %y: tensor<5xf32>) -> (tensor<5xi32>, tensor<5xf32>) {
    %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
      %1 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<5xi32>, tensor<5xf32>) -> (tensor<5xi32>, tensor<5xf32>)
    return %0#0, %0#1 : tensor<5xi32>, tensor<5xf32>
  })");
  CHECK(q.output_count() == 2);
}

TEST_CASE("reductions by programs of several tensors are read and keep their order") {
  // x -> a x + b, in sequence: a combination that does not commute.
  const auto text = [](const std::string& op, const std::string& shape) {
    const std::string in = "tensor<5xi32>", out = "tensor<" + shape + "i32>";
    return modules::around(
        "%a: " + in + ", %b: " + in + ", %one: tensor<i32>, %zero: tensor<i32>",
        "%0:2 = " + op +
            " ({\n^bb0(%p: tensor<i32>, %q: tensor<i32>, %r: tensor<i32>, %s: tensor<i32>):\n"
            "%1 = stablehlo.multiply %p, %r : tensor<i32>\n"
            "%2 = stablehlo.multiply %q, %r : tensor<i32>\n"
            "%3 = stablehlo.add %2, %s : tensor<i32>\n"
            "stablehlo.return %1, %3 : tensor<i32>, tensor<i32>\n}) : (" +
            in + ", " + in + ", tensor<i32>, tensor<i32>) -> (" + out + ", " + out +
            ")\nreturn %0#0, %0#1 : " + out + ", " + out);
  };
  const xt::xarray<std::int32_t> a{2, 3, 1, 5, 2}, b{1, 0, 4, 2, 7};
  const auto run = [&](const pt::program& p) {
    return pt::evaluate(p, a, b, std::int32_t{1}, std::int32_t{0});
  };
  const auto of = [&](int first, int end) {
    int x = 1, y = 0;
    for (int i = first; i < end; ++i) {
      if (i < 0 || i >= 5) continue;
      y = y * a(i) + b(i);
      x *= a(i);
    }
    return std::pair{x, y};
  };
  const auto all = run(
      read(text("\"stablehlo.reduce\"(%a, %b, %one, %zero) <{dimensions = array<i64: 0>}>", "")));
  CHECK(std::pair{all[0].item<std::int32_t>(), all[1].item<std::int32_t>()} == of(0, 5));
  const auto windows = run(
      read(text("\"stablehlo.reduce_window\"(%a, %b, %one, %zero) <{window_dimensions = array<i64: "
                "3>, window_strides = array<i64: 2>, padding = dense<[[1, 2]]> : tensor<1x2xi64>}>",
                "3x")));
  for (int i = 0; i < 3; ++i)
    CHECK(std::pair{windows[0].data<std::int32_t>()[i], windows[1].data<std::int32_t>()[i]} ==
          of(2 * i - 1, 2 * i + 2));
  const auto mixed = pt::evaluate(
      read(modules::around("%a: tensor<5xi32>, %z: tensor<i32>",
                           body("%0 = stablehlo.reduce(%a init: %z) applies stablehlo.xor across "
                                "dimensions = [0] : (tensor<5xi32>, tensor<i32>) -> tensor<i32>"))),
      a, std::int32_t{8});
  CHECK(mixed[0].item<std::int32_t>() == (2 ^ 3 ^ 1 ^ 5 ^ 2 ^ 8));
  CHECK(
      mistake(text("\"stablehlo.reduce\"(%a, %b, %one, %zero) <{dimensions = array<i64: 7>}>", ""))
          .starts_with("H005 stablehlo: 3:8: stablehlo.reduce: dimension 7 is out of range"));
}

TEST_CASE("indexed columns that count are read as batching dimensions") {
  // x[arange(4), y], and x.at[arange(4), y].add(1), as JAX writes them.
  const std::string indices = R"(%c = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<4> : tensor<4xi32>
    %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %i = stablehlo.iota dim = 0 : tensor<4xi32>
    %l = stablehlo.compare LT, %i, %z, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %m = stablehlo.add %i, %n : tensor<4xi32>
    %s = stablehlo.select %l, %m, %i : tensor<4xi1>, tensor<4xi32>
    %r = stablehlo.reshape %s : (tensor<4xi32>) -> tensor<4x1xi32>
    %q = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %t = stablehlo.concatenate %r, %q, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
    )";
  const auto make = [&](const std::string& rows) {
    const std::string x = "tensor<" + rows + "x3xf32>";
    return read(modules::around(
        "%x: " + x + ", %y: tensor<4xi32>",
        indices +
            "%0 = \"stablehlo.gather\"(%x, %t) <{dimension_numbers = #stablehlo.gather<"
            "collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, "
            "slice_sizes = array<i64: 1, 1>}> : (" +
            x +
            ", tensor<4x2xi32>) -> tensor<4xf32>\n"
            "%1 = \"stablehlo.scatter\"(%x, %t, %0) <{scatter_dimension_numbers = "
            "#stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = "
            "[0, 1], index_vector_dim = 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
            "%2 = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %2 : tensor<f32>\n}) : (" +
            x + ", tensor<4x2xi32>, tensor<4xf32>) -> " + x + "\nreturn %0, %1 : tensor<4xf32>, " +
            x));
  };
  const auto p = make("4");
  const pt::manual_entry rows[] = {{"x", 0}, {"y", 0}};
  const pt::mesh mesh{{"B", 2}};
  const auto r = pt::partition(p, mesh, pt::schedule(pt::manual("B", rows)));
  CHECK(r.collectives.total() == 0);
  const xt::xarray<float> x{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
  const xt::xarray<std::int32_t> y{2, 0, 1, 7};
  const auto made = pt::evaluate(p, x, y);
  const float picked[] = {3, 4, 8, 12};  // (the last index is clamped; its update is dropped)
  for (int i = 0; i < 4; ++i) CHECK(made[0].data<float>()[i] == picked[i]);
  const float added[] = {1, 2, 6, 8, 5, 6, 7, 16, 9, 10, 11, 12};
  for (int i = 0; i < 12; ++i) CHECK(made[1].data<float>()[i] == added[i]);
  CHECK(pt::max_difference(pt::emulate(r, x, y), made) == 0);
  // If there are more rows, the ones that count are not all of them.
  CHECK(std::string(pt::print(make("5")).view()).find("concatenate") != std::string::npos);
}

TEST_CASE(
    "scatters of several tensors: each by itself, or in a loop where they depend on each other") {
  const auto make = [](const std::string& body) {
    return read(modules::around(
        "%x: tensor<6x2xf32>, %y: tensor<6x2xi32>, %i: tensor<4xi32>, %u: tensor<4x2xf32>, "
        "%v: tensor<4x2xi32>",
        "%0:2 = \"stablehlo.scatter\"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n^bb0(%a: tensor<f32>, "
        "%b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):\n" +
            body +
            "}) : (tensor<6x2xf32>, tensor<6x2xi32>, tensor<4xi32>, tensor<4x2xf32>, "
            "tensor<4x2xi32>) -> (tensor<6x2xf32>, tensor<6x2xi32>)\n"
            "return %0#0, %0#1 : tensor<6x2xf32>, tensor<6x2xi32>"));
  };
  const xt::xarray<float> x{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
  const xt::xarray<std::int32_t> y{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
  const xt::xarray<std::int32_t> i{2, 0, 2, 6}, v{{16, 1}, {32, 3}, {2, 64}, {5, 5}};
  const xt::xarray<float> u{{6, 5}, {-1, 9}, {7, 6}, {100, 100}};
  const pt::mesh mesh{{"B", 2}};
  const pt::manual_entry rows[] = {{"x", 0}, {"y", 0}};
  const auto check = [&](const pt::program& p, const float* a, const std::int32_t* b,
                         std::int64_t sums) {
    const auto made = pt::evaluate(p, x, y, i, u, v);
    for (int k = 0; k < 12; ++k) CHECK(made[0].data<float>()[k] == a[k]);
    for (int k = 0; k < 12; ++k) CHECK(made[1].data<std::int32_t>()[k] == b[k]);
    const auto r = pt::partition(p, mesh, pt::schedule(pt::manual("B", rows)));
    CHECK(pt::max_difference(pt::emulate(r, x, y, i, u, v), made) == 0);
    CHECK(r.collectives == pt::collectives{.all_reduce = sums});
  };
  const float added[] = {0, 11, 3, 4, 18, 17, 7, 8, 9, 10, 11, 12};
  const std::int32_t joined[] = {33, 3, 3, 4, 23, 71, 7, 8, 9, 10, 11, 12};
  const auto apart = make(
      "%e = stablehlo.add %a, %c : tensor<f32>\n%f = stablehlo.or %d, %b : tensor<i32>\n"
      "stablehlo.return %e, %f : tensor<f32>, tensor<i32>\n");
  CHECK(std::string(pt::print(apart).view()).find("scan") == std::string::npos);
  check(apart, added, joined, 0);
  const float replaced[] = {-1, 9, 3, 4, 7, 6, 7, 8, 9, 10, 11, 12};
  check(make("stablehlo.return %c, %b : tensor<f32>, tensor<i32>\n"), replaced, y.data(), 0);
  // The greater value and its companion; of equal ones, the earlier.
  const float greatest[] = {1, 9, 3, 4, 7, 6, 7, 8, 9, 10, 11, 12};
  const std::int32_t with[] = {1, 3, 3, 4, 2, 6, 7, 8, 9, 10, 11, 12};
  check(make("%g = stablehlo.compare GT, %c, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
             "%e = stablehlo.select %g, %c, %a : tensor<i1>, tensor<f32>\n"
             "%f = stablehlo.select %g, %d, %b : tensor<i1>, tensor<i32>\n"
             "stablehlo.return %e, %f : tensor<f32>, tensor<i32>\n"),
        greatest, with, 8);  // (each window of each tensor is read once)
}

TEST_CASE(
    "a scatter by a function of its own: windows with batching dimensions, one after the other") {
  const auto p = read(modules::around(
      "%x: tensor<2x5xf32>, %i: tensor<3x2xi32>, %u: tensor<3x2x2xf32>",
      "%0 = \"stablehlo.scatter\"(%x, %i, %u) <{scatter_dimension_numbers = "
      "#stablehlo.scatter<update_window_dims = [2], input_batching_dims = [0], "
      "scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = "
      "2>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%c = stablehlo.constant dense<2.0> : "
      "tensor<f32>\n%d = stablehlo.multiply %a, %c : tensor<f32>\n%e = stablehlo.add %d, %b : "
      "tensor<f32>\nstablehlo.return %e : tensor<f32>\n}) : (tensor<2x5xf32>, tensor<3x2xi32>, "
      "tensor<3x2x2xf32>) -> tensor<2x5xf32>\nreturn %0 : tensor<2x5xf32>"));
  const xt::xarray<float> x{{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}};
  const xt::xarray<std::int32_t> i{{0, 3}, {1, 4}, {1, -1}};  // (two are out of bounds)
  const xt::xarray<float> u{{{1, 1}, {2, 3}}, {{5, 7}, {1, 1}}, {{1, 0}, {1, 1}}};
  const float want[] = {3, 31, 26, 4, 5, 6, 7, 8, 20, 23};
  const auto made = pt::evaluate(p, x, i, u);
  for (int k = 0; k < 10; ++k) CHECK(made[0].data<float>()[k] == want[k]);
}

TEST_CASE("random bits are those that XLA draws on a CPU") {
  const auto bits = [](const std::string& type, std::uint64_t key, std::uint64_t counter) {
    const auto p = read(modules::around(
        "%s: tensor<2xui64>",
        "%state, %bits = stablehlo.rng_bit_generator %s, algorithm =  DEFAULT : (tensor<2xui64>) "
        "-> "
        "(tensor<2xui64>, tensor<" +
            type + ">)\nreturn %state, %bits : tensor<2xui64>, tensor<" + type + ">"));
    return pt::evaluate(p, xt::xarray<std::uint64_t>{key, counter});
  };
  const auto words = bits("7xui32", 5, UINT64_MAX - 1);
  CHECK(words[0].data<std::uint64_t>()[1] == 0);
  CHECK(words[1].data<std::uint32_t>()[0] == 1981577808);
  CHECK(words[1].data<std::uint32_t>()[6] == 2543735481);
  const auto pairs = bits("5xui64", (std::uint64_t{1} << 40) + 3, (std::uint64_t{1} << 33) + 7);
  CHECK(pairs[0].data<std::uint64_t>()[1] == 8589934602);
  CHECK(pairs[1].data<std::uint64_t>()[0] == 17088366599501865851u);
  CHECK(pairs[1].data<std::uint64_t>()[4] == 14386811773227003629u);
  CHECK(bits("2x3xui8", 5, UINT64_MAX - 1)[1].data<std::uint8_t>()[4] == 186);
}

TEST_CASE("tuples are read as their values") {
  const auto p = read(
      "func.func @pair(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tuple<tensor<2xf32>, "
      "tensor<3xf32>> {\n"
      "%0 = stablehlo.tuple %a, %b : tuple<tensor<2xf32>, tensor<3xf32>>\n"
      "return %0 : tuple<tensor<2xf32>, tensor<3xf32>>\n}\n" +
      modules::around(
          "%a: tensor<2xf32>, %b: tensor<3xf32>",
          "%0 = call @pair(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tuple<tensor<2xf32>, "
          "tensor<3xf32>>\n%1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xf32>, "
          "tensor<3xf32>>) -> tensor<3xf32>\n%2 = \"stablehlo.get_tuple_element\"(%0) <{index = 0 "
          ": "
          "i32}> : (tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<2xf32>\n"
          "return %1, %2 : tensor<3xf32>, tensor<2xf32>"));
  CHECK(p.outputs[0].value == p.inputs[1]);
  CHECK(p.outputs[1].value == p.inputs[0]);
  CHECK(mistake(modules::around(
                    "%a: tensor<2xf32>, %b: tensor<3xf32>",
                    "%0 = stablehlo.tuple %a, %b : tuple<tensor<2xf32>, tensor<3xf32>>\n%1 = "
                    "stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xf32>, tensor<4xf32>>) -> "
                    "tensor<3xf32>\nreturn %1 : tensor<3xf32>"))
            .starts_with("H007 stablehlo: 4:6: stablehlo.get_tuple_element: operand %0 has type"));
  CHECK(mistake(modules::around("%a: tensor<2xf32>",
                                "%0 = stablehlo.tuple %a : tuple<tensor<2xf32>>\n%1 = "
                                "stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xf32>>) -> "
                                "tensor<2xf32>\nreturn %1 : tensor<2xf32>"))
            .starts_with("H005 stablehlo: 4:6: stablehlo.get_tuple_element: element 1 of a tuple"));
}

TEST_CASE("custom calls that mean an op are read as the op") {
  const auto p = read(modules::around(
      "%a: tensor<2x2xf32>, %b: tensor<2x1xf32>",
      "%0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : "
      "ui8}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)\n"
      "%1 = stablehlo.custom_call @lapack_strsm_ffi(%0#0, %b) {mhlo.backend_config = {diag = 78 : "
      "ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}} : (tensor<2x2xf32>, "
      "tensor<2x1xf32>) -> tensor<2x1xf32>\n"
      "return %0#0, %0#1, %1 : tensor<2x2xf32>, tensor<i32>, tensor<2x1xf32>"));
  xt::xarray<float> right = xt::ones<float>({2, 1});
  right(0, 0) = 3;
  right(1, 0) = 2;
  const auto r = pt::evaluate(p, xt::xarray<float>{{4, 2}, {2, 5}}, right);
  CHECK(r[0].data<float>()[2] == 1);  // (the factor is (2, 0; 1, 2))
  CHECK(r[0].data<float>()[1] == 2);  // unchanged
  CHECK(r[1].item<std::int32_t>() == 0);
  CHECK(r[2].data<float>()[0] == 1);
  const auto top = read(
      "func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> "
      "tensor<i1> {\n %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> "
      "tensor<i1>\n stablehlo.return %0 : tensor<i1>\n}\n" +
      modules::around(
          "%x: tensor<4xf32>, %i: tensor<4xi32>, %n: tensor<f32>, %m: tensor<i32>",
          "%0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %n, %m) {called_computations = "
          "[@greater], mhlo.backend_config = {aggregate_to_topk = true, reduction_dim = 0 : i64, "
          "top_k = 2 : i64}} : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> "
          "(tensor<2xf32>, tensor<2xi32>)\nreturn %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>"));
  const auto best = pt::evaluate(top, xt::xarray<float>{1, 7, 3, 5},
                                 xt::xarray<std::int32_t>{10, 11, 12, 13}, 0.f, std::int32_t{0});
  CHECK(best[0].data<float>()[1] == 5);
  CHECK(best[1].data<std::int32_t>()[1] == 13);
  // The factors of cuSOLVER and hipSOLVER equal LAPACK's; layouts and groups of shardings change
  // nothing.
  for (const std::string library : {"cusolver", "hipsolver"}) {
    const auto factor = read(modules::around(
        "%a: tensor<2x2xf32>",
        "%0:2 = stablehlo.custom_call @" + library +
            "_potrf_ffi(%a) {mhlo.backend_config = {lower = true}} : (tensor<2x2xf32>) -> "
            "(tensor<2x2xf32>, tensor<i32>)\n%1 = stablehlo.custom_call @LayoutConstraint(%0#0) "
            "{operand_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x2xf32>) -> "
            "tensor<2x2xf32>\nsdy.sharding_group %1 group_id = 21 : tensor<2x2xf32>\n"
            "\"sdy.sharding_group\"(%1) <{group_id = 21 : i64}> : (tensor<2x2xf32>) -> ()\n"
            "return %1, %0#1 : tensor<2x2xf32>, tensor<i32>"));
    const auto made = pt::evaluate(factor, xt::xarray<float>{{4, 2}, {2, 5}});
    CHECK(made[0].data<float>()[2] == 1);
    CHECK(made[0].data<float>()[1] == 2);
  }
  CHECK(mistake(modules::around("",
                                "stablehlo.custom_call @xla_ffi_python_cpu_callback() : () -> ()"
                                "\nreturn"))
            .find("calls Python") != std::string::npos);
}

TEST_CASE("the module of the talk is read") {
  const pt::program p = read(
      "func @mlp(%x : tensor<16x256xf32>,\n %w1 : tensor<256x256xf32>){\n %0 = "
      "\"matmul\"(%x, %w1)\n %1 = \"matmul\"(%0, %w1)\n return %1\n}\n");
  CHECK(p.input_name(1) == "w1");
  CHECK(p.output_type(0).shape == pt::shape{16, 256});
}

TEST_CASE("errors have line, column and a fix") {
  const auto of = [](std::string_view op) {
    return mistake(modules::around("%a: tensor<4xf32>", body(op)));
  };
  CHECK(of("%0 = stablehlo.fft %a : tensor<4xf32>") ==
        "H004 stablehlo: 3:6: op \"stablehlo.fft\" is unknown; known: abs, add, "
        "and, atan2, cbrt, ceil, clamp, cosine and 106 more; did you mean \"not\"?");
  CHECK(of("%0 = stablehlo.add %a, %b : tensor<4xf32>") ==
        "H006 stablehlo: 3:6: %b is used before it is defined, or not defined at all");
  CHECK(of("%0 = stablehlo.abs %a : tensor<5xf32>") ==
        "H007 stablehlo: 3:6: stablehlo.abs: operand %a has type tensor<4xf32>; the text states "
        "tensor<5xf32>");
  CHECK(of("%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>") ==
        "H008 stablehlo: 3:6: stablehlo.constant: a constant of type tensor<3xi32> has 3 elements "
        "along dimension 0; 2 are given");
  CHECK(of("%0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xcomplex<f32>>") ==
        "H003 stablehlo: 3:48: element type complex<f32> is not supported; f16, bf16, f32, f64, "
        "i1, i8 to "
        "i64 and ui8 to ui64 are");
  CHECK(of("%0 = stablehlo.abs %a : tensor<?xf32>")
            .starts_with(
                "H003 stablehlo: 3:25: a type of dynamic shape, tensor<?xf32>, is not supported"));
  CHECK(of("%0 = stablehlo.custom_call @cu_threefry(%a) : (tensor<4xf32>) -> tensor<4xf32>")
            .starts_with("H013 stablehlo: 3:6: stablehlo.custom_call: target \"cu_threefry\""));
  CHECK(of("%0 = stablehlo.convolution(%a, %a) dim_numbers = [f]x[i, o]->[b, f], window = {} "
           "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4xf32>, "
           "tensor<4xf32>) -> tensor<4xf32>")
            .starts_with("H005 stablehlo: 3:6: stablehlo.convolution: dimension numbers [f]x"));
  CHECK(mistake("module @m {\n  func.func @main() {\n").starts_with("H002 stablehlo: 2:21"));
  CHECK(mistake("") == "H010 stablehlo: function @main is missing among 0 functions");
  CHECK(mistake("func.func @f(%a: tensor<f32>) -> tensor<f32> {\n %0 = call @f(%a) : (tensor<f32>) "
                "-> tensor<f32>\n return %0 : tensor<f32>\n}\nfunc.func @main(%a: tensor<f32>) -> "
                "tensor<f32> {\n %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>\n return %0 : "
                "tensor<f32>\n}") == "H011 stablehlo: 2:7: @f calls itself");
  CHECK(of("%0 = stablehlo.abs %a : tensor<4xf32>\n %0 = stablehlo.abs %a : tensor<4xf32>")
            .starts_with("H006 stablehlo: 4:7: %0 is defined twice"));
}

TEST_CASE("no text makes the reader crash or hang") {
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  std::vector<std::string> whole;
  for (const auto& each : modules::ops)
    for (std::string_view form : {each.pretty, each.generic})
      whole.push_back(modules::around(each.arguments, body(form)));
  const char* const cases = std::getenv("PARTITA_FUZZ");
  const std::uint64_t count = cases != nullptr ? std::strtoull(cases, nullptr, 10) : 20000;
  constexpr std::string_view pieces[] = {"%",
                                         "(",
                                         ")",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "<",
                                         ">",
                                         "\"",
                                         ":",
                                         ",",
                                         "=",
                                         "->",
                                         "tensor<4xf32>",
                                         "stablehlo.add",
                                         "9999999999999999999",
                                         "-1",
                                         "dense<",
                                         "\n",
                                         "^bb0",
                                         "loc(",
                                         "#",
                                         "@",
                                         "x",
                                         "init",
                                         "1"};
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string text = whole[draw(whole.size())];
    for (std::uint64_t k = draw(4) + 1; k > 0 && !text.empty(); --k) {
      const std::size_t at = draw(text.size());
      switch (draw(5)) {
        case 0:
          text.erase(at, draw(8) + 1);
          break;
        case 1:
          text.resize(at);
          break;
        case 2:
          text.insert(at, pieces[draw(std::size(pieces))]);
          break;
        case 3:
          text[at] = static_cast<char>(draw(128));
          break;
        default:
          text.insert(at, text.substr(draw(text.size()), draw(30)));
      }
    }
    const pt::program p = pt::read_stablehlo(text);
    refused += p.error ? 1 : 0;
    if (p.error) CHECK(p.error.message.size() > 8);
  }
  CHECK(refused > count / 2);
}
