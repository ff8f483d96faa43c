// Optimizers and learning rates compared with loops over numbers, in binary64.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "../data.hpp"

namespace pt = partita;
namespace rates = partita::rates;

namespace {

using list = std::vector<double>;

struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<double, 3>, a), (pt::tensor<double, 2>, b));
};

/// Returns the gradients of step k: different numbers.
list gradients_at(int k) {
  list g(5);
  for (int i = 0; i < 5; ++i)
    g[static_cast<std::size_t>(i)] = std::sin(1.3 * i + 0.7 * k) + 0.1 * i;
  return g;
}
const list start{1, -2, 0.5, 3, -0.25};

/// Runs steps with the results of the previous step; returns the parameters after each.
std::vector<list> run(const pt::program& p, int steps) {
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) inputs.push_back(pt::array(p.input_type(i)));
  const auto put = [&](std::size_t first, const list& v) {
    for (std::size_t i = 0; i < 3; ++i) inputs[first].mutable_data<double>()[i] = v[i];
    for (std::size_t i = 3; i < 5; ++i) inputs[first + 1].mutable_data<double>()[i - 3] = v[i];
  };
  put(0, start);
  const pt::executable f(p);
  std::vector<list> after;
  for (int k = 0; k < steps; ++k) {
    put(2, gradients_at(k));
    const auto out = f(inputs);  // next state of input 0, 1, 4, 5, ...
    for (std::size_t i = 0; i < out.size(); ++i) inputs[i < 2 ? i : i + 2] = out[i];
    list now;
    for (std::size_t i = 0; i < 5; ++i)
      now.push_back(i < 3 ? out[0].data<double>()[i] : out[1].data<double>()[i - 3]);
    after.push_back(now);
  }
  return after;
}
/// Returns the program of one step: update(params, gradients, state) returns parameters and state.
template <class State>
pt::program step_of(const auto& update, const State& state) {
  return pt::trace(
      [&](const auto& p, const auto& g, const auto& s) {
        const auto [next, next_state] = update(p, g, s);
        return std::tuple{pt::output("p", next), pt::output("s", next_state)};
      },
      pt::input<params>("p"), pt::input<params>("g"), pt::input("s", state));
}

/// Compares with `expected(p, g, k)`, which changes the parameters p in place.
void check(const pt::program& p, double bound, auto expected) {
  constexpr int steps = 6;
  const auto found = run(p, steps);
  list now = start;
  double moved = 0;
  for (int k = 0; k < steps; ++k) {
    expected(now, gradients_at(k), k);
    for (std::size_t i = 0; i < 5; ++i) {
      CAPTURE(k);
      CAPTURE(i);
      CHECK(std::fabs(found[static_cast<std::size_t>(k)][i] - now[i]) <= bound);
      moved = std::max(moved, std::fabs(now[i] - start[i]));
    }
  }
  CHECK(moved > 0.01);
}
constexpr double exact = 1e-15 * 8;  ///< several roundings of binary64 of numbers below 8

}  // namespace

TEST_CASE("sgd: the rate is a number, or a tensor from a schedule") {
  const auto plain = step_of(
      [](const auto& p, const auto& g, const auto& s) {
        return std::pair{pt::sgd(0.1, p, g), s};
      },
      pt::tensor<float>{});
  check(plain, exact, [](list& p, const list& g, int) {
    for (std::size_t i = 0; i < 5; ++i) p[i] -= 0.1 * g[i];
  });
  const auto scheduled = step_of(
      [](const auto& p, const auto& g, const auto& s) {
        return std::pair{pt::sgd(rates::linear_warmup(s, 0.25, 4), p, g), s + 1};
      },
      pt::tensor<float>{});
  check(scheduled, exact, [](list& p, const list& g, int k) {  // 0.25 k / 4: exact in binary32
    for (std::size_t i = 0; i < 5; ++i) p[i] -= std::min(0.25, 0.0625 * k) * g[i];
  });
}

TEST_CASE("sgd with momentum, and with Nesterov's, equals a loop over numbers") {
  for (const bool nesterov : {false, true}) {
    CAPTURE(nesterov);
    const pt::momentum_options options{.momentum = 0.8, .nesterov = nesterov};
    const auto p = step_of(
        [&](const auto& x, const auto& g, const auto& s) { return pt::sgd(0.1, options, x, g, s); },
        pt::momentum_state_for(params{}));
    list v(5);
    check(p, exact, [&](list& x, const list& g, int) {
      for (std::size_t i = 0; i < 5; ++i) {
        v[i] = 0.8 * v[i] + g[i];
        x[i] -= 0.1 * (nesterov ? g[i] + 0.8 * v[i] : v[i]);
      }
    });
  }
}

