/// Options of a job, and statistics of its communication.
#pragma once

#include <cstdint>

#include <partita/run/options.hpp>

namespace partita::mpi {

/// Options of an executable.
struct options {
  run_options run = {};  ///< threads, kernels, memory; not probes
  /// Seconds that a call may wait for other ranks. After that, the job ends with a line that names
  /// the call and the ranks it waits for. 0: no limit.
  double deadline = 0;
  /// True to run all-reduces by MPI_Allreduce, in the order of additions that MPI chooses: the bits
  /// may differ from those of `emulate`. It has no effect for bf16 and f16, which MPI lacks, nor
  /// for minimum and maximum of real numbers, where MPI may lose a NaN.
  bool native_reductions = false;
};

/// Statistics of the communication of a process.
struct traffic {
  std::int64_t calls = 0;  ///< gathers and exchanges
  std::int64_t bytes = 0;  ///< bytes sent; a gather counts as a ring
  double seconds = 0;      ///< from the start of each call to its end
};

}  // namespace partita::mpi
