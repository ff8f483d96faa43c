// Programs parsed from text: at compile time, written by hand, and with mistakes.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <string>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

constexpr std::string_view chain =
    R"(func @main(%x: tensor<256x8xf32>, %w1: tensor<8x16xf32>, %w2: tensor<16x8xf32>) {
  %x1 = matmul(%x, %w1) : tensor<256x16xf32>
  %h = tag "h" %x1 : tensor<256x16xf32>
  %x2 = constant {0.3333333333333333} : tensor<f32>
  %x3 = multiply(%h, %x2) : tensor<256x16xf32>
  %y = matmul(%x3, %w2) : tensor<256x8xf32>
  %total = reduce(%y) {add, dims=[0, 1]} : tensor<f32>
  return %y, %total, %total as "loss" : tensor<256x8xf32>, tensor<f32>, tensor<f32>
}
)";

/// Returns the error for a program with one input x of 4x6xf32 and these lines.
std::string mistake(std::string_view lines) {
  const pt::program p =
      pt::parse(pt::concat("func @main(%x: tensor<4x6xf32>) {\n", lines, "\n}\n"));
  return str(p.error.message);
}
/// Returns the error for this second line, after which the program is valid.
std::string in_line(std::string_view line) {
  return mistake(pt::concat(line, "\n  return %x : tensor<4x6xf32>"));
}

/// Returns the error for a program for one device with this collective, on elements of this type.
std::string collective_mistake(std::string_view element, std::string_view collective) {
  const pt::text type = pt::concat("tensor<4x", element, '>');
  pt::mesh m;
  return str(pt::parse(pt::concat("func @main(%x: ", type,
                                  ") attributes {mesh = {\"B\":2}} {\n  %y = ", collective,
                                  "\n  return %x : ", type, "\n}\n"),
                       m)
                 .error.message);
}

}  // namespace

static_assert(!pt::parse(chain).error);
static_assert(pt::print(pt::parse(chain)) == chain);
static_assert(pt::equivalent(pt::parse(chain), pt::parse(chain)));
static_assert(pt::parse(chain).output_name(0) == "y" && pt::parse(chain).output_name(2) == "loss");
static_assert(pt::parse("func @main() {").error.message ==
              "P012 parse: line 1, column 15: \"%\" expected, found the end of the text");

TEST_CASE("a program parses at run time as at compile time") {
  const pt::program p = pt::parse(chain);
  CHECK(str(p.error.message) == "");
  CHECK(!pt::verify(p));
  CHECK(str(pt::print(p)) == chain);
}

TEST_CASE("whitespace between words and names of values are free") {
  const pt::program p = pt::parse(
      "func  @main( %a/b:0 : tensor<4xf32> ,%f(x): tensor< 4xf32 > ){ %first = add ( %a/b:0,%f(x))"
      " : tensor<4xf32>\treturn %first  as\n\"y\" : tensor<4xf32>\r\n }");
  CHECK(str(p.error.message) == "");
  const std::string_view printed =
      R"(func @main(%a/b:0: tensor<4xf32>, %f(x): tensor<4xf32>) {
  %y = add(%a/b:0, %f(x)) : tensor<4xf32>
  return %y : tensor<4xf32>
}
)";
  CHECK(str(pt::print(p)) == printed);
  CHECK(str(pt::print(pt::parse(printed))) == printed);
}

namespace {
/// A user's op.
struct round_op : pt::op::elementwise_op {
  static constexpr std::string_view name = "round";
  static constexpr int operand_count = 1;
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
};
}  // namespace

TEST_CASE("a user's own ops parse") {
  const std::string_view in =
      "func @main(%x: tensor<4xf32>) {\n"
      "  %x1 = round(%x) : tensor<4xf32>\n"
      "  return %x1 : tensor<4xf32>\n}\n";
  const pt::op_def* const own[] = {&pt::def<round_op>};
  CHECK(str(pt::print(pt::parse(in, own))) == in);
  CHECK(str(pt::parse(in).error.message).substr(0, 58) ==
        "P013 parse: line 2, column 9: op \"round\" is unknown; known");
}

