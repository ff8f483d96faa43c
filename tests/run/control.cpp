// Loops, branches and calls: their values, derivatives and partitioning.
#include <doctest/doctest.h>

#include <cmath>

#include <partita/prove/prove.hpp>
#include <partita/spmd/parse.hpp>

#include "../data.hpp"
#include "device_programs.hpp"

namespace pt = partita;
using data::str;

namespace {

using f64 = double;

pt::array numbers(pt::shape s, double from, double step) {
  return data::fill({pt::dtype::f64, s}, [&](std::int64_t i) {
    return from + step * static_cast<double>((i * 7) % 11);
  });
}
std::vector<double> list(const pt::array& a) {
  return {a.data<double>(), a.data<double>() + a.size()};
}
double scalar(const pt::array& a) { return a.item<double>(); }

/// Compares the gradients that `model` returns first with central differences of its last result,
/// for as many inputs as there are gradients.
void check_gradients(const pt::program& p, const std::vector<pt::array>& inputs,
                     double tolerance = 1e-7) {
  const pt::executable f(p);
  const auto found = f(inputs);
  const double h = 1e-5;
  for (std::size_t k = 0; k + 1 < found.size(); ++k)
    for (std::int64_t e = 0; e < inputs[k].size(); ++e) {
      const auto moved = [&](double by) {
        auto changed = inputs;
        changed[k].mutable_data<double>()[e] += by;
        return scalar(f(changed).back());
      };
      const double expected = (moved(h) - moved(-h)) / (2 * h);
      CHECK(found[k].data<double>()[e] ==
            doctest::Approx(expected).epsilon(tolerance).scale(std::fabs(expected) + 1));
    }
}

/// Checks that the program, emulated on several meshes and schedules, gives the results of one
/// device, and that its text is complete.
void check_emulated(const pt::program& p, const std::vector<pt::array>& inputs, const auto& tactics,
                    double tolerance = 1e-12) {
  CHECK(str(pt::verify(p).message) == "");
  const pt::program again = pt::parse(pt::print(p));
  CHECK(str(again.error.message) == "");
  CHECK(pt::equivalent(p, again));
  const auto whole = pt::evaluate(p, inputs);
  for (const pt::mesh& m :
       {pt::mesh{{"B", 2}, {"M", 2}}, pt::mesh{{"B", 1}, {"M", 4}}, pt::mesh{{"B", 4}, {"M", 1}}}) {
    const auto r = pt::partition(p, m, tactics);
    CHECK(str(pt::verify(r.device).message) == "");
    const auto parts = pt::emulate(r, inputs);
    CHECK(pt::max_difference(whole, parts) <= tolerance);
    CHECK(pt::max_difference(whole, pt::emulate(r, pt::run_options{.threads = 2}, inputs)) <=
          tolerance);
    const auto mechanical = pt::lower(r.core, {.fuse = false}).device;
    CHECK(pt::max_difference(whole, pt::emulate(mechanical, inputs)) <= tolerance);
  }
}

// Two weights, four steps, an extra input per step, a stacked result.
constexpr auto recurrent = [](const auto& x, const auto& w, const auto& steps) {
  return pt::scan(
      [&](auto h, auto step) {
        const auto next = tanh(matmul(h, w) + step);
        return std::pair{next, sum<1>(next * x)};
      },
      x, steps);
};

}  // namespace

TEST_CASE("for_loop repeats with its index; an empty loop returns its operands") {
  const auto p = pt::trace(
      [](auto x) {
        const auto none = pt::for_loop(
            3, 3, [](auto, auto c) { return c * 7; }, x);
        return std::tuple{pt::for_loop(
                              2, 5, [](auto i, auto c) { return c * 2 + convert<f64>(i); }, x),
                          none};
      },
      pt::input<f64, 2>("x"));
  const auto r = pt::evaluate(p, numbers({2}, 1, 1));
  // x0 = 1: 2+2=4, 8+3=11, 22+4=26; x1 = 8: 18, 39, 82
  CHECK(list(r[0]) == std::vector<double>{26, 82});
  CHECK(list(r[1]) == std::vector<double>{1, 8});
}

TEST_CASE("scan carries, slices and stacks, forwards and backwards") {
  for (bool reversed : {false, true}) {
    const auto p = pt::trace(
        [&](auto x) {
          const auto [last, sums] = pt::scan(
              [](auto c, auto s) {
                return std::pair{c * 2 + s, std::tuple{c + s, s * s}};
              },
              sum(x) * 0, x, {.reversed = reversed});
          return std::tuple{last, std::get<0>(sums), std::get<1>(sums)};
        },
        pt::input<f64, 3>("x"));
    const auto r = pt::evaluate(p, numbers({3}, 1, 1));  // 1, 8, 4
    const std::vector<double> x{1, 8, 4};
    std::vector<double> partial(3), square(3);
    double c = 0;
    for (int k = 0; k < 3; ++k) {
      const auto i = static_cast<std::size_t>(reversed ? 2 - k : k);
      partial[i] = c + x[i];
      square[i] = x[i] * x[i];
      c = c * 2 + x[i];
    }
    CHECK(scalar(r[0]) == c);
    CHECK(list(r[1]) == partial);
    CHECK(list(r[2]) == square);
  }
}

