// MPMD programs as text: the RFC's example at every stage, and features that it does not show.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <tuple>

#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/print_calls.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/mpmd/print_pipeline.hpp>
#include <partita/partita.hpp>

#include "../data.hpp"

namespace {

namespace pt = partita;
using data::str;

// Shardy:MPMD, "Simple example of mesh inference".
constexpr auto first_example = [](auto x, auto y) {
  const auto twice = [](auto z, auto) { return z + z; };
  const auto one = pt::named("layer1", twice)(x, y);
  const auto two = pt::named("layer2", twice)(one, pt::full_like(one, 0));
  return std::tuple{pt::output("product", one * one), pt::output("quotient", two / two)};
};
constexpr pt::program first_source() {
  return pt::trace(first_example, pt::input<float, 4>("arg0"), pt::input<float, 4>("arg1"));
}
constexpr pt::topology two_meshes{{"m1", {{"x", 2}}}, {"m2", {{"x", 2}}}};
constexpr pt::assignment layers_to_meshes() {
  return {.names = {{"layer1", "m1"}, {"layer2", "m2"}}};
}

// Two layers and a head that uses the weight of the first layer again, clipped by the global norm.
constexpr auto tied_step = [](auto params, auto x) {
  const auto squash = [](auto a, auto w) { return tanh(matmul(a, w)); };
  const auto last = [](auto a, auto w) { return sum(matmul(a, w)); };
  const auto loss = [&](auto p) {
    const auto h = pt::named("layers", 0, squash)(x, std::get<0>(p));
    const auto y = pt::named("layers", 1, squash)(h, std::get<1>(p));
    return pt::named("head", last)(y + h, std::get<0>(p));
  };
  const auto [l, g] = pt::value_and_grad(loss, params);
  const auto clipped = pt::clip_by_global_norm(g, 1.0f).first;
  const auto next = pt::map_leaves([](auto w, auto d) { return w - 0.5f * d; }, params, clipped);
  return std::tuple{pt::output("p", next), pt::output("loss", l)};
};
using weight = pt::tensor<float, 4, 4>;
pt::program tied_source() {
  return pt::trace(tied_step, pt::input<std::tuple<weight, weight>>("p"),
                   pt::input<float, 2, 4>("x"));
}

}  // namespace

TEST_CASE("the first example of the RFC: named") {
  CHECK(str(pt::print_parts(first_source())) ==
        R"(func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) {
  %x1 = named "layer1"(%arg0) {
    %x1 = add(%arg0, %arg0) : tensor<4xf32>
    return %x1
  } : tensor<4xf32>
  %product = multiply(%x1, %x1) : tensor<4xf32>
  %x2 = named "layer2"(%x1) {
    %x2 = add(%x1, %x1) : tensor<4xf32>
    return %x2
  } : tensor<4xf32>
  %quotient = divide(%x2, %x2) : tensor<4xf32>
  return %product, %quotient : tensor<4xf32>, tensor<4xf32>
}
)");
}

TEST_CASE("the first example of the RFC: assigned") {
  CHECK(
      str(pt::print_assigned(first_source(), two_meshes, layers_to_meshes())) ==
      R"(func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %arg0@m1 = assign %arg0 : tensor<4xf32>
  %x1@m1 = fragment<mesh="m1", origin=["layer1"], stage=0>(%arg0@m1) {
    %x1 = add(%arg0, %arg0) : tensor<4xf32>
    return %x1
  } : tensor<4xf32>
  %x1 = unassign %x1@m1 : tensor<4xf32>
  %product = multiply(%x1, %x1) : tensor<4xf32>
  %x1@m2 = transfer %x1@m1 : tensor<4xf32>
  %x2@m2 = fragment<mesh="m2", origin=["layer2"], stage=1>(%x1@m2) {
    %x2 = add(%x1, %x1) : tensor<4xf32>
    return %x2
  } : tensor<4xf32>
  %x2 = unassign %x2@m2 : tensor<4xf32>
  %quotient = divide(%x2, %x2) : tensor<4xf32>
  return %product, %quotient : tensor<4xf32>, tensor<4xf32>
}
)");
}

TEST_CASE("the first example of the RFC: inferred") {
  CHECK(
      str(pt::print(pt::to_mpmd(first_source(), two_meshes, layers_to_meshes()))) ==
      R"(func @main(%arg0@m1: tensor<4xf32>, %arg1@m1: tensor<4xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %x1@m1, %product@m1 = fragment<mesh="m1", origin=["layer1"], stage=0>(%arg0@m1) {
    %x1 = add(%arg0, %arg0) : tensor<4xf32>
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
)");
}

