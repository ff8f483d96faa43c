/// Lesson 4: schedules. Batch parallelism, Megatron's model parallelism and ZeRO-3, tactic
/// after tactic.
///
/// Learnt: tactics are values and are put together in a schedule; no later one undoes what an
/// earlier one did; `report` says what each did, `explain` why each collective is there, `diff`
/// what a further tactic changes.
///
/// Printed: these three texts.
// ctest:
#include <iostream>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(tanh(matmul(x, w1)), w2); };

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");   // each device has a part of the batch
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");  // and a part of the hidden units
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}},
                               "Z3");  // parameters lie in pieces, gathered where needed

int main() {
  const pt::program f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                                  pt::input<float, 16, 8>("w2"));
  const pt::partitioned two = pt::partition(f, mesh, pt::schedule(BP, MP));
  const pt::partitioned three = pt::extend(two, pt::schedule(Z3));  // BP, MP, Z3

  std::cout << pt::report(three) << '\n';
  std::cout << "why:\n" << pt::explain(three) << '\n';
  std::cout << "what Z3 changes:\n" << pt::diff(two, three);

  const auto says = [](const pt::text& t, std::string_view what) {
    return t.view().find(what) != std::string_view::npos;
  };
  const bool counted = three.collectives == pt::collectives{.all_gather = 2, .all_reduce = 1};
  const bool explained = says(pt::explain(three), "leaves a sum over \"M\"");
  const bool compared = says(pt::diff(two, three), "all_gather: 0 -> 2");
  return counted && explained && compared ? 0 : 1;
}