TEST_CASE("while_loop stops when its condition fails, and may not run at all") {
  const auto p = pt::trace(
      [](auto x, auto limit) {
        const auto out = pt::while_loop([&](const auto& s) { return std::get<0>(s) < limit; },
                                        [](const auto& s) {
                                          return std::tuple{std::get<0>(s) * 2, std::get<1>(s) + 1};
                                        },
                                        std::tuple{x, x * 0});
        return out;
      },
      pt::input<f64>("x"), pt::input<f64>("limit"));
  const auto run = [&](double x, double limit) {
    const auto r = pt::evaluate(p, numbers({}, x, 0), numbers({}, limit, 0));
    return std::pair{scalar(r[0]), scalar(r[1])};
  };
  CHECK(run(1, 100) == std::pair{128.0, 7.0});
  CHECK(run(5, 2) == std::pair{5.0, 0.0});
}

TEST_CASE("carried values may change places") {
  const auto p = pt::trace(
      [](auto a, auto b) {
        return pt::for_loop(
            0, 3,
            [](auto, const auto& s) {
              return std::tuple{std::get<1>(s), std::get<0>(s)};
            },
            std::tuple{a, b});
      },
      pt::input<f64, 2>("a"), pt::input<f64, 2>("b"));
  const auto a = numbers({2}, 1, 1), b = numbers({2}, 5, 1);
  const auto r = pt::evaluate(p, a, b);
  CHECK(list(r[0]) == list(b));
  CHECK(list(r[1]) == list(a));
}

TEST_CASE("case takes the branch of its number, and the last one if it is out of range") {
  const auto p = pt::trace(
      [](auto i, auto x) {
        const auto doubled = x * 2;
        return pt::case_of(i,
                           std::tuple{[](auto v) { return v + 1; }, [&](auto) { return doubled; },
                                      [](auto v) { return -v; }},
                           x);
      },
      pt::input<std::int32_t>("i"), pt::input<f64>("x"));
  for (auto [i, expected] : {std::pair{0, 4.0}, {1, 6.0}, {2, -3.0}, {3, -3.0}, {-1, -3.0}})
    CHECK(scalar(pt::evaluate(p, data::fill({pt::dtype::i32, {}}, [i = i](auto) { return i; }),
                              numbers({}, 3, 0))
                     .only()) == expected);
  const auto q = pt::trace(
      [](auto x) {
        return pt::cond(
            x > 2, [](auto v) { return v * 10; }, [](auto v) { return v; }, x);
      },
      pt::input<f64>("x"));
  CHECK(scalar(pt::evaluate(q, numbers({}, 3, 0)).only()) == 30);
  CHECK(scalar(pt::evaluate(q, numbers({}, 1, 0)).only()) == 1);
}

TEST_CASE("bodies nest, and capture outer values at any depth") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        return pt::for_loop(
            0, 2,
            [&](auto, auto outer) {
              const auto scaled = outer * w;  // computed once per outer iteration
              return pt::for_loop(
                  0, 3,
                  [&](auto, auto inner) {
                    return pt::cond(
                        sum(inner) < 50, [&](auto v) { return v + scaled + x; },
                        [&](auto v) { return v - w; }, inner);
                  },
                  outer);
            },
            x);
      },
      pt::input<f64, 4>("x"), pt::input<f64, 4>("w"));
  const auto x = numbers({4}, 1, 1), w = numbers({4}, 2, 0.5);
  auto c = list(x);
  const auto xs = list(x), ws = list(w);
  for (int i = 0; i < 2; ++i) {
    std::vector<double> scaled = c;
    for (std::size_t k = 0; k < 4; ++k) scaled[k] *= ws[k];
    for (int j = 0; j < 3; ++j) {
      const bool low = c[0] + c[1] + c[2] + c[3] < 50;
      for (std::size_t k = 0; k < 4; ++k) c[k] = low ? c[k] + scaled[k] + xs[k] : c[k] - ws[k];
    }
  }
  CHECK(list(pt::evaluate(p, x, w).only()) == c);
  check_emulated(p, {x, w}, pt::schedule(pt::manual("B", {{"x", 0}})), 1e-12);
}

