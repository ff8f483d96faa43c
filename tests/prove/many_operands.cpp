// An op of more factors than a byte can count. It was once sliced along the wrong dimension; such a
// program is refused.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

using matrices = std::vector<pt::tensor<float, 4, 4>>;
constexpr int count = 65;  // with two factors each

template <class Tactics>
pt::partitioned through_barrier(const pt::mesh& m, const Tactics& tactics) {
  const pt::program source = pt::trace(
      [](matrices xs) {
        for (auto& x : xs) x = x * 2;
        xs = pt::optimization_barrier(xs);
        for (auto& x : xs) x = x + 1;
        return pt::output("y", xs);
      },
      pt::input("x", matrices(count)));
  return pt::partition(source, m, tactics);
}

}  // namespace

TEST_CASE("many operands: the last of 65 matrices sliced along the wrong dimension is refused") {
  const std::string last = "x." + std::to_string(count - 1);
  const pt::manual_entry rows[] = {{last, 0}}, columns[] = {{last, 1}};
  const pt::mesh mesh{{"B", 2}, {"M", 2}};
  const auto r =
      through_barrier(mesh, pt::schedule(pt::manual("B", rows), pt::manual("M", columns)));
  REQUIRE(r.output(count - 1).local_shape == pt::shape{2, 2});
  CHECK(pt::prove(r).proved);
  // The types are the same, but rows are along the axis of the columns.
  pt::device_program turned = r.device;
  turned.outputs[count - 1] = {};
  turned.outputs[count - 1].push_back(0, 1);
  turned.outputs[count - 1].push_back(1, 0);
  const pt::verdict v = pt::prove(r.source, turned);
  CHECK(!v.proved);
  CHECK_MESSAGE(v.error.message.view().starts_with("Q004 prove: output \"y.64\" is "),
                str(v.error.message));
}

TEST_CASE("many operands: a barrier that exchanges columns and rows is refused") {
  const std::string last = "x." + std::to_string(count - 1);
  const pt::manual_entry columns[] = {{last, 1}};
  const auto r = through_barrier(pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", columns)));
  CHECK(pt::prove(r).proved);
  pt::device_program turned = r.device;
  for (pt::op_id o = 0; o < turned.local.op_count(); ++o) {
    const pt::op_node& n = turned.local.op(o);
    if (n.def->id == pt::def<pt::op::optimization_barrier>.id)
      turned.local.types[n.result + count - 1].shape = {2, 4};
  }
  const pt::value_id out = turned.local.outputs[count - 1].value;
  turned.local.types[out].shape = {2, 4};
  turned.outputs[count - 1] = {};
  turned.outputs[count - 1].push_back(0, 0);
  const pt::verdict v = pt::prove(r.source, turned);
  CHECK(!v.proved);
  CHECK_MESSAGE(v.error.message.view().starts_with("Q007 prove: "), str(v.error.message));
}
