// Sums with several uses: which are reduced, which are scattered, and which are sliced before.
#include "printed.hpp"

#include <partita/prove/prove.hpp>
#include <partita/run/refute.hpp>

namespace {

constexpr pt::mesh mesh{{"B", 4}};

struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<double, 8, 16>, w1),
                           (pt::tensor<double, 16, 8>, w2));
};
constexpr auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP");
constexpr auto Z2 =
    pt::manual("B", {{"params", pt::replicated}, {"momentum", pt::first_divisible_dim}}, "Z2");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"momentum", pt::first_divisible_dim}}, "Z3");

/// Momentum of gradients that are clipped by the global norm.
template <bool Clips, bool Tags = false>
constexpr auto step = [](const auto& p, const auto& m, const auto& x, const auto& y) {
  auto [loss, g] = pt::value_and_grad(
      [&](const auto& p) {
        return pt::nn::mean_squared_error(matmul(tanh(matmul(x, p.w1)), p.w2), y);
      },
      p);
  if constexpr (Tags) g = pt::tag("g", g);
  if constexpr (Clips) g = pt::clip_by_global_norm(g, 1.0).first;
  const auto next = pt::map_leaves([](auto m, auto g) { return 0.5 * m + g; }, m, g);
  return std::tuple{
      pt::output("params", pt::map_leaves([](auto p, auto m) { return p - m; }, p, next)),
      pt::output("momentum", next), pt::output("loss", loss)};
};
template <class Step>
constexpr pt::program traced(const Step& s) {
  return pt::trace(s, pt::input<params>("params"), pt::input<params>("momentum"),
                   pt::input<double, 16, 8>("x"), pt::input<double, 16, 8>("y"));
}

std::vector<pt::array> reals(const pt::program& p) {
  data::random r{5};
  std::vector<pt::array> list;
  for (int i = 0; i < p.input_count(); ++i)
    list.push_back(data::fill(
        p.input_type(i), [&](std::int64_t) { return static_cast<double>(r.in(-100, 100)) / 64; }));
  return list;
}
void check_run(const pt::partitioned& p) {
  const auto x = reals(p.source);
  CHECK(pt::all_close(pt::emulate(p, x), pt::evaluate(p.source, x), 1e-12, 1e-12));
  CHECK(!pt::verify(p.device));
  const pt::verdict v = pt::prove(p);
  CHECK_MESSAGE(v.proved, str(v.error.message));
}

}  // namespace

TEST_CASE("ZeRO with clipping sends one number more than without") {
  const auto plain = traced(step<false>), clipped = traced(step<true>),
             tagged = traced(step<true, true>);
  for (const auto* f : {&plain, &clipped, &tagged}) {
    const bool clips = f != &plain;
    for (const bool whole : {false, true}) {
      const auto p = whole ? pt::partition(*f, mesh, pt::schedule(BP, Z2))
                           : pt::partition(*f, mesh, pt::schedule(BP, Z3));
      // Parameters: w1 once and w2 twice, or both in the layout in which they leave. Reduced: loss
      // and squares.
      CHECK(p.collectives == pt::collectives{.all_gather = whole ? 2 : 3,
                                             .all_reduce = clips ? 2 : 1,
                                             .reduce_scatter = 2});
      check_run(p);
      const auto without = whole ? pt::partition(plain, mesh, pt::schedule(BP, Z2))
                                 : pt::partition(plain, mesh, pt::schedule(BP, Z3));
      CHECK(pt::summarize(p).collective_bytes - pt::summarize(without).collective_bytes ==
            (clips ? 6 : 0));
    }
  }
}

