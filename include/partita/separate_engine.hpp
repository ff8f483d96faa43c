/// The engine's part of the library that is compiled once; see support/separate.hpp. Include it in
/// one translation unit, with PARTITA_SEPARATE defined in all; without that it is empty.
#pragma once

#if defined(PARTITA_SEPARATE)
#if !defined(PARTITA_SEPARATE_ENGINE)
#error \
    "partita: compile <partita/separate_engine.hpp> with PARTITA_SEPARATE_ENGINE, first in its unit"
#endif

#include <partita/partita.hpp>

namespace partita::separate {

value_id emit(builder& b, const op_def& def, span<const value_id> operands,
              span<const std::int64_t> attrs, const tensor_type& declared, vec<program>&& regions) {
  return b.append(def, operands, attrs, declared, static_cast<vec<program>&&>(regions));
}
value_id captured_from(builder& b, const builder* from, value_id v) {
  return dsl_detail::captured_from(b, from, v);
}
value_id add_input(builder& b, std::string_view path, const tensor_type& type) {
  return dsl_detail::add_input(b, path, type);
}
void add_output(builder& b, std::string_view path, const builder* of, value_id v) {
  dsl_detail::add_output(b, path, of, v);
}
program traced(builder& b) { return dsl_detail::traced(b); }
vec<value_id> gradients(builder& b, value_id of, const vec<value_id>& wanted) {
  return dsl_detail::gradients(b, of, wanted);
}
text print(const program& p, const mesh* m) { return ir_detail::printed(p, m); }

void apply(const schedule_detail::manual_actions& p, tactic_context& c) { p.place_all(c); }
partitioned partition(program&& source, const mesh& m,
                      const vec<schedule_detail::any_tactic>& tactics,
                      const partition_options& options) {
  return schedule_detail::partition(static_cast<program&&>(source), m, tactics, options,
                                    partitioned());
}
partitioned extend(partitioned&& r, const vec<schedule_detail::any_tactic>& tactics,
                   const partition_options& options) {
  return schedule_detail::extend(static_cast<partitioned&&>(r), tactics, options);
}
probed_program with_probes(const partitioned& p, const vec<text>& wanted) {
  return schedule_detail::probed(p, wanted);
}
partitioned after(const partitioned& p, int tactic) {
  return schedule_detail::after(p, tactic, partitioned());
}

text report(const partitioned& p, int limit) { return report_detail::reported(p, limit); }
text explain(const partitioned& p) { return report_detail::explained_text(p); }
text print_replicated(const partitioned& p, int limit) {
  return report_detail::replicated_text(p, limit);
}
text diff(const partitioned& a, const partitioned& b, int limit) {
  return report_detail::diff_text(a, b, limit);
}

}  // namespace partita::separate

#endif
