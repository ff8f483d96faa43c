/// Lesson 4: How do several kinds of parallelism combine? A schedule applies tactics in order.
///
/// You learn to combine batch parallelism, Megatron's model parallelism and ZeRO-3, and to read the
/// three texts about a schedule: `report`, `explain` and `diff`.
///
/// Output: the effect of each tactic, the reason for each collective, and the changes by ZeRO-3.
// ctest:
#include <iostream>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(tanh(matmul(x, w1)), w2); };

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
// A tactic is a value. Its last argument is the name that reports use.
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");   // shards the batch
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");  // shards the hidden units
// Z3 shards the stored parameters along the batch axis, too; each is gathered before its use.
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

int main() {
  const pt::program f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                                  pt::input<float, 16, 8>("w2"));
  // Tactics apply in order, and no tactic undoes what an earlier one did: when Z3 shards w1 along
  // "B", BP has already sharded the batch along "B", so the product stays sharded by batch.
  // `extend` adds tactics to a program that is already partitioned.
  const pt::partitioned two = pt::partition(f, mesh, pt::schedule(BP, MP));
  const pt::partitioned three = pt::extend(two, pt::schedule(Z3));  // BP, MP, Z3

  // `report` lists, after each tactic, its actions, the collectives so far and the inputs that it
  // sharded; the last lines have the cost per device. MP shards w2, too, which it does not name.
  std::cout << pt::report(three) << '\n';

  // `explain` has one line per collective: axis, value, bytes, tactic and reason.
  std::cout << "why:\n" << pt::explain(three) << '\n';

  // `diff` compares two schedules. Z3 sends more bytes, for two all_gathers, and stores fewer.
  std::cout << "what Z3 changes:\n" << pt::diff(two, three);

  const auto says = [](const pt::text& t, std::string_view what) {
    return t.view().find(what) != std::string_view::npos;
  };
  const bool counted = three.collectives == pt::collectives{.all_gather = 2, .all_reduce = 1};
  const bool explained = says(pt::explain(three), "leaves a sum over \"M\"");
  const bool compared = says(pt::diff(two, three), "all_gather: 0 -> 2");
  return counted && explained && compared ? 0 : 1;
}

// Read more: examples/guide/3_collectives.md. Next lesson: 05_conflicts.cpp
