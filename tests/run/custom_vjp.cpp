// User-defined derivatives: in gradients, loops, branches, on a mesh, in microbatches.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

// x^3 with a derivative that is wrong on purpose, to be recognized: 100 x, from the residual x.
constexpr auto odd_cube = pt::custom_vjp(
    [](const auto& x) {
      return std::pair{x * x * x, x};
    },
    [](const auto& x, const auto& g) { return g * x * 100.f; });

// x, whose gradient is clipped to [-1, 1].
constexpr auto clipped = pt::custom_vjp(
    [](const auto& x) {
      return std::pair{x, std::tuple{}};
    },
    [](const auto&, const auto& g) { return pt::clamp(-1, g, 1); });

struct weights {
  BOOST_HANA_DEFINE_STRUCT(weights, (pt::tensor<float, 8, 8>, up), (pt::tensor<float, 8>, bias));
};
// A layer with its correct derivative by hand: a tree, a tensor and positions in, two tensors out.
constexpr auto layer = pt::custom_vjp(
    [](const auto& w, const auto& x, const auto& rows) {
      const auto h = gather(x, rows);
      const auto y = pt::tag("y", matmul(h, w.up) + w.bias);
      return std::pair{std::tuple{tanh(y), sum(y)}, std::tuple{w, h, y, x, rows}};
    },
    [](const auto& kept, const auto& g) {
      const auto& [w, h, y, x, rows] = kept;
      const auto t = tanh(y);
      const auto dy = pt::tag("dy", std::get<0>(g) * (1 - t * t) + std::get<1>(g));
      auto dw = w;
      dw.up = matmul(pt::transpose<1, 0>(h), dy);
      dw.bias = pt::sum<0>(dy);
      const auto dh = matmul(dy, pt::transpose<1, 0>(w.up));
      return std::tuple{dw, pt::scatter_add(rows, dh, pt::dim<0>(x)), rows};
    });
constexpr auto plain_layer = [](const auto& w, const auto& x, const auto& rows) {
  const auto y = matmul(gather(x, rows), w.up) + w.bias;
  return std::tuple{tanh(y), sum(y)};
};
/// A training step of two layers.
template <class Layer>
pt::program step_of(const Layer& f) {
  return pt::trace(
      [&](auto w, auto x, auto rows) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& p) {
              const auto [y, s] = f(std::get<0>(p), std::get<1>(p), rows);
              const auto [z, t] = f(std::get<0>(p), y, rows);
              return mean(z * z) + s * t;
            },
            std::tuple{w, x});
        return std::tuple{pt::output("w", pt::sgd(0.125, w, std::get<0>(g))),
                          pt::output("dx", std::get<1>(g)), pt::output("loss", loss)};
      },
      pt::input<weights>("w"), pt::input<float, 16, 8>("x"), pt::input<std::int32_t, 16>("rows"));
}
/// Returns small whole numbers.
std::vector<pt::array> arguments_of(const pt::program& p) {
  std::vector<pt::array> list;
  for (int i = 0; i < p.input_count(); ++i) {
    pt::array a({pt::dtype::f32, p.input_type(i).shape});
    for (std::int64_t k = 0; k < a.size(); ++k)
      a.mutable_data<float>()[k] = static_cast<float>((k * 7 + i) % 5) /
                                   (p.input_type(i).element == pt::dtype::f32 ? 16 : 1);
    list.push_back(pt::as_type(a, p.input_type(i).element));
  }
  return list;
}

}  // namespace

TEST_CASE("custom_vjp: a gradient uses the given derivative, also at second order") {
  const auto p = pt::trace(
      [](auto x) {
        const auto f = [](const auto& v) { return sum(odd_cube(v)); };
        const auto first = pt::grad(f, x);
        const auto second = pt::grad([&](const auto& v) { return sum(pt::grad(f, v)); }, x);
        return std::tuple{pt::output("f", odd_cube(x)), pt::output("first", first),
                          pt::output("second", second)};
      },
      pt::input<float>("x"));
  const auto r = pt::evaluate(p, 3.f);
  CHECK(r["f"].item<float>() == 27);
  CHECK(r["first"].item<float>() == 300);
  CHECK(r["second"].item<float>() == 100);
  // Only the ops remain.
  CHECK(str(pt::print(p)).find("custom_vjp") == std::string::npos);
}

TEST_CASE("custom_vjp: a gradient can be clipped") {
  const auto p = pt::trace(
      [](auto x) { return pt::grad([](const auto& v) { return sum(clipped(v) * v * v); }, x); },
      pt::input<float, 2>("x"));
  const pt::array x = data::fill({pt::dtype::f32, {2}}, [](auto i) { return i == 0 ? 0.5 : 3; });
  const pt::array g = pt::evaluate(p, x).only();
  CHECK(g.data<float>()[0] == 0.25f + 2 * 0.25f);
  CHECK(g.data<float>()[1] == 1 + 2 * 9);
}

TEST_CASE("custom_vjp: a printed program has the ops, and no residual that is not needed") {
  CHECK("\n" +
            str(pt::print(pt::trace(
                [](auto x) { return pt::grad([](const auto& v) { return sum(odd_cube(v)); }, x); },
                pt::input<float, 4>("x")))) ==
        R"(
func @main(%x: tensor<4xf32>) {
  %x1 = constant {1} : tensor<f32>
  %x2 = broadcast_in_dim(%x1) {dims=[]} : tensor<4xf32>
  %x3 = multiply(%x2, %x) : tensor<4xf32>
  %x4 = constant {100} : tensor<f32>
  %x5 = multiply(%x3, %x4) : tensor<4xf32>
  return %x5 : tensor<4xf32>
}
)");
}

