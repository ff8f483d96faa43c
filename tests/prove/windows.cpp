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
TEST_CASE("windows: operands of a sum over all taps may be padded") {
  const std::string text =
      "func @main(%x: tensor<3x6x4xf32>, %w: tensor<3x3x4xf32>) {\n"
      "  %y = convolution(%x, %w) {lhs=[1, 2, 0], rhs=[2, 1, 0], result=[1, 0, 2], strides=[2], "
      "rhs_dilation=[2], low=[2], high=[1]} : tensor<3x6x1xf32>\n"
      "  return %y : tensor<3x6x1xf32>\n}\n";
  const auto taps = pt::manual("B", {{"w", 0}}, "taps", pt::uneven::pad);
  const partitioned_case c(text, {{"B", 8}}, taps);
  CHECK(c.why() == "");
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
TEST_CASE("windows: the complete operand, and more positions than in the source") {
  const std::string pooled = "{add, window=[2, 1], strides=[2, 1], low=[-1, 0], high=[";
  const std::string text = "func @main(%x: tensor<4x4xi64>) {\n  %y = reduce_window(%x) " + pooled +
                           "1, 0]} : tensor<2x4xi64>\n  return %y : tensor<2x4xi64>\n}\n";
  const partitioned_case c(text, {{"B", 2}}, pt::manual("B", {{"x", 1}}, "columns"));
  const std::string whole = pooled + "1, 0]} : tensor<2x2xi64>\n  return %y";
  const auto larger = [&](const std::string& window, const std::string& rows) {
    return window + " : tensor<4x2xi64>\n  %y1 = slice(%y) {" + rows +
           "} : tensor<2x2xi64>\n  return %y1";
  };
  CHECK(c.proved(whole, larger(pooled + "5, 0]}", "[0:2, :]")));
  CHECK_FALSE(c.proved(whole, larger(pooled + "5, 0]}", "[1:3, :]")));
  CHECK_FALSE(
      c.proved(whole, larger("{add, window=[2, 1], strides=[2, 1], high=[4, 0]}", "[0:2, :]")));
  CHECK_FALSE(c.proved(whole, larger("{max, window=[2, 1], strides=[2, 1], low=[-1, 0], "
                                     "high=[5, 0]}",
                                     "[0:2, :]")));
  CHECK_FALSE(c.proved("%y = reduce_window(%x) " + pooled + "1, 0]}",
                       "%x0 = slice(%x) {[0:3, :]} : tensor<3x2xi64>\n  %y = reduce_window(%x0) " +
                           pooled + "2, 0]}"));
}
TEST_CASE("windows: fewer taps than in the source") {
  const std::string text =
      "func @main(%x: tensor<1x8x2xf32>, %w: tensor<4x2x2xf32>) {\n"
      "  %y = convolution(%x, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1], high=[3]} : "
      "tensor<1x8x2xf32>\n  return %y : tensor<1x8x2xf32>\n}\n";
  const partitioned_case c(text, {{"B", 2}});
  const std::string all =
      "%y = convolution(%x, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1], high=[3]}";
  const auto some = [](const std::string& taps, const std::string& padding) {
    return "%w0 = slice(%w) {[" + taps +
           ", :, :]} : tensor<3x2x2xf32>\n  %y = convolution(%x, %w0) " +
           "{lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1], " + padding + "}";
  };
  CHECK(c.proved(all, all));
  CHECK_FALSE(c.proved(all, some("0:3", "high=[2]")));
  CHECK_FALSE(c.proved(all, some("1:4", "low=[-1], high=[3]")));
}
TEST_CASE("windows: the padding of a constant is not the constant") {
  const std::string text =
      "func @main(%s: tensor<f32>, %x: tensor<4xf32>) {\n"
      "  %k = broadcast_in_dim(%s) {dims=[]} : tensor<4xf32>\n"
      "  %y = reduce_window(%k) {add, window=[3], high=[2]} : tensor<4xf32>\n"
      "  return %y, %x : tensor<4xf32>, tensor<4xf32>\n}\n";
  const partitioned_case c(text, {{"B", 2}});
  const std::string here = "tensor<4xf32>\n  %y = reduce_window(%x1) {add, window=[3], high=[2]}";
  CHECK(c.proved(here, here));
  CHECK_FALSE(c.proved(here, "tensor<6xf32>\n  %y = reduce_window(%x1) {add, window=[3]}"));
  CHECK_FALSE(
      c.proved(here, "tensor<5xf32>\n  %y = reduce_window(%x1) {add, window=[3], high=[1]}"));
  CHECK_FALSE(
      c.proved(here, "tensor<3xf32>\n  %y = reduce_window(%x1) {add, window=[3], high=[3]}"));
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
TEST_CASE("windows: the values of a pad follow the old end of a padded operand, too") {
  const auto padded = [](const std::string& x, const std::string& low, const std::string& high) {
    return "%y = pad(" + x + ") {low=[" + low + ", 0], high=[" + high +
           ", 0], interior=[0, 1]} : tensor<10x5xf32>";
  };
  const std::string text =
      "func @main(%x: tensor<6x3xf32>, %z: tensor<4xf32>) {\n  %v = constant {5} : tensor<f32>\n "
      " " +
      padded("%x, %v", "1", "3") + "\n  return %y, %z : tensor<10x5xf32>, tensor<4xf32>\n}\n";
  const partitioned_case c(text, {{"B", 2}}, pt::manual("B", {{"z", 0}}, "z"));
  const auto twice = [&](const std::string& by, const std::string& low, const std::string& high) {
    return "%x2 = constant {" + by + "} : tensor<f32>\n  %x3 = pad(%x, %x2) {low=[0, 0], " +
           "high=[2, 0]} : tensor<8x3xf32>\n  " + padded("%x3, %x1", low, high);
  };
  const std::string once = padded("%x, %x1", "1", "3");
  CHECK(c.proved(once, once));
  CHECK(c.proved(once, twice("5", "1", "1")));
  CHECK_FALSE(c.proved(once, twice("0", "1", "1")));
  CHECK_FALSE(c.proved(once, twice("5", "0", "2")));
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
TEST_CASE("windows: an element that one device has") {
  const partitioned_case c(R"(func @main(%x: tensor<16xf32>) {
  %o = slice(%x) {[7:10]} : tensor<3xf32>
  return %o : tensor<3xf32>
})",
                           pt::mesh{{"S", 4}}, pt::manual("S", {{"x", 0}}));
  CHECK(c.why() == "");
  CHECK_FALSE(c.proved("constant {2}", "constant {3}"));
  CHECK_FALSE(c.proved("constant {-0}", "constant {1}"));
  CHECK_FALSE(c.proved("{[0:2]}", "{[1:3]}"));
  CHECK_FALSE(c.proved("shard_start {1", "shard_start {2"));
}
TEST_CASE("windows: an element of a padded tensor of one, which one device has") {
  const partitioned_case c(R"(func @main(%x: tensor<1x2xf32>) {
  %o = reverse(%x) {dims=[0, 1]} : tensor<1x2xf32>
  return %o : tensor<1x2xf32>
})",
                           pt::mesh{{"S", 4}}, pt::manual("S", {{"x", 0}}, pt::uneven::pad));
  CHECK(c.why() == "");
  CHECK_FALSE(c.proved("constant {0}", "constant {1}"));
  CHECK_FALSE(c.proved("constant {-0}", "constant {1}"));
  CHECK_FALSE(c.proved("{eq}", "{ne}"));
}
