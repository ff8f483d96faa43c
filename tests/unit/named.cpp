// Named parts of programs: which part each op belongs to, through derivatives, loops and tidying.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace {

namespace pt = partita;

constexpr auto twice = [](auto x) { return x + x; };
constexpr auto squash = [](auto x, auto w) { return tanh(matmul(x, w)); };

/// Returns `op: stage0/layer1 1` for each op in a part, with its transpose count.
std::string parts(const pt::program& p) {
  pt::text out;
  pt::ir_detail::for_each_op(p, [&](const pt::op_node& n) {
    const int scope = p.scopes.of(n.marks.source);
    if (scope < 0) return;
    pt::text path;
    for (int s = scope; s >= 0; s = p.scopes.outer(s)) {
      pt::text part = p.scopes.name(s);
      if (p.scopes.call(s) > 0) part << '#' << p.scopes.call(s);
      path = pt::concat(part, path.empty() ? "" : "/", path);
    }
    out << n.def->name << ": " << path;
    if (n.marks.transposed > 0) out << ' ' << n.marks.transposed;
    out << '\n';
  });
  return unit::str(out);
}

constexpr bool only_named_ops_have_parts() {
  const pt::program p =
      pt::trace([](auto x) { return pt::named("layer1", twice)(x) * x; }, pt::input<float, 4>("x"));
  bool good = p.scopes.count() == 1 && p.scopes.name(0) == "layer1" && p.scopes.call(0) == 0;
  for (const auto& n : p.ops)
    good = good && (p.scopes.of(n.marks.source) == 0) == (n.def->name == "add");
  return good && p.scopes.outer(0) == -1;
}
static_assert(only_named_ops_have_parts());

}  // namespace

TEST_CASE("a program without names has no parts") {
  CHECK(pt::trace(twice, pt::input<float, 4>("x")).scopes.empty());
}

TEST_CASE("parts nest; each call is a part of its own") {
  const auto p = pt::trace(
      [](auto x) {
        const auto stage =
            pt::named("stage", 0, [](auto y) { return exp(pt::named("layer1", twice)(tanh(y))); });
        return stage(stage(x) - x);
      },
      pt::input<float, 4>("x"));
  CHECK(parts(p) ==
        "tanh: stage.0\nadd: stage.0/layer1\nexp: stage.0\n"
        "tanh: stage.0#1\nadd: stage.0#1/layer1#1\nexp: stage.0#1\n");
}

TEST_CASE("derivatives belong to the part of the op that they differentiate, with a count") {
  const auto p = pt::trace(
      [](auto x, auto v, auto w) {
        return pt::grad(
            [&](auto both) {
              const auto h = pt::named("layer1", squash)(x, std::get<0>(both));
              return sum(pt::named("layer2", squash)(h, std::get<1>(both)) - h);
            },
            std::tuple{v, w});
      },
      pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("v"), pt::input<float, 4, 4>("w"));
  const std::string all = parts(p);
  CHECK(all.find("dot_general: layer1\ntanh: layer1\n") != std::string::npos);
  CHECK(all.find("dot_general: layer2 1\n") != std::string::npos);
  CHECK(all.find("dot_general: layer1 1\n") != std::string::npos);
  // No op needs the last op of the forward pass; its derivative still belongs to the same part. The
  // op that adds the derivatives of two parts belongs to neither.
  for (const auto& n : p.ops) {
    const bool joins = n.def->adds && n.marks.transposed == 1 &&
                       p.operand_list[n.operand_begin] != p.operand_list[n.operand_begin + 1];
    if (joins) CHECK(p.scopes.of(n.marks.source) == -1);
  }
  const auto second = pt::trace(
      [](auto x) {
        const auto f = [](auto y) {
          return sum(pt::named("cube", [](auto z) { return z * z * z; })(y));
        };
        return pt::grad([&](auto y) { return sum(pt::grad(f, y)); }, x);
      },
      pt::input<float, 4>("x"));
  CHECK(parts(second).find("multiply: cube 2\n") != std::string::npos);
}

TEST_CASE("parts in loops, and loops in parts, keep their ops") {
  const auto model = [](auto x, auto w) {
    return pt::grad(
        [&](auto v) {
          const auto body = [&](auto, auto h) { return pt::named("inner", squash)(h, v); };
          return sum(pt::named("loop", [&](auto y) { return pt::for_loop(0, 3, body, y); })(x));
        },
        w);
  };
  const auto p = pt::trace(model, pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w"));
  const std::string all = parts(p);
  INFO(all);
  CHECK(all.find("scan: loop\n") != std::string::npos);
  CHECK(all.find("dot_general: loop/inner\n") != std::string::npos);
  CHECK(all.find("scan: loop 1\n") != std::string::npos);
  CHECK(all.find("dot_general: loop/inner 1\n") != std::string::npos);
}

TEST_CASE("a named tensor is a part with its producer; an input can be one too") {
  const auto p = pt::trace(
      [](auto x) {
        const auto y = pt::named_tensor("y", exp(pt::named_tensor("mine", x)));
        return pt::named("layer1",
                         [](auto z) { return pt::named_tensor("inside", tanh(z)) + z; })(y);
      },
      pt::input<float, 4>("x"));
  CHECK(parts(p) == "parameter: mine\nexp: y\ntanh: layer1/inside\nadd: layer1\n");
}

TEST_CASE("an op that adds derivatives belongs to the part that contains all their parts") {
  // u is used twice in "inner", in "outer" around it, and in "other".
  const auto p = pt::trace(
      [](auto x) {
        return pt::grad(
            [](auto v) {
              const auto u = exp(v);
              const auto y = pt::named("outer", [](auto z) {
                return z * pt::named("inner", [](auto t) { return sin(t) * cos(t); })(z);
              })(u);
              return sum(pt::named("other", twice)(u) * y);
            },
            x);
      },
      pt::input<float, 4>("x"));
  pt::text out;
  for (const auto& n : p.ops) {
    if (!n.def->adds) continue;
    const int s = p.scopes.of(n.marks.source);
    out << (s < 0 ? std::string_view("none") : p.scopes.name(s)) << ' ';
  }
  // (The first op is the sum of "other" itself.) The contribution of "other" comes last.
  CHECK(unit::str(out) == "other outer outer none none ");
}