TEST_CASE("adam and adamw equal a loop over numbers") {
  const auto expected = [](double rate, double beta1, double beta2, double decay,
                           const auto& rate_of) {
    return [=, m = list(5), v = list(5)](list& p, const list& g, int k) mutable {
      const double r = rate_of(rate, k);
      for (std::size_t i = 0; i < 5; ++i) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        const double first = m[i] / (1 - std::pow(beta1, k + 1));
        const double second = v[i] / (1 - std::pow(beta2, k + 1));
        p[i] -= r * first / (std::sqrt(second) + 1e-8) + r * decay * p[i];
      }
    };
  };
  const auto constant = [](double rate, int) { return rate; };
  // Six steps in binary32: about eight roundings of an update of 0.1, and one of the parameter.
  const double bound = 6 * (0.1 * 8 + 2) * 0x1p-24;
  const auto state = pt::adam_state_for(params{});
  const pt::adam_options options{.rate = 0.1};
  check(step_of(
            [&](const auto& p, const auto& g, const auto& s) { return pt::adam(options, p, g, s); },
            state),
        bound, expected(0.1, 0.9, 0.999, 0, constant));
  check(step_of([&](const auto& p, const auto& g,
                    const auto& s) { return pt::adamw(0.25, options, p, g, s); },
                state),
        bound, expected(0.1, 0.9, 0.999, 0.25, constant));
  const auto falling = [](double rate, int k) { return rate * std::pow(0.5, k / 2.); };
  check(step_of(
            [&](const auto& p, const auto& g, const auto& s) {
              const auto rate = rates::exponential_decay(s.step, 0.1, 0.5, 2);
              return pt::adamw(0.25, options, p, g, s, rate);
            },
            state),
        bound, expected(0.1, 0.9, 0.999, 0.25, falling));
  // Other betas, including 0 and small ones.
  for (const double beta1 : {0., 0.01, 0.5}) {
    CAPTURE(beta1);
    const pt::adam_options other{.rate = 0.1, .beta1 = beta1, .beta2 = 0.9};
    check(step_of(
              [&](const auto& p, const auto& g, const auto& s) { return pt::adam(other, p, g, s); },
              state),
          0.1 * 6 * 0x1p-24 / 0.1, expected(0.1, beta1, 0.9, 0, constant));
  }
}

TEST_CASE("natural_log equals that of the library") {
  for (double x : {1e-6, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.999, 0.9999, 1., 1.5})
    CHECK(pt::dsl_detail::natural_log(x) == doctest::Approx(std::log(x)).epsilon(1e-15));
  CHECK(std::isinf(pt::dsl_detail::natural_log(0)));
}

TEST_CASE("clip_by_global_norm scales by the global norm") {
  const auto p = pt::trace(
      [](const auto& g) {
        const auto [small, norm] = pt::clip_by_global_norm(g, 2);
        const auto [same, again] = pt::clip_by_global_norm(g, 100);
        return std::tuple{pt::output("small", small), pt::output("norm", norm),
                          pt::output("same", same), pt::output("clipped", pt::global_norm(small))};
      },
      pt::input<params>("g"));
  const pt::array a = data::fill({pt::dtype::f64, {3}}, [](auto i) { return i - 2.; });  // -2 -1 0
  const pt::array b = data::fill({pt::dtype::f64, {2}}, [](auto i) { return i * 2 + 2.; });  // 2 4
  const auto r = pt::evaluate(p, a, b);
  CHECK(r["norm"].item<float>() == 5);  // 4 + 1 + 4 + 16 = 25
  for (int i = 0; i < 3; ++i) {
    // 2 / 5 is a binary32 number.
    CHECK(r["small.a"].data<double>()[i] == a.data<double>()[i] * static_cast<double>(2.0f / 5));
    CHECK(r["same.a"].data<double>()[i] == a.data<double>()[i]);
  }
  for (int i = 0; i < 2; ++i)
    CHECK(r["small.b"].data<double>()[i] == b.data<double>()[i] * static_cast<double>(2.0f / 5));
  CHECK(std::fabs(r["clipped"].item<float>() - 2) < 1e-6);
}

TEST_CASE("learning rates follow their schedules") {
  const auto p = pt::trace(
      [](const auto& s) {
        return std::tuple{pt::output("linear_warmup", rates::linear_warmup(s, 0.5, 10)),
                          pt::output("no_warmup", rates::linear_warmup(s, 0.5, 0)),
                          pt::output("cosine_decay", rates::cosine_decay(s, 0.5, 30, 0.1)),
                          pt::output("warmup_cosine", rates::warmup_cosine(s, 0.5, 10, 30, 0.1)),
                          pt::output("exponential", rates::exponential_decay(s, 0.5, 0.8, 7)),
                          pt::output("inverse_root", rates::inverse_square_root(s, 0.5, 10))};
      },
      pt::input<float>("step"));
  const pt::executable f(p);
  const auto falling = [](double done) {
    return 0.1 + 0.4 * (1 + std::cos(3.14159265358979 * std::min(done, 1.))) / 2;
  };
  for (int k = 0; k <= 40; ++k) {
    CAPTURE(k);
    const pt::results r = f(pt::array(static_cast<float>(k)));
    const double up = std::min(0.5, 0.05 * k);
    const std::pair<const char*, double> expected[] = {
        {"linear_warmup", up},
        {"no_warmup", 0.5},
        {"cosine_decay", falling(k / 30.)},
        {"warmup_cosine", k < 10 ? up : falling((k - 10) / 20.)},
        {"exponential", 0.5 * std::pow(0.8, k / 7.)},
        {"inverse_root", k < 10 ? up : 0.5 * std::sqrt(10. / k)}};
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      // A few roundings of binary32 of numbers below 2.
      CHECK(std::fabs(r[name].item<float>() - value) <= 4 * 0x1p-24);
    }
  }
}