TEST_CASE("a sum is all-reduced if another use needs it replicated or makes as many numbers") {
  const auto of = [](const auto& other) {
    return pt::trace(
        [&](auto x, auto w, auto m) {
          const auto g = pt::einsum<"bi,bj->ij">(x, w);
          return std::tuple{pt::output("m", m + g), pt::output("other", other(g))};
        },
        pt::input<double, 16, 8>("x"), pt::input<double, 16, 8>("w"), pt::input<double, 8, 8>("m"));
  };
  const auto collectives = [](const pt::program& f) {
    const auto p = pt::partition(
        f, mesh, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"m", 0}})));
    check_run(p);
    return p.collectives;
  };
  // The program returns it replicated.
  CHECK(collectives(of([](auto g) { return tanh(g); })) == pt::collectives{.all_reduce = 1});
  // Along the other dimension: each block has all terms.
  CHECK(collectives(of([](auto g) { return pt::sum<1>(g * g); })) ==
        pt::collectives{.all_reduce = 1});
  // Row sums, and the total.
  CHECK(collectives(of([](auto g) { return pt::sum<0>(g * g); })) ==
        pt::collectives{.all_reduce = 1, .reduce_scatter = 1});
  CHECK(collectives(of([](auto g) { return pt::reduce_max(pt::abs(g)); })) ==
        pt::collectives{.all_reduce = 1, .reduce_scatter = 1});
  // Three such sums are more than half of it: 3 * 8 of 64 numbers are not, 5 * 8 are.
  CHECK(collectives(of([](auto g) {
          return pt::sum<0>(g) + pt::sum<0>(exp(g)) + pt::sum<0>(g * g);
        })).reduce_scatter == 1);
  CHECK(collectives(of([](auto g) {
          return pt::stack<0>(pt::sum<0>(g), pt::sum<0>(exp(g)), pt::sum<0>(g * g),
                              pt::sum<0>(cos(g)), pt::sum<0>(sin(g)));
        })).reduce_scatter == 0);
}

TEST_CASE("a scatter into replicated rows is sliced before it is reduced, if all uses slice it") {
  // The terms of every device go to any row.
  const pt::mesh two{{"B", 2}, {"M", 4}};
  const auto f = pt::trace(
      [](auto rows, auto x, auto m) {
        const auto y = pt::scatter_add(rows, x, 8);
        return std::tuple{pt::output("a", m + y), pt::output("b", m * y)};
      },
      pt::input<std::int32_t, 16>("rows"), pt::input<double, 16, 8>("x"),
      pt::input<double, 8, 8>("m"));
  const auto p =
      pt::partition(f, two, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"m", 0}})));
  CHECK(p.collectives == pt::collectives{.all_reduce = 1});
  CHECK(pt::summarize(p).collective_bytes == 2 * 8 * 8 * 8 / 4 / 2);
  check_run(p);
}

TEST_CASE("uses that slice a sum along different dimensions get their blocks from a scatter") {
  const auto f = pt::trace(
      [](auto x, auto w, auto m, auto n) {
        const auto g = pt::einsum<"bi,bj->ij">(x, w);
        return std::tuple{pt::output("m", m + g), pt::output("n", n + g)};
      },
      pt::input<double, 16, 8>("x"), pt::input<double, 16, 8>("w"), pt::input<double, 8, 8>("m"),
      pt::input<double, 8, 8>("n"));
  const auto p = pt::partition(
      f, mesh, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"m", 0}, {"n", 1}})));
  check_run(p);
  CHECK(p.collectives == pt::collectives{.reduce_scatter = 1, .all_to_all = 1});
}

TEST_CASE("sums stay pending through linear ops, up to the op with the fewest numbers") {
  const auto of = [](const auto& f) {
    return pt::trace(
        [&](auto x, auto w, auto u) {
          return pt::output("y", f(pt::einsum<"bi,bj->ij">(x, w), pt::einsum<"bi,bj->ij">(x, u)));
        },
        pt::input<double, 16, 8>("x"), pt::input<double, 16, 4>("w"),
        pt::input<double, 16, 4>("u"));
  };
  const auto sent = [](const pt::program& f, std::int64_t reduces) {
    const auto p = pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
    check_run(p);
    CHECK(p.collectives == pt::collectives{.all_reduce = reduces});
    return pt::summarize(p).collective_bytes;
  };
  constexpr auto reduced = [](std::int64_t numbers) { return 2 * 8 * numbers * 3 / 4; };
  // A row, a column and the total of 8 x 4.
  CHECK(sent(of([](auto a, auto) { return pt::sum<0>(a); }), 1) == reduced(4));
  CHECK(sent(of([](auto a, auto) { return pt::sum<0>(-pt::transpose<1, 0>(a)); }), 1) ==
        reduced(8));
  CHECK(sent(of([](auto a, auto) { return pt::mean(0.5 * a) * 3.0; }), 1) == reduced(1));
  // Two sums become one after signs and factors.
  CHECK(sent(of([](auto a, auto b) { return 0.25 * a - (-b); }), 1) == reduced(32));
  CHECK(sent(of([](auto a, auto b) { return pt::sum<1>(2.0 * a + pt::reshape<8, 4>(b)); }), 1) ==
        reduced(8));
  // A sum with a nonlinear use, or with two uses, is reduced at its op.
  CHECK(sent(of([](auto a, auto) { return pt::sum<0>(exp(a)); }), 1) == reduced(32));
  CHECK(sent(of([](auto a, auto) { return pt::reduce_max<0>(a); }), 1) == reduced(32));
  CHECK(sent(of([](auto a, auto) { return pt::sum<0>(a) + a; }), 1) == reduced(32));
  CHECK(sent(of([](auto a, auto b) { return pt::sum<0>(a * b); }), 2) == 2 * reduced(32));
}

