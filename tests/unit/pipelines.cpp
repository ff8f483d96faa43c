// Orders of pipelines, their timelines and deadlocks.
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/order_search.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/mpmd/plain_pipeline.hpp>
#include <partita/mpmd/print_calls.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/read_order.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/mpmd/sequence.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/partita.hpp>
#include <partita/report/pipeline.hpp>

#include "../two_stages.hpp"

namespace pt = partita;

namespace {

std::string words(std::string_view s) { return std::string(s); }

/// A plain pipeline in an order.
struct pipelined {
  pt::pipeline_shape shape;
  pt::call_graph g;
  pt::failure error;
  pt::vec<int> order;

  template <class Order>
  constexpr pipelined(const pt::pipeline_shape& s, const pt::pipeline_order& places,
                      const Order& wanted, pt::plain_options options)
      : shape(s),
        g(pt::plain_pipeline(s, places, options)),
        order(pt::sequence(g, s, wanted, error)) {}
  constexpr pipelined(const pt::pipeline_shape& s, const pt::pipeline_order& o)
      : pipelined(s, o, o, {.split = o.splits}) {}

  constexpr pt::mesh_lists lists(double transfer = 0) const {
    return pt::lists_with_messages(g, order, pt::messages_of(g, order, transfer));
  }
  constexpr pt::text list(int mesh) const {
    return pt::list_text(g, pt::lists_by_mesh(g, order)[mesh]);
  }
  pt::timeline played(const pt::pipeline_costs& c, int capacity = pt::unbounded) const {
    return pt::play(g, lists(c.transfer), [&](int i) { return c.seconds(g.calls[i]); },
                    {.capacity = capacity});
  }
  std::vector<int> in_flight() const {
    const pt::vec<int> most = pt::most_in_flight(g, order, shape.stages);
    return {most.begin(), most.end()};
  }
};

constexpr bool is_list(const pt::pipeline_order& o, const pt::pipeline_shape& s, int mesh,
                       std::string_view wanted) {
  return pipelined(s, o).list(mesh) == wanted;
}

const pt::pipeline_order* const all_orders[] = {
    &pt::gpipe, &pt::gpipe_reversed, &pt::gpipe_1f1b_last, &pt::one_f_one_b,      &pt::zb_h1,
    &pt::zb_h2, &pt::circular,       &pt::circular_phases, &pt::interleaved_1f1b, &pt::zb_v};

}  // namespace

// The tables of Shardy:MPMD with two slips corrected: row m1 of 1F1B, and the stages of circular.
static_assert(is_list(pt::gpipe, {3, 3, 3}, 1, "F0 F1 F2 B0 B1 B2"));
static_assert(is_list(pt::one_f_one_b, {3, 3, 3}, 0, "F0 F1 F2 B0 B1 B2"));
static_assert(is_list(pt::one_f_one_b, {3, 3, 3}, 1, "F0 F1 B0 F2 B1 B2"));
static_assert(is_list(pt::one_f_one_b, {3, 3, 3}, 2, "F0 B0 F1 B1 F2 B2"));
static_assert(is_list(pt::circular, {3, 6, 3}, 1,
                      "F0.1 F1.1 F2.1 F0.4 F1.4 F2.4 B0.4 B1.4 B2.4 B0.1 B1.1 B2.1"));
