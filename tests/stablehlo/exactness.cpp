// The exactness of ops (precision, algorithm, accuracy) survives reading, printing, parsing and
// writing, in every place that can contain ops, and partitioning and derivatives; it is proved.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <partita/op/parse.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/report/report.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_annotated.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr std::string_view tolerance =
    "#stablehlo.result_accuracy<atol = 1.000000e-03, rtol = 1.000000e-05, ulps = 2, mode = "
    "#stablehlo.result_accuracy_mode<TOLERANCE>>";
constexpr std::string_view highest =
    "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>";
constexpr std::string_view algorithm =
    "<lhs_precision_type = tf32, rhs_precision_type = bf16, accumulation_type = f32, "
    "lhs_component_count = 1, rhs_component_count = 2, num_primitive_operations = 3, "
    "allow_imprecise_accumulation = true>";

/// An op of tensor<4x4xf32> and %a, in the pretty and the generic form, and as this library prints
/// it.
struct form {
  std::string pretty, generic, printed;
};
std::vector<form> forms() {
  const std::string two = " : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>";
  const std::string dims =
      "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
      "rhs_contracting_dimensions = [0]>";
  std::vector<form> list = {
      {"stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [HIGH, HIGHEST]" +
           two,
       "\"stablehlo.dot_general\"(%a, %a) <{" + dims +
           ", precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGHEST>]}>" +
           two,
       "precision=[high, highest]"},
      {"stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [DEFAULT, "
       "DEFAULT], algorithm = " +
           str(algorithm) + two,
       "\"stablehlo.dot_general\"(%a, %a) <{algorithm = #stablehlo.dot_algorithm" + str(algorithm) +
           ", " + dims + "}>" + two,
       "algorithm=[tf32, bf16, f32, 1, 2, 3, imprecise]"},
      {"stablehlo.dot %a, %a, precision = [HIGHEST, HIGHEST]" + two,
       "\"stablehlo.dot\"(%a, %a) <{precision_config = [#stablehlo<precision HIGHEST>, "
       "#stablehlo<precision HIGHEST>]}>" +
           two,
       "precision=[highest, highest]"},
      {"stablehlo.convolution(%a, %a) dim_numbers = [b, f]x[i, o]->[b, f], window = {} "
       "{batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = "
       "[#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}" +
           two,
       "\"stablehlo.convolution\"(%a, %a) <{batch_group_count = 1 : i64, dimension_numbers = "
       "#stablehlo.conv<[b, f]x[i, o]->[b, f]>, feature_group_count = 1 : i64, precision_config = "
       "[#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}>" +
           two,
       "precision=[default, highest]"}};
  for (const std::string name :
       {"cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic",
        "rsqrt", "sine", "sqrt", "tan", "tanh"}) {
    list.push_back(
        {"stablehlo." + name + " %a {result_accuracy = " + str(highest) + "} : tensor<4x4xf32>",
         "\"stablehlo." + name + "\"(%a) <{result_accuracy = " + str(highest) +
             "}> : (tensor<4x4xf32>) -> tensor<4x4xf32>",
         "accuracy=highest"});
    list.push_back(
        {"stablehlo." + name + " %a {result_accuracy = " + str(tolerance) + "} : tensor<4x4xf32>",
         "\"stablehlo." + name + "\"(%a) <{result_accuracy = " + str(tolerance) +
             "}> : (tensor<4x4xf32>) -> tensor<4x4xf32>",
         "accuracy=[0.001, 1e-5, 2]"});
  }
  return list;
}
/// Places that can contain ops; `$` is the op.
const std::vector<std::string> places = {
    R"(func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = $
  return %r : tensor<4x4xf32>
})",
    R"(func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = call @f(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func private @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = $
  return %r : tensor<4x4xf32>
})",
    R"(func.func @main(%x: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %o:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<4x4xf32>
  cond {
    %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.subtract %i, %one : tensor<i32>
    %r = $
    stablehlo.return %j, %r : tensor<i32>, tensor<4x4xf32>
  }
  return %o#1 : tensor<4x4xf32>
})",
    // (A counting loop, which is read as a scan.)
    R"(func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<3> : tensor<i32>
  %o:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4x4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %r = $
    stablehlo.return %j, %r : tensor<i32>, tensor<4x4xf32>
  }
  return %o#1 : tensor<4x4xf32>
})",
    R"(func.func @main(%a: tensor<4x4xf32>, %i: tensor<i32>) -> tensor<4x4xf32> {
  %o = "stablehlo.case"(%i) ({
    %r = $
    stablehlo.return %r : tensor<4x4xf32>
  }, {
    stablehlo.return %a : tensor<4x4xf32>
  }) : (tensor<i32>) -> tensor<4x4xf32>
  return %o : tensor<4x4xf32>
})"};
std::string put(const std::string& place, const std::string& op) {
  std::string all = place;
  return all.replace(all.find('$'), 1, op);
}
int exact_ops(const pt::program& p) {
  int n = 0;
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    n += p.numerics(o).empty() ? 0 : 1;
    for (const auto& r : p.regions_of(o)) n += exact_ops(r);
  }
  return n;
}

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr pt::dot_algorithm bf16{
    pt::float_format::bf16, pt::float_format::bf16, pt::float_format::f32, 1, 1, 6};

}  // namespace