TEST_CASE("a loop inside a loop may start from a value of the outer model") {
  const auto p = pt::trace(
      [](auto x) {
        const auto body = [&](auto, auto outer) {
          return pt::for_loop(
              0, 2, [&](auto, auto inner) { return inner + outer; }, x * 2);
        };
        return pt::for_loop(0, 2, body, x);
      },
      pt::input<f64, 2>("x"));
  // outer = x; inner = 2 x + x + x = 4 x; outer = 4 x; inner = 2 x + 4 x + 4 x
  CHECK(list(pt::evaluate(p, numbers({2}, 1, 1)).only()) == std::vector<double>{10, 80});
}

TEST_CASE("gradients through loops, branches and calls") {
  const auto gradients = [](auto f) {
    return [f](auto x, auto w, auto s) {
      const auto [loss, g] = pt::value_and_grad(
          [&](const auto& v) { return f(std::get<0>(v), std::get<1>(v), std::get<2>(v)); },
          std::tuple{x, w, s});
      return std::tuple{std::get<0>(g), std::get<1>(g), std::get<2>(g), loss};
    };
  };
  const auto trace = [](auto f) {
    return pt::trace(f, pt::input<f64, 4, 4>("x"), pt::input<f64, 4, 4>("w"),
                     pt::input<f64, 3, 4, 4>("steps"));
  };
  const std::vector<pt::array> inputs{numbers({4, 4}, -0.5, 0.1), numbers({4, 4}, -0.3, 0.07),
                                      numbers({3, 4, 4}, -1, 0.15)};
  const auto scanned = [](auto x, auto w, auto steps) {
    const auto [last, sums] = recurrent(x, w, steps);
    return sum(last * x) + sum(sums * sums);
  };
  const auto branched = [&](auto x, auto w, auto steps) {
    const auto h = pt::cond(
        sum(x) > sum(w), [&](auto v) { return tanh(matmul(v, w)); }, [&](auto v) { return v * x; },
        x * 2);
    return sum(h * h) + sum(steps * steps * steps);
  };
  const auto called = [&](auto x, auto w, auto steps) {
    const auto layer = [&](auto v, auto m) { return tanh(matmul(v, m)) + x; };
    const auto h = pt::call("layer", layer, pt::call("layer", layer, x, w), w * w);
    return sum(h * h) + sum(steps);
  };
  const auto nested = [](auto x, auto w, auto steps) {
    return sum(pt::scan(
                   [&](auto h, auto step) {
                     const auto inner = pt::for_loop(
                         0, 2, [&](auto, auto v) { return tanh(matmul(v, w)) + h; }, step);
                     return std::pair{inner * x, pt::nothing{}};
                   },
                   x, steps)
                   .first);
  };
  for (const auto& p : {trace(gradients(scanned)), trace(gradients(branched)),
                        trace(gradients(called)), trace(gradients(nested))}) {
    CHECK(str(pt::verify(p).message) == "");
    check_gradients(p, inputs);
    check_emulated(p, inputs,
                   pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w", 1}})));
  }
  // Second order: the gradient of a squared gradient.
  const auto second = trace(gradients([&](auto x, auto w, auto steps) {
    const auto g = pt::grad([&](auto v) { return scanned(x, v, steps); }, w);
    return sum(g * g);
  }));
  check_gradients(second, inputs, 1e-6);
  // Values that the loop carries unchanged, and carried integers.
  const auto counting = pt::trace(
      [](auto x) {
        const auto [loss, g] = pt::value_and_grad(
            [&](auto v) {
              const auto out = pt::for_loop(
                  0, 3,
                  [](auto i, const auto& s) {
                    return std::tuple{std::get<0>(s) * std::get<1>(s), std::get<1>(s),
                                      std::get<2>(s) + i};
                  },
                  std::tuple{v * 0 + 1, v, pt::convert<std::int32_t>(v)});
              return sum(std::get<0>(out));
            },
            x);
        return std::tuple{g, loss};
      },
      pt::input<f64, 2>("x"));
  check_gradients(counting, {numbers({2}, 1.5, 0.25)});
}

TEST_CASE("gradients inside a loop's body, also with respect to outer values") {
  const auto loss = [](const auto& w, const auto& x) {
    const auto h = tanh(matmul(x, w));
    return sum(h * h);
  };
  const auto looped = pt::trace(
      [&](auto x, auto w) {
        return pt::for_loop(
            0, 3,
            [&](auto, auto v) {
              return pt::sgd(0.05, v, pt::grad([&](const auto& u) { return loss(u, x); }, v));
            },
            w);
      },
      pt::input<f64, 4, 4>("x"), pt::input<f64, 4, 4>("w"));
  const auto unrolled = pt::trace(
      [&](auto x, auto w) {
        for (int i = 0; i < 3; ++i)
          w = pt::sgd(0.05, w, pt::grad([&](const auto& u) { return loss(u, x); }, w));
        return w;
      },
      pt::input<f64, 4, 4>("x"), pt::input<f64, 4, 4>("w"));
  const std::vector<pt::array> inputs{numbers({4, 4}, -0.5, 0.1), numbers({4, 4}, -0.3, 0.07)};
  CHECK(pt::max_difference(pt::evaluate(looped, inputs), pt::evaluate(unrolled, inputs)) <= 1e-14);
  check_emulated(looped, inputs,
                 pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w", 1}})));
  // With respect to a value of the model around the body.
  const auto around = pt::trace(
      [&](auto x, auto w) {
        return pt::for_loop(
            0, 2,
            [&](auto, auto v) {
              return v - pt::grad([&](const auto& u) { return loss(u, x) + sum(u * v); }, w);
            },
            w);
      },
      pt::input<f64, 4, 4>("x"), pt::input<f64, 4, 4>("w"));
  const auto by_hand = pt::trace(
      [&](auto x, auto w) {
        auto v = w;
        const auto g = pt::grad([&](const auto& u) { return loss(u, x); }, w);
        for (int i = 0; i < 2; ++i) v = v - (g + v);
        return v;
      },
      pt::input<f64, 4, 4>("x"), pt::input<f64, 4, 4>("w"));
  CHECK(pt::max_difference(pt::evaluate(around, inputs), pt::evaluate(by_hand, inputs)) <= 1e-14);
}

TEST_CASE("tags of nested loops have different names in a gradient") {
  const auto p = pt::trace(
      [](auto x) {
        return pt::grad(
            [](auto v) {
              return sum(pt::for_loop(
                  0, 2,
                  [](auto, auto outer) {
                    return pt::for_loop(
                        0, 3, [&](auto, auto inner) { return tag("h", inner * inner) + outer; },
                        outer);
                  },
                  v));
            },
            x);
      },
      pt::input<f64, 4>("x"));
  CHECK(str(pt::verify(p).message) == "");
  check_emulated(p, {numbers({4}, -0.3, 0.07)}, pt::schedule(pt::manual("B", {{"h", 0}})));
}

TEST_CASE("reverse mode refuses a while, unless stop_gradient precedes it") {
  const auto loss = [](bool cut) {
    return [cut](auto x) {
      return pt::grad(
          [&](auto v) {
            const auto start = cut ? stop_gradient(v) : v;
            return sum(v * pt::while_loop([](auto c) { return sum(c) < 9; },
                                          [](auto c) { return c * 2; }, start));
          },
          x);
    };
  };
  CHECK_THROWS_WITH_AS(pt::trace(loss(false), pt::input<f64, 2>("x")),
                       "G002 grad: op while (tensor<2xf64>) has no derivative rule", pt::error);
  const auto p = pt::trace(loss(true), pt::input<f64, 2>("x"));
  CHECK(list(pt::evaluate(p, numbers({2}, 1, 1)).only()) == std::vector<double>{1, 8});
}

TEST_CASE("gradients keep only the values of a loop that they need") {
  const auto p = pt::trace(
      [](auto x, auto unused) {
        const auto out = pt::scan(
            [&](const auto& c, const auto& s) {
              return std::pair{std::tuple{std::get<0>(c) + s, std::get<1>(c) * unused},
                               std::tuple{s * 2, exp(s)}};
            },
            std::tuple{x * 0, x}, reshape<2, 1>(x));
        return std::tuple{std::get<0>(out.first), std::get<1>(out.second)};
      },
      pt::input<f64, 2>("x"), pt::input<f64, 2>("unused"));
  const auto& scan = p.op(p.producer(p.outputs[0].value));
  CHECK(scan.operand_count == 2);  // one carried, one sliced
  CHECK(scan.result_count == 2);   // one carried, one stacked
  CHECK(p.regions[0].op_count() == 6);
  CHECK(str(pt::verify(p).message) == "");
}

TEST_CASE("collectives inside a loop count once per iteration") {
  const auto p = pt::trace(
      [](auto x, auto w1, auto w2) {
        return pt::for_loop(
            0, 6, [&](auto, auto c) { return tanh(matmul(matmul(c, w1), w2)); }, x);
      },
      pt::input<f64, 4, 8>("x"), pt::input<f64, 8, 16>("w1"), pt::input<f64, 16, 8>("w2"));
  const pt::mesh m{{"B", 2}, {"M", 2}};
  const auto r =
      pt::partition(p, m, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w1", 1}})));
  CHECK(r.collectives == pt::collectives{.all_reduce = 6});
  CHECK(r.notes.size() == 1);
  CHECK(r.notes[0].times == 6);
  CHECK(r.output("result").local_shape == pt::shape{2, 8});
  CHECK(r.cost.flops == 6 * (2 * 2 * 8 * 8 + 2 * 2 * 8 * 8 + 2 * 8));
  CHECK(r.cost.collective_bytes == 6 * 2 * 8 * 8);
}

TEST_CASE("a while costs its condition and its body") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        return pt::while_loop([&](auto h) { return sum(matmul(h, w)) < 9; },
                              [&](auto h) { return h + sum<0>(h); }, x);
      },
      pt::input<float, 4, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto r = pt::partition(p, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(r.collectives == pt::collectives{.all_reduce = 2});
  CHECK(r.cost.collective_bytes == 4 + 4 * 8);
  CHECK(r.cost.flops == 2 * 2 * 8 * 8 + 2 * 8 + 1 + 2 * 8 + 2 * 8);
}

TEST_CASE("a condition on a value that each device combines by itself reduces it first") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        return pt::while_loop([](auto h) { return reduce_max(h) < 1000; },
                              [](auto h) { return h * 2; }, matmul(x, w));
      },
      pt::input<f64, 8, 6>("x"), pt::input<f64, 6, 12>("w"));
  const auto r = pt::partition(
      p, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"w", 0}})),
      {.overlap = data::slow_links(1e7)});
  CHECK(r.collectives.permute > 0);
  CHECK(r.collectives.all_gather == 0);
  const std::vector<pt::array> inputs{numbers({8, 6}, -3, 1), numbers({6, 12}, 1, 0.5)};
  CHECK(pt::max_difference(pt::evaluate(p, inputs), pt::emulate(r, inputs)) <= 1e-12);
}

