// expect: O126 merge: forward of stage 0 ("first") and forward of stage 2 ("third") cannot be one
// call
// expect: forward of stage 2 ("third") needs the result of forward of stage 1 ("second")
#include "stages.hpp"

#include <partita/mpmd/merge.hpp>

constexpr auto step = [] {
  const auto three_layers = [](auto x, auto w) {
    return pt::named("third", layer)(layers_in_stages(x, w), w);
  };
  auto options = split();
  options.where.names = {{"first", "m0"}, {"second", "m1"}, {"third", "m0"}};
  const auto p = pt::pipeline(traced_layers(three_layers), two_meshes, pt::gpipe, options);
#ifdef FAIL
  return pt::merged(p, {{{"first"}, {"third"}}});
#else
  return p;
#endif
};
static_assert(pt::check<step>.order("m1") == "F0 F1" || pt::check<step>.order("m1") == "F0.1 F1.1");
