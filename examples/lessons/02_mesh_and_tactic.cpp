/// Lesson 2: How does one sharded input partition a whole program? Propagation infers the rest.
///
/// You learn to describe devices by a mesh with named axes, to shard an input along an axis with
/// the tactic `manual`, to read the program of one device, and to run all devices with `emulate`.
///
/// Output: the program of one device under each of two tactics, the layout of w2 on the mesh, and
/// that six devices compute the same as one.
// ctest:
#include <iostream>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <xtensor/xarray.hpp>

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };

int main() {
  const pt::program f = pt::trace(mlp, pt::input<float, 8, 4>("x"), pt::input<float, 4, 6>("w1"),
                                  pt::input<float, 6, 2>("w2"));
  const pt::mesh mesh{{"B", 2}, {"M", 3}};  // six devices

  // First tactic: shard the rows of x along "B". A row of the result needs only the same row of x,
  // so propagation shards all products by rows. In the output, x has four rows instead of eight and
  // nothing is communicated. w1 and w2 are replicated.
  const pt::partitioned rows = pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
  std::cout << pt::print(rows) << '\n';

  // Second tactic: shard the columns of w1 along "M". The second product sums over these columns,
  // so propagation shards the rows of w2, which the tactic does not name. Each device then has a
  // partial sum. The printed program adds the partial sums with an all_reduce over "M".
  const pt::partitioned columns =
      pt::partition(f, mesh, pt::schedule(pt::manual("M", {{"w1", 1}})));
  std::cout << pt::print(columns) << '\n';
  std::cout << pt::show(columns, "w2") << '\n';  // the rows of w2 that each device has

  // `emulate` runs the programs of all six devices in this process. It splits the global arrays
  // into shards, and assembles the result from the devices' shards.
  xt::xarray<float> x = xt::ones<float>({8, 4});
  const xt::xarray<float> w1 = 2 * xt::ones<float>({4, 6}), w2 = 3 * xt::ones<float>({6, 2});
  x(7, 3) = 5;
  const pt::results whole = pt::evaluate(f, x, w1, w2);
  const bool same = pt::equal(pt::emulate(rows, x, w1, w2), whole) &&
                    pt::equal(pt::emulate(columns, x, w1, w2), whole);
  std::cout << "six devices compute " << (same ? "what one does\n" : "something else\n");

  // A partitioned program also reports its collectives and layouts, as lesson 3 checks them.
  const bool counted = rows.collectives.total() == 0 && columns.collectives.all_reduce == 1;
  return same && counted && columns.input("w2").local_shape == pt::shape{2, 2} ? 0 : 1;
}

// Read more: examples/guide/2_tactics_and_propagation.md. Next lesson: 03_checks.cpp