static_assert(is_list(pt::one_f_one_b, {4, 4, 6}, 3, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"));
static_assert(is_list(pt::one_f_one_b, {4, 4, 6}, 0, "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5"));
static_assert(is_list(pt::zb_h1, {4, 4, 6}, 1,
                      "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 B4 W3 B5 W4 W5"));

TEST_CASE("a timeline as text") {
  const pipelined p({3, 3, 3}, pt::one_f_one_b);
  CHECK(words(pt::print_timeline(p.g, p.lists(), p.played({.input = 0.5, .weight = 0.5}))) ==
        "m0 | F0 F1 F2       B0    B1    B2\n"
        "m1 |    F0 F1    B0 F2 B1    B2\n"
        "m2 |       F0 B0 F1 B1 F2 B2\n");
  const std::string_view names[] = {"first", "m", "last"};
  CHECK(words(pt::print_timeline(p.g, p.lists(), p.played({.weight = 0}), names, 20)) ==
        "first | FFFFFF    BB  BB  BB\n"
        "m     |   FFFF  BBFFBB  BB\n"
        "last  |     FFBBFFBBFFBB\n");
}

TEST_CASE("every order runs everything once, whatever the shape") {
  for (const auto* o : all_orders)
    for (const bool backward : {true, false})
      for (int meshes = 1; meshes <= 4; ++meshes)
        for (const int rounds : {1, 2, 3})
          for (int m = 1; m <= 9; ++m) {
            const pt::pipeline_shape s{meshes, meshes * rounds, m};
            pt::failure unfit;
            o->fits(s, unfit);
            if (unfit) continue;
            CAPTURE(words(o->name));
            CAPTURE(meshes);
            CAPTURE(rounds);
            CAPTURE(m);
            const pipelined p(s, *o, *o, {.backward = backward, .split = o->splits});
            REQUIRE(!p.error);
            CHECK(p.order.size() == p.g.calls.size());
            const pt::timeline t = p.played({});
            CHECK(!t.error);
            for (const auto& e : p.g.edges) CHECK(t.end[e.from] <= t.begin[e.to]);
          }
}

TEST_CASE("bubbles and microbatches in flight equal the closed forms") {
  const pt::pipeline_costs costs{.forward = 1, .input = 1, .weight = 1};
  for (const int p : {1, 2, 4, 8})
    for (const int m : {8, 16, 32}) {
      CAPTURE(p);
      CAPTURE(m);
      const double row = static_cast<double>(p - 1) / m;
      const pipelined g({p, p, m}, pt::gpipe), f({p, p, m}, pt::one_f_one_b);
      CHECK(g.played(costs).bubble_of_ideal() == doctest::Approx(row));
      CHECK(f.played(costs).bubble_of_ideal() == doctest::Approx(row));
      for (int stage = 0; stage < p; ++stage) {
        CHECK(g.in_flight()[stage] == m);
        CHECK(f.in_flight()[stage] == std::min(m, p - stage));
      }
      for (const int v : {2, 3}) {
        const pipelined i({p, p * v, m}, pt::interleaved_1f1b);
        CHECK(i.played(costs).bubble_of_ideal() == doctest::Approx(row / v));
      }
      if (m < 2 * p) continue;
      // F + B - 2W for each stage but one, and nothing once a mesh has begun.
      CHECK(pipelined({p, p, m}, pt::zb_h1).played(costs).bubble_of_ideal() ==
            doctest::Approx((p - 1) * (1 + 1 - 1) / (3.0 * m)));
      CHECK(pipelined({p, p, m}, pt::zb_h2).played(costs).bubble_of_span() == doctest::Approx(0));
      CHECK(pipelined({p, p, m}, pt::zb_h2).in_flight()[0] == 2 * p - 1);
      const pipelined v({p, 2 * p, m}, pt::zb_v);
      CHECK(v.played(costs).bubble_of_span() == doctest::Approx(0));
    }
}

TEST_CASE("zb_v keeps as many microbatches as one_f_one_b") {
  for (const int p : {1, 2, 3, 5, 8})
    for (const int m : {1, 2, p, 3 * p + 1}) {
      const pipelined v({p, 2 * p, m}, pt::zb_v);
      std::vector<int> kept(p, 0), most(p, 0);
      for (const int call : v.order) {
        const auto& c = v.g.calls[call];
        kept[c.mesh] += c.transposed == 0 ? 1 : c.part == pt::fragment_part::weight ? -1 : 0;
        most[c.mesh] = std::max(most[c.mesh], kept[c.mesh]);
      }
      for (const int each : most) CHECK(each <= 2 * p);
    }
}

namespace {

/// Source    Qi et al., arXiv:2401.10241, tables 4, 5 and 9: bubble rates from measured times
struct published {
  double model;
  int m;
  pt::pipeline_costs costs;
  double one_f_one_b, h1, h2, zb_1p, zb_2p;
};
const published zero_bubble[] = {
    {1.5, 24, {18.522, 18.086, 9.337, 0.601}, 0.2431, 0.1585, 0.1083, 0.1585, 0.0433},
    {1.5, 32, {18.513, 18.086, 9.331, 0.626}, 0.1985, 0.1242, 0.0837, 0.1242, 0.0039},
    {1.5, 64, {18.546, 18.097, 9.321, 0.762}, 0.1240, 0.0674, 0.0444, 0.0674, 0.0026},
    {6.2, 24, {29.718, 29.444, 19.927, 0.527}, 0.2347, 0.1323, 0.0698, 0.1323, 0.0029},
    {6.2, 32, {29.802, 29.428, 19.530, 0.577}, 0.1898, 0.1045, 0.0559, 0.1045, 0.0022},
    {6.2, 64, {29.935, 29.621, 19.388, 0.535}, 0.1091, 0.0554, 0.0294, 0.0554, 0.0010}};

double four_digits(double x) { return std::round(x * 1e4) / 1e4; }

}  // namespace

TEST_CASE("bubble rates equal the published ones, to four digits") {
  for (const auto& row : zero_bubble) {
    CAPTURE(row.model);
    CAPTURE(row.m);
    const pt::pipeline_shape s{8, 8, row.m};
    CHECK(four_digits(pipelined(s, pt::one_f_one_b).played(row.costs).bubble_of_span()) ==
          doctest::Approx(row.one_f_one_b));
    CHECK(four_digits(pipelined(s, pt::zb_h1).played(row.costs).bubble_of_span()) ==
          doctest::Approx(row.h1));
    CHECK(four_digits(pipelined(s, pt::zb_h2).played(row.costs).bubble_of_span()) ==
          doctest::Approx(row.h2));
  }
}

TEST_CASE("the search reaches the published rates under a memory limit") {
  for (const auto& row : zero_bubble) {
    CAPTURE(row.model);
    CAPTURE(row.m);
    // The second part of a backward needs 32 of the 34 + 5 a s / h bytes that a forward keeps.
    pt::pipeline_costs costs = row.costs;
    costs.kept = 32 / (34 + 5 * (row.model == 1.5 ? 24 * 1024 / 2304. : 32 * 1024 / 4096.));
    for (const int p : {1, 2}) {
      const pt::found_order found =
          pt::search_order({8, 8, row.m}, costs, {.memory = 8. * p, .changes = 50});
      REQUIRE(!found.error);
      CHECK(found.memory <= 8 * p + 1e-6);
      // One of the twelve rates misses that of the paper's integer program: 0.0439 instead of
      // 0.0433.
      const double behind = p == 2 && row.model == 1.5 && row.m == 24 ? 0.0006 : 0.00005;
      CHECK(four_digits(found.bubble) <= (p == 1 ? row.zb_1p : row.zb_2p) + behind);
      // The figures that the search reports equal those of its order.
      const pipelined again({8, 8, row.m}, pt::zb_h1, found.table, {.split = true});
      REQUIRE(!again.error);
      CHECK(again.played(costs).bubble_of_span() == doctest::Approx(found.bubble));
    }
  }
}

TEST_CASE("a user's own keys, comparators and tables set the order") {
  const pt::pipeline_shape s{3, 3, 4};
  const pipelined expected(s, pt::one_f_one_b);
  const auto key = [](const pt::fragment_call& c) {
    return std::tuple(c.microbatch + (3 - c.mesh) * c.transposed, -c.transposed);
  };
  const auto before = [&](const pt::fragment_call& a, const pt::fragment_call& b) {
    return a.mesh == b.mesh && key(a) < key(b);
  };
  pt::order_table table;
  for (const auto& list : pt::lists_by_mesh(expected.g, expected.order)) {
    table.rows.push_back({});
    for (const int call : list) table.rows.back().push_back(expected.g.calls[call]);
  }
  const auto same = [&](const auto& order) {
    const pipelined p(s, pt::gpipe, order, {});
    REQUIRE(!p.error);
    for (int mesh = 0; mesh < 3; ++mesh) CHECK(p.list(mesh) == expected.list(mesh));
  };
  same(key);
  same(before);
  same(table);
  same(pt::read_order_table(
      {"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3  B2 B3", "F0 B0.2 F1 B1 F2 B2 F3.2 B3 "}));
  for (const char* word : {"F", "Q1", "F1.", "F-1", "T2", "F1x", "B99999999999"})
    CHECK(pt::read_order_table({"F0", word})
              .error.message.view()
              .starts_with("O013 order: row 1 has \""));
  CHECK(pt::read_order_table({"T2_1.3 W0"}).rows[0][0].transposed == 2);
  // Program order decides what a comparator leaves open.
  const pipelined open(s, pt::gpipe,
                       [](const auto& a, const auto& b) {
                         return a.mesh == 2 && b.mesh == 2 && a.transposed < b.transposed;
                       },
                       {});
  CHECK(open.list(2) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(open.list(0) == "F0 F1 F2 F3 B0 B1 B2 B3");
}

TEST_CASE("invalid orders are refused") {
  const auto message = [](const pt::pipeline_shape& s, const auto& order) {
    return words(pipelined(s, pt::gpipe, order, {}).error.message);
  };
  CHECK(message({0, 1, 1}, pt::gpipe) ==
        "O001 pipeline: 1 stages, 0 meshes, 1 microbatches; at least one of each is needed");
  CHECK(message({3, 6, 3}, pt::one_f_one_b) ==
        "O002 order: 6 stages on 3 meshes; this order has one stage on each mesh; with several, "
        "use circular or interleaved_1f1b");
  CHECK(message({3, 3, 3}, pt::zb_v) ==
        "O002 order: 3 stages on 3 meshes; zb_v has two stages on each mesh");
  CHECK(message({4, 8, 6}, pt::interleaved_1f1b) ==
        "O003 order: 6 microbatches on 4 meshes; interleaved_1f1b needs a number of microbatches "
        "that is divisible by the number of meshes; or use circular");
  const pt::pipeline_shape s{2, 2, 2};
  const auto backward_first = [](const pt::fragment_call& c) { return -c.transposed; };
  CHECK(message(s, backward_first) ==
        "O006 order: it contradicts the flow of data: B1 on mesh 0 waits for the result of F1 on "
        "mesh 0, which waits for its turn after B1 on mesh 0; move one of them to another place in "
        "the order");
  const auto both = [](const pt::fragment_call&, const pt::fragment_call&) { return true; };
  CHECK(message(s, both) ==
        "O006 order: it contradicts itself: B1 on mesh 0 waits for its turn after F1 on mesh 0, "
        "which waits for its turn after B1 on mesh 0; of two calls, only one can be before the "
        "other");
  pt::order_table table;
  CHECK(message(s, table) == "O004 order: a table of 0 rows for 2 meshes; each mesh needs one");
  CHECK(message(s, pt::read_order_table({"F0 B0", "F0 B0", "F0 B0"})) ==
        "O004 order: a table of 3 rows for 2 meshes; each mesh needs one");
  table.rows.resize(2, {});
  CHECK(message(s, table) ==
        "O004 order: F0 on mesh 0 is missing in its row; each call appears there once");
  table.rows[1].push_back({.stage = 0});
  CHECK(message(s, table) ==
        "O005 order: row 1 has F0.0, which mesh 1 does not run; it runs F0.1, B0.1, F1.1, B1.1");
  table.rows[1][0] = {.stage = 1};
  table.rows[1].push_back({.stage = 1});
  CHECK(message(s, table) == "O005 order: row 1 has F0.1 twice; leave one out");
  CHECK(words(pt::search_order({2, 2, 2}, {}, {.memory = 0.5}).error.message) ==
        "O012 order: no order of 2 stages and 2 microbatches on 2 meshes was found within a memory "
        "of 0.5 activations; the minimum is 1");
}

TEST_CASE("a deadlock names which calls wait for which") {
  const pipelined p({3, 6, 8}, pt::circular);
  CHECK(words(pt::find_deadlock(p.g, p.lists()).message) ==
        "O007 deadlock: mesh 0 waits to send the result of F5.0 to mesh 1 (the channel holds 1, "
        "last the result of F4.0); mesh 1 waits to send the result of F3.1 to mesh 2 (the channel "
        "holds 1, last the result of F2.1); mesh 2 waits to send the result of F1.2 to mesh 0 "
        "(the channel holds 1, last the result of F0.2); a capacity of 2 is enough");
  CHECK(!pt::find_deadlock(p.g, p.lists(), {.capacity = 2}));
  CHECK(words(pt::find_deadlock(p.g, p.lists(), {.capacity = 0}).message) ==
        "O001 channel: a capacity of 0; it holds at least one message");
  // Two calls on mesh 0 whose results mesh 1 accepts in the other order.
  pt::call_graph g;
  g.meshes = 2;
  for (const int mesh : {0, 0, 1, 1}) g.calls.push_back({.stage = mesh, .mesh = mesh});
  for (int i = 0; i < 4; ++i) g.calls[i].microbatch = i % 2;
  g.edges = {{0, 2}, {1, 3}};
  const pt::vec<int> order{0, 1, 3, 2};
  const auto lists = pt::lists_with_messages(g, order, pt::messages_of(g, order));
  CHECK(!pt::find_deadlock(g, lists, {.capacity = 2}));
  CHECK(words(pt::find_deadlock(g, lists, {.capacity = 2, .fifo = true}).message) ==
        "O009 channel: mesh 1 takes the result of F1 from mesh 0 where the result of F0 was sent "
        "first; match messages by tag, or change the order");
  // Two meshes that each need the other's result first.
  g.edges = {{1, 2}, {3, 0}};
  const pt::vec<int> crossed{0, 1, 2, 3};
  CHECK(words(pt::find_deadlock(g, pt::lists_with_messages(g, crossed, pt::messages_of(g, crossed)))
                  .message) ==
        "O007 deadlock: mesh 0 waits to receive the result of F1 from mesh 1; mesh 1 waits to "
        "receive the result of F1 from mesh 0; no capacity is enough: the lists of the meshes "
        "contradict each other");
}

namespace {

/// Runs all meshes, one step at a time from a random mesh on; returns true if every mesh finishes.
bool ends(const pt::call_graph& g, const pt::mesh_lists& l, int capacity, std::mt19937& random) {
  std::vector<std::size_t> at(l.meshes.size(), 0);
  std::vector<int> held(l.meshes.size() * l.meshes.size(), 0);
  std::vector<char> sent(l.messages.size(), 0);
  const auto step = [&](std::size_t mesh) {
    if (at[mesh] == l.meshes[mesh].size()) return false;
    const pt::mesh_step s = l.meshes[mesh][at[mesh]];
    if (s.kind != pt::mesh_step::call) {
      const auto& m = l.messages[s.index];
      int& channel = held[static_cast<std::size_t>(g.calls[m.call].mesh) * l.meshes.size() +
                          static_cast<std::size_t>(g.calls[m.user].mesh)];
      if (s.kind == pt::mesh_step::send) {
        if (channel == capacity) return false;
        ++channel;
        sent[s.index] = 1;
      } else {
        if (sent[s.index] == 0) return false;
        --channel;
      }
    }
    ++at[mesh];
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    const std::size_t first = random() % at.size();
    for (std::size_t i = 0; i < at.size(); ++i)
      if (step((first + i) % at.size())) moved = true;
  }
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] < l.meshes[i].size()) return false;
  return true;
}

}  // namespace

TEST_CASE("deadlocks of random orders and channels equal those of a simulation") {
  std::mt19937 random(1);
  int dead = 0, live = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    pt::call_graph g;
    g.meshes = 1 + static_cast<int>(random() % 5);
    const int calls = 1 + static_cast<int>(random() % 24);
    for (int i = 0; i < calls; ++i)
      g.calls.push_back({.mesh = static_cast<int>(random() % g.meshes), .microbatch = i});
    for (auto left = random() % 40; left > 0; --left) {
      const int a = static_cast<int>(random() % calls), b = static_cast<int>(random() % calls);
      if (a != b) g.edges.push_back({std::min(a, b), std::max(a, b)});
    }
    pt::vec<int> order;
    for (int i = 0; i < calls; ++i) order.push_back(i);
    for (auto left = random() % 6; left > 0; --left)  // perhaps no longer a valid order
      std::swap(order[random() % calls], order[random() % calls]);
    const auto lists = pt::lists_with_messages(g, order, pt::messages_of(g, order));
    const int capacity = 1 + static_cast<int>(random() % 3);
    const bool expected = ends(g, lists, capacity, random);
    const pt::failure found = pt::find_deadlock(g, lists, {.capacity = capacity});
    CHECK(!found == expected);
    (expected ? live : dead) += 1;
    if (expected) continue;
    const int least = pt::least_capacity(g, lists);
    CHECK((least == 0 || least > capacity));
    if (least > 0) CHECK(ends(g, lists, least, random));
    if (least > 1) CHECK(!ends(g, lists, least - 1, random));
  }
  CHECK(dead > 200);
  CHECK(live > 200);
}

