// Rematerialization: the program gives the results of the source, by layers, tags and patterns,
// with other tactics, and in loops; also the values that are kept, and the cost.
#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>
#include <partita/search/automatic.hpp>

#include "../../examples/models/megatron_block.hpp"
#include "../../examples/models/transformer.hpp"
#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

/// Checks that the program is right and proved, and recomputes as much as its tactic reports.
pt::partitioned check_equal(const pt::program& p, const std::vector<pt::array>& inputs,
                            const auto& tactics, double tolerance = 0) {
  const auto r = pt::partition(p, mesh, tactics);
  CHECK(str(pt::verify(r.sharded()).message) == "");
  CHECK(pt::equivalent(pt::parse(pt::print(r.sharded())), r.sharded()));
  const auto whole = pt::evaluate(p, inputs);
  CHECK(pt::max_difference(pt::evaluate(r.sharded(), inputs), whole) <= tolerance);
  CHECK(pt::max_difference(pt::emulate(r, inputs), whole) <= tolerance);
  CHECK(pt::max_difference(pt::temporal(r, inputs), whole) <= tolerance);
  CHECK(str(pt::prove(p, r.device).error.message) == "");
  return r;
}
std::vector<pt::array> small(const pt::program& p) {
  data::random random{5};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i)
    inputs.push_back(data::integers(p.input_type(i), random, -1, 1));
  return inputs;
}
pt::partitioned check_equal(const pt::program& p, const auto& tactics) {
  return check_equal(p, small(p), tactics);
}
/// Returns the number of ops with this name, including those of nested programs.
int count(const pt::program& p, std::string_view name) {
  int n = 0;
  for (const auto& each : p.ops) n += each.def->name == name;
  for (const auto& r : p.regions) n += count(r, name);
  return n;
}
/// Returns the names of the tags, in the order of the program.
std::vector<std::string> tags(const pt::program& p) {
  std::vector<std::string> list;
  pt::ir_detail::for_each_tag(
      p, [&](const pt::program& in, const pt::op_node& n) { list.emplace_back(in.view(n.name)); });
  return list;
}
/// Layers h = h + (h w)^2: exact on integers of one digit.
constexpr auto layer = [](const auto& h, const auto& w) {
  const auto y = matmul(h, w);
  return h + y * y;
};
const auto trace_chain = [](const auto& model) {
  return pt::trace(
      [&](const auto& x, const auto& w) {
        const auto [loss, g] = pt::value_and_grad([&](const auto& v) { return model(x, v); }, w);
        return std::tuple{pt::output("g", g), pt::output("loss", loss)};
      },
      pt::input<double, 16, 4>("x"), pt::input<std::array<pt::tensor<double, 4, 4>, 3>>("w"));
};
const auto three_layers = [](const auto& x, const auto& w) {
  auto h = x;
  for (const auto& each : w) h = layer(h, each);
  return sum(h);
};

}  // namespace

