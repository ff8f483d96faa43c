/// Lesson 5: conflicts, and how to settle them.
///
/// Learnt: where an op could be sliced along one axis in two ways, propagation does not guess:
/// it leaves a conflict, and the values are gathered. The order of tactics settles it, or
/// `replicated`; inner values get names by `tag`.
///
/// Printed: the report with the conflict and what would settle it; then the collectives of
/// three schedules.
// ctest:
#include <iostream>

#include <partita/partita.hpp>

namespace pt = partita;

// Scores of all rows with all rows, and their sums over columns.
constexpr auto scores = [](auto x, auto w) {
  const auto h = pt::tag("h", tanh(matmul(x, w)));
  return matmul(h, pt::transpose<1, 0>(h));
};
constexpr auto traced = [] {
  return pt::trace(scores, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
};
constexpr pt::mesh mesh{{"M", 2}};

// Rows of x make rows of h, and so rows of the result by its left factor, but columns by its right
// one: a conflict.
constexpr auto rows = pt::manual("M", {{"x", 0}}, "rows");
constexpr auto unsettled = [] { return pt::partition(traced(), mesh, pt::schedule(rows)); };
static_assert(pt::check<unsettled>.conflicts == 1);
static_assert(pt::check<unsettled>.input("x").local_shape == pt::shape{8, 8});

// Settled by an earlier tactic that says how the result is to lie.
constexpr auto result = pt::manual("M", {{"result", 0}}, "result");
constexpr auto settled = [] { return pt::partition(traced(), mesh, pt::schedule(result, rows)); };
static_assert(pt::check<settled>.conflicts == 0);
static_assert(pt::check<settled>.output("result").local_shape == pt::shape{8, 16});

// Or by a name for the inner value: made in rows, it is then gathered, once for both factors.
constexpr auto whole = pt::manual("M", {{"h", pt::replicated}}, "whole");
constexpr auto kept = [] { return pt::partition(traced(), mesh, pt::schedule(whole, rows)); };
static_assert(pt::check<kept>.conflicts == 0);

// The price: both factors gathered, or one.
static_assert(pt::check<unsettled>.collectives == pt::collectives{.all_gather = 2});
static_assert(pt::check<settled>.collectives == pt::collectives{.all_gather = 1});
static_assert(pt::check<kept>.collectives == pt::collectives{.all_gather = 1});

int main() {
  std::cout << pt::report(unsettled()) << '\n';
  for (const auto& p : {unsettled(), settled(), kept()}) std::cout << pt::print(p) << '\n';
  return 0;
}
