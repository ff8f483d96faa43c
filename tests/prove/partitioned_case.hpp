/// A text under a schedule: what it is partitioned to, proved, and with pieces of it replaced.
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
    const auto x = data::arguments(source);
    CHECK(partita::equal(partita::emulate(device, x), partita::evaluate(source, x)));
  }
  std::string why() const {
    const partita::verdict v = partita::prove(source, device);
    return v.proved ? "" : data::str(v.error.message) + "\n" + data::str(partita::print(device));
  }
  /// Is it proved with one text in place of the last one of another?
  bool proved(const std::string& from, const std::string& to) const {
    std::string changed = data::str(partita::print(device.local, &device.mesh));
    const auto at = changed.rfind(from);
    REQUIRE_MESSAGE(at != std::string::npos, changed);
    changed.replace(at, from.size(), to);
    partita::device_program d = device;
    d.local = partita::parse(changed, d.mesh);
    REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
    return partita::prove(source, d).proved;
  }
};
