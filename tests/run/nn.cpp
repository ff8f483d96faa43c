// Building blocks of networks: attention from a cache, partitioned blocks, and errors that only the
// trace finds.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "../data.hpp"

namespace pt = partita;
namespace nn = partita::nn;
using pt::axes;
using pt::dyn;

namespace {

template <std::int64_t... E>
using t = pt::tensor<double, E...>;

std::vector<pt::array> values(const pt::program& p) {
  std::vector<pt::array> all;
  for (int k = 0; k < p.input_count(); ++k)
    all.push_back(data::fill(p.input_type(k), [&](std::int64_t i) {
      return std::sin(0.7 * static_cast<double>(i * i) + static_cast<double>(k));
    }));
  return all;
}

/// Checks that the emulated program gives the results of one device and has these collectives.
void check_emulated(const pt::program& p, const pt::mesh& m, const pt::collectives& expected,
                    const auto& tactics) {
  const auto inputs = values(p);
  const auto r = pt::partition(p, m, tactics);
  CHECK(data::str(pt::verify(r.device).message) == "");
  CHECK(r.core.conflicts.empty());
  CHECK(r.collectives == expected);
  // Sums of fewer than 100 binary64 numbers of magnitude 1, in another order.
  CHECK(pt::max_difference(pt::evaluate(p, inputs), pt::emulate(r, inputs)) < 1e-13);
}

/// Attention to a cache, one position after the other from position `First` on; the positions
/// before it are one block.
template <std::int64_t First>
auto decode(const auto& q, const auto& k, const auto& v, const auto& empty_keys,
            const auto& empty_values, const auto& prepare) {
  using Q = std::remove_cvref_t<decltype(q)>;
  using K = std::remove_cvref_t<decltype(k)>;
  using V = std::remove_cvref_t<decltype(v)>;
  constexpr auto size = [](const pt::shape& s, int d) { return static_cast<int>(s[d]); };
  constexpr pt::shape qs = Q::static_type.shape, ks = K::static_type.shape,
                      vs = V::static_type.shape;
  nn::kv_cache<K, V> cache{empty_keys, empty_values};
  const auto head = [](const auto& x) { return pt::slice<1, 0, First>(x); };
  cache = nn::append(cache, prepare(head(k), 0), head(v), 0);
  const auto begun = nn::attend(prepare(head(q), 0), cache, 0);
  const auto zero = [](const auto& i) { return i * 0; };
  const auto out = pt::concatenate<1>(begun, pt::slice<1, First, pt::ops::whole>(q) * 0);
  const auto [last, all] = pt::for_loop(
      First, qs[1],
      [&](const auto& i, const auto& carried) {
        const auto& [filled, so_far] = carried;
        const auto o = zero(i);
        const auto row_k =
            pt::dynamic_slice<axes<size(ks, 0), 1, size(ks, 2), size(ks, 3)>>(k, o, i, o, o);
        const auto row_v =
            pt::dynamic_slice<axes<size(vs, 0), 1, size(vs, 2), size(vs, 3)>>(v, o, i, o, o);
        const auto row_q =
            pt::dynamic_slice<axes<size(qs, 0), 1, size(qs, 2), size(qs, 3)>>(q, o, i, o, o);
        const auto next = nn::append(filled, prepare(row_k, i), row_v, i);
        const auto y = nn::attend(prepare(row_q, i), next, i);
        return std::tuple{next, pt::dynamic_update_slice(so_far, y, o, i, o, o)};
      },
      std::tuple{cache, out});
  return all;
}

using queries = t<2, 6, 4, 4>;
using keys = t<2, 6, 2, 4>;

/// Position by position, with rotary embedding of queries and keys.
constexpr auto serve = [](const auto& q, const auto& k, const auto& v, const auto& empty) {
  return decode<2>(q, k, v, empty, empty, [](const auto& x, const auto& position) {
    return nn::rotary<nn::rotary_pairs::halves>(x, position);
  });
};

pt::program serving() {
  return pt::trace(
      [](const auto& q, const auto& k, const auto& v, const auto& empty) {
        const auto turned = [](const auto& x) {
          return nn::rotary<nn::rotary_pairs::halves>(x, 0);
        };
        const auto whole = nn::attention(turned(q), turned(k), v, {.causal = true});
        return std::tuple{pt::output("served", serve(q, k, v, empty)), pt::output("whole", whole)};
      },
      pt::input<queries>("q"), pt::input<keys>("k"), pt::input<keys>("v"),
      pt::input<keys>("cache"));
}

}  // namespace

