// The engine without kernels: programs, printing, trees, placements, loops.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <partita/op/tile_map_text.hpp>
#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

/// Input names and local shapes: "x[2, 8] w[8]".
std::string locals(const pt::partitioned& p) {
  pt::text out;
  for (int i = 0; i < p.source.input_count(); ++i)
    out << (i ? " " : "") << p.source.input_name(i)
        << p.device.inputs[static_cast<std::size_t>(i)].local(p.source.input_type(i).shape,
                                                              p.mesh());
  out << " ->";
  for (int i = 0; i < p.source.output_count(); ++i)
    out << ' ' << p.source.output_name(i)
        << p.device.outputs[static_cast<std::size_t>(i)].local(p.source.output_type(i).shape,
                                                               p.mesh());
  return str(out);
}

struct block {
  BOOST_HANA_DEFINE_STRUCT(block, (pt::tensor<float, 8, 8>, up), (pt::tensor<float, 8>, bias));
};
struct model {
  using blocks = std::array<block, 2>;
  using extras = std::tuple<pt::tensor<float, 6>, block>;
  BOOST_HANA_DEFINE_STRUCT(model, (pt::tensor<float, 16, 8>, embedding), (blocks, layers),
                           (extras, rest));
};

}  // namespace

TEST_CASE("parameter trees: leaves in declaration order, with path names") {
  const auto names = [](const pt::program& p) {
    std::string out;
    for (int i = 0; i < p.input_count(); ++i) out += std::string(p.input_name(i)) + ' ';
    out += "->";
    for (int i = 0; i < p.output_count(); ++i) out += ' ' + std::string(p.output_name(i));
    return out;
  };
  const auto p = pt::trace([](auto m) { return m; }, pt::input<model>("params"));
  CHECK(names(p) ==
        "params.embedding params.layers.0.up params.layers.0.bias params.layers.1.up "
        "params.layers.1.bias params.rest.0 params.rest.1.up params.rest.1.bias -> "
        "result.embedding result.layers.0.up result.layers.0.bias result.layers.1.up "
        "result.layers.1.bias result.rest.0 result.rest.1.up result.rest.1.bias");
  CHECK(p.input_type(5) == pt::tensor_type{pt::dtype::f32, {6}});
  // Any number of layers, with sizes known at run time.
  using matrix = pt::tensor<float, pt::dyn, 8>;
  const std::vector<matrix> layers{matrix(8), matrix(8), matrix(3)};
  const auto q = pt::trace(
      [](auto x, auto list) {
        for (std::size_t i = 0; i + 1 < list.size(); ++i) x = matmul(x, list[i]);
        return std::tuple{pt::output("y", x), pt::output("last", list.back())};
      },
      pt::input<float, 4, 8>("x"), pt::input("w", layers));
  CHECK(names(q) == "x w.0 w.1 w.2 -> y last");
  CHECK(q.input_type(3) == pt::tensor_type{pt::dtype::f32, {3, 8}});
  CHECK(!pt::verify(q));
}

TEST_CASE("tidy: unused ops are removed, inputs stay, origins follow") {
  pt::builder b;
  const pt::tensor_type t{pt::dtype::f32, {4}};
  const auto x = pt::ops::parameter(b, "x", t);
  const auto dead = pt::ops::exp(b, x);
  pt::ops::add(b, dead, dead);
  const auto unused = pt::ops::parameter(b, "unused", t);
  const auto y = pt::ops::tanh(b, x);
  b.set_origin(b.p.op(b.p.producer(y)).marks.source, 1);
  const auto z = pt::ops::multiply(b, y, y);
  b.p.outputs.push_back({z, b.p.intern("z")});
  const pt::program p = pt::ir_detail::tidy(b.p);
  CHECK(str(pt::print(p)) == R"(func @main(%x: tensor<4xf32>, %unused: tensor<4xf32>) {
  %x1 = tanh(%x) : tensor<4xf32>
  %z = multiply(%x1, %x1) : tensor<4xf32>
  return %z : tensor<4xf32>
}
)");
  CHECK(p.op(3).marks.origin == 2);
  CHECK(p.op(3).marks.transposed == 1);
  CHECK(!pt::verify(p));
  CHECK(unused >= 0);
  // Nothing to prune: the program stays the same.
  CHECK(str(pt::print(pt::ir_detail::tidy(p))) == str(pt::print(p)));
}

