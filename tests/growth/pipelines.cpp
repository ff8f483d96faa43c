// The growth of the work of merging, rematerializing, showing and proving pipelines, with the
// number of ops and of microbatches.
#include <doctest/doctest.h>

#include <array>
#include <string_view>
#include <tuple>

#include <partita/mpmd/print_calls.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/partita.hpp>
#include <partita/report/pipeline_explain.hpp>
#include <partita/report/pipeline_json.hpp>
#include <partita/report/pipeline_svg.hpp>
#include <partita/report/pipeline_trace.hpp>

#include "work.hpp"

namespace pt = partita;

namespace {

/// A training step of layers that share a weight (or each have their own), in four stages on four
/// meshes, and the order of its calls.
struct deep_pipeline {
  pt::pipelined p;
  pt::pipeline_time t;

  deep_pipeline(int layers, int microbatches, bool shared = true) {
    constexpr std::string_view meshes[] = {"m0", "m1", "m2", "m3"};
    constexpr std::int64_t rows[] = {0}, columns[] = {1}, both[] = {0, 1};
    pt::builder b;
    pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {microbatches, 4}});
    pt::vec<pt::text> names, weight_names;
    for (int i = 0; i < layers; ++i) names.push_back(pt::concat("layers.", i));
    for (int i = 0; i < (shared ? 1 : layers); ++i) weight_names.push_back(pt::concat("w", i));
    pt::vec<pt::value_id> weights;
    for (const auto& name : weight_names)
      weights.push_back(pt::ops::parameter(b, name.view(), {pt::dtype::f32, {4, 4}}));
    pt::pipeline_options options{
        .microbatches = microbatches, .batch = {{"x", 0}}, .channels = {.capacity = pt::unbounded}};
    options.where.infer_transfers = true;
    for (int i = 0; i < layers; ++i) {
      b.enter_scope(names[i].view());
      const pt::value_id w = weights[shared ? 0 : i];
      x = pt::ops::tanh(b, pt::ops::dot_general(b, x, w, {{}, {}, columns, rows}));
      b.leave_scope();
      options.where.names.push_back({names[i].view(), meshes[i * 4 / layers], i * 4 / layers});
    }
    const pt::value_id loss = pt::ops::reduce(b, x, pt::combiner::add, both);
    const pt::vec<pt::value_id> g = pt::dsl_detail::reverse(b, loss, weights);
    for (std::size_t i = 0; i < g.size(); ++i)
      b.p.outputs.push_back({g[i], b.p.intern(pt::concat("g", i))});
    pt::topology topology;
    for (const auto name : meshes) topology.push_back({name, {{"B", 1}}});
    p = pt::pipeline(b.p, topology, pt::one_f_one_b, options);
    t = pt::simulate(p, pt::a100_80);
  }
};
/// A step with a loop of its own over microbatches, which carries `Count` states and as many sums.
template <std::size_t Count>
pt::program with_states() {
  using row = pt::tensor<double, 4>;
  const auto step = [](const auto& xs, const auto& given) {
    const auto body = [](const auto& carried, const auto& x) {
      const auto& [states, sums] = carried;
      const auto add = [](const auto& a, const auto& b) { return a + b; };
      auto h = x;
      for (const auto& s : states) h = pt::named("front", add)(h, s);
      const auto y = pt::named("back", [](const auto& v) { return pt::sum<0>(pt::tanh(v)); })(h);
      auto next = states;
      auto all = sums;
      for (std::size_t i = 0; i < Count; ++i) {
        next[i] = pt::named("back", add)(y, states[i]);
        all[i] = sums[i] + next[i];
      }
      return std::pair{std::tuple{next, all}, pt::nothing{}};
    };
    auto zeros = given;
    for (auto& z : zeros) z = pt::full_like(given[0], 0);
    const auto last = pt::scan(body, std::tuple{given, zeros}, xs).first;
    return std::tuple{pt::output("states", std::get<0>(last)),
                      pt::output("sums", std::get<1>(last))};
  };
  return pt::trace(step, pt::input<double, 2, 3, 4>("xs"),
                   pt::input("given", std::array<row, Count>{}));
}
pt::program of_states(int n) { return n == 40 ? with_states<40>() : with_states<160>(); }

deep_pipeline of_layers(int n) { return {n, 4}; }
deep_pipeline of_microbatches(int n) { return {4, n}; }
deep_pipeline of_own_weights(int n) { return {n, 4, false}; }

}  // namespace

TEST_CASE("merging units and rematerializing is linear") {
  for (const auto make : {of_layers, of_microbatches}) {
    check_linear(100, make, [](deep_pipeline& d) {
      (void)pt::merged(d.p, [](const pt::fragment_call& a, const pt::fragment_call& b) {
        return a.stage == 3 && b.stage == 3 && a.microbatch == b.microbatch;
      });
      (void)pt::merged(d.p, [](const pt::fragment_call& a, const pt::fragment_call& b) {
        return a.transposed == b.transposed && a.microbatch / 2 == b.microbatch / 2;
      });
    });
    check_linear(100, make, [](deep_pipeline& d) { (void)pt::rematerialized(d.p); });
  }
}

TEST_CASE("lists of calls, pictures and traces are linear") {
  check_linear(100, of_layers, [](deep_pipeline& d) { (void)pt::print_calls(d.p); });
  check_linear(100, of_microbatches, [](deep_pipeline& d) {
    (void)pt::print_calls(d.p);
    (void)pt::pipeline_json(d.p);
    (void)pt::pipeline_svg(d.p, d.t);
    (void)pt::trace_events(d.p, d.t);
  });
}

TEST_CASE("reports on all values of a pipeline are linear") {
  check_linear(100, of_own_weights, [](deep_pipeline& d) {
    CHECK(pt::explain(d.p, "*").view().find("error") == std::string_view::npos);
  });
}

TEST_CASE("proofs of pipelines are linear") {
  const auto is_proved = [](deep_pipeline& d) { CHECK(pt::prove(d.p).proved); };
  check_linear(200, of_layers, is_proved);  // one sum of as many gradients, from four meshes
  check_linear(100, of_microbatches, is_proved);
}

TEST_CASE("plans of a step with a loop of its own are linear in its states") {
  const pt::topology t{{"m0", {{"B", 1}}}, {"m1", {{"B", 1}}}};
  pt::pipeline_options options;
  options.where.names = {{"front", "m0", 0}, {"back", "m1", 1}};
  options.where.infer_transfers = true;
  options.channels.capacity = pt::unbounded;
  const auto piped = [&](const pt::program& p) {
    return pt::pipeline(p, t, pt::one_f_one_b, options);
  };
  check_linear(40, of_states, [&](const pt::program& p) { CHECK(!piped(p).next_slot.empty()); });
  // (A proof reads the values of a unit once for each of its sums.)
  CHECK(pt::prove(piped(of_states(160))).proved);
}
