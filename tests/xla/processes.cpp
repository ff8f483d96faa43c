// A client over several processes: each has the shards of its own devices. The plugin is the first
// argument, tests/xla/fake_plugin.cpp; no plugin for CPUs has such clients.
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include <partita/mpi.hpp>
#include <partita/partita.hpp>
#include <partita/xla.hpp>

namespace pt = partita;

int main(int argc, char** argv) {
  const pt::mpi::world job(argc, argv, MPI_THREAD_MULTIPLE);
  const std::string plugin = argc > 1 ? argv[1] : "";
  const int devices = 2 * job.ranks();
  int wrong = 0;
  const auto check = [&](std::string_view what, bool good) {
    if (!good) std::cout << "rank " << job.rank() << ": WRONG " << what << std::endl;
    wrong += good ? 0 : 1;
  };
  const pt::xla::client all(plugin, {.group = pt::mpi::processes(job)});
  check("devices of all processes", all.devices() == devices && all.platform() == "fake");

  const auto model = [](auto x, auto w) {
    return std::tuple{pt::output("x", x), pt::output("w", w)};
  };
  const auto p =
      pt::partition(pt::trace(model, pt::input("x", pt::tensor<float, pt::dyn, 4>(3 * devices)),
                              pt::input<float, 2, 4>("w")),
                    pt::mesh{{"B", devices}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  pt::array x(pt::tensor_type{pt::dtype::f32, {3 * devices, 4}}),
      w(pt::tensor_type{pt::dtype::f32, {2, 4}});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.mutable_data<float>()[i] = static_cast<float>(i) + 0.5f;
  for (std::int64_t i = 0; i < w.size(); ++i) w.mutable_data<float>()[i] = static_cast<float>(-i);

  const pt::xla::executable run(p, all, {.donate = false});
  int asked = 0;
  const auto by_shard = run.place([&](const pt::shard_request& r) {
    ++asked;
    pt::array shard(r.local);
    for (std::int64_t i = 0; i < shard.size(); ++i)
      shard.mutable_data<float>()[i] =
          r.name == "w" ? static_cast<float>(-i) : static_cast<float>(4 * r.begin.at[0] + i) + 0.5f;
    return shard;
  });
  check("place asks for the shards of this process", asked == 3);
  for (const auto& state : {run.place(x, w), by_shard, run(x, w).next()}) {
    int own = 0;
    for (const auto& each : state["x"].shards) own += each != nullptr ? 1 : 0;
    check("two shards are here", own == 2);
    check("all shards are somewhere", pt::equal(run.whole(state["x"]), x));
    check("a replicated value", pt::equal(run.whole(state["w"]), w));
  }
  const auto folder = std::filesystem::temp_directory_path() / "partita_xla_processes";
  run.save(folder.string(), run(x, w).next()).wait();
  const auto loaded = run.load(folder.string());
  check("a checkpoint",
        pt::equal(run.whole(loaded["x"]), x) && pt::equal(run.whole(loaded["w"]), w));
  for (const auto& each : all.get()->group().peers.all_gather(wrong == 0 ? "" : "x"))
    wrong += each.empty() ? 0 : 1;
  if (job.first()) std::filesystem::remove_all(folder);
  if (job.first() && wrong == 0) std::cout << "ok on " << job.ranks() << " ranks" << std::endl;
  return wrong == 0 ? 0 : 1;
}
