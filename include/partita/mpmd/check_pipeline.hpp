/// Compile-time checks of a pipeline: `check<thunk>`.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/schedule/check.hpp>

namespace partita {

/// The results kept for one mesh of a pipeline.
struct checked_mesh {
  partita::collectives collectives;  ///< those that its devices run in a step
  std::int64_t argument_bytes = 0;   ///< per device, as in mesh_memory
  std::int64_t peak_bytes = 0;       ///< per device, if all calls take the same time
};
/// The results kept for a tactic.
struct checked_tactic {
  partita::collectives collectives;  ///< of a step, after the tactic
  int conflicts = 0;
};

/// The results kept for a pipeline, and for its first 64 tactics.
template <int Room>
class checked_pipeline {
 public:
  int stages = 0, microbatches = 0;
  int units = 0, transfers = 0;
  int messages = 0;  ///< of one step
  /// True if all meshes finish with channels of the given capacity.
  bool deadlock_free = false;
  partita::collectives collectives;  ///< of a step, on all meshes, before they are combined
  std::int64_t launched = 0;         ///< of them, as combined
  bool proved_by_thunk = false;      ///< true if the thunk called `pt::proved`

  constexpr explicit checked_pipeline(const pipelined& p) {
    keep(p.error.message);
    if (p.error) return;
    proved_by_thunk = p.proved;
    stages = p.stages;
    microbatches = p.microbatches;
    units = static_cast<int>(p.units.size());
    transfers = static_cast<int>(p.transfers.size());
    messages = static_cast<int>(p.lists.messages.size());
    deadlock_free = true;  // otherwise the pipeline has an error
    meshes_ = p.topology.count();
    for (int m = 0; m < meshes_; ++m) {
      keep(p.topology.name(m));
      keep(p.order_of(p.topology.name(m)));
    }
    collectives = p.collectives;
    for (const auto& t : p.tactics) {
      if (tactics_ == most_tactics) break;
      keep(t.name);
      tactic_[tactics_++] = {t.counts, t.conflicts};
    }
    const pipeline_figures figures(p);
    launched = figures.launched;
    for (int m = 0; m < meshes_; ++m) {
      const mesh_figures& f = figures.meshes[m];
      mesh_[m] = {f.collectives, f.memory.arguments, f.memory.peak};
    }
  }
  /// The error text, or empty.
  constexpr std::string_view error() const { return part(0); }
  /// The calls of a mesh for the microbatches: `F0 F1 B0 ...`. An unknown mesh is not a constant
  /// expression.
  constexpr std::string_view order(std::string_view mesh) const {
    for (int m = 0; m < meshes_; ++m)
      if (part(1 + 2 * m) == mesh) return part(2 + 2 * m);
    mpmd_detail::no_such_mesh(mesh, {});
    return {};
  }
  /// The mesh with a name; an unknown one is not a constant expression.
  constexpr const checked_mesh& mesh(std::string_view name) const {
    for (int m = 0; m < meshes_; ++m)
      if (part(1 + 2 * m) == name) return mesh_[m];
    mpmd_detail::no_such_mesh(name, {});
    return mesh_[0];
  }
  /// The last tactic with a name; an unknown one is not a constant expression.
  constexpr const checked_tactic& tactic(std::string_view name) const {
    for (int t = tactics_; t-- > 0;)
      if (part(1 + 2 * meshes_ + t) == name) return tactic_[t];
    schedule_detail::the_program_has_no("tactic", name);
  }
  constexpr int needed() const { return end_[kept_]; }

 private:
  static constexpr int most_tactics = 64;
  int meshes_ = 0, tactics_ = 0, kept_ = 0;
  checked_mesh mesh_[max_meshes] = {};
  checked_tactic tactic_[most_tactics] = {};
  int end_[2 * max_meshes + most_tactics + 2] = {};  ///< ends of the concatenated texts
  char chars_[Room] = {};

