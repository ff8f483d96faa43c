/// A tactic that combines several tactics.
#pragma once

#include <string_view>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>

#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/kept_name.hpp>

namespace partita {

/// Combines tactics: all of their actions run first, followed by one propagation.
///
/// A schedule is ordered: if two tactics want to shard the same value, the earlier one wins,
/// because its consequences are propagated before the later one acts. An amalgamated tactic has no
/// order. A value that is sharded in two ways is a conflict and stays replicated. It serves as the
/// baseline that schedules are compared with.
///
/// Effect    the actions of all tactics, then `propagate`
/// Legal     whenever each of the tactics is
/// Pros      the result does not depend on the order of the tactics
/// Cons      conflicts stay unresolved, so values are replicated that a schedule would shard
/// Collectives  those of the tactics, and gathers at conflicts
///
/// Source    PartIR-st in PartIR, section 7.4 (figure 7)
template <Tactic... Tactics>
class amalgamated {
 public:
  constexpr explicit amalgamated(std::string_view name, const Tactics&... tactics)
      : name_(name), tactics_(tactics...) {}
  constexpr std::string_view name() const { return name_; }

  /// Rewrites the program before the first action, as each of the tactics would.
  constexpr void rewrite(rewriting& w) const requires(Rewriter<Tactics> || ...) {
    boost::hana::for_each(tactics_, [&](const auto& t) {
      if constexpr (Rewriter<decltype(t)>) t.rewrite(w);
    });
  }
  constexpr void apply(tactic_context& c) const {
    const bool outer = c.postponed;
    c.postponed = true;
    boost::hana::for_each(tactics_, [&](const auto& t) { t.apply(c); });
    c.postponed = outer;
    c.propagate();
  }

 private:
  kept_name name_;
  boost::hana::tuple<Tactics...> tactics_;
};

}  // namespace partita