TEST_CASE("attention from a cache, step by step, equals causal attention") {
  const auto r = pt::evaluate(serving(), values(serving()));
  // The initial contents of the cache do not matter: they are overwritten before they are read.
  CHECK(pt::max_difference(r["served"], r["whole"]) < 1e-14);
  CHECK(pt::max_difference(r["whole"], pt::array(r["whole"].type())) > 0.5);
}

TEST_CASE("attention from a cache, with batches and heads on other devices") {
  const auto batch = pt::manual("B", {{"q", 0}, {"k", 0}, {"v", 0}, {"cache", 0}});
  const auto heads = pt::manual("M", {{"q", 2}, {"k", 2}, {"v", 2}, {"cache", 2}});
  for (const auto& m :
       {pt::mesh{{"B", 2}, {"M", 2}}, pt::mesh{{"B", 1}, {"M", 2}}, pt::mesh{{"B", 2}, {"M", 1}}}) {
    check_emulated(serving(), m, {}, pt::schedule(batch, heads));
    check_emulated(serving(), m, {}, pt::schedule(heads, batch));
  }
}

TEST_CASE("grouped and multi-query attention with projections, with heads on other devices") {
  const auto block = [](const auto& x, const auto& wq, const auto& wk, const auto& wv,
                        const auto& out) {
    const auto project = [&](const auto& w) {
      return pt::dot_general<axes<>, axes<>, axes<2>, axes<0>>(x, w);  // (b, s, h, k)
    };
    const auto y = nn::attention(project(wq), project(wk), project(wv), {.causal = true});
    const auto kept = nn::dropout(y, pt::random_key(x, 3), 0.25);
    return pt::dot_general<axes<>, axes<>, axes<2, 3>, axes<0, 1>>(kept, out);
  };
  const auto traced = [&]<class W>(std::type_identity<W>) {
    return pt::trace(block, pt::input<t<4, 5, 6>>("x"), pt::input<t<6, 8, 4>>("q"),
                     pt::input<W>("k"), pt::input<W>("v"), pt::input<t<8, 4, 6>>("out"));
  };
  const auto batch = pt::manual("B", {{"x", 0}});
  const pt::mesh m{{"B", 2}, {"M", 2}}, wide{{"B", 4}, {"M", 1}};
  const auto grouped = traced(std::type_identity<t<6, 4, 4>>{});
  const auto heads = pt::manual("M", {{"q", 1}, {"k", 1}, {"v", 1}});
  check_emulated(grouped, m, {.all_reduce = 1}, pt::schedule(batch, heads));
  check_emulated(grouped, wide, {}, pt::schedule(batch, heads));
  check_emulated(grouped, {{"B", 1}, {"M", 4}}, {.all_reduce = 1}, pt::schedule(batch, heads));
  // A single head of keys stays on every device.
  const auto multi = traced(std::type_identity<t<6, 1, 4>>{});
  const auto of_queries = pt::manual("M", {{"q", 1}});
  check_emulated(multi, m, {.all_reduce = 1}, pt::schedule(batch, of_queries));
  check_emulated(multi, {{"B", 1}, {"M", 8}}, {.all_reduce = 1}, pt::schedule(batch, of_queries));
}

