// Loops and branches at compile time: types, and strategies that are checked through them.
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");

// The README's loop.
constexpr auto six_blocks = [](auto x, auto w1, auto w2) {
  return pt::for_loop(
      0, 6, [&](auto, auto h) { return h + matmul(tanh(matmul(h, w1)), w2); }, x);
};
constexpr auto step = [] {
  const auto f = pt::trace(six_blocks, pt::input<float, 8, 4>("x"), pt::input<float, 4, 16>("w1"),
                           pt::input<float, 16, 4>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP));
};
static_assert(pt::check<step>.collectives == pt::collectives{.all_reduce = 6});
static_assert(pt::check<step>.collectives_as_written == pt::collectives{.all_reduce = 1});
static_assert(pt::check<step>.tactic("MP").collectives_as_written ==
              pt::check<step>.collectives_as_written);
static_assert(pt::check<step>.input("w2").local_shape == pt::shape{8, 4});
static_assert(pt::check<step>.output("result").local_shape == pt::shape{2, 4});

// The body names a structured binding in its capture list: Clang 19 accepts no other capture of one
// in a constant expression.
constexpr auto noisy = [](auto key, auto x) {
  const auto [a, b] = pt::split<2>(key);
  const auto body = [&, a = a](auto, auto h) { return h + pt::normal<float>(a, h); };
  return pt::for_loop(0, 3, body, x) + pt::normal<float>(b, x);
};
constexpr auto noisy_step = [] {
  const auto f = pt::trace(noisy, pt::input<std::int64_t>("key"), pt::input<float, 8, 4>("x"));
  return pt::partition(f, mesh, pt::schedule(BP));
};
static_assert(pt::check<noisy_step>.collectives.total() == 0);

// A loop in a loop, as in serving: a step per token, a step per layer, and a sum before both.
constexpr auto tokens = [](auto x, auto w1, auto w2) {
  const auto block = [&](auto, auto h) { return h + matmul(tanh(matmul(h, w1)), w2); };
  return pt::for_loop(
      0, 5, [&](auto, auto h) { return pt::for_loop(0, 3, block, h); }, block(x, x));
};
constexpr auto serving = [] {
  const auto f = pt::trace(tokens, pt::input<float, 8, 4>("x"), pt::input<float, 4, 16>("w1"),
                           pt::input<float, 16, 4>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP));
};
static_assert(pt::check<serving>.collectives == pt::collectives{.all_reduce = 1 + 5 * 3});
static_assert(pt::check<serving>.collectives_as_written == pt::collectives{.all_reduce = 2});
static_assert(pt::check<serving>.tactic("BP").collectives_as_written.total() == 0);

// A training step over stacked layers: each layer's gradient is summed once per layer.
constexpr auto layers = [](auto x, auto w1, auto w2) {
  const auto loss = [&](const auto& w) {
    const auto [h, none] = pt::scan(
        [](auto c, const auto& each) {
          return std::pair{c + matmul(tanh(matmul(c, std::get<0>(each))), std::get<1>(each)),
                           pt::nothing{}};
        },
        x, w);
    return sum(h * h);
  };
  const auto [value, g] = pt::value_and_grad(loss, std::tuple{w1, w2});
  return std::tuple{pt::output("g1", std::get<0>(g)), pt::output("g2", std::get<1>(g)),
                    pt::output("loss", value)};
};
constexpr auto training = [] {
  const auto f = pt::trace(layers, pt::input<float, 8, 4>("x"), pt::input<float, 3, 4, 16>("w1"),
                           pt::input<float, 3, 16, 4>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, pt::manual("M", {{"w1", 2}}, "MP")));
};
// Data parallelism: two weights in each of three layers, and the loss. Megatron: two sums per
// layer, one forward and one backward; the sum of the recomputed body is not needed.
static_assert(pt::check<training>.tactic("BP").collectives ==
              pt::collectives{.all_reduce = 3 * 2 + 1});
static_assert(pt::check<training>.collectives == pt::collectives{.all_reduce = 7 + 3 * 2});
static_assert(pt::check<training>.tactic("BP").collectives_as_written ==
              pt::collectives{.all_reduce = 2 + 1});
static_assert(pt::check<training>.collectives_as_written == pt::collectives{.all_reduce = 3 + 2});
static_assert(pt::check<training>.output("g1").local_shape == pt::shape{3, 4, 8});
static_assert(pt::check<training>.output("g2").local_shape == pt::shape{3, 8, 4});

// Types: a carried value keeps its type, a stacked value gains a dimension.
constexpr bool types = [] {
  pt::builder b;
  const auto in = [&]<std::int64_t... E>(pt::tensor<float, E...>) {
    return pt::tensor<float, E...>(&b,
                                   pt::ops::parameter(b, "", {pt::dtype::f32, pt::shape{E...}}));
  };
  const auto x = in(pt::tensor<float, 5, 3>());
  const auto [c, ys] = pt::scan(
      [](auto c, auto s) {
        return std::pair{c + sum(s), s * 2};
      },
      sum(x), x);
  static_assert(std::is_same_v<decltype(c), const pt::tensor<float>>);
  static_assert(std::is_same_v<decltype(ys), const pt::tensor<float, 5, 3>>);
  const auto chosen = pt::cond(
      sum(x) > 0, [](auto v) { return sum<1>(v); },
      [](auto v) { return v.context() ? sum<1>(-v) : sum<1>(v); }, x);
  static_assert(std::is_same_v<decltype(chosen), const pt::tensor<float, 5>>);
  return !b.failed();
}();
static_assert(types);

}  // namespace