TEST_CASE("sums stay pending through products with other values, selections and wider types") {
  const auto of = [](const auto& f) {
    return pt::trace(
        [&](auto x, auto w, auto u, auto m, auto q) {
          const auto a = pt::einsum<"bi,bj->ij">(x, w), b = pt::einsum<"bi,bj->ij">(x, u);
          return pt::output("y", f(a, b, m, q));
        },
        pt::input<float, 16, 8>("x"), pt::input<float, 16, 4>("w"), pt::input<float, 16, 4>("u"),
        pt::input<float, 8, 4>("m"), pt::input<bool, 8, 4>("q"));
  };
  const auto sent = [](const pt::program& f, std::int64_t reduces, bool cut = false) {
    const auto x = pt::manual("B", {{"x", 0}}), m = pt::manual("B", {{"m", 0}});
    const auto p =
        cut ? pt::partition(f, mesh, pt::schedule(x, m)) : pt::partition(f, mesh, pt::schedule(x));
    const auto in = pt::inputs_of_seed(f, 5);
    CHECK(pt::all_close(pt::emulate(p, in), pt::evaluate(f, in), 1e-4, 1e-4));
    const pt::verdict v = pt::prove(p);
    CHECK_MESSAGE(v.proved, str(v.error.message));
    CHECK(p.collectives.all_reduce == reduces);
    return pt::summarize(p).collective_bytes;
  };
  constexpr auto reduced = [](std::int64_t numbers) { return 2 * 4 * numbers * 3 / 4; };
  const auto zero = [](auto x) { return pt::full_like(x, 0); };
  // One number, a row, and 8 x 4 once instead of twice.
  CHECK(sent(of([](auto a, auto, auto m, auto) { return pt::sum(m * a); }), 1) == reduced(1));
  CHECK(sent(of([](auto a, auto, auto m, auto) { return pt::sum<0>(a * m); }), 1) == reduced(4));
  CHECK(sent(of([](auto a, auto, auto, auto) { return pt::sum<0>(a / 3.f); }), 1) == reduced(4));
  // A divisor may be 0: if the terms 3 and 0 make a sum of 3, 3 / 0 + 0 / 0 is NaN, not infinity.
  CHECK(sent(of([](auto a, auto, auto m, auto) { return pt::sum<0>(a / m); }), 1) == reduced(32));
  CHECK(sent(of([](auto a, auto b, auto m, auto) { return m * a + b * m; }), 1) == reduced(32));
  CHECK(sent(of([&](auto a, auto b, auto, auto q) {
               return select(q, a, zero(a)) - select(q, zero(a), b);
             }),
             1) == reduced(32));
  CHECK(sent(of([&](auto a, auto, auto, auto q) { return pt::sum<1>(select(q, zero(a), -a)); }),
             1) == reduced(8));
  // In twice the bytes, a row is less than 8 x 4; the sum of two such is not.
  constexpr auto wide = [](auto x) { return pt::convert<double>(x); };
  CHECK(sent(of([&](auto a, auto, auto, auto) { return pt::sum<0>(wide(a)); }), 1) ==
        2 * reduced(4));
  CHECK(sent(of([&](auto a, auto b, auto, auto) { return wide(a) + wide(b); }), 2) ==
        2 * reduced(32));
  // One number is less than the value that it is multiplied with, also if that product is summed.
  CHECK(sent(of([](auto a, auto, auto m, auto) { return pt::sum<0>(m * pt::sum(a)); }), 1) ==
        reduced(1));
  CHECK(sent(of([](auto a, auto b, auto m, auto) { return pt::sum(a) * m + pt::sum(b) * m; }), 2) ==
        2 * reduced(1));
  // A sharded factor needs a block of the sum; a product of sums is not linear.
  CHECK(sent(of([](auto a, auto b, auto m, auto) { return m * a + b; }), 0, true) == reduced(32));
  CHECK(sent(of([](auto a, auto b, auto, auto) { return pt::sum(a * b); }), 2) == 2 * reduced(32));
}
