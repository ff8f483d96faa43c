/// Orders of the calls of a pipeline: which microbatch a mesh runs next.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/fragment_call.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The size of a pipeline: `stages` consecutive stages on `meshes` meshes, with `microbatches`
/// calls of each.
struct pipeline_shape {
  int meshes = 1, stages = 1, microbatches = 1;
};

/// The key by which orders compare calls, member by member.
struct order_key {
  std::int64_t parts[3] = {};

  constexpr order_key() = default;
  constexpr order_key(std::int64_t a, std::int64_t b = 0, std::int64_t c = 0) : parts{a, b, c} {}
  friend constexpr bool operator<(const order_key& a, const order_key& b) {
    for (int i = 0; i < 3; ++i)
      if (a.parts[i] != b.parts[i]) return a.parts[i] < b.parts[i];
    return false;
  }
};

/// The list of calls of each mesh, as data: row i belongs to mesh i. A call may leave its stage
/// unset (-1) if its mesh has one stage. See read_order_table() for tables from text.
struct order_table {
  vec<vec<fragment_call>> rows;
  failure error;  ///< error of the text that it was read from
};

/// A kind of pipeline: the place of its stages, and the order in which a mesh runs its calls. Of
/// two calls, the one with the smaller key runs first. Meshes are numbered as ranks, by their first
/// stages. Calls with equal keys follow the data dependences, then program order.
struct pipeline_order {
  std::string_view name;
  order_key (*key)(const fragment_call&, const pipeline_shape&) = nullptr;
  bool splits = false;    ///< true if backward fragments are split in two (`fragment_part`)
  bool returns = false;   ///< true if stages are placed in a V over the meshes, else round robin
  bool anywhere = false;  ///< true if stages may be on any mesh, else `mesh_of` determines it
  /// Records an error if a pipeline of this shape cannot have this order.
  void (*fits)(const pipeline_shape&, failure&) = [](const pipeline_shape&, failure&) {};
  /// Without a key: fills in the list of each mesh.
  void (*table)(const pipeline_shape&, order_table&) = nullptr;

  /// The mesh of a stage.
  constexpr int mesh_of(int stage, const pipeline_shape& s) const {
    const int round = stage / s.meshes, place = stage % s.meshes;
    return returns && round % 2 == 1 ? s.meshes - 1 - place : place;
  }
};

namespace mpmd_detail {

/// The default `fits`: one stage for each mesh.
constexpr void one_stage_each(const pipeline_shape& s, failure& error) {
  if (s.stages != s.meshes)
    error.record("O002", "order: ", s.stages, " stages on ", s.meshes,
                 " meshes; this order has one stage on each mesh; with several, use circular or "
                 "interleaved_1f1b");
}

/// Steps of ZB-H1 (h = 1) and ZB-H2 (h = 2): at step x rank r runs F(x), B(x - h(p-1-r)) and
/// W(x - h(p-1)).
///
/// Source    Qi et al., arXiv:2401.10241, section 2
constexpr order_key zero_bubble_key(const fragment_call& c, const pipeline_shape& s, int h) {
  const int last = s.meshes - 1;
  if (c.part == fragment_part::weight) return {c.microbatch + h * last, 2};
  return {c.microbatch + (c.transposed > 0 ? h * (last - c.mesh) : 0), c.transposed};
}

/// The place of a call in the list of its mesh: first the warm-up, then alternating forward and
/// backward calls.
///
/// Source    Narayanan et al., arXiv:2104.04473, section 2.2
constexpr order_key interleaved_key(const fragment_call& c, const pipeline_shape& s) {
  const std::int64_t p = s.meshes, rounds = s.stages / p, total = rounds * s.microbatches;
  const std::int64_t wanted = 2 * (p - 1 - c.mesh) + (rounds - 1) * p;
  const std::int64_t warm = wanted < total ? wanted : total;
  const std::int64_t round = c.stage / p;
  const std::int64_t chunk = c.transposed > 0 ? rounds - 1 - round : round;
  const std::int64_t k = (c.microbatch / p * rounds + chunk) * p + c.microbatch % p;
  if (c.transposed == 0) return k < warm ? k : warm + 2 * (k - warm);
  return k < total - warm ? warm + 2 * k + 1 : total + k;
}
constexpr void whole_rounds(const pipeline_shape& s, failure& error) {
  if (s.stages % s.meshes != 0)
    error.record("O002", "order: ", s.stages, " stages on ", s.meshes,
                 " meshes; interleaved_1f1b needs the same number of stages on each mesh");
  else if (s.microbatches % s.meshes != 0)
    error.record("O003", "order: ", s.microbatches, " microbatches on ", s.meshes,
                 " meshes; interleaved_1f1b needs a number of microbatches that is divisible by "
                 "the number of meshes; or use circular");
}

}  // namespace mpmd_detail

