// expect: S025 in_sequence: dimension 0 of "x" has size 10 and is padded for axis "B" of size 4;
#include "mlp.hpp"

#ifdef FAIL
constexpr int size = 10;
#else
constexpr int size = 12;
#endif

constexpr auto in_steps = [] {
  const auto f = pt::trace(mlp, pt::input<float, size, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  pt::core_program c(f, mesh);
  (void)c.tile(c.p.inputs[0], 0, 0, pt::uneven::pad);
  c.propagate();
  return pt::partition(pt::in_sequence(c, 0).p, mesh, pt::schedule(MP));
};
static_assert(pt::check<in_steps>.collectives.all_to_all == 0);
