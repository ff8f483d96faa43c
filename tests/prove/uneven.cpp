// Programs with padding and with repeated parts: right ones are proved, others are not.
#include <string>

#include "partitioned_case.hpp"

namespace pt = partita;

namespace {

const pt::mesh both{{"B", 2}, {"M", 2}};

std::string scattered(const std::string& by, const std::string& element, const std::string& index) {
  const std::string of = "x" + element + ">";
  return "func @main(%x: tensor<4x3" + of + ", %i: tensor<5x" + index + ">, %u: tensor<5x3" + of +
         ") {\n  %y = scatter(%x, %i, %u) {" + by + "} : tensor<4x3" + of +
         "\n  return %y : tensor<4x3" + of + "\n}\n";
}

}  // namespace

TEST_CASE("uneven: padded updates are the identity, at any position") {
  const auto updates = pt::manual("B", {{"u", 0}}, "updates", pt::uneven::pad);
  const auto rows = pt::manual("M", {{"x", 0}}, "rows");
  for (const char* by : {"max", "min"})
    for (const char* index : {"i32", "u8", "i64"}) {
      const partitioned_case c(scattered(by, "f32", index), both, updates, rows);
      CHECK(c.why() == "");
      CHECK_FALSE(c.proved("constant {5}", "constant {6}"));
      CHECK_FALSE(c.proved("shard_start {2 <\"M\">}", "shard_start {1 <\"M\">}"));
      CHECK_FALSE(c.proved("shard_start {2 <\"M\">}", "shard_start {2 <\"B\">}"));
    }
}
TEST_CASE("uneven: updates over two axes are added once each") {
  const std::string text =
      "func @main(%x: tensor<5x3xf32>, %i: tensor<4x2xi32>, %u: tensor<4x2x3xf32>) {\n"
      "  %y = scatter(%x, %i, %u) {add} : tensor<5x3xf32>\n  return %y : tensor<5x3xf32>\n}\n";
  const partitioned_case c(text, both, pt::manual("B", {{"u", 0}, {"i", 0}}, "b"),
                           pt::manual("M", {{"u", 1}, {"i", 1}}, "m"));
  CHECK(c.why() == "");
  CHECK_FALSE(c.proved("<\"B\", \"M\">", "<\"B\">"));
  CHECK_FALSE(c.proved("shard_start {1 <\"M\">}", "shard_start {1 <\"B\">}"));
  CHECK_FALSE(c.proved("%x6, %x5", "%x, %x5"));  // of one device of one axis only
}
TEST_CASE("uneven: a row at a known position is that of one device") {
  const std::string text =
      "func @main(%x: tensor<4x2xf32>) {\n  %i = constant {1} : tensor<i32>\n"
      "  %z = constant {0} : tensor<i32>\n"
      "  %y = dynamic_slice(%x, %i, %z) {sizes=[1, -1]} : tensor<1x2xf32>\n"
      "  return %y : tensor<1x2xf32>\n}\n";
  for (int devices : {2, 4}) {
    const partitioned_case c(text, {{"B", devices}}, pt::manual("B", {{"x", 0}}, "rows"));
    CHECK(c.why() == "");
    CHECK_FALSE(c.proved("constant {1}", "constant {0}"));
    CHECK_FALSE(c.proved("all_reduce <\"B\">", "all_reduce <@max> <\"B\">"));
  }
}
TEST_CASE("uneven: neighbours of rows of a flat tensor, and values out of bounds on all devices") {
  const std::string text =
      "func @main(%p: tensor<4x5xf32>) {\n  %f = reshape(%p) : tensor<20xf32>\n"
      "  %v = reduce_window(%f) {add, window=[3], low=[2]} : tensor<20xf32>\n"
      "  return %v : tensor<20xf32>\n}\n";
  const partitioned_case c(text, both, pt::manual("B", {{"p", 0}}, "rows"));
  CHECK(c.why() == "");
  CHECK_FALSE(c.proved("[8:10]", "[7:9]"));
  CHECK_FALSE(c.proved("{+1}", "{-1}"));
  const std::string windows =
      "func @main(%x: tensor<6x2xf32>) {\n"
      "  %y = reduce_window(%x) {add, window=[1, 3], low=[0, 2]} : tensor<6x2xf32>\n"
      "  return %y : tensor<6x2xf32>\n}\n";
  const partitioned_case d(windows, both, pt::manual("B", {{"x", 1}}, "columns"));
  CHECK(d.why() == "");
  CHECK_FALSE(d.proved("window=[1, 3]", "window=[1, 2], low=[0, 0], high=[0, -1]"));
}
TEST_CASE("uneven: senders that are numbered by other axes than receivers") {
  const pt::mesh cube{{"B", 2}, {"M", 2}, {"T", 2}};
  const partitioned_case c(
      "func @main(%x: tensor<8x2xf32>) {\n  %y = negate(%x) : tensor<8x2xf32>\n"
      "  return %y : tensor<8x2xf32>\n}\n",
      cube, pt::manual("B", {{"x", 0}}, "b"));
  pt::device_program d = c.device;
  pt::failure wrong;
  d.local = pt::parse(
      "func @main(%x: tensor<4x2xf32>) attributes {mesh = {\"B\":2, \"M\":2, \"T\":2}} {\n"
      "  %x1 = permute <\"B\", \"T\"> -> <\"T\", \"B\"> %x : tensor<4x2xf32>\n"
      "  %y = negate(%x1) : tensor<4x2xf32>\n  return %y : tensor<4x2xf32>\n}\n",
      d.mesh);
  REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
  d.outputs[0] = pt::parse_layout("[{\"T\"}, {}]", d.mesh, c.source.output_type(0).shape, wrong);
  CHECK(pt::prove(c.source, d).proved);
  const pt::op_id permute =
      d.local.producer(d.local.operand(d.local.producer(d.local.outputs[0].value), 0));
  const pt::op_node& n = d.local.op(permute);
  d.local.attr_list[static_cast<std::size_t>(n.attr_begin + n.attr_count - 1)] = 1;  // not B, but M
  CHECK_FALSE(pt::prove(c.source, d).proved);
}
