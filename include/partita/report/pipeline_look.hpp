/// Names, colours and times of calls in pictures and traces of pipelines.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/fragment_call.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/report/simulation.hpp>
#include <partita/support/span.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Options for showing a pipeline.
struct pipeline_view {
  span<const std::string_view> names = {};  ///< of the meshes; by default m0, m1, ...
  bool seconds = true;  ///< true if times are seconds; otherwise the unit is not printed
};

namespace report_detail {

/// Name of a kind of call, and the two colours that alternate between the stages of one mesh.
struct call_look {
  std::string_view name, colors[2];
};
inline constexpr call_look call_looks[] = {{"forward", {"#4e79a7", "#2f5580"}},
                                           {"backward", {"#4f9a47", "#2f6b2a"}},
                                           {"gradients of weights", {"#b07aa1", "#80506f"}},
                                           {"further derivatives", {"#c76a2b", "#8f4715"}},
                                           {"outside of the loop", {"#8b7a6b", "#5f5247"}},
                                           {"forward and backward", {"#3b8f8c", "#256563"}}};
inline constexpr int call_look_count = 6;

constexpr int kind_of(const fragment_call& c) {
  if (!c.ordered()) return 4;
  const unsigned kinds = c.kinds();
  if ((kinds & call_kinds::forward) != 0) return kinds == call_kinds::forward ? 0 : 5;
  if ((kinds & call_kinds::backward) != 0) return 1;
  return kinds == call_kinds::weight ? 2 : 3;
}
/// For each stage, the number of earlier stages on the same mesh.
constexpr vec<int> rounds_of_stages(const call_graph& g) {
  vec<int> mesh, rounds, count(static_cast<std::size_t>(g.meshes), 0);
  for (const auto& c : g.calls) {
    if (!c.ordered() || c.stage < 0) continue;
    if (c.stage >= static_cast<int>(mesh.size()))
      mesh.resize(static_cast<std::size_t>(c.stage) + 1, -1);
    mesh[c.stage] = c.mesh;
  }
  for (const int m : mesh) rounds.push_back(m < 0 ? 0 : count[m]++);
  return rounds;
}
constexpr int microbatches_of(const call_graph& g) {
  int most = -1;
  for (const auto& c : g.calls)
    if (c.microbatch > most) most = c.microbatch;
  return most + 1;
}

/// Formats a number with three digits: `0.0125`, `21.3`, `1200`.
constexpr text three_digits(double v) {
  if (!(v > 0 && v < 1e15)) return v > 0 ? "very long" : "0";
  int shift = 0;  // the number of decimals shown
  for (; v < 99.95 && shift < 15; v *= 10) ++shift;
  std::int64_t digits = static_cast<std::int64_t>(v + 0.5), below = 1;
  for (; shift > 0 && digits % 10 == 0; digits /= 10) --shift;
  for (int i = 0; i < shift; ++i) below *= 10;
  text out;
  out << digits / below;
  if (shift > 0) out << '.';
  for (digits %= below; shift > 0; --shift, digits %= below) out << digits / (below /= 10);
  return out;
}
constexpr text view_time(double v, const pipeline_view& view) {
  return view.seconds ? time_text(v) : three_digits(v);
}
constexpr text mesh_name(int mesh, const pipeline_view& view) {
  return mesh < static_cast<int>(view.names.size()) ? text(view.names[mesh]) : concat('m', mesh);
}

}  // namespace report_detail

}  // namespace partita
