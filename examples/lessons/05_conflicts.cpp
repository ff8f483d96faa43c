/// Lesson 5: What happens if propagation has a choice? It does not guess: it records a conflict.
///
/// A conflict means that one axis could tile an op in two ways. A tactic settles the conflicts
/// between its own layouts by cost. Other conflicts stay: the op is then replicated along this
/// axis, and its operands are gathered. You learn to resolve a conflict by an earlier tactic, or by
/// `replicated`, and to name inner values with `tag`.
///
/// Output: the report with the conflict and two suggestions, then the programs of four schedules.
// ctest:
#include <iostream>

#include <partita/partita.hpp>

namespace pt = partita;

// Similarity scores of all rows of x with each other. `tag` names the inner value h for tactics.
constexpr auto scores = [](auto x, auto w) {
  const auto h = pt::tag("h", tanh(matmul(x, w)));
  return matmul(h, pt::transpose<1, 0>(h));
};
constexpr auto traced = [] {
  return pt::trace(scores, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
};
constexpr pt::mesh mesh{{"M", 2}};

// Sharding the rows of x shards the rows of h. The left factor of the last product then suggests to
// shard the rows of the result; the right factor, its columns. An axis can do only one of these.
constexpr auto rows = pt::manual("M", {{"x", 0}}, "rows");
constexpr auto by_cost = [] { return pt::partition(traced(), mesh, pt::schedule(rows)); };
static_assert(pt::check<by_cost>.conflicts == 0);

// An amalgamated tactic leaves its conflicts unsettled.
constexpr auto open = pt::amalgamated("open", rows);
constexpr auto unsettled = [] { return pt::partition(traced(), mesh, pt::schedule(open)); };
static_assert(pt::check<unsettled>.conflicts == 1);
static_assert(pt::check<unsettled>.input("x").local_shape == pt::shape{8, 8});

// First resolution: an earlier tactic decides the layout of the result, here by rows.
constexpr auto result = pt::manual("M", {{"result", 0}}, "result");
constexpr auto settled = [] { return pt::partition(traced(), mesh, pt::schedule(result, rows)); };
static_assert(pt::check<settled>.conflicts == 0);
static_assert(pt::check<settled>.output("result").local_shape == pt::shape{8, 16});

// Second resolution: place the tagged value `replicated`. h is computed by rows and gathered once,
// for both factors.
constexpr auto whole = pt::manual("M", {{"h", pt::replicated}}, "whole");
constexpr auto kept = [] { return pt::partition(traced(), mesh, pt::schedule(whole, rows)); };
static_assert(pt::check<kept>.conflicts == 0);

// The conflict costs a second all_gather.
static_assert(pt::check<unsettled>.collectives == pt::collectives{.all_gather = 2});
static_assert(pt::check<by_cost>.collectives == pt::collectives{.all_gather = 1});
static_assert(pt::check<settled>.collectives == pt::collectives{.all_gather = 1});
static_assert(pt::check<kept>.collectives == pt::collectives{.all_gather = 1});

int main() {
  // Look for "conflicts: 1": the report names the op, both choices, and tactics that would decide.
  std::cout << pt::report(unsettled()) << '\n';
  for (const auto& p : {unsettled(), by_cost(), settled(), kept()})
    std::cout << pt::print(p) << '\n';
  return 0;
}

// Read more: examples/guide/4_conflicts.md. Next lesson: 06_training_step.cpp
