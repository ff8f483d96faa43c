// The growth of the work of tile maps, tactics and passes: array elements read, at two sizes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/partita.hpp>

#include "../slow_links.hpp"
#include "work.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
const pt::tensor_type square{pt::dtype::f32, {8, 8}};

/// n inputs through one optimization_barrier; all are outputs.
pt::program barrier(int n) {
  pt::builder b;
  pt::vec<pt::value_id> values;
  for (int i = 0; i < n; ++i)
    values.push_back(pt::ops::parameter(b, "w." + std::to_string(i), square));
  const auto first = pt::ops::optimization_barrier(b, {values.data(), values.size()});
  for (int i = 0; i < n; ++i) b.p.outputs.push_back({first + i, b.p.intern(std::to_string(i))});
  return b.p;
}
/// Slices the operands of one sum on different dimensions.
struct tear {
  int sum;
  std::string_view name() const { return "tear"; }
  void apply(pt::tactic_context& c) const {
    const int axis = c.axis("B");
    c.tile(c.core().p.inputs[2 * sum], 0, axis);
    c.tile(c.core().p.inputs[2 * sum + 1], 1, axis);
    c.propagate();
  }
};
const auto shard_all = pt::schedule(pt::manual("B", {{"w", 0}}), pt::manual("M", {{"w", 1}}));

}  // namespace

TEST_CASE("a barrier of n tensors takes linear work") {
  const auto bytes = [](int n) {
    return pt::core_program(barrier(n), mesh).map.operand_dims.size();
  };
  CHECK(bytes(400) <= 5 * bytes(100));
  check_linear(300, barrier, [](const auto& p) { (void)pt::partition(p, mesh, shard_all); });
  const pt::core_program c(barrier(3), mesh);
  for (int i = 0; i < 3; ++i)  // each dimension of each operand separately
    for (int d = 0; d < 2; ++d) {
      const pt::op_id wire = 3 + i;
      CHECK(c.p.is(wire, pt::op_role::wire));
      CHECK(c.map.operand_dim(c.map.at(wire, d), 0) == d);
      CHECK(c.map.result_dim(c.map.at(wire, d), 0) == d);
    }
  CHECK(pt::partition(barrier(3), mesh, shard_all).collectives.total() == 0);
}

TEST_CASE("texts of loops around n users of one input take linear work") {
  const auto users = [](int n) {
    pt::builder b;
    const auto x = pt::ops::parameter(b, "x", square);
    for (int i = 0; i < n; ++i) {
      const std::string name = "w." + std::to_string(i);
      const auto w = pt::ops::parameter(b, name, square);
      b.p.outputs.push_back({pt::ops::add(b, w, x), b.p.intern(name)});
    }
    pt::core_program c(b.p, mesh);
    for (pt::value_id v : b.p.inputs) c.tile(v, 0, 0);
    c.propagate();
    return c;
  };
  check_linear(300, users, [](const auto& c) { (void)pt::print_core(c); });
}

TEST_CASE("passes over n levels of nested programs take linear work") {
  const auto levels = [](int n) {
    pt::program body;
    for (int i = 0; i < n; ++i) {
      pt::builder b;
      auto x = pt::ops::exp(b, pt::ops::parameter(b, i + 1 == n ? "x" : "", square));
      if (i > 0) x = pt::ops::call(b, "f", {&x, 1}, std::move(body));
      const std::int64_t inner[] = {1}, outer[] = {0};
      x = pt::ops::dot_general(b, x, x, {{}, {}, inner, outer});
      b.p.outputs.push_back({x, b.p.intern(i + 1 == n ? "y" : "")});
      body = std::move(b.p);
    }
    return body;
  };
  const auto shard = pt::schedule(pt::manual("B", {{"x", 0}}));
  for (const pt::passes& on : {pt::passes{.combine_below = 1 << 20}, pt::passes{.place = true},
                               pt::passes{.share_gathers = true}, pt::passes{.stationary_above = 1},
                               pt::passes{.memory_bound = std::int64_t{1} << 60}})
    check_linear(60, levels,
                 [&](const auto& p) { (void)pt::partition(p, mesh, shard, {.passes = on}); });
  check_linear(60, levels, [](const auto& p) { CHECK(pt::live_bytes(p).peak() > 0); });
}

