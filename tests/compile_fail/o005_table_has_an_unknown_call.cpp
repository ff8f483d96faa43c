// expect: O005 order: row 1 has F2, which mesh "m1" does not run; it runs F0.1, F1.1
#include "stages.hpp"

#include <partita/mpmd/read_order.hpp>

#ifdef FAIL
constexpr const char* last_row = "F0 F2";
#else
constexpr const char* last_row = "F0 F1";
#endif
constexpr auto step = [] {
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes,
                      pt::read_order_table({"F0 F1", last_row}), split());
};
static_assert(pt::check<step>.order("m1") == "F0 F1");