TEST_CASE(
    "a step with a tied weight and clipping: what is added up of two meshes is sent by each") {
  CHECK(
      str(pt::print(
          pt::to_mpmd(tied_source(), two_meshes,
                      {.names = {{"layers.0", "m1"}, {"layers.1", "m2"}, {"head", "m2"}}}))) ==
      R"(func @main(%p.0@m1: tensor<4x4xf32>, %p.1@m2: tensor<4x4xf32>, %x@m1: tensor<2x4xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %p.0@m2 = transfer %p.0@m1 : tensor<4x4xf32>
  %x2@m1 = fragment<mesh="m1", origin=["layers.0"], stage=0>(%x@m1, %p.0@m1) {
    %x1 = matmul(%x, %p.0) : tensor<2x4xf32>
    %x2 = tanh(%x1) : tensor<2x4xf32>
    return %x2
  } : tensor<2x4xf32>
  %x2@m2 = transfer %x2@m1 : tensor<2x4xf32>
  %x4@m2, %x5@m2 = fragment<mesh="m2", origin=["layers.1"], stage=1>(%x2@m2, %p.1@m2) {
    %x3 = matmul(%x2, %p.1) : tensor<2x4xf32>
    %x4 = tanh(%x3) : tensor<2x4xf32>
    %x5 = add(%x4, %x2) : tensor<2x4xf32>
    return %x4, %x5
  } : tensor<2x4xf32>, tensor<2x4xf32>
  %loss@m2 = fragment<mesh="m2", origin=["head"], stage=1>(%x5@m2, %p.0@m2) {
    %x6 = matmul(%x5, %p.0) : tensor<2x4xf32>
    %loss = reduce(%x6) {add, dims=[0, 1]} : tensor<f32>
    return %loss
  } : tensor<f32>
  %x10@m2, %x15@m2 = fragment<mesh="m2", origin=["head"(1)], stage=1>(%p.0@m2, %x5@m2) {
    %x8 = constant {1} : tensor<f32>
    %x9 = broadcast_in_dim(%x8) {dims=[]} : tensor<2x4xf32>
    %x10 = dot_general(%x9, %p.0) {contract=[1]x[1]} : tensor<2x4xf32>
    %x15 = dot_general(%x5, %x9) {contract=[0]x[0]} : tensor<4x4xf32>
    return %x10, %x15
  } : tensor<2x4xf32>, tensor<4x4xf32>
  %x15@m1 = transfer %x15@m2 : tensor<4x4xf32>
  %x14@m2, %x17@m2, %x26@m2 = fragment<mesh="m2", origin=["layers.1"(1)], stage=1>(%x4@m2, %x10@m2, %x2@m2, %p.1@m2) {
    %x11 = multiply(%x4, %x4) : tensor<2x4xf32>
    %x8 = constant {1} : tensor<f32>
    %x12 = subtract(%x8, %x11) : tensor<2x4xf32>
    %x13 = multiply(%x10, %x12) : tensor<2x4xf32>
    %x14 = dot_general(%x2, %x13) {contract=[0]x[0]} : tensor<4x4xf32>
    %x16 = dot_general(%x13, %p.1) {contract=[1]x[1]} : tensor<2x4xf32>
    %x17 = add(%x10, %x16) : tensor<2x4xf32>
    %x25 = multiply(%x14, %x14) : tensor<4x4xf32>
    %x26 = reduce(%x25) {add, dims=[0, 1]} : tensor<f32>
    return %x14, %x17, %x26
  } : tensor<4x4xf32>, tensor<2x4xf32>, tensor<f32>
  %x17@m1 = transfer %x17@m2 : tensor<2x4xf32>
  %x26@m1 = transfer %x26@m2 : tensor<f32>
  %x24@m1, %p.0'@m1 = fragment<mesh="m1", origin=["layers.0"(1)], stage=0>(%x2@m1, %x17@m1, %x@m1, %x15@m1, %x26@m1, %p.0@m1) {
    %x18 = multiply(%x2, %x2) : tensor<2x4xf32>
    %x8 = constant {1} : tensor<f32>
    %x19 = subtract(%x8, %x18) : tensor<2x4xf32>
    %x20 = multiply(%x17, %x19) : tensor<2x4xf32>
    %x21 = dot_general(%x, %x20) {contract=[0]x[0]} : tensor<4x4xf32>
    %x22 = add(%x21, %x15) : tensor<4x4xf32>
    %x23 = multiply(%x22, %x22) : tensor<4x4xf32>
    %x24 = reduce(%x23) {add, dims=[0, 1]} : tensor<f32>
    %x27 = add(%x24, %x26) : tensor<f32>
    %x28 = sqrt(%x27) : tensor<f32>
    %x29 = maximum(%x28, %x8) : tensor<f32>
    %x30 = divide(%x8, %x29) : tensor<f32>
    %x33 = multiply(%x22, %x30) : tensor<4x4xf32>
    %x7 = constant {0.5} : tensor<f32>
    %x34 = multiply(%x7, %x33) : tensor<4x4xf32>
    %p.0' = subtract(%p.0, %x34) : tensor<4x4xf32>
    return %x24, %p.0'
  } : tensor<f32>, tensor<4x4xf32>
  %x24@m2 = transfer %x24@m1 : tensor<f32>
  %p.1'@m2 = fragment<mesh="m2", origin=[]>(%x24@m2, %x26@m2, %x14@m2, %p.1@m2) {
    %x27 = add(%x24, %x26) : tensor<f32>
    %x28 = sqrt(%x27) : tensor<f32>
    %x8 = constant {1} : tensor<f32>
    %x29 = maximum(%x28, %x8) : tensor<f32>
    %x30 = divide(%x8, %x29) : tensor<f32>
    %x31 = multiply(%x14, %x30) : tensor<4x4xf32>
    %x7 = constant {0.5} : tensor<f32>
    %x32 = multiply(%x7, %x31) : tensor<4x4xf32>
    %p.1' = subtract(%p.1, %x32) : tensor<4x4xf32>
    return %p.1'
  } : tensor<4x4xf32>
  return %p.0'@m1, %p.1'@m2, %loss@m2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
}
)");
}