TEST_CASE("printer: attributes, names that collide, and invalid programs") {
  const auto p = pt::trace(
      [](auto x, auto i, auto x1) {
        const auto g = gather(x, i);
        const auto s = pt::slice<1, 0, 3>(g);
        const auto c = pt::concatenate<1>(s, s);
        const auto r = pt::reshape<2, 2, 6>(c);
        const auto d = pt::dot_general<pt::axes<0>, pt::axes<0>, pt::axes<2>, pt::axes<2>>(r, r);
        const auto m =
            pt::reduce_max<1, 2>(d) + pt::convert<float>(pt::iota<int, 0>(x, pt::extent<2>{}));
        const auto z = tag("mid", select(m > 0.25, m, -1.5e-7)) + pt::sum(x1);
        return std::tuple{pt::output("x1", z), pt::output("loss", pt::sum(z)),
                          pt::output("same", z)};
      },
      pt::input<float, 5, 8>("x"), pt::input<int, 4>("i"), pt::input<float, 2>("x1"));
  CHECK(str(pt::print(p)) ==
        R"(func @main(%x: tensor<5x8xf32>, %i: tensor<4xi32>, %x1: tensor<2xf32>) {
  %x2 = gather(%x, %i) : tensor<4x8xf32>
  %x3 = slice(%x2) {[:, 0:3]} : tensor<4x3xf32>
  %x4 = concatenate(%x3, %x3) {dim=1} : tensor<4x6xf32>
  %x5 = reshape(%x4) : tensor<2x2x6xf32>
  %x6 = dot_general(%x5, %x5) {batch=[0]x[0], contract=[2]x[2]} : tensor<2x2x2xf32>
  %x7 = reduce(%x6) {max, dims=[1, 2]} : tensor<2xf32>
  %x8 = iota {dim=0} : tensor<2xi32>
  %x9 = convert(%x8) : tensor<2xf32>
  %x10 = add(%x7, %x9) : tensor<2xf32>
  %x11 = constant {0.25} : tensor<f32>
  %x12 = compare(%x10, %x11) {gt} : tensor<2xi1>
  %x13 = constant {-1.5e-7} : tensor<f32>
  %x14 = select(%x12, %x10, %x13) : tensor<2xf32>
  %mid = tag "mid" %x14 : tensor<2xf32>
  %x15 = reduce(%x1) {add, dims=[0]} : tensor<f32>
  %x1' = add(%mid, %x15) : tensor<2xf32>
  %loss = reduce(%x1') {add, dims=[0]} : tensor<f32>
  return %x1', %loss, %x1' as "same" : tensor<2xf32>, tensor<f32>, tensor<2xf32>
}
)");
  const auto number = [](double v) {
    pt::text out;
    pt::print_number(out, v);
    return str(out);
  };
  CHECK(number(0) == "0");
  CHECK(number(1) == "1");
  CHECK(number(-2.5) == "-2.5");
  CHECK(number(100000) == "100000");
  CHECK(number(1e6) == "1e6");
  CHECK(number(0.0001) == "0.0001");
  CHECK(number(1.0 / 3) == "0.3333333333333333");
  CHECK(number(123456.7) == "123456.7");
  CHECK(number(0.9999999) == "0.9999999");
  CHECK(number(-1 / 0.0) == "-inf");
  CHECK(number(std::numeric_limits<double>::quiet_NaN()) == "nan");
  pt::builder b;
  pt::ops::transpose(b, pt::ops::parameter(b, "x", {}), {});
  pt::ops::exp(b, pt::ops::parameter(b, "i", {pt::dtype::i32, {}}));
  CHECK(str(pt::print(b.p)) == "error: S104 exp: element type i32 is not a floating-point type\n");
}

