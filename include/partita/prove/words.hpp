/// Describes claims in messages.
#pragma once

#include <partita/ir/print.hpp>
#include <partita/op/combine.hpp>
#include <partita/prove/given.hpp>
#include <partita/prove/kernel/claim.hpp>

namespace partita::prove_detail {

/// True if an op has a tile map. Other ops only give equal results for equal operands.
constexpr bool has_tile_map(const op_def& d) {
  return d.role != op_role::compute || d.elementwise || d.identity || d.collective ||
         d.tile_map != &no_factors;
}

/// A value of the source: `"x"`, or `the source's reduce` if it has no name.
constexpr void print_source_value(text& out, const program& source, value_id v) {
  if (!source.name(v).empty())
    out << '"' << source.name(v) << '"';
  else
    out << "the source's " << source.op(source.producer(v)).def->name;
}
/// The axes that slice each dimension: ` [{"B"}, {}]`.
constexpr void print_sharding(text& out, const layout& l, int rank, const mesh& m) {
  if (rank == 0) return;
  out << " [";
  append_list(out, rank, [&](int d) {
    const axis_list axes = axes_along(l, d);
    out << '{';
    print_axis_list(out, axes.count, m, [&](int i) { return int{axes.axes[i]}; });
    out << '}';
  });
  out << ']';
}
/// A claim: `"x" [{"B"}, {}], to be reduced by add over "M"`.
constexpr void print_claim(text& out, const program& source, const shard_claim& c, const mesh& m) {
  if (!c.known()) {
    out << "not known";
    return;
  }
  print_source_value(out, source, c.of);
  print_sharding(out, c.sharding, source.type(c.of).shape.rank, m);
  if (c.pending.empty()) return;
  out << ", to be reduced by " << name_of(c.combine) << " over ";
  print_axis_set(out, c.pending, m);
}
/// The reduction that a pending value needs: `an all_reduce <@max> <"M"> of %x2 is missing`.
constexpr text missing_reduction(const shard_claim& c, std::string_view of, const mesh& m) {
  const bool sum = c.combine == combiner::add;
  text axes;
  print_axis_set(axes, c.pending, m);
  return concat("an all_reduce ", sum ? "" : "<@", sum ? "" : name_of(c.combine), sum ? "" : "> ",
                "<", axes, ">", of, " is missing");
}

}  // namespace partita::prove_detail
