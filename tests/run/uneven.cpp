// Uneven dimensions: every size from 1 to 17 over axes of 1 to 8 devices, with partial and empty
// shards. The padded program computes the results of the source.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;
using pt::dyn;

namespace {

using vector = pt::tensor<float, dyn>;
using matrix = pt::tensor<float, dyn, dyn>;
using tactics = std::vector<pt::manual_tactic<1>>;
constexpr std::int64_t most_size = 17, most_devices = 8;

pt::manual_tactic<1> tile(std::string_view axis, std::string_view name, int dim) {
  return pt::manual(axis, {{name, dim}}, name, pt::uneven::pad);
}
auto vec_of(std::string_view name, std::int64_t n) { return pt::input(name, vector(n)); }
auto mat_of(std::string_view name, std::int64_t m, std::int64_t n) {
  return pt::input(name, matrix(m, n));
}
auto indices_of(std::string_view name, std::int64_t n) {
  return pt::input(name, pt::tensor<std::int32_t, dyn>(n));
}

/// Returns whole numbers, and positions of at most `n` rows.
std::vector<pt::array> arguments(const pt::program& p, std::int64_t n) {
  data::random r{static_cast<std::uint64_t>(n)};
  std::vector<pt::array> out;
  for (int i = 0; i < p.input_count(); ++i) {
    const bool index = pt::is_integer(p.input_type(i).element);
    out.push_back(data::integers(p.input_type(i), r, index ? 0 : -2, index ? n - 1 : 2));
  }
  return out;
}

/// Checks that each backend gives the results of the source, up to `tolerance`.
void check_equal(const pt::partitioned& r, const std::vector<pt::array>& inputs, double tolerance) {
  REQUIRE(str(pt::verify(r.device).message) == "");
  const pt::results expected = pt::evaluate(r.source, inputs);
  const auto agrees = [&](const pt::results& found) {
    for (int i = 0; i < expected.size(); ++i)
      if (found[i].type() != expected[i].type()) return false;
    return pt::max_difference(found, expected) <= tolerance;
  };
  CHECK(agrees(pt::emulate(r, inputs)));
  CHECK(agrees(pt::temporal(r, inputs)));
  CHECK(agrees(pt::emulate(pt::lower(r.core, {.fuse = false}).device, inputs)));
}

/// Checks the program `make(n)`, whose input `name` has size n in dimension `dim`, for each n.
/// Blocks are multiples of `step`, if n is one.
template <class Make>
void check_sizes(const Make& make, std::string_view name, int dim, double tolerance = 0,
                 std::int64_t step = 1) {
  for (std::int64_t n = 1; n <= most_size; ++n) {
    const pt::program p = make(n);
    const auto inputs = arguments(p, n);
    for (std::int64_t devices = 1; devices <= most_devices; ++devices) {
      CAPTURE(name);
      CAPTURE(n);
      CAPTURE(devices);
      const auto r = pt::partition(p, pt::mesh{{"B", devices}}, tactics{tile("B", name, dim)});
      const auto x = r.input(name);
      REQUIRE(x.global_shape[dim] == n);
      REQUIRE((devices == 1 || x.sharding.dim_of(0) == dim));
      const std::int64_t unit = n % devices != 0 && n % step == 0 && n / step >= devices ? step : 1;
      REQUIRE(x.local_shape[dim] == (n + devices * unit - 1) / (devices * unit) * unit);
      check_equal(r, inputs, tolerance);
    }
  }
}
/// Checks a model of one matrix along both of its dimensions; the other dimension has size 6.
template <class Model>
void check_both(const Model& model, double tolerance = 0) {
  check_sizes([&](std::int64_t n) { return pt::trace(model, mat_of("x", n, 6)); }, "x", 0,
              tolerance);
  check_sizes([&](std::int64_t n) { return pt::trace(model, mat_of("x", 6, n)); }, "x", 1,
              tolerance);
}

}  // namespace

TEST_CASE("uneven: elementwise ops and a bias") {
  const auto model = [](const auto& x, const auto& bias) { return pt::nn::relu(x * 3 - 1) + bias; };
  const auto source = [&](std::int64_t m, std::int64_t n) {
    return pt::trace(
        [&](const auto& x, const auto& b) {
          return model(x, pt::broadcast_in_dim<1>(b, pt::dim<0>(x), pt::dim<1>(x)));
        },
        mat_of("x", m, n), vec_of("bias", n));
  };
  check_sizes([&](std::int64_t n) { return source(n, 6); }, "x", 0);
  check_sizes([&](std::int64_t n) { return source(6, n); }, "x", 1);
  check_sizes([&](std::int64_t n) { return source(6, n); }, "bias", 0);
}

TEST_CASE("uneven: products, along the batch, the columns and the contracted dimension") {
  const auto product = [](const auto& x, const auto& w) { return matmul(x, w); };
  const auto source = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    return pt::trace(product, mat_of("x", m, k), mat_of("w", k, n));
  };
  check_sizes([&](std::int64_t n) { return source(n, 3, 4); }, "x", 0);
  check_sizes([&](std::int64_t n) { return source(3, n, 4); }, "x", 1);
  check_sizes([&](std::int64_t n) { return source(3, n, 4); }, "w", 0);
  check_sizes([&](std::int64_t n) { return source(3, 4, n); }, "w", 1);
  // A square: both dimensions belong together.
  check_sizes(
      [&](std::int64_t n) {
        return pt::trace([](const auto& x) { return matmul(x, x) + pt::transpose<1, 0>(x); },
                         mat_of("x", n, n));
      },
      "x", 1);
}

