/// Orders the calls of a pipeline: first by data dependences, then by the user's order.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include <partita/mpmd/fragment_call.hpp>
#include <partita/mpmd/pipeline_order.hpp>
#include <partita/support/error.hpp>
#include <partita/support/heap.hpp>
#include <partita/support/merge_sort.hpp>
#include <partita/support/span.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace mpmd_detail {

/// A graph of calls, nodes between groups of calls, and edges for dependences.
///
/// Work      linear in calls and edges, times the logarithm of the calls
class sequencer {
 public:
  constexpr explicit sequencer(const call_graph& g) : g_(g), edges_(g.edges) { nodes_ = g.count(); }
  /// Makes call b wait for call a because the order requires it.
  constexpr void wait(int a, int b) { edges_.push_back({a, b}); }
  /// Makes all of `second` wait for all of `first`.
  constexpr void wait(span<const int> first, span<const int> second) {
    if (first.size() == 1 && second.size() == 1) return wait(first[0], second[0]);
    for (const int a : first) wait(a, nodes_);
    for (const int b : second) wait(nodes_, b);
    ++nodes_;
  }

  /// A valid order of execution: of the ready calls, the first in program order runs next.
  ///
  /// Errors    O006 the order contradicts the data dependences
  constexpr vec<int> run(failure& error) {
    group();
    vec<int> waiting(nodes_, 0), out;
    for (const auto& e : edges_) ++waiting[e.to];
    heap<int> ready;  // nodes between groups come first because they are not calls
    const auto rank = [&](int node) { return node < g_.count() ? node : node - nodes_; };
    for (int i = 0; i < nodes_; ++i)
      if (waiting[i] == 0) ready.push(rank(i));
    int done = 0;
    while (!ready.empty()) {
      const int least = ready.pop(), node = least < 0 ? least + nodes_ : least;
      ++done;
      if (node < g_.count()) out.push_back(node);
      for (int k = begin_[node]; k < begin_[node + 1]; ++k)
        if (--waiting[after_[k]] == 0) ready.push(rank(after_[k]));
    }
    if (done < nodes_) report_cycle(waiting, error);
    return out;
  }

 private:
  const call_graph& g_;
  vec<call_edge> edges_;
  int nodes_;
  vec<int> begin_, after_;  ///< successors in compressed rows

  constexpr void group() {
    begin_.assign(nodes_ + 1, 0);
    after_.resize(edges_.size(), 0);
    for (const auto& e : edges_) ++begin_[e.from + 1];
    for (int i = 0; i < nodes_; ++i) begin_[i + 1] += begin_[i];
    vec<int> next = begin_;
    for (const auto& e : edges_) after_[next[e.from]++] = e.to;
  }
  /// Reports a cycle: follows a waiting node backward until a node repeats.
  constexpr void report_cycle(const vec<int>& waiting, failure& error) const {
    vec<int> before(nodes_, -1), seen(nodes_, 0);  // numbers of edges
    for (int e = 0; e < static_cast<int>(edges_.size()); ++e)
      if (waiting[edges_[e].from] > 0 && waiting[edges_[e].to] > 0) before[edges_[e].to] = e;
    int at = 0;
    while (waiting[at] == 0 || before[at] < 0) ++at;
    for (; seen[at] == 0; at = edges_[before[at]].from) seen[at] = 1;
    while (at >= g_.count()) at = edges_[before[at]].from;
    const bool by_data = any_data(at, before);
    error.record("O006", "order: it contradicts ",
                 by_data ? "the flow of data: " : "itself: ", cycle_text(at, before),
                 by_data ? "; move one of them to another place in the order"
                         : "; of two calls, only one can be before the other");
  }
  /// True if one edge of a cycle is a data dependence.
  constexpr bool any_data(int begin, const vec<int>& before) const {
    int at = begin;
    do {
      if (before[at] < static_cast<int>(g_.edges.size())) return true;
      at = edges_[before[at]].from;
    } while (at != begin);
    return false;
  }
  constexpr text cycle_text(int begin, const vec<int>& before) const {
    text out = g_.describe(begin);
    int at = begin;
    for (int shown = 1;; ++shown) {
      const bool data = before[at] < static_cast<int>(g_.edges.size());
      do at = edges_[before[at]].from;
      while (at >= g_.count());
      out << (shown == 1 ? " waits for " : ", which waits for ")
          << (data ? "the result of " : "its turn after ");
      out << g_.describe(at);
      if (at == begin) return out;
      if (shown == most_shown) return out << ", and so on back to the first";
    }
  }
  static constexpr int most_shown = 8;
};