TEST_CASE("equal scalars are one value; ops that change nothing are dropped") {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", {pt::dtype::f32, {4, 6}});
  CHECK(pt::ops::scalar(b, pt::dtype::f32, 2) == pt::ops::scalar(b, pt::dtype::f32, 2));
  CHECK(pt::ops::scalar(b, pt::dtype::f32, 2) != pt::ops::scalar(b, pt::dtype::f64, 2));
  const std::int64_t same[] = {0, 1}, begin[] = {0, 0}, end[] = {4, 6};
  CHECK(pt::ops::transpose(b, x, same) == x);
  CHECK(pt::ops::reshape(b, x, {4, 6}) == x);
  CHECK(pt::ops::convert(b, x, pt::dtype::f32) == x);
  CHECK(pt::ops::broadcast_in_dim(b, x, {4, 6}, same) == x);
  CHECK(pt::ops::slice(b, x, begin, end) == x);
  CHECK(pt::ops::reduce(b, x, pt::combiner::add, {}) == x);
  CHECK(pt::ops::concatenate(b, std::vector{x}, 0) == x);
}

namespace {
/// params, state -> params - state, state + 1: the shape of a training step.
pt::program step() {
  return pt::trace(
      [](auto params, auto state, auto x) {
        const auto next =
            pt::map_leaves([](const auto& p, const auto& s) { return p - s; }, params, state);
        const auto loss = pt::sum(tag("hidden", matmul(x, params.up)) + params.bias);
        return std::tuple{pt::output("params", next), pt::output("state", state),
                          pt::output("loss", loss)};
      },
      pt::input<block>("params"), pt::input<block>("state"), pt::input<float, 12, 8>("x"));
}
template <class... T>
pt::partitioned run(const pt::program& p, T... tactics) {
  return pt::partition(p, mesh, pt::schedule(tactics...));
}
std::string actions(const pt::partitioned& p) { return str(pt::print_actions(p.core, p.source)); }
}  // namespace