TEST_CASE("exactness: read, printed, parsed and written in every place") {
  for (const form& f : forms())
    for (const std::string& place : places)
      for (const std::string& op : {f.pretty, f.generic}) {
        const std::string module = put(place, op);
        const pt::program p = pt::read_stablehlo(module);
        REQUIRE_MESSAGE(!p.error, str(p.error.message), "\n", module);
        CHECK(exact_ops(p) == 1);
        const std::string printed = str(pt::print(p));
        CHECK_MESSAGE(printed.find(f.printed) != std::string::npos, printed);
        const pt::program parsed = pt::parse(printed);
        CHECK_MESSAGE(pt::equivalent(parsed, p), str(parsed.error.message), "\n", printed);
        const pt::text written = pt::write_stablehlo(p);
        const pt::program again = pt::read_stablehlo(written);
        CHECK_MESSAGE(pt::same_code(again, p), str(again.error.message), "\n", str(written));
        CHECK(pt::hash_of_code(again) == pt::hash_of_code(p));
      }
}

TEST_CASE("exactness: partitioned, written for a device and proved; another one is not proved") {
  for (const form& f : forms())
    for (const std::string& place : places) {
      const pt::program p = pt::read_stablehlo(put(place, f.pretty));
      REQUIRE(!p.error);
      const std::string first = str(p.input_name(0));
      const pt::partitioned r = pt::partition(
          p, mesh, pt::schedule(pt::manual("B", {{first, 0}}), pt::manual("M", {{first, 1}})));
      REQUIRE_MESSAGE(!r.error, str(r.error.message));
      CHECK(exact_ops(r.device.local) == 1);
      const std::string local = str(pt::write_stablehlo(r.device));
      const pt::device_program back = pt::read_local_stablehlo(local, mesh);
      REQUIRE_MESSAGE(!back.local.error, str(back.local.error.message), "\n", local);
      CHECK(exact_ops(back.local) == 1);
      const pt::verdict v = pt::prove(p, back);
      CHECK_MESSAGE(v.proved, str(v.error.message), "\n", local);
      CHECK(exact_ops(pt::read_stablehlo(pt::write_annotated_stablehlo(r))) == 1);
      CHECK(str(pt::report(r)).find("1 op sets its precision or accuracy (") != std::string::npos);
      // The same program without it.
      pt::device_program usual = r.device;
      for (pt::program* q = &usual.local; q != nullptr;) {
        pt::program* next = nullptr;
        for (pt::op_id o = 0; o < q->op_count(); ++o)
          q->op(o).attr_count -= static_cast<int>(q->numerics(o).size());
        for (auto& each : q->regions)
          if (exact_ops(each) > 0) next = &each;
        q = next;
      }
      CHECK(exact_ops(usual.local) == 0);
      const pt::verdict w = pt::prove(p, usual);
      CHECK_MESSAGE(!w.proved, f.pretty, "\n", place);
    }
}