TEST_CASE("axes over which values vary in n levels of loops take linear work") {
  const auto levels = [](int n) {
    pt::program body;
    for (int i = 0; i <= n; ++i) {
      pt::builder b;
      if (i < n) (void)pt::ops::parameter(b, "i", {pt::dtype::i32, {}});
      const auto x = pt::ops::parameter(b, "x", square), y = pt::ops::parameter(b, "y", square);
      const pt::value_id carried[] = {pt::ops::exp(b, x), y};
      const auto first = i == 0 ? pt::ops::add(b, x, y)
                                : pt::ops::scan(b, 2, false, {}, carried, {}, std::move(body));
      b.p.outputs.push_back({first, b.p.intern("x")});
      b.p.outputs.push_back({i == 0 ? y : first + 1, b.p.intern("y")});
      body = std::move(b.p);
    }
    return body;
  };
  const pt::axis_set inputs[] = {{}, pt::axis_set::of(0)};
  check_linear(60, levels, [&](const auto& p) {
    pt::varying_sets sets;
    pt::find_varying(p, mesh, inputs, sets);
    CHECK(sets.values[p.outputs[0].value] == pt::axis_set::of(0));
    // A value carried from the first iteration varies in the second one.
    CHECK(sets.nested[0].values[p.regions[0].inputs[1]] == pt::axis_set::of(0));
  });
}

TEST_CASE("stationary weights of n products take linear work: different weights, and the same") {
  const auto products = [](bool different) {
    return [different](int n) {
      pt::builder b;
      auto h = pt::ops::parameter(b, "x", {pt::dtype::f32, {2, 8}});
      auto w = pt::value_id{-1};
      for (int i = 0; i < n; ++i) {
        if (different || i == 0) w = pt::ops::parameter(b, "w." + std::to_string(i), square);
        const std::int64_t columns[] = {1}, rows[] = {0};
        h = pt::ops::dot_general(b, h, w, {{}, {}, columns, rows});  // (2/B, 8)
      }
      b.p.outputs.push_back({h, b.p.intern("y")});
      return b.p;
    };
  };
  const auto shard = pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"w", 0}}));
  for (const bool different : {true, false})
    for (const bool share : {true, false})
      check_linear(100, products(different), [&](const auto& p) {
        const pt::passes on{.stationary_above = 1, .share_gathers = share};
        const bool moves = different || !share;  // (Gathering the same weights once costs less.)
        CHECK(pt::partition(p, mesh, shard, {.passes = on}).collectives.reduce_scatter ==
              (moves ? p.op_count() - p.input_count() : 0));
      });
}

TEST_CASE("overlapping n products with gathers takes linear work") {
  const auto products = [](int n) {
    pt::builder b;
    auto h = pt::ops::parameter(b, "x", {pt::dtype::f32, {64, 8}});
    for (int i = 0; i < n; ++i) {
      const auto w = pt::ops::parameter(b, "w." + std::to_string(i), square);
      const std::int64_t columns[] = {1}, rows[] = {0};
      h = pt::ops::dot_general(b, h, w, {{}, {}, columns, rows});
    }
    b.p.outputs.push_back({h, b.p.intern("y")});
    return b.p;
  };
  const auto shard = pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"w", 0}}));
  // (Heaps order the ops: n log n.)
  for (const bool rings : {true, false})
    check_linear(2000, products, [&](const auto& p) {
      const pt::overlap_options on{.on = data::slow_links(1e7), .rings = rings};
      const auto made = pt::partition(p, mesh, shard, {.overlap = on});
      CHECK((made.collectives.permute > 0) == rings);
    });
}

