// Programs over several meshes compute the results of one mesh.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/mpmd/print_mpmd.hpp>
#include <partita/run/mpmd.hpp>

#include "../../examples/models/transformer.hpp"
#include "../data.hpp"

namespace pt = partita;

namespace {

constexpr pt::topology meshes{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}};

std::vector<pt::array> model_inputs(const pt::program& p) {
  data::random random{7};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    const bool second =
        p.input_name(i).starts_with("opt_state.v");  // (its name begins with the root)
    if (!pt::is_floating(p.input_type(i).element))
      inputs.push_back(data::integers(p.input_type(i), random, 0, 9));
    else
      inputs.push_back(data::fill(p.input_type(i), [&](std::int64_t) {
        return second ? 1.0 : static_cast<double>(random.in(-64, 64)) / 256;
      }));
  }
  return inputs;
}
pt::program transformer_step() {
  return transformer::trace_training_step<transformer::dynamic>({.layers = 4,
                                                                 .width = 8,
                                                                 .heads = 2,
                                                                 .key = 4,
                                                                 .hidden = 16,
                                                                 .vocabulary = 12,
                                                                 .context = 6,
                                                                 .batch = 4});
}

}  // namespace

TEST_CASE("a transformer's training step in stages: equal bits, and only activations are sent") {
  const pt::program p = transformer_step();
  const auto inputs = model_inputs(p);
  const pt::results expected = pt::evaluate(p, inputs);
  const auto check = [&](const pt::assignment& a, int changes) {
    const auto m = pt::to_mpmd(p, meshes, a);
    CHECK(pt::equal(pt::run_fragments(m, inputs), expected));
    // The activations and their derivatives, and the optimizer's step, which both meshes need.
    CHECK(m.transfers.size() == static_cast<std::size_t>(2 * changes + 1));
    for (const auto& t : m.transfers)
      if (t.after >= 0) CHECK(m.source.type(t.value).shape == pt::shape{4, 6, 8});
    for (const auto& f : m.fragments) CHECK(!f.origins.empty());
    for (int i = 0; i < p.input_count(); ++i)
      for (int j = 0; j < p.output_count(); ++j)
        if (p.input_name(i) == p.output_name(j)) CHECK(m.input_mesh[i] == m.output_mesh[j]);
  };
  check({.names = {{"embedding", "m0"},
                   {"layers.0", "m0"},
                   {"layers.1", "m0"},
                   {"layers", "m1"},
                   {"head", "m1"}}},
        1);
  check({.names = {{"embedding", "m0"},
                   {"layers.0", "m0"},
                   {"layers.1", "m1"},
                   {"layers.2", "m0"},
                   {"layers.3", "m1"},
                   {"head", "m1"}}},
        3);
}

TEST_CASE("a weight on two meshes and a global norm: equal on each mesh") {
  // Sums of a few small integers, exact in any order.
  const auto step = [](auto u, auto v, auto x) {
    const auto f = [](auto a, auto b) { return a * b; };
    const auto loss = [&](auto both) {
      const auto h = pt::named("first", f)(x, std::get<0>(both));
      const auto k = pt::named("second", f)(h, std::get<1>(both));
      return pt::named("third", [](auto a, auto b) { return sum(a * b); })(k, std::get<0>(both));
    };
    const auto [l, g] = pt::value_and_grad(loss, std::tuple{u, v});
    const auto norm = sum(std::get<0>(g) * std::get<0>(g)) + sum(std::get<1>(g) * std::get<1>(g));
    return std::tuple{pt::output("u", u - norm * std::get<0>(g)),
                      pt::output("v", v - norm * std::get<1>(g)), pt::output("loss", l)};
  };
  const auto p =
      pt::trace(step, pt::input<float, 8>("u"), pt::input<float, 8>("v"), pt::input<float, 8>("x"));
  const auto m =
      pt::to_mpmd(p, meshes, {.names = {{"first", "m0"}, {"second", "m1"}, {"third", "m1"}}});
  const auto inputs = data::arguments(p);
  CHECK(pt::equal(pt::run_fragments(m, inputs), pt::evaluate(p, inputs)));
  CHECK(m.mesh_of_input("u") == "m0");
  CHECK(m.mesh_of_input("v") == "m1");
  // u, the activation, its derivative, that of u in the third part, and two parts of the norm.
  CHECK(m.transfers.size() == 6);
}

TEST_CASE("a returned constant is made in one fragment, and its broadcast reads it from there") {
  const auto add = [](auto x, auto i) { return x + i; };
  const auto spread = [](auto x, auto i) {
    return pt::broadcast_in_dim<1>(x, 2, 3) * pt::broadcast_in_dim<1>(i, 2, 3);
  };
  const auto model = [&](auto x) {
    const auto i = pt::iota<float, 0>(x, 3);
    const auto a = pt::named("a", add)(x, i);
    return std::tuple{pt::output("i", i), pt::output("y", pt::named("b", spread)(a, i))};
  };
  const pt::program p = pt::trace(model, pt::input<float, 3>("x"));
  const auto m =
      pt::to_mpmd(p, meshes, {.names = {{"a", "m1"}, {"b", "m1"}}, .outputs = {{"i", "m0"}}});
  const auto inputs = model_inputs(p);
  CHECK(pt::equal(pt::run_fragments(m, inputs), pt::evaluate(p, inputs)));
}

TEST_CASE("scalars that are combined on one mesh stay scalars there") {
  const auto e = [](auto x) { return exp(x); };
  const auto model = [&](auto a, auto b, auto x) {
    const auto left = pt::named("first", e)(a), right = pt::named("first", e)(b);
    return pt::output("y", (left * pt::named("second", e)(x)) * right);
  };
  const pt::program p =
      pt::trace(model, pt::input<float>("a"), pt::input<float>("b"), pt::input<float, 6>("x"));
  const auto m = pt::to_mpmd(p, meshes, {.names = {{"first", "m0"}, {"second", "m1"}}});
  CHECK(m.transfers.size() == 1);
  CHECK(!pt::verify(m.source));
  const auto inputs = model_inputs(p);
  CHECK(pt::equal(pt::run_fragments(m, inputs), pt::evaluate(m.source, inputs)));
}
