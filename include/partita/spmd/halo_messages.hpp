/// The permutes that the halos of an op need.
#pragma once

#include <cstdint>

#include <partita/spmd/halo.hpp>
#include <partita/spmd/halo_numbers.hpp>
#include <partita/spmd/pending_sums.hpp>

namespace partita::spmd_detail {

/// The value used out of bounds of an extended value: a value of the core program, or -1 for the
/// identity of the range's combiner.
constexpr value_id halo_fill(const core_program& c, op_id o, const halo_range& r) {
  if (r.fill_operand < 0) return -1;
  const value_id fill = c.p.operand(o, r.fill_operand);
  return c.p.is_zero(c.source_of(fill)) ? -1 : fill;
}

/// Calls f(border, loops, operand, shift, elements along the dimension) for each permute that the
/// halos of an op need; `border` is its number.
template <class F>
constexpr void for_each_halo_message(const core_program& c, const pending_sums& sums,
                                     halo_numbers& numbers, op_id o, const F& f) {
  if (!c.has_halo(o)) return;
  const auto given = c.p.attrs(o);
  vec<std::int64_t> attrs(given.begin(), given.end());
  int now[max_halo_operands] = {-1, -1};
  for (const auto& h : c.halos_of(o, attrs))
    for (int k = 0; k < c.p.ops[o].operand_count; ++k) {
      if (!h.cut.slices(k)) continue;
      if (now[k] < 0) now[k] = numbers.whole(c.p.operand(o, k), sums.required_layout({o, k}));
      halo_exchange::for_each_message(
          h.cut.ranges[k], h.cut.blocks[k], h.cut.pieces,
          [&](std::int64_t shift, std::int64_t from, std::int64_t elements) {
            f(numbers.border(now[k], h, k, shift, from, elements), h, k, shift, elements);
          });
      now[k] = numbers.extended(now[k], h, k, halo_fill(c, o, h.cut.ranges[k]));
    }
}

}  // namespace partita::spmd_detail
