/// Programs with the shardings of their arguments and results, for a partitioner that reads them.
#pragma once

#include <partita/spmd/device_program.hpp>
#include <partita/stablehlo/write.hpp>

namespace partita {

namespace stablehlo_detail {

/// `sdy.mesh @mesh = <["B"=4, "M"=2]>`
constexpr void write_mesh(text& out, const mesh& m) {
  out << "  sdy.mesh @mesh = <[";
  append_list(out, m.whole_rank(), [&](int i) {
    write_quoted(out, m.name(i), false);
    out << '=' << m.whole_size(i);
  });
  out << "]>\n";
}
/// `sdy.sharding = #sdy.sharding<@mesh, [{"B"}, {}]>`: as a layout is printed, parts of axes too.
constexpr vec<text> shardings(const vec<layout>& layouts, const vec<tensor_type>& types,
                              const mesh& m) {
  vec<text> list;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    text each = "sdy.sharding = #sdy.sharding<@mesh, ";
    print_layout(each, layouts[i], types[i].shape.rank, m);
    each << '>';
    list.push_back(each);
  }
  return list;
}

}  // namespace stablehlo_detail

/// The source of a partitioned program, with the shardings that it has there: Shardy's `sdy.mesh`,
/// and `sdy.sharding` on arguments and results. What the schedule decided about values inside is
/// left to the partitioner.
///
/// Errors    W001 an op that cannot be written
constexpr text write_annotated_stablehlo(const program& source, const device_program& d) {
  text out, failed;
  if (source.error) return failed << "error: " << source.error.message << '\n';
  stablehlo_detail::module_writer m;
  out << "module @partita attributes {mhlo.num_partitions = " << d.mesh.devices()
      << " : i32, mhlo.num_replicas = 1 : i32} {\n";
  stablehlo_detail::write_mesh(out, d.mesh);
  stablehlo_detail::write_main(m, out, source,
                               stablehlo_detail::shardings(d.inputs, d.input_types, d.mesh),
                               stablehlo_detail::shardings(d.outputs, d.output_types, d.mesh));
  out << "}\n";
  if (!m.error) return out;
  return failed << "error: " << m.error.message << '\n';
}

}  // namespace partita
