/// Candidate systems to choose among.
#pragma once

#include <partita/cost/device.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// A system that a program could run on.
struct design {
  text name;
  partita::mesh mesh;
  machine on;
};

}  // namespace partita