TEST_CASE("iterating a set of few ops of a large program skips the others") {
  constexpr int count = 1 << 20;
  const pt::op_order order(count);
  pt::op_set few;
  for (pt::op_id o : {5, 4095, 4096, count - 1}) few.insert(order, o);
  const auto before = pt::work;
  CHECK(few.first_from(0) == 5);
  CHECK(few.first_from(6) == 4095);
  CHECK(few.first_from(4096) == 4096);
  CHECK(few.first_from(4097) == count - 1);
  CHECK(few.last_before(count) == count - 1);
  CHECK(few.last_before(count - 1) == 4096);
  CHECK(few.last_before(4096) == 4095);
  CHECK(few.last_before(5) == -1);
  CHECK(pt::work - before < 2000);
  for (pt::op_id o : {4095, count - 1}) few.erase(o);
  CHECK(few.first_from(6) == 4096);
  CHECK(few.first_from(4097) == -1);
  CHECK(few.last_before(4096) == 5);
}

TEST_CASE("n actions that pad, each of which inserts ops, take linear work") {
  const auto columns = [](int n) {
    pt::builder b;
    for (int i = 0; i < n; ++i) {
      const auto x = pt::ops::parameter(b, std::to_string(i), {pt::dtype::f32, {5, 8}});
      const std::int64_t all[] = {0, 1};
      b.p.outputs.push_back({pt::ops::reduce(b, x, pt::combiner::add, all), {}});
    }
    return pt::core_program(b.p, mesh);
  };
  const auto pad_each = [](pt::core_program& c, const auto& then) {
    for (int i = 0; i < c.p.input_count(); ++i) {
      REQUIRE(!c.tile(c.p.inputs[i], 0, 0, pt::uneven::pad));
      then();
    }
  };
  check_linear(100, columns, [&](auto& c) { pad_each(c, [] {}); });
  check_linear(100, columns, [&](auto& c) {
    pt::collective_counter counter(c, {});
    pad_each(c, [&] { counter.update(); });
    c.propagate();
    counter.update();
    CHECK(counter.counts().all_reduce == c.p.input_count());
  });
}

TEST_CASE("n tactics, each of which leaves another conflict, take linear work") {
  const auto sums = [](int n) {
    pt::builder b;
    for (int i = 0; i < n; ++i) {
      const std::string number = std::to_string(i);
      const auto p = pt::ops::parameter(b, "p" + number, square);
      const auto q = pt::ops::parameter(b, "q" + number, square);
      b.p.outputs.push_back({pt::ops::add(b, p, q), b.p.intern("o" + number)});
    }
    return b.p;
  };
  const auto tear_each = [](const pt::program& p, bool backwards) {
    const int n = p.output_count();
    std::vector<tear> tactics;
    for (int i = 0; i < n; ++i) tactics.push_back({backwards ? n - 1 - i : i});
    return pt::partition(p, mesh, tactics);
  };
  for (const bool backwards : {false, true}) {
    check_linear(100, sums, [&](const auto& p) { (void)tear_each(p, backwards); });
    check_linear(
        100, [&](int n) { return tear_each(sums(n), backwards); },
        [](const auto& p) { (void)pt::report(p, 3); });
  }
  const auto p = tear_each(sums(4), true);
  CHECK(p.tactics[1].conflicts == 2);
  REQUIRE(p.conflicts_after(1).size() == 2);
  CHECK(p.conflicts_after(1)[0] == p.core.conflicts[2]);
  CHECK(p.conflicts_after(1)[1] == p.core.conflicts[3]);
}

