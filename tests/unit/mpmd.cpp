// Meshes of ops: topologies, assignment, inference and cutting into fragments.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <tuple>

#include <partita/mpmd/fragments.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/partita.hpp>

#include "texts.hpp"

namespace {

namespace pt = partita;
using unit::str;

constexpr pt::topology three{{"m0", {{"B", 4}}}, {"m1", {{"B", 2}, {"M", 2}}}, {"m2", {{"M", 8}}}};

constexpr auto twice = [](auto x) { return x + x; };
constexpr auto both = [](auto x, auto y) { return x - y; };
template <class... Specs>
pt::program traced(const auto& model, const Specs&... names) {
  return pt::trace(model, pt::input<float, 4>(names)...);
}

std::string refusal(const pt::program& p, const pt::assignment& a, const pt::topology& t = three) {
  return unit::thrown([&] { pt::to_mpmd(p, t, a); });
}
std::string meshes(pt::mesh_set s) { return str(pt::mesh_names(three, s)); }

/// Returns one entry per fragment: `layer1(1)@m0: multiply add; @m1: tanh`.
std::string cut(const pt::mpmd_program& m) {
  pt::text out;
  for (const auto& f : m.fragments) {
    if (!out.empty()) out << "; ";
    for (const auto& o : f.origins) {
      out << o.name;
      if (o.transposed > 0) out << '(' << o.transposed << ')';
      if (o.call > 0) out << '#' << o.call;
    }
    out << '@' << m.topology.name(f.mesh) << ':';
    for (pt::op_id o : f.ops) out << ' ' << m.source.op(o).def->name;
  }
  return str(out);
}
/// Returns each transfer as `x1 m0 m1`, separated by commas.
std::string sent(const pt::mpmd_program& m) {
  const pt::value_names names(m.source);
  pt::text out;
  for (const auto& t : m.transfers)
    out << (out.empty() ? "" : ", ") << names[t.value] << ' ' << m.topology.name(t.from) << ' '
        << m.topology.name(t.to);
  return str(out);
}

}  // namespace

TEST_CASE("topologies: invalid ones are refused") {
  const auto text = [](const pt::topology& t) { return str(pt::validate(t).message); };
  CHECK(text(three) == "");
  CHECK(text({}) == "O101 topology: it has 0 meshes; 1 to 64 are allowed");
  pt::topology many;
  for (int i = 0; i < 65; ++i) many.push_back({pt::concat("m", i).view(), {{"B", 1}}});
  CHECK(text(many) == "O101 topology: it has 65 meshes; 1 to 64 are allowed");
  CHECK(text({{"", {{"B", 1}}}}) ==
        "O102 topology: the name of mesh 0 has 0 characters; 1 to 31 are allowed");
  CHECK(text({{"m", {{"B", 1}}}, {"m", {{"B", 2}}}}) ==
        "O103 topology: two meshes are named \"m\"");
  CHECK(text({{"m", {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}}},
              {"n", {{"f", 1}, {"g", 1}, {"h", 1}, {"i", 1}, {"a", 1}}}}) ==
        "O104 topology: its meshes have 9 different axes; at most 8 are supported");
  CHECK(text({{"m", {{"B", 0}}}}) ==
        "M001 mesh: axis \"B\" has size 0; an axis has at least one device (mesh \"m\")");
  CHECK(str(pt::concat(three)) == R"({"m0": {"B":4}, "m1": {"B":2, "M":2}, "m2": {"M":8}})");
  const pt::topology fast{{"m", {{"B", 2}}, pt::a100_80}};
  CHECK(fast[0].has_device);
  CHECK(fast[0].device == pt::a100_80);
}

