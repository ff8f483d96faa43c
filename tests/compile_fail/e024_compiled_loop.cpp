// expect: E024 compiled: op while has nested programs, which is not compiled into a binary; run the
// program with emulate or an executable, or write it with write_cpp
#include <partita/backend/code/frozen.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto step = [] {
  const auto model = [](auto x) {
#ifdef FAIL
    return pt::while_loop([](auto h) { return sum(h * h) < 1e6; }, [](auto h) { return h * 1.5; },
                          x);
#else
    return x * 1.5;
#endif
  };
  return pt::trace(model, pt::input<float, 8>("x"));
};
constexpr bool compiles = pt::report_static_error<pt::backend_detail::frozen_error<step>>();