TEST_CASE("an op of n gathered operands takes linear work: all different, and all the same") {
  const auto gathered = [](bool different) {
    return [different](int n) {
      pt::builder b;
      pt::vec<pt::value_id> rows;
      for (int i = 0; i < n; ++i)
        rows.push_back(i > 0 && !different
                           ? rows[0]
                           : pt::ops::parameter(b, "w." + std::to_string(i), square));
      b.p.outputs.push_back(
          {pt::ops::concatenate(b, {rows.data(), rows.size()}, 0), b.p.intern("y")});
      return b.p;
    };
  };
  const auto shard = pt::schedule(pt::manual("B", {{"w", 0}}));
  for (const bool different : {true, false}) {
    const auto make = gathered(different);
    check_linear(200, make, [&](const auto& p) {
      CHECK(pt::partition(p, mesh, shard).collectives.all_gather ==
            (different ? p.input_count() : 1));
    });
    check_linear(
        200, [&](int n) { return pt::partition(make(n), mesh, shard); },
        [](const auto& p) { (void)pt::explain(p); });
  }
}

TEST_CASE("combining n sums, into one and into many, takes linear work") {
  const auto sums = [](int n) {
    pt::builder b;
    for (int i = 0; i < n; ++i) {
      const auto x = pt::ops::parameter(b, "w." + std::to_string(i), square);
      const std::int64_t rows[] = {0};
      b.p.outputs.push_back(
          {pt::ops::reduce(b, x, pt::combiner::add, rows), b.p.intern(std::to_string(i))});
    }
    return b.p;
  };
  const auto shard = pt::schedule(pt::manual("B", {{"w", 0}}));
  for (const std::int64_t below : {1 << 20, 100})
    check_linear(100, sums, [&](const auto& p) {
      const auto made = pt::partition(p, mesh, shard, {.passes = {.combine_below = below}});
      CHECK(pt::launched(made.notes) == (below > 100 ? 1 : (p.output_count() + 2) / 3));
    });
}

TEST_CASE("recomputing n layers takes linear work") {
  const auto layers = [](int n) {
    return pt::trace(
        [](const auto& x, const auto& w) {
          return pt::output("g", pt::grad(
                                     [&](const auto& v) {
                                       auto h = x;
                                       for (const auto& each : v) h = h + tanh(matmul(h, each));
                                       return sum(h);
                                     },
                                     w));
        },
        pt::input<float, 8, 8>("x"),
        pt::input("w", std::vector<pt::tensor<float, 8, 8>>(static_cast<std::size_t>(n))));
  };
  check_linear(50, layers, [](const auto& p) {
    pt::rewriting work;
    work.p = p;
    pt::remat({"w"}).rewrite(work);
    CHECK(work.remat.scopes == p.output_count());
  });
  check_linear(50, layers, [](const auto& p) {
    (void)pt::partition(p, mesh, pt::schedule(pt::remat({"w.*"}), pt::manual("B", {{"x", 0}})));
  });
}

TEST_CASE("replaying n actions takes linear work") {
  struct logged {
    pt::program p;
    pt::text log;
    pt::core_program again;
  };
  const auto log_of = [](int n) {
    logged l{barrier(n), {}, {}};
    const auto made = pt::partition(l.p, mesh, shard_all);
    l.log = pt::print_actions(made.core, l.p);
    l.again = pt::core_program(l.p, mesh);
    return l;
  };
  check_linear(200, log_of, [](logged& l) {
    REQUIRE(!pt::replay(l.again, l.p, l.log.view()));
    CHECK(l.again.actions.size() == 2 * l.p.inputs.size() + 2);
  });
}

TEST_CASE("n tactics, each of which inserts an op, take linear work") {
  const auto line = [](int n) {
    pt::builder b;
    auto h = pt::ops::parameter(b, "x", square);
    for (int i = 0; i < n; ++i) h = pt::ops::tanh(b, h);
    b.p.outputs.push_back({h, b.p.intern("y")});
    return pt::core_program(b.p, mesh);
  };
  check_linear(500, line, [](auto& c) {
    const int count = c.p.value_count();
    for (pt::value_id v = 1; v < count; v += 2) {
      REQUIRE(!c.atomic(v, v / 2 % 2));
      c.propagate();
    }
    pt::op_id last = -1;
    for (pt::op_id o : c.order) {
      if (last >= 0) CHECK(c.order.position(last) < c.order.position(o));
      CHECK(c.order.at(c.order.position(o)) == o);
      last = o;
    }
  });
}