/// The calls of each mesh that an order concerns, in program order.
constexpr vec<vec<int>> ordered_calls(const call_graph& g) {
  vec<vec<int>> lists(g.meshes, {});
  for (int i = 0; i < g.count(); ++i)
    if (g.calls[i].ordered()) lists[g.calls[i].mesh].push_back(i);
  return lists;
}

}  // namespace mpmd_detail

/// A key by which calls are compared: `key(call)` or `key(call, shape)`, of any type with `<`, for
/// example std::tuple.
template <class F>
concept OrderKey = (std::invocable<const F&, const fragment_call&> ||
                    std::invocable<const F&, const fragment_call&, const pipeline_shape&>);
/// A comparator: true if the first of two calls of one mesh runs before the second.
template <class F>
concept OrderComparator = requires(const F& f, const fragment_call& c) {
  { f(c, c) } -> std::same_as<bool>;
};

namespace mpmd_detail {

template <class F>
constexpr auto key_of(const F& f, const fragment_call& c, const pipeline_shape& s) {
  if constexpr (std::invocable<const F&, const fragment_call&, const pipeline_shape&>)
    return f(c, s);
  else
    return f(c);
}

/// Calls with equal keys form a group; each group waits for the one before.
template <class F>
constexpr void wait_by_key(sequencer& to, const call_graph& g, const pipeline_shape& s,
                           const F& f) {
  using key = decltype(key_of(f, g.calls[0], s));
  vec<key> keys;
  for (const auto& c : g.calls) keys.push_back(c.ordered() ? key_of(f, c, s) : key());
  for (vec<int>& list : ordered_calls(g)) {
    merge_sort(list, [&](int a, int b) { return keys[a] < keys[b]; });
    const int n = static_cast<int>(list.size());
    for (int before = 0, begin = 0, end = 0; begin < n; before = begin, begin = end) {
      for (end = begin + 1; end < n && !(keys[list[begin]] < keys[list[end]]);) ++end;
      const span<const int> all(list);
      if (begin > 0) to.wait(all.subspan(before, begin - before), all.subspan(begin, end - begin));
    }
  }
}

/// Adds the edges of a comparator. It is called for each pair, since it may leave most of the order
/// open and cannot be used for sorting. Quadratic in the calls of a mesh; a key is not.
template <class F>
constexpr void wait_by_comparator(sequencer& to, const call_graph& g, const F& before) {
  for (const vec<int>& list : ordered_calls(g))
    for (const int a : list)
      for (const int b : list)
        if (a != b && before(g.calls[a], g.calls[b])) to.wait(a, b);
}

/// Finds calls by stage, kind and microbatch.
class call_finder {
 public:
  constexpr explicit call_finder(const call_graph& g) : g_(g) {
    stage_of_mesh_.assign(static_cast<std::size_t>(g.meshes), -1);
    for (int i = 0; i < g.count(); ++i) {
      if (!g.calls[i].ordered()) continue;
      sorted_.push_back(i);
      stage_of_mesh_[g.calls[i].mesh] = g.calls[i].stage;
    }
    merge_sort(sorted_, [&](int a, int b) { return less(g.calls[a], g.calls[b]); });
  }
  /// The number of the call, or -1.
  constexpr int find(const fragment_call& c) const {
    std::size_t low = 0, high = sorted_.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (less(g_.calls[sorted_[middle]], c))
        low = middle + 1;
      else
        high = middle;
    }
    return low < sorted_.size() && g_.calls[sorted_[low]] == c ? sorted_[low] : -1;
  }

  /// The number of a call, or -1, where the stage may be unset if its mesh has one, and the part of
  /// a split backward may be unset: the first part.
  constexpr int find_open(fragment_call c) const {
    if (c.stage < 0 && !g_.with_stage) c.stage = stage_of_mesh_[c.mesh];
    const int call = find(c);
    if (call >= 0 || c.part != fragment_part::whole) return call;
    c.part = fragment_part::input;
    return find(c);
  }

 private:
  const call_graph& g_;
  vec<int> sorted_;
  vec<int> stage_of_mesh_;

  static constexpr bool less(const fragment_call& a, const fragment_call& b) {
    if (a.mesh != b.mesh) return a.mesh < b.mesh;
    if (a.stage != b.stage) return a.stage < b.stage;
    if (a.microbatch != b.microbatch) return a.microbatch < b.microbatch;
    if (a.transposed != b.transposed) return a.transposed < b.transposed;
    return a.part < b.part;
  }
};

/// The calls of a mesh in an order: `F0.1, F1.1 and 6 more`.
constexpr text calls_text(const call_graph& g, int mesh) {
  constexpr int most = 8;
  text out;
  int count = 0;
  for (const fragment_call& c : g.calls) {
    if (c.mesh != mesh || !c.ordered()) continue;
    if (count++ < most) out << (count == 1 ? "" : ", ") << call_text(c, true);
  }
  if (count == 0) out << "nothing in an order";
  if (count > most) out << " and " << count - most << " more";
  return out;
}