TEST_CASE("an error reports devices that disagree about a loop or a branch") {
  const auto run = [](const char* text, const pt::shape& global, const pt::array& x) {
    pt::device_program d;
    d.local = pt::parse(text, d.mesh);
    pt::layout rows;
    rows.push_back(0, 0);
    d.inputs.push_back(rows);
    d.input_types.push_back({pt::dtype::f64, global});
    d.outputs.push_back(rows);
    d.output_types.push_back({pt::dtype::f64, global});
    return list(pt::emulate(d, x)[0]);
  };
  const auto failure = [&](const char* text, const pt::array& x) {
    try {
      run(text, {2}, x);
      return std::string("no error");
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
  };
  const char* loop = device_programs::doubled_until_10;
  CHECK(run(loop, {2}, numbers({2}, 3, 0)) == std::vector<double>{12, 12});
  CHECK(failure(loop, numbers({2}, 3, 1)) ==
        "R014 run: the condition of while (%y) differs between devices: all have to take the same "
        "branches and iterations");
  const char* branch = R"(func @main(%x: tensor<1xf64>) attributes {mesh = {"B":2}} {
  %x1 = reduce(%x) {max, dims=[0]} : tensor<f64>
  %x2 = convert(%x1) : tensor<i32>
  %y = case(%x2, %x) do (%h: tensor<1xf64>) {
    return %h : tensor<1xf64>
  } do (%h: tensor<1xf64>) {
    %x2 = add(%h, %h) : tensor<1xf64>
    return %x2 : tensor<1xf64>
  } : tensor<1xf64>
  return %y : tensor<1xf64>
})";
  CHECK(run(branch, {2}, numbers({2}, 1, 0)) == std::vector<double>{2, 2});
  CHECK(failure(branch, numbers({2}, 0, 1)) ==
        "R014 run: the index of case (%y) differs between devices: all have to take the same "
        "branches and iterations");
}

