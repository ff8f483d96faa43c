// Random numbers: known bits, the same bits on every mesh, and the distributions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "../data.hpp"

using namespace partita;

namespace {

template <class T>
std::vector<T> values(const array& a) {
  return {a.template data<T>(), a.template data<T>() + a.size()};
}
array words(const std::vector<std::uint64_t>& x) {
  array a(tensor_type{dtype::i64, {static_cast<std::int64_t>(x.size())}});
  for (std::size_t i = 0; i < x.size(); ++i)
    a.mutable_data<std::int64_t>()[i] = static_cast<std::int64_t>(x[i]);
  return a;
}
std::vector<std::int64_t> bits(const array& key, const array& counter) {
  const array operands[] = {key, counter};
  const shape& s = counter.shape().rank == 0 ? key.shape() : counter.shape();
  return values<std::int64_t>(run_op(def<op::random_bits>, operands, {}, {dtype::i64, s}));
}

/// Returns the numbers that a model draws from a key and a tensor of `n` elements, as doubles.
template <class Model>
std::vector<double> drawn(Model model, std::int64_t key, std::int64_t n) {
  const auto p = trace([&](auto k, auto x) { return model(k, x); }, input<std::int64_t>("key"),
                       input<float, dyn>("x", n));
  const results r = evaluate(p, array(key), array(tensor_type{dtype::f32, {n}}));
  return values<double>(as_type(r.only(), dtype::f64));
}
double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}
double moment(const std::vector<double>& x, int power) {
  double sum = 0;
  for (double v : x) sum += std::pow(v, power);
  return sum / static_cast<double>(x.size());
}
/// Returns the maximum distance between the distribution of a sample and a distribution function,
/// times the root of the sample's size (Kolmogorov and Smirnov): above 1.95 with probability 0.001.
template <class F>
double kolmogorov(std::vector<double> x, F cumulative) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double c = cumulative(x[i]);
    worst = std::max({worst, c - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - c});
  }
  return worst * std::sqrt(n);
}
constexpr std::int64_t count = 100'000;

}  // namespace

TEST_CASE("random_bits: the known answers of Random123") {
  const array keys = words({0, ~std::uint64_t(0), 0x13198a2e03707344});
  const array counters = words({0, ~std::uint64_t(0), 0x243f6a8885a308d3});
  CHECK(bits(keys, counters) ==
        values<std::int64_t>(words({0x6b20015999ba4efe, 0x1cb996fcbb002be7, 0xc4923a9c483df7a0})));
  // A scalar key, every position of a block.
  std::vector<std::uint64_t> n(1000);
  for (std::size_t i = 0; i < n.size(); ++i) n[i] = i;
  const auto all = bits(array(std::int64_t{5}), words(n));
  for (std::size_t i : {0u, 1u, 15u, 16u, 17u, 999u})
    CHECK(all[i] == bits(array(std::int64_t{5}), words({i}))[0]);
  CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == all.size());
}

TEST_CASE("uniform uses exactly the bits of the counter's word") {
  const std::int64_t key = 42;
  const auto p = trace(
      [](auto k) {
        return std::tuple{
            output("f32", uniform<float>(k, 3, extent<5>{}, 7)),
            output("f64", uniform<double>(k, 3, 5, 7)), output("bf16", uniform<bf16>(k, 3, 5, 7)),
            output("f16", uniform<f16>(k, 3, 5, 7)), output("one", uniform<float>(k))};
      },
      input<std::int64_t>("key"));
  const results r = evaluate(p, array(key));
  std::vector<std::uint64_t> n(105);
  for (std::size_t i = 0; i < n.size(); ++i) n[i] = i;
  const auto word = bits(array(key), words(n));
  for (const auto& [name, kept] : {std::pair{"f32", 24}, {"f64", 53}, {"bf16", 8}, {"f16", 11}}) {
    CAPTURE(name);
    const auto got = values<double>(as_type(r[name], dtype::f64));
    REQUIRE(got.size() == n.size());
    for (std::size_t i = 0; i < n.size(); ++i)
      CHECK(got[i] ==
            std::ldexp(static_cast<double>(static_cast<std::uint64_t>(word[i]) >> (64 - kept)),
                       -kept));
  }
  CHECK(r["one"].shape() == shape{});
  CHECK(r["one"].item<float>() == r["f32"].data<float>()[0]);
}