// Shardy:MPMD, "Mesh inference": a and its copy t, b on m2, x = a + a, z = x + b.
TEST_CASE("use_set and src_set are those of the RFC") {
  const auto p = traced(
      [](auto u) {
        const auto a = pt::named("a", [](auto v) { return exp(v); })(u);
        const auto t = pt::named("t", [](auto v) { return tanh(v); })(a);
        const auto b = pt::named("b", [](auto v) { return sin(v); })(u);
        const auto x = pt::tag("x", a * a);
        const auto z = x - b;
        return std::tuple{pt::output("t", t), pt::output("y", x), pt::output("w", z)};
      },
      "u");
  const pt::assignment a{.names = {{"a", "m1"}, {"t", "m2"}, {"b", "m2"}},
                         .outputs = {{"y", "m1"}, {"w", "m2"}}};
  const auto where = pt::mpmd_detail::infer_meshes(p, three, a);
  const auto op = [&](std::string_view name) {
    for (pt::op_id o = 0; o < p.op_count(); ++o)
      if (p.op(o).def->name == name) return o;
    return -1;
  };
  CHECK(meshes(where.use[op("multiply")]) == R"({"m1", "m2"})");
  CHECK(meshes(where.src[op("multiply")]) == R"({"m1", "m2"})");
  CHECK(meshes(where.use[op("subtract")]) == R"({"m2"})");
  CHECK(meshes(where.src[op("subtract")]) == R"({"m2"})");  // (The RFC says {}.)
  const auto m = pt::to_mpmd(p, three, a);
  CHECK(cut(m) == "a@m1: exp multiply tag; b@m2: multiply tag sine subtract; t@m2: tanh");
  CHECK(sent(m) == "u m1 m2, x1 m1 m2");
  CHECK(m.mesh_of_input("u") == "m1");
  CHECK(m.mesh_of_output("y") == "m1");
  CHECK(m.mesh_of_output("w") == "m2");
  CHECK(m.mesh_of_output("t") == "m2");
  CHECK(m.mesh_of_output("v") == "");
}

TEST_CASE("assignments: invalid ones are refused") {
  const auto p = traced(
      [](auto x) {
        return pt::named("stage0", [](auto y) { return exp(pt::named("layer1", twice)(y)); })(x);
      },
      "x");
  CHECK(refusal(p, {.names = {{"layer1", "m3"}}}) ==
        "O105 mpmd: \"layer1\" is assigned to mesh \"m3\", which the topology does not have; "
        "known: m0, m1, m2; did you mean \"m0\"?");
  CHECK(refusal(p, {.inputs = {{"x", "M0"}}}) ==
        "O105 mpmd: \"x\" is assigned to mesh \"M0\", which the topology does not have; "
        "known: m0, m1, m2; did you mean \"m0\"?");
  CHECK(refusal(p, {.names = {{"layer1", "m0"}, {"layer1", "m1"}}}) ==
        "O106 mpmd: \"layer1\" is assigned twice, to mesh \"m0\" and to mesh \"m1\"; name it once");
  CHECK(refusal(p, {.names = {{"layer1", "m1"}, {"stage0", "m0"}}}) ==
        "O107 mpmd: part \"layer1\" is assigned to mesh \"m1\" and is inside part \"stage0\", "
        "which is assigned to mesh \"m0\"; assign both to one mesh, or only one of them");
  CHECK(refusal(p, {.names = {{"layer2", "m0"}}}) ==
        "O108 mpmd: no named part has the name \"layer2\" or is below it; known: stage0, layer1; "
        "did you mean \"layer1\"?");
  CHECK(refusal(p, {.outputs = {{"y", "m0"}}}) ==
        "O108 mpmd: no output has the name \"y\" or is below it; known: result");
  CHECK(refusal(p, {}, {}) == "O101 topology: it has 0 meshes; 1 to 64 are allowed");
  CHECK(cut(pt::to_mpmd(p, three, {.names = {{"layer1", "m1"}, {"stage0", "m1"}}})) ==
        "stage0@m1: add exp");
  CHECK(cut(pt::to_mpmd(p, three, {.names = {{"stage0.layer1", "m2"}}})) == "layer1@m2: add exp");
}

