/// Options of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <partita/run/kernels/context.hpp>

namespace partita {

/// Options of a run. They do not change a bit of the results, except that other kernels may.
struct run_options {
  int threads = 1;
  bool fuse = true;  ///< computes elementwise chains block by block; else one op at a time
  /// Kernels for user-defined ops; they take precedence over the library's.
  std::vector<kernel_entry> kernels = {};
  /// Limit of the bytes that a run allocates for computed values; 0: the memory that the machine
  /// has left.
  std::int64_t memory = 0;
  /// Tags whose values are returned beside the outputs, by name or by a prefix of their path. Tags
  /// of `probe` always are. See results::probe.
  std::vector<std::string> probes = {};
};

}  // namespace partita
