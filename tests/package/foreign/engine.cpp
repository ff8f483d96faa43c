// A project outside this repository that only checks a strategy: without Eigen and xtensor.
#include "strategy.hpp"

partita::collectives counted_in_the_other_unit();

static_assert(pt::check<step>.collectives == pt::collectives{.all_reduce = 1});

int main() { return counted_in_the_other_unit() == step().collectives ? 0 : 1; }