TEST_CASE("the longest matching name wins; patterns; stages") {
  const auto p = traced(
      [](auto x) {
        for (int i = 0; i < 4; ++i) x = pt::named("layers", i, twice)(x);
        return pt::named("head", twice)(x);
      },
      "x");
  const auto m =
      pt::to_mpmd(p, three, {.names = {{"layers", "m0"}, {"layers.2", "m1"}, {"h*", "m1"}}});
  CHECK(cut(m) ==
        "layers.0@m0: add; layers.1@m0: add; layers.2@m1: add; layers.3@m0: add; head@m1: add");
  const auto stages = [](const pt::mpmd_program& q) {
    std::string out;
    for (const auto& f : q.fragments) out += std::to_string(f.stage);
    return out;
  };
  CHECK(stages(m) == "00101");
  const pt::assignment around{.names = {{"layers.0", "m0"},
                                        {"layers.1", "m1"},
                                        {"layers.2", "m0"},
                                        {"layers.3", "m1"},
                                        {"head", "m1"}}};
  CHECK(stages(pt::to_mpmd(p, three, around)) == "01233");
  CHECK(stages(pt::to_mpmd(p, three, {.names = {{"layers", "m0", 3}, {"head", "m0"}}})) == "33333");
  CHECK(m.find("layers.2") == 2);
  CHECK(m.find("layers.2", 1) == -1);
}

TEST_CASE("a part that is called twice becomes two fragments") {
  const auto p = traced(
      [](auto x) {
        const auto f = pt::named("shared", twice);
        return f(pt::named("between", twice)(f(x)));
      },
      "x");
  CHECK(cut(pt::to_mpmd(p, three, {.names = {{"shared", "m0"}, {"between", "m1"}}})) ==
        "shared@m0: add; between@m1: add; shared#1@m0: add");
}

TEST_CASE("labelled ops are selected too, and are cut where they wait for others") {
  auto p = traced([](auto x) { return tanh(exp(sin(x))); }, "x");
  for (const auto& n : p.ops) {
    const auto name = n.def->name;
    p.labels.add(name == "parameter" ? ""
                 : name == "exp"     ? "other.exp"
                                     : "layers.0.attn",
                 n.def->id);
  }
  CHECK(cut(pt::to_mpmd(p, three, {.names = {{"layers", "m0"}, {"other", "m1"}}})) ==
        "layers.0@m0: sine; other@m1: exp; layers.0@m0: tanh");
  CHECK(cut(pt::to_mpmd(p, three, {.names = {{"layers", "m0"}, {"other", "m0"}}})) ==
        "layers.0@m0: sine; other@m0: exp; layers.0@m0: tanh");
  CHECK(refusal(p, {.names = {{"layer", "m0"}}}) ==
        "O108 mpmd: no named part has the name \"layer\" or is below it; known: layers.0.attn, "
        "other.exp, layers.0.attn; did you mean \"layers\"?");
}

TEST_CASE("unnamed ops run where they are needed, if their operands can be sent there") {
  const auto p = traced(
      [](auto x) {
        const auto a = pt::named("layer1", twice)(x);
        return pt::named("layer2", twice)(tanh(exp(a)));
      },
      "x");
  const pt::vec<pt::mesh_for> names{{"layer1", "m0"}, {"layer2", "m1"}};
  CHECK(refusal(p, {.names = names}) ==
        "O110 mpmd: exp (%x2: tensor<4xf32>) is needed on mesh \"m1\" for \"layer2\" by tanh, and "
        "is computed from results of \"layer1\" on mesh \"m0\"; nothing sends them: give the op a "
        "name, or set infer_transfers");
  const auto m = pt::to_mpmd(p, three, {.names = names, .infer_transfers = true});
  CHECK(cut(m) == "layer1@m0: add; layer2@m1: exp tanh add");
  CHECK(sent(m) == "x1 m0 m1");
  const auto q = traced(
      [](auto x) {
        const auto a = pt::named("layer1", twice)(x);
        return pt::output("y", sin(tanh(exp(a))));
      },
      "x");
  CHECK(refusal(q, {.names = {{"layer1", "m0"}}, .outputs = {{"y", "m2"}}}) ==
        "O110 mpmd: exp (%x2: tensor<4xf32>) is needed on mesh \"m2\" for output \"y\" by tanh, "
        "sine, and is computed from results of \"layer1\" on mesh \"m0\"; nothing sends them: give "
        "the op a name, or set infer_transfers");
  // The result of a part is sent to the mesh where an output is requested.
  const auto r = traced([](auto x) { return pt::output("y", pt::named("f", twice)(x)); }, "x");
  CHECK(sent(pt::to_mpmd(r, three, {.names = {{"f", "m0"}}, .outputs = {{"y", "m2"}}})) ==
        "y m0 m2");
}

