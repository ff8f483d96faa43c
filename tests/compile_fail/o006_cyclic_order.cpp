// expect: O006 order: it contradicts the flow of data: F1.1 on mesh "m0" waits for the result of
// expect: F1.0 on mesh "m0", which waits for its turn after F1.1 on mesh "m0"; move one of them to
// expect: another place in the order
#include "stages.hpp"

constexpr auto step = [] {
  auto options = split();
  options.where.names = {{"first", "m0", 0}, {"second", "m0", 1}};
#ifdef FAIL
  const auto order = [](const pt::fragment_call& c) { return -c.stage; };
#else
  const auto order = [](const pt::fragment_call& c) { return c.stage; };
#endif
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes, order, options);
};
static_assert(pt::check<step>.order("m0") == "F0.0 F1.0 F0.1 F1.1");