/// All forward calls, then all backward calls.
///
/// Pros      few messages wait for each other
/// Cons      all microbatches are in flight; bubble (p - 1) / m of the ideal time
/// Source    Huang et al., arXiv:1811.06965
inline constexpr pipeline_order gpipe{
    .name = "gpipe",
    .key = [](const fragment_call& c, const pipeline_shape&) -> order_key {
      return {c.transposed, c.microbatch};
    },
    .anywhere = true};

/// As gpipe, but backward calls start with the last microbatch, so that residuals are used in
/// reverse order.
inline constexpr pipeline_order gpipe_reversed{
    .name = "gpipe_reversed",
    .key = [](const fragment_call& c, const pipeline_shape&) -> order_key {
      return {c.transposed, c.transposed > 0 ? -c.microbatch : c.microbatch};
    },
    .anywhere = true};

/// As gpipe, but the last mesh runs the backward of a microbatch directly after its forward.
inline constexpr pipeline_order gpipe_1f1b_last{
    .name = "gpipe_1f1b_last",
    .key = [](const fragment_call& c, const pipeline_shape& s) -> order_key {
      if (c.mesh == s.meshes - 1) return {c.microbatch, c.transposed};
      return {c.transposed, c.microbatch};
    },
    .fits = &mpmd_detail::one_stage_each};

/// One forward, one backward: a mesh has at most as many microbatches in flight as there are meshes
/// from it to the last.
///
/// Pros      min(m, p - rank) microbatches in flight
/// Cons      the bubble of gpipe
/// Source    Narayanan et al., arXiv:1806.03377; the key: Shardy:MPMD
inline constexpr pipeline_order one_f_one_b{
    .name = "one_f_one_b",
    .key = [](const fragment_call& c, const pipeline_shape& s) -> order_key {
      return {c.microbatch + (s.meshes - c.mesh) * c.transposed, -c.transposed};
    },
    .fits = &mpmd_detail::one_stage_each};

/// Several stages on each mesh, in rounds: all microbatches of a stage, then those of the next.
///
/// Source    Shardy:MPMD
inline constexpr pipeline_order circular{
    .name = "circular",
    .key = [](const fragment_call& c, const pipeline_shape&) -> order_key {
      return {c.transposed, c.stage * (1 - 2 * std::int64_t{c.transposed}), c.microbatch};
    },
    .anywhere = true};

/// As circular, but groups of as many microbatches as there are meshes go through all rounds.
inline constexpr pipeline_order circular_phases{
    .name = "circular_phases",
    .key = [](const fragment_call& c, const pipeline_shape& s) -> order_key {
      return {
          std::int64_t{c.transposed} * (s.microbatches / s.meshes + 1) + c.microbatch / s.meshes,
          c.stage * (1 - 2 * std::int64_t{c.transposed}), c.microbatch};
    },
    .anywhere = true};

/// Several stages on each mesh, 1F1B over all of them.
///
/// Legal     when p divides the number of microbatches
/// Pros      bubble (p - 1) / (m v) of the ideal time, with v stages on each mesh
/// Cons      v times the messages, more microbatches in flight than one_f_one_b
/// Source    Narayanan et al., arXiv:2104.04473, as Megatron-LM has it
inline constexpr pipeline_order interleaved_1f1b{.name = "interleaved_1f1b",
                                                 .key = &mpmd_detail::interleaved_key,
                                                 .fits = &mpmd_detail::whole_rounds};

/// 1F1B with split backward calls: gradients of weights fill the bubble at the end.
///
/// Pros      a third of the bubble of one_f_one_b, the same memory
inline constexpr pipeline_order zb_h1{
    .name = "zb_h1",
    .key = [](const fragment_call& c,
              const pipeline_shape& s) { return mpmd_detail::zero_bubble_key(c, s, 1); },
    .splits = true,
    .fits = &mpmd_detail::one_stage_each};

/// As zb_h1, with 2p - 1 microbatches in flight, so that no mesh waits after its first call.
///
/// Cons      twice the memory; an optimizer step that all meshes start together costs the bubble
inline constexpr pipeline_order zb_h2{
    .name = "zb_h2",
    .key = [](const fragment_call& c,
              const pipeline_shape& s) { return mpmd_detail::zero_bubble_key(c, s, 2); },
    .splits = true,
    .fits = &mpmd_detail::one_stage_each};

}  // namespace partita
