// The interface that all backends share, on emulated devices.
#include <doctest/doctest.h>

#include <tuple>
#include <utility>
#include <vector>

#include <partita/emulated.hpp>
#include <partita/partita.hpp>

#include "../data.hpp"

namespace pt = partita;
using pt::input, pt::manual, pt::schedule;

namespace {

static_assert(pt::BackendExecutable<pt::emulated::executable>);

constexpr auto model = [](auto w, auto x) {
  const auto loss = [&](auto v) { return sum(pt::tanh(matmul(x, v))); };
  return std::tuple{pt::output("w", w - 0.125 * pt::grad(loss, w)), pt::output("loss", loss(w))};
};
pt::partitioned step() {
  return pt::partition(
      pt::trace(model, input<float, 7, 8>("w"), input<float, 8, 7>("x")), pt::mesh{{"B", 4}},
      schedule(manual("B", {{"x", 0}}, "BP"), manual("B", {{"w", 0}}, "Z3", pt::uneven::pad)));
}

/// Three steps on any backend.
template <pt::BackendExecutable Executable, class State>
std::pair<pt::array, pt::array> train(const Executable& run, State state, const pt::array& x) {
  pt::array loss;
  for (int i = 0; i < 3; ++i) {
    const State out = run(state, x);
    loss = run.whole(out["loss"]);
    state = out.next();
  }
  return {run.whole(state["w"]), loss};
}

}  // namespace

TEST_CASE("a state stays between steps, and is placed from arrays or shard by shard") {
  const auto p = step();
  data::random r{5};
  const pt::array w = data::integers(p.source.input_type(0), r, -2, 2),
                  x = data::integers(p.source.input_type(1), r, -2, 2);
  pt::array want = w, loss;
  for (int i = 0; i < 3; ++i) {
    const pt::results out = pt::emulate(p, want, x);
    want = out["w"];
    loss = out["loss"];
  }
  const pt::emulated::executable run(p);
  const auto [made, last] = train(run, run.place(w), x);
  CHECK(pt::equal(made, want));
  CHECK(pt::equal(last, loss));

  int asked = 0;
  const auto placed = run.place([&](const pt::shard_request& request) {
    ++asked;
    CHECK(request.name == "w");
    CHECK(request.local.shape[0] == (request.begin.at[0] == 6 ? 1 : 2));  // 7 rows over 4 devices
    pt::array shard(request.local);
    for (std::int64_t i = 0; i < shard.size(); ++i)
      shard.mutable_data<float>()[i] = w.data<float>()[request.begin.at[0] * 8 + i];
    return shard;
  });
  CHECK(asked == 4);
  CHECK(pt::equal(train(run, placed, x).first, want));
}

TEST_CASE("mistakes with states are errors with the name of the backend") {
  const auto p = step();
  const pt::emulated::executable run(p);
  const pt::array w(p.source.input_type(0)), x(p.source.input_type(1));
  const auto out = run(w, x);
  CHECK_THROWS_WITH_AS(run(out, x), doctest::Contains("J005 emulated: the argument holds"),
                       pt::error);
  CHECK_THROWS_WITH_AS(run(w), doctest::Contains("R001 run: no array is given for 1 input: x"),
                       pt::error);
  CHECK_THROWS_WITH_AS(run(w, w), doctest::Contains("R002 run: the array for input \"x\""),
                       pt::error);
  CHECK_THROWS_WITH_AS(static_cast<void>(out["v"]), doctest::Contains("no value named \"v\""),
                       pt::error);
}
