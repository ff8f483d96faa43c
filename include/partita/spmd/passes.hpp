/// The passes over collectives: options that select them, and reports of their effects.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <partita/core/partition_state.hpp>
#include <partita/ir/collective.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The uses of a value that share one gather, among those that need the same gather; `true` means
/// all, `false` none.
struct shared_uses {
  enum kind_type : std::uint8_t {
    none,   ///< each use has its own gather
    alike,  ///< adjacent uses that are the same op with different other operands, see share.hpp
    neighbours,  ///< adjacent uses, with no other gather in between
    all          ///< all uses, whatever their distance and the memory it takes
  };
  kind_type kind = none;

  constexpr shared_uses() = default;
  constexpr shared_uses(kind_type k) : kind(k) {}
  template <std::same_as<bool> Bool>
  constexpr shared_uses(Bool share) : kind(share ? all : none) {}

  friend constexpr bool operator==(const shared_uses&, const shared_uses&) = default;
};

/// Selects the passes, which run in the order of the members.
///
/// The first one changes loops before the lowering. The next four are part of it: it decides them
/// from layouts before it emits
/// anything. As passes over the lowered program they would have to emit every collective, find it
/// again by its neighbours and delete it. The other passes rewrite the lowered program and its
/// nested programs.
///
/// Law       every pass preserves the results of the program
struct passes {
  /// Gives cheap ops the loops of a use or of an operand if that sends fewer bytes: before a value
  /// grows (a broadcast, a conversion to a wider type), or after it shrinks (a slice). See
  /// cost/relocate.hpp. Tactics' figures are those before.
  bool relocate = true;
  /// all_slice(all_gather(x)) => x, for axes that slice the same dimension on both sides.
  bool cancel = true;
  /// all_slice(all_gather(x)) => all_to_all, for axes that move from one dimension to another.
  bool to_all_to_all = true;
  /// all_slice(all_reduce(x)) => reduce_scatter, if all uses slice alike.
  bool to_reduce_scatter = true;
  /// Keeps the table of a gather in place if its rows and its batch are sharded along one axis:
  /// indices are sent to the rows, and the gathered rows are reduce-scattered. Updates of such rows
  /// are gathered instead of scattering their sum. Applies if a device then sends fewer bytes. It
  /// also affects propagation, which slices the batch of such a gather instead of recording a
  /// conflict. For example, a gather of 8 of 16 rows with 16 bytes each, over 4 devices, sends 120
  /// bytes instead of 216, and with its gradient 240 instead of 408. See row_lookup.hpp.
  bool stationary_rows = false;
  /// Moves the smaller operand and the result of a product instead of gathering or scattering the
  /// larger one, if a device then sends at least this many bytes less; 0: off. See stationary.hpp.
  std::int64_t stationary_above = 0;
  /// Combines all_reduces with the same axes, combiner and element type into one of at most this
  /// many bytes per device, if no result is needed before all operands are there, or if what waits
  /// for it raises the peak of live memory by at most 1 %; 0: off. See combine.hpp.
  std::int64_t combine_below = 30 << 20;
  /// Moves gathers as late, and reduce_scatters and slices as early, as their operands and users
  /// permit, if that does not raise the peak of live memory. See place.hpp.
  bool place = false;
  /// Gathers a value once and keeps it, instead of several times: for all uses, or for alike or
  /// neighbouring uses where the peak of live memory does not rise. See share.hpp.
  shared_uses share_gathers = shared_uses::alike;
  /// Shares gathers among all uses (overriding `share_gathers`) as long as the peak of live memory
  /// stays at or below this many bytes per device, shortest wait first; 0: no bound; `own_peak`:
  /// the peak before sharing.
  std::int64_t memory_bound = 0;
  static constexpr std::int64_t own_peak = -1;

  /// The options that the program needs before its first action.
  constexpr core_options core() const { return {.stationary_rows = stationary_rows}; }
  constexpr shared_uses shared() const {
    return memory_bound != 0 ? shared_uses(shared_uses::all) : share_gathers;
  }
  constexpr bool shares() const { return shared() != shared_uses::none; }
  /// True if a pass rewrites the lowered program other than combining, and sharing among alike
  /// uses.
  constexpr bool rewrite_more() const {
    return stationary_above > 0 || place || (shares() && shared() != shared_uses::alike);
  }
  /// True if any pass rewrites the lowered program.
  constexpr bool rewrite() const { return rewrite_more() || combine_below > 0 || shares(); }

  /// Checks the options.
  ///
  /// Errors    C001 a size is negative
  constexpr failure validate() const {
    failure f;
    if (stationary_above < 0)
      f.record("C001", "passes: stationary_above is ", stationary_above,
               " bytes; give 0 (off) or more");
    if (combine_below < 0)
      f.record("C001", "passes: combine_below is ", combine_below, " bytes; give 0 (off) or more");
    if (memory_bound < 0 && memory_bound != own_peak)
      f.record("C001", "passes: memory_bound is ", memory_bound,
               " bytes; give 0 (no bound) or more, or pt::passes::own_peak (", own_peak, ')');
    return f;
  }
};

/// The effect of one pass.
struct pass_report {
  std::string_view name;
  /// The number of collectives removed, replaced or moved in the text of the program.
  int changed = 0;
  collectives before, after;
  collectives written_before, written_after;             ///< the number of collectives in the text
  std::int64_t launched_before = 0, launched_after = 0;  ///< see partitioned::launched
  /// Bytes of live memory on one device; both 0 for combining, which measures none.
  std::int64_t peak_before = 0, peak_after = 0;
};

}  // namespace partita
