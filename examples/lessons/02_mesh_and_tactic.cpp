/// Lesson 2: a mesh of devices, and a tactic that says how one input lies on it.
///
/// Learnt: a mesh has named axes; `manual` slices inputs along one; the rest follows by
/// propagation, and a sum over pieces becomes a collective. `emulate` runs all devices in this
/// process, whole arrays in and out.
///
/// Printed: the program of one device, for each of two tactics, and how w2 lies on the mesh.
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

  // Rows of x along "B": each row is computed where it lies, and nothing is sent.
  const pt::partitioned rows = pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 0}})));
  std::cout << pt::print(rows) << '\n';

  // Columns of w1 along "M": rows of w2 follow, since the second product sums over them; the pieces
  // of the sum are added up by an all_reduce.
  const pt::partitioned columns =
      pt::partition(f, mesh, pt::schedule(pt::manual("M", {{"w1", 1}})));
  std::cout << pt::print(columns) << '\n';
  std::cout << pt::show(columns, "w2") << '\n';  // which device holds which rows

  xt::xarray<float> x = xt::ones<float>({8, 4});
  const xt::xarray<float> w1 = 2 * xt::ones<float>({4, 6}), w2 = 3 * xt::ones<float>({6, 2});
  x(7, 3) = 5;
  const pt::results whole = pt::evaluate(f, x, w1, w2);
  const bool same = pt::equal(pt::emulate(rows, x, w1, w2), whole) &&
                    pt::equal(pt::emulate(columns, x, w1, w2), whole);
  std::cout << "six devices compute " << (same ? "what one does\n" : "something else\n");

  const bool counted = rows.collectives.total() == 0 && columns.collectives.all_reduce == 1;
  return same && counted && columns.input("w2").local_shape == pt::shape{2, 2} ? 0 : 1;
}
