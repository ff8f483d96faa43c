/// Searches that change one action of the best state.
///
/// Source    iterated local search: Lourenco, Martin, Stuetzle, Handbook of Metaheuristics, 2003
#pragma once

#include <cstddef>

#include <partita/search/greedy_search.hpp>

namespace partita {

/// Improves the best state: replaces one of the actions that led to it by another one, and
/// continues with a greedy search. Repeats this as long as it finds a better state.
///
/// Source    iterated local search: Lourenco, Martin, Stuetzle, Handbook of Metaheuristics, 2003
struct exchange_search {
  int others = 2;       ///< number of replacements tried per action
  double share = 0.25;  ///< of the remaining budget

  constexpr void operator()(environment& e) const {
    const double until = e.spent_part() + (1 - e.spent_part()) * share;
    for (bool better = true; better && e.spent_part() < until;) {
      const environment::path way = e.best();
      const double before = e.best_cost();
      for (std::size_t i = way.size(); i-- > 0 && e.spent_part() < until;)
        for (int n = 0; n < others; ++n) exchange(e, way, i, n);
      better = e.best_cost() < before * (1 - e.options().least_gain);
    }
  }

 private:
  /// Takes the n-th best of the other actions.
  static constexpr void exchange(environment& e, const environment::path& way, std::size_t i,
                                 int n) {
    environment::path left;
    for (std::size_t k = 0; k < way.size(); ++k)
      if (k != i) left.push_back(way[k]);
    e.go_to(left);
    e.mark();
    heap<search_detail::tried_action> tried = search_detail::try_all(e, e.cost());
    while (!tried.empty()) {
      const int action = tried.pop().action;
      if (action == way[i] || n-- > 0) continue;
      e.step(action);
      return greedy_search{.rounds = 1}(e);
    }
  }
};

/// Searches the neighbours of the best state, and of the best state that fits, if it is another
/// one. A neighbour omits one of the actions that led there, replaces it, or inserts another action
/// before it; the later actions follow, unless they are refused. The search moves on to each better
/// state, until no neighbour is better. (A greedy search only appends actions, so it never
/// reconsiders an early action in view of the later ones.) In each round, replacements that slice
/// the same value come first; the others are drawn at random.
///
/// Source    iterated local search: Lourenco, Martin, Stuetzle, Handbook of Metaheuristics, 2003
struct neighbor_search {
  double share = 0.125;  ///< of the remaining budget
  /// Number of random actions tried at one place before the next one; 0: none.
  int drawn = 16;

  constexpr void operator()(environment& e) const;
};

namespace search_detail {

/// Improves one sequence of actions.
class neighbor_walk {
 public:
  constexpr neighbor_walk(environment& e, const neighbor_search& options, double until)
      : e_(e), options_(options), until_(until), random_(e.options().seed) {}

  constexpr void run(const environment::path& way) {
    way_ = way;
    e_.go_to(way_);
    now_ = e_.cost();
    while (!over() && (try_akin() || (options_.drawn > 0 && try_drawn()))) {
    }
  }

 private:
  environment& e_;
  const neighbor_search& options_;
  double until_;
  random_numbers random_;
  environment::path way_, best_;
  double now_ = 0, least_ = 0;

  constexpr bool over() const { return e_.spent() || e_.spent_part() >= until_; }
  constexpr void stand_before(std::size_t place) {
    environment::path front;
    for (std::size_t k = 0; k < place; ++k) front.push_back(way_[k]);
    e_.go_to(front);
    e_.mark();
  }
  /// Evaluates the current state followed by the rest of the sequence.
  constexpr void look(std::size_t rest) {
    for (std::size_t k = rest; k < way_.size(); ++k) e_.step(way_[k]);
    if (const double cost = e_.cost(); cost < least_) {
      least_ = cost;
      best_ = e_.taken();
    }
  }
  /// Tries an action at the marked state: inserted before the action at `place`, and in its place.
  constexpr void look_at(int action, std::size_t place) {
    for (std::size_t rest = place; rest <= place + 1 && rest <= way_.size(); ++rest)
      if (e_.step(action)) {
        look(rest);
        e_.go_back();
      }
  }
  constexpr bool take_best() {
    if (!(least_ < now_ * (1 - e_.options().least_gain))) return false;
    now_ = least_;
    way_ = best_;
    return true;
  }
  constexpr bool offered(int action) const { return e_.offered(action) && e_.legal(action); }
  /// Omits one action, or replaces it by one that slices the same value differently.
  constexpr bool try_akin() {
    for (std::size_t place = way_.size(); place-- > 0 && !over();) {
      stand_before(place);
      least_ = now_;
      look(place + 1);
      e_.go_back();
      const value_id value = e_.action(way_[place]).members[0].value;
      for (int a = 0; a < e_.action_count(); ++a)
        if (a != way_[place] && e_.action(a).members[0].value == value && offered(a))
          look_at(a, place);
      if (take_best()) return true;
    }
    return false;
  }
  /// Tries all actions at all places, a few at each place in turn.
  constexpr bool try_drawn() {
    vec<vec<int>> open;
    for (std::size_t place = 0; place < way_.size(); ++place) open.push_back(shuffled());
    for (bool any = true; any;) {
      any = false;
      for (std::size_t place = 0; place < way_.size() && !over(); ++place) {
        if (open[place].empty()) continue;
        any = true;
        stand_before(place);
        least_ = now_;
        for (int n = 0; n < options_.drawn && !open[place].empty(); ++n) {
          const int a = open[place].back();
          open[place].pop_back();
          if (offered(a)) look_at(a, place);
        }
        if (take_best()) return true;
      }
      if (over()) return false;
    }
    return false;
  }
  constexpr vec<int> shuffled() {
    vec<int> all;
    for (int a = 0; a < e_.action_count(); ++a) all.push_back(a);
    for (int a = e_.action_count(); a > 1; --a) {
      const int other = random_.below(a), last = all[a - 1];
      all[a - 1] = all[other];
      all[other] = last;
    }
    return all;
  }
};

}  // namespace search_detail

constexpr void neighbor_search::operator()(environment& e) const {
  const double until = e.spent_part() + (1 - e.spent_part()) * share;
  vec<environment::path> ways;
  if (!e.fits() && !e.fitting().empty()) ways.push_back(e.fitting()[0].taken);
  ways.push_back(e.best());
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].empty()) continue;
    const double now = e.spent_part(), rest = static_cast<double>(ways.size() - i);
    search_detail::neighbor_walk(e, *this, now + (until - now) / rest).run(ways[i]);
  }
}

}  // namespace partita
