/// Several tactics as one.
#pragma once

#include <string_view>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>

#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/kept_name.hpp>

namespace partita {

/// The actions of all tactics first, then one propagation.
///
/// A schedule is an order: where two tactics want the same value, the earlier one has it, since
/// what it implies is there before the later one acts. Here nothing is settled by order, and what
/// is wanted twice is a conflict and stays replicated. So this is what a schedule is compared with.
///
/// Source    PartIR-st in PartIR, section 7.4 (figure 7)
template <Tactic... Tactics>
class amalgamated {
 public:
  constexpr explicit amalgamated(std::string_view name, const Tactics&... tactics)
      : name_(name), tactics_(tactics...) {}
  constexpr std::string_view name() const { return name_; }

  /// The program is rewritten before the first action anyway.
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
