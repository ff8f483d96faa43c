// Microbatches: the program with its loop gives the results of the source, on one device, on meshes
// and in sequence. Also ops outside the loop, the number of collectives, and memory.
#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>

#include "../../examples/models/transformer.hpp"
#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

/// Checks the program with the loop. `exact`: on small integers, on which sums are exact.
pt::partitioned check_equal(const pt::program& p, const std::vector<pt::array>& inputs,
                            const auto& tactics, double tolerance = 0) {
  const auto r = pt::partition(p, mesh, tactics);
  CHECK(str(pt::verify(r.sharded()).message) == "");
  CHECK(str(pt::verify(r.device).message) == "");
  CHECK(pt::equivalent(pt::parse(pt::print(r.sharded())), r.sharded()));
  const auto whole = pt::evaluate(p, inputs);
  CHECK(pt::max_difference(pt::evaluate(r.sharded(), inputs), whole) <= tolerance);
  CHECK(pt::max_difference(pt::emulate(r, inputs), whole) <= tolerance);
  CHECK(pt::max_difference(pt::temporal(r, inputs), whole) <= tolerance);
  CHECK(r.output(0).global_shape == p.output_type(0).shape);
  return r;
}
pt::partitioned check_equal(const pt::program& p, const auto& tactics) {
  return check_equal(p, data::arguments(p), tactics);
}
/// Returns the number of ops with this name, including those of nested programs.
int count(const pt::program& p, std::string_view name) {
  int n = 0;
  for (const auto& each : p.ops) n += each.def->name == name;
  for (const auto& r : p.regions) n += count(r, name);
  return n;
}
std::vector<std::string> notes_of(const pt::partitioned& r, int tactic = 0) {
  std::vector<std::string> list;
  for (const auto& note : r.tactics[static_cast<std::size_t>(tactic)].notes)
    list.push_back(str(note));
  return list;
}

}  // namespace

TEST_CASE("every combiner is accumulated, stacked results keep their order") {
  const auto p = pt::trace(
      [](auto x, auto i) {
        return std::tuple{sum<0>(x), reduce_max<0>(x), reduce_min<0>(x), prod<0>(x),
                          all<0>(i), any<0>(i),        all<0>(i > 0),    x * 2,
                          sum<1>(x)};
      },
      pt::input<float, 12, 3>("x"), pt::input<std::int32_t, 12, 3>("i"));
  for (std::int64_t n : {1, 2, 3, 4, 6, 12}) {
    CAPTURE(n);
    const auto r = check_equal(p, pt::schedule(pt::microbatch(n, {{"x", 0}, {"i", 0}})));
    CHECK(count(r.sharded(), "scan") == (n > 1 ? 1 : 0));
    CHECK(r.sharded().output_name(0) == p.output_name(0));
  }
}
TEST_CASE("the identity of each combiner, for each element type") {
  using pt::combiner, pt::dtype;
  data::random random{3};
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i32, dtype::i64,
                  dtype::u8, dtype::boolean})
    for (combiner c : {combiner::add, combiner::max, combiner::min, combiner::multiply,
                       combiner::logical_and, combiner::logical_or}) {
      const bool bits = c == combiner::logical_and || c == combiner::logical_or;
      if (bits && pt::is_floating(t)) continue;
      CAPTURE(std::string(name_of(t)) + " " + std::string(name_of(c)));
      const pt::tensor_type type{t, {16}};
      pt::builder b;
      const auto x = pt::ops::parameter(b, "x", type);
      const auto start = b.emit(pt::def<pt::op::constant>, {}, {pt::identity_bits(c, t)}, type);
      b.p.outputs.push_back({b.emit(pt::combining_op(c), {start, x}), {}});
      CHECK(str(b.p.error.message) == "");
      const auto input = data::integers(type, random, -9, 9);
      CHECK(pt::equal(pt::evaluate(b.p, input).only(), input));
    }
}
TEST_CASE("a batch that is not the leading dimension, or becomes part of another one") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        const auto rows = reshape<48, 4>(x);          // (batch 8 * 6, 4)
        const auto y = matmul(rows, w);               // (48, 4)
        const auto z = transpose<1, 0>(y);            // (4, 48)
        const auto i = pt::iota<float, 1>(x, 4, 48);  // positions
        return std::tuple{z * i, reshape<8, 24>(y), sum<1>(z)};
      },
      pt::input<float, 8, 6, 4>("x"), pt::input<float, 4, 4>("w"));
  const auto MB = pt::microbatch(4, {{"x", 0}});
  check_equal(p, pt::schedule(MB));
  check_equal(p, pt::schedule(pt::manual("M", {{"x", 0}}), MB));
  check_equal(p, pt::schedule(pt::manual("B", {{"x", 0}}), MB));  // 4 does not divide 8 / 4
  const auto q = pt::trace(
      [](auto x) {
        return std::tuple{sum<1>(x), x + x};
      },
      pt::input<float, 3, 8>("x"));
  check_equal(q, pt::schedule(pt::manual("M", {{"x", 1}}), pt::microbatch(4, {{"x", 1}})));
}
TEST_CASE("a batch of the maximum number of dimensions that can be stacked") {
  const auto p = pt::trace(
      [](auto x) {
        return std::tuple{x * 2, sum(x)};
      },
      pt::input<float, 2, 3, 1, 8, 1, 2, 2>("x"));
  for (const int dim : {0, 3, 6}) {
    const std::int64_t steps = dim == 3 ? 4 : 2;
    check_equal(p, pt::schedule(pt::microbatch(steps, {{"x", dim}})));
  }
}