TEST_CASE("an iota that is sliced along its own dimension starts at its block") {
  const auto p = pt::trace(
      [](auto x) {
        return std::tuple{x + pt::iota<f64, 1>(x, 4, 8),
                          x + convert<f64>(pt::iota<std::int64_t, 0>(x, 4, 8))};
      },
      pt::input<f64, 4, 8>("x"));
  const auto r =
      pt::partition(p, pt::mesh{{"B", 2}, {"M", 4}},
                    pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"x", 1}})));
  CHECK(r.collectives.total() == 0);
  bool whole = false;
  for (pt::op_id o = 0; o < r.device.local.op_count(); ++o)
    if (r.device.local.op(o).def->name == "iota")
      whole = whole || r.device.local.type(r.device.local.op(o).result).shape == pt::shape{4, 8};
  CHECK(!whole);
  const auto x = numbers({4, 8}, 0, 1);
  CHECK(pt::equal(pt::evaluate(p, x), pt::emulate(r, x)));
}

TEST_CASE("a value that passes a barrier with a sharded tensor stays the same on all devices") {
  const auto p = pt::trace(
      [](auto x, auto limit) {
        const auto [y, bound] = pt::optimization_barrier(std::tuple{x * 2, limit});
        return pt::while_loop(
            [&](const auto& s) { return std::get<0>(s) < std::get<1>(s); },
            [](const auto& s) {
              return std::tuple{std::get<0>(s) * 2, std::get<1>(s), std::get<2>(s) + 1};
            },
            std::tuple{bound * 0 + 1, bound, y});
      },
      pt::input<f64, 4>("x"), pt::input<f64>("limit"));
  const std::vector<pt::array> inputs{numbers({4}, 1, 1), numbers({}, 10, 0)};
  CHECK(list(pt::evaluate(p, inputs)[2]) == std::vector<double>{6, 20, 12, 26});
  check_emulated(p, inputs, pt::schedule(pt::manual("B", {{"x", 0}})));
}