TEST_CASE("a block of convolutions, with batches and channels on other devices") {
  const auto p = pt::trace(
      [](const auto& x, const auto& w1, const auto& scale, const auto& bias, const auto& w2) {
        constexpr pt::conv_options same{.padding = pt::same_padding};
        const auto h = nn::relu(nn::group_norm<4>(nn::conv<same>(x, w1, bias), scale, bias));
        constexpr nn::pool_options by_two{.size = {2, 2}, .strides = {2, 2}};
        const auto kept = nn::dropout(nn::max_pool<by_two>(h), pt::random_key(x, 1), 0.5);
        constexpr nn::pool_options mean{.size = {3, 2}, .padding = pt::same_padding};
        return pt::conv(nn::avg_pool<mean>(kept), w2);
      },
      pt::input<t<4, 6, 8, 3>>("x"), pt::input<t<3, 3, 3, 8>>("w1"), pt::input<t<8>>("scale"),
      pt::input<t<8>>("bias"), pt::input<t<2, 2, 8, 5>>("w2"));
  const auto batch = pt::manual("B", {{"x", 0}});
  const auto channels = pt::manual("M", {{"w1", 3}});
  check_emulated(p, {{"B", 2}, {"M", 2}}, {.all_reduce = 1}, pt::schedule(batch, channels));
  check_emulated(p, {{"B", 4}, {"M", 1}}, {}, pt::schedule(batch, channels));
  check_emulated(p, {{"B", 1}, {"M", 4}}, {.all_reduce = 1}, pt::schedule(batch, channels));
}