TEST_CASE("a batch is sliced such that the mesh's blocks stay in place") {
  const auto p = pt::trace([](auto x, auto w) { return tanh(matmul(x, w)); },
                           pt::input<float, 64, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto r =
      check_equal(p, data::arguments(p),
                  pt::schedule(pt::manual("B", {{"x", 0}}), pt::microbatch(4, {{"x", 0}})), 1e-6);
  CHECK(r.collectives.total() == 0);
  CHECK(r.output(0).local_shape == pt::shape{16, 8});
}
TEST_CASE("on one device a batch is sliced without copies, in contiguous ranges") {
  const auto p = pt::trace(
      [](auto x, auto y, auto w) {
        const auto h = tanh(matmul(reshape<16, 6>(x), w));  // (16, 4)
        return std::tuple{pt::output("h", h), pt::output("s", sum<0>(h)), pt::output("t", y + y)};
      },
      pt::input<double, 8, 2, 6>("x"), pt::input<double, 3, 8>("y"), pt::input<double, 6, 4>("w"));
  const auto inputs = data::arguments(p);
  for (const std::int64_t n : {2, 4, 8}) {
    CAPTURE(n);
    const auto r =
        pt::partition(p, pt::mesh{{"B", 1}}, pt::schedule(pt::microbatch(n, {{"x", 0}, {"y", 1}})));
    CHECK(count(r.sharded(), "transpose") == 2);  // those of y, whose batch is not its first one
    CHECK(pt::max_difference(pt::emulate(r, inputs), pt::evaluate(p, inputs)) < 1e-12);
    CHECK(pt::prove(r).proved);
  }
}
TEST_CASE("an op that needs the whole batch starts another loop, and a note reports it") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        const auto h = matmul(x, w);
        const auto centred = h - sum<0>(h);
        return std::tuple{pt::output("y", centred * centred), pt::output("s", sum<0>(centred * x))};
      },
      pt::input<float, 16, 4>("x"), pt::input<float, 4, 4>("w"));
  const auto r = check_equal(p, pt::schedule(pt::microbatch(4, {{"x", 0}})));
  CHECK(count(r.sharded(), "scan") == 2);
  CHECK(notes_of(r).size() == 1);
  CHECK(notes_of(r)[0].starts_with("loop 2 starts where \""));
}
TEST_CASE("what the whole batch and no parameter determine is computed before the loop") {
  // Cross entropy over the tokens whose label is not 0, weighted by class. The mask and the weights
  // are needed whole for their sum, and in slices in the loop.
  const auto step = [](auto x, auto labels, auto weights, auto w) {
    const auto [loss, g] = pt::value_and_grad(
        [&](const auto& v) {
          const auto logits = matmul(tanh(matmul(x, std::get<0>(v))), std::get<1>(v));
          const auto picked = pt::take_along_axis<1>(logits, reshape<64, 1>(labels));
          const auto mask = pt::tag("mask", pt::convert<double>(labels > 0));
          const auto weight = pt::take<0>(weights, labels) * mask;
          return sum(reshape<64>(picked) * weight) / sum(weight);
        },
        w);
    return std::tuple{pt::output("loss", loss),
                      pt::output("w", std::tuple{std::get<0>(w) - std::get<0>(g),
                                                 std::get<1>(w) - std::get<1>(g)})};
  };
  const auto p = pt::trace(
      step, pt::input<double, 64, 8>("x"), pt::input<std::int32_t, 64>("labels"),
      pt::input<double, 10>("weights"),
      pt::input("w", std::tuple<pt::tensor<double, 8, 32>, pt::tensor<double, 32, 10>>{}));
  data::random random{3};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i)
    inputs.push_back(data::integers(p.input_type(i), random, 1, i == 1 ? 9 : 2));
  const auto MB = pt::microbatch(4, {{"x", 0}, {"labels", 0}});
  const auto BP = pt::manual("B", {{"x", 0}, {"labels", 0}}, "BP");
  const auto check = [&](const auto& with, const auto& without, int place) {
    const auto r = check_equal(p, inputs, with, 1e-9);
    const auto plain = pt::partition(p, mesh, without);
    CHECK(count(r.sharded(), "scan") == 1);
    CHECK(notes_of(r, place).empty());
    CHECK(r.collectives == plain.collectives);
    CHECK(pt::prove(r).proved);
    MESSAGE("peak bytes ", plain.cost.peak_bytes, " -> ", r.cost.peak_bytes);
    CHECK(r.cost.peak_bytes < plain.cost.peak_bytes);
    return r;
  };
  const auto r = check(pt::schedule(MB), pt::schedule(), 0);
  check(pt::schedule(BP, MB), pt::schedule(BP), 1);
  check(pt::schedule(MB, BP), pt::schedule(BP), 0);
  // A tag that both need names the values of the loop; the copy has a name of its own.
  check_equal(p, inputs, pt::schedule(MB, pt::manual("B", {{"mask", 0}})), 1e-9);
  CHECK(count(r.sharded(), "tag") == 2);
}
TEST_CASE("a parameter that is needed of the whole batch starts another loop") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        const auto h = x * w;
        return std::tuple{pt::output("y", h / sum<0>(h)), pt::output("w", w + 1.f)};
      },
      pt::input<float, 16, 4>("x"), pt::input<float, 16, 4>("w"));
  const auto r = check_equal(p, pt::schedule(pt::microbatch(4, {{"x", 0}})));
  CHECK(count(r.sharded(), "scan") == 2);
}
TEST_CASE("a gather from a sum that other uses slice reads the complete sum") {
  const auto check_lookup = [](const auto& lookup) {
    const auto p = pt::trace(
        [&](auto x, auto w, auto y, auto at, auto u) {
          const auto s = sum<0>(matmul(x, w));
          return std::tuple{s * y, lookup(s, at, u)};
        },
        pt::input<float, 8, 6>("x"), pt::input<float, 6, 12>("w"), pt::input<float, 12>("y"),
        pt::input<std::int32_t>("at"), pt::input<float, 1>("u"));
    for (int at = -1; at <= 12; ++at) {
      CAPTURE(at);
      auto inputs = data::arguments(p);
      inputs[3] = data::fill(p.input_type(3), [&](std::int64_t) { return at; });
      const auto MB = pt::microbatch(4, {{"x", 0}, {"y", 0}});
      const auto r = check_equal(p, inputs, pt::schedule(MB));
      CHECK(count(r.sharded(), "scan") == 2);
      check_equal(p, inputs, pt::schedule(MB, pt::manual("B", {{"w", 1}})));
    }
  };
  const auto squares = [](auto t) { return sum<0>(t * t); };
  const auto row = [](auto at) { return reshape<1>(at); };
  check_lookup([](auto s, auto at, auto) { return pt::dynamic_slice<pt::axes<1>>(s, at); });
  check_lookup([&](auto s, auto at, auto) { return pt::take<0>(s, row(at)); });
  check_lookup(
      [&](auto s, auto at, auto u) { return squares(pt::dynamic_update_slice(s, u, at)); });
  check_lookup([&](auto s, auto at, auto u) { return squares(pt::scatter_add(s, row(at), u)); });
  check_lookup([&](auto s, auto at, auto u) { return squares(pt::scatter_set(s, row(at), u)); });
}
TEST_CASE(
    "loops of a core program in sequence: ops that depend on positions read unsliced values") {
  const auto p = pt::trace(
      [](auto x, auto at) {
        return std::tuple{x * x,
                          sum<0>(x),
                          pt::dynamic_slice<pt::axes<1>>(x, at),
                          pt::take<0>(x, reshape<1>(at)),
                          pt::dynamic_update_slice(x, reshape<1>(sum<0>(x)), at),
                          pt::cumsum<0>(x),
                          pt::reverse<0>(x),
                          pt::argmax<0>(x)};
      },
      pt::input<float, 12>("x"), pt::input<std::int32_t>("at"));
  pt::core_program core(p, pt::mesh{{"steps", 4}});
  CHECK(!core.tile(core.p.inputs[0], 0, 0));
  core.propagate();
  const pt::sequential_program s = pt::in_sequence(core, 0);
  REQUIRE(!s.p.error);
  CHECK(s.loops == 1);
  CHECK(count(s.p, "scan") == 1);
  for (int at = -1; at <= 12; ++at) {
    auto inputs = data::arguments(p);
    inputs[1] = data::fill(p.input_type(1), [&](std::int64_t) { return at; });
    const auto whole = pt::evaluate(p, inputs);
    CHECK(pt::max_difference(pt::evaluate(s.p, inputs), whole) == 0);
    CHECK(pt::max_difference(pt::temporal(core, inputs), whole) == 0);
  }
}
TEST_CASE("loops of the model inside the loop over microbatches") {
  const auto step = [](const auto& model) {
    return [=](auto x, auto w) {
      const auto [value, g] = pt::value_and_grad(
          [&](const auto& v) {
            const auto y = model(x, v);
            return sum(y * y);
          },
          w);
      return std::tuple{pt::output("g", g), pt::output("loss", value)};
    };
  };
  const auto MB = pt::microbatch(4, {{"x", 0}});
  const auto BP = pt::manual("B", {{"x", 0}});
  // Stacked layers: each returns its gradient.
  const auto layers = pt::trace(step([](auto x, auto w) {
                                  return pt::scan(
                                             [](auto h, auto each) {
                                               return std::pair{matmul(h, each), pt::nothing{}};
                                             },
                                             x, w)
                                      .first;
                                }),
                                pt::input<double, 16, 4>("x"), pt::input<double, 3, 4, 4>("w"));
  auto r = check_equal(layers, pt::schedule(MB, BP));
  CHECK(count(r.sharded(), "matmul") + count(r.sharded(), "dot_general") == 3);
  CHECK(notes_of(r).empty());
  // Shared weights: their gradient is a sum that the inner loop carries.
  const auto shared = pt::trace(step([](auto x, auto w) {
                                  return pt::for_loop(
                                      0, 3, [&](auto, auto h) { return matmul(h, w); }, x);
                                }),
                                pt::input<double, 16, 4>("x"), pt::input<double, 4, 4>("w"));
  r = check_equal(shared, pt::schedule(BP, MB));
  CHECK(notes_of(r, 1).empty());
  CHECK(count(r.sharded(), "scan") == 3);
  CHECK(r.collectives == pt::collectives{.all_reduce = 2});  // gradient and loss, once
}
TEST_CASE("a loop of the model that needs the whole batch stays outside, and a note reports it") {
  const auto p = pt::trace(
      [](auto x) {
        return pt::output("y", pt::for_loop(
                                   0, 3, [](auto, auto h) { return h - sum<0>(h) * 2; }, x + x));
      },
      pt::input<float, 8, 4>("x"));
  const auto r = check_equal(p, pt::schedule(pt::microbatch(2, {{"x", 0}})));
  CHECK(notes_of(r) == std::vector<std::string>{"scan of \"y\" runs once, on unsliced values: its "
                                                "nested programs need the results of all steps"});
}
TEST_CASE("two dimensions in two loops") {
  const auto p = pt::trace(
      [](auto x) {
        return std::tuple{sum(x), sum<0>(x * x), x + 1};
      },
      pt::input<float, 8, 12>("x"));
  const auto r =
      check_equal(p, pt::schedule(pt::microbatch(2, {{"x", 0}}), pt::microbatch(3, {{"x", 1}}),
                                  pt::manual("B", {{"x", 0}})));
  CHECK(count(r.sharded(), "scan") >= 2);
}