TEST_CASE("placements: a dimension is sliced; next state and optimizer follow") {
  const auto p = run(step(), pt::manual("B", {{"params.up", 1}}));
  CHECK(actions(p) == "tile<%params.up, 1, \"B\">; propagate;\n");
  CHECK(locals(p) ==
        "params.up[8, 2] params.bias[8] state.up[8, 2] state.bias[8] x[12, 8] -> params.up[8, 2] "
        "params.bias[8] state.up[8, 2] state.bias[8] loss[]");
}
TEST_CASE("placements: a prefix selects every name below it, the most specific entry wins") {
  const auto p = run(step(), pt::manual("B", {{"params", pt::replicated}, {"params.up", 0}}));
  CHECK(actions(p) ==
        "atomic<%params.bias, \"B\">; atomic<%params.bias', \"B\">; tile<%params.up, 0, \"B\">; "
        "propagate;\n");
  // The order of the entries affects neither that nor the result.
  const auto q = run(step(), pt::manual("B", {{"params.up", 0}, {"params", pt::replicated}}));
  CHECK(locals(q) == locals(p));
  // A prefix ends at a dot.
  CHECK_THROWS_AS(run(step(), pt::manual("B", {{"para", 0}})), pt::error);
}
TEST_CASE("placements: replicated blocks propagation, and the next state stays replicated too") {
  const auto p = run(step(), pt::manual("B", {{"params", pt::replicated}, {"state", 0}}));
  CHECK(locals(p) ==
        "params.up[8, 8] params.bias[8] state.up[2, 8] state.bias[2] x[12, 8] -> params.up[8, 8] "
        "params.bias[8] state.up[2, 8] state.bias[2] loss[]");
  CHECK(p.collectives == pt::collectives{.all_gather = 2});
}
TEST_CASE(
    "placements: first_divisible_dim takes what is left of a dimension, and says what stays") {
  const auto p = run(step(), pt::manual("B", {{"params.up", 0}}),
                     pt::manual("M", {{"params", pt::first_divisible_dim}}));
  CHECK(p.device.inputs[0].local({8, 8}, mesh) == pt::shape{1, 8});
  CHECK(p.device.inputs[1].local({8}, mesh) == pt::shape{4});
  CHECK(p.tactics[1].notes.empty());
  const auto odd =
      pt::partition(pt::trace([](auto x) { return x; }, pt::input<float, 3, 5>("x")), mesh,
                    pt::schedule(pt::manual("B", {{"x", pt::first_divisible_dim}})));
  REQUIRE(odd.tactics[0].notes.size() == 1);
  CHECK(str(odd.tactics[0].notes[0]) ==
        "\"x\" [3, 5] has no dimension that axis \"B\" (4) divides; it stays as it is");
  CHECK(str(pt::report(odd)).find("note: \"x\" [3, 5]") != std::string::npos);
  // Already sliced along the axis: nothing to do.
  const auto twice = run(step(), pt::manual("B", {{"params", pt::first_divisible_dim}}),
                         pt::manual("B", {{"params", pt::first_divisible_dim}}));
  CHECK(actions(twice) ==
        "tile<%params.up, 0, \"B\">; tile<%params.bias, 0, \"B\">; propagate;\npropagate;\n");
}
TEST_CASE(
    "placements: unknown leaves a value to propagation; a callable decides by name and shape") {
  const auto p = run(step(), pt::manual("B", {{"params", 0}, {"params.bias", pt::unknown}}));
  CHECK(actions(p) == "tile<%params.up, 0, \"B\">; propagate;\n");
  constexpr auto by_rank = [](std::string_view name, const pt::shape& s) -> pt::placement {
    if (name == "state.bias") return pt::replicated;
    if (s.rank == 2) return 1;
    return pt::unknown;
  };
  const auto q = run(step(), pt::manual("B", {{"state", by_rank}}));
  CHECK(actions(q).substr(0, 51) == "tile<%state.up, 1, \"B\">; atomic<%state.bias, \"B\">; ");
}
namespace {
/// A placement that shards tensors of at least a number of elements.
constexpr auto large_only = [](std::int64_t least) {
  return pt::manual("B", {{"state", [least](std::string_view, const pt::shape& s) -> pt::placement {
                             if (s.elements() >= least) return 0;
                             return pt::unknown;
                           }}});
};
struct second_dimension {
  constexpr pt::placement operator()(std::string_view, const pt::shape&) const { return 1; }
};
}  // namespace
TEST_CASE("placements: functions keep their captures") {
  // A constexpr variable, and copies of it.
  constexpr auto all = large_only(1), none = large_only(1 << 20);
  const auto copied = all;
  CHECK(actions(run(step(), copied)).find("tile<%state.up, 0, \"B\">") == 0);
  CHECK(actions(run(step(), none)) == "propagate;\n");
  constexpr auto by_class = pt::manual("B", {{"state.up", second_dimension{}}});
  CHECK(actions(run(step(), by_class)).find("tile<%state.up, 1, \"B\">") == 0);
  // References and pointers, at run time.
  const std::string wanted = "state.bias, and what stands behind a long name";
  const auto by_name = pt::manual(
      "B", {{"state", [&wanted](std::string_view name, const pt::shape&) -> pt::placement {
               if (wanted.starts_with(name)) return 0;
               return pt::unknown;
             }}});
  CHECK(actions(run(step(), by_name)).find("tile<%state.bias, 0, \"B\">") == 0);
}
TEST_CASE("placements: tags and outputs can be named too") {
  const auto p = run(step(), pt::manual("M", {{"hidden", 0}}));
  CHECK(actions(p) == "tile<%hidden, 0, \"M\">; propagate;\n");
  CHECK(p.device.inputs[4].local({12, 8}, mesh) ==
        pt::shape{6, 8});  // propagated backwards through the product
  CHECK(p.collectives == pt::collectives{.all_reduce = 1});
  const auto chain = pt::trace([](auto x, auto w) { return pt::output("y", matmul(x, w)); },
                               pt::input<float, 4, 8>("x"), pt::input<float, 8, 6>("w"));
  const auto q = run(chain, pt::manual("M", {{"y", 1}}));
  CHECK(locals(q) == "x[4, 8] w[8, 3] -> y[4, 3]");
  CHECK(q.collectives.total() == 0);
}

