/// A text under a schedule: its partitioned program is proved, and proved again with pieces of its
/// text replaced.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include <partita/cpu.hpp>
#include <partita/prove/prove.hpp>
#include <partita/spmd/parse.hpp>

#include "../data.hpp"

struct partitioned_case {
  partita::program source;
  partita::device_program device;

  partitioned_case(const std::string& text, const partita::mesh& m, const auto&... tactics)
      : source(partita::parse(text)) {
    REQUIRE_MESSAGE(!source.error, data::str(source.error.message));
    device = partita::partition(source, m, partita::schedule(tactics...)).device;
    check(device);
  }
  /// Checks by a run that the program computes the same.
  void check(const partita::device_program& d) const {
    const auto x = data::arguments(source);
    CHECK_MESSAGE(partita::equal(partita::emulate(d, x), partita::evaluate(source, x)),
                  data::str(partita::print(d)));
  }
  /// Returns why the program is not proved, or "".
  std::string why() const {
    const partita::verdict v = partita::prove(source, device);
    return v.proved ? "" : data::str(v.error.message) + "\n" + data::str(partita::print(device));
  }
  /// True if the program is proved with one text in place of the last occurrence of another.
  bool proved(const std::string& from, const std::string& to) const {
    std::string changed = data::str(partita::print(device.local, &device.mesh));
    const auto at = changed.rfind(from);
    REQUIRE_MESSAGE(at != std::string::npos, changed);
    changed.replace(at, from.size(), to);
    partita::device_program d = device;
    d.local = partita::parse(changed, d.mesh);
    REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
    const bool is = partita::prove(source, d).proved;
    if (is) check(d);
    return is;
  }
};
