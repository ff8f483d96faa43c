/// The passes over collectives: which of them run, and what each did.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <partita/core/partition_state.hpp>
#include <partita/ir/collective.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Which uses of a value share a gather of it, of those for which it is gathered in the same way;
/// `true` is all, `false` none.
struct shared_uses {
  enum kind_type : std::uint8_t {
    none,        ///< each has one for itself
    alike,       ///< those next to each other that are one op by several others: see share.hpp
    neighbours,  ///< those next to each other: nothing else is gathered in between
    all          ///< however far they are apart, whatever memory it takes
  };
  kind_type kind = none;

  constexpr shared_uses() = default;
  constexpr shared_uses(kind_type k) : kind(k) {}
  template <std::same_as<bool> Bool>
  constexpr shared_uses(Bool share) : kind(share ? all : none) {}

  friend constexpr bool operator==(const shared_uses&, const shared_uses&) = default;
};

/// Which passes run, in the order of the members.
///
/// The first four are part of the lowering, which decides them from layouts before it emits
/// anything: as passes over the lowered program they would emit every collective, find it again by
/// its neighbours and delete it. The others rewrite the lowered program, the nested ones included.
///
/// Law       every pass keeps what the program computes
struct passes {
  /// all_slice(all_gather(x)) => x, for the axes that slice the same dimension on both sides.
  bool cancel = true;
  /// all_slice(all_gather(x)) => all_to_all, for axes that go from one dimension to another.
  bool to_all_to_all = true;
  /// all_slice(all_reduce(x)) => reduce_scatter, if all uses slice alike.
  bool to_reduce_scatter = true;
  /// Lookups whose rows and batch are cut along one axis: indices come to the rows, what they find
  /// is reduce_scattered, and updates of such rows are gathered in place of a sum that is
  /// scattered, where a device sends fewer bytes then. Propagation knows it: it cuts the batch of
  /// the lookup, which is a conflict without it. See looked_up.hpp.
  bool stationary_rows = false;
  /// Products move their smaller operand, and their result, in place of gathering or scattering the
  /// larger one, where a device sends fewer bytes then, by this many at least; 0: none do. See
  /// stationary.hpp.
  std::int64_t stationary_above = 0;
  /// Independent all_reduces of the same axes, combiner and element type become one, as long as
  /// its operands are this many bytes per device or fewer; 0: none. What uses the first of them
  /// waits for the last. See combine.hpp.
  std::int64_t combine_below = 0;
  /// Gathers run as late, reduce_scatters and slices as early as their operands and users let them,
  /// where that does not raise the peak of live memory. See place.hpp.
  bool place = false;
  /// A value that is gathered several times is gathered once and kept: for all uses, or for those
  /// alike or next to each other where the peak of live memory does not rise. See share.hpp.
  shared_uses share_gathers = shared_uses::alike;
  /// The gathers of all uses are shared (whatever `share_gathers` says) as long as the peak of live
  /// memory stays at or below this many bytes per device, those of the shortest wait first; 0: no
  /// bound is given; `own_peak`: what the peak is before, so that it does not rise.
  std::int64_t memory_bound = 0;
  static constexpr std::int64_t own_peak = -1;

  /// What of it the program has to know before its first action.
  constexpr core_options core() const { return {.stationary_rows = stationary_rows}; }
  constexpr shared_uses shared() const {
    return memory_bound != 0 ? shared_uses(shared_uses::all) : share_gathers;
  }
  constexpr bool shares() const { return shared() != shared_uses::none; }
  /// Does any pass rewrite the lowered program, but for the sharing of uses that are alike?
  constexpr bool rewrite_more() const {
    return stationary_above > 0 || combine_below > 0 || place ||
           (shares() && shared() != shared_uses::alike);
  }
  /// Does any pass rewrite the lowered program?
  constexpr bool rewrite() const { return rewrite_more() || shares(); }

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

/// What one pass did.
struct pass_report {
  std::string_view name;
  int changed = 0;  ///< collectives that it removed, replaced or moved, in the text of the program
  collectives before, after;
  collectives written_before, written_after;     ///< each once, as it stands in the text
  std::int64_t peak_before = 0, peak_after = 0;  ///< bytes of live memory on one device
};

}  // namespace partita
