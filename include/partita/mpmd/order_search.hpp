/// Searches for an order of the calls of a pipeline within a memory limit.
#pragma once

#include <cstdint>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline_order.hpp>
#include <partita/mpmd/plain_pipeline.hpp>
#include <partita/mpmd/sequence.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/support/error.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Options of search_order.
struct order_search_options {
  double memory = 0;   ///< limit per mesh, relative to the memory of a stage's forward
  int changes = 2000;  ///< number of changes of the best order to try
  std::uint64_t seed = 0;
};

/// An order, its time and its memory.
struct found_order {
  order_table table;
  double span = 0;      ///< the maximum time of a mesh, from its first call to its last
  double bubble = 0;    ///< its part beyond the ideal time
  double memory = 0;    ///< the maximum memory of a mesh
  int evaluations = 0;  ///< number of orders that were played
  failure error;
};

namespace mpmd_detail {

/// Orders of one pipeline, compared by the maximum time of a mesh from its first call to its last.
class order_searcher {
 public:
  constexpr order_searcher(const pipeline_shape& s, const pipeline_order& places,
                           const pipeline_costs& costs, const order_search_options& options)
      : s_(s),
        places_(places),
        c_(costs),
        options_(options),
        g_(plain_pipeline(s, places, {.split = true})),
        finder_(g_) {
    best_.span = 1e300;
  }

  constexpr found_order run() {
    try_known(zb_h1);
    try_known(zb_h2);
    for (const double gap : {1.0, 0.01, 0.25, 0.5, 0.75})
      for (const double wait : {0.0, 0.1, 0.2, 0.4, 0.7})
        offer(list_scheduler(s_, places_, c_, options_.memory, {gap, wait}).run());
    for (const double gap : {1.0, 0.01, 0.25, 0.5, 0.75})
      offer(list_scheduler(s_, places_, c_, options_.memory,
                           {.gap = gap, .forward_first = true, .full_first = true})
                .run());
    if (best_.table.rows.empty()) {
      text memory;
      print_number(memory, options_.memory);
      best_.error.record("O012", "order: no order of ", s_.stages, " stages and ", s_.microbatches,
                         " microbatches on ", s_.meshes, " meshes was found within a memory of ",
                         memory, " activations; the minimum is ",
                         (s_.stages + s_.meshes - 1) / s_.meshes);
      return static_cast<found_order&&>(best_);
    }
    change();
    return static_cast<found_order&&>(best_);
  }

 private:
  pipeline_shape s_;
  const pipeline_order& places_;
  pipeline_costs c_;
  order_search_options options_;
  call_graph g_;
  call_finder finder_;
  found_order best_;

  constexpr void try_known(const pipeline_order& order) {
    failure error;
    order.fits(s_, error);
    if (error || places_.returns) return;
    const vec<int> q = sequence(g_, s_, order, error);
    order_table table;
    table.rows.resize(s_.meshes, {});
    for (const int call : q) table.rows[g_.calls[call].mesh].push_back(g_.calls[call]);
    offer(static_cast<order_table&&>(table));
  }
  constexpr double memory_of(const order_table& t) const {
    double most = 0;
    for (const auto& row : t.rows) {
      double used = 0;
      for (const auto& c : row) {
        used += c_.memory(c);
        if (used > most) most = used;
      }
    }
    return most;
  }
  constexpr void offer(order_table&& t) {
    if (t.rows.empty()) return;
    const double memory = memory_of(t);
    if (memory > options_.memory + 1e-9) return;
    failure error;
    const vec<int> q = sequence(g_, s_, t, error);
    if (error) return;
    const timeline played =
        play(g_, lists_with_messages(g_, q, messages_of(g_, q, c_.transfer)),
             [&](int call) { return c_.seconds(g_.calls[call]); }, {.capacity = unbounded});
    ++best_.evaluations;
    if (played.error || played.span() > best_.span) return;
    best_.table = static_cast<order_table&&>(t);
    best_.span = played.span();
    best_.bubble = played.bubble_of_span();
    best_.memory = memory;
  }
  /// Exchanges neighbours in the list of a mesh as long as no order gets slower.
  constexpr void change() {
    std::uint64_t state = options_.seed;
    const auto random = [&](std::size_t below) {  // splitmix64
      std::uint64_t z = state += 0x9e3779b97f4a7c15u;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      return static_cast<std::size_t>((z ^ (z >> 31)) % below);
    };
    for (int i = 0; i < options_.changes && best_.bubble > 1e-12; ++i) {
      order_table t = best_.table;
      auto& row = t.rows[random(t.rows.size())];
      if (row.size() < 2) continue;
      const std::size_t at = random(row.size() - 1), to = at + 1 + random(4);
      if (to >= row.size()) continue;
      const fragment_call moved = row[at];
      for (std::size_t k = at; k < to; ++k) row[k] = row[k + 1];
      row[to] = moved;
      offer(static_cast<order_table&&>(t));
    }
  }
};

}  // namespace mpmd_detail

/// Searches for an order of a pipeline with split backwards within a memory limit per mesh.
/// Candidates are list schedules by several rules, zb_h1 and zb_h2 if they fit, and local changes
/// of the best of them. `places` determines the mesh of each stage (zb_h1: round robin, zb_v: V
/// shape).
///
/// Errors    O001 nothing to order, O012 memory is too small for any order that was tried
/// Source    Qi et al., arXiv:2401.10241, section 3
constexpr found_order search_order(const pipeline_shape& s, const pipeline_costs& costs,
                                   const order_search_options& options,
                                   const pipeline_order& places = zb_h1) {
  if (s.meshes < 1 || s.stages < 1 || s.microbatches < 1) {
    found_order none;
    failure& error = none.error;
    error.record("O001", "pipeline: ", s.stages, " stages, ", s.meshes, " meshes, ", s.microbatches,
                 " microbatches; at least one of each is needed");
    return none;
  }
  return mpmd_detail::order_searcher(s, places, costs, options).run();
}

}  // namespace partita
