/// Messages about long-running work, on standard error if that is a terminal.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <string_view>

#include <partita/cost/cost.hpp>
#include <partita/search/automatic.hpp>
#include <partita/spmd/device_program.hpp>

namespace progress {

template <class... Parts>
void say(bool is_long, const Parts&... parts) {
  if (!is_long || isatty(STDERR_FILENO) == 0) return;
  std::cerr << "partita: ";
  (std::cerr << ... << parts) << "...\n";
}
inline void reading(std::string_view file, std::size_t bytes) {
  say(bytes > std::size_t{1} << 22, "reading ", file, ", ", bytes >> 20, " MiB");
}
/// FLOPs that take about a second or more.
inline constexpr std::int64_t long_work = 10'000'000'000;
inline void running(const partita::program& p) {
  const std::int64_t flops = partita::estimate(p).flops;
  say(flops > long_work, "running the source, ", flops / 1'000'000'000, " GFLOP");
}
inline void running(const partita::device_program& d) {
  const std::int64_t flops = partita::estimate(d).flops, devices = d.mesh.devices();
  say(flops > long_work / devices, "running on ", devices, " emulated devices, ",
      flops / 1'000'000'000 * devices, " GFLOP");
}

/// Rewrites one line with the progress of the search.
inline void searching(const partita::search_progress& p) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::cerr << "\rpartita: searching, " << p.evaluations << " evaluations, "
            << static_cast<std::int64_t>(p.seconds) << " s, a step takes "
            << partita::search_detail::seconds_text(p.best).view() << "      " << std::flush;
}
inline void searched(const partita::vec<partita::search_result>& results) {
  if (!results.empty() && isatty(STDERR_FILENO) != 0) std::cerr << '\n';
}

}  // namespace progress
