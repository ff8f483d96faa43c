// How the work of tile maps, tactics and passes grows: elements of arrays looked at, at two sizes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/partita.hpp>

#include "work.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
const pt::tensor_type square{pt::dtype::f32, {8, 8}};

/// n inputs through one optimization_barrier; all are outputs.
pt::program barrier(int n) {
  pt::builder b;
  pt::vec<pt::value_id> values;
  for (int i = 0; i < n; ++i)
    values.push_back(pt::ops::parameter(b, "w." + std::to_string(i), square));
  const auto first = pt::ops::optimization_barrier(b, {values.data(), values.size()});
  for (int i = 0; i < n; ++i) b.p.outputs.push_back({first + i, b.p.intern(std::to_string(i))});
  return b.p;
}
const auto shard_all = pt::schedule(pt::manual("B", {{"w", 0}}), pt::manual("M", {{"w", 1}}));

}  // namespace

TEST_CASE("a barrier of n tensors") {
  const auto bytes = [](int n) {
    return pt::core_program(barrier(n), mesh).map.operand_dims.size();
  };
  CHECK(bytes(400) <= 5 * bytes(100));
  check_linear(300, barrier, [](const auto& p) { (void)pt::partition(p, mesh, shard_all); });
  const pt::core_program c(barrier(3), mesh);
  for (int f = 0; f < 6; ++f)  // each dimension of each operand by itself
    for (int i = 0; i < 3; ++i) {
      const int dim = f / 2 == i ? f % 2 : pt::no_dim;
      const pt::op_id o = c.p.op_count() - 1;
      CHECK(c.map.operand_dim(c.map.at(o, f), i) == dim);
      CHECK(c.map.result_dim(c.map.at(o, f), i) == dim);
      CHECK(c.map.dim_of(c.map.at(o, f), -1 - i) == dim);
    }
}
