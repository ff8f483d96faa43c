// Initial values of parameters: the same on every mesh, a function of the name, the seed and the
// shape alone, and with the distributions that the rule states.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "../data.hpp"

namespace pt = partita;
namespace nn = partita::nn;

namespace {

struct layer {
  BOOST_HANA_DEFINE_STRUCT(layer, (pt::tensor<float, 8, 16>, up), (pt::tensor<float, 16>, bias),
                           (pt::tensor<pt::bf16, 16, 8>, down));
};
struct model {
  using layers_type = std::array<layer, 2>;
  BOOST_HANA_DEFINE_STRUCT(model, (layers_type, layers), (pt::tensor<double, 8, 12>, head),
                           (pt::tensor<float, 8>, scale), (pt::tensor<std::int32_t>, step));
};
/// Some of the same parameters, in another order and among others.
struct other_model {
  using layers_type = std::vector<layer>;
  BOOST_HANA_DEFINE_STRUCT(other_model, (pt::tensor<double, 8, 12>, tail),
                           (pt::tensor<double, 8, 12>, head), (layers_type, layers));
};

constexpr auto rule = [](std::string_view path, const pt::shape& s) {
  if (path.ends_with("bias") || path == "step") return nn::zeros;
  if (path == "scale") return nn::ones;
  if (path.ends_with("down")) return nn::he_uniform(nn::fans_of(s));
  return nn::lecun_normal(nn::fans_of(s));
};

template <class Spec>
pt::program initialized(const Spec& spec) {
  return pt::trace(
      [&](const auto& key) { return pt::output("params", nn::initialize(key, spec, rule)); },
      pt::input<std::int64_t>("key"));
}
pt::array key(std::int64_t seed) { return pt::array(seed); }

}  // namespace

TEST_CASE(
    "initial values have the same bits on every mesh, and no device computes those of others") {
  const pt::program p = initialized(model{});
  const auto whole = pt::evaluate(p, key(7));
  for (const pt::mesh& m : {pt::mesh{{"B", 2}, {"M", 2}}, pt::mesh{{"B", 4}, {"M", 1}},
                            pt::mesh{{"B", 1}, {"M", 8}}, pt::mesh{{"B", 2}, {"M", 4}}}) {
    const auto r =
        pt::partition(p, m,
                      pt::schedule(pt::manual("M", {{"params", pt::first_divisible_dim}}),
                                   pt::manual("B", {{"params", pt::first_divisible_dim}})));
    CHECK(pt::equal(whole, pt::emulate(r, key(7))));
    CHECK(r.collectives == pt::collectives{});
    const pt::program& device = r.device.local;
    for (int v = 0; v < device.value_count(); ++v)
      CHECK(device.type(v).shape.elements() <= 8 * 16 / m.devices());
  }
}

TEST_CASE("an initial value depends on its name, the seed and its shape, not on its neighbours") {
  const auto all = pt::evaluate(initialized(model{}), key(7));
  other_model spec;
  spec.layers.resize(3);
  const auto others = pt::evaluate(initialized(spec), key(7));
  for (const char* name : {"params.layers.0.up", "params.layers.1.up", "params.layers.1.down",
                           "params.layers.0.bias", "params.head"})
    CHECK(pt::equal(all[name], others[name]));
  const auto differ = [](const pt::array& a, const pt::array& b) {
    std::int64_t different = 0;
    const pt::array x = pt::as_type(a, pt::dtype::f64), y = pt::as_type(b, pt::dtype::f64);
    for (std::int64_t i = 0; i < x.size(); ++i)
      different += x.data<double>()[i] != y.data<double>()[i];
    return different >= x.size() - 2;  // a few of the 256 values of bf16 may be equal
  };
  CHECK(differ(others["params.tail"], others["params.head"]));
  CHECK(differ(all["params.layers.0.up"], all["params.layers.1.up"]));
  CHECK(differ(all["params.layers.0.down"], all["params.layers.1.down"]));
  const auto reseeded = pt::evaluate(initialized(model{}), key(8));
  CHECK(differ(all["params.layers.0.up"], reseeded["params.layers.0.up"]));
  CHECK(differ(all["params.head"], reseeded["params.head"]));
  // A fixed number: the draw of the key that belongs to the name.
  const auto head = pt::evaluate(pt::trace(
                                     [](const auto& k) {
                                       std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
                                       for (char c : std::string_view("head"))
                                         h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
                                       const auto own =
                                           pt::fold_in(k, static_cast<std::int64_t>(h));
                                       return pt::normal<double>(own, 8, 12) * (1 / std::sqrt(8.0));
                                     },
                                     pt::input<std::int64_t>("key")),
                                 key(7));
  CHECK(pt::max_difference(head, all["params.head"]) < 1e-15);
}