  constexpr void keep(std::string_view s) {
    const int begin = end_[kept_];
    for (int i = 0; i < static_cast<int>(s.size()) && begin + i < Room; ++i)
      chars_[begin + i] = s[static_cast<std::size_t>(i)];
    end_[++kept_] = begin + static_cast<int>(s.size());
  }
  constexpr std::string_view part(int i) const {
    return {chars_ + end_[i], static_cast<std::size_t>(end_[i + 1] - end_[i])};
  }
};

namespace mpmd_detail {

/// The verdict of `prove` for a pipeline, or the error that its header is missing. Found by
/// argument-dependent lookup, like the one of programs on one mesh.
struct kept_pipeline_proof {
  char chars[2048] = {};  ///< the reason why it is not proved

  template <std::same_as<pipelined> Pipelined>
  constexpr explicit kept_pipeline_proof(const Pipelined& p) {
    if constexpr (requires { prove(p); })
      keep(prove(p).error.message);
    else
      keep("check<thunk>.proved needs #include <partita/mpmd/prove_pipeline.hpp>");
  }
  constexpr void keep(std::string_view s) {
    for (std::size_t i = 0; i < s.size() && i + 1 < sizeof chars; ++i) chars[i] = s[i];
  }
};
template <auto Thunk>
inline constexpr kept_pipeline_proof pipeline_proof{Thunk()};
template <auto Thunk>
struct pipeline_proof_message {
  constexpr std::string_view operator()() const { return pipeline_proof<Thunk>.chars; }
};
template <auto Thunk, int Room>
constexpr bool is_pipeline_proved();

template <auto Thunk, int Room>
struct checked_pipeline_of : checked_pipeline<Room> {
  using checked_pipeline<Room>::checked_pipeline;
  /// True if all units of all meshes compute the step. `prove` is evaluated only if this is used; a
  /// failed proof is one diagnostic with the place and the reason.
  static constexpr bool proved = is_pipeline_proved<Thunk, Room>();
};
/// The only evaluation of a thunk, or a second one with more room for a larger program.
template <auto Thunk, int Room = 1 << 14>
inline constexpr checked_pipeline_of<Thunk, Room> evaluated_pipeline{Thunk()};

template <auto Thunk, int Room>
constexpr bool is_pipeline_proved() {
  if constexpr (!evaluated_pipeline<Thunk, Room>.proved_by_thunk)
    report_static_error<pipeline_proof_message<Thunk>>();
  return true;
}
template <auto Thunk>
constexpr const auto& complete_pipeline() {
  if constexpr (constexpr int needed = evaluated_pipeline<Thunk>.needed(); needed <= 1 << 14)
    return evaluated_pipeline<Thunk>;
  else
    return evaluated_pipeline<Thunk, needed>;
}
template <auto Thunk>
struct pipeline_message {
  constexpr std::string_view operator()() const { return complete_pipeline<Thunk>().error(); }
};

/// Replaces a pipeline after a mistake: all checks succeed, so that a mistake is one error.
struct placeholder_pipeline {
  schedule_detail::placeholder_figure stages, microbatches, units, transfers, messages;
  bool deadlock_free = true, proved_by_thunk = true;
  static constexpr bool proved = true;
  constexpr schedule_detail::placeholder_figure error() const { return {}; }
  constexpr schedule_detail::placeholder_figure order(std::string_view) const { return {}; }
  struct figures {
    schedule_detail::placeholder_collectives collectives;
    schedule_detail::placeholder_figure argument_bytes, peak_bytes, conflicts;
  };
  schedule_detail::placeholder_collectives collectives;
  constexpr figures mesh(std::string_view) const { return {}; }
  constexpr figures tactic(std::string_view) const { return {}; }
};
inline constexpr placeholder_pipeline placeholder_pipeline_constant;

}  // namespace mpmd_detail

/// `check<thunk>` for a thunk that returns a pipeline; see checked_pipeline. A mistake is one
/// diagnostic that shows its text.
template <>
struct schedule_detail::check_of<pipelined> {
  template <auto Thunk>
  static constexpr const auto& kept() {
    constexpr auto& made = mpmd_detail::complete_pipeline<Thunk>();
    if constexpr (made.error().empty()) {
      return made;
    } else {
      // A model that did not compile has been reported at its own code.
      if constexpr (made.error().substr(0, 4) != "P000")
        report_static_error<mpmd_detail::pipeline_message<Thunk>>();
      return mpmd_detail::placeholder_pipeline_constant;
    }
  }
};

}  // namespace partita