TEST_CASE("P011 attributes that the op does not have") {
  CHECK(in_line("  %y = abs(%x) {fast} : tensor<4x6xf32>") ==
        "P011 parse: attributes of an op that has none: fast (line 2, column 16)");
  CHECK(in_line("  %y = exp(%x) {fast} : tensor<4x6xf32>") ==
        "P011 parse: attributes of exp: \"accuracy=highest\" or \"accuracy=[absolute, relative, "
        "ulps]\" expected, found \"fast\" (line 2, column 16)");
  CHECK(
      in_line("  %y = reduce(%x) {mul, dims=[0]} : tensor<6xf32>") ==
      "P011 parse: attributes of reduce: \"mul\" is not a value of this attribute (line 2, column "
      "19)");
  CHECK(in_line("  %y = transpose(%x) : tensor<6x4xf32>") ==
        "P011 parse: attributes of transpose: \"dims=\" expected, found \"\" (line 2, column 22)");
  CHECK(in_line("  %y = matmul(%x, %x) {[0]} : tensor<6x6xf32>") ==
        "P011 parse: attributes of dot_general: \"batch=[0]x[0], contract=[2]x[1]\", or the second "
        "half of it, expected, found \"[0]\" (line 2, column 23)");
  CHECK(
      in_line("  %y = constant {1e} : tensor<f64>") ==
      "P011 parse: attributes of constant: \"1e\" is not a number of type f64 (line 2, column 17)");
  CHECK(in_line("  %y = constant {1.5} : tensor<i32>") ==
        "P011 parse: attributes of constant: \"1.5\" is not a number of type i32 (line 2, column "
        "17)");
}
TEST_CASE("a stride of 1 equals no stride") {
  const auto sliced = [](std::string_view bounds) {
    return pt::parse(pt::concat("func @main(%x: tensor<4x6xf32>) {\n  %y = slice(%x) {", bounds,
                                "} : tensor<4x6xf32>\n  return %y : tensor<4x6xf32>\n}\n"));
  };
  const pt::program written = sliced("[:, ::1]");
  REQUIRE(str(written.error.message) == "");
  CHECK(pt::equivalent(written, sliced("[:, :]")));
  CHECK(pt::equivalent(written, pt::parse(pt::print(written))));
}

