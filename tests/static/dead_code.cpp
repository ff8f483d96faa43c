// Dead code is removed at compile time too, and loops of unknown length are counted.
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 2}};

constexpr auto dead_loss = [] {
  pt::builder b;
  const pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {8, 4}});
  (void)pt::ops::reduce(b, pt::ops::tanh(b, x), pt::combiner::add, {0, 1});
  b.p.outputs.push_back({pt::ops::negate(b, x), b.p.intern("y")});
  return pt::partition(b.p, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<dead_loss>.removed_ops == 2);
static_assert(pt::check<dead_loss>.collectives.total() == 0);
static_assert(pt::check<dead_loss>.unknown_loops == 0);
static_assert(pt::explain<dead_loss>().find("note: removed 2 ops") != std::string_view::npos);
constexpr auto proved = [] { return pt::proved(dead_loss()); };
static_assert(pt::check<proved>.removed_ops == 2);

constexpr auto doubling = [] {
  const auto f = [](auto x) {
    return pt::while_loop([](auto h) { return sum(h) < 100.0f; }, [](auto h) { return h + h; }, x);
  };
  return pt::partition(pt::trace(f, pt::input<float, 4>("x")), mesh,
                       pt::schedule(pt::manual("B", {{"x", 0}})));
};
static_assert(pt::check<doubling>.unknown_loops == 1);
static_assert(pt::check<doubling>.unknown_loops_in_flops == 1);
static_assert(pt::check<doubling>.unknown_loops_in_collectives == 1);

}  // namespace