TEST_CASE("remat of layers by their parameters: each keeps its operands") {
  const auto p = trace_chain(three_layers);
  const auto r = check_equal(p, pt::schedule(pt::remat({"w"})));
  const auto& price = r.tactics[0].remat;
  CHECK(price.scopes == 3);
  CHECK(price.ops == 3);  // h w; no derivative reads its square
  CHECK(price.flops == 3 * (2 * 16 * 4 * 4));
  CHECK(price.flops == r.cost.flops - pt::partition(p, mesh, pt::schedule()).cost.flops);
  CHECK(price.peak < price.peak_before);
  CHECK(count(r.sharded(), "optimization_barrier") == 3);
  int barriers = 0;
  for (pt::op_id o = 0; o < r.sharded().op_count(); ++o) {
    const auto& n = r.sharded().op(o);
    // The kept values, and the cotangent of the layer's result (a constant in the last layer). Both
    // arguments in the first layer, since nothing else is kept.
    if (n.def->name == "optimization_barrier") CHECK(n.operand_count == ++barriers);
    if (n.marks.again) CHECK(n.marks.source >= 0);
  }
  CHECK(str(r.tactics[0].notes[0]).starts_with("recomputes 3 ops of 3 scopes: "));
  // Some of them.
  CHECK(check_equal(p, pt::schedule(pt::remat({"w.0", "w.2"}))).tactics[0].remat.scopes == 2);
  CHECK(check_equal(p, pt::schedule(pt::remat({"w.*"}))).tactics[0].remat.ops == 3);
  const auto twice = check_equal(p, pt::schedule(pt::remat({"w.1"}), pt::remat({"w.0"}, "first")));
  CHECK(twice.tactics[1].name.view() == "first");
  CHECK(twice.tactics[0].remat.ops == 1);
  CHECK(twice.tactics[1].remat.ops == 1);
}
TEST_CASE("remat: an output is kept anyway") {
  const auto p = pt::trace(
      [](const auto& x, const auto& w) {
        const auto y = matmul(x, w), z = y * y;
        const auto loss = [&](const auto& v) {
          const auto a = matmul(x, v);
          return sum(a * a * a);
        };
        return std::tuple{pt::output("y", y), pt::output("z", z),
                          pt::output("g", pt::grad(loss, w))};
      },
      pt::input<double, 8, 4>("x"), pt::input<double, 4, 4>("w"));
  check_equal(p, pt::schedule(pt::remat({"w"})));
}
TEST_CASE("remat of tags: the ops from the first to the last, and their copies") {
  const auto p = trace_chain([](const auto& x, const auto& w) {
    auto h = x;
    int i = 0;
    for (const auto& each : w) {
      const auto name = "core." + std::to_string(i++);
      const auto a = pt::tag(name + ".begin", matmul(h, each));
      const auto b = maximum(a, 1);
      const auto c = pt::tag(name + ".end", b - minimum(a, b));
      h = h + matmul(c, each);
    }
    return sum(h);
  });
  const auto r = check_equal(p, pt::schedule(pt::remat({"core"})));
  CHECK(r.tactics[0].remat.scopes == 3);
  CHECK(tags(r.sharded()).size() == 6 + 6 + 6);  // with copies and cotangents
  CHECK(tags(r.sharded())[6] == "core.2.begin.again");
  // A tactic that names a tag includes its copy and its cotangent; then it propagates.
  const auto named =
      check_equal(p, pt::schedule(pt::remat({"core.1"}), pt::manual("B", {{"core.1.end", 0}})));
  CHECK(named.core.actions.size() == 3 + 1);
  // A single value.
  CHECK(check_equal(p, pt::schedule(pt::remat({"core.1.end"}))).tactics[0].remat.ops == 2);
}
TEST_CASE("remat: several names are the union of their scopes, in any order") {
  // An encoder with weights a, and a decoder with weights b that reads the result of the encoder.
  // If their ops are interleaved, their scopes overlap.
  const auto trace_pair = [](int kind) {
    return pt::trace(
        [kind](const auto& a, const auto& b, const auto& x, const auto& y) {
          const auto [ga, gb] = pt::grad(
              [&](const auto& v) {
                const auto& [a, b] = v;
                const auto before = kind & 1 ? layer(y, b) : y + y;
                const auto h = layer(kind & 2 ? layer(x, a) : x, a);
                const auto t = before + matmul(h * before, b);
                return sum(layer(kind & 4 ? layer(t, a) : t, b));
              },
              std::tuple{a, b});
          return std::tuple{pt::output("ga", ga), pt::output("gb", gb)};
        },
        pt::input<double, 4, 4>("a"), pt::input<double, 4, 4>("b"), pt::input<double, 16, 4>("x"),
        pt::input<double, 16, 4>("y"));
  };
  for (int kind = 0; kind < 8; ++kind) {
    CAPTURE(kind);
    const auto p = trace_pair(kind);
    const auto one = check_equal(p, pt::schedule(pt::remat({"a", "b"})));
    const auto other = check_equal(p, pt::schedule(pt::remat({"b", "a"})));
    CHECK(one.cost.peak_bytes == other.cost.peak_bytes);
    CHECK(str(pt::print(one.sharded())) == str(pt::print(other.sharded())));
    for (const auto* name : {"a", "b"}) {
      const auto alone = pt::partition(p, mesh, pt::schedule(pt::remat({std::string_view(name)})));
      CHECK(one.tactics[0].remat.ops >= alone.tactics[0].remat.ops);
    }
    check_equal(p, pt::schedule(pt::remat({"a", "b", "*"}), pt::manual("B", {{"x", 0}, {"y", 0}})));
  }
  // A name inside another name, and a pattern for both.
  const auto p = trace_chain(three_layers);
  const auto all = check_equal(p, pt::schedule(pt::remat({"w"})));
  for (const auto& tactic :
       {pt::remat({"w", "w.1"}), pt::remat({"w.1", "w"}), pt::remat({"w.*", "w"})})
    CHECK(check_equal(p, pt::schedule(tactic)).tactics[0].remat.ops == all.tactics[0].remat.ops);
  // Tags with overlapping scopes, and one scope inside another.
  const auto tagged = trace_chain([](const auto& x, const auto& w) {
    auto h = pt::tag("outer.begin", layer(x, w[0]));
    h = pt::tag("inner.begin", layer(h, w[1]));
    h = pt::tag("inner.end", h + h * h);
    h = pt::tag("outer.end", layer(h, w[2]));
    return sum(h);
  });
  const auto outer = check_equal(tagged, pt::schedule(pt::remat({"outer"})));
  for (const auto& tactic : {pt::remat({"outer", "inner"}), pt::remat({"inner", "outer"})})
    CHECK(check_equal(tagged, pt::schedule(tactic)).tactics[0].remat.ops >=
          outer.tactics[0].remat.ops);
}
TEST_CASE("remat composes with other tactics, in any order") {
  const auto p = trace_chain(three_layers);
  const auto R = pt::remat({"w"}, "R");
  const auto BP = pt::manual("B", {{"x", 0}}, "BP");
  const auto MP = pt::manual("M", {{"w", 1}}, "MP");
  const auto Z3 = pt::manual("B", {{"w", 0}, {"g", 0}}, "Z3");
  const auto MB = pt::microbatch(2, {{"x", 0}}, "MB");
  const auto plain = pt::partition(p, mesh, pt::schedule(BP, MP));
  const auto a = check_equal(p, pt::schedule(R, BP, MP)),
             b = check_equal(p, pt::schedule(BP, R, MP)),
             c = check_equal(p, pt::schedule(BP, MP, R));
  CHECK(a.collectives == b.collectives);
  CHECK(a.collectives == c.collectives);
  CHECK(a.cost.peak_bytes == c.cost.peak_bytes);
  check_equal(p, pt::schedule(BP, Z3, R));
  for (const auto& r :
       {check_equal(p, pt::schedule(R, MB, BP, MP)), check_equal(p, pt::schedule(MB, BP, Z3, R)),
        check_equal(p, pt::schedule(pt::amalgamated("all", BP, MB, R)))}) {
    CHECK(count(r.sharded(), "scan") == 1);
    CHECK(count(r.sharded(), "optimization_barrier") == 3);
  }
  CHECK_THROWS_WITH(pt::extend(plain, pt::schedule(R)),
                    "S028 extend: \"R\" rewrites the program, which has been partitioned; give it "
                    "to partition");
}
TEST_CASE("remat composes with passes over collectives") {
  const auto p = trace_chain(three_layers);
  for (const pt::passes on : {pt::passes{.share_gathers = true}, pt::passes{.place = true},
                              pt::passes{.stationary_above = 1, .combine_below = 4096}}) {
    const auto r = pt::partition(
        p, mesh,
        pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"w", 0}}), pt::remat({"w"})),
        {.passes = on});
    const auto inputs = small(p);
    CHECK(pt::max_difference(pt::emulate(r, inputs), pt::evaluate(p, inputs)) == 0);
    CHECK(str(pt::prove(p, r.device).error.message) == "");
  }
}
TEST_CASE("remat composes with a search after it") {
  const auto p = trace_chain(three_layers);
  const auto r = check_equal(p, pt::schedule(pt::remat({"w"}), pt::automatic({"B"}, pt::a100_80)));
  CHECK(r.tactics[0].remat.scopes == 3);
}
TEST_CASE("remat inside a loop whose weights come from outside") {
  const auto p = pt::trace(
      [](const auto& x, const auto& w) {
        const auto step = [&](auto, const auto& v) {
          const auto g = pt::grad([&](const auto& u) { return sum(layer(matmul(x, u), w)); }, v);
          return v - g;
        };
        return pt::for_loop(0, 2, step, w);
      },
      pt::input<double, 16, 4>("x"), pt::input<double, 4, 4>("w"));
  const auto r = check_equal(p, pt::schedule(pt::remat({"w"}), pt::manual("B", {{"x", 0}})));
  CHECK(count(r.sharded(), "optimization_barrier") == 1);
}