TEST_CASE("uneven: the padding of reductions is their identity") {
  check_both([](const auto& x) {
    return std::tuple{pt::output("sum0", pt::sum<0>(x)),
                      pt::output("sum1", pt::sum<1>(x)),
                      pt::output("max0", pt::reduce_max<0>(x - 9)),
                      pt::output("max1", pt::reduce_max<1>(x - 9)),
                      pt::output("min", pt::reduce_min(x + 9)),
                      pt::output("mean", pt::mean(x)),
                      pt::output("all", pt::all<0>(x < 2)),
                      pt::output("any", pt::any<1>(x < -1)),
                      pt::output("whole", pt::reduce_max<0>(pt::convert<std::int32_t>(x - 9))),
                      pt::output("least", pt::reduce_min<1>(pt::convert<std::uint8_t>(x + 9))),
                      pt::output("product", pt::prod<0>(pt::convert<double>(x)))};
  });
}

TEST_CASE("uneven: softmax, norm, the maximum and its position") {
  check_both([](const auto& x) { return pt::nn::softmax(x); }, 1e-6);
  check_both([](const auto& x) { return pt::nn::softmax(pt::transpose<1, 0>(x)); }, 1e-6);
  check_both(
      [](const auto& x) {
        const auto ones = pt::full_like(pt::sum<0>(x), 1);
        return pt::nn::layer_norm(x, ones, ones);
      },
      1e-5);
  check_both([](const auto& x) {
    const auto [greatest, where] = pt::max_with_position<0>(x);
    return std::tuple{pt::output("argmax0", pt::argmax<0>(x)),
                      pt::output("argmax1", pt::argmax<1>(x)),
                      pt::output("argmin1", pt::argmin<1>(x)), pt::output("greatest", greatest),
                      pt::output("where", where)};
  });
}

TEST_CASE("uneven: order and running sums, along and across the dimension") {
  check_both([](const auto& x) {
    const auto [greatest, where] = pt::top_k<1>(x);
    return std::tuple{pt::output("sort0", pt::sort<0>(x)),
                      pt::output("sort1", pt::sort<1>(x)),
                      pt::output("argsort", pt::argsort<0>(x)),
                      pt::output("greatest", greatest),
                      pt::output("where", where),
                      pt::output("cumsum0", pt::cumsum<0>(x)),
                      pt::output("cumsum1", pt::cumsum<1>(x)),
                      pt::output("reverse", pt::reverse<0>(x)),
                      pt::output("both", pt::sort<0>(x) + x)};
  });
}

TEST_CASE("uneven: gather and scatter, along and across the dimension") {
  const auto rows = [](const auto& table, const auto& i) {
    return std::tuple{pt::output("take0", pt::take<0>(table, i)),
                      pt::output("take1", pt::take<1>(table, i)),
                      pt::output("gather", pt::gather(table, i))};
  };
  const auto source = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return pt::trace(rows, mat_of("x", m, n), indices_of("i", k));
  };
  check_sizes([&](std::int64_t n) { return source(n, 5, 3); }, "x", 0);
  check_sizes([&](std::int64_t n) { return source(5, n, 3); }, "x", 1);
  check_sizes([&](std::int64_t n) { return source(5, 4, n); }, "i", 0);

  const auto put = [](const auto& x, const auto& i, const auto& updates) {
    return std::tuple{pt::output("add", pt::scatter_add(x, i, updates)),
                      pt::output("max", pt::scatter_max(x, i, updates)),
                      pt::output("assign", pt::scatter_set(x, i, pt::full_like(updates, 7)))};
  };
  const auto scattered = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return pt::trace(put, mat_of("x", m, n), indices_of("i", k), mat_of("u", k, n));
  };
  check_sizes([&](std::int64_t n) { return scattered(n, 5, 3); }, "x", 0);
  check_sizes([&](std::int64_t n) { return scattered(5, n, 3); }, "x", 1);
  check_sizes([&](std::int64_t n) { return scattered(5, 4, n); }, "i", 0);
  // A sum over rows of a table that starts from zeros: each device has its block.
  check_sizes(
      [](std::int64_t n) {
        return pt::trace(
            [](const auto& table, const auto& i, const auto& y) {
              return pt::grad([&](const auto& t) { return pt::sum(pt::gather(t, i) * y); }, table);
            },
            mat_of("table", 4, 3), indices_of("i", n), mat_of("y", n, 3));
      },
      "i", 0);
}