TEST_CASE("each value is sent to a mesh once, from the mesh that computes it") {
  const auto p = traced(
      [](auto x) {
        const auto a = pt::named("a", twice)(x);
        const auto b = pt::named("b", both)(a, x), c = pt::named("c", both)(a, b);
        return std::tuple{pt::output("d", pt::named("d", both)(a, c)), pt::output("b", b)};
      },
      "x");
  const auto m =
      pt::to_mpmd(p, three, {.names = {{"a", "m0"}, {"b", "m1"}, {"c", "m1"}, {"d", "m2"}}});
  CHECK(sent(m) == "x m0 m1, x1 m0 m1, x1 m0 m2, x2 m1 m2");
}

TEST_CASE("constants and their broadcasts are computed on each mesh that uses them") {
  const auto p = traced(
      [](auto x) {
        const auto a =
            pt::named("a", [](auto y) { return y * 3.0f + pt::iota<float, 0>(y, 4); })(x);
        return pt::named("b", [](auto y) { return y * 3.0f; })(a);
      },
      "x");
  const auto m = pt::to_mpmd(p, three, {.names = {{"a", "m0"}, {"b", "m1"}}});
  CHECK(cut(m) == "a@m0: constant multiply iota add; b@m1: constant multiply");
  CHECK(m.transfers.size() == 1);
}

TEST_CASE("inputs are on the first mesh that uses them, next states with their inputs") {
  const auto p = traced(
      [](auto w, auto v, auto n, auto unused, auto x) {
        const auto a = pt::named("a", both)(x, v), b = pt::named("b", both)(a, w);
        const auto g = pt::named("g", twice)(b);
        return std::tuple{pt::output("w", w - g), pt::output("v", v * 2.0f),
                          pt::output("n", n + 1.0f), pt::output("both", w * v),
                          pt::output("unused", unused)};
      },
      "w", "v", "n", "unused", "x");
  const pt::vec<pt::mesh_for> names{{"a", "m1"}, {"b", "m2"}, {"g", "m2"}};
  const auto m = pt::to_mpmd(p, three, {.names = names});
  const auto homes = [](const pt::mpmd_program& q) {
    std::string out;
    for (const char* name : {"w", "v", "n", "unused", "x"})
      out += std::string(q.mesh_of_input(name)) + ' ' + std::string(q.mesh_of_output(name)) + ", ";
    return out;
  };
  CHECK(homes(m) == "m2 m2, m1 m1, m0 m0, m0 m0, m1 , ");
  CHECK(m.mesh_of_output("both") == "m1");
  const auto told = pt::to_mpmd(
      p, three, {.names = names, .inputs = {{"n", "m1"}, {"x", "m0"}}, .outputs = {{"v", "m2"}}});
  CHECK(homes(told) == "m2 m2, m2 m2, m1 m1, m0 m0, m0 , ");
  CHECK(sent(told).substr(0, 16) == "v m2 m1, x m0 m1");
  CHECK(refusal(p, {.names = names, .inputs = {{"n", "m1"}}, .outputs = {{"n", "m2"}}}) ==
        "O111 mpmd: input \"n\" is assigned to mesh \"m1\" and its next state to mesh \"m2\"; a "
        "state stays on its mesh");
}