namespace {

/// Returns the error of a pipeline of a model of x (8, 4) and w (4, 4), or "".
template <class Model>
std::string pipeline_error(const Model& model, const pt::pipeline_options& options) {
  try {
    (void)pt::pipeline(pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w")),
                       pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}}, pt::gpipe, options);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}
constexpr auto product_of_two = [](const auto& a, const auto& b) { return matmul(a, b); };
constexpr auto two_products = [](const auto& x, const auto& w) {
  return pt::named("b", product_of_two)(pt::named("a", product_of_two)(x, w), w);
};

}  // namespace

TEST_CASE("invalid pipelines are refused") {
  const pt::pipeline_options good{
      .where = {.names = {{"a", "m0"}, {"b", "m1"}}}, .microbatches = 2, .batch = {{"x", 0}}};
  CHECK(pipeline_error(two_products, good) == "");
  const auto whole_batch = [](const auto& x, const auto& w) {
    const auto a = [](const auto& h, const auto& v) {
      const auto y = matmul(h, v);
      return y * pt::sum(y);
    };
    return pt::named("b", product_of_two)(pt::named("a", a)(x, w), w);
  };
  CHECK(pipeline_error(whole_batch, good) ==
        "O120 pipeline: multiply (tensor<4x4xf32>) of \"a\" needs the result of reduce "
        "(tensor<f32>) of \"a\" over all microbatches; compute it from one microbatch alone, or "
        "without parameters and matrix products: such a value is computed before the first "
        "microbatch");
  const auto no_batch = [](const auto& x, const auto& w) {
    const auto f = [](const auto& v) { return tanh(v); };
    return std::tuple{pt::output("w", pt::named("b", f)(pt::named("a", f)(w))),
                      pt::output("x", x + x)};
  };
  CHECK(pipeline_error(no_batch, good) ==
        "O121 pipeline: no op of a part that is assigned to a mesh is computed from a microbatch");
  const auto back_again = [](const auto& x, const auto& w) {
    return pt::named("a", product_of_two)(two_products(x, w), w);
  };
  CHECK(pipeline_error(back_again, good) ==
        "O123 pipeline: forward of stage 0 (\"a\") needs the result of forward of stage 1 (\"b\"), "
        "which needs the result of forward of stage 0 (\"a\"), so that the stage would run twice "
        "for each microbatch; give the later part its own stage");
  const auto with = [&](const auto& change) {
    pt::pipeline_options options = good;
    change(options);
    return pipeline_error(two_products, options);
  };
  CHECK(with([](auto& o) { o.microbatches = 3; }).substr(0, 20) == "S003 microbatch(3): ");
  CHECK(with([](auto& o) { o.microbatches = 0; }).substr(0, 4) == "S010");
  CHECK(with([](auto& o) { o.batch[0].name = "y"; }).substr(0, 4) == "S006");
  CHECK(with([](auto& o) { o.batch.clear(); }) ==
        "S013 microbatch(2): no input is named as batch; name each with its batch dimension");
  CHECK(with([](auto& o) { o.where.names[1].name = "c"; }).substr(0, 4) == "O108");
  CHECK(with([](auto& o) { o.where.names[1].mesh = "m7"; }).substr(0, 4) == "O105");
  CHECK(with([](auto& o) { o.channels.capacity = 0; }).substr(0, 4) == "O001");
  CHECK(with([](auto& o) { o.where.names.clear(); }) ==
        "O121 pipeline: no op of a part that is assigned to a mesh is computed from a microbatch");
  // A wrong name is reported, not its consequences.
  CHECK(with([](auto& o) { o.where.names = {{"aa", "m0"}, {"bb", "m1"}}; }).substr(0, 4) == "O108");
  const pt::pipelined p = [&] {
    return pt::pipeline(
        pt::trace(two_products, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w")),
        pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}}, pt::gpipe, good);
  }();
  CHECK_THROWS_WITH_AS(
      (void)p.order_of("m2"),
      "O125 pipeline: the topology has no mesh \"m2\"; known: m0, m1; did you mean \"m0\"?",
      pt::error);
}

