// Pipelines that are cut into units, ordered and checked for deadlocks at compile time.
#include <array>
#include <tuple>

#include <partita/mpmd/check_pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

constexpr pt::topology two_meshes{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};

constexpr auto two_layer_step = [](const auto& x, const auto& w1, const auto& w2) {
  const auto layer = [](const auto& h, const auto& w) { return tanh(matmul(h, w)); };
  const auto [loss, g] = pt::value_and_grad(
      [&](const auto& w) {
        const auto h = pt::named("first", layer)(x, w[0]);
        const auto y = pt::named("second", layer)(h, w[1]);
        return sum(y * y);
      },
      std::array{w1, w2});
  return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1]),
                    pt::output("loss", loss)};
};

template <class Order>
constexpr pt::pipelined two_stages(const Order& order, int microbatches = 3, int capacity = 1) {
  return pt::pipeline(pt::trace(two_layer_step, pt::input<float, 12, 4>("x"),
                                pt::input<float, 4, 4>("w1"), pt::input<float, 4, 4>("w2")),
                      two_meshes, order,
                      {.where = {.names = {{"first", "m0"}, {"second", "m1"}}},
                       .microbatches = microbatches,
                       .batch = {{"x", 0}},
                       .channels = {.capacity = capacity}});
}

constexpr bool has_order(const pt::pipelined& p, std::string_view m0, std::string_view m1) {
  return !p.error && p.order_of("m0") == m0 && p.order_of("m1") == m1;
}

}  // namespace

static_assert(has_order(two_stages(pt::one_f_one_b), "F0 F1 B0 F2 B1 B2", "F0 B0 F1 B1 F2 B2"));
static_assert(has_order(two_stages(pt::gpipe), "F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"));
// No stage comes before the first one, so its backward has only second parts.
static_assert(has_order(two_stages(pt::zb_h1), "F0 F1 W0 F2 W1 W2", "F0 B0 F1 B1 W0 F2 B2 W1 W2"));
// An activation forward, its gradient backward, and no weights.
static_assert(two_stages(pt::one_f_one_b).transfers.size() == 2);
// Forward calls before all backward calls fill a channel that holds one message.
static_assert(two_stages(pt::gpipe_1f1b_last, 4).error.message.view().substr(0, 4) == "O007");
static_assert(!two_stages(pt::gpipe_1f1b_last, 4, 2).error);
// The figures of a pipeline at compile time.
constexpr auto checked_step = [] { return two_stages(pt::one_f_one_b); };
static_assert(pt::check<checked_step>.deadlock_free && pt::check<checked_step>.stages == 2);
static_assert(pt::check<checked_step>.order("m1") == "F0 B0 F1 B1 F2 B2");
static_assert(pt::check<checked_step>.messages == 2 * 3);

// Stages that are sharded inside, on meshes of different sizes.
constexpr pt::topology uneven{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}};
constexpr auto PP = pt::pipeline({.stages = {{"first"}, {"second"}},
                                  .batch = {{"x", 0}},
                                  .microbatches = 2,
                                  .order = pt::one_f_one_b},
                                 "PP");
constexpr auto sharded_step = [] {
  return pt::partition(
      pt::trace(two_layer_step, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w1"),
                pt::input<float, 8, 8>("w2")),
      uneven,
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), PP, pt::manual("M", {{"w1", 1}}, "MP"),
                   pt::manual("B", {{"w1", 0}, {"w2", 0}}, "Z3")));
};
// Automatic stages: two layers, one each.
constexpr auto found_step = [] {
  return pt::partition(
      pt::trace(two_layer_step, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w1"),
                pt::input<float, 8, 8>("w2")),
      uneven,
      pt::schedule(pt::pipeline({.stages = pt::automatic_stages(2), .batch = {{"x", 0}}}),
                   pt::manual("B", {{"x", 0}}, "BP")));
};
static_assert(pt::check<found_step>.stages == 2);
// Two gradients and the loss, once; a sum of activations in each microbatch; parameters gathered in
// each call that needs them. Stage 0 needs them only forward, since no stage is before it.
static_assert(pt::check<sharded_step>.tactic("BP").collectives == pt::collectives{.all_reduce = 3});
static_assert(pt::check<sharded_step>.tactic("MP").collectives ==
              pt::collectives{.all_reduce = 3 + 2});
static_assert(pt::check<sharded_step>.collectives ==
              pt::collectives{.all_gather = 3 * 2, .all_reduce = 1 + 2, .reduce_scatter = 2});
static_assert(pt::check<sharded_step>.mesh("m0").collectives ==
              pt::collectives{.all_gather = 2, .reduce_scatter = 1});
static_assert(pt::check<sharded_step>.order("m0") == "F0 F1 B0 B1");
// A fourth of x, an eighth of w1: 16/4 x 8, 8/4 x 8/2 floats.
static_assert(pt::check<sharded_step>.mesh("m0").argument_bytes == (4 * 8 + 2 * 4) * 4);
static_assert(pt::check<sharded_step>.mesh("m0").peak_bytes <= 1024);
// The compiler proves that all units on both meshes compute the traced step.
static_assert(pt::check<sharded_step>.proved);
