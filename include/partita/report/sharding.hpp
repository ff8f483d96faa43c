/// Mapping of a value's blocks to devices, as a picture in text.
#pragma once

#include <cstdint>

#include <partita/report/columns.hpp>
#include <partita/schedule/block_map.hpp>
#include <partita/schedule/sharding_of.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace report_detail {

using schedule_detail::block_map;

/// The maximum number of devices in a picture; for more, only the number of blocks is printed.
inline constexpr std::int64_t most_devices_shown = 4096;

}  // namespace report_detail

/// Prints a line for each block: its elements in each dimension, and the devices that hold it
/// (several devices hold replicas). Values sharded along one or two dimensions are printed as a
/// table with a block in each cell. Device (i0, i1, ...) has its number in row-major order.
constexpr text print_sharding(const sharded_value& s, const mesh& m) {
  const report_detail::block_map map(s, m);
  text out = map.title();
  out << '\n';
  if (m.devices() > report_detail::most_devices_shown)
    return out << "  " << map.blocks() << " blocks on " << m.devices() << " devices\n";
  const auto holders = map.holders();
  report_detail::columns table;
  if (map.cut().size() == 2) {
    const int rows = map.cut()[0], columns = map.cut()[1];
    table.cell("");
    for (std::int64_t c = 0; c < map.pieces(columns); ++c) table.cell(map.range(columns, c));
    table.end_row();
    for (std::int64_t r = 0; r < map.pieces(rows); ++r) {
      table.cell(map.range(rows, r));
      for (std::int64_t c = 0; c < map.pieces(columns); ++c)
        table.cell(map.names(holders[static_cast<std::size_t>(r * map.pieces(columns) + c)]));
      table.end_row();
    }
  } else {
    for (std::int64_t b = 0; b < map.blocks(); ++b) {
      text ranges = "[";
      std::int64_t rest = b, inner = map.blocks();
      for (int d = 0; d < map.rank(); ++d) {
        inner /= map.pieces(d);
        ranges << (d > 0 ? ", " : "") << map.range(d, rest / inner);
        rest %= inner;
      }
      table.cell(ranges << ']').cell(map.names(holders[static_cast<std::size_t>(b)])).end_row();
    }
  }
  table.print(out, "  ");
  return out;
}
/// The same for an input, tag or output of a partitioned program (see sharding_of).
///
/// Errors    P007 no input, tag or output has this name
constexpr text print_sharding(const partitioned& p, std::string_view name) {
  return print_sharding(sharding_of(p, name), p.mesh());
}

/// Draws the layout of a value on the mesh in text: the device that holds each block, replicas and
/// padding. For a tree ("params"), one picture for each value below the name.
///
/// Errors    P007 no input, tag or output has this name
constexpr text show(const partitioned& p, std::string_view name) {
  text out;
  for (const auto& each : shardings_below(p, name)) out << print_sharding(each, p.mesh());
  return out;
}

}  // namespace partita
