/// Attributes of a module's arguments and results other than names, types and shardings.
#pragma once

#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// An argument or a result.
struct interface_port {
  text attributes;       ///< as written, without the attributes below: `mhlo.layout_mode = "auto"`
  text frontend;         ///< inside of `mhlo.frontend_attributes`
  bool donated = false;  ///< true for an argument that the caller no longer needs
  int alias = -1;        ///< the result that reuses the memory of this argument
  text memory;           ///< kind of memory: "pinned_host" (`attributes` contain this too)

  constexpr bool on_host() const { return memory.view().ends_with("host"); }
};

/// The attributes of a program that was read from a module; empty lists for other programs. Passes
/// keep them, so emitted modules have the attributes that were read.
struct interface_list {
  vec<interface_port> inputs, outputs;
  vec<text> notes;  ///< for reports, about states that could not be identified

  constexpr bool known() const { return !inputs.empty() || !outputs.empty(); }
  /// True if the module marks any argument as donated. All other arguments are then not donated.
  constexpr bool says_donations() const {
    for (const interface_port& each : inputs)
      if (each.donated) return true;
    return false;
  }
  constexpr bool donated(int i) const { return has(i) && inputs.data()[i].donated; }
  constexpr bool on_host(int i) const { return has(i) && inputs.data()[i].on_host(); }

 private:
  constexpr bool has(int i) const { return static_cast<std::size_t>(i) < inputs.size(); }
};

}  // namespace partita