TEST_CASE("initial values have their distributions") {
  const auto drawn = [](const nn::initial_values& v) {
    const auto p = pt::trace(
        [&](const auto& k) {
          return nn::initialize(k, pt::tensor<float, 100, 1000>{},
                                [&](std::string_view, const pt::shape&) { return v; });
        },
        pt::input<std::int64_t>("key"));
    const pt::array a = pt::as_type(pt::evaluate(p, key(5)).only(), pt::dtype::f64);
    return std::vector<double>(a.data<double>(), a.data<double>() + a.size());
  };
  const auto moments = [](const std::vector<double>& x) {
    double sum = 0, squares = 0;
    for (double v : x) sum += v;
    const double mean = sum / static_cast<double>(x.size());
    for (double v : x) squares += (v - mean) * (v - mean);
    return std::pair{mean, squares / static_cast<double>(x.size())};
  };
  const nn::fans f{100, 50};
  const double n = 100'000;
  // Mean and variance are within four standard deviations of their estimates: the variance of the
  // square is 2 s^4 for a normal and 0.8 s^4 for a uniform distribution.
  const auto check = [&](const nn::initial_values& v, double mean, double variance, double spread) {
    const auto [m, s] = moments(drawn(v));
    CHECK(std::fabs(m - mean) < 4 * std::sqrt(variance / n));
    CHECK(std::fabs(s - variance) < 4 * variance * std::sqrt(spread / n));
  };
  check(nn::lecun_normal(f), 0, 1 / 100., 2);
  check(nn::glorot_normal(f), 0, 2 / 150., 2);
  check(nn::he_normal(f), 0, 2 / 100., 2);
  check(nn::lecun_uniform(f), 0, 1 / 100., 0.8);
  check(nn::glorot_uniform(f), 0, 2 / 150., 0.8);
  check(nn::he_uniform(f), 0, 2 / 100., 0.8);
  check(nn::normal(0.5, 3), 3, 0.25, 2);
  check(nn::uniform(1, 3), 2, 1 / 3., 0.8);
  const auto range = drawn(nn::uniform(1, 3));
  CHECK(*std::min_element(range.begin(), range.end()) >= 1);
  CHECK(*std::max_element(range.begin(), range.end()) <= 3);
  CHECK(drawn(nn::ones) == std::vector<double>(100'000, 1.));
  CHECK(drawn(nn::zeros) == std::vector<double>(100'000, 0.));
  CHECK(drawn(nn::constant(0.25)) == std::vector<double>(100'000, 0.25));
}

TEST_CASE("invalid initial values are refused") {
  const auto refused = [](const auto& spec, const nn::initial_values& v) {
    try {
      pt::trace(
          [&](const auto& k) {
            return nn::initialize(k, spec, [&](std::string_view, const pt::shape&) { return v; });
          },
          pt::input<std::int64_t>("key"));
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(refused(pt::tensor<std::int32_t>{}, nn::zeros) == "no error");
  CHECK(refused(std::tuple<pt::tensor<int, 4>>{}, nn::normal(1)) ==
        "S195 initialize: parameter \"0\" has type tensor<4xi32>; random numbers are floating "
        "point, others start as nn::constant");
  CHECK(refused(std::tuple<pt::tensor<float, pt::dyn>>{}, nn::normal(1)) ==
        "S116 initialize: parameter \"0\" has shape [?]; give its dynamic extents, all 0 or above");
  CHECK(refused(pt::tensor<float, pt::dyn>(3), nn::normal(1)) == "no error");
}