TEST_CASE("values combined from several meshes are combined on each mesh first") {
  const auto model = [](auto x) {
    const auto a = pt::named("a", [](auto y) { return sin(y); })(x);
    const auto b = pt::named("b", [](auto y) { return cos(y); })(x);
    const auto c = pt::named("c", [](auto y) { return exp(y); })(x);
    const auto d = pt::named("d", [](auto y) { return tanh(y); })(x);
    return pt::output("sum", ((a + c) + b) + (d + x));
  };
  const auto p = traced(model, "x");
  const pt::vec<pt::mesh_for> names{{"a", "m1"}, {"b", "m1"}, {"c", "m0"}, {"d", "m2"}};
  const auto m = pt::to_mpmd(p, three, {.names = names, .outputs = {{"sum", "m0"}}});
  // x may be on any mesh; the sum is needed on m0, so x is there.
  CHECK(m.transfers.size() == 4);  // x to m1 and m2, and two parts of the sum
  CHECK(sent(m).substr(0, 16) == "x m0 m1, x m0 m2");
  CHECK(cut(m) == "a@m1: sine; c@m0: exp add; b@m1: cosine add; d@m2: tanh; @m0: add add");
}

TEST_CASE("an unnamed op with operands on one mesh needs infer_transfers to be used on another") {
  const auto p = traced(
      [](auto x) {
        const auto a = pt::named("a", twice)(x), b = pt::named("b", twice)(a);
        return pt::named("c", twice)(a * b);
      },
      "x");
  pt::assignment to{.names = {{"a", "m0"}, {"b", "m0"}, {"c", "m1"}}};
  CHECK(refusal(p, to).substr(0, 51) == "O110 mpmd: multiply (%x3: tensor<4xf32>) is needed ");
  to.infer_transfers = true;
  CHECK(sent(pt::to_mpmd(p, three, to)) == "x3 m0 m1");
}

TEST_CASE("a loop runs on one mesh") {
  const auto p = traced(
      [](auto x) {
        return pt::for_loop(
            0, 3,
            [](auto, auto h) {
              return pt::named("layers", 1, twice)(pt::named("layers", 0, twice)(h));
            },
            x);
      },
      "x");
  CHECK(
      refusal(p, {.names = {{"layers.0", "m0"}, {"layers.1", "m1"}}}) ==
      "O109 mpmd: scan has \"layers.0\" on mesh \"m0\" and \"layers.1\" on mesh \"m1\" in it; it "
      "runs on one mesh: unroll it (in C++ a for statement with named(...), in JAX "
      "lax.scan(..., unroll=True)), assign both to one mesh, or, in a pipeline whose microbatches "
      "its iterations are, leave .batch out");
  CHECK(cut(pt::to_mpmd(p, three, {.names = {{"layers", "m1"}}})) == "layers.0@m1: scan");
  const auto rolled = traced(
      [](auto x) {
        return pt::for_loop(
            0, 3, [](auto, auto h) { return pt::named("part", twice)(h); }, x);
      },
      "x");
  CHECK(refusal(rolled, {.names = {{"part.0", "m0"}, {"part.1", "m1"}}}) ==
        "O139 mpmd: \"part.0\" would be an iteration of scan, which has \"part\" in it; a loop "
        "runs on one mesh: assign all of \"part\", or unroll it (in C++ a for statement with "
        "named(\"part\", i, ...), in JAX lax.scan(..., unroll=True))");
  CHECK(refusal(rolled, {.names = {{"part.*", "m0"}}}).substr(0, 52) ==
        "O139 mpmd: \"part.*\" would be iterations of scan, whi");
  CHECK(refusal(rolled, {.names = {{"rest.0", "m0"}}}).substr(0, 5) == "O108 ");
}

