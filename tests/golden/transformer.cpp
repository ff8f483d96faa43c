// A training step of a transformer of one and two layers: collectives in closed form, and the same
// numbers from every mesh.
#include <array>
#include <cmath>
#include <cstdint>

#include <doctest/doctest.h>

#include "../../examples/models/transformer.hpp"
#include "../data.hpp"

namespace pt = partita;
namespace tf = transformer;

namespace {

pt::program training_step(std::int64_t layers) {
  return tf::trace_training_step<tf::dynamic>({layers, 24, 4, 6, 64, 32, 8, 16});
}

/// Initial parameters, and small random tokens.
std::vector<pt::array> inputs_of(const pt::program& p, std::int64_t layers) {
  data::random random{7};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    pt::array a(p.input_type(i));
    if (a.element() == pt::dtype::i32)
      a = data::integers(a.type(), random, 0, 31);
    else
      tf::initialise(p.input_name(i), a.shape(), layers, 3, a.mutable_data<float>());
    inputs.push_back(a);
  }
  return inputs;
}

/// Returns the maximum difference of two runs, relative to the maximum of each output. Adam's step
/// divides a gradient by its own size, so parameters are compared through the moments.
double difference(const pt::results& a, const pt::results& b) {
  double worst = 0;
  for (int i = 0; i < a.size(); ++i) {
    if (a.names()[static_cast<std::size_t>(i)].starts_with("params")) continue;
    const pt::array zero(a[i].type());
    const double size = pt::max_difference(a[i], zero);
    if (size > 0) worst = std::max(worst, pt::max_difference(a[i], b[i]) / size);
  }
  return worst;
}

}  // namespace

TEST_CASE("training steps of 1 and 2 layers: closed forms, and emulated equals source") {
  for (const int layers : {1, 2}) {
    CAPTURE(layers);
    const pt::program step = training_step(layers);
    const auto inputs = inputs_of(step, layers);
    const pt::results whole = pt::evaluate(step, inputs);
    const int P = tf::parameter_count(layers), L = layers, W = 4 * L + 1;
    const auto check = [&](const pt::mesh& mesh, pt::collectives expected, auto... tactics) {
      const auto p = pt::partition(step, mesh, pt::schedule(tactics...));
      CHECK(p.collectives == expected);
      CHECK(p.core.conflicts.empty());
      CHECK(!pt::verify(p.device));
      // Sums of at most batch * context = 128 and width = 64 terms in another order, through about
      // 20 products forward and backward: far below 1e-4 of the maximum.
      CHECK(difference(whole, pt::emulate(p, inputs)) < 1e-4);
    };
    const pt::mesh mesh{{"B", 4}, {"M", 2}};
    check(mesh, {.all_reduce = P + 1}, tf::BP);
    check(mesh, {.all_reduce = 4 * L}, tf::MP);
    check(mesh, {.all_reduce = P + 1 + 4 * L}, tf::BP, tf::MP);
    check(mesh, {.all_gather = P, .all_reduce = 1 + 4 * L, .reduce_scatter = P}, tf::BP, tf::MP,
          tf::Z2);
    check(mesh, {.all_gather = P + W, .all_reduce = 1 + 4 * L, .reduce_scatter = P}, tf::BP, tf::MP,
          tf::Z3);
    // Other sizes of axes; axes of one device need no collective.
    check({{"B", 8}, {"M", 4}}, {.all_gather = P + W, .all_reduce = 1 + 4 * L, .reduce_scatter = P},
          tf::BP, tf::MP, tf::Z3);
    check({{"B", 1}, {"M", 1}}, {}, tf::BP, tf::MP, tf::Z3);
    check({{"B", 2}, {"M", 1}}, {.all_reduce = P + 1}, tf::BP, tf::MP);
  }
}

// Narayanan et al., arXiv:2104.04473, equation 3, without recomputation.
TEST_CASE("products of a training step: 72 B L s h^2 (1 + s/6h + V/12hL) flop") {
  for (const auto& [layers, width, context, vocabulary, batch] :
       {std::array<std::int64_t, 5>{1, 64, 32, 96, 4}, {3, 128, 256, 512, 2}}) {
    const auto p = tf::trace_training_step<tf::dynamic>(
        {layers, width, width / 16, 16, 4 * width, vocabulary, context, batch});
    const auto whole = pt::partition(p, pt::mesh{{"B", 1}}, pt::schedule());
    const double s = static_cast<double>(context), h = static_cast<double>(width),
                 L = static_cast<double>(layers), V = static_cast<double>(vocabulary);
    const double formula =
        72 * static_cast<double>(batch) * L * s * h * h * (1 + s / (6 * h) + V / (12 * h * L));
    CHECK(pt::simulate(whole.device, pt::a100_80).product_flops == doctest::Approx(formula));
    // Each of two devices computes half of it.
    const auto halves = pt::partition(p, pt::mesh{{"B", 2}}, pt::schedule(tf::BP));
    CHECK(pt::simulate(halves.device, pt::a100_80).product_flops == doctest::Approx(formula / 2));
  }
}

TEST_CASE("a transformer on axes of size 3") {
  const pt::program step = tf::trace_training_step<tf::dynamic>({1, 24, 6, 4, 54, 36, 6, 9});
  const auto inputs = inputs_of(step, 1);
  const auto p = pt::partition(step, {{"B", 3}, {"M", 3}}, pt::schedule(tf::BP, tf::MP, tf::Z3));
  CHECK(p.collectives == pt::collectives{.all_gather = 20, .all_reduce = 5, .reduce_scatter = 15});
  CHECK(difference(pt::evaluate(step, inputs), pt::emulate(p, inputs)) < 1e-4);
}