TEST_CASE("a pipeline with split backwards: units, transfers, and the calls of each mesh") {
  const pt::program f = pt::trace(
      [](const auto& x, const auto& w1, const auto& w2) {
        const auto layer = [](const auto& h, const auto& w) { return matmul(h, w); };
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& w) {
              const auto y = pt::named("layer2", layer)(pt::named("layer1", layer)(x, w[0]), w[1]);
              return pt::sum(y * y);
            },
            std::array{w1, w2});
        return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1]),
                          pt::output("loss", loss)};
      },
      pt::input<float, 4, 2>("x"), pt::input<float, 2, 2>("w1"), pt::input<float, 2, 2>("w2"));
  const pt::pipelined p =
      pt::pipeline(f, pt::topology{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}}, pt::zb_h1,
                   {.where = {.names = {{"layer1", "m0"}, {"layer2", "m1"}}},
                    .microbatches = 2,
                    .batch = {{"x", 0}}});
  CHECK(
      str(pt::print(p)) ==
      R"(func @main(%x@m0: tensor<4x2xf32>, %w1@m0: tensor<2x2xf32>, %w2@m1: tensor<2x2xf32>) attributes {topology = {"m0": {"B":2}, "m1": {"B":2}}} {
  %x5@m0 = fragment<mesh="m0", origin=[]>(%x@m0) {
    %x4 = reshape(%x) : tensor<2x2x2xf32>
    %x5 = transpose(%x4) {dims=[1, 0, 2]} : tensor<2x2x2xf32>
    return %x5
  } : tensor<2x2x2xf32>
  %x7@m0 = microbatch_slice %x5@m0 : tensor<2x2xf32>
  %x8@m0 = fragment<mesh="m0", origin=["layer1"], stage=0, calls=2>(%x7@m0, %w1@m0) {
    %x8 = matmul(%x7, %w1) : tensor<2x2xf32>
    return %x8
  } : tensor<2x2xf32>
  %x8@m1 = transfer %x8@m0 : tensor<2x2xf32>
  %x16@m1 = fragment<mesh="m1", origin=["layer2"], stage=1, calls=2>(%x8@m1, %w2@m1) {
    %x9 = matmul(%x8, %w2) : tensor<2x2xf32>
    %x10 = multiply(%x9, %x9) : tensor<2x2xf32>
    %x11 = reduce(%x10) {add, dims=[0, 1]} : tensor<f32>
    %x12 = constant {1} : tensor<f32>
    %x13 = broadcast_in_dim(%x12) {dims=[]} : tensor<2x2xf32>
    %x14 = multiply(%x13, %x9) : tensor<2x2xf32>
    %x15 = multiply(%x13, %x9) : tensor<2x2xf32>
    %x16 = add(%x14, %x15) : tensor<2x2xf32>
    return %x16
  } : tensor<2x2xf32>
  %loss@m1 = microbatch_sum %x11 : tensor<f32>
  fragment<mesh="m1", origin=["layer2"(1)], stage=1, part=weight, calls=2>(%x8@m1, %x16@m1) {
    %x17 = dot_general(%x8, %x16) {contract=[0]x[0]} : tensor<2x2xf32>
    return
  }
  %x20@m1 = microbatch_sum %x17 : tensor<2x2xf32>
  %w2'@m1 = fragment<mesh="m1", origin=[]>(%x20@m1, %w2@m1) {
    %w2' = subtract(%w2, %x20) : tensor<2x2xf32>
    return %w2'
  } : tensor<2x2xf32>
  %x18@m1 = fragment<mesh="m1", origin=["layer2"(1)], stage=1, part=input, calls=2>(%x16@m1, %w2@m1) {
    %x18 = dot_general(%x16, %w2) {contract=[1]x[1]} : tensor<2x2xf32>
    return %x18
  } : tensor<2x2xf32>
  %x18@m0 = transfer %x18@m1 : tensor<2x2xf32>
  fragment<mesh="m0", origin=["layer1"(1)], stage=0, part=weight, calls=2>(%x7@m0, %x18@m0) {
    %x19 = dot_general(%x7, %x18) {contract=[0]x[0]} : tensor<2x2xf32>
    return
  }
  %x21@m0 = microbatch_sum %x19 : tensor<2x2xf32>
  %w1'@m0 = fragment<mesh="m0", origin=[]>(%x21@m0, %w1@m0) {
    %w1' = subtract(%w1, %x21) : tensor<2x2xf32>
    return %w1'
  } : tensor<2x2xf32>
  return %w1'@m0, %w2'@m1, %loss@m1 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>
}
m0: F0 F1 W0 W1
m1: F0 B0 F1 B1 W0 W1
)");
}