TEST_CASE(
    "unnamed ops are placed next to their producer, their user, or in a fragment of their own") {
  // After their producer; otherwise before their user; otherwise in a fragment of their own.
  const auto p = traced(
      [](auto x, auto y) {
        const auto early = tanh(y);  // only the second part of m0 needs it
        const auto a = pt::named("a", twice)(x);
        const auto b = pt::named("b", twice)(a);
        const auto c = pt::named("c", both)(b, early);
        const auto d = pt::named("d", twice)(c);
        return std::tuple{pt::output("u", exp(a)), pt::output("v", a - d)};
      },
      "x", "y");
  const auto m = pt::to_mpmd(p, three,
                             {.names = {{"a", "m0"}, {"b", "m1"}, {"c", "m0"}, {"d", "m1"}},
                              .outputs = {{"v", "m0"}},
                              .infer_transfers = true});
  CHECK(cut(m) == "a@m0: add exp; b@m1: add; c@m0: tanh subtract; d@m1: add; @m0: subtract");
}

TEST_CASE("fragments are programs") {
  const auto p = traced(
      [](auto x) {
        return pt::named("b", twice)(pt::named("a", [](auto y) { return y * 2.0f; })(x));
      },
      "x");
  const auto m = pt::to_mpmd(p, three, {.names = {{"a", "m0"}, {"b", "m1"}}});
  pt::fragment_programs programs(m.source);
  const pt::program a = programs(m.fragments[0]), b = programs(m.fragments[1]);
  CHECK(str(pt::print(a)) == R"(func @main(%x: tensor<4xf32>) {
  %x1 = constant {2} : tensor<f32>
  %x2 = multiply(%x, %x1) : tensor<4xf32>
  return %x2 as "x2" : tensor<4xf32>
}
)");
  CHECK(!pt::verify(a));
  CHECK(!pt::verify(b));
  CHECK(b.input_name(0) == "x2");
  for (const auto& n : b.ops)
    if (n.def->role == pt::op_role::compute) CHECK(m.source.op(n.marks.source).def == n.def);
}

TEST_CASE("derivatives run on the mesh of the op that they differentiate") {
  const auto p = pt::trace(
      [](auto x, auto v, auto w) {
        return pt::grad(
            [&](auto vw) {
              const auto f = [](auto y, auto z) { return tanh(y * z); };
              const auto h = pt::named("a", f)(x, std::get<0>(vw));
              const auto k = pt::named("b", f)(h, std::get<1>(vw));
              return pt::named("c", [](auto q) { return sum(q); })(
                  pt::named("b2", f)(k, h));  // two parts of m1 use h
            },
            std::tuple{v, w});
      },
      pt::input<float, 4>("x"), pt::input<float, 4>("v"), pt::input<float, 4>("w"));
  const auto m =
      pt::to_mpmd(p, three, {.names = {{"a", "m0"}, {"b", "m1"}, {"b2", "m1"}, {"c", "m1"}}});
  std::string names;
  for (const auto& f : m.fragments)
    for (const auto& o : f.origins) names += str(o.name) + (o.transposed > 0 ? "' " : " ");
  CHECK(names == "a b b2 b2' b' a' ");
  // The activation goes there and one summed derivative returns. The inputs are sent too.
  CHECK(m.transfers.size() == 2);
}

TEST_CASE("named tensors: their producers are assigned to a mesh, and inputs too") {
  const auto p = traced(
      [](auto x, auto y) {
        const auto z = pt::named_tensor("z", exp(pt::named_tensor("mine", x)));
        return tanh(z) + y;
      },
      "x", "y");
  const auto m = pt::to_mpmd(p, three, {.names = {{"mine", "m2"}, {"z", "m1"}}});
  CHECK(cut(m) == "z@m1: exp tanh add");
  CHECK(m.mesh_of_input("x") == "m2");
  CHECK(m.mesh_of_input("y") == "m1");
  CHECK(m.mesh_of_output("result") == "m1");
  CHECK(sent(m) == "x m2 m1");
}

TEST_CASE("a program without names is one fragment on the first mesh") {
  const auto p = traced([](auto x) { return tanh(exp(x)); }, "x");
  CHECK(cut(pt::to_mpmd(p, three, {})) == "@m0: exp tanh");
  CHECK(cut(pt::to_mpmd(p, three, {.inputs = {{"x", "m2"}}})) == "@m2: exp tanh");
}