TEST_CASE("P012 an unexpected token") {
  const auto whole = [](std::string_view in) { return str(pt::parse(in).error.message); };
  CHECK(whole("") == "P012 parse: line 1, column 1: \"func\" expected, found the end of the text");
  CHECK(whole("func @main(%x tensor<f32>)") ==
        "P012 parse: line 1, column 15: \":\" expected, found \"tensor<f32>)\"");
  CHECK(whole("func @main(%: tensor<f32>)") ==
        "P012 parse: line 1, column 13: the name of a value expected, found \": tensor<f32>)\"");
  CHECK(whole("func @main(%x: tensor<f32>) { return %x : tensor<f32> } and more") ==
        "P012 parse: line 1, column 57: the end of the text expected, found \"and more\"");
  CHECK(in_line("  y = exp(%x) : tensor<4x6xf32>") ==
        "P012 parse: line 2, column 3: \"%\" expected, found \"y = exp(%x) : tensor<4x6\"");
  CHECK(in_line("  %y exp(%x) : tensor<4x6xf32>") ==
        "P012 parse: line 2, column 6: \"=\" expected, found \"exp(%x) : tensor<4x6xf32\"");
  CHECK(
      in_line("  %y = (%x) : tensor<4x6xf32>") ==
      "P012 parse: line 2, column 8: the name of an op expected, found \"(%x) : tensor<4x6xf32>\"");
  CHECK(in_line("  %y = add(%x, %x : tensor<4x6xf32>") ==
        "P012 parse: line 2, column 19: \")\" expected, found \": tensor<4x6xf32>\"");
  CHECK(in_line("  %y = add(%x %x) : tensor<4x6xf32>") ==
        "P012 parse: line 2, column 15: \")\" expected, found \"%x) : tensor<4x6xf32>\"");
  CHECK(in_line("  %y = tag h %x : tensor<4x6xf32>") ==
        "P012 parse: line 2, column 12: \"\"\" expected, found \"h %x : tensor<4x6xf32>\"");
  CHECK(
      in_line("  %y = tag \"h %x : tensor<4x6xf32>") ==
      "P012 parse: line 2, column 13: a name in quotes expected, found \"h %x : tensor<4x6xf32>\"");
  CHECK(in_line("  %y = exp(%x)") ==
        "P012 parse: line 3, column 3: \":\" expected, found \"return %x : tensor<4x6xf\"");
  CHECK(in_line("  %y = exp(%x) : vector<4x6xf32>") ==
        "P012 parse: line 2, column 18: \"tensor\" expected, found \"vector<4x6xf32>\"");
  CHECK(in_line("  %y = exp(%x) : tensor<4x6xf33>") ==
        "P012 parse: line 2, column 29: an extent or an element type expected, found \"f33>\"");
  CHECK(in_line("  %y = exp(%x) : tensor<4x?xf32>") ==
        "P012 parse: line 2, column 27: an extent or an element type expected, found \"?xf32>\"");
  CHECK(in_line("  %y = exp(%x) : tensor<4 x6xf32>") == "");
  CHECK(in_line("  %y = exp(%x) : tensor<1x1x1x1x1x1x1x4x6xf32>") ==
        "P012 parse: line 2, column 25: a type of rank 8 or less expected, found rank 9");
  CHECK(in_line("  %y = exp(%x) : tensor<4294967296x4294967296xf32>") ==
        "P012 parse: line 2, column 25: a type with fewer bytes expected");
  CHECK(in_line("  %y = constant {1 : tensor<f32>") ==
        "P012 parse: line 5, column 1: \":\" expected, found the end of the text");
  CHECK(mistake("  return %x : tensor<4x6xf32>, tensor<f32>") ==
        "P012 parse: line 2, column 30: \"}\" expected, found \", tensor<f32>\"");
  CHECK(mistake("  return %x, %x : tensor<4x6xf32>") ==
        "P012 parse: line 3, column 1: \",\" expected, found \"}\"");
}
TEST_CASE("P013 unknown op") {
  const std::string message = in_line("  %y = expp(%x) : tensor<4x6xf32>");
  CHECK(message.substr(0, 75) ==
        "P013 parse: line 2, column 8: op \"expp\" is unknown; known: matmul, tag, til");
  CHECK(message.substr(message.find("; did")) == "; did you mean \"exp\"?");
  CHECK(in_line("  %y = parameter : tensor<4x6xf32>").substr(0, 52) ==
        "P013 parse: line 2, column 8: op \"parameter\" is unkn");
}
TEST_CASE("P014 unknown value") {
  CHECK(in_line("  %y = add(%x, %w) : tensor<4x6xf32>") ==
        "P014 parse: line 2, column 16: value %w is not defined; known: x; did you mean \"x\"?");
  CHECK(in_line("  %y = exp(%y) : tensor<4x6xf32>") ==
        "P014 parse: line 2, column 12: value %y is not defined; known: x; did you mean \"x\"?");
  CHECK(mistake("  return %loss : tensor<f32>") ==
        "P014 parse: line 2, column 10: value %loss is not defined; known: x");
}
TEST_CASE("P015 a type that differs from the shape rule's") {
  CHECK(in_line("  %y = transpose(%x) {dims=[1, 0]} : tensor<4x6xf32>") ==
        "P015 parse: line 2, column 8: transpose has type tensor<6x4xf32>; the text states type "
        "tensor<4x6xf32>");
  CHECK(mistake("  return %x : tensor<4x6xf64>") ==
        "P015 parse: line 2, column 15: x has type tensor<4x6xf32>; the text states type "
        "tensor<4x6xf64>");
}
TEST_CASE("P016 a value defined twice") {
  CHECK(in_line("  %x = exp(%x) : tensor<4x6xf32>") ==
        "P016 parse: line 2, column 3: value %x is defined twice");
  CHECK(str(pt::parse("func @main(%x: tensor<f32>, %x: tensor<f32>)").error.message) ==
        "P016 parse: line 1, column 29: value %x is defined twice");
}
TEST_CASE("P017 number of operands and results") {
  CHECK(in_line("  %y, %z = exp(%x) : tensor<4x6xf32>, tensor<4x6xf32>") ==
        "P017 parse: line 2, column 3: exp has 1 result; the text has 2 and 2 types");
  CHECK(in_line("  %y = exp(%x) : tensor<4x6xf32>, tensor<4x6xf32>") ==
        "P017 parse: line 2, column 3: exp has 1 result; the text has 1 and 2 types");
  CHECK(in_line("  %y = add(%x) : tensor<4x6xf32>") ==
        "P017 parse: line 2, column 8: add has 1 operand; 2 are needed");
  CHECK(in_line("  %y = exp(%x, %x) : tensor<4x6xf32>") ==
        "P017 parse: line 2, column 8: exp has 2 operands; 1 is needed");
  CHECK(in_line("  %y = concatenate {dim=0} : tensor<4x6xf32>") ==
        "P017 parse: line 2, column 8: concatenate has 0 operands; one or more are needed");
}
TEST_CASE("errors of shape rules and names keep their codes") {
  CHECK(in_line("  %y = matmul(%x, %x) : tensor<4x6xf32>") ==
        "S101 dot_general: contracted extents differ: dimension 1 of lhs tensor<4x6xf32> has size "
        "6, dimension 0 of rhs tensor<4x6xf32> has size 4 (line 2, column 8)");
  CHECK(in_line("  %y = constant {300} : tensor<u8>") ==
        "S117 constant: 300 is not a value of element type u8 (line 2, column 8)");
  CHECK(mistake("  return %x as \"a\", %x as \"a\" : tensor<4x6xf32>, tensor<4x6xf32>") ==
        "P004 trace: two outputs are named \"a\"");
  CHECK(in_line("  %h = tag \"x\" %x : tensor<4x6xf32>") ==
        "P003 trace: tag \"x\" has the name of another tag or of an input");
  CHECK(mistake("  %x' = transpose(%x) {dims=[1, 0]} : tensor<6x4xf32>\n"
                "  return %x' : tensor<6x4xf32>")
            .substr(0, 30) == "P008 trace: output \"x\" has typ");
}