// Batch, Megatron and fully sharded parallelism inside the stages; "B" is smaller on the second
// mesh.
TEST_CASE("a pipeline whose stages are sharded") {
  constexpr auto loss = [](const auto& w, const auto& x) {
    const auto h =
        pt::named("layer1", [](const auto& a, const auto& v) { return matmul(a, v); })(x, w[0]);
    return pt::named("layer2", [](const auto& a, const auto& v) {
      const auto y = matmul(a, v);
      return sum(y * y);
    })(h, w[1]);
  };
  constexpr auto step = [loss](const auto& x, const auto& w1, const auto& w2) {
    const auto [l, g] =
        pt::value_and_grad([&](const auto& w) { return loss(w, x); }, std::array{w1, w2});
    return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1]),
                      pt::output("loss", l)};
  };
  const auto f = pt::trace(step, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w1"),
                           pt::input<float, 8, 8>("w2"));
  const pt::topology cluster{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}};
  const auto PP = pt::pipeline(
      {.stages = {{"layer1"}, {"layer2"}}, .batch = {{"x", 0}}, .microbatches = 2}, "PP");
  const auto p = pt::partition(
      f, cluster,
      pt::schedule(PP, pt::manual("B", {{"x", 0}}, "BP"), pt::manual("M", {{"w1", 1}}, "MP"),
                   pt::manual("B", {{"w1", 0}, {"w2", 0}}, "Z3")));
  CHECK(
      str(pt::print(p)) ==
      R"(func @main(%x@m0: tensor<16x8xf32>, %w1@m0: tensor<8x8xf32>, %w2@m1: tensor<8x8xf32>) attributes {topology = {"m0": {"B":4, "M":2}, "m1": {"B":2, "M":2}}} {
  %x5@m0 = fragment<mesh="m0", origin=[]>(%x@m0) {
    %x1 = reshape(%x) : tensor<2x2x8xf32>
    %x5 = transpose(%x1) {dims=[1, 0, 2]} : tensor<2x2x8xf32>
    return %x5 as "x5" : tensor<2x2x8xf32>
  }
  %x7@m0 = microbatch_slice %x5@m0 : tensor<8x8xf32>
  %x8@m0 = fragment<mesh="m0", origin=["layer1"], stage=0, calls=2>(%x7@m0, %w1@m0) {
    %w1g = all_gather [{"B"}, {}] %w1 : tensor<8x4xf32>
    %x8 = matmul(%x7, %w1g) : tensor<2x4xf32>
    return %x8 as "x8" : tensor<2x4xf32>
  }
  %x8@m1 = transfer %x8@m0 : tensor<8x8xf32> [{"B"}, {"M"}]
  %x9@m1, %loss@m1 = fragment<mesh="m1", origin=["layer2"], stage=1, calls=2>(%x8@m1, %w2@m1, %loss@m1) {
    %w2g = all_gather [{"B"}, {}] %w2 : tensor<4x8xf32>
    %x1 = matmul(%x8, %w2g) : tensor<4x8xf32>
    %x9 = all_reduce <"M"> %x1 : tensor<4x8xf32>
    %x2 = multiply(%x9, %x9) : tensor<4x8xf32>
    %x3 = reduce(%x2) {add, dims=[0, 1]} : tensor<f32>
    %loss' = add(%loss, %x3) : tensor<f32>
    return %x9 as "x9", %loss' : tensor<4x8xf32>, tensor<f32>
  }
  %loss@m1 = fragment<mesh="m1", origin=[]>(%loss@m1) {
    %loss' = all_reduce <"B"> %loss : tensor<f32>
    return %loss' : tensor<f32>
  }
  %x18@m1, %x20@m1 = fragment<mesh="m1", origin=["layer2"(1)], stage=1, calls=2>(%x9@m1, %x8@m1, %w2@m1, %x20@m1) {
    %x1 = constant {1} : tensor<f32>
    %x2 = broadcast_in_dim(%x1) {dims=[]} : tensor<4x8xf32>
    %x3 = multiply(%x2, %x9) : tensor<4x8xf32>
    %x4 = multiply(%x2, %x9) : tensor<4x8xf32>
    %x5 = add(%x3, %x4) : tensor<4x8xf32>
    %x6 = dot_general(%x8, %x5) {contract=[0]x[0]} : tensor<4x8xf32>
    %w2g = all_gather [{"B"}, {}] %w2 : tensor<4x8xf32>
    %x18 = dot_general(%x5, %w2g) {contract=[1]x[1]} : tensor<4x4xf32>
    %x20' = add(%x20, %x6) : tensor<4x8xf32>
    return %x18 as "x18", %x20' : tensor<4x4xf32>, tensor<4x8xf32>
  }
  %x18@m0 = transfer %x18@m1 : tensor<8x8xf32> [{"B"}, {"M"}]
  %w2'@m1 = fragment<mesh="m1", origin=[]>(%x20@m1, %w2@m1) {
    %x1 = reduce_scatter [{"B"}, {}] %x20 : tensor<2x8xf32>
    %w2' = subtract(%w2, %x1) : tensor<2x8xf32>
    return %w2' : tensor<2x8xf32>
  }
  %x21@m0 = fragment<mesh="m0", origin=["layer1"(1)], stage=0, calls=2>(%x7@m0, %x18@m0, %x21@m0) {
    %x1 = dot_general(%x7, %x18) {contract=[0]x[0]} : tensor<8x4xf32>
    %x21' = add(%x21, %x1) : tensor<8x4xf32>
    return %x21' : tensor<8x4xf32>
  }
  %w1'@m0 = fragment<mesh="m0", origin=[]>(%x21@m0, %w1@m0) {
    %x1 = reduce_scatter [{"B"}, {}] %x21 : tensor<2x4xf32>
    %w1' = subtract(%w1, %x1) : tensor<2x4xf32>
    return %w1' : tensor<2x4xf32>
  }
  return %w1'@m0, %w2'@m1, %loss@m1 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
}
m0: F0 F1 B0 B1
m1: F0 B0 F1 B1
)");
}