TEST_CASE("uneven: ops that move data") {
  check_both([](const auto& x) {
    const auto m = pt::dim<0>(x), n = pt::dim<1>(x);
    return std::tuple{
        pt::output("along", pt::concatenate<0>(x, x * 2)),
        pt::output("across", pt::concatenate<1>(x, x * 2) * 2),
        pt::output("flat", pt::reshape(x, m.value() * n.value())),
        pt::output("wide", pt::reshape(x, m, 1, n) + 1),
        pt::output("back", pt::reshape(pt::reshape(x, m.value() * n.value()) * 2, m, n) + x),
        pt::output("transposed", pt::transpose<1, 0>(x)),
        pt::output("stacked", pt::stack<0>(x, x)),
        pt::output("part", pt::slice<pt::axes<0, 0>, pt::axes<1, 1>>(x)),
        pt::output("padded", pt::pad<pt::axes<1, 0>, pt::axes<0, 2>>(x, 5)),
        pt::output("position", pt::iota<float, 1>(x, m, n) + pt::iota<float, 0>(x, m, n) + x)};
  });
  check_sizes(
      [](std::int64_t n) {
        return pt::trace([](const auto& x) { return pt::reshape(x, pt::dim<0>(x), 2, 3); },
                         mat_of("x", n, 6));
      },
      "x", 0);
}

namespace {

struct weights {
  BOOST_HANA_DEFINE_STRUCT(weights, (matrix, up), (vector, bias), (matrix, down));
};

pt::program training_step(std::int64_t batch, std::int64_t in, std::int64_t hidden,
                          std::int64_t out) {
  const auto step = [](const auto& params, const auto& state, const auto& x, const auto& y) {
    const auto loss = [&](const auto& p) {
      const auto e = matmul(pt::nn::relu(pt::nn::linear(x, p.up, p.bias)), p.down) - y;
      return pt::mean(e * e);
    };
    const auto [value, gradients] = pt::value_and_grad(loss, params);
    const auto [next, next_state] = pt::adam(pt::adam_options{}, params, gradients, state);
    return std::tuple{pt::output("params", next), pt::output("state", next_state),
                      pt::output("loss", value)};
  };
  const weights w{.up = matrix(in, hidden), .bias = vector(hidden), .down = matrix(hidden, out)};
  return pt::trace(step, pt::input("params", w), pt::input("state", pt::adam_state_for(w)),
                   mat_of("x", batch, in), mat_of("y", batch, out));
}
/// Second moments are 1, so that a step does not magnify a rounded gradient; steps count from 0.
std::vector<pt::array> training_arguments(const pt::program& p) {
  std::vector<pt::array> inputs = arguments(p, 3);
  for (int i = 0; i < p.input_count(); ++i) {
    pt::array& x = inputs[static_cast<std::size_t>(i)];
    if (p.input_name(i) == "state.step") x = pt::array(p.input_type(i));
    if (p.input_name(i).substr(0, 7) == "state.v")
      x = data::fill(p.input_type(i), [](std::int64_t) { return 1; });
  }
  return inputs;
}

}  // namespace

TEST_CASE("uneven: dimensions that grow together may need different padding") {
  // A square: both dimensions have the padding of one, and the other one is only sliced or reduced.
  const auto check = [](const auto& then) {
    for (std::int64_t n = 4; n <= most_size; ++n) {
      const pt::program p = pt::trace(
          [&](const auto& x) {
            return std::tuple{matmul(x, x), then(x)};
          },
          mat_of("x", n, n));
      const auto inputs = arguments(p, n);
      for (const std::int64_t devices : {2, 3, 8})
        for (const int dim : {0, 1})
          check_equal(pt::partition(p, pt::mesh{{"B", devices}}, tactics{tile("B", "x", dim)}),
                      inputs, 0);
    }
  };
  check([](const auto& x) { return pt::pad<pt::axes<1, 0>, pt::axes<2, -2>>(x, pt::sum(x)); });
  check([](const auto& x) { return pt::pad<pt::axes<-1, 3>, pt::axes<0, 1>>(x, 7); });
  check([](const auto& x) {
    const auto wide = pt::pad<pt::axes<2, 0>, pt::axes<1, -1>>(x, 7);
    return pt::pad<pt::axes<1>, pt::axes<2>>(pt::reduce_max<1>(wide), -5);
  });
}

TEST_CASE("uneven: a training step of two layers with Adam") {
  for (std::int64_t n = 1; n <= most_size; ++n)
    for (std::int64_t devices : {2, 3, 5, 8}) {
      CAPTURE(n);
      CAPTURE(devices);
      const pt::mesh m{{"B", devices}, {"M", 2}};
      const auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP", pt::uneven::pad);
      const auto MP = pt::manual("M", {{"params.up", 1}, {"params.bias", 0}, {"params.down", 0}},
                                 "MP", pt::uneven::pad);
      const auto Z3 =
          pt::manual("B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}},
                     "Z3", pt::uneven::pad);
      for (const auto& p :
           {training_step(n, 4, 6, 3), training_step(6, 4, n, 3), training_step(4, n, 5, n)}) {
        const auto inputs = training_arguments(p);
        const auto r = pt::partition(p, m, pt::schedule(BP, MP, Z3));
        CHECK(r.tactics.back().notes.empty());  // states stay in place; nothing stays replicated
        check_equal(r, inputs, 1e-5);
      }
    }
}