TEST_CASE("custom_vjp: a layer by hand equals the derived layer") {
  const auto mine = step_of(layer), plain = step_of(plain_layer);
  const auto arguments = arguments_of(mine);
  const auto wanted = pt::evaluate(plain, arguments);
  CHECK(pt::all_close(pt::evaluate(mine, arguments), wanted, 1e-5, 1e-4));
  const pt::mesh mesh{{"B", 4}, {"M", 2}};
  const auto BP = pt::manual("B", {{"rows", 0}}, "BP");
  const auto MP = pt::manual("M", {{"w.up", 1}}, "MP");
  for (const auto& p :
       {pt::partition(mine, mesh, pt::schedule(BP)),
        pt::partition(mine, mesh, pt::schedule(BP, MP)),
        pt::partition(mine, mesh, pt::schedule(MP, pt::manual("B", {{"y", 0}, {"dy", 0}}))),
        pt::partition(mine, mesh, pt::schedule(pt::remat({"y"}), BP))})
    CHECK(pt::all_close(pt::emulate(p, arguments), wanted, 1e-5, 1e-4));
  // The ops of the backward function count as derivatives, as in the derived layer.
  const auto derivatives = [](const pt::program& p) {
    int n = 0;
    for (const auto& o : p.ops)
      n += o.def->name == "dot_general" && o.marks.transposed == 1 && o.marks.origin >= 0;
    return n;
  };
  CHECK(derivatives(mine) == 4);
  CHECK(derivatives(plain) == 4);
}

TEST_CASE("custom_vjp: works in loops, branches, calls and microbatches") {
  const auto p = pt::trace(
      [](auto w, auto x) {
        return pt::value_and_grad(
                   [&](const auto& v) {
                     auto y = pt::for_loop(
                         0, 3, [&](auto, const auto& h) { return odd_cube(h) * v; }, x);
                     y = pt::cond(
                         sum(y) > 0.f, [](const auto& h) { return odd_cube(h); },
                         [](const auto& h) { return h; }, y);
                     y = pt::call(
                         "f", [](const auto& h) { return odd_cube(h); }, y);
                     return sum(y);
                   },
                   w)
            .second;
      },
      pt::input<float, 8, 2>("w"), pt::input<float, 8, 2>("x"));
  CHECK(str(pt::print(p)).find("custom_vjp") == std::string::npos);
  pt::array w({pt::dtype::f32, {8, 2}}), x = w;
  for (int i = 0; i < 16; ++i) w.mutable_data<float>()[i] = 1, x.mutable_data<float>()[i] = 1;
  // y = w (w (w x^3)^3)^3 = 1, with slopes of 100 for each cube: dy/dw of the three steps is
  // 1 + 100 + 100^2, times 100^2 for the branch and the call.
  const auto r = pt::evaluate(p, w, x);
  for (int i = 0; i < 16; ++i) CHECK(r.only().data<float>()[i] == 10101e4f);
  const auto q = pt::partition(p, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"w", 0}})));
  CHECK(pt::equal(pt::emulate(q, w, x), r));
  CHECK(q.collectives.total() == 1);  // the sum of the condition

  const auto mine = step_of(layer);
  const auto steps =
      pt::partition(mine, pt::mesh{{"B", 2}},
                    pt::schedule(pt::microbatch(4, {{"rows", 0}}), pt::manual("B", {{"rows", 0}})));
  const auto arguments = arguments_of(mine);
  CHECK(pt::all_close(pt::emulate(steps, arguments), pt::evaluate(mine, arguments), 1e-5, 1e-4));
}

TEST_CASE("custom_vjp: a gradient that would be lost is an error") {
  CHECK(data::thrown([] {
          pt::trace(
              [](auto w, auto x) {
                return pt::grad(
                    [&](const auto& v) {
                      return sum(pt::custom_vjp(
                          [&](const auto& u) {
                            return std::pair{u * v, v};
                          },
                          [](const auto& kept, const auto& g) { return g * kept; })(x));
                    },
                    w);
              },
              pt::input<float, 4>("w"), pt::input<float, 4>("x"));
        }) ==
        "G005 custom_vjp: the forward function uses \"w\", tensor<4xf32>, which is not an "
        "argument, and a gradient is wanted for it; pass it as an argument, or use stop_gradient");
  // With respect to x alone it is right, and so are values that are not differentiated.
  CHECK(data::thrown([] {
          pt::trace(
              [](auto w, auto x) {
                return pt::grad(
                    [&](const auto& v) {
                      return sum(pt::custom_vjp(
                          [&](const auto& u) {
                            return std::pair{u * w, w};
                          },
                          [](const auto& kept, const auto& g) { return g * kept; })(v));
                    },
                    x);
              },
              pt::input<float, 4>("w"), pt::input<float, 4>("x"));
        }).empty());
}

TEST_CASE("custom_vjp: cotangents of another shape are refused when the program is traced") {
  CHECK(data::thrown([] {
          pt::trace(
              [](auto x) {
                return pt::custom_vjp(
                    [](const auto& u) {
                      return std::pair{sum(u), u};
                    },
                    [](const auto& u, const auto& g) { return concatenate<0>(u, u) * g; })(x);
              },
              pt::input<float, pt::dyn>("x", 4));
        }) ==
        "G004 custom_vjp: the backward function returns tensor<8xf32> as cotangent 0; its argument "
        "has type tensor<4xf32>");
}