constexpr void wait_by_table(sequencer& to, const call_graph& g, const order_table& table,
                             failure& error) {
  error.record(table.error);
  if (static_cast<int>(table.rows.size()) != g.meshes)
    error.record("O004", "order: a table of ", table.rows.size(), " rows for ", g.meshes,
                 " meshes; each mesh needs one");
  if (error) return;
  const call_finder finder(g);
  vec<char> listed(g.calls.size(), 0);
  for (int mesh = 0; mesh < static_cast<int>(table.rows.size()); ++mesh) {
    int before = -1;
    for (fragment_call c : table.rows[mesh]) {
      c.mesh = mesh;
      const int call = finder.find_open(c);
      if (call < 0)
        return error.record("O005", "order: row ", mesh, " has ", call_text(c, c.stage >= 0),
                            ", which ", g.mesh_text(mesh), " does not run; it runs ",
                            calls_text(g, mesh));
      if (listed[call]++ > 0)
        return error.record("O005", "order: row ", mesh, " has ", call_text(c, true),
                            " twice; leave one out");
      if (before >= 0) to.wait(before, call);
      before = call;
    }
  }
  for (int i = 0; i < g.count(); ++i)
    if (g.calls[i].ordered() && listed[i] == 0)
      return error.record("O004", "order: ", g.describe(i),
                          " is missing in its row; each call appears there once");
}

/// The rows of an order's table for the existing calls. (Without derivatives, the forward calls.)
constexpr order_table table_of(const pipeline_order& order, const call_graph& g,
                               const pipeline_shape& s) {
  order_table all, out;
  order.table(s, all);
  out.rows.resize(g.meshes, {});
  const call_finder finder(g);
  for (int mesh = 0; mesh < g.meshes; ++mesh) {
    const int rank = g.rank_of(mesh);
    if (rank < 0) continue;  // it has no stage
    for (fragment_call c : all.rows[rank]) {
      c.mesh = mesh;
      if (finder.find(c) >= 0) out.rows[mesh].push_back(c);
    }
  }
  return out;
}

}  // namespace mpmd_detail

/// The numbers of all calls in the order in which they run. Data dependences come first, then the
/// order (a pipeline_order, a key, a comparator or a table), then program order. Calls outside of
/// microbatches follow the data dependences only.
///
/// Errors    O001 no mesh, stage or microbatch; O002, O003 the shape does not fit the order; O004 a
///           call is missing in a table; O005 a table has a wrong call, or one twice; O006 the
///           order contradicts the data dependences: names the cycle
template <class Order>
constexpr vec<int> sequence(const call_graph& g, const pipeline_shape& s, const Order& order,
                            failure& error) {
  if (s.meshes < 1 || s.stages < 1 || s.microbatches < 1)
    error.record("O001", "pipeline: ", s.stages, " stages, ", s.meshes, " meshes, ", s.microbatches,
                 " microbatches; at least one of each is needed");
  if (error) return {};
  mpmd_detail::sequencer to(g);
  if constexpr (std::same_as<Order, pipeline_order>) {
    order.fits(s, error);
    if (error) return {};
    const auto by_rank = [&](fragment_call c, const pipeline_shape& shape) {
      c.mesh = g.rank_of(c.mesh);
      return order.key(c, shape);
    };
    if (order.key != nullptr)
      mpmd_detail::wait_by_key(to, g, s, by_rank);
    else
      mpmd_detail::wait_by_table(to, g, mpmd_detail::table_of(order, g, s), error);
  } else if constexpr (std::same_as<Order, order_table>) {
    mpmd_detail::wait_by_table(to, g, order, error);
  } else if constexpr (OrderComparator<Order>) {
    mpmd_detail::wait_by_comparator(to, g, order);
  } else {
    static_assert(OrderKey<Order>, "an order is a pipeline_order, a key, a comparator or a table");
    mpmd_detail::wait_by_key(to, g, s, order);
  }
  if (error) return {};
  return to.run(error);
}

/// The calls of each mesh, in its order, from the order of all calls.
constexpr vec<vec<int>> lists_by_mesh(const call_graph& g, span<const int> order) {
  vec<vec<int>> lists(g.meshes, {});
  for (const int call : order) lists[g.calls[call].mesh].push_back(call);
  return lists;
}

/// The list of a mesh as text: `F0 F1 B0 ...`.
constexpr text list_text(const call_graph& g, const vec<int>& list) {
  text out;
  for (std::size_t i = 0; i < list.size(); ++i)
    out << (i > 0 ? " " : "") << call_text(g.calls[list[i]], g.with_stage);
  return out;
}

}  // namespace partita
