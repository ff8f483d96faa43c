/// Greedy searches, and detours from their paths.
///
/// Source    lazy greedy: Minoux, 1978; detours: Harvey and Ginsberg, Limited discrepancy search,
///           1995
#pragma once

#include <cstddef>
#include <limits>

#include <partita/search/tried_action.hpp>

namespace partita {

/// Repeatedly takes the action that reduces the cost most, starting at the current state. An action
/// is tried again only if no other action is known to be better. When no action helps any more, all
/// of them are tried again, in at most `rounds` rounds.
struct greedy_search {
  int rounds = std::numeric_limits<int>::max();

  constexpr void operator()(environment& e) const {
    e.mark();
    double now = e.cost();
    for (int i = 0; i < rounds && !e.spent() && descend(e, now); ++i) {
    }
  }

 private:
  /// Returns whether any action was taken.
  static constexpr bool descend(environment& e, double& now) {
    heap<search_detail::tried_action> open = search_detail::try_all(e, now);
    const double enough = 1 - e.options().least_gain;
    int taken = 0;
    while (!open.empty() && open.least().ratio < enough && !e.spent()) {
      search_detail::tried_action best = open.pop();
      if (best.at < taken) {
        best = {search_detail::try_action(e, best.action, now), best.action, taken};
        if (best.ratio < enough) open.push(best);
        continue;
      }
      e.step(best.action);
      e.mark();
      now *= best.ratio;
      ++taken;
    }
    return taken > 0;
  }
};

/// Runs a greedy search, and then detours from its path. A detour takes another action in one of
/// the path's first states and continues greedily. Detours are ordered by the cost of that action,
/// relative to the best action in the state. At the end, a greedy search continues from the best
/// state found. (A greedy search cannot see the joint effect of two actions: one half of Megatron's
/// sharding of a layer saves as much as its communication costs, and an action with a small
/// immediate gain may make both halves illegal.)
///
/// With `fast_first`, each path minimizes time alone until no action helps, and then continues
/// until the result fits into memory. (The action that saves the most memory first may rule out all
/// fast results.)
struct detour_search {
  int states = 2;       ///< detours start from this number of first states
  double share = 0.25;  ///< of the remaining budget
  bool fast_first = false;

  constexpr void operator()(environment& e) const {
    const double until = e.spent_part() + (1 - e.spent_part()) * share;
    const environment::path begin = e.taken();
    descend(e, greedy_search{});
    vec<turn> turns = turns_of(e, begin.size(), environment::path(e.taken()));
    for (int t = next_of(turns); t >= 0 && e.spent_part() < until; t = next_of(turns)) {
      const int action = turns[t].open.pop().action;
      if (action == turns[t].taken) continue;
      e.go_to(turns[t].from);
      e.step(action);
      descend(e, greedy_search{.rounds = 1});
    }
    if (turns.empty()) return;
    e.go_to(environment::path(e.best()));
    greedy_search{}(e);
  }

 private:
  /// A state on the path, the action that was taken there, and the actions that were not tried.
  struct turn {
    environment::path from;
    int taken = -1;
    double least = 0;  ///< cost factor of the best action
    heap<search_detail::tried_action> open;
  };

  constexpr void descend(environment& e, const greedy_search& greedy) const {
    if (fast_first) {
      e.count_memory(false);
      greedy(e);
      e.count_memory(true);
    }
    greedy(e);
  }
  constexpr vec<turn> turns_of(environment& e, std::size_t begin,
                               const environment::path& way) const {
    e.count_memory(!fast_first);
    vec<turn> turns;
    environment::path from;
    for (std::size_t n = 0; n < way.size() && n < begin + static_cast<std::size_t>(states); ++n) {
      if (n >= begin) {
        e.go_to(from);
        e.mark();
        turns.push_back({from, way[n], 0, search_detail::try_all(e, e.cost())});
        if (!turns.back().open.empty()) turns.back().least = turns.back().open.least().ratio;
      }
      from.push_back(way[n]);
    }
    e.count_memory(true);
    return turns;
  }
  /// Returns the state with the most promising action, or -1 if all were tried.
  static constexpr int next_of(const vec<turn>& turns) {
    int best = -1;
    for (int t = 0; t < static_cast<int>(turns.size()); ++t) {
      if (turns[t].open.empty()) continue;
      if (best < 0 || turns[t].open.least().ratio * turns[best].least <
                          turns[best].open.least().ratio * turns[t].least)
        best = t;
    }
    return best;
  }
};

}  // namespace partita
