// A step that carries states from microbatch to microbatch, at compile time.
#include "../carried_states.hpp"

#include <partita/mpmd/check_pipeline.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/prove_pipeline.hpp>

namespace pt = partita;

constexpr pt::topology cluster{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};
constexpr auto step = [] {
  return pt::pipeline(carried::traced(), cluster, pt::one_f_one_b,
                      {.where = {.names = {{"front", "m0"}, {"back", "m1"}}}});
};
static_assert(pt::check<step>.deadlock_free);
static_assert(pt::check<step>.proved);
static_assert(pt::check<step>.order("m1").substr(0, 11) == "F0 B0 F1 B1");
