// expect: O004 order: F1 on mesh "m1" is missing in its row; each call stands there once
#include "stages.hpp"

constexpr auto step = [] {
  pt::order_table table;
  table.rows.resize(2, {});
  for (int mesh = 0; mesh < 2; ++mesh)
    for (int i = 0; i < 2; ++i) {
#ifdef FAIL
      if (mesh == 1 && i == 1) continue;
#endif
      table.rows[mesh].push_back({.stage = mesh, .mesh = mesh, .microbatch = i});
    }
  return pt::pipeline(traced_layers(layers_in_stages), two_meshes, table, split());
};
static_assert(pt::check<step>.order("m1") == "F0 F1");
