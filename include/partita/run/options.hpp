/// How a program is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <partita/run/kernels/context.hpp>

namespace partita {

/// How a program is run. None of it changes a bit of the results, save other kernels.
struct run_options {
  int threads = 1;
  bool fuse = true;  ///< elementwise chains block by block; else one op at a time
  std::vector<kernel_entry> kernels = {};  ///< for the user's own ops; found before the library's
  /// Bytes that a run may take for what it computes; 0: as much as the machine has left.
  std::int64_t memory = 0;
  /// Tags whose values are handed out beside the outputs, by name or by what they lie below; those
  /// that `probe` made are so anyway. See results::probe.
  std::vector<std::string> probes = {};
};

}  // namespace partita
