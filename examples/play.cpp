/// Searches for the partitioning of a training step with user-defined optimizers.
///
/// An optimizer needs only the environment's states, actions and costs. This program compares two:
/// one applies random actions, the other always the best action.
// ctest:
#include <iostream>

#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>

#include "models/transformer.hpp"

namespace {

namespace pt = partita;

/// Plays ten episodes of up to six random actions.
struct random_policy {
  void operator()(pt::environment& e) const {
    pt::search_detail::random_numbers draw(e.options().seed);
    for (int game = 0; game < 10; ++game) {
      e.go_to({});
      for (int i = 0; i < 6; ++i)
        if (e.step(draw.below(e.action_count()))) e.cost();
    }
  }
};
/// Repeats the action with the lowest resulting cost until no action lowers the cost.
struct greedy_policy {
  void operator()(pt::environment& e) const {
    double now = e.cost();
    for (int best = 0; best >= 0;) {
      best = -1;
      e.mark();
      for (int a = 0; a < e.action_count(); ++a) {
        const double cost = e.step(a) ? e.cost() : now;
        if (cost < now) now = cost, best = a;
        e.go_back();
      }
      if (best >= 0) e.step(best);
    }
  }
};
static_assert(pt::Searcher<random_policy> && pt::Searcher<greedy_policy>);

template <class Policy>
void play(const char* name, const pt::program& step) {
  pt::search_result r;
  const pt::basic_automatic<Policy> tactic({"B", "M"}, pt::a100_80, {.result = &r}, name);
  const auto p = pt::partition(step, pt::mesh{{"B", 4}, {"M", 2}}, pt::schedule(tactic));
  std::cout << name << ": " << r.evaluations << " evaluations; a step takes " << r.after * 1e3
            << " ms, " << r.before * 1e3 << " ms on one device; lower bound of any partitioning "
            << r.bound * 1e3 << " ms\n"
            << pt::print_specification(r) << "collectives: " << p.collectives.total() << '\n';
}

}  // namespace

int main() {
  const auto step =
      transformer::trace_training_step<transformer::dynamic>({2, 512, 8, 64, 2048, 1024, 256, 32});
  play<random_policy>("random", step);
  play<greedy_policy>("greedy", step);
}