namespace {

/// Returns the error of tracing a model on inputs of dynamic extents.
template <class Model, class... Specs>
std::string refused(const Model& model, const pt::input_spec<Specs>&... inputs) {
  try {
    pt::trace(model, inputs...);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("invalid extents that are known when tracing are refused") {
  const auto attend = [](const auto& q, const auto& k) { return nn::attention(q, k, k); };
  const auto q = [](std::int64_t heads) { return pt::input<float, 2, 3, dyn, 8>("q", heads); };
  const auto k = [](std::int64_t heads) { return pt::input<float, 2, 5, dyn, 8>("k", heads); };
  CHECK(refused(attend, q(6), k(3)) == "no error");
  CHECK(refused(attend, q(6), k(4)) ==
        "S190 attention: 4 heads of keys tensor<2x5x4x8xf32> do not divide the 6 heads of queries "
        "tensor<2x3x6x8xf32>");
  CHECK(refused(attend, q(6), k(0)) ==
        "S190 attention: 0 heads of keys tensor<2x5x0x8xf32> do not divide the 6 heads of queries "
        "tensor<2x3x6x8xf32>");
  CHECK(refused([](const auto& a, const auto& b, const auto& c) { return nn::attention(a, b, c); },
                q(4), k(4), pt::input<float, 2, 5, dyn, 8>("v", 2)) ==
        "S190 attention: keys tensor<2x5x4x8xf32> have 4 heads, values tensor<2x5x2x8xf32> have 2");
  const auto masked = [](const auto& a, const auto& mask) { return nn::attention(a, a, a, mask); };
  CHECK(refused(masked, q(6), pt::input<bool, dyn, 3>("mask", 3)) == "no error");
  CHECK(refused(masked, q(6), pt::input<bool, dyn, 3>("mask", 2)) ==
        "S193 attention: mask tensor<2x3xi1> is not of i1 or does not broadcast to [2, 6, 3, 3], "
        "(batch, heads, queries, keys)");
  const auto turn = [](const auto& x) { return nn::rotary<nn::rotary_pairs::halves>(x, 0); };
  CHECK(refused(turn, pt::input<float, 3, 2, dyn>("x", 6)) == "no error");
  CHECK(refused(turn, pt::input<float, 3, 2, dyn>("x", 7)) ==
        "S191 rotary: dimension 2 of tensor<3x2x7xf32> has odd size 7; its elements are turned in "
        "pairs");
  const auto norm = [](const auto& x, const auto& s) { return nn::group_norm<4>(x, s, s); };
  CHECK(refused(norm, pt::input<float, 3, dyn>("x", 8), pt::input<float, dyn>("s", 8)) ==
        "no error");
  CHECK(refused(norm, pt::input<float, 3, dyn>("x", 6), pt::input<float, dyn>("s", 6)) ==
        "S192 group_norm: 4 groups do not divide dimension 1 of tensor<3x6xf32>, which has size 6");
}

TEST_CASE("a query that sees no key has equal weights") {
  const auto p = pt::trace(
      [](const auto& q, const auto& k) {
        return std::tuple{
            pt::output("none", nn::attention(q, k, k, {.causal = true, .offset = -9})),
            pt::output("mean", mean<1>(k))};
      },
      pt::input<float, 1, 2, 1, 3>("q"), pt::input<float, 1, 4, 1, 3>("k"));
  const auto r = pt::evaluate(p, values(p));
  for (int i = 0; i < 6; ++i)
    CHECK(r["none"].data<float>()[i] == doctest::Approx(r["mean"].data<float>()[i % 3]));
}

TEST_CASE("a mask broadcasts to (batch, heads, queries, keys)") {
  const auto p = pt::trace(
      [](const auto& q, const auto& k, const auto& seen) {
        const auto to = [&](auto batch, auto heads) {
          return pt::broadcast_in_dim<2, 3>(seen, batch, heads, pt::extent<3>{}, pt::extent<5>{});
        };
        const pt::extent<1> one;
        const auto of = [&](const auto& mask) { return nn::attention(q, k, k, mask); };
        return std::tuple{pt::output("matrix", of(seen)),
                          pt::output("one", of(to(one, one))),
                          pt::output("batch", of(to(2, one))),
                          pt::output("heads", of(to(one, 4))),
                          pt::output("dynamic", of(to(one, 1))),
                          pt::output("all", of(to(pt::extent<2>{}, pt::extent<4>{})))};
      },
      pt::input<float, 2, 3, 4, 6>("q"), pt::input<float, 2, 5, 2, 6>("k"),
      pt::input<bool, 3, 5>("seen"));
  auto inputs = values(p);
  data::random r{3};
  inputs[2] = data::integers(inputs[2].type(), r);
  const auto found = pt::evaluate(p, inputs);
  for (const auto& each : found) CHECK(pt::equal(each, found[0]));
  inputs[2] = data::integers(inputs[2].type(), r);
  CHECK(!pt::equal(pt::evaluate(p, inputs)[0], found[0]));
}

TEST_CASE("out of bounds: rows of a table, the end of a cache, windows of padding") {
  const auto p = pt::trace(
      [](const auto& table, const auto& block) {
        const auto rows = pt::iota<int, 0>(table, pt::extent<3>{}) * 5 - 2;  // -2, 3, 8
        nn::kv_cache<pt::tensor<float, 1, 4, 1, 2>> cache{block * 0, block * 0};
        const auto two = pt::slice<1, 0, 2>(block);
        constexpr nn::pool_options around{
            .size = {2}, .strides = {2}, .padding = pt::explicit_padding({2}, {0})};
        return std::tuple{pt::output("rows", nn::embedding(table, rows)),
                          pt::output("cache", nn::append(cache, two, two, 3)),
                          pt::output("mean", nn::avg_pool<around>(pt::reshape<1, 4, 2>(block)))};
      },
      pt::input<float, 5, 1>("table"), pt::input<float, 1, 4, 1, 2>("block"));
  const auto counted = [](auto i) { return i + 1.; };
  const auto r =
      pt::evaluate(p, data::fill(p.input_type(0), counted), data::fill(p.input_type(1), counted));
  const auto is = [&](const char* name, const std::vector<float>& expected) {
    const float* x = r[name].data<float>();
    CHECK(std::vector<float>(x, x + r[name].size()) == expected);
  };
  is("rows", {1, 4, 5});
  is("cache.keys", {0, 0, 0, 0, 1, 2, 3, 4});
  is("cache.values", {0, 0, 0, 0, 1, 2, 3, 4});
  CHECK(std::isnan(r["mean"].data<float>()[0]));
  CHECK(r["mean"].data<float>()[2] == 2);
}

TEST_CASE("products of rotated vectors depend on their distance; relu has slope 0 at 0") {
  const auto p = pt::trace(
      [](const auto& q, const auto& k) {
        const auto product = [&](int here, int there) {
          return sum(nn::rotary<nn::rotary_pairs::interleaved>(q, here) *
                     nn::rotary<nn::rotary_pairs::interleaved>(k, there));
        };
        return std::tuple{
            pt::output("near", product(3, 1)), pt::output("far", product(103, 101)),
            pt::output("other", product(3, 2)),
            pt::output("at_zero", pt::grad([](const auto& x) { return sum(nn::relu(x)); }, q * 0))};
      },
      pt::input<t<1, 1, 8>>("q"), pt::input<t<1, 1, 8>>("k"));
  const auto r = pt::evaluate(p, values(p));
  CHECK(r["near"].item<double>() == doctest::Approx(r["far"].item<double>()).epsilon(1e-12));
  CHECK(std::fabs(r["near"].item<double>() - r["other"].item<double>()) > 1e-3);
  CHECK(pt::max_difference(r["at_zero"], pt::array(r["at_zero"].type())) == 0);
}

TEST_CASE("binary16 and bfloat16: masks and angles stay finite") {
  const auto model = [](const auto& q, const auto& k) {
    const auto turned = nn::rotary<nn::rotary_pairs::interleaved>(q, 1000);
    return nn::attention(turned, k, k, {.causal = true});
  };
  const auto run = [&]<class T>(std::type_identity<T>) {
    const auto p = pt::trace(model, pt::input<T, 1, 3, 4, 2>("q"), pt::input<T, 1, 3, 2, 2>("k"));
    return pt::as_type(pt::evaluate(p, values(p)).only(), pt::dtype::f64);
  };
  const pt::array expected = run(std::type_identity<double>{});
  // About ten roundings, of 2^-11 and 2^-8, of numbers of magnitude 1.
  CHECK(pt::max_difference(run(std::type_identity<pt::f16>{}), expected) < 10 * 0x1p-11);
  CHECK(pt::max_difference(run(std::type_identity<pt::bf16>{}), expected) < 10 * 0x1p-8);
}

TEST_CASE("inner values of attention have names, by which a conflict is settled") {
  const auto f =
      pt::trace([](auto q, auto k, auto v) { return nn::attention(q, k, v, {.causal = true}); },
                pt::input<float, 2, 4, 4, 8>("q"), pt::input<float, 2, 4, 4, 8>("k"),
                pt::input<float, 2, 4, 4, 8>("v"));
  const pt::mesh mesh{{"M", 2}};
  // Heads of the queries, positions of the keys: either could slice the scores.
  const auto both = pt::manual("M", {{"q", 2}, {"k", 1}}, "both");
  const auto open = pt::partition(f, mesh, pt::schedule(data::unsettled(both)));
  CHECK(open.conflicts_after(0).size() > 0);
  CHECK(data::str(pt::explain(open)).find("nn.attention.") != std::string::npos);
  const auto settled = [&](const char* name, auto dim) {
    return pt::partition(f, mesh, pt::schedule(pt::manual("M", {{name, dim}, {"q", 2}, {"k", 1}})));
  };
  const auto by_heads = settled("nn.attention.k", 2);  // the keys change their layout
  CHECK(by_heads.conflicts_after(0).size() == 0);
  CHECK(pt::sharding_of(by_heads, "nn.attention.scores").local_shape == pt::shape{2, 2, 4, 4});
  const auto by_keys = settled("nn.attention.q", pt::replicated);
  CHECK(by_keys.conflicts_after(0).size() == 0);
  CHECK(pt::sharding_of(by_keys, "nn.attention.scores").local_shape == pt::shape{2, 4, 4, 2});
  const auto arguments = data::arguments(f);
  for (const auto* p : {&open, &by_heads, &by_keys})
    CHECK(pt::all_close(pt::emulate(*p, arguments), pt::evaluate(f, arguments)));

  // Several values have numbers; grouped heads and derivatives have the names too.
  const auto g = pt::trace(
      [](auto q, auto k, auto v) {
        return pt::grad(
            [&](const auto& x) { return sum(nn::attention(nn::attention(x, x, x), k, v)); }, q);
      },
      pt::input<float, 2, 4, 4, 8>("q"), pt::input<float, 2, 4, 2, 8>("k"),
      pt::input<float, 2, 4, 2, 8>("v"));
  const auto named = pt::partition(
      g, mesh,
      pt::schedule(pt::manual("M", {{"nn.attention.k", 2}, {"nn.attention.scores.0", 1}})));
  CHECK(pt::sharding_of(named, "nn.attention.scores.0").local_shape == pt::shape{2, 2, 4, 4});
  CHECK(pt::sharding_of(named, "nn.attention.scores.1").local_shape == pt::shape{2, 1, 4, 2, 4});
  CHECK(pt::sharding_of(named, "grad.nn.attention.scores.0").local_shape == pt::shape{2, 2, 4, 4});
}