TEST_CASE("a branch that returns a sum and an unsliced value runs once") {
  const auto p = pt::trace(
      [](auto which, auto x, auto w, auto y) {
        const auto summed = [](const auto& a, const auto& b, const auto&) { return matmul(a, b); };
        const auto whole = [](const auto&, const auto&, const auto& c) { return c; };
        return std::tuple{pt::output("y", pt::case_of(which, std::tuple{summed, whole}, x, w, y)),
                          pt::output("z", x * 2)};
      },
      pt::input<std::int32_t>("which"), pt::input<float, 4, 12>("x"), pt::input<float, 12, 4>("w"),
      pt::input<float, 4, 4>("y"));
  data::random random{5};
  for (const std::int64_t which : {0, 1}) {
    CAPTURE(which);
    std::vector<pt::array> inputs{data::fill(p.input_type(0), [&](std::int64_t) { return which; })};
    for (int i = 1; i < 4; ++i) inputs.push_back(data::integers(p.input_type(i), random, -4, 4));
    const auto r = check_equal(p, inputs, pt::schedule(pt::microbatch(3, {{"x", 1}, {"w", 0}})), 0);
    CHECK(notes_of(r).size() == 1);
  }
}
TEST_CASE("a sum that branches return is a sum of the steps") {
  // The gradient of a weight in branches where one does not need it, and a loop inside one branch.
  const auto step = [](auto x, auto which, auto w) {
    const auto [loss, g] = pt::value_and_grad(
        [&](const auto& v) {
          const auto by = [](const auto& a, const auto& b) { return matmul(a, b); };
          const auto twice = [](const auto& a, const auto& b) {
            return pt::for_loop(
                0, 2, [&](const auto&, const auto& c) { return matmul(c, b); }, a);
          };
          const auto none = [](const auto& a, const auto&) { return a * 3.f; };
          return sum(pt::case_of(which, std::tuple{by, none, twice}, x, v));
        },
        w);
    return std::tuple{pt::output("loss", loss), pt::output("g", g)};
  };
  const auto p = pt::trace(step, pt::input<float, 12, 4>("x"), pt::input<std::int32_t>("which"),
                           pt::input<float, 4, 4>("w"));
  data::random random{3};
  for (const std::int64_t which : {0, 1, 2}) {
    CAPTURE(which);
    std::vector<pt::array> inputs{data::integers(p.input_type(0), random, -4, 4),
                                  data::fill(p.input_type(1), [&](std::int64_t) { return which; }),
                                  data::integers(p.input_type(2), random, -4, 4)};
    const auto MB = pt::microbatch(3, {{"x", 0}});
    const auto r = check_equal(p, inputs, pt::schedule(MB), 0);
    CHECK(count(r.sharded(), "scan") >= 1);
    // One loop contains both: no op waits for the results of all steps.
    CHECK(r.tactics[0].notes.empty());
    check_equal(p, inputs, pt::schedule(pt::manual("B", {{"x", 0}}), MB), 0);
  }
}

