/// Pictures of shardings as text.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

template <class... Tactics>
pt::partitioned made(const Tactics&... tactics) {
  const auto f = pt::trace(
      [](auto x, auto w, auto z) {
        return std::tuple{pt::output("y", matmul(x, w)), pt::output("u", z * 2.f)};
      },
      pt::input<float, 10, 8>("x"), pt::input<float, 8, 16>("w"), pt::input<float, 4, 2, 6>("z"));
  return pt::partition(f, mesh, pt::schedule(tactics...));
}
std::string picture(const pt::partitioned& p, std::string_view name) {
  return "\n" + std::string(pt::print_sharding(p, name).view());
}

}  // namespace

TEST_CASE("a value that is sharded along two dimensions is a table") {
  const auto p = made(pt::manual("M", {{"w", 1}}), pt::manual("B", {{"w", 0}}));
  CHECK(picture(p, "w") == R"(
w [{"B"}, {"M"}] : tensor<8x16xf32>, on each device tensor<2x8xf32>
       0:8  8:16
  0:2  0    1
  2:4  2    3
  4:6  4    5
  6:8  6    7
)");
}

TEST_CASE("replicas and padding") {
  const auto p = made(pt::manual("B", {{"x", 0}}, pt::uneven::pad));
  CHECK(picture(p, "x") == R"(
x [{"B"}, {}] : tensor<10x8xf32>, on each device tensor<3x8xf32>
  [0:3, 0:8]               0 1
  [3:6, 0:8]               2 3
  [6:9, 0:8]               4 5
  [9:12 (2 padding), 0:8]  6 7
)");
  CHECK(picture(p, "w") == R"(
w [{}, {}] : tensor<8x16xf32>, on each device tensor<8x16xf32>
  [0:8, 0:16]  0 1 2 3 4 5 6 7
)");
}

TEST_CASE("more dimensions, sub-axes, major and minor axes") {
  const auto p = made(pt::manual("M", {{"z", 2}}), pt::manual("B:(1)2", {{"z", 0}}),
                      pt::manual("B:(2)2", {{"z", 1}}));
  CHECK(picture(p, "z") == R"(
z [{"B":(1)2}, {"B":(2)2}, {"M"}] : tensor<4x2x6xf32>, on each device tensor<2x1x3xf32>
  [0:2, 0:1, 0:3]  0
  [0:2, 0:1, 3:6]  1
  [0:2, 1:2, 0:3]  2
  [0:2, 1:2, 3:6]  3
  [2:4, 0:1, 0:3]  4
  [2:4, 0:1, 3:6]  5
  [2:4, 1:2, 0:3]  6
  [2:4, 1:2, 3:6]  7
)");
  const auto q = made(pt::manual("M", {{"w", 1}}), pt::manual("B", {{"w", 1}}));
  CHECK(picture(q, "w") == R"(
w [{}, {"M", "B"}] : tensor<8x16xf32>, on each device tensor<8x2xf32>
  [0:8, 0:2]    0
  [0:8, 2:4]    2
  [0:8, 4:6]    4
  [0:8, 6:8]    6
  [0:8, 8:10]   1
  [0:8, 10:12]  3
  [0:8, 12:14]  5
  [0:8, 14:16]  7
)");
}

TEST_CASE("show: values below a name, tags, and devices that hold only padding") {
  struct layer {
    BOOST_HANA_DEFINE_STRUCT(layer, (pt::tensor<float, 8, 4>, up), (pt::tensor<float, 4>, bias));
  };
  const auto f = pt::trace(
      [](auto x, auto p) {
        const auto h = pt::tag("h", matmul(x, p.up));
        return pt::output("y", pt::tag("sum", sum<0>(h)) + p.bias);
      },
      pt::input<float, 9, 8>("x"), pt::input<layer>("params"));
  const auto p =
      pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}},
                    pt::schedule(pt::manual("B", {{"x", 0}}, pt::uneven::pad),
                                 pt::manual("M", {{"params", pt::first_divisible_dim}})));
  const auto shown = [&](std::string_view name) {
    return "\n" + std::string(pt::show(p, name).view());
  };
  CHECK(shown("params") == R"(
params.up [{"M"}, {}] : tensor<8x4xf32>, on each device tensor<4x4xf32>
  [0:4, 0:4]  0 2 4 6
  [4:8, 0:4]  1 3 5 7
params.bias [{"M"}] : tensor<4xf32>, on each device tensor<2xf32>
  [0:2]  0 2 4 6
  [2:4]  1 3 5 7
)");
  // A sum over "M"; each device keeps the block that its bias needs.
  CHECK(std::string(pt::show(p, "h").view()) ==
        R"(h [{"B"}, {"M"}] : tensor<9x4xf32>, on each device tensor<3x2xf32>
                  0:2  2:4
  0:3             0    1
  3:6             2    3
  6:9             4    5
  9:12 (padding)  6    7
)");
  CHECK(shown("sum") == shown("y").replace(1, 1, "sum"));
  CHECK(p.core.produced_layout(p.core.holder(p.core.p.outputs[0].value)).count == 1);
  CHECK_THROWS_WITH_AS(pt::show(p, "parms"),
                       "P007 partitioned: no input, tag or output is named \"parms\" or is below "
                       "it; known: x, params.up, params.bias, h, sum, y; did you mean \"params\"?",
                       pt::error);
}

TEST_CASE("a picture of very many devices states their number") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 8192>("x"));
  const auto p = pt::partition(f, pt::mesh{{"B", 8192}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(picture(p, "x") ==
        "\nx [{\"B\"}] : tensor<8192xf32>, on each device tensor<1xf32>\n  8192 blocks on 8192 "
        "devices\n");
  CHECK_THROWS_AS(pt::print_sharding(p, "nothing"), pt::error);
}
