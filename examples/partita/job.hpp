/// `--run` under mpirun: each process runs one device, or a block of devices.
#pragma once

#include <cstdlib>
#include <span>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/pipeline.hpp>
#if defined(PARTITA_WITH_MPI)
#include <partita/mpi.hpp>
#endif

namespace job {

/// True if this process is one of several that mpirun started (Open MPI, MPICH, Slurm's PMI).
inline bool has_several() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
    if (const char* size = std::getenv(name); size != nullptr && std::atoi(size) > 1) return true;
  return false;
}

/// Emulates all devices in this process.
template <class Partitioned>
partita::results emulated(const Partitioned& p, const std::vector<partita::array>& inputs) {
  if constexpr (requires { p.device; })
    return partita::emulate(p.device, inputs);
  else
    return partita::emulate(p, inputs);
}

#if defined(PARTITA_WITH_MPI)
/// Returns the MPI world; the first call initializes MPI.
inline partita::mpi::world& world() {
  static int count = 0;
  static char** none = nullptr;
  static partita::mpi::world the_world(count, none);
  return the_world;
}
/// True for the process that writes the results.
inline bool writes() { return !has_several() || world().first(); }

/// Runs a partitioned program: over MPI in a job of several processes, otherwise emulated.
template <class Partitioned>
partita::results run(const Partitioned& p, const std::vector<partita::array>& inputs) {
  if (!has_several()) return emulated(p, inputs);
  const partita::mpi::executable run(p, world(), {.deadline = 60});
  const partita::sharded_state made = run(inputs);
  std::vector<partita::array> arrays;
  auto names = std::make_shared<std::vector<std::string>>();
  for (const auto& each : made.values()) {
    arrays.push_back(run.whole(each));
    names->push_back(each.name);
  }
  return {std::move(arrays), std::move(names)};
}
#else
inline bool writes() { return true; }

template <class Partitioned>
partita::results run(const Partitioned& p, const std::vector<partita::array>& inputs) {
  if (has_several())
    throw partita::error(
        "this program was built without MPI, and mpirun started several processes; run one "
        "process, "
        "or build it where CMake finds an MPI");
  return emulated(p, inputs);
}
#endif

}  // namespace job