TEST_CASE("microbatches of a transformer's training step: counts, values and memory") {
  constexpr transformer::sizes sizes{.layers = 2,
                                     .width = 8,
                                     .heads = 2,
                                     .key = 4,
                                     .hidden = 16,
                                     .vocabulary = 12,
                                     .context = 6,
                                     .batch = 64};
  const auto p = transformer::trace_training_step<transformer::dynamic>(sizes);
  data::random random{7};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    // The optimizer is in a state in which its step is smooth: after ten steps, with a second
    // moment of 1.
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
  using transformer::BP, transformer::MP, transformer::Z2, transformer::Z3;
  const auto MB = pt::microbatch(8, {{"tokens", 0}, {"targets", 0}});
  const auto check = [&](const auto& with, const auto& without, std::int64_t sums_inside,
                         std::int64_t gathers_inside) {
    // Sums of several hundred binary32 numbers in another order; results are at most 10.
    const auto r = check_equal(p, inputs, with, 1e-4);
    const auto plain = pt::partition(p, mesh, without);
    CHECK(r.collectives.all_reduce == plain.collectives.all_reduce + 7 * sums_inside);
    CHECK(r.collectives.all_gather == plain.collectives.all_gather + 7 * gathers_inside);
    CHECK(r.collectives.reduce_scatter == plain.collectives.reduce_scatter);
    CHECK(r.collectives.all_to_all == plain.collectives.all_to_all);
    CHECK(count(r.sharded(), "scan") == 1);
    MESSAGE("peak bytes ", plain.cost.peak_bytes, " -> ", r.cost.peak_bytes, ", workspace ",
            pt::executable(plain.device).workspace_bytes(), " -> ",
            pt::executable(r.device).workspace_bytes());
    CHECK(2 * r.cost.peak_bytes < plain.cost.peak_bytes);
  };
  check(pt::schedule(MB), pt::schedule(), 0, 0);
  check(pt::schedule(BP, MB), pt::schedule(BP), 0, 0);  // gradients are reduced once
  check(pt::schedule(MB, BP), pt::schedule(BP), 0, 0);
  check(pt::schedule(BP, MP, MB), pt::schedule(BP, MP), 4 * sizes.layers, 0);
  check(pt::schedule(BP, Z2, MB), pt::schedule(BP, Z2), 0, 0);
  const auto gathers = pt::partition(p, mesh, pt::schedule(BP, MP, Z3))
                           .collectives.all_gather;  // those of each step
  check(pt::schedule(BP, MP, Z3, MB), pt::schedule(BP, MP, Z3), 4 * sizes.layers, gathers);
  check(pt::schedule(MB, BP, MP, Z3), pt::schedule(BP, MP, Z3), 4 * sizes.layers, gathers);
}
