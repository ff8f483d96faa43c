/// Compares one training step of the demo over MPI, one rank per device, run by pt::mpi::executable
/// and written by hand with MPI and Eigen. The ranks are the mesh {"B": n}; the schedule is BP, Z3.
///
///   mpirun -n 2 bench_mpi_step [--rounds N] [--steps N]
///
/// Two checks come first, on random tokens and the demo's initial parameters: the hand-written step
/// agrees with `evaluate`, and the executable equals `emulate` bit for bit. Then both run rounds of
/// steps in turn. A step takes as long as on the slowest rank; the figure is the median of all
/// steps. The exit status is 1 if a check failed.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <partita/mpi.hpp>
#include <partita/partita.hpp>

#include "../examples/models/transformer.hpp"
#include "hand_mpi.hpp"

namespace pt = partita;

namespace {

constexpr transformer::sizes demo{.layers = 2,
                                  .width = 64,
                                  .heads = 4,
                                  .key = 16,
                                  .hidden = 256,
                                  .vocabulary = 84,
                                  .context = 64,
                                  .batch = 32};
constexpr pt::adam_options adam{.rate = 2e-3};
using hand_written = bench::hand_step<demo.width>;

/// Returns the global tokens or targets of one batch, the same on all ranks.
pt::array random_tokens(std::uint64_t seed) {
  pt::array a(pt::tensor_type{pt::dtype::i32, {demo.batch, demo.context}});
  transformer::random_stream random(seed);
  auto* out = a.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < a.size(); ++i)
    out[i] = static_cast<std::int32_t>(random.below(demo.vocabulary));
  return a;
}
struct batch {
  pt::array tokens, targets;
  explicit batch(std::uint64_t number)
      : tokens(random_tokens(2 * number)), targets(random_tokens(2 * number + 1)) {}
};

/// Returns the demo's initial parameters and optimizer state.
std::vector<pt::array> initial_state(const pt::program& step) {
  std::vector<pt::array> state;
  for (int i = 0; i + 2 < step.input_count(); ++i) {
    pt::array a(step.input_type(i));
    transformer::initialise(step.input_name(i), a.shape(), demo.layers, 1, a.mutable_data<float>());
    state.push_back(a);
  }
  return state;
}

void place(hand_written& hand, const std::vector<pt::array>& state) {
  std::vector<const float*> values;
  for (std::size_t i = 0; i < hand.tensor_count(); ++i) values.push_back(state[i].data<float>());
  hand.place(values);
}

float run(hand_written& hand, const batch& b, int rank) {
  const std::int64_t from = rank * hand.local_batch() * demo.context;
  return hand.step(b.tokens.data<std::int32_t>() + from, b.targets.data<std::int32_t>() + from);
}

/// The distance of two tensors: the largest difference of an element over the largest element, and
/// the Euclidean norm of the difference over that of the tensor.
struct distance {
  double largest = 0, norm = 0;

  distance() = default;
  distance(std::span<const float> expected, std::span<const float> actual) {
    double most = 0, square = 0, all = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double w = static_cast<double>(expected[i]);
      const double d = std::abs(w - static_cast<double>(actual[i]));
      keep(most, std::abs(w));
      keep(largest, d);
      square += d * d;
      all += w * w;
    }
    norm = std::sqrt(square);
    if (all > 0) largest /= most, norm /= std::sqrt(all);
  }
  void keep(const distance& d) {
    keep(largest, d.largest);
    keep(norm, d.norm);
  }

 private:
  static void keep(double& most, double d) { most = d <= most ? most : d; }  // NaN stays
};

/// The largest distances of the two steps, and the bounds they have to keep.
///
/// Adam divides a gradient by its own magnitude. An element whose gradient is as small as the
/// rounding error of its sum may therefore move by up to the rate in either direction. There are
/// few such elements, so parameters are compared by norm. Gradients are compared by element.
struct differences {
  distance loss, gradients, parameters;
  bool agree() const {
    return loss.largest <= 1e-5 && gradients.largest <= 1e-5 && parameters.norm <= 1e-4;
  }
};

/// Compares the hand-written step with `evaluate` on rank 0; the other ranks take part in the
/// steps. Adam's first moment after the first step is the gradient times a constant, so it replaces
/// the gradient.
differences check(const pt::program& step, hand_written& hand, int rank, int steps) {
  std::vector<pt::array> state = initial_state(step);
  place(hand, state);
  const pt::executable source(step);
  differences worst;
  for (int i = 0; i < steps; ++i) {
    const batch b(static_cast<std::uint64_t>(i));
    const float loss = run(hand, b, rank);
    hand.collect();
    if (rank != 0) continue;
    state.push_back(b.tokens);
    state.push_back(b.targets);
    state = source(state);
    const float expected = state.back().item<float>();
    state.pop_back();
    worst.loss.keep({std::span(&expected, 1), std::span(&loss, 1)});
    for (std::size_t t = 0; t < hand.tensor_count(); ++t) {
      const auto values = [&](std::size_t at) {
        return std::span(state[at].data<float>(), static_cast<std::size_t>(state[at].size()));
      };
      worst.parameters.keep({values(t), hand.parameter(t)});
      if (i == 0) worst.gradients.keep({values(hand.tensor_count() + t), hand.moment(t)});
    }
  }
  return worst;
}