TEST_CASE("remat of a transformer's training step: values, counts and memory") {
  constexpr transformer::sizes sizes{.layers = 4,
                                     .width = 8,
                                     .heads = 2,
                                     .key = 4,
                                     .hidden = 16,
                                     .vocabulary = 12,
                                     .context = 8,
                                     .batch = 64};
  const auto p = transformer::trace_training_step<transformer::dynamic>(sizes);
  data::random random{7};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    const std::string_view name = p.input_name(i);
    const auto& type = p.input_type(i);
    if (!pt::is_floating(type.element))
      inputs.push_back(data::integers(type, random, 0, sizes.vocabulary - 1));
    else
      inputs.push_back(data::fill(type, [&](std::int64_t) {
        return name == "opt_state.step"          ? 10.0
               : name.starts_with("opt_state.m") ? 0.0
               : name.starts_with("opt_state.v") ? 1.0
                                                 : static_cast<double>(random.in(-64, 64)) / 256;
      }));
  }
  using transformer::BP, transformer::MP, transformer::Z3;
  const auto R = pt::remat({"params.layers"});
  // The same ops on the same numbers.
  const auto alone = check_equal(p, inputs, pt::schedule(R));
  CHECK(alone.tactics[0].remat.scopes == sizes.layers);
  CHECK(count(alone.sharded(), "optimization_barrier") == sizes.layers);
  CHECK(2 * alone.tactics[0].remat.peak < alone.tactics[0].remat.peak_before);
  const auto plain = pt::partition(p, mesh, pt::schedule(BP, MP, Z3));
  const auto r = check_equal(p, inputs, pt::schedule(BP, R, MP, Z3), 1e-4);
  CHECK(2 * r.cost.peak_bytes < plain.cost.peak_bytes);
  // Sums after attention are needed again; no derivative reads those after the MLP.
  CHECK(r.collectives.all_reduce == plain.collectives.all_reduce + sizes.layers);
  CHECK(r.collectives.reduce_scatter == plain.collectives.reduce_scatter);
  const auto found = pt::simulate(r.device, pt::a100_80),
             before = pt::simulate(plain.device, pt::a100_80);
  CHECK(found.model_flops == before.model_flops);
  // Queries, keys, values and the attention result (8 h^2 per token), scores and sums over values
  // (4 s h), the first matrix of the MLP (2 h f); each of eight devices computes a share.
  const double tokens = static_cast<double>(sizes.batch * sizes.context), h = 8, s = 8, f = 16;
  CHECK(found.product_flops - before.product_flops ==
        static_cast<double>(sizes.layers) * tokens * (8 * h * h + 4 * s * h + 2 * h * f) / 8);
  MESSAGE("peak bytes per device ", plain.cost.peak_bytes, " -> ", r.cost.peak_bytes, ", flop ",
          plain.cost.flops, " -> ", r.cost.flops);
}

