/// Measures the overhead of pt::mpi::executable over MPI: time per collective, and memory of a
/// large state.
///
///   mpirun -n 2 bench_mpi_calls                     microseconds of collectives of 1 KiB per rank
///   mpirun -n 8 bench_mpi_calls --memory 1024       a state of 1024 MiB: placed, saved, loaded
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

#include <partita/mpi.hpp>
#include <partita/partita.hpp>

namespace pt = partita;
namespace rd = partita::run_detail;

namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Measures alternately a collective of 1 KiB of floats and the nonblocking MPI call that it makes.
void print_overhead(pt::mpi::world& world, std::string_view name, const pt::collective& what,
                    const pt::mesh& m) {
  pt::backend_detail::owned_communicator comm(world.communicator());
  std::vector<int> ranks;
  for (int r = 0; r < world.ranks(); ++r) ranks.push_back(r);
  const auto devices = rd::device_set::block(m, world.rank(), world.ranks());
  pt::backend_detail::mpi_transport link(devices, comm.get(), ranks, world.watched(), 60, false,
                                         [](const auto&) { return pt::text("a benchmark"); });
  pt::axis_set axes;
  axes.insert(0);
  link.make_groups(axes);
  const pt::tensor_type from{pt::dtype::f32, {256}}, to{from.element, what.after(from.shape, m)};
  const rd::collective_run run(devices, what, {{from, to, axes, {}}}, &rd::find_combine);
  const pt::array x(from), y(to);
  const std::byte* in[] = {x.bytes()};
  std::byte* out[] = {const_cast<std::byte*>(y.bytes())};
  rd::thread_pool alone(1);
  pt::scratch mine, messages;
  const std::int64_t bytes = from.bytes();
  std::vector<std::byte> all(static_cast<std::size_t>(bytes * world.ranks()));
  std::vector<double> ours, theirs;
  for (int i = 0; i < 20000; ++i) {
    MPI_Barrier(comm.get());
    double begin = MPI_Wtime();
    run.run(link, in, out, alone, std::span(&mine, 1), messages);
    ours.push_back(MPI_Wtime() - begin);
    MPI_Barrier(comm.get());
    begin = MPI_Wtime();
    MPI_Request done;
    MPI_Iallgather(x.bytes(), static_cast<int>(bytes), MPI_BYTE, all.data(),
                   static_cast<int>(bytes), MPI_BYTE, comm.get(), &done);
    MPI_Wait(&done, MPI_STATUS_IGNORE);
    theirs.push_back(MPI_Wtime() - begin);
  }
  if (world.first())
    std::printf(
        "%-12.*s 1 KiB: %.2f us, MPI_Iallgather and MPI_Wait alone %.2f us, beyond %.2f us\n",
        static_cast<int>(name.size()), name.data(), 1e6 * median(ours), 1e6 * median(theirs),
        1e6 * (median(ours) - median(theirs)));
}

/// Returns this process's peak memory, in MiB.
double peak_mib() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

/// Places, saves and loads a state sharded over all ranks.
void print_memory(pt::mpi::world& world, std::int64_t mib) {
  constexpr std::int64_t rows = 1024;
  const std::int64_t columns = mib * (1 << 20) / 4 / rows / 4;
  const auto step = [](auto a, auto b, auto c, auto d) {
    return std::tuple{pt::output("a", a * 2.f), pt::output("b", b * 2.f), pt::output("c", c * 2.f),
                      pt::output("d", d * 2.f)};
  };
  const auto in = [&](const char* name) { return pt::input<float, rows, pt::dyn>(name, columns); };
  const pt::program f = pt::trace(step, in("a"), in("b"), in("c"), in("d"));
  const pt::partitioned p =
      pt::partition(f, pt::mesh{{"B", world.ranks()}},
                    pt::schedule(pt::manual("B", {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}})));
  const pt::mpi::executable run(p, world);
  const double shards = static_cast<double>(mib) / world.ranks();
  const double start = peak_mib();
  const auto report = [&](const char* what, double own) {
    double beyond = peak_mib() - start - own, most = 0;
    MPI_Reduce(&beyond, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (world.first())
      std::printf("%-6s shards of a rank %.0f MiB, peak beyond %.1f MiB\n", what, own, most);
  };
  const std::string path = "bench_mpi_checkpoint";
  {
    const auto state = run.place([](const pt::shard_request& r) { return pt::array(r.local); });
    report("place", shards);
    run.save(path, state).wait();
    report("save", shards);
  }
  const auto again = run.load(path);
  report("load", shards);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.first()) std::filesystem::remove_all(path);
}

}  // namespace

int main(int argc, char** argv) {
  pt::mpi::world world(argc, argv);
  if (argc == 3 && std::string_view(argv[1]) == "--memory") {
    print_memory(world, std::atoll(argv[2]));
    return 0;
  }
  const pt::mesh m{{"B", world.ranks()}};
  pt::collective gather, reduce;
  gather.kind = pt::collective::all_gather;
  reduce.kind = pt::collective::all_reduce;
  gather.axes.push_back(0, 0);
  reduce.axes.push_back(0, 0);
  print_overhead(world, "all_gather", gather, m);
  print_overhead(world, "all_reduce", reduce, m);
  return 0;
}