TEST_CASE("optimization_barrier passes on its operands, each in its own layout") {
  const auto p = pt::trace(
      [](auto x, auto y) {
        return pt::optimization_barrier(std::tuple{x * 2, y + 1});
      },
      pt::input<f64, 4>("x"), pt::input<f64, 6, 2>("y"));
  check_emulated(
      p, {numbers({4}, 1, 1), numbers({6, 2}, 1, 1)},
      pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"y", pt::first_divisible_dim}})));
}

TEST_CASE("one axis slices several operands of a barrier, in any order of discovery") {
  const auto model = [](auto x, auto y, auto w) {
    return pt::for_loop(
        0, 3,
        [&](auto, auto h) {
          // A carried value, and a product whose rows are sliced later.
          const auto [a, b, c] = pt::optimization_barrier(std::tuple{h, matmul(y, w), w});
          return tanh(a + b) * sum<1>(c);
        },
        x);
  };
  const auto p =
      pt::trace([=](auto x, auto y, auto w) { return model(x, y, w); }, pt::input<f64, 4, 4>("x"),
                pt::input<f64, 4, 4>("y"), pt::input<f64, 4, 4>("w"));
  const std::vector<pt::array> inputs{numbers({4, 4}, 1, .1), numbers({4, 4}, 2, -.1),
                                      numbers({4, 4}, 1, 0)};
  const auto batch = pt::schedule(pt::manual("B", {{"x", 0}, {"y", 0}}));
  CHECK(pt::partition(p, pt::mesh{{"B", 2}}, batch).collectives.total() == 0);
  check_emulated(p, inputs, batch);
  check_emulated(p, inputs, pt::schedule(pt::microbatch(2, {{"x", 0}, {"y", 0}})));
  check_emulated(p, inputs, pt::schedule(pt::manual("M", {{"w", 0}}), pt::manual("B", {{"y", 0}})));
}

