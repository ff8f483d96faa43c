/// Layouts of inputs and outputs, as JSON.
#pragma once

#include <string_view>

#include <partita/ir/layout.hpp>
#include <partita/ir/shape.hpp>
#include <partita/report/json_text.hpp>

namespace partita {

namespace report_detail {

/// Prints `"B"`, or for a part of an axis `{"axis": "A", "pre": 1, "size": 4}`.
constexpr void print_axis_json(text& out, const sub_axis& s, const mesh& m) {
  if (s.size == m.whole_size(s.axis)) return print_json_string(out, m.name(s.axis));
  out << "{\"axis\": ";
  print_json_string(out, m.name(s.axis));
  out << ", \"pre\": " << s.pre << ", \"size\": " << s.size << '}';
}
constexpr void print_shape_json(text& out, const shape& s) {
  out << '[';
  append_list(out, s.rank, [&](int d) { out << s[d]; });
  out << ']';
}

}  // namespace report_detail

/// Prints the axes that slice each dimension, major to minor: `[["B"], []]`. A part of an axis is
/// an object: `{"axis": "A", "pre": 4, "size": 2}` is Shardy's `"A":(4)2`, the `size` positions
/// after a major part of `pre` positions. Adjacent parts are merged.
constexpr void print_layout_json(text& out, const layout& l, int rank, const mesh& m) {
  out << '[';
  append_list(out, rank, [&](int d) {
    axis_list axes;
    for (const auto& e : l)
      if (e.dim == d) axes.push_back(e.axis);
    out << '[';
    for (int i = 0; i < axes.count;) {
      if (i > 0) out << ", ";
      report_detail::print_axis_json(
          out, joined_from(i, axes.count, m, [&](int k) { return int{axes.axes[k]}; }), m);
    }
    out << ']';
  });
  out << ']';
}

/// Prints the fields of a value with its layout on a mesh, without braces:
///
///   type          the global type, as texts print it
///   local         the type of the block on one device, including its padding
///   shape         extents of the global value
///   padded_shape  the same with padding, which comes after the elements of each dimension: the
///                 number of blocks times the extent of one block
///   dims          see print_layout_json
constexpr void print_value_json(text& out, std::string_view name, const tensor_type& global,
                                const shape& local, const layout& l, const mesh& m) {
  out << "\"name\": ";
  report_detail::print_json_string(out, name);
  out << ", \"type\": \"" << global << "\", \"local\": \"" << tensor_type{global.element, local}
      << "\", \"shape\": ";
  report_detail::print_shape_json(out, global.shape);
  out << ", \"padded_shape\": ";
  report_detail::print_shape_json(out, l.global(local, m));
  out << ", \"dims\": ";
  print_layout_json(out, l, global.shape.rank, m);
}

}  // namespace partita