/// Returns the number of outputs over `steps` steps whose bits differ from those of `emulate`.
int differing(const pt::partitioned& p, const pt::mpi::executable& run, int steps) {
  const pt::executable emulated(p.device);
  std::vector<pt::array> inputs = initial_state(p.source);
  pt::sharded_state state = run.place(inputs);
  int bad = 0;
  for (int i = 0; i < steps; ++i) {
    const batch b(static_cast<std::uint64_t>(i));
    inputs.push_back(b.tokens);
    inputs.push_back(b.targets);
    inputs = emulated(inputs);
    state = run(state, b.tokens, b.targets).next();
    for (std::size_t k = 0; k < inputs.size(); ++k)
      bad += !pt::equal(inputs[k], run.whole(state.values()[k]));
    inputs.pop_back();  // the loss
  }
  return bad;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// An implementation of the step and the times of its steps.
struct contestant {
  std::string name;
  std::function<void(const batch&)> step;
  std::vector<double> seconds = {};
};

/// Runs `rounds` rounds, each with `steps` steps of every contestant in turn.
void measure(std::vector<contestant>& all, int rounds, int steps) {
  std::vector<batch> batches;
  for (std::uint64_t i = 0; i < 8; ++i) batches.emplace_back(i);
  for (int r = -1; r < rounds; ++r)  // the first one only warms up
    for (contestant& c : all)
      for (int i = 0; i < steps; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        c.step(batches[static_cast<std::size_t>(i) % batches.size()]);
        double seconds = MPI_Wtime() - begin;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (r >= 0) c.seconds.push_back(seconds);
      }
}

void print_profile(const hand_written::profile& t, double steps) {
  const auto ms = [&](double seconds) { return 1e3 * seconds / steps; };
  std::printf(
      "  hand-written, mean ms of rank 0: products %.3f, attention %.3f, GELU %.3f, norms %.3f, "
      "loss %.3f,\n    embedding %.3f, Adam %.3f, all_gather %.3f, reduce_scatter %.3f (with the "
      "wait for the other ranks)\n",
      ms(t.product), ms(t.attention), ms(t.gelu), ms(t.norm), ms(t.loss), ms(t.embed), ms(t.adam),
      ms(t.gather), ms(t.exchange));
}

int run(const pt::mpi::world& world, int rounds, int steps) {
  const int rank = world.rank(), ranks = world.ranks();
  const pt::program step = transformer::trace_training_step<transformer::dynamic>(demo, adam);
  const pt::partitioned p =
      pt::partition(step, pt::mesh{{"B", ranks}}, pt::schedule(transformer::BP, transformer::Z3),
                    {.passes = {.share_gathers = pt::shared_uses::all}});
  hand_written hand(demo, adam, MPI_COMM_WORLD, std::gcd(4, demo.batch / ranks));

  const differences d = check(step, hand, rank, 10);
  if (rank == 0)
    std::printf(
        "hand-written against evaluate over 10 steps, relative: losses %.1e (bound 1e-5), first "
        "gradients %.1e (1e-5),\n  parameters %.1e (1e-4; largest of an element %.1e): %s\n",
        d.loss.largest, d.gradients.largest, d.parameters.norm, d.parameters.largest,
        d.agree() ? "agrees" : "DIFFERS");

  place(hand, initial_state(step));
  std::vector<contestant> all;
  all.push_back({"hand-written", [&](const batch& b) { run(hand, b, rank); }});
  const pt::mpi::executable ours(p, world, {.deadline = 60});
  const int bad = differing(p, ours, 5);
  if (rank == 0) std::printf("partita against emulate over 5 steps: %d outputs differ\n", bad);
  pt::sharded_state state = ours.place(initial_state(step));
  all.push_back(
      {"partita", [&](const batch& b) { state = ours(state, b.tokens, b.targets).next(); }});
  const std::int64_t before = ours.sent().bytes;
  hand.reset_times();
  measure(all, rounds, steps);

  if (rank == 0) {
    std::cout << "mesh {\"B\": " << ranks << "}, BP,Z3: " << pt::report(p, 0) << std::endl;
    for (const contestant& c : all)
      std::printf("%-14s %8.3f ms per step (median of %zu; min %.3f)\n", c.name.c_str(),
                  1e3 * median(c.seconds), c.seconds.size(),
                  1e3 * *std::min_element(c.seconds.begin(), c.seconds.end()));
    print_profile(hand.times(), steps * (rounds + 1));
    std::printf("partita over hand-written: %.2f\n",
                median(all[1].seconds) / median(all[0].seconds));
    std::printf("bytes sent per step and rank: hand-written %lld, partita %lld\n",
                static_cast<long long>(hand.bytes_sent()),
                static_cast<long long>((ours.sent().bytes - before) / (steps * (rounds + 1))));
  }
  int failed = bad > 0 || !d.agree();
  MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 20, steps = 20;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--rounds") rounds = std::max(1, std::atoi(argv[i + 1]));
    if (std::string_view(argv[i]) == "--steps") steps = std::max(1, std::atoi(argv[i + 1]));
  }
  pt::mpi::world world(argc, argv);
  return run(world, rounds, steps);
}
