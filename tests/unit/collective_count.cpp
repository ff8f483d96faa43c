// Counting collectives incrementally, after each change, agrees with lowering the whole program,
// and visits only the part of the program that the change affects. The same holds for conflicts.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include <partita/partita.hpp>

namespace pt = partita;

namespace {

/// Sums of products, gradients and an update, with all-reduced and reduce-scattered pending sums.
pt::program training_step() {
  const auto f = [](auto x, auto y, auto w1, auto w2, auto v) {
    const auto loss = [&](auto w) {
      const auto h =
          matmul(tanh(matmul(x, std::get<0>(w))), std::get<1>(w)) + matmul(x, std::get<2>(w));
      return sum(h * h - y * h);
    };
    const auto [value, grads] = pt::value_and_grad(loss, std::tuple{w1, w2, v});
    const auto& [da, db, dc] = grads;
    return std::tuple{value, w1 - da, w2 - db, v - dc};
  };
  return pt::trace(f, pt::input<float, 16, 8>("x"), pt::input<float, 16, 8>("y"),
                   pt::input<float, 8, 24>("w1"), pt::input<float, 24, 8>("w2"),
                   pt::input<float, 8, 8>("v"));
}

/// The same in a loop over microbatches, which accumulates gradients.
pt::program accumulated() {
  const auto p = pt::partition(training_step(), {{"A", 2}},
                               pt::schedule(pt::microbatch(2, {{"x", 0}, {"y", 0}})));
  return p.sharded();
}

/// Branches, loops within loops, and values that pass through them.
pt::program nested() {
  return pt::trace(
      [](auto x, auto w) {
        const auto inner = [&](auto, auto h) { return h + tanh(matmul(h, w)); };
        const auto outer = [&](auto, auto h) { return matmul(pt::for_loop(0, 3, inner, h), w); };
        const auto h = pt::for_loop(0, 5, outer, x);
        return pt::cond(
            sum(h) > 0, [](auto v) { return v; }, [&](auto v) { return matmul(v, w) * x; }, h);
      },
      pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
}

/// Halos, reshapes that split axes, repeated operands, sizes that axes do not divide.
pt::program movement() {
  return pt::trace(
      [](auto x, auto y) {
        const auto a = pt::roll<1, 0>(x) + pt::reverse<0, 1>(x);
        const auto b = pt::reshape<4, 6, 10>(a);
        const auto c = pt::reshape<24, 10>(tanh(b));
        const auto d = pt::concatenate<0>(x, y, x, c, y, x, c, c, x, y);
        return std::tuple{pt::reverse<0>(d),
                          matmul(pt::transpose<1, 0>(d), d) + matmul(pt::transpose<1, 0>(c), c)};
      },
      pt::input<float, 24, 10>("x"), pt::input<float, 24, 10>("y"));
}

/// Ops that need the same border of a value, forward and backward, along two dimensions, and ops
/// that need nearly the same border.
pt::program borders() {
  const auto f = [](auto x, auto w, auto v) {
    constexpr pt::conv_options same{.padding = pt::same_padding};
    const auto loss = [&](auto all) {
      const auto& [y, a, b] = all;
      const auto left = pt::conv<same>(y, a), right = pt::conv<same>(y, b);
      return sum(left * right) + sum(pt::roll<1, 1>(y) * pt::roll<2, 1>(pt::roll<1, 1>(y)));
    };
    const auto pooled =
        pt::nn::max_pool<pt::nn::pool_options{.size = {3, 3}, .padding = pt::same_padding}>(x);
    return std::tuple{pt::grad(loss, std::tuple{x, w, v}), pooled, pt::reverse<1>(x) * x,
                      tanh(pt::reverse<1>(x))};
  };
  return pt::trace(f, pt::input<float, 2, 8, 8, 4>("x"), pt::input<float, 3, 3, 4, 4>("w"),
                   pt::input<float, 3, 3, 4, 4>("v"));
}

/// Pending sums that are transposed and reshaped before they are added, also in loops.
pt::program turned() {
  const auto f = [](auto x, auto y, auto z) {
    const auto product = [&](auto a) {
      return pt::transpose<1, 0>(matmul(pt::transpose<1, 0>(y), a));
    };
    const auto total = pt::for_loop(
        0, 3, [&](auto, auto s) { return s + product(x); }, z * 0);
    const auto blocks = pt::reshape<2, 4, 4>(product(x)) + pt::reshape<2, 4, 4>(product(x * x));
    return std::tuple{total, product(x) + matmul(pt::transpose<1, 0>(x), y), blocks - 1};
  };
  return pt::trace(f, pt::input<float, 12, 8>("x"), pt::input<float, 12, 4>("y"),
                   pt::input<float, 8, 4>("z"));
}

/// Products of two values; actions change which of the two, after ops that move it, is a pending
/// sum.
pt::program products() {
  const auto f = [](auto x, auto y, auto z, auto w) {
    const auto a = [&] { return pt::transpose<1, 0>(-matmul(pt::transpose<1, 0>(x), y)); };
    const auto b = [&] { return -matmul(pt::transpose<1, 0>(z), w); };
    const auto turned = a() * pt::reshape<4, 8>(pt::reshape<32>(b()));
    const auto scaled = (-matmul(pt::transpose<1, 0>(y), x)) * (-a() * b());
    return std::tuple{sum(turned), pt::sum<1>(scaled), sum(-b() * (-(a() * -b()))),
                      -(a() * b()) - b()};
  };
  return pt::trace(f, pt::input<float, 16, 8>("x"), pt::input<float, 16, 4>("y"),
                   pt::input<float, 12, 4>("z"), pt::input<float, 12, 8>("w"));
}

struct later {
  static constexpr double identity = 0;
  static constexpr bool commutes = false;
  constexpr auto operator()(auto a, auto b) const { return a + b * 0; }
};
/// Results that are computed from shards are operands again: exchanged or gathered. The uses of
/// some results need shards, other results are unused.
pt::program again() {
  const auto f = [](auto x, auto w) {
    const auto [least, at] = pt::min_with_position<1>(x);
    const auto [best, places] = pt::top_k<2>(x);
    const auto z = pt::fold<later, 1>(x * x);
    return std::tuple{z * w - least, at, pt::transpose<1, 0>(best) + 1, pt::fold<later, 0>(x),
                      pt::fold<later, 0, 1>(pt::tanh(x))};
  };
  return pt::trace(f, pt::input<float, 24, 16>("x"), pt::input<float, 24>("w"));
}

/// A pseudorandom sequence that is the same on every machine.
struct numbers {
  std::uint64_t state;
  int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

/// An observer that records nothing.
struct no_books {
  void clear() {}
  void grow() {}
  template <class F>
  void value(pt::value_id, const F& finish) {
    finish([](const auto&...) {});
  }
  template <class F>
  void operand(int, pt::value_id, const F&) {}
  template <class... More>
  void op(const More&...) {}
};

/// True if the pending sums are finished at the ops where a new analysis of the program finishes
/// them.
bool finished_alike(const pt::core_program& c, const pt::spmd_detail::pending_sums& sums) {
  pt::spmd_detail::pending_sums anew(c);
  anew.find(true);
  for (pt::op_id o : c.order)
    if (sums.of(o) != anew.of(o)) return false;
  return true;
}

/// Returns the conflicts of all ops, in the order of execution.
std::vector<pt::conflict> conflicts_of(const pt::core_program& c) {
  std::vector<pt::conflict> list;
  for (pt::op_id o : c.order)
    for (int i = 0; i < c.mesh.rank; ++i) {
      const pt::sub_axis s = c.mesh.part(c.mesh.order[i]);
      const auto m = pt::core_detail::find_match(c, c.view(), o, c.mesh.order[i]);
      if (m.several || m.indivisible)
        list.push_back({o, s.axis,
                        m.several ? pt::conflict_kind::several : pt::conflict_kind::indivisible,
                        m.first, m.second, 0, s.pre, s.size});
    }
  return list;
}

/// Takes random actions and returns the number of actions that changed something.
int check_actions(const pt::program& p, const pt::mesh& mesh, std::uint64_t seed) {
  numbers draw{seed};
  pt::core_program c(p, mesh, {.stationary_rows = seed % 2 == 0});
  const int values = c.p.value_count();
  pt::passes rules{.share_gathers = false};  // this pass rewrites the lowered program
  rules.to_reduce_scatter = seed % 3 != 0;
  rules.cancel = seed % 5 != 0;
  rules.to_all_to_all = seed % 7 != 0;
  pt::collective_counter counter(c, rules);
  no_books none;
  pt::layout_changes<no_books> layouts(c, rules, none);
  int done = 0;
  for (int i = 0; i < 24; ++i) {
    const pt::value_id v = draw.below(values);
    const int rank = c.p.type(v).shape.rank, axis = draw.below(mesh.rank);
    pt::failure f;
    if (rank == 0 || draw.below(8) == 0)
      f = c.atomic(v, axis);
    else
      f = c.tile(v, draw.below(rank), axis,
                 draw.below(4) == 0 ? pt::uneven::pad : pt::uneven::unsaid);
    if (f) continue;
    if (draw.below(3) != 0) {
      c.propagate();
      const auto left = conflicts_of(c);
      REQUIRE(c.conflicts.size() == left.size());
      std::size_t k = 0;
      for (const auto& each : c.conflicts) CHECK(each == left[k++]);
    }
    ++done;
    counter.update();
    layouts.update();
    const pt::lowered all = pt::lower(c, {.passes = rules});
    CAPTURE(seed);
    CAPTURE(i);
    REQUIRE(counter.counts() == all.counts);
    REQUIRE(finished_alike(c, layouts.layouts().sums));
    REQUIRE(counter.as_written() == pt::as_written(all.notes));
  }
  return done;
}

/// Returns the work of one tactic per input, for n inputs that are used once each.
std::int64_t work_of_tactics(int n) {
  pt::builder b;
  std::vector<pt::value_id> inputs;
  for (int i = 0; i < n; ++i)
    inputs.push_back(pt::ops::parameter(b, "a" + std::to_string(i), {pt::dtype::f32, {8, 8}}));
  for (int i = 0; i < n; ++i) {
    const auto text = b.p.intern("o" + std::to_string(i));
    b.p.outputs.push_back({pt::ops::tanh(b, inputs[static_cast<std::size_t>(i)]), text});
  }
  pt::core_program c(pt::program(b.p), {{"B", 2}});
  pt::collective_counter counter(c, {});
  for (pt::value_id v : inputs) {
    REQUIRE(!static_cast<bool>(c.tile(v, 0, 0)));
    c.propagate();
    counter.update();
  }
  CHECK(counter.counts().total() == 0);
  return counter.work();
}

}  // namespace

TEST_CASE("collectives counted after each change equal those of the lowered program") {
  const pt::mesh meshes[] = {{{"A", 2}, {"B", 4}}, {{"A", 8}}, {{"A", 2}, {"B", 1}, {"C", 3}}};
  int done = 0;
  for (const auto& p : {training_step(), accumulated(), nested(), movement(), turned(), borders(),
                        products(), again()})
    for (const auto& mesh : meshes)
      for (std::uint64_t seed = 1; seed <= 12; ++seed) done += check_actions(p, mesh, seed);
  CHECK(done > 1000);
}

TEST_CASE("counting after n tactics on n inputs takes linear work") {
  const std::int64_t few = work_of_tactics(50), many = work_of_tactics(500);
  CHECK(many < 11 * few);
}
