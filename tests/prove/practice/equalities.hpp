/// The laws that source programs are known equal by, each with what is nearly one.
#pragma once

#include "cases.hpp"

namespace practice {

/// Two programs of two matrices and a mistake in the second; "B" cuts the rows of both.
inline practice_case of_matrices(std::string_view name, std::string_view source,
                                 std::string_view local, std::vector<mistake> mistakes) {
  return {name,
          source,
          local,
          {R"([{"B"}, {}])", R"([{"B"}, {}])"},
          {R"([{"B"}, {}])"},
          std::move(mistakes),
          equality::up_to_sums,
          4};
}
/// Their result is a vector that all devices have.
inline practice_case of_columns(std::string_view name, std::string_view source,
                                std::string_view local, std::vector<mistake> mistakes) {
  practice_case c = of_matrices(name, source, local, std::move(mistakes));
  c.outputs = {"[{}]"};
  return c;
}

inline std::vector<practice_case> equalities() {
  return {
      of_matrices(
          "sums in another order", R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %c = tanh(%a) : tensor<4x4xf32>
  %s = add(%b, %c) : tensor<4x4xf32>
  %y = add(%a, %s) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %c = tanh(%a) : tensor<2x4xf32>
  %s = add(%c, %a) : tensor<2x4xf32>
  %y = add(%s, %b) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"one of them twice", {{"add(%s, %b)", "add(%s, %c)"}}, {"%y"}}}),
      of_matrices(
          "sums and maxima that start from what changes nothing",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %m = maximum(%a, %b) : tensor<4x4xf32>
  %y = add(%m, %b) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %zero = constant {0} : tensor<f32>
  %low = constant {-inf} : tensor<f32>
  %n = maximum(%low, %a) : tensor<2x4xf32>
  %m = maximum(%n, %b) : tensor<2x4xf32>
  %s = add(%zero, %m) : tensor<2x4xf32>
  %y = add(%s, %b) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"another number", {{"constant {0}", "constant {1}"}}, {"%s", "%y"}},
           {"a bound", {{"constant {-inf}", "constant {0}"}}, {"%n", "%m", "%y"}}}),
      of_matrices(
          "differences and multiples",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %d = subtract(%a, %b) : tensor<4x4xf32>
  %y = add(%d, %d) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %d = subtract(%b, %a) : tensor<2x4xf32>
  %c = constant {-2} : tensor<f32>
  %y = multiply(%c, %d) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"another sign", {{"constant {-2}", "constant {2}"}}, {"%y"}},
           {"another number", {{"constant {-2}", "constant {-1}"}}, {"%y"}}}),
      of_matrices(
          "products in another order",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %ab = multiply(%a, %b) : tensor<4x4xf32>
  %aab = multiply(%a, %ab) : tensor<4x4xf32>
  %c = constant {6} : tensor<f32>
  %y = multiply(%aab, %c) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %two = constant {2} : tensor<f32>
  %third = constant {0.25} : tensor<f32>
  %a2 = multiply(%two, %a) : tensor<2x4xf32>
  %b3 = multiply(%b, %a) : tensor<2x4xf32>
  %b4 = divide(%b3, %third) : tensor<2x4xf32>
  %n = constant {0.75} : tensor<f32>
  %p = multiply(%a2, %b4) : tensor<2x4xf32>
  %y = multiply(%p, %n) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"one factor is another", {{"multiply(%b, %a)", "multiply(%b, %b)"}}, {"%y"}},
           {"multiplied where it is divided", {{"divide(%b3", "multiply(%b3"}}, {"%y"}}}),
      of_matrices(
          "the greatest of several",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %c = tanh(%b) : tensor<4x4xf32>
  %m = maximum(%a, %b) : tensor<4x4xf32>
  %y = maximum(%m, %c) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %c = tanh(%b) : tensor<2x4xf32>
  %m = maximum(%c, %a) : tensor<2x4xf32>
  %n = maximum(%b, %a) : tensor<2x4xf32>
  %y = maximum(%n, %m) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"one of them forgotten", {{"maximum(%b, %a)", "maximum(%c, %a)"}}, {"%y"}}}),
      of_matrices(
          "comparisons turned", R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %c = compare(%a, %b) {gt} : tensor<4x4xi1>
  %y = select(%c, %a, %b) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %c = compare(%b, %a) {lt} : tensor<2x4xi1>
  %y = select(%c, %a, %b) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"operands exchanged", {{"compare(%b, %a)", "compare(%a, %b)"}}, {"%y"}}}),
      of_columns(
          "a sum in two steps", R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %p = multiply(%a, %b) : tensor<4x4xf32>
  %s = reduce(%p) {add, dims=[0, 1]} : tensor<f32>
  %y = broadcast_in_dim(%s) {dims=[]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %p = multiply(%a, %b) : tensor<2x4xf32>
  %r = reduce(%p) {add, dims=[0]} : tensor<4xf32>
  %g = all_reduce <"B"> %r : tensor<4xf32>
  %s = reduce(%g) {add, dims=[0]} : tensor<f32>
  %y = broadcast_in_dim(%s) {dims=[]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"the greatest of sums", {{"reduce(%g) {add", "reduce(%g) {max"}}, {"%s", "%y"}}}),
      of_columns(
          "two steps at once", R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %p = multiply(%a, %b) : tensor<4x4xf32>
  %r = reduce(%p) {add, dims=[1]} : tensor<4xf32>
  %s = reduce(%r) {add, dims=[0]} : tensor<f32>
  %y = broadcast_in_dim(%s) {dims=[]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %p = multiply(%a, %b) : tensor<2x4xf32>
  %s = reduce(%p) {add, dims=[0, 1]} : tensor<f32>
  %g = all_reduce <"B"> %s : tensor<f32>
  %y = broadcast_in_dim(%g) {dims=[]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"not reduced", {{"broadcast_in_dim(%g)", "broadcast_in_dim(%s)"}}, {"%y"}}}),
      of_columns(
          "blocks of a sum", R"(func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) {
  %p = add(%a, %b) : tensor<8x4xf32>
  %y = reduce(%p) {add, dims=[0]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) attributes {mesh = {"B":2}} {
  %p = add(%a, %b) : tensor<4x4xf32>
  %p0 = slice(%p) {[0:2, :]} : tensor<2x4xf32>
  %p1 = slice(%p) {[2:4, :]} : tensor<2x4xf32>
  %s0 = reduce(%p0) {add, dims=[0]} : tensor<4xf32>
  %s1 = reduce(%p1) {add, dims=[0]} : tensor<4xf32>
  %s = add(%s1, %s0) : tensor<4xf32>
  %y = all_reduce <"B"> %s : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"one block twice", {{"add(%s1, %s0)", "add(%s1, %s1)"}}, {"%s", "%y"}},
           {"blocks of other rows",
            {{"slice(%p) {[2:4, :]}", "slice(%p) {[0:2, :]}"}},
            {"%s", "%y"}}}),
      of_columns(
          "products, transposed and exchanged",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %m = dot_general(%a, %b) {contract=[0]x[0]} : tensor<4x4xf32>
  %e = exp(%m) : tensor<4x4xf32>
  %y = reduce(%e) {add, dims=[1]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %t = transpose(%b) {dims=[1, 0]} : tensor<4x2xf32>
  %m = matmul(%t, %a) : tensor<4x4xf32>
  %g = all_reduce <"B"> %m : tensor<4x4xf32>
  %e = exp(%g) : tensor<4x4xf32>
  %y = reduce(%e) {add, dims=[0]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"of the other dimension",
            {{"dims=[0]} : tensor<4xf32>", "dims=[1]} : tensor<4xf32>"}},
            {"%y"}},
           {"reduced behind the exponential",
            {{R"(  %g = all_reduce <"B"> %m : tensor<4x4xf32>
  %e = exp(%g) : tensor<4x4xf32>
)",
              R"(  %f = exp(%m) : tensor<4x4xf32>
  %e = all_reduce <"B"> %f : tensor<4x4xf32>
)"}},
            {"%f"}}}),
      of_columns(
          "devices as a dimension", R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %p = multiply(%a, %b) : tensor<4x4xf32>
  %e = exp(%p) : tensor<4x4xf32>
  %y = reduce(%e) {max, dims=[0]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %p = multiply(%a, %b) : tensor<2x4xf32>
  %e = exp(%p) : tensor<2x4xf32>
  %g = all_reduce <@max> <"B"> %e : tensor<2x4xf32>
  %y = reduce(%g) {max, dims=[0]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"the sum of devices",
            {{"all_reduce <@max> <\"B\">", "all_reduce <\"B\">"}},
            {"%g", "%y"}}}),
  };
}

}  // namespace practice
