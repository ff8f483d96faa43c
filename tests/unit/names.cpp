// Names of arbitrary characters: printed programs, action texts and errors read back.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;
using unit::thrown;

namespace {

/// Names that look like other syntax, and random names of all bytes.
std::vector<std::string> awkward_names() {
  std::vector<std::string> names = {"a b",
                                    "a\nb",
                                    "a\tb",
                                    std::string("a\0b", 3),
                                    "a\"b",
                                    "\"",
                                    "\\",
                                    "a\\",
                                    "a,b",
                                    "<",
                                    ">",
                                    "%",
                                    "a%b",
                                    " ",
                                    "α→β",
                                    "\xff\xfe",
                                    "params['h']['w']",
                                    "params['h'] [0]",
                                    ")",
                                    "x)",
                                    "a:",
                                    ":",
                                    "a:b)",
                                    "}",
                                    "{",
                                    "do",
                                    "return",
                                    "=",
                                    "x1",
                                    "x2",
                                    "'",
                                    "x'",
                                    "x''",
                                    "a;b",
                                    "h;\n i",
                                    "result",
                                    "result.0",
                                    "\\x0a",
                                    "\\n",
                                    "\r",
                                    "\x7f",
                                    "\"B\":(1)2",
                                    "a as \"b\"",
                                    "x1g"};
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string name;
    const auto length = 1 + random() % 6;
    for (unsigned k = 0; k < length; ++k)
      name +=
          static_cast<char>(i % 2 == 0 ? random() % 256 : " \"\\%',<>()'\n:{}xg1"[random() % 18]);
    names.push_back(name);
  }
  return names;
}

/// A program whose inputs, tag, named computation and outputs have these names.
pt::program program_with(const std::string& a, const std::string& b, const std::string& c) {
  return pt::trace(
      [&](auto x, auto y) {
        auto h = pt::tag(c, matmul(x, y));
        auto f = pt::call(
            a, [](auto z) { return exp(z); }, h);
        return std::tuple{pt::output(a, x + x), pt::output(b + "'", f + h), pt::output(c, h)};
      },
      pt::input<float, 8, 4>(a), pt::input<float, 4, 6>(b));
}

void check_round_trip(const pt::program& p) {
  const pt::text printed = pt::print(p);
  const pt::program back = pt::parse(printed);
  CHECK_MESSAGE(!back.error, str(back.error.message), "\n", str(printed));
  CHECK_MESSAGE(pt::equivalent(p, back), str(printed));
  CHECK(str(pt::print(back)) == str(printed));
  for (int i = 0; i < p.output_count() && i < back.output_count(); ++i)
    CHECK(p.output_name(i) == back.output_name(i));
}

}  // namespace

static_assert(pt::name_text("params['h']['w']") == "params['h']['w']");
static_assert(pt::name_text("a b") == "\"a b\"");
static_assert(pt::name_text("a\"\\\n\x01") == "\"a\\\"\\\\\\n\\x01\"");
static_assert(pt::unquoted("\"a\\\"\\\\\\n\\x01\"'") == "a\"\\\n\x01'");

TEST_CASE("plain names are printed as they are, others in quotes") {
  const auto p =
      pt::trace([](auto x, auto y) { return pt::output("a b", pt::tag("h i", x + y)); },
                pt::input<float, 4>("params['h'][0]"), pt::input<float, 4>("params['h'] [1]"));
  CHECK(str(pt::print(p)) ==
        R"(func @main(%params['h'][0]: tensor<4xf32>, %"params['h'] [1]": tensor<4xf32>) {
  %x1 = add(%params['h'][0], %"params['h'] [1]") : tensor<4xf32>
  %"h i" = tag "h i" %x1 : tensor<4xf32>
  return %"h i" as "a b" : tensor<4xf32>
}
)");
  check_round_trip(p);
}

TEST_CASE("law: parse(print(p)) = p for names of all bytes") {
  const auto names = awkward_names();
  for (std::size_t i = 0; i + 2 < names.size(); ++i) {
    const std::string &a = names[i], &b = names[i + 1], &c = names[i + 2];
    if (a == b || b == c || a == c || a == b + "'" || c == b + "'") continue;
    check_round_trip(program_with(a, b, c));
  }
}