TEST_CASE("invalid bodies are refused when the model is traced") {
  const auto traced = [](auto model) {
    try {
      pt::trace(model, pt::input<f64, 2>("x"));
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string finished =
      "P006 trace: an op uses a tensor of a body that is finished; only the results of the body "
      "can be used outside of it";
  // A tensor of a body that `use` reads after the body is finished.
  const auto escaping = [&](auto use) {
    return traced([=](auto x) {
      auto seen = x;
      const auto last = pt::for_loop(
          0, 3, [&](auto, auto c) { return seen = c * 2; }, x);
      return use(seen, last);
    });
  };
  CHECK(escaping([](auto seen, auto last) { return seen + last; }) == finished);
  CHECK(escaping([](auto seen, auto last) { return last + seen; }) == finished);
  CHECK(escaping([](auto seen, auto) { return exp(seen); }) == finished);
  CHECK(escaping([](auto seen, auto) { return pt::tag("seen", seen); }) == finished);
  CHECK(escaping([](auto seen, auto) { return pt::optimization_barrier(seen); }) == finished);
  CHECK(escaping([](auto seen, auto last) {
          return pt::grad([&](auto v) { return sum(v * seen); }, last);
        }) == finished);
  CHECK(escaping([](auto seen, auto last) {
          return pt::for_loop(
              0, 2, [&](auto, auto c) { return c * seen; }, last);
        }) == finished);
  CHECK(escaping([](auto seen, auto) {
          return pt::for_loop(
              0, 2, [&](auto, auto c) { return c * 2; }, seen);
        }) == finished);
  CHECK(escaping([](auto seen, auto) { return seen; }) ==
        "P006 trace: output \"result\" is not of this trace");
  CHECK(escaping([](auto, auto last) { return last; }) == "");
  // A tensor of another branch.
  CHECK(traced([](auto x) {
          auto seen = x;
          return pt::cond(
              sum(x) > 0, [&](auto v) { return v + seen; }, [&](auto v) { return seen = -v; }, x);
        }).substr(0, 5) == "P006 ");
  CHECK(traced([](auto x) {
          return pt::for_loop(
              3, 2, [](auto, auto c) { return c; }, x);
        }) == "S183 for_loop: from 3 to 2 is a negative trip count");
  CHECK(traced([](auto x) {
          return pt::for_loop(
              -1, 1, [](auto, auto c) { return c; }, x);
        }) == "");
  // An error in the body is an error of the surrounding program.
  CHECK(
      traced([](auto x) {
        return pt::for_loop(
            0, 2,
            [&](auto i, auto c) {
              return pt::for_loop(
                  0, 1,
                  [&](auto, auto d) { return d + pt::nn::dropout(d, convert<std::int64_t>(i), 2); },
                  c);
            },
            x);
      }) == "S122 dropout: rate 2 is not in [0, 1)");
}

TEST_CASE("a call without arguments works inside a body") {
  pt::builder called;
  called.p.outputs.push_back({pt::ops::scalar(called, pt::dtype::f64, 3), {}});
  const auto p = pt::trace(
      [&](auto x) {
        pt::builder& b = *x.context();
        pt::program three = called.p;
        const pt::tensor<f64> y(&b, pt::ops::call(b, "three", {}, std::move(three)));
        return pt::for_loop(
            0, 2, [&](auto, auto c) { return c * y; }, x);
      },
      pt::input<f64>("x"));
  CHECK(scalar(pt::evaluate(p, numbers({}, 2, 0)).only()) == 18);
}

TEST_CASE("a gradient inside a body of values that do not depend on the body") {
  const auto p = pt::trace(
      [](auto x) {
        return pt::for_loop(
            0, 2, [&](auto, auto c) { return c + pt::grad([&](auto) { return sum(x * x); }, c); },
            x);
      },
      pt::input<f64, 2>("x"));
  CHECK(list(pt::evaluate(p, numbers({2}, 1, 1)).only()) == std::vector<double>{1, 8});
}

TEST_CASE("bodies may return constants, their operands, or one value several times") {
  const auto p = pt::trace(
      [](auto x, auto y) {
        const auto five = pt::for_loop(
            0, 2, [](auto, auto c) { return full_like(c, 5); }, x);
        const auto outer = pt::for_loop(
            0, 2, [&](auto, auto) { return y; }, x);
        const auto [twice, seen] = pt::scan(
            [&](const auto& c, auto s) {
              const auto next = std::get<1>(c) + s;
              return std::pair{std::tuple{next, next, y}, std::tuple{next, next, s, y}};
            },
            std::tuple{sum(x), sum(y), x}, x);
        const auto never = pt::while_loop([](auto c) { return !(sum(c) * 0 < 1); },
                                          [](auto c) { return c + 1; }, y);
        const auto branch = pt::case_of(pt::convert<std::int32_t>(sum(x) * 0 + 1),
                                        std::tuple{[&](auto v) {
                                                     return std::tuple{v, v};
                                                   },
                                                   [&](auto v) {
                                                     return std::tuple{y, full_like(v, 2)};
                                                   }},
                                        x);
        // Without carried values, scan is a map over slices.
        const auto map = pt::scan(
            [&](auto c, auto s) {
              return std::pair{c, s * s};
            },
            std::tuple<>{}, x);
        return std::tuple{five, outer, twice, seen, never, branch, map.second};
      },
      pt::input<f64, 4>("x"), pt::input<f64, 4>("y"));
  const auto x = numbers({4}, 1, 1), y = numbers({4}, -2, 0.5);  // x: 1, 8, 4, 11; y: -2, 1.5, ...
  const auto r = pt::evaluate(p, x, y);
  CHECK(list(r[0]) == std::vector<double>{5, 5, 5, 5});
  CHECK(list(r[1]) == list(y));
  std::vector<double> sums;
  double c = 0;
  for (double v : list(y)) c += v;
  for (double v : list(x)) sums.push_back(c += v);
  CHECK(scalar(r[2]) == c);
  CHECK(scalar(r[3]) == c);
  CHECK(list(r[4]) == list(y));
  CHECK(list(r[5]) == sums);
  CHECK(list(r[6]) == sums);
  CHECK(list(r[7]) == list(x));
  for (int i = 0; i < 16; ++i)
    CHECK(list(r[8])[static_cast<std::size_t>(i)] == list(y)[static_cast<std::size_t>(i % 4)]);
  CHECK(list(r[9]) == list(y));
  CHECK(list(r[10]) == list(y));
  CHECK(list(r[11]) == std::vector<double>{2, 2, 2, 2});
  CHECK(list(r[12]) == std::vector<double>{1, 64, 16, 121});
  check_emulated(p, {x, y}, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"y", 0}})));
}

