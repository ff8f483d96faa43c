// Printed programs parse back: parse(print(p)) is p, and prints the same text.
#include <doctest/doctest.h>

#include "../../examples/models/transformer.hpp"
#include "cases.hpp"

namespace pt = partita;
using namespace laws;
using data::str;

namespace {

void check_round_trip(const pt::program& p) {
  const pt::text printed = pt::print(p);
  const pt::program parsed = pt::parse(printed);
  CHECK_MESSAGE(!parsed.error, str(parsed.error.message), "\n", str(printed));
  CHECK_MESSAGE(pt::equivalent(parsed, p), str(printed));
  CHECK(str(pt::print(parsed)) == str(printed));
  CHECK(!pt::verify(parsed));
}

constexpr auto sharing = [](auto x, auto w) {
  const auto h = tag("h", matmul(x, w));
  const auto y = exp(h);
  return std::tuple{pt::output("y", y),       pt::output("again", y),   pt::output("seen", h),
                    pt::output("in", w),      pt::output("x", x + 1.0), pt::output("x3", -y),
                    pt::output("w'", w * 0.1)};
};

}  // namespace

TEST_CASE("every op parses back, with every kind of attributes") {
  for (const op_case& c : all_cases()) check_round_trip(program_of(c));
}

TEST_CASE("an op accepts its number of operands, and a text with another number is refused") {
  for (const op_case& c : all_cases()) {
    const auto count = static_cast<int>(c.operands.size());
    if (c.op->operand_count >= 0)
      CHECK_MESSAGE(c.op->operand_count == count, c.op->name);
    else
      CHECK_MESSAGE(count > 0, c.op->name);
    if (c.op->role == pt::op_role::tag) continue;  // has no list of operands
    const std::string text = str(pt::print(program_of(c)));
    const auto code = [](const std::string& s) {
      return str(pt::parse(s).error.message).substr(0, 4);
    };
    const auto call = text.find(" = ");
    const auto open = text.find('(', call), close = text.find(')', call);
    if (count == 0) {
      auto more = text;
      more.insert(more.find_first_of(" \n", call + 3), "(%y)");
      CHECK(code(more) == "P014");
      continue;
    }
    if (c.op->operand_count >= 0) {
      auto more = text;
      more.insert(close, ", %a");
      CHECK_MESSAGE(code(more) == "P017", more);
    }
    auto none = text;
    none.erase(open, close + 1 - open);
    CHECK_MESSAGE(code(none) == "P017", none);
  }
}

TEST_CASE("a text with a missing or replaced character does no harm") {
  data::random r{5};
  const std::string_view others = "%x(){}[]=:,.<>\"'-0129aefn \n";
  for (const op_case& c : all_cases()) {
    const std::string text = str(pt::print(program_of(c)));
    for (int i = 0; i < 12; ++i) {
      std::string changed = text;
      const auto at = static_cast<std::size_t>(r.in(0, static_cast<std::int64_t>(text.size()) - 1));
      if (r.one_in(3))
        changed.erase(at, static_cast<std::size_t>(r.in(1, 4)));
      else
        changed[at] = r.pick(others);
      const pt::program p = pt::parse(changed);
      if (p.error)
        CHECK(p.error.message.size() > 5);
      else  // another program, or the same program in other words
        check_round_trip(p);
    }
  }
}

TEST_CASE("whole programs parse back") {
  check_round_trip(pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                             pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                             pt::input<float, 16, 8>("w2")));
  check_round_trip(transformer::trace_logits<transformer::dynamic>({2, 8, 2, 4, 16, 11, 6, 4}));
  check_round_trip(
      transformer::trace_training_step<transformer::dynamic>({2, 8, 2, 4, 16, 11, 6, 4}));
}

