/// Monte Carlo tree search.
///
/// Source    Kocsis and Szepesvari, Bandit based Monte-Carlo planning, 2006, with priors as in
///           Rosin, 2011
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <partita/search/tried_action.hpp>

namespace partita {

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

}  // namespace partita