namespace {
/// A user's tactic: shards the largest input along all axes that divide it.
struct largest_first {
  int limit = 8;
  constexpr std::string_view name() const { return "largest"; }
  constexpr void apply(pt::tactic_context& c) const {
    const pt::named_value* best = nullptr;
    for (const auto& v : c.values())
      if (v.kind == pt::named_value::input &&
          (best == nullptr ||
           c.global_shape(v.value).elements() > c.global_shape(best->value).elements()))
        best = &v;
    for (int a = 0; a < c.mesh().rank && a < limit; ++a)
      if (c.local_shape(best->value)[0] % c.mesh().size(a) == 0)
        c.tile(best->value, 0, a);
      else
        c.note("left");
    c.propagate();
  }
};
}  // namespace

TEST_CASE("a schedule can be chosen at run time: a range of tactics of one type") {
  const auto up = pt::manual("B", {{"params.up", 1}}, "up");
  const auto x = pt::manual("B", {{"x", 0}}, "x");
  const std::vector<pt::manual_tactic<1>> chosen{x, up};
  const auto p = pt::partition(step(), {{"B", 4}}, chosen);
  const auto q = pt::partition(step(), {{"B", 4}}, pt::schedule(x, up));
  CHECK(p.tactics.size() == 2);
  CHECK(actions(p) == actions(q));
  CHECK(p.collectives == q.collectives);
}
TEST_CASE("a user's own tactic composes with the others") {
  const auto p = run(step(), pt::manual("M", {{"params.up", 1}}, "columns"), largest_first{1});
  CHECK(p.tactics.size() == 2);
  CHECK(str(p.tactics[1].name) == "largest");
  CHECK(actions(p) == "tile<%params.up, 1, \"M\">; propagate;\ntile<%x, 0, \"B\">; propagate;\n");
  CHECK(p.device.inputs[4].local({12, 8}, mesh) == pt::shape{3, 8});
  CHECK(run(step(), largest_first{}).tactics[0].notes.size() == 1);  // 12 / 4 is odd
}

TEST_CASE("deep tiling: a sliced value is sliced further, major axis first") {
  const auto chain = pt::trace([](auto x, auto w) { return exp(matmul(x, w)); },
                               pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto p = run(chain, pt::manual("B", {{"x", 0}}), pt::manual("M", {{"x", 0}}));
  CHECK(
      str(pt::print_core(p.core)) ==
      R"(func @main(%x: tensor<16x8xf32>, %w: tensor<8x8xf32>) attributes {mesh = {"B":4, "M":2}} {
  %x2 = loop "B" [#tile<0>] (%rB: range<4>) {
    %x2s = loop "M" [#tile<0>] (%rM: range<2>) {
      %xs = slice 0 %x[%rB] : tensor<4x8xf32>
      %xss = slice 0 %xs[%rM] : tensor<2x8xf32>
      %x1ss = matmul(%xss, %w) : tensor<2x8xf32>
      %x2ss = exp(%x1ss) : tensor<2x8xf32>
      yield %x2ss
    }
    yield %x2s
  } : tensor<16x8xf32>
  return %x2 : tensor<16x8xf32>
}
)");
  // A value that its producer slices: a tiling op keeps these loops and adds one.
  pt::core_program c(chain, mesh);
  CHECK(!c.tile(0, 0, 0));
  c.propagate();
  const pt::value_id product = chain.op(2).result;
  CHECK(!c.tile(product, 0, 1));
  CHECK(c.produced_layout(c.holder(product)).pieces(mesh, 0) == 8);
  CHECK(c.nest_of(c.p.producer(c.holder(product))).count == 2);
  c.propagate();
  CHECK(c.nest_of(2).count == 2);  // backwards to the product
  CHECK(c.produced_layout(0).local({16, 8}, mesh) == pt::shape{2, 8});
  // 4 x 2 x 2 does not divide 8 rows any more.
  pt::core_program d(pt::trace([](auto x) { return exp(x); }, pt::input<float, 8>("x")),
                     pt::mesh{{"a", 4}, {"b", 2}, {"c", 2}});
  CHECK(!d.tile(0, 0, 0));
  CHECK(!d.tile(0, 0, 1));
  CHECK(d.tile(0, 0, 2).message.view().substr(0, 4) == "S003");
}

