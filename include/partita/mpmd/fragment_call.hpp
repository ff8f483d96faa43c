/// Calls of fragments, which a pipeline order sorts.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The part of a fragment that a call runs. A backward fragment can be split into the gradient of
/// its input, which the stage before needs, and the rest (gradients of weights).
enum class fragment_part : std::uint8_t { whole, input, weight };

/// Kinds of calls, as bits: forward, backward or its first part, gradients of weights, others.
struct call_kinds {
  static constexpr unsigned forward = 1, backward = 2, weight = 4, further = 8;
};

/// One call of a fragment: a stage's forward (`transposed` 0) or backward (1) for one microbatch.
/// Stages, meshes and microbatches count from 0.
///
/// Source    Shardy:MPMD, fragment scheduling; the parts: Qi et al., Zero Bubble Pipeline
///           Parallelism, arXiv:2401.10241
struct fragment_call {
  int stage = 0, mesh = 0;
  int transposed = 0;  ///< number of times reverse mode was applied
  int microbatch = 0;  ///< -1: outside of microbatches (an optimizer step)
  fragment_part part = fragment_part::whole;
  std::uint8_t joined = 0;  ///< bits of call_kinds: the merged kinds; 0: not merged

  constexpr bool ordered() const { return microbatch >= 0; }
  /// The kinds of what it runs, as bits of call_kinds.
  constexpr unsigned kinds() const {
    if (joined != 0) return joined;
    if (transposed > 1) return call_kinds::further;
    if (part == fragment_part::weight) return call_kinds::weight;
    return transposed == 0 ? call_kinds::forward : call_kinds::backward;
  }
  friend constexpr bool operator==(const fragment_call&, const fragment_call&) = default;
};

/// The text of a call: `F3`, `B3`, `W3` (forward, backward or its first part, gradients of weights
/// of microbatch 3); `T2_3` for a second derivative, `FB3` for merged forward and backward; `F3.1`
/// with the stage; `update.1` for a call outside of microbatches.
constexpr text call_text(const fragment_call& c, bool with_stage = false) {
  text out;
  if (!c.ordered())
    out << "update";
  else if (c.joined != 0)
    out << (c.joined & call_kinds::forward ? "F" : "")
        << (c.joined & call_kinds::backward ? "B" : "")
        << (c.joined & call_kinds::weight ? "W" : "") << (c.joined & call_kinds::further ? "T" : "")
        << c.microbatch;
  else if (c.part == fragment_part::weight)
    out << 'W' << c.microbatch;
  else if (c.transposed < 2)
    out << (c.transposed == 0 ? 'F' : 'B') << c.microbatch;
  else
    out << 'T' << c.transposed << '_' << c.microbatch;
  if (with_stage) out << '.' << c.stage;
  return out;
}

/// A dependence: call `to` uses a result of call `from`. Between units, `later` is the number of
/// microbatches by which the use is later, if a state passes from one to the next.
struct call_edge {
  int from = 0, to = 0;
  int later = 0;
};

/// All calls of one step, in a valid order of execution, and the data dependences between them.
struct call_graph {
  vec<fragment_call> calls;
  vec<call_edge> edges;
  int meshes = 1;
  bool with_stage = false;  ///< true if a mesh holds several stages, which texts then show
  vec<int> rank;    ///< by mesh: its position among those with stages; empty: meshes in order
  vec<text> names;  ///< of meshes, for messages; empty: numbers

  constexpr int count() const { return static_cast<int>(calls.size()); }
  constexpr int rank_of(int mesh) const { return rank.empty() ? mesh : rank[mesh]; }
  /// For messages: `mesh "m1"`, or `mesh 1`.
  constexpr text mesh_text(int mesh) const {
    text out = "mesh ";
    if (names.empty()) return out << mesh;
    return out << '"' << names[mesh] << '"';
  }
  /// For messages: `F3 on mesh "m1"`.
  constexpr text describe(int call) const {
    const fragment_call& c = calls[call];
    return concat(call_text(c, with_stage), " on ", mesh_text(c.mesh));
  }
};

}  // namespace partita