TEST_CASE("uniform and normal have their distributions") {
  // The seed is fixed: each bound is about four standard deviations of the estimate.
  const double n = static_cast<double>(count);
  for (const auto& x :
       {drawn([](auto k, auto like) { return uniform<float>(k, like); }, 1, count),
        drawn([](auto k, auto like) { return uniform<double>(k, like); }, 2, count)}) {
    CHECK(std::fabs(mean_of(x) - 0.5) < 4 * std::sqrt(1 / 12. / n));
    CHECK(std::fabs(moment(x, 2) - 1 / 3.) < 4 * std::sqrt(4 / 45. / n));
    CHECK(kolmogorov(x, [](double v) { return v; }) < 1.95);
    CHECK(*std::min_element(x.begin(), x.end()) >= 0);
    CHECK(*std::max_element(x.begin(), x.end()) < 1);
  }
  const auto cumulative = [](double v) { return std::erfc(-v * std::sqrt(0.5)) / 2; };
  for (const auto& x :
       {drawn([](auto k, auto like) { return normal<float>(k, like); }, 3, count),
        drawn([](auto k, auto like) { return normal<double>(k, like); }, 4, count)}) {
    CHECK(std::fabs(mean_of(x)) < 4 * std::sqrt(1 / n));
    CHECK(std::fabs(moment(x, 2) - 1) < 4 * std::sqrt(2 / n));
    CHECK(std::fabs(moment(x, 3)) < 4 * std::sqrt(15 / n));
    CHECK(std::fabs(moment(x, 4) - 3) < 4 * std::sqrt(96 / n));
    CHECK(kolmogorov(x, cumulative) < 1.95);
    // Neighbours are not correlated.
    double product = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) product += x[i] * x[i + 1];
    CHECK(std::fabs(product / n) < 4 * std::sqrt(1 / n));
  }
  const auto half = drawn([](auto k, auto like) { return normal<bf16>(k, like); }, 3, count);
  CHECK(std::fabs(moment(half, 2) - 1) < 4 * std::sqrt(2 / n));
  CHECK(std::all_of(half.begin(), half.end(), [](double v) { return std::isfinite(v); }));
}

TEST_CASE("bernoulli and dropout have their probabilities") {
  const double n = static_cast<double>(count);
  const auto share = [&](double p) {
    return mean_of(drawn([p](auto k, auto like) { return bernoulli(k, p, like); }, 5, count));
  };
  CHECK(share(0) == 0);
  CHECK(share(1) == 1);
  CHECK(std::fabs(share(0.3) - 0.3) < 4 * std::sqrt(0.3 * 0.7 / n));
  const auto kept =
      drawn([](auto k, auto like) { return nn::dropout(like + 3, k, 0.25); }, 6, count);
  CHECK(std::fabs(mean_of(kept) - 3) < 4 * 3 * std::sqrt(0.25 / 0.75 / n));
  for (double v : kept) CHECK_UNARY(v == 0 || v == 4);
  const auto all = drawn([](auto k, auto like) { return nn::dropout(like + 3, k, 0); }, 6, 10);
  CHECK(all == std::vector<double>(10, 3.));
  const auto refused = [](auto model) {
    try {
      drawn(model, 1, 2);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(refused([](auto k, auto x) { return nn::dropout(x, k, 1.5); }) ==
        "S122 dropout: rate 1.5 is not in [0, 1)");
  CHECK(refused([](auto k, auto x) { return nn::dropout(x, k, std::nan("")); }) ==
        "S122 dropout: rate nan is not in [0, 1)");
  CHECK(refused([](auto k, auto x) { return bernoulli(k, -0.5, x); }) ==
        "S122 bernoulli: probability -0.5 is not in [0, 1]");
}

TEST_CASE("keys: split and fold_in return independent ones") {
  const auto p = trace(
      [](auto k) {
        const auto [a, b, c] = split<3>(k);
        return std::tuple{output("a", a), output("b", b), output("c", c),
                          output("folded", fold_in(k, 2)),
                          output("known", fold_in(random_key(k, 0), 0))};
      },
      input<std::int64_t>("key"));
  const results r = evaluate(p, array(std::int64_t{9}));
  const auto of = [&](const char* name) { return r[name].item<std::int64_t>(); };
  CHECK(std::set{of("a"), of("b"), of("c"), std::int64_t{9}}.size() == 4);
  CHECK(of("folded") == of("c"));
  CHECK(of("known") == 0x6b20015999ba4efe);
}

TEST_CASE("every mesh draws the same numbers, and each device only its own") {
  const auto model = [](auto x, auto k) {
    const auto [a, b] = split(k);
    return std::tuple{output("y", nn::dropout(x, a, 0.5)), output("z", normal<float>(b, x) + x)};
  };
  const auto p = trace(model, input<float, 12, 8>("x"), input<std::int64_t>("k"));
  data::random r;
  const array x = data::integers({dtype::f32, {12, 8}}, r, 1, 9), k(std::int64_t{77});
  const results whole = evaluate(p, x, k);
  for (int axis : {2, 3, 4, 6})
    for (int dim : {0, 1}) {
      if (dim == 1 && 8 % axis != 0) continue;
      const mesh m{{"B", axis}};
      const auto part = partition(p, m, schedule(manual("B", {{"x", dim}})));
      const results mine = emulate(part, x, k);
      CHECK(equal(mine["y"], whole["y"]));
      CHECK(equal(mine["z"], whole["z"]));
      // No collective, and no tensor of all elements.
      const program& device = part.device.local;
      for (int v = 0; v < device.value_count(); ++v)
        CHECK(device.type(v).shape.elements() <= 12 * 8 / axis);
    }
}
