/// Searchers, which play an environment.
///
/// Source    lazy greedy: Minoux, 1978; detours: Harvey and Ginsberg, Limited discrepancy search,
///           1995; tree search: Kocsis and Szepesvari, Bandit based Monte-Carlo planning, 2006,
///           with priors as in Rosin, 2011
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <partita/search/environment.hpp>
#include <partita/support/heap.hpp>

namespace partita {

/// A function that steps through an environment and requests costs; the environment keeps the best
/// state. It must end when the environment's budget is spent.
template <class S>
concept Searcher = requires(const S& s, environment& e) {
  s(e);
};

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

/// Monte Carlo tree search, with costs instead of the outcomes of games. A node is a state. A walk
/// descends to a node whose actions were not tried yet. At each node it chooses the most promising
/// child: one with the lowest costs so far, or one that was seldom visited and is itself cheap. At
/// the end it tries the cheapest actions of the root and some random ones, and adds the cheapest
/// results as children. (All tried states differ from the node by one action, so their costs are
/// cheap to compute.)
struct tree_search {
  int width = 48;     ///< number of actions tried: the cheapest ones at the root
  int drawn = 8;      ///< number of random actions tried
  int children = 12;  ///< maximum number per node
  double exploration = 0.3;

  constexpr void operator()(environment& e) const;
};

namespace search_detail {

class tree_walks {
 public:
  constexpr tree_walks(environment& e, const tree_search& options)
      : e_(e), options_(options), random_(e.options().seed) {}
  constexpr void run() {
    e_.go_to({});
    e_.mark();
    heap<tried_action> order = try_all(e_, e_.cost());
    for (int i = 0; i < options_.width && !order.empty(); ++i)
      priors_.push_back(order.pop().action);
    tree_.push_back({});
    tree_.back().hash = e_.hash();
    while (!priors_.empty() && !e_.spent() && tree_[0].open) walk();
  }

 private:
  /// Maximum number of loops in the steps that are stored. Walks repeat stored steps quickly.
  static constexpr std::size_t most_kept = std::size_t{1} << 22;

  struct node {
    int action = -1, parent = -1;
    int first_child = 0, children = 0;  ///< ordered by cost
    int visits = 0;
    int kept = -1;                         ///< index in `kept_` of the step that leads to it, or -1
    int refused = -1;                      ///< index in `refused_`, once it was expanded
    bool open = true;                      ///< true if a walk may find unexpanded nodes below
    std::uint64_t hash = 0;                ///< of its state
    double cost = environment::hopeless;   ///< its own cost
    double least = environment::hopeless;  ///< the lowest cost below it
  };

  environment& e_;
  const tree_search& options_;
  random_numbers random_;
  vec<int> priors_;  ///< actions, the best first
  vec<node> tree_;
  vec<environment::taken_step> kept_;
  std::size_t loops_kept_ = 0;
  vec<vec<char>> refused_;       ///< of an expanded node, by prior: true if the action was refused
  vec<std::uint64_t> expanded_;  ///< hashes of expanded states
  place_table known_;

  constexpr void walk() {
    int at = 0;
    while (tree_[at].children > 0) at = choose(at);
    if (first_seen(tree_[at].hash)) expand(at);
    double least = environment::hopeless;
    for (int c = 0; c < tree_[at].children; ++c) {
      const double cost = tree_[tree_[at].first_child + c].cost;
      if (cost < least) least = cost;
    }
    for (; at >= 0; at = tree_[at].parent) {
      node& n = tree_[at];
      ++n.visits;
      if (least < n.least) n.least = least;
      n.open = false;
      for (int c = 0; c < n.children; ++c) n.open = n.open || tree_[n.first_child + c].open;
    }
  }
  constexpr int choose(int at) const {
    const node& n = tree_[at];
    int chosen = -1;
    double most = -1;
    const double all = root_of(static_cast<double>(n.visits));
    for (int c = 0; c < n.children; ++c) {
      const node& child = tree_[n.first_child + c];
      if (!child.open) continue;
      const double least = child.least < child.cost ? child.least : child.cost;
      const double hope =
          e_.best_cost() / least +
          options_.exploration * all / static_cast<double>((1 + child.visits) * (1 + c));
      if (hope <= most) continue;
      most = hope;
      chosen = n.first_child + c;
    }
    return chosen;
  }
  /// Returns the square root by Newton's method, which also works in constant evaluation.
  static constexpr double root_of(double x) {
    double y = x > 1 ? x : 1;
    for (int i = 0; i < 64; ++i) {
      const double next = (y + x / y) / 2;
      if (!(next < y)) break;
      y = next;
    }
    return y;
  }
  /// Executes the steps that lead to a node.
  constexpr void go_to(int to) {
    vec<int> path;
    for (; tree_[to].parent >= 0; to = tree_[to].parent) path.push_back(to);
    e_.go_to({});
    for (std::size_t i = path.size(); i-- > 0;) take(tree_[path[i]]);
  }
  constexpr void take(node& n) {
    if (n.kept >= 0) return e_.redo(kept_[n.kept]);
    e_.step(n.action);
    if (loops_kept_ >= most_kept) return;
    environment::taken_step last;
    if (!e_.last_step(last)) return;
    n.kept = static_cast<int>(kept_.size());
    loops_kept_ += last.change.loops.size();
    kept_.push_back(last);
  }
  /// True if the state was not expanded before; several paths may lead to one state.
  constexpr bool first_seen(std::uint64_t state) {
    if (known_.find(hash_of(state), [&](int i) { return expanded_[i] == state; }) >= 0)
      return false;
    expanded_.push_back(state);
    known_.insert(static_cast<int>(expanded_.size()) - 1,
                  [&](int i) { return hash_of(expanded_[i]); });
    return true;
  }
  constexpr void expand(int at) {
    go_to(at);
    e_.mark();
    heap<tried_action> tried;
    const auto add = [&](int a) {
      if (e_.spent() || !e_.step(a)) return false;
      tried.push({e_.cost(), a, 0, e_.hash()});
      e_.go_back();
      return true;
    };
    // No action undoes an earlier one, so a refused action stays refused.
    vec<char> refused(priors_.size(), 0);
    if (const int up = tree_[at].parent; up >= 0) refused = refused_[tree_[up].refused];
    for (std::size_t i = 0; i < priors_.size(); ++i)
      if (refused[i] == 0) refused[i] = !add(priors_[i]);
    tree_[at].refused = static_cast<int>(refused_.size());
    refused_.push_back(refused);
    for (int i = 0; i < options_.drawn; ++i) add(random_.below(e_.action_count()));
    tree_[at].first_child = static_cast<int>(tree_.size());
    while (!tried.empty() && tree_[at].children < options_.children) {
      const tried_action t = tried.pop();
      ++tree_[at].children;
      tree_.push_back({t.action, at});
      tree_.back().cost = t.ratio;
      tree_.back().hash = t.hash;
    }
  }
};

}  // namespace search_detail

constexpr void tree_search::operator()(environment& e) const {
  search_detail::tree_walks(e, *this).run();
}

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