TEST_CASE("axes of one device make loops but no collectives") {
  constexpr pt::mesh ones{{"B", 1}, {"M", 1}};
  const auto p = pt::partition(step(), ones,
                               pt::schedule(pt::manual("B", {{"x", 0}, {"params", 0}}),
                                            pt::manual("M", {{"params.up", 1}, {"state", 0}})));
  CHECK(p.collectives.total() == 0);
  for (const auto& op : p.device.local.ops) CHECK(!op.def->collective);
  CHECK(p.device.inputs[0].local({8, 8}, ones) == pt::shape{8, 8});
  CHECK(p.core.nest_of(0).count > 0);
  // An axis of one device between other axes does not affect them.
  constexpr pt::mesh mixed{{"B", 1}, {"M", 2}};
  const auto q = pt::partition(
      step(), mixed, pt::schedule(pt::manual("B", {{"x", 1}}), pt::manual("M", {{"x", 1}})));
  CHECK(q.device.inputs[4].local({12, 8}, mixed) == pt::shape{12, 4});
}

TEST_CASE("a mesh of eight axes") {
  pt::mesh m;
  for (char c = 'a'; c <= 'h'; ++c) m.push_back({std::string_view(&c, 1), 2});
  CHECK(m.devices() == 256);
  const auto chain = pt::trace([](auto x, auto w) { return matmul(x, w); },
                               pt::input<float, 16, 32>("x"), pt::input<float, 32, 8>("w"));
  pt::core_program c(chain, m);
  for (int a = 0; a < 4; ++a) CHECK(!c.tile(0, 0, a));  // rows of x
  for (int a = 4; a < 8; ++a) CHECK(!c.tile(0, 1, a));  // the contracted dimension
  c.propagate();
  CHECK(c.nest_of(2).count == 8);
  const auto l = pt::lower(c);
  CHECK(
      str(pt::print(l.device.local, &m)) ==
      R"(func @main(%x: tensor<1x2xf32>, %w: tensor<2x8xf32>) attributes {mesh = {"a":2, "b":2, "c":2, "d":2, "e":2, "f":2, "g":2, "h":2}} {
  %x1 = matmul(%x, %w) : tensor<1x8xf32>
  %x2 = all_reduce <"e", "f", "g", "h"> %x1 : tensor<1x8xf32>
  return %x2 : tensor<1x8xf32>
}
)");
}

TEST_CASE("no action is undone: loops only grow, refused actions change nothing") {
  const pt::program p = step();
  pt::core_program c(p, mesh);
  pt::nest_list before;
  const auto grown = [&] {
    for (std::size_t o = 0; o < before.size(); ++o) {
      const pt::nest old = before[o], now = c.nests[o];
      if (now.count < old.count) return false;
      for (int i = 0; i < old.count; ++i)
        if (now.loops[i].axis != old.loops[i].axis || now.loops[i].factor != old.loops[i].factor)
          return false;
    }
    before = c.nests;
    return true;
  };
  int accepted = 0, refused = 0;
  for (pt::value_id v = 0; v < p.value_count(); ++v)
    for (int axis = 0; axis < mesh.rank; ++axis)
      for (int dim = -1; dim < p.type(v).shape.rank; ++dim) {
        const auto f = dim < 0 && v % 3 == 0 ? c.atomic(v, axis) : c.tile(v, dim, axis);
        ++(f ? refused : accepted);
        if (f) {
          const auto same = c.nests.size() == before.size();
          CHECK((same || before.size() == 0));
        }
        c.propagate();
        CHECK(grown());
      }
  CHECK(accepted > 5);
  CHECK(refused > 5);
}

