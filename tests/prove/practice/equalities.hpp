/// The laws by which source programs are known to be equal, each with a similar equation that is
/// wrong.
#pragma once

#include "cases.hpp"

namespace practice {

/// Two programs of two matrices and a mistake in the second; "B" slices the rows of both.
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
/// The result is a vector that all devices have.
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
      of_matrices(
          "a choice by numbers that are known",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %c = tanh(%a) : tensor<4x4xf32>
  %y = add(%c, %b) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %rows = constant {32} : tensor<f32>
  %less = constant {1} : tensor<i32>
  %k = convert(%less) : tensor<f32>
  %n = subtract(%rows, %k) : tensor<f32>
  %zero = constant {0} : tensor<f32>
  %f = compare(%n, %zero) {gt} : tensor<i1>
  %flags = broadcast_in_dim(%f) {dims=[]} : tensor<2x4xi1>
  %c = tanh(%a) : tensor<2x4xf32>
  %other = exp(%b) : tensor<2x4xf32>
  %s = select(%flags, %c, %other) : tensor<2x4xf32>
  %y = add(%s, %b) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"it never holds", {{"{gt}", "{lt}"}}, {"%other", "%s", "%y"}},
           {"another number", {{"constant {32}", "constant {1}"}}, {"%other", "%s", "%y"}}}),
      of_matrices(
          "comparisons of what lies between known numbers",
          R"(func @main(%a: tensor<4x4xi32>, %b: tensor<4x4xi32>) {
  %zero = constant {0} : tensor<i32>
  %m = maximum(%a, %zero) : tensor<4x4xi32>
  %y = add(%m, %b) : tensor<4x4xi32>
  return %y : tensor<4x4xi32>
}
)",
          R"(func @main(%a: tensor<2x4xi32>, %b: tensor<2x4xi32>) attributes {mesh = {"B":2}} {
  %zero = constant {0} : tensor<i32>
  %m = maximum(%zero, %a) : tensor<2x4xi32>
  %below = compare(%m, %zero) {lt} : tensor<2x4xi1>
  %rows = constant {8} : tensor<i32>
  %n = add(%m, %rows) : tensor<2x4xi32>
  %s = select(%below, %n, %m) : tensor<2x4xi32>
  %y = add(%b, %s) : tensor<2x4xi32>
  return %y : tensor<2x4xi32>
}
)",
          {{"a number that it may be", {{"{lt}", "{le}"}}, {"%below", "%n", "%s", "%y"}}}),
      of_columns(
          "whether some hold, as the greatest number",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %c = compare(%a, %b) {gt} : tensor<4x4xi1>
  %r = reduce(%c) {or, dims=[0]} : tensor<4xi1>
  %y = convert(%r) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %c = compare(%a, %b) {gt} : tensor<2x4xi1>
  %r = reduce(%c) {or, dims=[0]} : tensor<4xi1>
  %n = convert(%r) : tensor<4xi32>
  %g = all_reduce <@max> <"B"> %n : tensor<4xi32>
  %zero = constant {0} : tensor<i32>
  %f = compare(%g, %zero) {gt} : tensor<4xi1>
  %y = convert(%f) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"whether all devices have some", {{"<@max>", "<@min>"}}, {"%g", "%n"}},
           {"whether none holds",
            {{"compare(%g, %zero) {gt}", "compare(%g, %zero) {eq}"}},
            {"%f", "%y"}}}),
      of_columns(
          "whether all hold, as the least number",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %c = compare(%a, %b) {gt} : tensor<4x4xi1>
  %r = reduce(%c) {and, dims=[0]} : tensor<4xi1>
  %y = convert(%r) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %c = compare(%a, %b) {gt} : tensor<2x4xi1>
  %r = reduce(%c) {and, dims=[0]} : tensor<4xi1>
  %n = convert(%r) : tensor<4xi32>
  %g = all_reduce <@min> <"B"> %n : tensor<4xi32>
  %y = convert(%g) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"whether some device has all", {{"<@min>", "<@max>"}}, {"%g", "%n"}}}),
      of_columns(
          "the greatest of the same elements",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %r = reduce(%a) {max, dims=[0]} : tensor<4xf32>
  %y = tanh(%r) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %r = reduce(%a) {max, dims=[0]} : tensor<4xf32>
  %g = all_reduce <@max> <"B"> %r : tensor<4xf32>
  %again = broadcast_in_dim(%g) {dims=[1]} : tensor<3x4xf32>
  %m = reduce(%again) {max, dims=[0]} : tensor<4xf32>
  %y = tanh(%m) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"their sum", {{"reduce(%again) {max", "reduce(%again) {add"}}, {"%m", "%y"}}}),
      // As in JAX: negative numbers count from the end, but none is negative. Indices of rows of
      // other blocks read the first row.
      {"a lookup of rows by indices that are chosen where they are of this piece",
       R"(func @main(%table: tensor<8x4xf32>, %rows: tensor<6xi32>) {
  %zero = constant {0} : tensor<i32>
  %last = constant {7} : tensor<i32>
  %row = clamp(%zero, %rows, %last) : tensor<6xi32>
  %y = gather(%table, %row) : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
)",
       R"(func @main(%table: tensor<4x4xf32>, %rows: tensor<6xi32>) attributes {mesh = {"B":2}} {
  %zero = constant {0} : tensor<i32>
  %last = constant {7} : tensor<i32>
  %row = clamp(%zero, %rows, %last) : tensor<6xi32>
  %start = shard_start {4 <"B">} : tensor<i32>
  %size = constant {4} : tensor<i32>
  %end = add(%start, %size) : tensor<i32>
  %from = compare(%row, %start) {ge} : tensor<6xi1>
  %to = compare(%row, %end) {lt} : tensor<6xi1>
  %here = and(%from, %to) : tensor<6xi1>
  %own = subtract(%row, %start) : tensor<6xi32>
  %chosen = select(%here, %own, %zero) : tensor<6xi32>
  %below = compare(%chosen, %zero) {lt} : tensor<6xi1>
  %behind = add(%chosen, %size) : tensor<6xi32>
  %index = select(%below, %behind, %chosen) : tensor<6xi32>
  %h = gather(%table, %index) : tensor<6x4xf32>
  %t = transpose(%h) {dims=[1, 0]} : tensor<4x6xf32>
  %mask = broadcast_in_dim(%here) {dims=[1]} : tensor<4x6xi1>
  %nothing = constant {0} : tensor<f32>
  %part = select(%mask, %t, %nothing) : tensor<4x6xf32>
  %sum = all_reduce <"B"> %part : tensor<4x6xf32>
  %y = transpose(%sum) {dims=[1, 0]} : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
)",
       {R"([{"B"}, {}])", R"([{}])"},
       {R"([{}, {}])"},
       {{"a row of the next piece, too",
         {{"compare(%row, %end) {lt}", "compare(%row, %end) {le}"}},
         {"%from", "%h", "%part", "%sum"}},
        {"not masked", {{R"(<"B"> %part)", R"(<"B"> %t)"}}, {"%from", "%sum"}},
        {"the first row is one from the end",
         {{"compare(%chosen, %zero) {lt}", "compare(%chosen, %zero) {le}"}},
         {"%from", "%below", "%behind", "%index", "%h", "%part", "%sum"}}},
       equality::exactly,
       8},
      of_columns(
          "a factor of what a flag chooses",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %zero = constant {0} : tensor<f32>
  %c = compare(%b, %zero) {gt} : tensor<4x4xi1>
  %s = select(%c, %a, %zero) : tensor<4x4xf32>
  %y = reduce(%s) {add, dims=[0]} : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %zero = constant {0} : tensor<f32>
  %two = constant {2} : tensor<f32>
  %c = compare(%b, %zero) {gt} : tensor<2x4xi1>
  %a2 = multiply(%two, %a) : tensor<2x4xf32>
  %s = select(%c, %a2, %zero) : tensor<2x4xf32>
  %r = reduce(%s) {add, dims=[0]} : tensor<4xf32>
  %g = all_reduce <"B"> %r : tensor<4xf32>
  %y = divide(%g, %two) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"of the other choice, too",
            {{"select(%c, %a2, %zero)", "select(%c, %a2, %two)"}},
            {"%s", "%r", "%g", "%y"}},
           {"another factor", {{"divide(%g, %two)", "multiply(%g, %two)"}}, {"%y"}}}),
      of_columns(
          "a share of what is added to a sum",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %r = reduce(%a) {add, dims=[0]} : tensor<4xf32>
  %m = reduce(%b) {max, dims=[0]} : tensor<4xf32>
  %s = add(%r, %m) : tensor<4xf32>
  %y = tanh(%s) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %half = constant {0.5} : tensor<f32>
  %r = reduce(%a) {add, dims=[0]} : tensor<4xf32>
  %p = reduce(%b) {max, dims=[0]} : tensor<4xf32>
  %m = all_reduce <@max> <"B"> %p : tensor<4xf32>
  %share = multiply(%m, %half) : tensor<4xf32>
  %s = add(%share, %r) : tensor<4xf32>
  %g = all_reduce <"B"> %s : tensor<4xf32>
  %y = tanh(%g) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"all of it on each device", {{"add(%share, %r)", "add(%m, %r)"}}, {"%s", "%g", "%y"}},
           {"a share of another size", {{"constant {0.5}", "constant {0.25}"}}, {"%s", "%g", "%y"}},
           {"what devices have each their own of",
            {{"multiply(%m, %half)", "multiply(%p, %half)"}},
            {"%share", "%s"}}}),
      of_columns(
          "what one device adds to a sum",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %r = reduce(%a) {add, dims=[0]} : tensor<4xf32>
  %m = reduce(%b) {max, dims=[0]} : tensor<4xf32>
  %s = add(%r, %m) : tensor<4xf32>
  %y = tanh(%s) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %zero = constant {0} : tensor<f32>
  %one = constant {1} : tensor<i32>
  %id = shard_start {1 <"B">} : tensor<i32>
  %mine = compare(%id, %one) {eq} : tensor<i1>
  %flags = broadcast_in_dim(%mine) {dims=[]} : tensor<4xi1>
  %r = reduce(%a) {add, dims=[0]} : tensor<4xf32>
  %p = reduce(%b) {max, dims=[0]} : tensor<4xf32>
  %m = all_reduce <@max> <"B"> %p : tensor<4xf32>
  %once = select(%flags, %m, %zero) : tensor<4xf32>
  %s = add(%once, %r) : tensor<4xf32>
  %g = all_reduce <"B"> %s : tensor<4xf32>
  %y = tanh(%g) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)",
          {{"two devices do", {{"{eq}", "{le}"}}, {"%once", "%s", "%mine"}},
           {"what differs from device to device",
            {{"select(%flags, %m, %zero)", "select(%flags, %p, %zero)"}},
            {"%once"}},
           {"another one has something else",
            {{"select(%flags, %m, %zero)", "select(%flags, %m, %r)"}},
            {"%once"}}}),
      of_matrices(
          "joined with zeros, what neighbours do not send",
          R"(func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) {
  %zero = constant {0} : tensor<2x4xf32>
  %s = slice(%a) {[0:2, :]} : tensor<2x4xf32>
  %before = concatenate(%zero, %s) {dim=0} : tensor<4x4xf32>
  %y = subtract(%b, %before) : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
)",
          R"(func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) attributes {mesh = {"B":2}} {
  %before = permute {+1} <"B"> %a : tensor<2x4xf32>
  %y = subtract(%b, %before) : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
)",
          {{"around", {{"{+1}", "{+1 around}"}}, {"%y"}},
           {"the other way", {{"{+1}", "{-1}"}}, {"%y"}}}),
  };
}

}  // namespace practice
