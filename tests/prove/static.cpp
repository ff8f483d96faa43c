// `prove` in constant evaluation.
#include <partita/prove/prove.hpp>

#include "../two_layers.hpp"

namespace pt = partita;
using namespace two_layers;

static_assert([] {
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3));
  return pt::prove(p).proved;
}());

// A layout that does not fit is said.
static_assert([] {
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3));
  pt::device_program wrong = p.device;
  wrong.outputs[0] = {};  // whole, it says
  const pt::verdict v = pt::prove(p.source, wrong);
  return !v.proved && v.error.message.view().substr(0, 11) == "Q002 prove:";
}());

// `check` proves where it is asked to, or with its figures.
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };
constexpr auto proved_step = [] { return pt::proved(step()); };
static_assert(pt::check<step>.proved);
static_assert(pt::check<proved_step>.proved && pt::check<proved_step>.collectives.all_reduce == 1);

// Or where the program is made: by an option, whose mistakes are those of `partition`.
constexpr auto checked_step = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3), {.prove = pt::proof});
};
static_assert(pt::check<checked_step>.proved);
constexpr auto refuses = [](const pt::program&, const pt::device_program& made, pt::failure& f) {
  f.record("Q003", made.local.op_count(), " ops");
  return false;
};
static_assert([] {
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP), {.prove = refuses});
  return !p.proved && p.error.message.view().substr(0, 4) == "Q003";
}());
static_assert([] {  // at run time alone
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP), {.prove = pt::proof_in_debug});
  return !p.proved && !p.error;
}());