TEST_CASE("the report names actions, collectives, shardings and conflicts") {
  const auto chain = pt::trace([](auto x, auto w) { return matmul(x, w); },
                               pt::input<float, 16, 8>("x"), pt::input<float, 8, 4>("w"));
  const auto p = run(chain, pt::amalgamated("both", pt::manual("B", {{"x", 0}, {"w", 1}})));
  CHECK(str(pt::report(p)) == R"(after both:
  actions: tile<%x, 0, "B">; tile<%w, 1, "B">; propagate;
  collectives: all_gather 2, all_reduce 0, reduce_scatter 0, all_to_all 0
  sharded inputs:
    x [{"B"}, {}] : tensor<16x8xf32> -> tensor<4x8xf32>
    w [{}, {"B"}] : tensor<8x4xf32> -> tensor<8x1xf32>
  conflicts: 1
    %x1 (dot_general) along "B": #tile<0> from operand %x by tactic 1 ("both"), and #tile<1> from operand %w by tactic 1 ("both")
      would be settled by manual("B", {{"x", 0}}) as an earlier tactic (#tile<0>), or by manual("B", {{"w", 1}}) as an earlier tactic (#tile<1>)
per device: 1024 flop, 896 bytes read and written, arguments 160 bytes, results 256 bytes, peak 1056 bytes, sent 480 bytes, messages along "B" 6
)");
}

TEST_CASE("tile maps as text, at run time") {
  const auto p =
      pt::trace([](auto x) { return pt::reshape<4, 2, 3, 2>(x); }, pt::input<float, 4, 12>("x"));
  CHECK(str(pt::tile_map_of(p, 1)) == "([i, jkl]) -> ([i, j, k, l])");
}
TEST_CASE("figures at run time: by name and position, checked against bounds") {
  const auto p = run(step(), pt::manual("B", {{"params.up", 1}}, "up"));
  CHECK(p.input("params.up").local_shape == pt::shape{8, 2});
  CHECK(p.input(0).name == "params.up");
  CHECK(p.output("loss").global_shape == pt::shape{});
  CHECK_THROWS_WITH_AS(p.input("params.ap"),
                       "P007 partitioned: no input \"params.ap\"; known: params.up, params.bias, "
                       "state.up, state.bias, x; did you mean \"params.up\"?",
                       pt::error);
  CHECK_THROWS_AS(p.output(99), pt::error);
  const auto s = pt::summarize(p);
  CHECK(s.input("params.up").local_shape == p.input("params.up").local_shape);
  CHECK(s.flops == p.cost.flops);
  CHECK_THROWS_AS(s.input(5), pt::error);
  CHECK_THROWS_AS(s.tactic(1), pt::error);
}
TEST_CASE("a state that arrives and leaves in different layouts is noted") {
  const auto grow = [](auto s, auto x) { return pt::output("s", matmul(s, x)); };
  const auto p =
      pt::partition(pt::trace(grow, pt::input<float, 8, 8>("s"), pt::input<float, 8, 8>("x")),
                    {{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  REQUIRE(p.tactics.back().notes.size() == 1);
  CHECK(str(p.tactics.back().notes[0]) ==
        "state \"s\" arrives as [{}, {\"B\"}] and leaves as [{}, {}]; name it in a tactic to keep "
        "it in one layout");
}
TEST_CASE("a next state keeps its propagated layout unless its dimension is named") {
  const auto step = pt::trace(
      [](auto s, auto m) {
        return std::tuple{pt::output("s", m + m), pt::output("y", s + s)};
      },
      pt::input<float, 8, 8>("s"), pt::input<float, 8, 8>("m"));
  const auto placed = [&](pt::placement where) {
    return pt::partition(step, {{"B", 4}}, pt::schedule(pt::manual("B", {{"s", where}, {"m", 1}})));
  };
  const auto p = placed(pt::first_divisible_dim);
  CHECK(p.device.inputs[0].local({8, 8}, p.mesh()) == pt::shape{2, 8});
  REQUIRE(p.tactics[0].notes.size() == 1);
  CHECK(str(p.tactics[0].notes[0]) ==
        "state \"s\" arrives as [{\"B\"}, {}] and leaves as [{}, {\"B\"}]; name it in a tactic to "
        "keep it in one layout");
  CHECK_THROWS_AS(placed(0), pt::error);  // S004
}
TEST_CASE("device-local programs print with and without their mesh") {
  const auto p = run(step(), pt::manual("B", {{"x", 0}}));
  CHECK(str(pt::print(p.device)).find("all_reduce <\"B\">") != std::string::npos);
  CHECK(str(pt::print(p.device.local)).find("all_reduce <0>") != std::string::npos);
}