// Korthikanti et al., arXiv:2205.05198, Table 2, whose formulas are exact: bytes that a layer keeps
// for its derivative, of 16-bit numbers and masks of one byte.
TEST_CASE("remat: the bytes that a GPT layer keeps are sbh (34 + 5 a s / h), and 2 sbh") {
  using namespace megatron;
  for (const auto& z : {sizes{0, 16, 2, 32, 4}, sizes{0, 24, 3, 64, 8}}) {
    const std::int64_t sbh = z.sequence * z.batch * z.width,
                       core_bytes = 5 * z.heads * z.sequence * z.sequence * z.batch, t = 4;
    CHECK(bytes_of_layer(z, 1) == 34 * sbh + core_bytes);
    CHECK(bytes_of_layer(z, 1, selective) == 34 * sbh);
    CHECK(bytes_of_layer(z, 1, full) == 2 * sbh);
    CHECK(bytes_of_layer(z, t, TP) == 10 * sbh + (24 * sbh + core_bytes) / t);
    CHECK(bytes_of_layer(z, t, SP, TP, selective) == 34 * sbh / t);
    // (8: the start of a mask's block.)
    CHECK(bytes_of_layer(z, t, TP, selective) - (10 * sbh + 24 * sbh / t) <= 8);
    CHECK(bytes_of_layer(z, t, TP, full) - 2 * sbh <= 8);
  }
}
