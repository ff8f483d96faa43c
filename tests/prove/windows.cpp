// Windows whose blocks move inside a tensor, and padded windows: right programs are proved, others
// are not.
#include <string>

#include "partitioned_case.hpp"

namespace pt = partita;

namespace {

std::string gathered(const std::string& window) {
  return "func @main(%x: tensor<16x8xf32>, %v: tensor<16x8xf32>) {\n"
         "  %y = select_and_gather(%x, %v) {ge, " +
         window + "} : tensor<8x8xf32>\n  return %y : tensor<8x8xf32>\n}\n";
}
std::string scattered(const std::string& window) {
  return "func @main(%x: tensor<16x8xf32>, %u: tensor<8x8xf32>) {\n"
         "  %y = select_and_scatter(%x, %u) {ge, " +
         window + "} : tensor<16x8xf32>\n  return %y : tensor<16x8xf32>\n}\n";
}
const std::string rows = "window=[3, 1], strides=[2, 1], low=[1, 0]";
const std::string both = "window=[3, 3], strides=[2, 1], low=[1, 1], high=[0, 1]";
const auto x_rows = pt::manual("B", {{"x", 0}}, "rows");
const auto x_columns = pt::manual("M", {{"x", 1}}, "columns");

}  // namespace

TEST_CASE("windows: blocks move inside a tensor") {
  for (int b : {2, 4}) {
    CHECK(partitioned_case(gathered(rows), {{"B", b}}, x_rows).why() == "");
    CHECK(partitioned_case(scattered(rows), {{"B", b}}, x_rows).why() == "");
  }
  CHECK(partitioned_case(gathered(both), {{"B", 4}, {"M", 2}}, x_rows, x_columns).why() == "");
  CHECK(partitioned_case(scattered(both), {{"B", 4}, {"M", 2}}, x_rows, x_columns).why() == "");
}
TEST_CASE("windows: blocks at wrong positions, or of wrong sizes, are not proved") {
  const partitioned_case c(scattered(rows), {{"B", 4}}, x_rows);
  CHECK(c.proved("{ge, ", "{ge, "));
  CHECK_FALSE(c.proved("{ge, ", "{le, "));
  CHECK_FALSE(c.proved("window=[3, 1]", "window=[2, 1]"));
  CHECK_FALSE(c.proved("constant {-2}", "constant {-1}"));
  CHECK(c.proved("constant {8}", "constant {6}"));  // the slice clamps it, too
  CHECK(c.proved("constant {4}", "constant {3}"));
  CHECK_FALSE(c.proved("subtract(%x34, %x41)", "subtract(%x34, %x37)"));
  CHECK_FALSE(c.proved("subtract(%x34, %x41)", "subtract(%x7, %x38)"));
}
TEST_CASE("windows: borders of elements that are repeated in place") {
  const std::string text =
      "func @main(%x: tensor<1x8x2xf32>, %w: tensor<3x2x2xf32>) {\n"
      "  %z = multiply(%x, %x) : tensor<1x8x2xf32>\n"
      "  %b = broadcast_in_dim(%z) {dims=[0, 1, 3]} : tensor<1x8x2x2xf32>\n"
      "  %t = reshape(%b) : tensor<1x16x2xf32>\n"
      "  %y = convolution(%t, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1], low=[1], "
      "high=[1]} : tensor<1x16x2xf32>\n"
      "  return %y : tensor<1x16x2xf32>\n}\n";
  for (int b : {2, 4}) {
    const partitioned_case c(text, {{"B", b}}, pt::manual("B", {{"x", 1}}, "space"));
    CHECK(c.why() == "");
    CHECK_FALSE(c.proved("{+1}", "{-1}"));
    CHECK_FALSE(c.proved("{-1}", "{+1}"));
    CHECK_FALSE(c.proved("[:, 0:1, :]", "[:, 2:3, :]"));
  }
}
TEST_CASE("windows: a box of borders whose padding is only partly known") {
  const std::string text =
      "func @main(%x: tensor<12x2xf64>) {\n  %s = slice(%x) {[9:12, :]} : tensor<3x2xf64>\n"
      "  %t = tag \"t\" %s : tensor<3x2xf64>\n  return %t : tensor<3x2xf64>\n}\n";
  const partitioned_case c(text, {{"B", 2}},
                           pt::manual("B", {{"x", 0}, {"t", 0}}, "b", pt::uneven::pad));
  CHECK(c.why() == "");
  CHECK(c.proved("constant {0} : tensor<1x2xf64>", "constant {1} : tensor<1x2xf64>"));
  CHECK_FALSE(c.proved("constant {9}", "constant {8}"));
  CHECK_FALSE(c.proved("shard_start {6 <\"B\">}", "shard_start {5 <\"B\">}"));
  CHECK_FALSE(c.proved("{-1}", "{+1}"));
  CHECK_FALSE(c.proved("[1:3, :]", "[0:2, :]"));
  CHECK_FALSE(c.proved("concatenate(%x, %x3, %x2)", "concatenate(%x, %x2, %x3)"));
}
TEST_CASE("windows: only the block of a larger result is right") {
  const partitioned_case c(R"(func @main(%x: tensor<16xf32>, %y: tensor<7xf32>) {
  %o = select_and_scatter(%x, %y) {ge, window=[3], strides=[2]} : tensor<16xf32>
  return %o : tensor<16xf32>
})",
                           pt::mesh{{"S", 4}}, pt::manual("S", {{"x", 0}}, pt::uneven::pad));
  CHECK(c.why() == "");
  CHECK_FALSE(c.proved("{[2:6]}", "{[1:5]}"));
  CHECK_FALSE(c.proved("{[2:6]}", "{[3:7]}"));
  CHECK(c.proved("permute {+1}", "permute {+1 around}"));  // of y: the added values are zero
  CHECK_FALSE(c.proved("constant {7}", "constant {8}"));
  CHECK_FALSE(c.proved("constant {7}", "constant {6}"));
}