TEST_CASE("law: partitioned programs and their actions read back") {
  const auto names = awkward_names();
  for (std::size_t i = 0; i + 2 < names.size(); i += 3) {
    const std::string &a = names[i], &b = names[i + 1], &c = names[i + 2];
    if (a == b || b == c || a == c || a == b + "'" || c == b + "'") continue;
    const pt::program p = program_with(a, b, c);
    for (const std::string& axis : {std::string("B"), a}) {
      if (axis == "M") continue;
      const pt::mesh mesh{{axis, 2}, {"M", 2}};
      if (pt::validate(mesh)) {
        CHECK(pt::validate(mesh).message.view().substr(0, 4) == "M004");
        continue;
      }
      const auto q = pt::partition(
          p, mesh, pt::schedule(pt::manual(axis, {{a, 0}, {b, 0}}), pt::manual("M", {{c, 1}})));
      const pt::text local = pt::print(q.device.local, &q.device.mesh);
      pt::mesh read;
      const pt::program back = pt::parse(local, read);
      CHECK_MESSAGE(!back.error, str(back.error.message), "\n", str(local));
      CHECK(str(pt::print(back, &read)) == str(local));
      const pt::text log = pt::print_actions(q.core, q.sharded());
      pt::core_program again(q.sharded(), q.mesh().whole());
      const auto f = pt::replay(again, q.sharded(), log);
      CHECK_MESSAGE(!f, str(f.message), "\n", str(log));
      CHECK(str(pt::print_core(again)) == str(pt::print_core(q.core)));
      CHECK(str(pt::print_actions(again, q.sharded())) == str(log));
    }
  }
}

TEST_CASE("a quoted name may be spelled in several ways") {
  const pt::program p = pt::parse(
      "func @main(%\"a b\": tensor<4xf32>, %\"c\": tensor<4xf32>) {\n"
      "  %\"\\x64\" = add(%\"a\\x20b\", %c) : tensor<4xf32>\n"
      "  return %d : tensor<4xf32>\n}\n");
  CHECK(str(p.error.message) == "");
  CHECK(p.output_name(0) == "d");
  const pt::program q = pt::parse(
      "func @main(%\"a b\": tensor<4xf32>) {\n"
      "  %d = exp(%\"a\\x20b\") : tensor<4xf32>\n"
      "  return %d : tensor<4xf32>\n}\n");
  CHECK(str(q.error.message) == "");
  CHECK(q.input_name(0) == "a b");
  for (const char* name : {"\"a", "\"a\\", "\"a\\q\"", "\"a\\x4\"", "\"a\\x4g\""})
    CHECK(pt::parse(pt::concat("func @main(%", name, ": tensor<f32>) {"))
              .error.message.view()
              .substr(0, 4) == "P012");
}

TEST_CASE("errors have one line, whatever the names") {
  const auto p = program_with("a\nb", "c\rd", "e\x01");
  const std::string message = thrown([&] {
    pt::partition(p, pt::mesh{{"B", 3}}, pt::schedule(pt::manual("B", {{"a\nb", 0}})));
  });
  CHECK(message.substr(0, 45) == "S003 tile: dimension 0 of \"a\\nb\" has size 8; ");
  CHECK(message.find('\n') == message.npos);
  CHECK(std::string(pt::error(std::string_view("R002 run: \"a\nb\0\"", 16)).what()) ==
        "R002 run: \"a\\nb\\x00\"");
  const auto q = pt::partition(p, pt::mesh{{"B", 2}},
                               pt::schedule(pt::manual("B", {{"a\nb", 0}, {"c\rd", 0}})));
  for (const auto& text : {pt::report(q), pt::explain(q), pt::print_replicated(q)}) {
    CHECK(str(text).find("a\nb") == std::string::npos);
    CHECK(str(text).find('\r') == std::string::npos);
  }
  CHECK(thrown([] { pt::trace([](auto x) { return exp(x); }, pt::input<float, 4>("")); }) ==
        "P009 trace: input name \"\" is empty; give it a name");
}

TEST_CASE("M004 names that axes cannot have") {
  const auto code = [](std::string_view name) {
    return str(pt::validate(pt::mesh{{name, 2}}).message);
  };
  CHECK(code("a\nb") ==
        "M004 mesh: the name of axis 0, \"a\\nb\", has quotes or control characters, or ends like "
        "a part of an axis, :(1)2; choose another name");
  for (const char* name : {"\"", "a\"", "\t", "\x7f", "a:(1)2", "a\":(1)2"})
    CHECK(code(name).substr(0, 4) == "M004");
  for (const char* name :
       {"a b", "a,b", "}", "{", "%", "a:b", "a:(1)", "a:(1)2 ", "α", "\\", "<a>"})
    CHECK(code(name) == "");
  // A name that differs only after the maximum length is refused as too long, not taken as equal.
  const std::string start(31, 'a');
  CHECK(str(pt::validate(pt::mesh{{start + "b", 2}, {start + "c", 2}}).message) ==
        "M004 mesh: the name of axis 0 has 32 characters; 1 to 31 are allowed");
}

