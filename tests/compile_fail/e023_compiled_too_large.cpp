// expect: E023 compiled: a program of 502 ops and 1 inputs or outputs is too large to be compiled
// into a binary; up to 400 ops and 100 inputs or outputs are: run it with emulate or an executable
#include <partita/backend/code/frozen.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

#ifdef FAIL
constexpr int additions = 500;
#else
constexpr int additions = 100;
#endif
constexpr auto step = [] {
  const auto model = [](auto x) {
    auto y = x + x;
    for (int i = 0; i < additions; ++i) y = y + x;
    return y;
  };
  return pt::trace(model, pt::input<float, 4>("x"));
};
constexpr bool compiles = pt::report_static_error<pt::backend_detail::frozen_error<step>>();