TEST_CASE("stages without parts and invalid options of pipelines are refused") {
  const auto error_of = [](const pt::stage_list& stages, const pt::partition_options& more) {
    try {
      (void)pt::partition(
          pt::trace(two_products, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w")),
          pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}},
          pt::schedule(
              pt::pipeline({.stages = stages, .batch = {{"x", 0}}, .microbatches = 2}, "PP")),
          more);
      return std::string();
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
  };
  CHECK(error_of({{"a"}, {"b"}}, {.verify = true}) == "");
  CHECK(error_of({{"a"}, {"b"}}, {.strict = 100}).substr(0, 4) == "S020");
  CHECK(error_of({{"a"}, {"b"}}, {.strict = 128}) == "");
  const auto proof = [](const pt::program&, const pt::device_program&, pt::failure&) {
    return true;
  };
  CHECK(error_of({{"a"}, {"b"}}, {.prove = proof}) ==
        "O148 pipeline: prove: a custom proof function handles programs on one mesh only; pass "
        "pt::proof or pt::proof_in_debug");
  CHECK(error_of({{"a"}, {"b"}}, {.prove = pt::proof}) == "");
  CHECK(error_of({{"a"}, {"b"}}, {.strict = -2}).substr(0, 4) == "S027");
  CHECK(error_of({{"a"}, {"b"}}, {.passes = {.combine_below = -1}}).substr(0, 4) == "C001");
  CHECK(error_of({{"a"}, {"b"}}, {.passes = {.memory_bound = 8}}).substr(0, 4) == "C003");
  CHECK(error_of({{"a"}, {"b"}}, {.overlap = pt::overlap_options{.memory = -1}}).substr(0, 4) ==
        "C001");
  CHECK(error_of({{"a"}, {}, {"b"}}, {}) ==
        "O138 pipeline \"PP\": stage 1 has no parts; name at least one, or leave the stage out");
  CHECK(error_of({{"a", "b"}, {}}, {}).substr(0, 4) == "O138");
  CHECK(error_of({}, {}) == "O138 pipeline \"PP\": it has no stages; name the parts of each");
}

