// expect: P007 after: no tactic "MQ"; known: BP, MP; did you mean "MP"?
#include "mlp.hpp"

#ifdef FAIL
constexpr pt::tactic_choice name = "MQ";
#else
constexpr pt::tactic_choice name = "MP";
#endif

constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
static_assert(pt::check<pt::after_tactic<step, name>>.peak_bytes == pt::check<step>.peak_bytes);
