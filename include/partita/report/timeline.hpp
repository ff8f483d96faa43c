/// A simulated run as a file of trace events, for Perfetto and chrome://tracing.
///
/// Source    the trace event format: complete events ("X") with times in microseconds, names of
///           processes and threads as metadata events ("M")
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/simulate.hpp>
#include <partita/ir/print.hpp>
#include <partita/report/json_text.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

/// Returns the timeline of one device as JSON. Its kernels are thread 0, its collectives thread 1;
/// an op with nested programs is one event for all of its trips. Names are those of the
/// device-local program.
///
/// Errors    D001, D002, as the text "error: " and the message
constexpr text trace_events(const device_program& d, const machine& on,
                            const simulation_options& options = {}) {
  text out;
  const program& p = d.local;
  const value_names names(p);
  const auto metadata = [&](int thread, std::string_view name) {
    out << ",\n{\"ph\": \"M\", \"pid\": 0, \"tid\": " << thread
        << ", \"name\": \"thread_name\", \"args\": {\"name\": \"" << name << "\"}}";
  };
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 0, \"tid\": "
         "0, "
         "\"name\": \"process_name\", \"args\": {\"name\": ";
  report_detail::print_json_string(out, concat("one device of ", d.mesh.whole()));
  out << "}}";
  metadata(0, "kernels");
  metadata(1, "collectives");
  const simulation s = simulate(d, on, options, [&](const program& q, const simulated_op& e) {
    if (&q != &p) return;  // (an event of a nested program)
    const op_node& n = p.op(e.op);
    out << ",\n{\"ph\": \"X\", \"pid\": 0, \"tid\": " << (e.communicates ? 1 : 0) << ", \"name\": ";
    text name;
    name << n.def->name;
    if (n.result_count > 0) name << " %" << names[n.result];
    report_detail::print_json_string(out, name);
    out << ", \"ts\": ";
    print_number(out, e.begin * 1e6);
    out << ", \"dur\": ";
    print_number(out, (e.end - e.begin) * 1e6);
    if (n.result_count > 0) {
      out << ", \"args\": {\"type\": ";
      report_detail::print_json_string(out, concat(p.type(n.result)));
      out << '}';
    }
    out << '}';
  });
  if (s.error) return concat("error: ", s.error.message, '\n');
  return out << "\n]}\n";
}

}  // namespace partita
