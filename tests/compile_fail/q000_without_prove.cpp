// expect: check<thunk>.proved needs #include <partita/prove/prove.hpp>
#include "mlp.hpp"

#ifndef FAIL
#include <partita/prove/prove.hpp>
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
static_assert(pt::check<step>.proved);
