// Several meshes at compile time: the first example of Shardy:MPMD, and an error.
#include <string_view>
#include <tuple>

#include <partita/mpmd/print_mpmd.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

constexpr pt::topology cluster{{"m1", {{"x", 2}}}, {"m2", {{"x", 4}}}};
static_assert(!pt::validate(cluster));
static_assert(cluster.find("m2") == 1 && cluster.mesh_of(1).size(0) == 4);

constexpr auto layers = [](pt::vec<pt::mesh_for> names) {
  const auto f = pt::trace(
      [](auto x) {
        const auto twice = [](auto y) { return y + y; };
        const auto one = pt::named("layer1", twice)(x);
        const auto two = pt::named("layer2", twice)(one);
        return std::tuple{pt::output("product", one * one), pt::output("quotient", two / two)};
      },
      pt::input<float, 4>("x"));
  return pt::to_mpmd(f, cluster, {.names = names});
};
constexpr bool prints(pt::vec<pt::mesh_for> names, std::string_view expected) {
  return pt::print(layers(names)).view() == expected;
}
static_assert(prints(
    {{"layer1", "m1"}, {"layer2", "m2"}},
    R"(func @main(%x@m1: tensor<4xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":4}}} {
  %x1@m1, %product@m1 = fragment<mesh="m1", origin=["layer1"], stage=0>(%x@m1) {
    %x1 = add(%x, %x) : tensor<4xf32>
    %product = multiply(%x1, %x1) : tensor<4xf32>
    return %x1, %product
  } : tensor<4xf32>, tensor<4xf32>
  %x1@m2 = transfer %x1@m1 : tensor<4xf32>
  %quotient@m2 = fragment<mesh="m2", origin=["layer2"], stage=1>(%x1@m2) {
    %x2 = add(%x1, %x1) : tensor<4xf32>
    %quotient = divide(%x2, %x2) : tensor<4xf32>
    return %quotient
  } : tensor<4xf32>
  return %product@m1, %quotient@m2 : tensor<4xf32>, tensor<4xf32>
}
)"));
static_assert(prints({{"layer1", "m1"}, {"layer2", "m3"}},
                     "error: O105 mpmd: \"layer2\" is assigned to mesh \"m3\", which the topology "
                     "does not have; known: m1, m2; did you mean \"m1\"?\n"));
