/// Trains the language model of train_text under MPI. Each rank holds its devices' shards of the
/// parameters, the optimizer's state and the batch.
///
///   mpirun -n 8 train_text_mpi --steps 100 --save run/step
///   mpirun -n 2 train_text_mpi --steps 200 --resume run/step_100
///
/// The losses equal those of train_text bit for bit, on any number of ranks that divides the mesh.
/// The options are those of train_text without --sample, --prompt and --temperature, and
///   --save NAME     writes a checkpoint NAME_STEP at the end, and every N steps with --every N
///   --resume NAME   continues from a checkpoint of any mesh
///   --deadline S    seconds that a rank waits for others before it ends the job (default: 60)
///   --check         also emulates all steps on each rank, and fails if a bit of a loss differs
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <partita/mpi.hpp>
#include <partita/partita.hpp>

#include "../models/transformer.hpp"
#include "../train_text/options.hpp"
#include "../train_text/strategy.hpp"
#include "../train_text/text.hpp"

namespace {

namespace pt = partita;

/// The options of this program; the constructor removes them from the arguments.
struct job_options {
  std::string save, resume;
  std::int64_t every = 0;
  double deadline = 60;
  bool check = false;

  explicit job_options(std::vector<std::string>& arguments) {
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& name = arguments[i];
      if (name == "--check") {
        check = true;
        continue;
      }
      if (name != "--save" && name != "--resume" && name != "--every" && name != "--deadline") {
        rest.push_back(name);
        continue;
      }
      if (i + 1 == arguments.size()) throw usage_error("option " + name + " needs a value");
      const std::string& value = arguments[++i];
      if (name == "--every" && (!command_line::parse_number(value, every) || every < 1))
        command_line::refuse(name, value, "a whole number from 1");
      if (name == "--deadline" && (!command_line::parse_number(value, deadline) || deadline < 0))
        command_line::refuse(name, value, "a number of seconds from 0");
      if (name == "--save") save = value;
      if (name == "--resume") resume = value;
    }
    arguments = rest;
  }
};

/// Returns the initial values of a shard of a parameter or of the optimizer's state.
///
/// The demo draws the initial values of a tensor in one stream, so each rank draws all of them.
pt::array initial_shard(const pt::shard_request& r, const options& o) {
  pt::array all(r.global);
  transformer::initialise(r.name, all.shape(), o.layers, static_cast<std::uint64_t>(o.seed),
                          all.mutable_data<float>());
  pt::array shard(r.local);
  pt::run_detail::copy_box(sizeof(float), r.local.shape, all.shape(), r.begin.at, all.bytes(),
                           shard.shape(), nullptr, shard.mutable_bytes());
  return shard;
}

int train(const pt::mpi::world& world, const options& o, const job_options& job) {
  const corpus text = load_text(o);
  const pt::program step = transformer::trace_training_step<transformer::dynamic>(
      {o.layers, o.width, o.heads, o.width / o.heads, 4 * o.width, text.vocabulary(), o.context,
       o.batch},
      {.rate = o.rate});
  const std::vector<chosen_tactic> tactics(o.schedule.begin(), o.schedule.end());
  const pt::partitioned p =
      pt::partition(step, pt::mesh{{"B", o.mesh_b}, {"M", o.mesh_m}}, tactics);
  const pt::run_options how{.threads = static_cast<int>(o.threads)};

  pt::mpi::executable run(p, world, {.run = how, .deadline = job.deadline});
  std::int64_t first = 0;
  pt::sharded_state state;
  if (job.resume.empty()) {
    state = run.place([&](const pt::shard_request& r) { return initial_shard(r, o); });
  } else {
    state = run.load(job.resume);
    first = pt::checkpoint_reader(job.resume).step();
  }
  std::optional<pt::executable> emulated;
  std::vector<pt::array> emulated_state;
  if (job.check) {
    emulated.emplace(p.device, how);
    for (const auto& each : state.values()) emulated_state.push_back(run.whole(each));
  }
  if (world.first())
    std::cout << "mesh: " << pt::concat(p.mesh().whole()) << " on " << world.ranks()
              << " ranks, schedule: " << command_line::join(o.schedule) << '\n'
              << std::flush;

  transformer::random_stream random(static_cast<std::uint64_t>(o.seed) + 1);
  for (std::int64_t i = 0; i < first; ++i)
    batch(text, o, random);  // skips the batches before the checkpoint
  std::optional<pt::saving> saving;
  for (std::int64_t i = first; i < o.steps; ++i) {
    const batch b(text, o, random);
    state = run(state, b.tokens, b.targets).next();
    const float loss = run.whole(state["loss"]).item<float>();
    if (emulated) {
      emulated_state.push_back(b.tokens);
      emulated_state.push_back(b.targets);
      emulated_state = (*emulated)(emulated_state);
      const float expected = emulated_state.back().item<float>();
      emulated_state.pop_back();
      if (std::memcmp(&expected, &loss, sizeof loss) != 0)
        throw pt::error(pt::concat("step ", i, ": the loss differs from the emulated one"));
    }
    const bool last = i + 1 == o.steps;
    if (world.first() && (i % std::max<std::int64_t>(1, o.steps / 15) == 0 || last))
      std::printf("%6lld %10.6f\n", static_cast<long long>(i), static_cast<double>(loss));
    if (!job.save.empty() && (last || (job.every > 0 && (i + 1) % job.every == 0))) {
      saving.reset();  // waits for the previous save
      saving.emplace(run.save(job.save + "_" + std::to_string(i + 1), state, {.step = i + 1}));
    }
  }
  saving.reset();
  if (world.first())
    std::printf("rank 0 sent %lld bytes in %lld calls, %.1f s of communication\n",
                static_cast<long long>(run.sent().bytes), static_cast<long long>(run.sent().calls),
                run.sent().seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  pt::mpi::world world(argc, argv);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    const job_options job(arguments);
    return train(world, command_line::parse(arguments), job);
  } catch (const usage_error& e) {
    if (world.first()) std::cerr << "train_text_mpi: " << e.what() << '\n';
    return 2;
  }
}
