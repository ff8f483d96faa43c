/// Random orders of calls.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <partita/mpmd/pipeline_order.hpp>

/// Returns rows of calls in an order that follows the data flow. Each step draws one of the calls
/// whose operands are available. `random.in(a, b)` returns a number from a to b.
template <class Random>
partita::order_table random_table(const partita::call_graph& g, Random& random) {
  std::vector<int> waiting(g.calls.size(), 0), ready;
  std::vector<std::vector<int>> after(g.calls.size());
  for (const auto& e : g.edges) {
    ++waiting[static_cast<std::size_t>(e.to)];
    after[static_cast<std::size_t>(e.from)].push_back(e.to);
  }
  for (int c = 0; c < g.count(); ++c)
    if (waiting[static_cast<std::size_t>(c)] == 0) ready.push_back(c);
  partita::order_table out;
  out.rows.resize(g.meshes, {});
  while (!ready.empty()) {
    std::swap(
        ready[static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(ready.size()) - 1))],
        ready.back());
    const int c = ready.back();
    ready.pop_back();
    if (g.calls[c].ordered()) out.rows[g.calls[c].mesh].push_back(g.calls[c]);
    for (const int next : after[static_cast<std::size_t>(c)])
      if (--waiting[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
  }
  return out;
}