namespace {

// Shardy:MPMD, "Scheduling + merging + export for a 2 microbatch, 2 stage pipeline". There, each
// microbatch reads the whole input and has a result of its own; here, the batch is divided in two
// and the results are stacked. Stages count from 0 here.
pt::program second_source() {
  pt::builder b;
  const pt::value_id x = pt::ops::parameter(b, "arg0", {pt::dtype::f32, {8}});
  const int layers[] = {b.p.scopes.open("layer1", -1), b.p.scopes.open("layer2", -1)};
  const auto twice = [&](pt::value_id v, int layer, int transposed) {
    const pt::value_id y = pt::ops::add(b, v, v);
    b.p.ops.back().marks.transposed = transposed;
    b.p.scopes.put(b.p.ops.back().marks.source, layers[layer]);
    return y;
  };
  const pt::value_id forward = twice(twice(x, 0, 0), 1, 0),
                     backward = twice(twice(forward, 1, 1), 0, 1);
  b.p.outputs.push_back({backward, b.p.intern("out")});
  return std::move(b.p);
}
pt::pipelined second_example(const pt::pipeline_order& order) {
  return pt::pipeline(second_source(), two_meshes, order,
                      {.where = {.names = {{"layer1", "m1"}, {"layer2", "m2"}}},
                       .microbatches = 2,
                       .batch = {{"arg0", 0}}});
}

}  // namespace