TEST_CASE("equal names of tags, trees, cotangents and copies are told apart") {
  const auto tags_of = [](const pt::program& p) {
    std::vector<std::string> list;
    pt::ir_detail::for_each_tag(p, [&](const pt::program& in, const pt::op_node& n) {
      list.emplace_back(in.view(n.name));
    });
    std::sort(list.begin(), list.end());
    return list;
  };
  using names = std::vector<std::string>;
  const auto square = [](const auto& h) { return pt::tag("h", h * h); };
  // Numbers count in the order in which the model is written. A name that is used once has no
  // number.
  CHECK(tags_of(pt::trace([&](auto x) { return sum(pt::tag("last", square(square(square(x))))); },
                          pt::input<float, 4>("x"))) == names{"h.0", "h.1", "h.2", "last"});
  // A tree's leaves have its paths, in two copies.
  const auto pair = [](auto x) {
    const auto both = pt::tag("both", std::array{x, x + x});
    return sum(pt::tag("both", both)[0] * both[1]);
  };
  CHECK(tags_of(pt::trace(pair, pt::input<float, 4>("x"))) ==
        names{"both.0.0", "both.0.1", "both.1.0"}  // "both.1.1" is not used
  );
  // A cotangent has the name of its tag, at any order of differentiation.
  const auto loss = [&](const auto& x) { return sum(square(square(x))); };
  const auto once = [&](const auto& x) { return pt::grad(loss, x); };
  CHECK(tags_of(pt::trace(once, pt::input<float, 4>("x"))) ==
        names{"grad.h.0", "grad.h.1", "h.0"});  // nothing reads "h.1"
  const auto twice = [&](const auto& x) {
    return pt::grad([&](const auto& y) { return sum(once(y)); }, x);
  };
  const names second = tags_of(pt::trace(twice, pt::input<float, 4>("x")));
  CHECK(std::count(second.begin(), second.end(), "grad.grad.h.0") == 1);
  // In a loop, which the derivative runs again without reading "h.1".
  const auto loop = [&](const auto& w) {
    return sum(pt::for_loop(
        0, 3, [&](auto, auto h) { return square(square(h) * w); }, w));
  };
  CHECK(tags_of(pt::trace([&](auto w) { return pt::grad(loop, w); }, pt::input<float, 4>("w"))) ==
        names{"grad.h.0", "grad.h.1", "h.0", "h.0.again", "h.1"});
}
TEST_CASE("a cotangent has the layout of its tag, unless a tactic sets another") {
  const auto model = [](auto x, auto w) {
    return pt::grad([&](const auto& v) { return sum(tanh(pt::tag("h", matmul(x, v)))); }, w);
  };
  const pt::program f = pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w"));
  const auto dim_of_cotangent = [&](const auto&... tactics) {
    const auto p = pt::partition(f, pt::mesh{{"B", 2}}, pt::schedule(tactics...));
    const pt::program& q = p.core.p;
    for (pt::op_id o = 0; o < q.op_count(); ++o)
      if (q.is(o, pt::op_role::tag) && q.view(q.op(o).name) == "grad.h")
        return p.core.dim_of(q.op(o).result, 0);
    return -2;
  };
  CHECK(dim_of_cotangent(pt::manual("B", {{"h", 0}})) == 0);
  CHECK(dim_of_cotangent(pt::manual("B", {{"h", 1}})) == 1);
  CHECK(dim_of_cotangent(pt::manual("B", {{"**", pt::unknown}, {"h", 1}})) == -1);
  CHECK(dim_of_cotangent(pt::manual("B", {{"h", pt::replicated}})) == -1);
  CHECK(dim_of_cotangent(pt::manual("B", {{"h", 1}, {"grad.h", 0}})) == 0);
  CHECK(dim_of_cotangent(pt::manual("B", {{"h", 1}, {"grad", 0}})) == 0);
  CHECK(dim_of_cotangent(pt::manual("B", {{"h", [](std::string_view name, const pt::shape&) {
                                             return name == "h" ? pt::placement(1)
                                                                : pt::placement(pt::unknown);
                                           }}})) == 1);
}
