/// Tries actions of an environment, in order or at random.
#pragma once

#include <cstdint>

#include <partita/search/environment.hpp>
#include <partita/support/heap.hpp>

namespace partita {

namespace search_detail {

/// A generator of pseudorandom numbers.
///
/// Source    splitmix64: Steele, Lea, Flood, OOPSLA 2014
class random_numbers {
 public:
  constexpr explicit random_numbers(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  constexpr int below(int n) {
    return static_cast<int>(next() % static_cast<std::uint64_t>(n > 0 ? n : 1));
  }
  /// Returns a number from 0 to below 1.
  constexpr double part() { return static_cast<double>(next() >> 11) / 9007199254740992.0; }

 private:
  std::uint64_t state_;
};

/// An action that was tried, and the factor by which it changes the cost.
struct tried_action {
  double ratio = 0;
  int action = -1;
  int at = 0;              ///< number of actions that had been taken before it
  std::uint64_t hash = 0;  ///< of the resulting state, if it was requested
  constexpr bool operator<(const tried_action& b) const {
    return ratio < b.ratio || (ratio == b.ratio && action < b.action);
  }
};
/// Tries an action in the marked state, whose cost is `now`, and returns to that state.
constexpr double try_action(environment& e, int a, double now) {
  const double cost = e.step(a) ? e.cost() : environment::hopeless;
  e.go_back();
  return cost / now;
}
/// Tries all legal actions; if several lead to the same state, only the first one is listed.
constexpr heap<tried_action> try_all(environment& e, double now) {
  heap<tried_action> tried;
  vec<std::uint64_t> seen;
  place_table known;
  for (int a = 0; a < e.action_count() && !e.spent(); ++a) {
    if (!e.offered(a) || !e.legal(a) || !e.step(a)) continue;
    const std::uint64_t h = e.hash();
    if (known.find(hash_of(h), [&](int i) { return seen[i] == h; }) < 0) {
      seen.push_back(h);
      known.insert(static_cast<int>(seen.size()) - 1, [&](int i) { return hash_of(seen[i]); });
      tried.push({e.cost() / now, a, 0});
    }
    e.go_back();
  }
  return tried;
}

}  // namespace search_detail

}  // namespace partita