TEST_CASE("the second example of the RFC: units") {
  CHECK(
      str(pt::print(second_example(pt::gpipe))) ==
      R"(func @main(%arg0@m1: tensor<8xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %x2@m1 = fragment<mesh="m1", origin=[]>(%arg0@m1) {
    %x1 = reshape(%arg0) : tensor<4x2xf32>
    %x2 = transpose(%x1) {dims=[1, 0]} : tensor<2x4xf32>
    return %x2
  } : tensor<2x4xf32>
  %x4@m1 = microbatch_slice %x2@m1 : tensor<4xf32>
  %x5@m1 = fragment<mesh="m1", origin=["layer1"], stage=0, calls=2>(%x4@m1) {
    %x5 = add(%x4, %x4) : tensor<4xf32>
    return %x5
  } : tensor<4xf32>
  %x5@m2 = transfer %x5@m1 : tensor<4xf32>
  %x6@m2 = fragment<mesh="m2", origin=["layer2"], stage=1, calls=2>(%x5@m2) {
    %x6 = add(%x5, %x5) : tensor<4xf32>
    return %x6
  } : tensor<4xf32>
  %x7@m2 = fragment<mesh="m2", origin=["layer2"(1)], stage=1, calls=2>(%x6@m2) {
    %x7 = add(%x6, %x6) : tensor<4xf32>
    return %x7
  } : tensor<4xf32>
  %x7@m1 = transfer %x7@m2 : tensor<4xf32>
  fragment<mesh="m1", origin=["layer1"(1)], stage=0, calls=2>(%x7@m1) {
    %x8 = add(%x7, %x7) : tensor<4xf32>
    return
  }
  %x9@m1 = microbatch_stack %x8 : tensor<2x4xf32>
  %out@m1 = fragment<mesh="m1", origin=["layer1"(1)]>(%x9@m1) {
    %x10 = transpose(%x9) {dims=[1, 0]} : tensor<4x2xf32>
    %out = reshape(%x10) : tensor<8xf32>
    return %out
  } : tensor<8xf32>
  return %out@m1 : tensor<8xf32>
}
m1: F0 F1 B0 B1
m2: F0 F1 B0 B1
)");
}
TEST_CASE("the second example of the RFC: scheduled") {
  CHECK(
      str(pt::print(second_example(pt::one_f_one_b))) ==
      R"(func @main(%arg0@m1: tensor<8xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %x2@m1 = fragment<mesh="m1", origin=[]>(%arg0@m1) {
    %x1 = reshape(%arg0) : tensor<4x2xf32>
    %x2 = transpose(%x1) {dims=[1, 0]} : tensor<2x4xf32>
    return %x2
  } : tensor<2x4xf32>
  %x4@m1 = microbatch_slice %x2@m1 : tensor<4xf32>
  %x5@m1 = fragment<mesh="m1", origin=["layer1"], stage=0, calls=2>(%x4@m1) {
    %x5 = add(%x4, %x4) : tensor<4xf32>
    return %x5
  } : tensor<4xf32>
  %x5@m2 = transfer %x5@m1 : tensor<4xf32>
  %x6@m2 = fragment<mesh="m2", origin=["layer2"], stage=1, calls=2>(%x5@m2) {
    %x6 = add(%x5, %x5) : tensor<4xf32>
    return %x6
  } : tensor<4xf32>
  %x7@m2 = fragment<mesh="m2", origin=["layer2"(1)], stage=1, calls=2>(%x6@m2) {
    %x7 = add(%x6, %x6) : tensor<4xf32>
    return %x7
  } : tensor<4xf32>
  %x7@m1 = transfer %x7@m2 : tensor<4xf32>
  fragment<mesh="m1", origin=["layer1"(1)], stage=0, calls=2>(%x7@m1) {
    %x8 = add(%x7, %x7) : tensor<4xf32>
    return
  }
  %x9@m1 = microbatch_stack %x8 : tensor<2x4xf32>
  %out@m1 = fragment<mesh="m1", origin=["layer1"(1)]>(%x9@m1) {
    %x10 = transpose(%x9) {dims=[1, 0]} : tensor<4x2xf32>
    %out = reshape(%x10) : tensor<8xf32>
    return %out
  } : tensor<8xf32>
  return %out@m1 : tensor<8xf32>
}
m1: F0 F1 B0 B1
m2: F0 B0 F1 B1
)");
}
TEST_CASE("the second example of the RFC: merged") {
  CHECK(
      str(pt::print(pt::merged(second_example(pt::one_f_one_b), {{{"layer2"}, {"layer2", 1}}}))) ==
      R"(func @main(%arg0@m1: tensor<8xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %x2@m1 = fragment<mesh="m1", origin=[]>(%arg0@m1) {
    %x1 = reshape(%arg0) : tensor<4x2xf32>
    %x2 = transpose(%x1) {dims=[1, 0]} : tensor<2x4xf32>
    return %x2
  } : tensor<2x4xf32>
  %x4@m1 = microbatch_slice %x2@m1 : tensor<4xf32>
  %x5@m1 = fragment<mesh="m1", origin=["layer1"], stage=0, calls=2>(%x4@m1) {
    %x5 = add(%x4, %x4) : tensor<4xf32>
    return %x5
  } : tensor<4xf32>
  %x5@m2 = transfer %x5@m1 : tensor<4xf32>
  %x7@m2 = fragment<mesh="m2", origin=["layer2", "layer2"(1)], stage=1, calls=2>(%x5@m2) {
    %x6 = add(%x5, %x5) : tensor<4xf32>
    %x7 = add(%x6, %x6) : tensor<4xf32>
    return %x7
  } : tensor<4xf32>
  %x7@m1 = transfer %x7@m2 : tensor<4xf32>
  fragment<mesh="m1", origin=["layer1"(1)], stage=0, calls=2>(%x7@m1) {
    %x8 = add(%x7, %x7) : tensor<4xf32>
    return
  }
  %x9@m1 = microbatch_stack %x8 : tensor<2x4xf32>
  %out@m1 = fragment<mesh="m1", origin=["layer1"(1)]>(%x9@m1) {
    %x10 = transpose(%x9) {dims=[1, 0]} : tensor<4x2xf32>
    %out = reshape(%x10) : tensor<8xf32>
    return %out
  } : tensor<8xf32>
  return %out@m1 : tensor<8xf32>
}
m1: F0 F1 B0 B1
m2: FB0 FB1
)");
}
TEST_CASE("the second example of the RFC: the batch is sharded") {
  const auto PP = pt::pipeline(
      {.stages = {{"layer1"}, {"layer2"}}, .batch = {{"arg0", 0}}, .microbatches = 2}, "PP");
  const auto p = pt::partition(second_source(), two_meshes,
                               pt::schedule(PP, pt::manual("x", {{"arg0", 0}}, "BP")));
  CHECK(
      str(pt::print(pt::merged(p, {{{"layer2"}, {"layer2", 1}}}))) ==
      R"(func @main(%arg0@m1: tensor<8xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %x2@m1 = fragment<mesh="m1", origin=[]>(%arg0@m1) {
    %x1 = reshape(%arg0) : tensor<2x2xf32>
    %x2 = transpose(%x1) {dims=[1, 0]} : tensor<2x2xf32>
    return %x2 as "x2" : tensor<2x2xf32>
  }
  %x4@m1 = microbatch_slice %x2@m1 : tensor<4xf32>
  %x5@m1 = fragment<mesh="m1", origin=["layer1"], stage=0, calls=2>(%x4@m1) {
    %x5 = add(%x4, %x4) : tensor<2xf32>
    return %x5 as "x5" : tensor<2xf32>
  }
  %x5@m2 = transfer %x5@m1 : tensor<4xf32> [{"x"}]
  %x7@m2 = fragment<mesh="m2", origin=["layer2", "layer2"(1)], stage=1, calls=2>(%x5@m2) {
    %x1 = add(%x5, %x5) : tensor<2xf32>
    %x7 = add(%x1, %x1) : tensor<2xf32>
    return %x7 as "x7" : tensor<2xf32>
  }
  %x7@m1 = transfer %x7@m2 : tensor<4xf32> [{"x"}]
  %x9@m1 = fragment<mesh="m1", origin=["layer1"(1)], stage=0, calls=2>(%x7@m1) {
    %x9 = add(%x7, %x7) : tensor<2xf32>
    return %x9 as "x9" : tensor<2xf32>
  }
  %out@m1 = fragment<mesh="m1", origin=["layer1"(1)]>(%x9@m1) {
    %x1 = transpose(%x9) {dims=[1, 0]} : tensor<2x2xf32>
    %out = reshape(%x1) : tensor<4xf32>
    return %out : tensor<4xf32>
  }
  return %out@m1 : tensor<8xf32>
}
m1: F0 F1 B0 B1
m2: FB0 FB1
)");
}
TEST_CASE("the second example of the RFC: functions, calls and copies") {
  const auto PP = pt::pipeline(
      {.stages = {{"layer1"}, {"layer2"}}, .batch = {{"arg0", 0}}, .microbatches = 2}, "PP");
  const auto p = pt::partition(second_source(), two_meshes,
                               pt::schedule(PP, pt::manual("x", {{"arg0", 0}}, "BP")));
  CHECK(
      str(pt::print_calls(pt::merged(p, {{{"layer2"}, {"layer2", 1}}}))) ==
      R"(func @main(%arg0@m1: tensor<8xf32>) attributes {topology = {"m1": {"x":2}, "m2": {"x":2}}} {
  %x2@m1, !0 = call @p0_m1_update.main(%arg0@m1) on devices [0, 1]
  %x5#0@m1, !1 = call @p1_stage0_fwd_stage0_bwd_calls0to1.main(%x2[0]@m1) after !0 on devices [0, 1] reserving 32 bytes
  %x5#0@m2 = copy %x5#0@m1 : tensor<4xf32>
  %x7#0@m2, !2 = call @p2_stage1_fwd_bwd_calls0to1.main(donate %x5#0@m2) on devices [2, 3]
  %x7#0@m1 = copy %x7#0@m2 : tensor<4xf32>
  %x5#1@m1, !3 = call @p1_stage0_fwd_stage0_bwd_calls0to1.main(%x2[1]@m1) after !1 on devices [0, 1] reserving 40 bytes
  %x5#1@m2 = copy %x5#1@m1 : tensor<4xf32>
  %x9[0]@m1, !4 = call @p1_stage0_fwd_stage0_bwd_calls0to1.main(donate %x7#0@m1) after !3 on devices [0, 1] reserving 16 bytes
  %x7#1@m2, !5 = call @p2_stage1_fwd_bwd_calls0to1.main(donate %x5#1@m2) after !2 on devices [2, 3]
  %x7#1@m1 = copy %x7#1@m2 : tensor<4xf32>
  %x9[1]@m1, !6 = call @p1_stage0_fwd_stage0_bwd_calls0to1.main(donate %x7#1@m1) after !4 on devices [0, 1] reserving 32 bytes
  %out@m1, !7 = call @p3_m1_update.main(donate %x9@m1) after !6 on devices [0, 1] reserving 16 bytes
  return %out@m1 : tensor<8xf32>
}
func @p0_m1_update.main(%arg0: tensor<4xf32>) attributes {mesh = {"x":2}} {
  %x1 = reshape(%arg0) : tensor<2x2xf32>
  %x2 = transpose(%x1) {dims=[1, 0]} : tensor<2x2xf32>
  return %x2 as "x2" : tensor<2x2xf32>
}
func @p1_stage0_fwd_stage0_bwd_calls0to1.main(%x4: tensor<2xf32>) attributes {mesh = {"x":2}} {
  %x5 = add(%x4, %x4) : tensor<2xf32>
  return %x5 as "x5" : tensor<2xf32>
}
func @p2_stage1_fwd_bwd_calls0to1.main(%x5: tensor<2xf32>) attributes {mesh = {"x":2}} {
  %x1 = add(%x5, %x5) : tensor<2xf32>
  %x7 = add(%x1, %x1) : tensor<2xf32>
  return %x7 as "x7" : tensor<2xf32>
}
func @p3_m1_update.main(%x9: tensor<2x2xf32>) attributes {mesh = {"x":2}} {
  %x1 = transpose(%x9) {dims=[1, 0]} : tensor<2x2xf32>
  %out = reshape(%x1) : tensor<4xf32>
  return %out : tensor<4xf32>
}
)");
}