TEST_CASE("S104 collectives on elements that their combiner does not accept") {
  CHECK(collective_mistake("f32", "all_reduce <@max> <\"B\"> %x : tensor<4xf32>") == "");
  CHECK(collective_mistake("i1", "all_reduce <@or> <\"B\"> %x : tensor<4xi1>") == "");
  CHECK(collective_mistake("f32", "all_reduce <@or> <\"B\"> %x : tensor<4xf32>") ==
        "S104 all_reduce: element type f32 is neither i1 nor an integer type (line 2, column 8)");
  CHECK(collective_mistake("i1", "all_reduce <\"B\"> %x : tensor<4xi1>") ==
        "S104 all_reduce: element type i1 is not a number (line 2, column 8)");
  CHECK(collective_mistake("bf16", "reduce_scatter <@and> [{\"B\"}] %x : tensor<2xbf16>") ==
        "S104 reduce_scatter: element type bf16 is neither i1 nor an integer type (line 2, column "
        "8)");
  CHECK(collective_mistake("i1", "reduce_scatter <@max> [{\"B\"}] %x : tensor<2xi1>") ==
        "S104 reduce_scatter: element type i1 is not a number (line 2, column 8)");
  // The combiner of a permute names the value that arrives where no device sends; every type has a
  // zero.
  CHECK(collective_mistake("i1", "permute {+1} <\"B\"> %x : tensor<4xi1>") == "");
  CHECK(collective_mistake("i1", "permute {+1 around} <\"B\"> %x : tensor<4xi1>") == "");
  CHECK(collective_mistake("i1", "permute <@and> {+1} <\"B\"> %x : tensor<4xi1>") == "");
  CHECK(collective_mistake("f64", "permute <@and> {+1} <\"B\"> %x : tensor<4xf64>") ==
        "S104 permute: element type f64 is neither i1 nor an integer type (line 2, column 8)");
  CHECK(collective_mistake("i1", "permute <@min> {+1} <\"B\"> %x : tensor<4xi1>") ==
        "S104 permute: element type i1 is not a number (line 2, column 8)");
  CHECK(collective_mistake(
            "f32",
            "scan(%x) {length=2, carried=1} do (%i: tensor<i32>, %c: tensor<4xf32>) {\n"
            "    %z = all_reduce <@or> <\"B\"> %c : tensor<4xf32>\n"
            "    return %z : tensor<4xf32>\n  } : tensor<4xf32>") ==
        "S104 all_reduce: element type f32 is neither i1 nor an integer type (line 3, column 10)");
}

