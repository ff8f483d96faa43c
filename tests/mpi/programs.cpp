// Programs of every kind over MPI: each rank computes the bits of the emulator. Meshes have 4
// devices (8 with 8 ranks), and the number of ranks equals or divides it. Pipelines have one device
// per rank.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <partita/mpi.hpp>
#include <partita/partita.hpp>

#include "../backend_programs.hpp"

using namespace backend_programs;

namespace {

bool same_bits(const pt::array& a, const pt::array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.type().bytes())) == 0;
}

/// Runs programs on all ranks, and counts the programs for which a rank has a wrong result.
class test_run {
 public:
  explicit test_run(const pt::mpi::world& w) : world_(w) {}
  const pt::mpi::world& world() const { return world_; }
  int ranks() const { return world_.ranks(); }
  int differing() const { return differing_; }

  /// Prints one line for all ranks; `problem` is that of this rank, or "".
  void verdict(std::string_view name, const std::string& problem) {
    int mine = problem.empty() ? ranks() : world_.rank(), first = 0;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, world_.communicator());
    if (first == world_.rank())
      std::cout << "DIFFERS " << name << " on rank " << first << ": " << problem << std::endl;
    if (first == ranks() && world_.first()) std::cout << "ok " << name << std::endl;
    differing_ += first < ranks();
  }
  /// Runs `steps` steps; after the first, inputs with a next value use it.
  template <class Partitioned>
  void check(std::string_view name, const Partitioned& p, std::vector<pt::array> x, int steps = 1,
             const pt::run_options& options = {}) {
    const pt::mpi::executable run(p, world_, {.run = options, .deadline = 60});
    const pt::vec<int> inputs = pt::reused_inputs(p.source);
    std::string problem;
    pt::sharded_state state;
    for (int step = 0; step < steps; ++step) {
      std::vector<pt::array> others;  // inputs that have no next value
      for (int i = 0; i < p.source.input_count(); ++i)
        if (std::find(inputs.begin(), inputs.end(), i) == inputs.end())
          others.push_back(x[static_cast<std::size_t>(i)]);
      state = step == 0 ? run(x) : run(state.next(), others);
      const pt::results want = pt::emulate(p, x);
      for (int o = 0; o < want.size(); ++o) {
        const auto at = static_cast<std::size_t>(o);
        if (!same_bits(run.whole(state.values()[at]), want[o]))
          problem += "output " + want.names()[at] + " of step " + std::to_string(step) + "; ";
        if (inputs[o] >= 0) x[static_cast<std::size_t>(inputs[o])] = want[o];
      }
    }
    verdict(name, problem);
  }
  template <class Partitioned>
  void check(std::string_view name, const Partitioned& p, int steps = 1) {
    check(name, p, arguments(p.source), steps);
  }

 private:
  const pt::mpi::world& world_;
  int differing_ = 0;
};

// ---- Guarantees ---------------------------------------------------------------------------------