TEST_CASE("device-local programs parse back, with their mesh") {
  namespace tf = transformer;
  const auto source = tf::trace_training_step<tf::dynamic>({2, 8, 2, 4, 16, 12, 6, 4});
  const pt::mesh mesh{{"B", 2}, {"M", 2}};
  const auto check = [&](const auto& partitioned) {
    const std::string text = str(pt::print(partitioned.device));
    pt::mesh read;
    const pt::program p = pt::parse(text, read);
    CHECK_MESSAGE(!p.error, str(p.error.message));
    CHECK(str(pt::print(p, &read)) == text);
    CHECK(pt::equivalent(p, partitioned.device.local));
  };
  check(pt::partition(source, mesh, pt::schedule(tf::BP, tf::MP, tf::Z2)));
  check(pt::partition(source, mesh, pt::schedule(tf::BP, tf::MP, tf::Z3)));
  // All combiners, and blocks with a start.
  const auto combined = pt::trace(
      [](auto x) {
        const auto n = x + pt::iota<std::int32_t, 1>(x, 4, 8);
        return std::tuple{sum<0>(n),  reduce_max<0>(n), reduce_min<0>(n),
                          prod<0>(n), all<0>(n > 2),    any<0>(n > 2)};
      },
      pt::input<std::int32_t, 4, 8>("x"));
  check(pt::partition(combined, mesh,
                      pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"x", 1}}))));
  // A sum that is scattered over two dimensions, with the axes in another order than either of
  // them.
  const auto scattered = pt::trace([](auto x, auto w, auto y) { return matmul(x, w) + y; },
                                   pt::input<float, 4, 8>("x"), pt::input<float, 8, 4>("w"),
                                   pt::input<float, 4, 4>("y"));
  check(pt::partition(
      scattered, mesh,
      pt::schedule(pt::manual("B", {{"x", 1}, {"y", 1}}), pt::manual("M", {{"x", 1}, {"y", 0}}))));
  const auto call = [](std::string_view attributes) {
    pt::mesh read;
    const pt::program p = pt::parse(
        pt::concat(
            "func @main(%a: tensor<8x8xf32>) attributes {mesh = {\"x\":2, \"y\":4}} {\n  %b = ",
            attributes, " %a : tensor<8x8xf32>\n  return %b : tensor<8x8xf32>\n}\n"),
        read);
    return str(p.error.message).substr(0, 4);
  };
  for (const char* good :
       {"all_reduce <@max> <\"x\", \"y\">", "reduce_scatter <@min> [{\"y\"}, {}]",
        "all_to_all {0 -> 1} <\"x\">", "all_slice [{}, {}]"})
    CHECK_MESSAGE(call(good) == "", std::string(good));
  for (const char* bad :
       {"all_reduce <\"z\">", "all_reduce <\"x\", \"x\">", "all_reduce <@sum> <\"x\">",
        "all_reduce", "all_gather [{\"x\"}]", "all_gather [{\"x\"}, {\"x\"}]",
        "all_to_all {0 -> 2} <\"x\">", "all_to_all {0 -> 0} <\"x\">", "all_slice [{}, {}] more",
        "permute {+0} <\"x\">", "permute {--9223372036854775808} <\"x\">"})
    CHECK_MESSAGE(call(bad) == "P011", std::string(bad));
  pt::mesh read;
  CHECK(str(pt::parse("func @main() attributes {mesh = {\"B\":0}} {", read).error.message) ==
        "M001 mesh: axis \"B\" has size 0; an axis has at least one device");
}

TEST_CASE("names of outputs are implied by the values, or printed") {
  const pt::program p =
      pt::trace(sharing, pt::input<float, 4, 8>("x"), pt::input<float, 8, 2>("w"));
  check_round_trip(p);
  const std::string text = str(pt::print(p));
  CHECK(text.find("  return %y, %y as \"again\", %h as \"seen\", %w as \"in\", %x', %x3 as \"x3\", "
                  "%w' as \"w'\" :") != std::string::npos);
  const auto name = [](std::string_view body) {
    const pt::program q =
        pt::parse(str(pt::concat("func @main(%x: tensor<2xf32>) { ", body, " : tensor<2xf32> }")));
    CHECK(str(q.error.message) == "");
    return std::string(q.output_name(0));
  };
  CHECK(name("%x1 = exp(%x) : tensor<2xf32> return %x1") == "result");
  CHECK(name("%y = exp(%x) : tensor<2xf32> return %y") == "y");
  CHECK(name("%y1 = exp(%x) : tensor<2xf32> return %y1") == "y1");
  CHECK(name("%x' = exp(%x) : tensor<2xf32> return %x'") == "x");
  CHECK(name("%y' = exp(%x) : tensor<2xf32> return %y'") == "y'");
  CHECK(name("%xt = tiling(%x) : tensor<2xf32> return %xt") == "result");
  CHECK(name("return %x") == "result");
  CHECK(name("return %x as \"y\"") == "y");
}

TEST_CASE("programs are equal up to the numbers of their values, and nothing else") {
  const std::string text =
      str(pt::print(pt::trace(sharing, pt::input<float, 4, 8>("x"), pt::input<float, 8, 2>("w"))));
  const pt::program p = pt::parse(text);
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    for (auto at = other.find(from); at != std::string::npos; at = other.find(from, at + to.size()))
      other.replace(at, from.size(), to);
    const pt::program q = pt::parse(other);
    REQUIRE_MESSAGE(!q.error, str(q.error.message));
    CHECK(other != text);
    CHECK(pt::equivalent(p, q) == pt::equivalent(q, p));
    return !pt::equivalent(p, q);
  };
  CHECK(!changed("%x2", "%x99"));           // a number
  CHECK(!changed("%x2", "%first"));         // of no output
  CHECK(changed("%y", "%z"));               // an output
  CHECK(changed("\"again\"", "\"also\""));  // the same
  CHECK(changed("%w", "%v"));               // an input
  CHECK(!changed("%h", "%g"));              // of a tag: its name is the quoted one
  CHECK(changed("\"h\"", "\"g\""));         // the same
  CHECK(changed("exp(", "tanh("));          // an op
  CHECK(changed("{0.1}", "{0.2}"));         // an attribute
  CHECK(changed("exp(%h)", "exp(%x2)"));    // an operand
  CHECK(changed("f32", "f64"));             // a type
  CHECK(changed("%h as", "%y as"));         // a returned value
}
