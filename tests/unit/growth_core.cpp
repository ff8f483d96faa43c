// An action costs what it changes: work is counted at two sizes of a program or of a list of
// actions.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/core/trial.hpp>
#include <partita/partita.hpp>

#include "../allocations.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};

/// `ops` elementwise ops in sequence; every `every`-th value is an output, too.
pt::program chain(int ops, int every = 1 << 30) {
  pt::builder b;
  const pt::tensor_type type{pt::dtype::f32, {8, 8}};
  pt::value_id v = b.emit(pt::def<pt::op::parameter>, {}, {}, type);
  b.name_last("x");
  b.p.inputs.push_back(v);
  for (int i = 0; i < ops; ++i) {
    v = b.emit(pt::def<pt::op::tanh>, {v});
    if (i % every == every - 1 || i == ops - 1)
      b.p.outputs.push_back({v, b.p.intern("y" + std::to_string(i))});
  }
  return b.p;
}

/// Returns the number of bytes that `act` allocates.
template <class Act>
double bytes_for(pt::core_program& c, const Act& act) {
  const std::size_t before = allocations::bytes();
  act(c);
  return static_cast<double>(allocations::bytes() - before);
}
template <class Act>
double bytes_for(const pt::program& p, const Act& act) {
  pt::core_program c(p, mesh);
  return bytes_for(c, act);
}

}  // namespace

TEST_CASE("tile and atomic of every inner value take work linear in their number") {
  const auto all = [](bool atomic) {
    return [atomic](pt::core_program& c) {
      const int values = c.p.value_count();
      for (pt::value_id v = 0; v < values; ++v)
        REQUIRE(!(atomic ? c.atomic(v, 0) : c.tile(v, 0, 0)));
      c.propagate();
    };
  };
  for (const bool atomic : {false, true})
    for (const int every : {1 << 30, 1}) {
      const double few = bytes_for(chain(1000, every), all(atomic));
      const double many = bytes_for(chain(8000, every), all(atomic));
      CHECK(many < 3 * 8 * few);
    }
}

TEST_CASE("an action that changes little costs little, however large the program is") {
  const auto bytes = [](int ops) {
    pt::core_program c(chain(ops), mesh);
    const pt::value_id last = c.p.outputs[0].value;
    for (int i : {0, 101, 103}) REQUIRE(!c.tile(last - 2 * i, 0, 0));  // makes room for more ops
    return bytes_for(c, [&](pt::core_program& warm) {
      for (int i = 1; i < 100; ++i) REQUIRE(!warm.tile(last - 2 * i, 0, 0));
      REQUIRE(warm.tile(last, 1, 0));  // refused
    });
  };
  CHECK(bytes(9000) < 2 * bytes(1200));
}

TEST_CASE("propagation visits only what an action can have changed") {
  const auto visits = [](int ops) {
    pt::core_program c(chain(ops, 1), mesh);
    REQUIRE(!c.atomic(c.p.inputs[0], 0));
    REQUIRE(!c.atomic(c.p.outputs[4].value, 0));
    c.propagate();
    const std::int64_t before = c.visits();
    REQUIRE(!c.tile(c.p.outputs[2].value, 0, 0));  // between the two outputs
    c.propagate();
    return c.visits() - before;
  };
  CHECK(visits(100) == visits(10000));
  CHECK(visits(100) < 40);
}

TEST_CASE("a trial copies the state, not the graph, and repeats no action") {
  const pt::program p = chain(4000);
  pt::core_program c(p, mesh);
  REQUIRE(!c.tile(0, 0, 0));
  c.propagate();
  pt::core_trial trial(c);
  const auto try_once = [&] {
    pt::core_program& tried = trial.restart();
    CHECK(tried.actions.size() == 2);
    REQUIRE(!tried.tile(0, 1, 1));
    tried.propagate();
    CHECK(tried.nest_of(p.op_count() - 1).count == 2);
  };
  try_once();
  const std::size_t before = allocations::bytes();
  try_once();
  CHECK(allocations::bytes() - before < 100 * 4000);
  CHECK(c.nest_of(p.op_count() - 1).count == 1);
  // An action that inserts an op, in the copy or in the program, is undone or adopted.
  pt::core_program& tried = trial.restart();
  REQUIRE(!tried.atomic(2000, 1));
  CHECK(trial.restart().p.op_count() == p.op_count());
  REQUIRE(!c.atomic(3000, 1));
  CHECK(trial.restart().p.op_count() == p.op_count() + 1);
  CHECK(trial.restart().uses(3000)[0].op == p.op_count());
}

TEST_CASE("padding costs work in proportion to what grows") {
  const auto bytes = [](int inputs) {
    pt::builder b;
    for (int i = 0; i < inputs; ++i) {
      const pt::value_id x = b.emit(pt::def<pt::op::parameter>, {}, {}, {pt::dtype::f32, {5, 8}});
      b.p.inputs.push_back(x);
      b.p.outputs.push_back({b.emit(pt::def<pt::op::tanh>, {x}), {}});
    }
    pt::core_program c(b.p, mesh);
    return bytes_for(c, [&](pt::core_program& padded) {
      for (pt::value_id x : b.p.inputs) REQUIRE(!padded.tile(x, 0, 0, pt::uneven::pad));
      padded.propagate();
      CHECK(padded.p.type(b.p.outputs[0].value).shape[0] == 6);
    });
  };
  CHECK(bytes(4000) < 3 * 8 * bytes(500));
}

TEST_CASE("messages find names of results without a search") {
  const pt::program p = chain(3000, 1);
  pt::core_program c(p, mesh);
  for (int i : {0, 1500, 2999}) {
    const pt::value_id v = p.outputs[static_cast<std::size_t>(i)].value;
    CHECK(c.describe(v) == "y" + std::to_string(i));
    REQUIRE(!c.tile(v, 0, 0));
    CHECK(c.describe(v) == "y" + std::to_string(i));
    CHECK(c.describe(c.holder(v)) == "y" + std::to_string(i));
  }
}
