// expect: O148 pipeline: prove: the proof of pipelines is missing; #include
// <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/prove/prove.hpp>
#include "stages.hpp"

#ifndef FAIL
#include <partita/mpmd/prove_pipeline.hpp>
#endif

constexpr auto step = [] {
  constexpr auto in_stages = pt::pipeline({.stages = {{"first"}, {"second"}}, .batch = {{"x", 0}}});
  return pt::partition(traced_layers(layers_in_stages), two_meshes, pt::schedule(in_stages),
                       {.prove = pt::proof});
};
static_assert(pt::check<step>.collectives.all_reduce == 0);
