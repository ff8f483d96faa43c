// The loops of partitioned programs run in sequence: equal to the source and to the emulated mesh.
#include <doctest/doctest.h>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

/// Checks all three on small integers, on which they are exact.
void check_equal(const pt::program& p, const auto& tactics) {
  const auto inputs = data::arguments(p);
  const auto r = pt::partition(p, mesh, tactics);
  const auto whole = pt::evaluate(p, inputs);
  CHECK(pt::equal(pt::temporal(r, inputs), whole));
  CHECK(pt::equal(pt::emulate(r, inputs), whole));
}

}  // namespace

// PartIR, listings 1 to 8: the chain of products under BP, MP and Z3.
TEST_CASE("the loops of the paper's chain compute the results of the source") {
  const auto p = pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                           pt::input<float, 16, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  const auto BP = pt::manual("B", {{"x", 0}}), MP = pt::manual("M", {{"w1", 1}});
  const auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}});
  check_equal(p, pt::schedule());
  check_equal(p, pt::schedule(BP));
  check_equal(p, pt::schedule(BP, MP));
  check_equal(p, pt::schedule(BP, MP, Z3));
  check_equal(p, pt::schedule(MP, pt::manual("B", {{"w1", 1}})));  // a nest over one dimension
}
TEST_CASE("sums, extrema, offsets and deep tilings in sequence") {
  const auto p = pt::trace(
      [](auto x) {
        const auto i = pt::iota<float, 0>(x, 16, 8);
        return std::tuple{sum<0>(x), reduce_max<0>(x), reduce_min<0>(x), argmax<1>(x), x * i};
      },
      pt::input<float, 16, 8>("x"));
  check_equal(p, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"x", 0}})));
  check_equal(p, pt::schedule(pt::manual("B", {{"x", 1}}), pt::manual("M", {{"x", 0}})));
}
TEST_CASE("programs with loops and branches of their own in sequence") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        const auto h = pt::for_loop(
            0, 3, [&](auto, auto h) { return h + matmul(h, w); }, x);
        const auto [c, ys] = pt::scan(
            [](auto c, auto row) {
              return std::pair{c + row, sum(row)};
            },
            sum<0>(x), h);
        const auto last = pt::while_loop([](auto v) { return sum(v * v) < 1000; },
                                         [](auto v) { return v * 2 + 1; }, c);
        return std::tuple{h, ys, last,
                          pt::cond(
                              sum(x) > 0, [](auto v) { return v; }, [](auto v) { return -v; }, c)};
      },
      pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"));
  check_equal(p, pt::schedule(pt::manual("B", {{"x", 0}})));
  check_equal(p, pt::schedule(pt::manual("M", {{"w", 1}}), pt::manual("B", {{"x", 0}})));
}
TEST_CASE("temporal accepts the arguments that evaluate accepts, and refuses others") {
  const auto p = pt::trace([](auto x) { return x + x; }, pt::input<float, 8>("x"));
  const pt::core_program core(p, mesh);
  CHECK_THROWS_WITH(pt::temporal(core), "R001 run: 0 arrays given; the program has 1 inputs: x");
  const pt::array wrong(pt::tensor_type{pt::dtype::f32, {4}});
  CHECK_THROWS_WITH(pt::temporal(core, wrong),
                    "R002 run: the array for input \"x\" has shape [4]; [8] is needed");
  CHECK(pt::temporal(core, data::arguments(p)).names() == std::vector<std::string>{"result"});
}
