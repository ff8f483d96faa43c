// Layouts that one tactic gives at once: products, two layers, attention and a training step with
// random layouts of inputs and results along one and two axes. The partitioned program computes the
// source and verifies, its log replays, no conflict of several layouts is left, and no other choice
// for the conflicts (all are tried) takes fewer flops or, with as many, sends fewer bytes.
//
// Not drawn: sub-axes, padding, loops, tags, several tactics.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/core/action_text.hpp>
#include <partita/cost/settle.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

struct parameters {
  using up = pt::tensor<double, 8, 16>;
  using bias = pt::tensor<double, 16>;
  using down = pt::tensor<double, 16, 8>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (up, w1), (bias, b1), (down, w2));
};
constexpr auto product = [](auto x, auto w) { return matmul(x, w); };
constexpr auto with_itself = [](auto x) { return matmul(x, pt::transpose<1, 0>(x)); };
constexpr auto layers = [](auto x, auto a, auto b) {
  return matmul(pt::maximum(matmul(x, a), 0.0), b);
};
constexpr auto attention = [](auto q, auto k, auto v) {
  const auto scores = pt::nn::softmax(pt::einsum<"bsd,btd->bst">(q, k));
  return pt::einsum<"bst,btd->bsd">(scores, v);
};
constexpr auto training_step = [](auto p, auto x, auto y) {
  const auto loss = [&](const auto& q) {
    const auto h = pt::maximum(matmul(x, q.w1) + q.b1, 0.0);
    const auto e = matmul(h, q.w2) - y;
    return pt::sum<0, 1>(e * e);
  };
  const auto [value, g] = pt::value_and_grad(loss, p);
  return std::tuple(value, p.w1 - g.w1 * 0.25, p.b1 - g.b1 * 0.25, p.w2 - g.w2 * 0.25);
};
template <std::int64_t... E>
auto input(const char* name) {
  return pt::input<double, E...>(name);
}

struct work {
  std::int64_t flops = 0, bytes = 0;
  bool operator<(const work& o) const {
    return flops != o.flops ? flops < o.flops : bytes < o.bytes;
  }
};
work work_of(const pt::core_program& c) {
  const pt::cost all = pt::estimate(pt::lower(c, {}).device);
  return {all.flops, all.collective_bytes};
}
/// The least work after all conflicts are settled in every way.
work least_work(const pt::core_program& c, int& left) {
  for (const auto& k : c.conflicts) {
    const int axis = c.mesh.parts_of(k.where()).axes[0];
    const pt::vec<int> list = c.choices(k.op, axis);
    if (list.empty()) continue;
    work least{INT64_MAX, INT64_MAX};
    for (int f : list) {
      if (left <= 0) break;
      pt::core_program next = c;
      next.settle(k.op, axis, f);
      const work found = least_work(next, left);
      least = found < least ? found : least;
    }
    return least;
  }
  --left;
  return work_of(c);
}

struct tally {
  int cases = 0, conflicts = 0, better = 0, worse = 0;
};

void check(const pt::program& p, const pt::mesh& m, std::uint64_t seed, tally& seen) {
  data::random r{seed};
  pt::core_program c(p, m);
  std::string text;
  const auto lay_out = [&](pt::value_id v, int rank) {
    for (int axis = 0; axis < m.rank; ++axis) {
      const int dim = static_cast<int>(r.in(-1, rank - 1));
      if (dim >= 0 && c.tile(v, dim, axis)) return false;
      text += std::to_string(dim) + ' ';
    }
    return true;
  };
  bool fits = true;
  for (int i = 0; i < p.input_count(); ++i)
    fits = fits && lay_out(p.inputs[i], p.input_type(i).shape.rank);
  for (int i = 0; i < p.output_count(); ++i)
    fits = fits && lay_out(p.outputs[i].value, p.output_type(i).shape.rank);
  if (!fits) return;
  CAPTURE(seed);
  CAPTURE(text);
  c.propagate();
  pt::core_program settled = c;
  pt::settle_conflicts(settled);
  ++seen.cases;

  const pt::device_program device = pt::lower(settled, {}).device;
  CHECK(data::str(pt::verify(device).message) == "");
  const auto x = data::arguments(p, seed);
  CHECK(pt::max_difference(pt::evaluate(p, x), pt::emulate(device, x)) < 1e-12);
  for (const auto& k : settled.conflicts) CHECK(k.kind == pt::conflict_kind::indivisible);
  if (c.conflicts.empty()) return;

  ++seen.conflicts;
  pt::core_program replayed(p, m);
  CHECK(data::str(pt::replay(replayed, p, pt::print_actions(settled, p).view()).message) == "");
  CHECK(data::str(pt::print(pt::lower(replayed, {}).device)) == data::str(pt::print(device)));
  const work ours = work_of(settled), before = work_of(c);
  CHECK(ours.flops <= before.flops);
  int left = 300;
  const work least = least_work(c, left);
  seen.better += ours < least;
  seen.worse += least < ours;
  // Every layout at once leaves each op a loop along each axis that some evidence supports.
  CHECK(ours.flops <= least.flops);
  CHECK(ours.bytes <= (ours.flops < least.flops ? INT64_MAX : least.bytes + least.bytes / 10));
}

}  // namespace