TEST_CASE("uneven: loops, branches and calls") {
  const auto carried = [](std::int64_t m, std::int64_t n) {
    return pt::trace(
        [](const auto& x, const auto& steps) {
          const auto body = [&](const auto& h, const auto& step) {
            const auto next = h + x * pt::sum(step);
            return std::pair{next, pt::sum<0>(next)};
          };
          const auto [last, sums] = pt::scan(body, x, steps);
          const auto twice = pt::for_loop(
              0, 3,
              [&](const auto& i, const auto& c) {
                return c + pt::reduce_max(c) + pt::convert<float>(i);
              },
              x);
          const auto doubled = pt::while_loop([](const auto& c) { return pt::sum(c * c) < 100; },
                                              [](const auto& c) { return c * 2 + 1; }, x);
          const auto chosen = pt::cond(
              pt::sum(x) < 0, [](const auto& v) { return pt::sort<0>(v); },
              [](const auto& v) { return v * 3; }, x);
          const auto called = pt::call(
              "centred", [](const auto& v) { return v - pt::reduce_max(v); }, x);
          return std::tuple{pt::output("last", last),     pt::output("sums", sums),
                            pt::output("twice", twice),   pt::output("doubled", doubled),
                            pt::output("chosen", chosen), pt::output("called", called)};
        },
        mat_of("x", m, n), mat_of("steps", 3, 4));
  };
  check_sizes([&](std::int64_t n) { return carried(n, 2); }, "x", 0);
  check_sizes([&](std::int64_t n) { return carried(2, n); }, "x", 1);
  // The steps themselves: a loop runs each of them, and no other.
  check_sizes(
      [](std::int64_t n) {
        return pt::trace(
            [](const auto& x, const auto& steps) {
              const auto [last, all] = pt::scan(
                  [](const auto& h, const auto& s) {
                    return std::pair{h + s, h * 2};
                  },
                  x, steps);
              return std::tuple{pt::output("last", last), pt::output("all", all + steps)};
            },
            vec_of("x", 4), mat_of("steps", n, 4));
      },
      "steps", 0);
}

TEST_CASE("uneven: several axes, several tactics") {
  const auto model = [](const auto& x, const auto& w, const auto& y) {
    return std::tuple{pt::output("a", matmul(x, w) + y), pt::output("b", pt::sum<0>(x)),
                      pt::output("c", pt::sort<0>(y)), pt::output("d", matmul(y, y))};
  };
  for (std::int64_t n = 1; n <= most_size; ++n) {
    const auto p = pt::trace(model, mat_of("x", n, 5), mat_of("w", 5, n), mat_of("y", n, n));
    const auto inputs = arguments(p, n);
    for (const pt::mesh& m : {pt::mesh{{"A", 2}, {"B", 3}}, pt::mesh{{"A", 4}, {"B", 2}},
                              pt::mesh{{"A", 3}, {"B", 8}}, pt::mesh{{"A", 1}, {"B", 7}}}) {
      CAPTURE(n);
      CAPTURE(str(pt::concat(m)));
      // One dimension over two axes; the second tactic enlarges the padding of the first.
      const auto both =
          pt::partition(p, m, tactics{tile("A", "x", 0), tile("B", "x", 0), tile("B", "w", 0)});
      CHECK(both.input("x").sharding.count == (m.size(0) > 1) + (m.size(1) > 1));
      const std::int64_t pieces = m.devices(), local = (n + pieces - 1) / pieces;
      CHECK(both.input("x").local_shape[0] == local);
      check_equal(both, inputs, 0);
      // Both dimensions of a square, which belong together; results by name, and deep tiling.
      check_equal(pt::partition(p, m, tactics{tile("A", "y", 0), tile("B", "y", 1)}), inputs, 0);
      check_equal(pt::partition(p, m, tactics{tile("A", "a", 1), tile("B", "a", 1)}), inputs, 0);
      check_equal(pt::partition(p, m, tactics{tile("B", "c", 0), tile("A", "c", 0)}), inputs, 0);
      check_equal(pt::partition(p, m,
                                tactics{tile("B", "d", 1), tile("A", "b", 0), tile("A", "c", 1),
                                        tile("B", "w", 1)}),
                  inputs, 0);
    }
  }
}

TEST_CASE("uneven: the padding of an argument does not matter") {
  const auto p = pt::trace(
      [](const auto& x, const auto& w) {
        return std::tuple{pt::output("y", matmul(x, w)), pt::output("s", pt::nn::softmax(x))};
      },
      mat_of("x", 5, 7), mat_of("w", 7, 3));
  const auto r = pt::partition(p, pt::mesh{{"B", 4}}, tactics{tile("B", "x", 1)});
  pt::device_program whole = r.device;
  const auto inputs = arguments(p, 3);
  std::vector<pt::array> filled;  // with NaN
  for (int i = 0; i < p.input_count(); ++i) {
    const pt::shape larger = r.core.p.input_type(i).shape;
    const pt::array& x = inputs[static_cast<std::size_t>(i)];
    filled.push_back(data::fill({pt::dtype::f32, larger}, [&](std::int64_t e) {
      std::int64_t at = 0, unit = 1;
      for (int d = larger.rank; d-- > 0; e /= larger[d]) {
        if (e % larger[d] >= x.shape()[d]) return std::numeric_limits<double>::quiet_NaN();
        at += e % larger[d] * unit;
        unit *= x.shape()[d];
      }
      return static_cast<double>(x.data<float>()[at]);
    }));
    whole.input_types[static_cast<std::size_t>(i)].shape = larger;
  }
  CHECK(pt::max_difference(pt::emulate(whole, filled), pt::evaluate(p, inputs)) < 1e-6);
}