TEST_CASE("messages state the sizes of a value on its mesh") {
  const auto error_of = [](std::string_view input) {
    try {
      (void)pt::partition(
          pt::trace(two_products, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w")),
          pt::topology{{"m0", {{"B", 3}}}, {"m1", {{"B", 5}}}},
          pt::schedule(
              pt::pipeline({.stages = {{"a"}, {"b"}}, .batch = {{"x", 0}}, .microbatches = 2}),
              pt::manual("B", {{input, 0}})));
      return std::string();
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
  };
  CHECK(error_of("x") ==
        "S003 tile: dimension 0 of \"x\" has size 8; axis \"B\" has size 3 (on mesh \"m0\"), which "
        "does not divide it; choose another dimension or mesh, or pad it with uneven::pad");
}

TEST_CASE("a part without a mesh may need the whole batch") {
  const auto f = [](const auto& x, const auto& w) {
    const auto total = pt::named("count", [](const auto& v) { return sum(v); })(x);
    return two_products(x, w * total);
  };
  CHECK(pipeline_error(f, {.where = {.names = {{"a", "m0"}, {"b", "m1"}}},
                           .microbatches = 2,
                           .batch = {{"x", 0}}}) == "");
}

TEST_CASE("sums over 200,000 parts, nested as deeply as the program is long, are split") {
  pt::one_microbatch one;
  pt::vec<int> mesh;
  const pt::tensor_type t{pt::dtype::f32, {}};
  const auto append = [&](const pt::op_def& d, const pt::vec<pt::value_id>& operands, int on) {
    mesh.push_back(on);
    one.inside.push_back(1);
    return one.p.append(d, operands, {}, t);
  };
  const pt::value_id x = append(pt::def<pt::op::parameter>, {}, -1);
  one.p.inputs.push_back(x);
  pt::value_id sum = append(pt::def<pt::op::tanh>, {x}, 0);
  constexpr int many = 200'000;
  for (int i = 1; i < many; ++i)
    sum = append(pt::def<pt::op::add>, {sum, append(pt::def<pt::op::tanh>, {x}, i % 2)}, -1);
  const std::int64_t add[] = {static_cast<std::int64_t>(pt::combiner::add)};
  const pt::value_id operands[] = {sum};
  one.p.outputs.push_back({one.p.append(pt::def<pt::op::microbatch_sum>, operands, add, t), {}});
  mesh.push_back(-1);
  one.inside.push_back(0);
  CHECK(pt::mpmd_detail::sum_splitter(one, mesh).run());
  int sums = 0;
  for (pt::op_id o = 0; o < one.p.op_count(); ++o)
    sums += one.p.op(o).def->id == pt::def<pt::op::microbatch_sum>.id;
  CHECK(sums == many);
}

TEST_CASE("stages on meshes in any order") {
  const auto four = [](const auto& x, const auto& w) {
    auto h = x;
    for (int i = 0; i < 4; ++i) h = pt::named("layers", i, product_of_two)(h, w);
    return sum(h);
  };
  const pt::program f = pt::trace(
      [&](const auto& x, const auto& w) {
        const auto [loss, g] = pt::value_and_grad([&](const auto& v) { return four(x, v); }, w);
        return std::tuple{pt::output("loss", loss), pt::output("w", w - g)};
      },
      pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"));
  const pt::topology t{{"m0", {{"B", 2}}}, {"spare", {{"B", 2}}}, {"m1", {{"B", 2}}}};
  const auto planned = [&](const pt::pipeline_order& order, const auto& names) {
    return pt::pipeline(f, t, order,
                        {.where = {.names = names, .infer_transfers = true},
                         .microbatches = 2,
                         .batch = {{"x", 0}},
                         .channels = {.capacity = 4}});
  };
  // Stage 0 is on the last mesh; a mesh without a stage does not count.
  using lines = pt::vec<pt::mesh_for>;
  const lines two{
      {"layers.0", "m1", 0}, {"layers.1", "m1", 0}, {"layers.2", "m0", 1}, {"layers.3", "m0", 1}};
  const pt::pipelined p = planned(pt::one_f_one_b, two);
  CHECK(p.order_of("m1") == "F0 F1 B0 B1");
  CHECK(p.order_of("m0") == "F0 B0 F1 B1");
  const lines around{
      {"layers.0", "m1", 0}, {"layers.1", "m0", 1}, {"layers.2", "m1", 2}, {"layers.3", "m0", 3}};
  CHECK(planned(pt::interleaved_1f1b, around).order_of("m0") ==
        "F0.1 F1.1 F0.3 B0.3 F1.3 B1.3 B0.1 B1.1");
  const lines back{
      {"layers.0", "m1", 0}, {"layers.1", "m0", 1}, {"layers.2", "m0", 2}, {"layers.3", "m1", 3}};
  CHECK(planned(pt::zb_v, back).stages == 4);
  CHECK_THROWS_WITH_AS(planned(pt::zb_v, around),
                       "O124 pipeline: stage 2 is on mesh \"m1\"; zb_v has it on \"m0\"",
                       pt::error);
  CHECK(planned(pt::circular, back).stages == 4);
}

TEST_CASE("simulated calls of a pipeline, on equal and on unequal devices") {
  const pt::program f = pt::trace(
      [](const auto& x, const auto& w) {
        const auto [loss, g] =
            pt::value_and_grad([&](const auto& v) { return sum(two_products(x, v)); }, w);
        return std::tuple{pt::output("loss", loss), pt::output("w", w - g)};
      },
      pt::input<float, 4096, 512>("x"), pt::input<float, 512, 512>("w"));
  const auto planned = [&](const pt::topology& t) {
    return pt::pipeline(
        f, t, pt::one_f_one_b,
        {.where = {.names = {{"a", "m0"}, {"b", "m1"}}}, .microbatches = 4, .batch = {{"x", 0}}});
  };
  const pt::pipelined p = planned({{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}});
  const pt::pipeline_time equal = pt::simulate(p, pt::a100_80);
  REQUIRE(!equal.error);
  for (int m = 0; m < 2; ++m) {
    double calls = 0;
    for (int c = 0; c < p.calls.count(); ++c)
      if (p.calls.calls[c].mesh == m) calls += equal.seconds[p.unit_of[c]];
    CHECK(equal.times.busy[m] == doctest::Approx(calls));
  }
  CHECK(equal.times.total > equal.times.ideal());
  // A microbatch's activation, 1024 x 512 binary32, over the link between nodes.
  const double seconds = 1024 * 512 * 4 / (pt::a100_80.far.bandwidth * pt::a100_80.link_part);
  for (int m = 0; m < static_cast<int>(equal.lists.messages.size()); ++m) {
    const auto& each = equal.lists.messages[m];
    if (each.microbatch >= 0) CHECK(each.seconds == doctest::Approx(seconds));
    CHECK(equal.times.arrived[m] >= equal.times.end[each.call] + each.seconds);
  }
  // A slower second mesh.
  const pt::pipeline_time unequal =
      pt::simulate(planned({{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}, pt::v100}}), pt::a100_80);
  CHECK(unequal.times.busy[0] == doctest::Approx(equal.times.busy[0]));
  CHECK(unequal.times.busy[1] > 1.5 * equal.times.busy[1]);
  CHECK(words(pt::simulate(p, pt::device{}).error.message).substr(0, 4) == "D001");
  // A device without nodes sends over its only link; a device without a link is refused.
  const double near = pt::simulate(p, pt::tpu_v3).times.total;
  CHECK(near > 0);
  CHECK(near < 1);
  pt::device alone = pt::tpu_v3;
  alone.near = {};
  CHECK(words(pt::simulate(planned({{"m0", {}}, {"m1", {}}}), alone).error.message).substr(0, 4) ==
        "D002");
}

TEST_CASE("memory of meshes includes values that wait for later calls") {
  const pt::program f = pt::trace(
      [](const auto& x, const auto& w) {
        const auto [loss, g] =
            pt::value_and_grad([&](const auto& v) { return sum(two_products(x, v)); }, w);
        return std::tuple{pt::output("loss", loss), pt::output("w", w - g)};
      },
      pt::input<float, 1024, 16>("x"), pt::input<float, 16, 16>("w"));
  const auto planned = [&](const pt::pipeline_order& order, int microbatches,
                           const pt::topology& t) {
    return pt::pipeline(f, t, order,
                        {.where = {.names = {{"a", "m0"}, {"b", "m1"}}},
                         .microbatches = microbatches,
                         .batch = {{"x", 0}},
                         .channels = {.capacity = pt::unbounded}},
                        pt::schedule(pt::manual("B", {{"x", 0}})));
  };
  const pt::topology two{{"m0", {{"B", 4}}}, {"m1", {{"B", 2}}}};
  const auto peaks = [&](const pt::pipeline_order& order, int microbatches) {
    return pt::memory_of(planned(order, microbatches, two));
  };
  // A quarter of x, and the weight; the slices of x are kept as a stack, too.
  const std::int64_t weight = 16 * 16 * 4, batch = 1024 / 4 * 16 * 4;
  CHECK(peaks(pt::gpipe, 8)[0].arguments == batch + weight);
  // Activations that wait on the second mesh: one per microbatch with GPipe, one in all with 1F1B.
  for (const int n : {8, 16, 32}) {
    const std::int64_t activation = 1024 / n / 2 * 16 * 4;
    CAPTURE(n);
    const std::int64_t all = peaks(pt::gpipe, n)[1].peak, few = peaks(pt::one_f_one_b, n)[1].peak;
    CHECK(all - few >= (n - 3) * activation);
    CHECK(few >= weight + 2 * activation);
    CHECK(few <= 3 * weight + 6 * activation);
  }
  pt::device little;
  little.memory = 20'000;
  CHECK_THROWS_WITH_AS(
      planned(pt::gpipe, 8, {{"m0", {{"B", 4}}}, {"m1", {{"B", 2}}, little.named("small")}}),
      "O134 pipeline: a device of mesh \"m1\" needs 44036 bytes while it runs B0, 1024 of them "
      "arguments; its device \"small\" has 20000; more microbatches, an order that keeps fewer of "
      "them, or more sharding needs less",
      pt::error);
}

namespace {

/// A training step of two layers on two meshes, 1F1B.
constexpr pt::pipelined two_layer_step(const pt::pipeline_order& order, int microbatches = 4) {
  const auto step = [](const auto& x, const auto& w) {
    const auto [loss, g] =
        pt::value_and_grad([&](const auto& v) { return sum(two_products(x, v)); }, w);
    return std::tuple{pt::output("loss", loss), pt::output("w", w - g)};
  };
  return pt::pipeline(pt::trace(step, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w")),
                      pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}}, order,
                      {.where = {.names = {{"a", "m0"}, {"b", "m1"}}},
                       .microbatches = microbatches,
                       .batch = {{"x", 0}},
                       .channels = {.capacity = 2}});
}
template <class Rules>
std::string merge_error(const pt::pipelined& p, const Rules& rules) {
  try {
    (void)pt::merged(p, rules);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

// Forward and backward of the last stage as one call.
static_assert(pt::merged(two_layer_step(pt::one_f_one_b), {{{"b"}, {"b", 1}}}).order_of("m1") ==
              "FB0 FB1 FB2 FB3");

TEST_CASE("units merged by names and by a predicate") {
  const pt::pipelined p = two_layer_step(pt::one_f_one_b), q = pt::merged(p, {{{"b"}, {"b", 1}}});
  CHECK(q.units.size() + 1 == p.units.size());
  CHECK(q.order_of("m0") == p.order_of("m0"));
  CHECK(q.transfers.size() == p.transfers.size());
  CHECK(!pt::verify(q.units[1].device.local));
  CHECK(pt::most_in_flight(q.calls, q.order, 2)[1] == 1);
  const auto last_stage = [](const pt::fragment_call& a, const pt::fragment_call& b) {
    return a.mesh == 1 && a.microbatch == b.microbatch && a.transposed != b.transposed;
  };
  CHECK(pt::merged(p, last_stage).order_of("m1") == q.order_of("m1"));
  CHECK(pt::merged(two_layer_step(pt::zb_h1), {{{"b"}, {"b", 1}}}).order_of("m1") ==
        "FBW0 FBW1 FBW2 FBW3");
  // All forward calls first: a merged call takes the place of its first call.
  CHECK(pt::merged(two_layer_step(pt::gpipe, 2), last_stage).order_of("m1") == "FB0 FB1");
}

TEST_CASE("tables of texts order split backwards and several stages of a mesh") {
  using namespace two_stages;
  const auto in_order = [](bool split, const pt::order_table& table) {
    pt::pipeline_options o{.where = {.names = {{"front", "m0"}, {"back", "m1"}}},
                           .microbatches = 2,
                           .batch = {{"x", 0}},
                           .split = split};
    return pt::pipeline(traced(), cluster, table, o);
  };
  const pt::pipelined p =
      in_order(true, pt::read_order_table({"F0 F1 W0 W1", "F0 B0 F1 B1 W1 W0"}));
  CHECK(p.order_of("m1") == "F0 B0 F1 B1 W1 W0");
  CHECK_THROWS_WITH_AS(in_order(false, pt::read_order_table({"F0 F1 B0 B1", "F0 B0 F1 W1"})),
                       "O005 order: row 1 has W1, which mesh \"m1\" does not run; it runs F0.1, "
                       "B0.1, F1.1, B1.1",
                       pt::error);
  CHECK_THROWS_WITH_AS(
      in_order(false, pt::read_order_table({"F0 F1 B0 B1", "F0 B0 X"})),
      "O013 order: row 1 has \"X\", which is not a call; write F, B or W with a microbatch, like "
      "F3, and after a dot the stage if a mesh has several, like F3.1",
      pt::error);
}

TEST_CASE("units outside the loop are absorbed if no call runs between them") {
  const pt::pipelined p = two_stages::partitioned({}, two_stages::PP, two_stages::BP);
  const pt::pipelined q = pt::absorbed(p);
  const auto outside = [](const pt::pipelined& of, int mesh) {
    int n = 0;
    for (const auto& u : of.units) n += !u.inside && u.piece.mesh == mesh;
    return n;
  };
  // On m0, all microbatches run between the preparation of the batch and the update. On m1, the
  // loss and the update become one call.
  CHECK(outside(p, 0) == 2);
  CHECK(outside(q, 0) == 2);
  CHECK(outside(p, 1) == 2);
  CHECK(outside(q, 1) == 1);
  CHECK(q.order_of("m1") == p.order_of("m1"));
  CHECK(q.collectives == p.collectives);
  pt::pipeline_plan plan = two_stages::PP.plan();
  plan.absorb = true;
  CHECK(two_stages::partitioned({}, pt::pipeline(plan, "PP"), two_stages::BP).units.size() ==
        q.units.size());
}

TEST_CASE("units that cannot be merged are refused") {
  const pt::pipelined p = two_layer_step(pt::one_f_one_b);
  using rules = pt::vec<pt::merge_rule>;
  CHECK(merge_error(p, rules{{{"a"}, {"a", 1}}}) ==
        "O126 merge: forward of stage 0 (\"a\") and backward of stage 0 (\"a\"(1)) cannot be one "
        "call: backward of stage 0 (\"a\"(1)) needs the result of backward of stage 1 (\"b\"(1)), "
        "backward of stage 1 (\"b\"(1)) needs the result of forward of stage 0 (\"a\"); leave the "
        "rule out");
  CHECK(merge_error(p, rules{{{"c"}, {"a", 1}}}) ==
        "O127 merge: no unit runs \"c\"; known: a, b; did you mean \"a\"?");
  CHECK(merge_error(p, rules{{{"a"}, {"b"}}}) ==
        "O128 merge: forward of stage 0 (\"a\") runs on mesh \"m0\" and forward of stage 1 (\"b\") "
        "on mesh \"m1\"; a merged call runs on one mesh");
  CHECK(merge_error(p, rules{{{"a", 0, 0}, {"a", 0, 4}}}) ==
        "O129 merge: microbatch 4 of \"a\"; microbatches are numbered from 0 to 3, and -1 means "
        "each one");
}

// Calls of several microbatches become one; the rules decide which call that is.
static_assert(pt::merged(two_layer_step(pt::gpipe), [](const auto& a, const auto& b) {
                return a.transposed == b.transposed && a.microbatch / 2 == b.microbatch / 2;
              }).order_of("m0") == "F0+F1 F2+F3 B0+B1 B2+B3");

TEST_CASE("calls of several microbatches merged by names and by a predicate") {
  using rules = pt::vec<pt::merge_rule>;
  const pt::pipelined p = two_layer_step(pt::one_f_one_b);
  CHECK(p.order_of("m0") == "F0 F1 B0 F2 B1 F3 B2 B3");
  const pt::pipelined q = pt::merged(p, rules{{{"a", 0, 0}, {"a", 0, 1}}});
  CHECK(q.order_of("m0") == "F0+F1 B0 F2 B1 F3 B2 B3");
  CHECK(q.order_of("m1") == p.order_of("m1"));
  CHECK(q.units.size() == p.units.size());
  CHECK(q.lists.messages.size() == p.lists.messages.size());
  CHECK(pt::prove(q).proved);
  // Merged once more: calls that are one stay one, even if their units are merged.
  const pt::pipelined both = pt::merged(q, rules{{{"b"}, {"b", 1}}});
  CHECK(both.order_of("m0") == "F0+F1 B0 F2 B1 F3 B2 B3");
  CHECK(both.order_of("m1") == "FB0 FB1 FB2 FB3");
  CHECK(both.joint_functions.size() == 1);
  const pt::pipelined more = pt::merged(both, [](const auto& a, const auto& b) {
    return a.mesh == 1 && a.microbatch / 2 == b.microbatch / 2;
  });
  CHECK(more.order_of("m1") == "FB0+FB1 FB2+FB3");
  CHECK(more.joint_functions.size() == 2);  // both calls of m1 have one function
  for (const auto& f : more.joint_functions) CHECK(!pt::verify(f.whole.device));
  // For some microbatches only: no unit is merged.
  const pt::pipelined some = pt::merged(p, [](const auto& a, const auto& b) {
    return a.mesh == 1 && a.microbatch == b.microbatch && b.microbatch != 2;
  });
  CHECK(some.order_of("m1") == "F0+B0 F1+B1 F2 B2 F3+B3");
  CHECK(some.joint_functions.size() == 1);
  CHECK(pt::prove(some).proved);
  CHECK(pt::print_calls(some).view().find("_stage1_fwd_bwd_calls0to1_3.main") !=
        std::string_view::npos);
}

TEST_CASE("microbatches are not merged if they would wait for themselves") {
  using rules = pt::vec<pt::merge_rule>;
  const pt::pipelined p = two_layer_step(pt::one_f_one_b);
  CHECK(merge_error(p, rules{{{"a", 0, 1}, {"a", 1, 1}}}) ==
        "O126 merge: F1.0 and B1.0 cannot be one call: B1.0 needs the result of B1.1, B1.1 needs "
        "the result of F1.0; leave the rule out");
  CHECK(merge_error(p, rules{{{"a", 0, 0}, {"a", 1, 1}}, {{"a", 0, 1}, {"a", 1, 0}}}) ==
        "O126 merge: F0.0 and B1.0 cannot be one call: B1.0 needs the result of B1.1, B1.1 needs "
        "the result of F1.0, F1.0 is one call with B0.0, B0.0 needs the result of B0.1, B0.1 needs "
        "the result of F0.0; leave the rule out");
}

namespace {

/// Two stages of two layers each: their backwards need the values between the layers.
constexpr pt::pipelined deep_step(const pt::pipeline_order& order, int microbatches = 4) {
  const auto step = [](const auto& x, const auto& w) {
    const auto layers = [](const auto& a, const auto& b) {
      return tanh(matmul(tanh(matmul(a, b)), b));
    };
    const auto [loss, g] = pt::value_and_grad(
        [&](const auto& v) { return sum(pt::named("b", layers)(pt::named("a", layers)(x, v), v)); },
        w);
    return std::tuple{pt::output("loss", loss), pt::output("w", w - g)};
  };
  return pt::pipeline(
      pt::trace(step, pt::input<float, 1024, 16>("x"), pt::input<float, 16, 16>("w")),
      pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}}, order,
      {.where = {.names = {{"a", "m0"}, {"b", "m1"}}},
       .microbatches = microbatches,
       .batch = {{"x", 0}},
       .channels = {.capacity = 2}});
}

}  // namespace

static_assert(pt::rematerialized(deep_step(pt::one_f_one_b, 2)).order_of("m0") == "F0 F1 B0 B1");

TEST_CASE("recomputation in a stage does not count as work of the model") {
  // On devices, and with meshes as one device each. A split backward recomputes in both parts.
  const auto sharded = [](const pt::pipeline_order& order) {
    const pt::pipelined p = deep_step(order, 8);
    return pt::partition(
        p.original, p.topology,
        pt::schedule(
            pt::pipeline(
                {.stages = {{"a"}, {"b"}}, .batch = {{"x", 0}}, .microbatches = 8, .order = order}),
            pt::manual("B", {{"x", 0}})));
  };
  for (const auto* order : {&pt::one_f_one_b, &pt::gpipe, &pt::zb_h1})
    for (const pt::pipelined& p : {deep_step(*order, 8), sharded(*order)}) {
      const pt::pipeline_time kept = pt::simulate(p, pt::a100_80),
                              made = pt::simulate(pt::rematerialized(p), pt::a100_80);
      REQUIRE(!made.error);
      CHECK(kept.mfu > 0);
      CHECK(kept.mfu == kept.hfu);
      CHECK(made.mfu < made.hfu);
      CHECK(made.mfu * made.times.total == doctest::Approx(kept.mfu * kept.times.total));
      CHECK(made.times.total > kept.times.total);
    }
}

TEST_CASE("stages that rerun their forward keep only its operands") {
  for (const auto* order : {&pt::one_f_one_b, &pt::gpipe, &pt::zb_h1}) {
    const pt::pipelined p = deep_step(*order, 8), q = pt::rematerialized(p);
    CHECK(q.order_of("m0") == p.order_of("m0"));
    CHECK(q.order_of("m1") == p.order_of("m1"));
    CHECK(q.lists.messages.size() == p.lists.messages.size());
    for (const auto& u : q.units) CHECK(!pt::verify(u.device.local));
    // The forward of the first stage sends its result to the second and keeps nothing.
    for (const auto& u : q.units)
      if (u.inside && u.transposed == 0 && u.piece.stage == 0) CHECK(u.piece.outputs.size() == 1);
  }
  // With GPipe all microbatches are in flight: one of three activations is kept, the stage's input.
  const pt::pipelined p = deep_step(pt::gpipe, 8);
  const std::int64_t activation = 1024 / 8 * 16 * 4;
  const auto before = pt::memory_of(p), after = pt::memory_of(pt::rematerialized(p));
  CHECK(before[1].peak - after[1].peak >= 7 * activation);
  CHECK(pt::memory_of(pt::rematerialized(p, {1}))[0].peak == before[0].peak);
  CHECK_THROWS_WITH_AS((void)pt::rematerialized(p, {2}),
                       "O136 remat: stage 2 keeps nothing from its forward to its backward; the "
                       "pipeline has 2 stages, and merged ones keep nothing",
                       pt::error);
}
