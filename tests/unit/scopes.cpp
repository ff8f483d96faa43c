// Scopes: the part of the model that an op comes from, in reports and errors.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace {

namespace pt = partita;
namespace nn = partita::nn;
using unit::str;

/// Returns `op in the gradient of layers.0.mlp` for each op that has a scope.
std::string places(const pt::program& p) {
  pt::text out;
  pt::ir_detail::for_each_op(p, [&](const pt::op_node& n) {
    pt::text place;
    pt::print_place(place, p.scopes, n.marks);
    if (!place.empty()) out << n.def->name << place << '\n';
  });
  return str(out);
}
template <class F>
std::string thrown(const F& f) {
  try {
    f();
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}
constexpr auto squash = [](const auto& x) { return tanh(x * 2.f); };

constexpr bool scopes_are_no_parts() {
  const pt::program p =
      pt::trace([](auto x) { return pt::scope("squash", squash)(x); }, pt::input<float, 4>("x"));
  return p.scopes.empty() && p.scopes.any_places();
}
static_assert(scopes_are_no_parts());

/// Two layers with a common weight, with or without names.
template <class Layer, class Mlp>
pt::program two_layers(const Layer& layer, const Mlp& mlp) {
  return pt::trace(
      [&](auto x, auto w1, auto w2) {
        return pt::grad(
            [&](const auto& w) {
              auto h = x;
              for (int i = 0; i < 2; ++i)
                h = layer(i, [&](const auto& y) {
                  return y + mlp([&](const auto& z) { return matmul(tanh(matmul(z, w)), w2); })(y);
                })(h);
              return sum(h);
            },
            w1);
      },
      pt::input<float, 16, 8>("x"), pt::input<float, 8, 32>("w1"), pt::input<float, 32, 8>("w2"));
}
pt::program with_scopes() {
  return two_layers([](int i, const auto& f) { return pt::named("layers", i, f); },
                    [](const auto& f) { return pt::scope("mlp", f); });
}
pt::program without() {
  return two_layers([](int, const auto& f) { return f; }, [](const auto& f) { return f; });
}

}  // namespace

TEST_CASE("scopes nest; a derivative has the scope of the op that it differentiates") {
  const auto p = pt::trace(
      [](auto x) {
        return pt::grad(
            [](const auto& v) {
              const auto h = pt::scope(
                  "outer", [](const auto& y) { return exp(pt::scope("inner", squash)(y)); })(v);
              return sum(h * h);
            },
            x);
      },
      pt::input<float, 4>("x"));
  CHECK(places(p) == R"(constant in outer.inner
multiply in outer.inner
tanh in outer.inner
exp in outer
multiply in the gradient of outer
multiply in the gradient of outer.inner
subtract in the gradient of outer.inner
multiply in the gradient of outer.inner
multiply in the gradient of outer.inner
)");
}

TEST_CASE("functions of nn are scopes, in loops too") {
  const auto p = pt::trace(
      [](auto x) {
        return pt::for_loop(
            0, 2,
            [](auto, const auto& h) {
              return pt::scope("body", [](const auto& y) { return nn::softmax(y); })(h);
            },
            x);
      },
      pt::input<float, 4, 8>("x"));
  CHECK(places(p).find("exp in body.softmax\n") != std::string::npos);
}

TEST_CASE("scopes do not change the program") {
  CHECK(str(pt::print(with_scopes())) == str(pt::print(without())));
  const pt::mesh mesh{{"B", 2}, {"M", 2}};
  const auto of = [&](const pt::program& f) {
    return pt::partition(f, mesh,
                         pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w1", 1}})));
  };
  CHECK(str(pt::print(of(with_scopes()).device.local)) ==
        str(pt::print(of(without()).device.local)));
}

TEST_CASE("explain and conflicts name the scope") {
  const pt::mesh mesh{{"B", 2}, {"M", 2}};
  const auto p = pt::partition(
      with_scopes(), mesh,
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), pt::manual("M", {{"w1", 1}}, "MP")));
  CHECK("\n" + str(pt::explain(p)).substr(0, str(pt::explain(p)).find("in all:")) == R"(
all_reduce <"M">  %x3   256 bytes  x1  MP  matmul(%x2, %w2) in layers.0.mlp leaves a sum over "M"
all_reduce <"M">  %x14  256 bytes  x1  MP  dot_general(%x12, %w1) in the gradient of layers.1.mlp leaves a sum over "M" (backward of matmul(%x4, %w1))
all_reduce <"B">  %x21  512 bytes  x1  MP  add(%x13, %x20) leaves a sum over "B" (backward of matmul(%x, %w1))
)");
  const auto q =
      pt::partition(with_scopes(), mesh,
                    pt::schedule(pt::amalgamated("both", pt::manual("B", {{"x", 0}, {"w1", 1}}))));
  const std::string report = str(pt::report(q));
  CHECK(report.find("(dot_general in layers.0.mlp) along \"B\": ") != std::string::npos);
  CHECK(report.find("(dot_general in layers.1.mlp) along \"B\": ") != std::string::npos);
}

TEST_CASE("an error names the scope of its op") {
  const auto line = [](unsigned n) { return "scopes.cpp:" + std::to_string(n); };
  constexpr unsigned mlp = __LINE__ + 3, body = __LINE__ + 29;
  const auto model = [](auto x, auto w) {
    const auto h = pt::named("layers", 3, [&](const auto& y) {
      return nn::rms_norm(pt::scope("mlp", [&](const auto& z) { return matmul(z, w); })(y), y);
    })(x);
    return pt::scope("head", [](const auto& y) { return exp(y); })(h);
  };
  CHECK(thrown([&] {
          pt::trace(model, pt::input<float, 4, pt::dyn>("x", 8),
                    pt::input<float, pt::dyn, pt::dyn>("w", 7, 8));
        }) ==
        "S101 matmul: contracted extents differ: dimension 1 of lhs tensor<4x8xf32> has size 8, "
        "dimension 0 of rhs tensor<7x8xf32> has size 7 (in layers.3.mlp, " +
            line(mlp) + ")");
  // An error outside a scope names none.
  CHECK(thrown([&] {
          pt::trace(
              [](auto x, auto w) {
                return pt::scope("head", [](const auto& y) { return exp(y); })(matmul(x, w));
              },
              pt::input<float, 4, pt::dyn>("x", 8), pt::input<float, pt::dyn, 8>("w", 7));
        }) ==
        "S101 matmul: contracted extents differ: dimension 1 of lhs tensor<4x8xf32> has size 8, "
        "dimension 0 of rhs tensor<7x8xf32> has size 7");
  // The error of an op in a loop's body becomes an error of the loop.
  const auto in_loop = [](auto x, auto w) {
    return pt::for_loop(
        0, 3,
        [&](auto, const auto& h) {
          return pt::scope("body", [&](const auto& y) { return y + matmul(y, w); })(h);
        },
        x);
  };
  CHECK(thrown([&] {
          pt::trace(in_loop, pt::input<float, 4, pt::dyn>("x", 8),
                    pt::input<float, pt::dyn, pt::dyn>("w", 7, 8));
        }).ends_with("has size 7 (in body, " + line(body) + ")"));
}
