// expect: O005 order: row 1 has F2.1, which mesh "m1" does not run; it runs F0.1, F1.1
#include "stages.hpp"

#ifdef FAIL
constexpr int last = 2;
#else
constexpr int last = 1;
#endif
constexpr auto step = [] {
  pt::order_table table;
  table.rows.resize(2, {});
  for (int mesh = 0; mesh < 2; ++mesh) {
    table.rows[mesh].push_back({.stage = mesh, .mesh = mesh, .microbatch = 0});
    table.rows[mesh].push_back({.stage = mesh, .mesh = mesh, .microbatch = mesh == 1 ? last : 1});
  }
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes, table, split());
};
static_assert(pt::check<step>.order("m1") == "F0 F1");
