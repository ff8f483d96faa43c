/// How a job runs, and what it sends.
#pragma once

#include <cstdint>

#include <partita/run/options.hpp>

namespace partita::mpi {

struct options {
  run_options run = {};  ///< threads, kernels, memory; not probes
  /// Seconds that a call may wait for other ranks before it ends the job with a line that says what
  /// waits for whom; 0: as long as it takes.
  double deadline = 0;
  /// All-reduces by MPI_Allreduce, in the order of additions that MPI chooses: the bits may differ
  /// from those of `emulate`. Not of bf16 and f16, which MPI lacks, nor of extremes of real
  /// numbers, where MPI may lose a NaN.
  bool native_reductions = false;
};

/// What a process has sent and waited for.
struct traffic {
  std::int64_t calls = 0;  ///< gathers and exchanges
  std::int64_t bytes = 0;  ///< sent; a gather as a ring sends it
  double seconds = 0;      ///< from the start of each call to its end
};

}  // namespace partita::mpi