TEST_CASE("exactness: derivatives have that of JAX") {
  const pt::program p = pt::trace(
      [](const auto& x, const auto& w) {
        return pt::grad(
            [&](const auto& v) {
              constexpr pt::product_precision uneven(pt::precision::high, pt::precision::highest);
              const auto h = matmul<uneven>(x, v);
              return sum(pt::einsum<"ij,jk->ik", bf16>(h, v));
            },
            w);
      },
      pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w"));
  const std::string printed = str(pt::print(p));
  // The cotangent of w in x w is x^T g, computed as x times g.
  CHECK(printed.find("dot_general(%x, %w) {contract=[1]x[0], precision=[high, highest]}") !=
        std::string::npos);
  CHECK_MESSAGE(printed.find("{contract=[0]x[0], precision=[highest, high]}") != std::string::npos,
                printed);
  std::size_t algorithms = 0;
  for (std::size_t at = 0;
       (at = printed.find("algorithm=[bf16, bf16, f32, 1, 1, 6]", at)) != std::string::npos; ++at)
    ++algorithms;
  CHECK(algorithms == 2);  // (the sum needs no product, but two cotangents)
  pt::builder b;
  const pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {4}});
  pt::accuracy best;
  best.mode = pt::accuracy::highest;
  const pt::value_id y = pt::ops::sine(b, x, best);
  const pt::value_id g = pt::ops::parameter(b, "g", {pt::dtype::f32, {4}});
  pt::vec<pt::value_id> to(1, -1);
  pt::derive_context c{b, b.p.producer(y), g, to, pt::vec<char>(1, 1)};
  pt::def<pt::op::sine>.derive(c);
  CHECK(exact_ops(b.p) == 2);
}

TEST_CASE("exactness: ragged products keep it") {
  const pt::program p = pt::read_stablehlo(R"(
func.func @main(%a: tensor<8x4xf32>, %b: tensor<2x4x6xf32>, %g: tensor<2xi32>) -> tensor<8x6xf32> {
  %r = "chlo.ragged_dot"(%a, %b, %g) <{precision_config = [#chlo<precision HIGHEST>, #chlo<precision HIGH>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<2x4x6xf32>, tensor<2xi32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
})");
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  CHECK(str(pt::print(p)).find("precision=[highest, high]") != std::string::npos);
}

TEST_CASE("exactness: an invalid one is an error") {
  const std::string dot = "stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], ";
  const std::string two = " : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>";
  for (const auto& [op, message] : std::vector<std::pair<std::string, std::string>>{
           {dot + "precision = [LOW, HIGH]" + two,
            "is not a list of two of DEFAULT, HIGH, HIGHEST"},
           {dot + "precision = [HIGH]" + two, "is not a list of two of DEFAULT, HIGH, HIGHEST"},
           {dot + "algorithm = <lhs_precision_type = f37>" + two,
            "algorithm: lhs_precision_type = \"f37\" is not a floating-point format"},
           {"stablehlo.abs %a {result_accuracy = " + str(highest) + "} : tensor<4x4xf32>",
            "attribute result_accuracy is not one of this op"},
           {"stablehlo.tanh %a {result_accuracy = #stablehlo.result_accuracy<mode = "
            "#stablehlo.result_accuracy_mode<BEST>>} : tensor<4x4xf32>",
            "mode \"BEST\" is not one of DEFAULT, HIGHEST, TOLERANCE"}}) {
    const pt::program p = pt::read_stablehlo(put(places[0], op));
    CHECK_MESSAGE(str(p.error.message).find(message) != std::string::npos, str(p.error.message));
    CHECK(str(p.error.message).starts_with("H005"));
  }
}
