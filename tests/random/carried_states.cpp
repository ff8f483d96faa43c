// Random steps with a loop of their own over microbatches, which carries states from one to the
// next. As pipelines they compute the results of one device, and are proved.
//
// Drawn: layers of products, sums, maxima and states; states that a layer before, at or after their
// user leaves; sums and gradients of weights; stages on meshes; orders, capacities. Not drawn:
// sharded stages.
#include <doctest/doctest.h>

#include <array>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"
#include "../exported_check.hpp"
#include "merging.hpp"
#include "seeds.hpp"

namespace pt = partita;

namespace {

constexpr int layers = 4, states = 3;
using row = pt::tensor<double, 3>;
using square = pt::tensor<double, 3, 3>;

/// (Small whole numbers: sums and products are exact.)
constexpr auto small = [](const auto& v) { return pt::minimum(pt::maximum(v, -3.0), 3.0); };

pt::program random_step(std::uint64_t seed) {
  const auto step = [&](const auto& xs, const auto& ws, const auto& given) {
    const auto body = [&](const auto& carried, const auto& x) {
      const auto& s = std::get<1>(carried);
      const auto& sums = std::get<2>(carried);
      auto next = s;
      const auto loss_of = [&](const auto& w) {
        data::random r{seed};
        auto h = x;
        for (int i = 0; i < layers; ++i) {
          const auto layer = [&](const auto& v, const auto& weight, const auto& state) {
            auto y = v;
            if (r.one_in(2)) y = small(y + state);
            if (r.one_in(3)) y = pt::maximum(y, x);
            return small(matmul(y, weight));
          };
          const auto number = static_cast<std::size_t>(i);
          h = pt::named("layers", i, layer)(h, w[number],
                                            s[static_cast<std::size_t>(r.in(0, states - 1))]);
          if (r.one_in(2)) {
            const auto leave = [&](const auto& v, const auto& state) {
              return small(pt::sum<0>(v) + state * static_cast<double>(r.in(-1, 1)));
            };
            const auto to = static_cast<std::size_t>(r.in(0, states - 1));
            next[to] = pt::named("layers", i, leave)(h, s[to]);
          }
        }
        return sum(h);
      };
      const auto [loss, g] = pt::value_and_grad(loss_of, ws);
      if (seed % 4 == 0) next[0] = small(pt::sum<0>(g[0]));  // the value that the backward leaves
      auto all = sums;
      for (std::size_t i = 0; i < layers; ++i) all[i] = sums[i] + g[i];
      return std::pair{std::tuple{std::get<0>(carried) + loss, next, all}, pt::nothing{}};
    };
    auto zeros = ws;
    for (auto& z : zeros) z = pt::full_like(ws[0], 0);
    const auto last =
        pt::scan(body, std::tuple{pt::full_like(sum(ws[0]), 0), given, zeros}, xs).first;
    return std::tuple{pt::output("loss", std::get<0>(last)),
                      pt::output("states", std::get<1>(last)),
                      pt::output("sums", std::get<2>(last))};
  };
  return pt::trace(step, pt::input<double, 4, 2, 3>("xs"),
                   pt::input("ws", std::array<square, layers>{}),
                   pt::input("states", std::array<row, states>{}));
}

struct {
  long cases = 0, with_states = 0, against = 0, deadlocks = 0, moved = 0;
} seen;
random_test::merging_statistics merging_seen;

std::string problem(std::uint64_t seed) {
  const pt::program f = random_step(seed);
  if (f.error) return data::str(f.error.message);
  data::random r{seed * 31 + 7};
  static constexpr std::string_view names[] = {"m0", "m1"};
  static const pt::topology t{{"m0", {{"B", 2}}}, {"m1", {{"B", 1}}}};
  static const pt::pipeline_order* const orders[] = {&pt::gpipe, &pt::one_f_one_b, &pt::zb_h1,
                                                     &pt::circular, &pt::gpipe_1f1b_last};
  const auto cut = r.in(1, layers - 1);
  pt::pipeline_options options{.channels = {.capacity = static_cast<int>(r.in(1, 3))}};
  options.where.infer_transfers = true;
  static constexpr std::string_view parts[] = {"layers.0", "layers.1", "layers.2", "layers.3"};
  for (int i = 0; i < layers; ++i)
    options.where.names.push_back({parts[i], names[i < cut ? 0 : 1], i < cut ? 0 : 1});
  const auto by_microbatch = [](const pt::fragment_call& c) { return c.microbatch; };
  const pt::pipeline_order& order = *r.pick(orders);
  const auto built = [&]() -> pt::pipelined {
    try {
      return pt::pipeline(f, t, order, options);
    } catch (const pt::error& e) {
      if (e.code() == "O007") {
        ++seen.deadlocks;
        options.channels.capacity = pt::unbounded;
        return pt::pipeline(f, t, order, options);
      }
      if (e.code() != "O006") throw;
      ++seen.against;
      options.channels.capacity = pt::unbounded;
      return pt::pipeline(f, t, by_microbatch, options);
    }
  };
  try {
    const pt::pipelined p = built();
    ++seen.cases;
    seen.with_states += !p.next_slot.empty();
    seen.moved += static_cast<long>(p.transfers.size());
    if (const pt::verdict v = pt::prove(p); !v) return data::str(v.error.message);
    const auto x = data::arguments(f, seed);
    const pt::results expected = pt::evaluate(f, x);
    const auto is_expected = [&](const pt::results& y) { return pt::equal(y, expected); };
    if (!is_expected(pt::emulate(p, x))) return "another result";
    if (!is_expected(pt::emulate(p, pt::mesh_mode::threads, x))) return "another result in threads";
    if (const std::string fault = exported_check::fault_of(p); !fault.empty()) return fault;
    random_test::merging_laws laws(x, is_expected, r, seed, merging_seen);
    if (const std::string wrong = laws.problem_of_peak(p); !wrong.empty()) return wrong;
    return laws.problem_of_units(p);
  } catch (const pt::error& e) {
    return std::string(order.name) + ": " + e.what();
  }
}

}  // namespace

TEST_CASE("random pipelines that carry states compute the results of one device") {
  random_test::for_each_seed(300, problem);
  MESSAGE(seen.cases, " pipelines, ", seen.with_states, " with states, ", seen.against,
          " whose order contradicts them, ", seen.deadlocks, " that need more capacity, ",
          seen.moved, " transfers; ", merging_seen);
  CHECK(merging_seen.not_proved == 0);
}
