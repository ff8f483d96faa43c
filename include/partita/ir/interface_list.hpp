/// What a module says of its arguments and results beside names, types and shardings.
#pragma once

#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// An argument or a result.
struct interface_port {
  text attributes;       ///< as written, without what follows: `mhlo.layout_mode = "auto"`
  text frontend;         ///< inside of `mhlo.frontend_attributes`
  bool donated = false;  ///< of an argument: the caller does not need it any more
  int alias = -1;        ///< of such an argument: the result that the module puts in its place
  bool on_host = false;  ///< does it lie in the memory of the host? (`attributes` say so, too.)
};

/// Those of a program that was read from a module; empty lists for others. Passes keep it, and so
/// emitted modules have what was read.
struct interface_list {
  vec<interface_port> inputs, outputs;
  vec<text> notes;  ///< of states that could not be told, for reports

  constexpr bool known() const { return !inputs.empty() || !outputs.empty(); }
  /// Does the module say of any argument that it is donated? Then the others are not.
  constexpr bool says_donations() const {
    for (const interface_port& each : inputs)
      if (each.donated) return true;
    return false;
  }
  constexpr bool donated(int i) const { return has(i) && inputs.data()[i].donated; }
  constexpr bool on_host(int i) const { return has(i) && inputs.data()[i].on_host; }

 private:
  constexpr bool has(int i) const { return static_cast<std::size_t>(i) < inputs.size(); }
};

}  // namespace partita
