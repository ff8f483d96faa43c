/// The texts of partitioned programs, and the properties that each program must have.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "../data.hpp"

namespace pt = partita;
using data::str;

inline std::string local(const pt::partitioned& p) { return str(pt::print(p)); }
inline std::string core(const pt::partitioned& p, bool fuse = true) {
  return str(pt::print_core(p.core, fuse));
}
inline std::string unfused(const pt::core_program& c) {
  return str(pt::print(pt::lower(c, {.fuse = false}).device.local, &c.mesh));
}

/// Checks that every way to run the program gives the results of the source, and that the log
/// replays to the same loops.
inline void check_meaning(const pt::partitioned& p) {
  const auto x = data::arguments(p.source);
  const pt::results expected = pt::evaluate(p.source, x);
  CHECK(pt::equal(pt::emulate(p.device, x), expected));
  const pt::lowered mechanical = pt::lower(p.core, {.fuse = false});
  CHECK(pt::equal(pt::emulate(mechanical.device, x), expected));
  CHECK(!pt::verify(p.device));
  CHECK(!pt::verify(mechanical.device));

  pt::core_program again(p.source, p.mesh());
  const pt::text script = pt::print_actions(p.core, p.source);
  const pt::failure failed = pt::replay(again, p.source, script.view());
  CHECK_MESSAGE(!failed, str(failed.message));
  CHECK(str(pt::print_core(again)) == core(p));
  CHECK(pt::print_actions(again, p.source) == script);
}
