/// The pipeline of the cases in this folder, which have one mistake each: two layers on two
/// meshes.
#pragma once

#include <partita/mpmd/check_pipeline.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

namespace stages {

inline constexpr pt::topology two_meshes{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};
inline constexpr auto layer = [](auto x, auto w) { return matmul(x, w); };
inline constexpr auto layers_in_stages = [](auto x, auto w) {
  return pt::named("second", layer)(pt::named("first", layer)(x, w), w);
};

template <class Model>
constexpr pt::program traced_layers(const Model& model) {
  return pt::trace(model, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"));
}
/// Two microbatches, each layer on a mesh of its own.
constexpr pt::pipeline_options split() {
  return {.where = {.names = {{"first", "m0"}, {"second", "m1"}}},
          .microbatches = 2,
          .batch = {{"x", 0}}};
}

}  // namespace stages

using namespace stages;
