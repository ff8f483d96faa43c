/// Programs compiled into the binary (`compiled`) against `emulate` and `evaluate`, bit by bit.
#include <doctest/doctest.h>

#include <partita/code.hpp>
#include <partita/cpu.hpp>
#include <partita/partita.hpp>

#include "../allocations.hpp"
#include "../data.hpp"

namespace {

namespace pt = partita;
using pt::input, pt::manual;

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = manual("B", {{"x", 0}}, "BP");
constexpr auto Z3 = manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");
constexpr auto MP = manual("M", {{"w1", 1}}, "MP");

constexpr auto sharded_step = [] {
  const auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
  return pt::partition(pt::trace(mlp, input<float, 256, 8>("x"), input<float, 8, 16>("w1"),
                                 input<float, 16, 8>("w2")),
                       mesh, pt::schedule(BP, MP, Z3));
};
constexpr auto training_step = [] {
  const auto train = [](auto w1, auto w2, auto x, auto y) {
    const auto loss = [&](const auto& p) {
      const auto& [a, b] = p;
      return pt::nn::mean_squared_error(matmul(tanh(matmul(x, a)), b), y);
    };
    const auto [value, g] = pt::value_and_grad(loss, std::tuple{w1, w2});
    const auto& [g1, g2] = g;
    return std::tuple{pt::output("w1", w1 - 0.01 * g1), pt::output("w2", w2 - 0.01 * g2),
                      pt::output("loss", value)};
  };
  return pt::trace(train, input<float, 5, 7>("w1"), input<float, 7, 5>("w2"),
                   input<float, 3, 5>("x"), input<float, 3, 5>("y"));
};
/// Other element types, a kernel, an input and a value that are outputs twice.
constexpr auto mixed = [] {
  const auto model = [](auto x, auto h, auto n) {
    const auto large = x > 0.5;
    const auto y = pt::select(large, exp(x) * 2 - x / 3, -logistic(x));
    const auto half = h * h + h;
    return std::tuple{
        y,
        y,
        x,
        half,
        sum<0>(h),
        (n + 1) * n,
        pt::all<1>(large),
        (!(large & (x < 2))) | large,
        pt::sort<1>(x),
        reduce_max<0>(pt::broadcast_in_dim<1>(sum<0>(x), pt::extent<4>{}, pt::extent<7>{}) * x)};
  };
  return pt::trace(model, input<float, 4, 7>("x"), input<pt::bf16, 3, 5>("h"),
                   input<std::int32_t, 9>("n"));
};
/// A dimension that the axis does not divide: masks from the number of the device.
constexpr auto uneven = [] {
  const auto model = [](auto x) { return std::tuple{sum<0>(x), reduce_max<0>(x), tanh(x)}; };
  return pt::partition(pt::trace(model, input<float, 6, 3>("x")), pt::mesh{{"B", 4}},
                       pt::schedule(manual("B", {{"x", 0}}, "rows", pt::uneven::pad)));
};

template <auto Thunk>
void check_against(const pt::program& source, const pt::results& want,
                   const std::vector<pt::array>& x) {
  pt::compiled<Thunk, true> run;
  pt::compiled<Thunk> fast;
  std::vector<const pt::array*> in;
  for (const auto& a : x) in.push_back(&a);
  const auto in_span = std::span<const pt::array* const>(in).template first<run.input_count>();
  for (int again = 0; again < 3; ++again) {
    const auto got = run(in_span), close = fast(in_span);
    REQUIRE(static_cast<int>(got.size()) == source.output_count());
    for (int i = 0; i < source.output_count(); ++i)
      CHECK(pt::equal(got[static_cast<std::size_t>(i)], want[i]));
    for (int i = 0; i < source.output_count(); ++i)
      CHECK(pt::all_close(close[static_cast<std::size_t>(i)], want[i]));
  }
}

}  // namespace

TEST_CASE("compiled programs give the bits of the interpreter") {
  {
    const pt::partitioned p = sharded_step();
    const auto x = data::arguments(p.source);
    check_against<sharded_step>(p.source, pt::emulate(p, x), x);
  }
  {
    const pt::partitioned p = uneven();
    const auto x = data::arguments(p.source);
    check_against<uneven>(p.source, pt::emulate(p, x), x);
  }
  const pt::program f = training_step(), g = mixed();
  const auto x = data::arguments(f), y = data::arguments(g);
  check_against<training_step>(f, pt::evaluate(f, x), x);
  check_against<mixed>(g, pt::evaluate(g, y), y);
}
TEST_CASE("a compiled program allocates nothing") {
  pt::compiled<training_step> run;
  const auto x = data::arguments(training_step());
  auto state = run(x[0], x[1], x[2], x[3]);
  state = run(state[0], state[1], x[2], x[3]);
  const std::size_t before = allocations::bytes();
  for (int k = 0; k < 5; ++k) state = run(state[0], state[1], x[2], x[3]);
  CHECK(allocations::bytes() == before);
}
TEST_CASE("outputs of a compiled program may be its next inputs") {
  pt::compiled<training_step, true> run;
  const pt::program f = training_step();
  std::vector<pt::array> x = data::arguments(f);
  pt::array w1 = x[0], w2 = x[1];
  for (int k = 0; k < 5; ++k) {
    const pt::results want = pt::evaluate(f, x);
    const auto got = run(w1, w2, x[2], x[3]);
    w1 = got[0], w2 = got[1];
    for (int i = 0; i < 3; ++i) CHECK(pt::equal(got[static_cast<std::size_t>(i)], want[i]));
    x[0] = want[0], x[1] = want[1];
  }
}
TEST_CASE("compiled programs refuse other arrays") {
  pt::compiled<training_step> run;
  const pt::array w1(pt::tensor_type{pt::dtype::f32, {5, 7}}),
      w2(pt::tensor_type{pt::dtype::f32, {7, 5}}), x(pt::tensor_type{pt::dtype::f32, {3, 5}}),
      wide(pt::tensor_type{pt::dtype::f64, {3, 5}});
  CHECK_THROWS_WITH(run(w2, w2, x, x),
                    "R002 run: the array for input \"w1\" has shape [7, 5]; [5, 7] is needed");
  CHECK_THROWS_WITH(run(w1, w2, x, wide),
                    "R003 run: the array for input \"y\" has element type f64; f32 is needed");
}