TEST_CASE("uneven: microbatches of a padded batch") {
  const auto BP = pt::manual("B", {{"x", 0}, {"y", 0}}, "BP", pt::uneven::pad);
  const auto steps = pt::microbatch(2, {{"x", 0}, {"y", 0}}, "MB");
  for (std::int64_t batch : {10, 26, 30})
    for (std::int64_t devices : {2, 3, 4, 7}) {
      CAPTURE(batch);
      CAPTURE(devices);
      const pt::program p = training_step(batch, 3, 5, 2);
      const auto r = pt::partition(p, pt::mesh{{"B", devices}}, pt::schedule(BP, steps));
      check_equal(r, training_arguments(p), 1e-5);
      if (batch % devices != 0 && batch / 2 >= devices)  // each step has its own blocks
        CHECK(r.collectives.all_gather == 0);
    }
}

namespace {

using rows = pt::tensor<float, dyn, dyn, dyn>;  // (b, n, c)
constexpr pt::conv_options same{.padding = pt::same_padding};
constexpr pt::conv_options halving{.strides = {2}, .padding = pt::same_padding};
constexpr pt::nn::pool_options three{.size = {3}, .strides = {1}, .padding = pt::same_padding};

pt::program windows_of(std::int64_t n, const auto& model) {
  return pt::trace(
      [&](auto x, auto w) {
        const auto [loss, g] = pt::value_and_grad(
            [&](auto p) {
              const auto y = model(std::get<0>(p), std::get<1>(p));
              return sum(y * y);
            },
            std::tuple{x, w});
        return std::tuple{loss, std::get<0>(g), std::get<1>(g)};
      },
      pt::input("x", rows(2, n, 3)), pt::input("w", rows(3, 3, 2)));
}

}  // namespace

TEST_CASE("convolutions and pooling, forward and backward") {
  check_sizes([](std::int64_t n) { return windows_of(n, pt::conv<same, rows, rows>); }, "x", 1);
  check_sizes([](std::int64_t n) { return windows_of(n, pt::conv<halving, rows, rows>); }, "x", 1,
              0, 2);
  check_sizes(
      [](std::int64_t n) {
        return windows_of(
            n, [](auto x, auto w) { return pt::nn::max_pool<three>(pt::conv<same>(x, w)); });
      },
      "x", 1);
}
TEST_CASE("windows over uneven dimensions exchange halos") {
  const auto p = pt::partition(windows_of(13, pt::conv<same, rows, rows>), pt::mesh{{"B", 4}},
                               tactics{tile("B", "x", 1)});
  // x once, for the product and for the gradient of w; the cotangent, for that of x.
  CHECK(p.collectives == pt::collectives{.all_reduce = 2, .permute = 4});
  CHECK(p.input("x").local_shape == pt::shape{2, 4, 3});
}

namespace {

pt::partitioned check_reversed(const pt::mesh& mesh, std::int64_t rows, std::int64_t columns,
                               const auto& schedule) {
  const auto p = pt::trace(
      [](auto x, auto w) {
        const auto y = pt::reverse<0>(x);
        return std::tuple{pt::output("y", y), pt::output("z", y + w), pt::output("q", x + w)};
      },
      mat_of("x", rows, columns), mat_of("w", rows, columns));
  const auto r = pt::partition(p, mesh, schedule);
  check_equal(r, arguments(p, 3), 0);
  return r;
}

}  // namespace

TEST_CASE("uneven: a value that is padded or sliced for one axis grows for another") {
  const auto pad = [](std::string_view axis, int dim) { return tile(axis, "w", dim); };
  for (std::int64_t rows : {3, 9}) {
    const pt::mesh mesh{{"C", rows == 9 ? 10 : 2}, {"D", 3}, {"E", 4}};
    check_reversed(mesh, rows, 6, pt::schedule(pad("C", 0), pad("D", 0), pad("E", 1)));
  }
  const auto r =
      check_reversed({{"C", 2}, {"D", 3}, {"E", 2}}, 9, 6,
                     pt::schedule(pad("C", 0), pad("D", 0), pt::manual("E", {{"w", 1}})));
  CHECK(r.core.conflicts.size() == 0);
  // A value in its true size has loops of its own, which the padded size need not divide.
  const pt::mesh mesh{{"A", 4}, {"B", 3}, {"C", 5}};
  for (std::string_view name : {"x", "y", "z"})
    check_reversed(
        mesh, 9, 2,
        tactics{tile("A", "x", 0), pt::manual("B", {{name, 0}}, name), tile("C", "x", 0)});
}