TEST_CASE("layouts given at once are settled by the cheapest choice") {
  const pt::program programs[] = {
      pt::trace(product, input<8, 16>("x"), input<16, 24>("w")),
      pt::trace(with_itself, input<8, 16>("x")),
      pt::trace(layers, input<8, 16>("x"), input<16, 32>("a"), input<32, 8>("b")),
      pt::trace(layers, input<64, 16>("x"), input<16, 32>("a"), input<32, 8>("b")),
      pt::trace(attention, input<8, 8, 16>("q"), input<8, 8, 16>("k"), input<8, 8, 16>("v")),
      pt::trace(training_step, pt::input<parameters>("p"), input<8, 8>("x"), input<8, 8>("y"))};
  tally seen;
  for (const pt::program& p : programs)
    for (const pt::mesh& m :
         {pt::mesh{{"A", 4}}, pt::mesh{{"A", 2}, {"B", 4}}, pt::mesh{{"A", 4}, {"B", 2}}})
      for (std::uint64_t seed = 1; seed <= 25; ++seed) check(p, m, seed, seen);
  MESSAGE(seen.cases << " layouts, " << seen.conflicts
                     << " with conflicts; an order is better than every choice for " << seen.better
                     << ", a choice is better for " << seen.worse);
  CHECK(seen.conflicts > 100);
  CHECK(seen.worse <= seen.conflicts / 50);
}

TEST_CASE("a shard tactic finds an order, notes it, and repeats it") {
  const pt::program f = pt::trace(layers, input<16, 8>("x"), input<8, 32>("a"), input<32, 16>("b"));
  const auto rows =
      pt::shard({{"x", {"A"}}, {"a", {"A"}}, {"b", {"A"}}, {"result", {"A"}}}, "rows");
  const auto p = pt::partition(f, {{"A", 4}}, pt::schedule(rows));
  CHECK(p.core.conflicts.empty());
  CHECK(p.cost.flops == 25088 / 4);  // the source's
  CHECK(pt::partition(f, {{"A", 4}}, pt::schedule(data::unsettled(rows))).cost.flops >
        2 * 25088 / 4);
  CHECK(data::str(pt::print_actions(p.core, f)).find("first<%b, \"A\">") != std::string::npos);
  REQUIRE(p.tactics[0].notes.size() == 1);
  CHECK(data::str(p.tactics[0].notes[0]) == R"(settled by cost: "b" along "A" comes first)");
  CHECK(data::str(pt::print(pt::after(p, 0))) == data::str(pt::print(p)));
}

TEST_CASE("notes list eight settled conflicts, and all of them with `strict`") {
  const pt::program f = pt::trace(
      [](auto x) {
        auto h = x;
        for (int i = 0; i < 10; ++i) h = matmul(h, h);
        return h;
      },
      input<8, 8>("x"));
  const auto rows = pt::schedule(pt::manual("A", {{"x", 0}}));
  const auto notes = [&](std::int64_t strict) {
    return pt::partition(f, {{"A", 4}}, rows, {.strict = strict}).tactics[0].notes;
  };
  REQUIRE(notes(pt::partition_options::off).size() == 9);
  CHECK(data::str(notes(pt::partition_options::off)[8]) == "settled by cost: 2 more conflicts");
  CHECK(notes(1 << 20).size() == 10);
}

TEST_CASE("a conflict to which an earlier tactic contributed stays") {
  const pt::program f = pt::trace(product, input<16, 8>("x"), input<8, 16>("w"));
  const auto open = data::unsettled(pt::manual("A", {{"x", 0}, {"w", 1}}, "open"));
  const auto more = pt::manual("B", {{"x", 1}, {"w", 0}}, "more");
  const auto p = pt::partition(f, {{"A", 2}, {"B", 2}}, pt::schedule(open, more));
  CHECK(p.core.conflicts.size() == 1);
  CHECK(p.core.settled.empty());
}