/// A state that several executables share, with other layouts and on other meshes.
void check_shared_state(test_run& t) {
  const auto traced = [](auto f) {
    return trace([&](auto x) { return pt::output("x", f(x)); }, input<float, 16, 16>("x"));
  };
  const auto f = traced([](auto x) { return x * 0.7; }), g = traced([](auto x) { return x + 0.3; });
  const auto rows = schedule(manual("S", {{"x", 0}}));
  const auto a = pt::partition(f, row(t.ranks()), rows);
  const auto x = arguments(f);
  const pt::mpi::executable first(a, t.world(), {.deadline = 60});
  const pt::sharded_state state = first(x).next();
  const pt::array want = pt::evaluate(g, pt::evaluate(f, x).only()).only();
  std::string problem;
  const auto check = [&](const char* name, const pt::partitioned& p) {
    const pt::mpi::executable run(p, t.world(), {.deadline = 60});
    const pt::sharded_state out = run(state);
    if (!same_bits(run.whole(out["x"]), want)) problem += name;
    if (!same_bits(first.whole(out["x"]), want)) problem += std::string("whole: ") + name;
  };
  check("another layout; ", pt::partition(g, row(t.ranks()), schedule(manual("S", {{"x", 1}}))));
  check("a part of the axis; ",
        pt::partition(g, row(t.ranks()), schedule(manual("S:(1)2", {{"x", 1}}))));
  check("another mesh; ", pt::partition(g, grid(t.ranks()), schedule(manual("M", {{"x", 0}}))));
  check("more devices; ", pt::partition(g, pt::mesh{{"S", 16}}, rows));
  t.verdict("a state of another executable", problem);
}
/// Each rank is asked for its own shards only, and for each once.
void check_placing(test_run& t) {
  const auto p = mlp(t.ranks());
  const auto x = arguments(p.source);
  const pt::mpi::executable run(p, t.world(), {.deadline = 60});
  std::string problem;
  std::vector<int> asked(x.size());
  const auto shard = [&](const pt::shard_request& r) {
    const int i = r.name == "x" ? 0 : r.name == "w1" ? 1 : 2;
    const auto at = static_cast<std::size_t>(i);
    ++asked[at];
    if (r.local.shape != p.input(r.name).local_shape || r.global != p.source.input_type(i))
      problem += "wrong request; ";
    pt::array a(r.local);
    for (std::int64_t m = 0; m < r.local.shape[0]; ++m)
      for (std::int64_t n = 0; n < r.local.shape[1]; ++n)
        a.mutable_data<float>()[m * r.local.shape[1] + n] =
            x[at].data<float>()[(r.begin.at[0] + m) * r.global.shape[1] + r.begin.at[1] + n];
    return a;
  };
  const pt::sharded_state placed = run.place(shard);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::cmp_not_equal(asked[i], placed.values()[i].shards().size()))
      problem += "asked for more than its shards; ";
  const std::int64_t devices = p.mesh().devices() / t.ranks();
  if (devices == 1 && asked != std::vector{1, 1, 1}) problem += "one device, several shards; ";
  const pt::array want = pt::emulate(p, x);
  if (!same_bits(run.whole(run(placed).values()[0]), want)) problem += "of a placed state; ";
  // States and arrays together; results by name.
  const auto weights = run.place(shard, {"w1", "w2"});
  if (!same_bits(run.whole(run(weights, x[0]).values()[0]), want)) problem += "of both; ";
  t.verdict("shards from a callback", problem);
}
/// Reductions by MPI: integers, maxima and minima have the bits of the emulator, real sums nearly.
void check_native(test_run& t) {
  const auto model = [](auto x, auto w, auto z, auto i) {
    return std::tuple{pt::output("y", matmul(x, w)), pt::output("sum", sum<0>(i)),
                      pt::output("largest", reduce_max<0>(z)), pt::output("all", pt::all<0>(i < 3)),
                      pt::output("half", sum<0>(pt::convert<pt::bf16>(i)))};
  };
  const auto p =
      pt::partition(trace(model, input<float, 16, 64>("x"), input<float, 64, 8>("w"),
                          input<float, 64, 3>("z"), input<std::int64_t, 64, 3>("i")),
                    row(t.ranks()), schedule(manual("S", {{"x", 1}, {"i", 0}, {"z", 0}})));
  auto x = arguments(p.source);
  for (const int at : {5, 64 * 3 - 3})  // in the first shard, and in the last
    x[2].mutable_data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
  const pt::results want = pt::emulate(p, x);
  const pt::mpi::executable run(p, t.world(), {.deadline = 60, .native_reductions = true});
  const pt::sharded_state out = run(x);
  std::string problem;
  for (const char* name : {"sum", "largest", "all", "half"})
    if (!same_bits(run.whole(out[name]), want[name])) problem += std::string(name) + "; ";
  if (!pt::all_close(run.whole(out["y"]), want["y"], 1e-5, 1e-5)) problem += "y; ";
  t.verdict("native reductions", problem);
}
/// A value that every rank has needs no communication; a sharded value does.
void check_whole(test_run& t) {
  const auto model = [](auto x) {
    return std::tuple{pt::output("scaled", x * 2), pt::output("total", sum(x)),
                      pt::output("least", reduce_min<0>(x))};
  };
  const auto p = pt::partition(trace(model, input<float, 16, 4>("x")), row(t.ranks()),
                               schedule(manual("S", {{"x", 0}})));
  const auto x = arguments(p.source);
  const pt::results want = pt::emulate(p, x);
  const pt::mpi::executable run(p, t.world(), {.deadline = 60});
  const pt::sharded_state out = run(x);
  std::string problem;
  const std::int64_t before = run.sent().calls;
  for (const char* name : {"total", "least"})
    if (!same_bits(run.whole(out[name]), want[name])) problem += std::string(name) + "; ";
  if (run.sent().calls != before) problem += "a replicated value is sent; ";
  if (!same_bits(run.whole(out["scaled"]), want["scaled"])) problem += "scaled; ";
  if (t.ranks() > 1 && run.sent().calls == before) problem += "a sharded value is not sent; ";
  t.verdict("replicated outputs, by name", problem);
}

}  // namespace

int main(int argc, char** argv) {
  const pt::mpi::world world(argc, argv);
  test_run t(world);
  check_all(t);
  check_shared_state(t);
  check_placing(t);
  check_whole(t);
  check_native(t);
  return t.differing() == 0 ? 0 : 1;
}
