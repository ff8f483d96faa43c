// Ops of hundreds of operands and factors: partitioned, they compute the results of the source.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

using matrix = pt::tensor<float, 4, 6>;
using matrices = std::vector<matrix>;
constexpr pt::mesh mesh{{"B", 2}, {"M", 3}};

std::string nth(std::string_view tree, int i) {
  return std::string(tree) + '.' + std::to_string(i);
}

/// Checks that each backend gives the results of the source.
void check_equal(const pt::partitioned& r) {
  REQUIRE(str(pt::verify(r.device).message) == "");
  const auto inputs = data::arguments(r.source);
  const pt::results expected = pt::evaluate(r.source, inputs);
  CHECK(pt::max_difference(pt::emulate(r, inputs), expected) == 0);
  CHECK(pt::max_difference(pt::temporal(r, inputs), expected) == 0);
}

/// Passes the values of one tree through `model`, to "y".
template <class Model>
pt::program source(const Model& model, int n) {
  return pt::trace([&](matrices xs) { return pt::output("y", model(xs)); },
                   pt::input("x", matrices(static_cast<std::size_t>(n))));
}
matrices through_barrier(matrices xs) {
  for (auto& x : xs) x = x * 2;
  xs = pt::optimization_barrier(xs);
  for (auto& x : xs) x = x + 1;
  return xs;
}

}  // namespace

TEST_CASE("a barrier over any number of tensors is sliced along the named tensor") {
  for (const int n : {63, 64, 65, 100, 200}) {
    CAPTURE(n);
    const pt::program p = source(through_barrier, n);
    for (const int which : {0, 31, 62, n - 1}) {
      const std::string x = nth("x", which), y = nth("y", which);
      const pt::manual_entry rows[] = {{x, 0}}, columns[] = {{x, 1}};
      const auto r =
          pt::partition(p, mesh, pt::schedule(pt::manual("B", rows), pt::manual("M", columns)));
      CHECK(r.collectives == pt::collectives{});
      CHECK(r.output(y).local_shape == pt::shape{2, 2});
      CHECK(r.output(y).sharding == r.input(x).sharding);
      check_equal(r);
    }
  }
}

TEST_CASE("a dimension of the last of many tensors is padded through a barrier") {
  for (const int n : {20, 33, 70}) {
    CAPTURE(n);
    const std::string x = nth("x", n - 1);
    const pt::manual_entry columns[] = {{x, 1}};
    const auto r = pt::partition(source(through_barrier, n), pt::mesh{{"B", 4}},
                                 pt::schedule(pt::manual("B", columns, pt::uneven::pad)));
    CHECK(r.output(nth("y", n - 1)).local_shape == pt::shape{4, 2});
    CHECK(r.collectives == pt::collectives{});
    check_equal(r);
  }
}

TEST_CASE("late operands of a concatenation of hundreds are sliced like the first") {
  const auto model = [](const matrices& xs) {
    std::vector<pt::value_id> parts;
    for (const auto& x : xs) parts.push_back(x.id());
    pt::builder& b = *xs[0].context();
    return pt::tensor<float, 1200, 6>(&b,
                                      pt::ops::concatenate(b, {parts.data(), parts.size()}, 0)) *
           2;
  };
  const pt::manual_entry columns[] = {{"x.299", 1}};
  const auto r = pt::partition(source(model, 300), mesh, pt::schedule(pt::manual("M", columns)));
  CHECK(r.output(0).local_shape == pt::shape{1200, 2});
  check_equal(r);
}

TEST_CASE("a loop carries hundreds of values") {
  const auto model = [](const matrices& xs) {
    return pt::for_loop(
        0, 3,
        [](const auto&, matrices carried) {
          for (auto& x : carried) x = x + 1;
          return carried;
        },
        xs);
  };
  const pt::manual_entry rows[] = {{"x.199", 0}}, columns[] = {{"x", 1}};
  const auto r = pt::partition(source(model, 200), mesh,
                               pt::schedule(pt::manual("B", rows), pt::manual("M", columns)));
  CHECK(r.output("y.199").local_shape == pt::shape{2, 2});
  CHECK(r.output("y.198").local_shape == pt::shape{4, 2});
  CHECK(r.collectives == pt::collectives{});
  check_equal(r);
}

TEST_CASE("loops store tactic numbers of any size") {
  pt::core_program c(source(through_barrier, 2), mesh);
  c.start_tactic(100000);
  REQUIRE(!c.tile(0, 0, 0));
  c.propagate();
  for (pt::op_id o = 0; o < c.p.op_count(); ++o)
    for (const auto& l : c.nest_of(o)) CHECK(l.tactic == 100000);
}