TEST_CASE("loops that never run, forward, backward and on a mesh") {
  const auto p = pt::trace(
      [](auto x, auto xs) {
        const auto loss = [&](auto v) {
          const auto [last, seen] = pt::scan(
              [&](auto c, auto s) {
                return std::pair{c * s + v, tanh(c)};
              },
              v * v, xs);
          return sum(last) + sum(seen);
        };
        const auto [value, gradient] = pt::value_and_grad(loss, x);
        return std::tuple{gradient, value};
      },
      pt::input<f64, 4>("x"), pt::input<f64, 0, 4>("xs"));
  const auto x = numbers({4}, 1, 1);
  const auto r = pt::evaluate(p, x, numbers({0, 4}, 0, 0));
  CHECK(list(r[0]) == std::vector<double>{2, 16, 8, 22});
  CHECK(scalar(r[1]) == 1 + 64 + 16 + 121);
  check_emulated(p, {x, numbers({0, 4}, 0, 0)}, pt::schedule(pt::manual("B", {{"x", 0}})));
}

namespace {

/// A while_loop that adds a transposed product over the rows of x in each iteration. If `seen`, its
/// condition reads the sum, too.
pt::program accumulating(bool seen) {
  std::string text = R"(
func @main(%x: tensor<12x8xf64>) {
  %zero = constant {0} : tensor<f64>
  %start = broadcast_in_dim(%zero) {dims=[]} : tensor<2x4x4xf64>
  %n, %total, %again = while(%zero, %start, %x) do (%i: tensor<f64>, %a: tensor<2x4x4xf64>, %b: tensor<12x8xf64>) {
    SEEN
    %limit = constant {3} : tensor<f64>
    %more = compare(%j, %limit) {lt} : tensor<i1>
    return %more : tensor<i1>
  } do (%i: tensor<f64>, %sum: tensor<2x4x4xf64>, %y: tensor<12x8xf64>) {
    %left = slice(%y) {[:, 0:4]} : tensor<12x4xf64>
    %product = dot_general(%left, %y) {contract=[0]x[0]} : tensor<4x8xf64>
    %turned = transpose(%product) {dims=[1, 0]} : tensor<8x4xf64>
    %blocks = reshape(%turned) : tensor<2x4x4xf64>
    %sum' = add(%sum, %blocks) : tensor<2x4x4xf64>
    %step = constant {1} : tensor<f64>
    %next = add(%i, %step) : tensor<f64>
    return %next, %sum', %y : tensor<f64>, tensor<2x4x4xf64>, tensor<12x8xf64>
  } : tensor<f64>, tensor<2x4x4xf64>, tensor<12x8xf64>
  return %n, %total : tensor<f64>, tensor<2x4x4xf64>
})";
  const std::string sum =
      "%s = reduce(%a) {add, dims=[0, 1, 2]} : tensor<f64>\n"
      "    %z = constant {0} : tensor<f64>\n    %t = multiply(%s, %z) : tensor<f64>\n"
      "    %j = add(%i, %t) : tensor<f64>";
  const std::string none = "%j = add(%i, %i) : tensor<f64>";
  text.replace(text.find("SEEN"), 4, seen ? sum : none);
  pt::program p = pt::parse(text);
  REQUIRE(str(p.error.message) == "");
  return p;
}
int all_reduces(const pt::program& p) {
  int n = 0;
  for (const auto& each : p.ops) n += each.def->name == "all_reduce";
  return n;
}

}  // namespace

TEST_CASE(
    "a sum that a while_loop accumulates is reduced after it, unless its condition reads it") {
  const auto tactics = pt::schedule(pt::manual("B", {{"x", 0}}));
  const std::vector<pt::array> inputs{numbers({12, 8}, 1, 1)};
  for (const bool seen : {false, true}) {
    const pt::program p = accumulating(seen);
    const auto r = pt::partition(p, pt::mesh{{"B", 2}}, tactics);
    CHECK(r.collectives == pt::collectives{.all_reduce = 1});
    CHECK(all_reduces(r.device.local) == (seen ? 0 : 1));
    check_emulated(p, inputs, tactics);
    const pt::verdict proof = pt::prove(r);
    CHECK(str(proof.error.message) == "");
  }
}
TEST_CASE("transposed terms are added before they are reduced") {
  const auto p = pt::trace(
      [](auto x, auto y) {
        const auto turned = pt::transpose<1, 0>(matmul(pt::transpose<1, 0>(y), x));
        return turned + matmul(pt::transpose<1, 0>(x), y);
      },
      pt::input<f64, 12, 8>("x"), pt::input<f64, 12, 4>("y"));
  const std::vector<pt::array> inputs{numbers({12, 8}, 1, 1), numbers({12, 4}, 2, 1)};
  const auto tactics = pt::schedule(pt::manual("B", {{"x", 0}, {"y", 0}}));
  CHECK(pt::partition(p, pt::mesh{{"B", 4}}, tactics).collectives ==
        pt::collectives{.all_reduce = 1});
  check_emulated(p, inputs, tactics);
}