TEST_CASE("uneven: a major part whose minor part is sliced does not grow") {
  const auto p = pt::trace(
      [](auto x, auto y, auto z) {
        return std::tuple{pt::reshape<4, 4>(x * (y + 1)), y + z};
      },
      pt::input<float, 16>("x"), pt::input<float, 16>("y"), pt::input<float, 16>("z"));
  const auto r = pt::partition(p, pt::mesh{{"B", 16}, {"M", 3}},
                               tactics{pt::manual("B", {{"x", 0}}), tile("M", "z", 0)});
  check_equal(r, arguments(p, 1), 0);
  // A dimension that has grown before does not grow either.
  const auto q =
      pt::trace([](auto x) { return pt::reshape<4, 2, 2>(x); }, pt::input<float, 16>("x"));
  const pt::amalgamated first("first", tile("B", "x", 0), tile("T", "x", 0));
  check_equal(pt::partition(q, pt::mesh{{"B", 3}, {"T", 8}, {"M", 2}},
                            pt::schedule(first, tile("M", "x", 0))),
              arguments(q, 1), 0);
}
TEST_CASE("uneven: a sliced value stays sliced when its larger copy is made") {
  const auto p = pt::trace(
      [](auto x) {
        const auto y = pt::reverse<0>(x);
        return std::tuple{pt::output("y", y), pt::output("z", abs(y))};
      },
      pt::input<float, 6>("x"));
  for (std::int64_t more : {2, 4, 5}) {
    const auto r = pt::partition(p, pt::mesh{{"B", 3}, {"M", more}},
                                 tactics{pt::manual("B", {{"x", 0}}), tile("M", "z", 0)});
    check_equal(r, arguments(p, 1), 0);
    CHECK(r.output("y").sharding.dim_of(0) == 0);
  }
}

namespace {

/// Runs pairs of tactics on all values, in sequence along different axes: the results are equal.
void check_pairs_of_tactics(const pt::program& p, std::initializer_list<const char*> names) {
  const auto inputs = data::arguments(p);
  const auto whole = pt::evaluate(p, inputs);
  const pt::mesh mesh{{"A", 3}, {"B", 2}};
  for (const char* first : names)
    for (const char* second : names) {
      const auto r = pt::partition(p, mesh, tactics{tile("A", first, 0), tile("B", second, 0)});
      const bool same =
          pt::equal(pt::emulate(r, inputs), whole) && pt::equal(pt::temporal(r, inputs), whole);
      CHECK_MESSAGE(same, first, ' ', second, '\n', str(pt::print(r.core.p)));
      CHECK_MESSAGE(pt::prove(r).proved, str(pt::print(r.device)));
    }
}

}  // namespace

TEST_CASE(
    "windows and their positions are padded each by itself, where they have little in common") {
  check_pairs_of_tactics(pt::parse(R"(func @main(%x: tensor<16x3xf32>, %z: tensor<16x3xf32>) {
  %y = ceil(%x) : tensor<16x3xf32>
  %o = reduce_window(%y) {max, window=[3, 1], window_dilation=[2, 1], low=[2, 0]} : tensor<14x3xf32>
  %p = reduce(%y) {add, dims=[1]} : tensor<16xf32>
  %q = minimum(%x, %z) : tensor<16x3xf32>
  return %o, %p, %q : tensor<14x3xf32>, tensor<16xf32>, tensor<16x3xf32>
})"),
                         {"x", "z", "o", "p", "q"});
  check_pairs_of_tactics(pt::parse(R"(func @main(%x: tensor<14xf32>) {
  %c = constant {0} : tensor<f32>
  %y = pad(%x, %c) {low=[1], high=[1]} : tensor<16xf32>
  %z = tanh(%y) : tensor<16xf32>
  %o = pad(%z, %c) {low=[-2], high=[-2]} : tensor<12xf32>
  return %o, %y : tensor<12xf32>, tensor<16xf32>
})"),
                         {"x", "o", "y"});
}
TEST_CASE("uneven: a pad of 28 to 30, and valid windows, forward and backward") {
  const auto padded = pt::trace([](auto x) { return pt::pad<pt::axes<1>, pt::axes<1>>(x, 0); },
                                pt::input<float, 28>("x"));
  const auto p = pt::partition(padded, pt::mesh{{"B", 4}}, tactics{tile("B", "x", 0)});
  // 28 in blocks of 7; 32, for 30, in blocks of 8. The first block needs no element of its
  // neighbour, the second one element, the third two.
  CHECK(p.collectives == pt::collectives{.permute = 1});
  CHECK(p.output("result").local_shape == pt::shape{8});
  // A border of x serves the product and the gradient of w, one of the cotangent serves that of x.
  // 28 rows make blocks of 7, and 26 positions 28.
  const auto valid = windows_of(28, pt::conv<pt::conv_options{}, rows, rows>);
  const auto q = pt::partition(valid, pt::mesh{{"B", 4}}, tactics{tile("B", "x", 1)});
  CHECK(q.collectives == pt::collectives{.all_reduce = 2, .permute = 2});
  for (const auto& each : {p, q}) {
    const auto inputs = data::arguments(each.source);
    CHECK(pt::equal(pt::emulate(each, inputs), pt::evaluate(each.source, inputs)));
    CHECK(pt::prove(each).proved);
  }
}
namespace {
constexpr pt::window pair{.size = {2}}, halving_three{.size = {3}, .strides = {2}};
}  // namespace

