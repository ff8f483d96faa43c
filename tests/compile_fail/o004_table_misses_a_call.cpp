// expect: O004 order: F1 on mesh "m1" is missing in its row; each call appears there once
#include "stages.hpp"

#include <partita/mpmd/read_order.hpp>

#ifdef FAIL
constexpr const char* last_row = "F0";
#else
constexpr const char* last_row = "F0 F1";
#endif
constexpr auto step = [] {
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes,
                      pt::read_order_table({"F0 F1", last_row}), split());
};
static_assert(pt::check<step>.order("m1") == "F0 F1");
