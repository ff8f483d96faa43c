// Each form of `expect`; tests/compile_fail has the messages of failures.
#include <partita/partita.hpp>

#include "../two_layers.hpp"

namespace pt = partita;
using namespace two_layers;

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };

static_assert(
    pt::expect<pt::check<step>.collectives, pt::collectives{.all_gather = 2, .all_reduce = 1}>);
static_assert(pt::expect<pt::check<step>.peak_bytes, pt::at_most{100'000}>);  // or at_least
static_assert(pt::expect<pt::check<step>.input("w1").local_shape, pt::shape{2, 8}>);
static_assert(pt::expect<pt::check<step>.input("w1").sharding, R"([{"B"}, {"M"}])", mesh>);
static_assert(pt::expect<[] { return pt::check<step>.tactic(0).name; }, "BP">);

static_assert(pt::expect<pt::check<step>.peak_bytes, pt::at_least{1}>);
static_assert(pt::expect<pt::check<step>.collectives.total(), 3>);
static_assert(pt::expect < pt::check<step>.argument_bytes<4096, true>);
static_assert(pt::expect<pt::check<step>.input("x").element, pt::dtype::f32>);
static_assert(
    pt::expect<pt::check<step>.input("w1").sharding, pt::check<step>.input(1).sharding, mesh>);
static_assert(pt::expect<0.5, 0.5>);
