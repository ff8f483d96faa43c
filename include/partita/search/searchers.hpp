/// Searchers, which play an environment: the concept, and the search of `automatic`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <partita/search/environment.hpp>
#include <partita/search/greedy_search.hpp>
#include <partita/search/neighbor_search.hpp>
#include <partita/search/tree_search.hpp>

namespace partita {

/// A function that steps through an environment and requests costs; the environment keeps the best
/// state. It must end when the environment's budget is spent.
template <class S>
concept Searcher = requires(const S& s, environment& e) {
  s(e);
};

/// Visits every reachable state once, independent of the order of actions: an oracle for small
/// programs.
struct exhaustive_search {
  constexpr void operator()(environment& e) const {
    vec<environment::path> open(1, e.taken());
    vec<std::uint64_t> seen(1, e.hash());
    place_table known;
    const auto hash = [&](int i) { return hash_of(seen[i]); };
    known.insert(0, hash);
    for (std::size_t next = 0; next < open.size() && !e.spent(); ++next) {
      e.go_to(environment::path(open[next]));
      e.mark();
      for (int a = 0; a < e.action_count() && !e.spent(); ++a) {
        if (!e.step(a)) continue;
        const std::uint64_t h = e.hash();
        if (known.find(hash_of(h), [&](int i) { return seen[i] == h; }) < 0) {
          e.cost();
          seen.push_back(h);
          known.insert(static_cast<int>(seen.size()) - 1, hash);
          open.push_back(e.taken());
        }
        e.go_back();
      }
    }
  }
};

/// The search of `automatic`. Its steps are:
///
/// * a greedy search with detours, with a quarter of the budget: once with sparing moves and once
///   without (saving a little memory early may prevent larger savings later); again if the
///   simulator finds that the result needs more memory than estimated
/// * if no result fits, detours that minimize time first, and then exchanges
/// * the neighbours of the best state
/// * if the initial state did not fit but the first step found one that does: detours that minimize
///   time first, and the neighbours of a better result. (They run this late so that a slightly
///   smaller memory limit does not change the course of the search.)
/// * a tree search with the remaining budget, and a greedy search from the best state
struct default_search {
  constexpr void operator()(environment& e) const {
    const environment::path begin = e.taken();
    if (e.offer_sparing(true)) {
      detour_search{}(e);
      e.offer_sparing(false);
      e.go_to(begin);
    }
    detour_search{}(e);
    const bool again = e.check_memory();
    if (again) {
      e.offer_sparing(true);
      e.go_to(begin);
      detour_search{}(e);
    }
    const bool tight = !e.fits();
    if (tight) fast_first(e, begin, again);
    if (!e.fits()) exchange_search{}(e);
    neighbor_search{}(e);
    if (!tight && e.began_too_large()) {
      const double before = e.best_cost();
      fast_first(e, begin, again);
      if (e.best_cost() < before) neighbor_search{}(e);
    }
    tree_search{}(e);
    e.go_to(environment::path(e.best()));
    greedy_search{}(e);
  }

 private:
  static constexpr void fast_first(environment& e, const environment::path& begin, bool sparing) {
    e.offer_sparing(!e.fits() || sparing);
    e.go_to(begin);
    detour_search{.fast_first = true}(e);
    e.offer_sparing(sparing);
  }
};

}  // namespace partita