TEST_CASE("P011 integer attributes beyond 64 bits") {
  CHECK(in_line("  %y = cumsum(%x) {dim=18446744073709551617} : tensor<4x6xf32>") ==
        "P011 parse: attributes of cumsum: a number of 64 bits expected, found "
        "\"18446744073709551617\" (line 2, column 19)");
  CHECK(in_line("  %y = cumsum(%x) {dim=-9223372036854775809} : tensor<4x6xf32>").substr(0, 4) ==
        "P011");
  CHECK(in_line("  %y = slice(%x) {[18446744073709551617:2, :]} : tensor<1x6xf32>").substr(0, 4) ==
        "P011");
  CHECK(
      in_line("  %y = slice(%x) {[0:2:18446744073709551617, :]} : tensor<2x6xf32>").substr(0, 4) ==
      "P011");
  CHECK(in_line("  %y = roll(%x) {dim=0, shift=-9223372036854775808} : tensor<4x6xf32>") == "");
}

namespace {
std::string nested_calls(int depth) {
  std::string in = "func @main(%x: tensor<4xf32>) {\n";
  for (int i = 0; i < depth; ++i) in += "%y = call \"f\"(%x) do (%x: tensor<4xf32>) {\n";
  in += "%y = exp(%x) : tensor<4xf32>\n";
  for (int i = 0; i < depth; ++i) in += "return %y : tensor<4xf32>\n} : tensor<4xf32>\n";
  return in + "return %y : tensor<4xf32>\n}";
}
}  // namespace

TEST_CASE("P017 every op with a fixed number of operands states it") {
  for (const char* op : {"convolution", "select_and_scatter", "select_and_gather"})
    CHECK(in_line(pt::concat("  %y = ", op, "(%x) : tensor<4x6xf32>")).substr(0, 4) == "P017");
  for (const char* op : {"cumsum", "reduce_window"})
    CHECK(in_line(pt::concat("  %y = ", op, "(%x, %x) : tensor<4x6xf32>")).substr(0, 4) == "P017");
}

TEST_CASE("P018 programs that are nested too deeply") {
  const pt::program deepest = pt::parse(nested_calls(pt::max_nesting));
  CHECK(str(deepest.error.message) == "");
  CHECK(deepest.nesting == pt::max_nesting);
  CHECK(!pt::verify(deepest));
  CHECK(pt::estimate(deepest).flops == 4);
  CHECK(str(pt::parse(nested_calls(pt::max_nesting + 1)).error.message).substr(0, 4) == "P018");
  CHECK(str(pt::parse(nested_calls(100000)).error.message) ==
        "P018 parse: line 1026, column 22: programs are nested more than 1024 deep");
  // Built, not parsed.
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", {pt::dtype::f32, {4}});
  pt::ops::call(b, "f", {&x, 1}, pt::program(deepest));
  CHECK(str(b.p.error.message) == "P018 call: programs are nested more than 1024 deep");
}

TEST_CASE("numbers and names of any length are read") {
  const std::string digits(1000000, '3');
  const auto number = [&](const std::string& text) {
    const pt::program p = pt::parse("func @main(%x: tensor<4x6xf32>) {\n%y = constant {" + text +
                                    "} : tensor<f64>\nreturn %y : tensor<f64>\n}");
    REQUIRE(str(p.error.message) == "");
    return std::bit_cast<double>(p.attrs(p.producer(p.outputs[0].value))[0]);
  };
  CHECK(number("0." + digits) == 1.0 / 3);
  CHECK(number(digits) == std::numeric_limits<double>::infinity());
  CHECK(number(digits + "e-1000000") == 1.0 / 3);
  CHECK(number("0." + std::string(1000000, '0') + "5") == 0);
  CHECK(number("0." + std::string(100000, '0') + "5e100001") == 5);
  // A digit beyond all digits that are kept still decides between two neighbours.
  const std::string half = "9007199254740993." + std::string(2000, '0');
  CHECK(number(half) == 9007199254740992.0);
  CHECK(number(half + "1") == 9007199254740994.0);
  const std::string a(60000, 'a'), b(60000, 'b');
  const std::string message = str(pt::parse("func @main(%" + a + ": tensor<4xf32>) {\n%y = exp(%" +
                                            b + ") : tensor<4xf32>\nreturn %y : tensor<4xf32>\n}")
                                      .error.message);
  CHECK(message.substr(0, 37) == "P014 parse: line 2, column 10: value ");
  CHECK(message.size() < 400);
}