TEST_CASE("uneven: sizes without a common factor exchange borders, forward and backward") {
  const auto check = [](const pt::program& p, const pt::collectives& expected) {
    const auto r = pt::partition(p, pt::mesh{{"B", 4}}, tactics{tile("B", "x", 0)});
    CHECK_MESSAGE(r.collectives == expected, str(pt::print(r.device)));
    check_equal(r, data::arguments(p), 0);
    CHECK_MESSAGE(pt::prove(r).proved, str(pt::print(r.device)), str(pt::prove(r).error.message));
  };
  const auto of = [](const auto& model, std::int64_t n) {
    return pt::trace(model, vec_of("x", n));
  };
  const auto gradient = [](const auto& model, std::int64_t n) {
    return pt::trace(
        [&](auto x) {
          return pt::grad(
              [&](auto y) {
                const auto z = model(y);
                return pt::sum(z * z);
              },
              x);
        },
        vec_of("x", n));
  };
  const auto front = [](auto x) { return pt::slice<0, 0, 15>(x); };
  const auto back = [](auto x) { return pt::slice<0, 1, 32>(x); };
  const auto difference = [](auto x) { return pt::slice<0, 1, 32>(x) - pt::slice<0, 0, 31>(x); };
  check(of(front, 16), {});
  check(of(back, 32), {.permute = 1});
  check(of(difference, 32), {.permute = 1});
  check(gradient(difference, 32), {.permute = 2});
  // If the dimension is padded, the values of a pad also fill the padding.
  check(of([](auto x) { return pt::pad<pt::axes<1>, pt::axes<1>>(x, 7); }, 14), {.permute = 1});
  check(of([](auto x) { return pt::pad<pt::axes<1>, pt::axes<0>>(x, 7); }, 16), {.permute = 1});
  check(of([](auto x) { return pt::pad<pt::axes<1>, pt::axes<1>>(x, pt::sum(x)); }, 14),
        {.all_reduce = 1, .permute = 1});
  // 9 windows of 10 elements: a border of x forward, one of each neighbour and one of the cotangent
  // backward. 7 windows of 16 elements, at every second one.
  const auto greatest = [](auto x) { return pt::reduce_window<pt::combiner::max, pair>(x); };
  const auto least = [](auto x) { return pt::reduce_window<pt::combiner::min, halving_three>(x); };
  check(gradient(greatest, 10), {.permute = 4});
  check(gradient(least, 16), {.permute = 4});
  check(gradient([](auto x) { return pt::reduce_window<pt::combiner::add, pair>(x); }, 16),
        {.permute = 2});
}
TEST_CASE("uneven: windows that select, on blocks that are not multiples of the stride") {
  // Blocks of 3, windows at every second element: each device reads the windows that overlap its
  // own.
  for (std::int64_t n : {9, 10, 12, 15})
    for (std::int64_t devices : {2, 3, 4, 5}) {
      CAPTURE(n);
      CAPTURE(devices);
      pt::builder b;
      const pt::window_dim w[] = {{.size = 3, .stride = 2, .low = 1, .high = 1}};
      const std::int64_t made = w[0].positions(n);
      const auto x = pt::ops::parameter(b, "x", {pt::dtype::f32, {n}});
      const auto v = pt::ops::parameter(b, "v", {pt::dtype::f32, {made}});
      b.p.outputs.push_back(
          {pt::ops::select_and_scatter(b, x, v, pt::ops::direction::ge, w), b.p.intern("y")});
      const auto r = pt::partition(b.p, pt::mesh{{"B", devices}}, tactics{tile("B", "x", 0)});
      check_equal(r, data::arguments(b.p), 0);
      CHECK_MESSAGE(pt::prove(r).proved, str(pt::print(r.device)), str(pt::prove(r).error.message));
    }
}
TEST_CASE("uneven: padded taps meet no infinity") {
  // In blocks, some devices have all of their taps, at most one has some, the others none.
  for (const auto& [taps, stride, devices] :
       {std::tuple{6, 1, 4}, {6, 1, 5}, {6, 1, 7}, {4, 2, 3}, {4, 2, 5}, {2, 2, 6}, {3, 1, 7}}) {
    CAPTURE(taps);
    CAPTURE(devices);
    const int made = (8 - 1 - taps) / stride + 1;
    const auto tensor = [](int n) { return "tensor<1x" + std::to_string(n) + "x1xf32>"; };
    const pt::program p =
        pt::parse("func @main(%x: " + tensor(8) + ", %w: tensor<" + std::to_string(taps) +
                  "x1x1xf32>) {\n  %y = convolution(%x, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], "
                  "result=[0, 2, 1], strides=[" +
                  std::to_string(stride) + "], high=[-1]} : " + tensor(made) +
                  "\n  return %y : " + tensor(made) + "\n}");
    REQUIRE_MESSAGE(!p.error, str(p.error.message));
    const std::vector<pt::array> in{
        data::fill(p.input_type(0),
                   [](std::int64_t i) {
                     return i == 7 ? std::numeric_limits<double>::infinity() : double(i);
                   }),
        data::fill(p.input_type(1), [](std::int64_t i) { return double(i + 1); })};
    const auto r = pt::partition(p, pt::mesh{{"B", devices}}, tactics{tile("B", "w", 0)});
    check_equal(r, in, 0);
    CHECK_MESSAGE(r.collectives.all_gather == 0, str(pt::print(r.device)));
    CHECK_MESSAGE(pt::prove(r).proved, str(pt::print(r.device)), str(pt::prove(r).error.message));
  }
}
TEST_CASE("uneven: blocks divide both ends of a window, one of which a pad enlarges") {
  // The reshape makes 6 elements, padded to 8 for 4 blocks. The slice of 2 of them has grown to 12
  // by then.
  const auto model = [](auto x, auto y, auto z) {
    return x + y + pt::slice<0, 0, 2>(pt::reshape<6>(z));
  };
  const auto p = pt::trace(model, vec_of("x", 2), vec_of("y", 2), mat_of("z", 3, 2));
  pt::core_program core(p, pt::mesh{{"B", 6}, {"M", 4}});
  REQUIRE(!core.tile(core.p.inputs[0], 0, 0, pt::uneven::pad));
  REQUIRE(!core.tile(core.p.inputs[1], 0, 1, pt::uneven::pad));
  core.propagate();
  const pt::lowered l = pt::lower(core);
  REQUIRE(str(pt::verify(l.device).message) == "");
  const auto inputs = arguments(p, 6);
  const pt::results expected = pt::evaluate(p, inputs);
  CHECK(pt::max_difference(pt::emulate(l.device, inputs), expected) == 0);
  CHECK(pt::max_difference(pt::temporal(core, inputs), expected) == 0);
}
TEST_CASE(
    "uneven: a value padded with the value it is spread to keeps its size when padded alone") {
  // 16 elements, padded to 28 for 7 blocks, come from 14 that are spread; then 8 blocks of these
  // make 16.
  const pt::program p = pt::parse(
      "func @main(%x: tensor<8xf32>, %c: tensor<f32>, %i: tensor<i32>) {\n"
      "  %s = sign(%x) : tensor<8xf32>\n"
      "  %p = pad(%s, %c) {low=[-1], high=[2], interior=[1]} : tensor<16xf32>\n"
      "  %y = case(%i, %p) do (%a: tensor<16xf32>) {\n    return %a : tensor<16xf32>\n"
      "  } do (%b: tensor<16xf32>) {\n    %n = negate(%b) : tensor<16xf32>\n"
      "    return %n : tensor<16xf32>\n  } : tensor<16xf32>\n  return %y : tensor<16xf32>\n}\n");
  REQUIRE(!p.error);
  pt::core_program core(p, pt::mesh{{"B", 7}, {"M", 8}});
  pt::value_id inner = -1;
  for (pt::op_id o = 0; o < core.p.op_count(); ++o)
    if (core.p.op(o).def->name == "negate") inner = core.p.operand(o, 0);
  REQUIRE(!core.tile(inner, 0, 0, pt::uneven::pad));
  REQUIRE(!core.tile(core.p.inputs[0], 0, 1, pt::uneven::pad));
  core.propagate();
  const pt::lowered l = pt::lower(core);
  REQUIRE(str(pt::verify(l.device).message) == "");
  const auto inputs = arguments(p, 2);
  const pt::results expected = pt::evaluate(p, inputs);
  CHECK(pt::max_difference(pt::emulate(l.device, inputs), expected) == 0);
  CHECK(pt::max_difference(pt::temporal(core, inputs), expected) == 0);
}
TEST_CASE("uneven: the report suggests padding instead of a gather") {
  const auto p = pt::trace([](auto x) { return pt::slice<0, 0, 15>(x); }, vec_of("x", 16));
  const auto r = pt::partition(p, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(r.collectives == pt::collectives{.all_gather = 1});
  CHECK(str(pt::explain(r))
            .find("since it computes 15 elements from 16, and 4 does not divide both; "
                  "uneven::pad lets it exchange borders") != std::string::npos);
}
TEST_CASE("uneven: the report explains why a slice times 0 does not become a shift") {
  const pt::program p = pt::parse(
      "func @main(%x: tensor<16xf32>) {\n  %a = slice(%x) {[0:1]} : tensor<1xf32>\n  %c = constant "
      "{0} : tensor<f32>\n  %o = broadcast_in_dim(%c) {dims=[]} : tensor<1xf32>\n  %z = "
      "multiply(%a, %o) : tensor<1xf32>\n  %b = slice(%x) {[0:15]} : tensor<15xf32>\n  %y = "
      "concatenate(%z, %b) {dim=0} : tensor<16xf32>\n  return %y : tensor<16xf32>\n}");
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  const auto r = pt::partition(p, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(str(pt::explain(r))
            .find("since 0 times an infinity is NaN; constant zeros would make it a shift") !=
        std::string::npos);
}
