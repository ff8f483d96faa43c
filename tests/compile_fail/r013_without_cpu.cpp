// expect: R013 run: evaluate, emulate and temporal need #include <partita/cpu.hpp>, and the CMake
// lines: 5 20
#include <partita/partita.hpp>

namespace pt = partita;

inline auto source() {
  return pt::trace([](auto x) { return x + x; }, pt::input<float, 8>("x"));
}
#ifdef FAIL
inline auto run() { return pt::evaluate(source(), 1.0f); }
#endif
