/// Effects of a schedule over several meshes, as text.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/report/pipeline.hpp>
#include <partita/report/report.hpp>
#include <partita/report/simulation.hpp>

namespace partita {

namespace report_detail {

constexpr text counted(std::int64_t n, std::string_view one, std::string_view many) {
  text out;
  print_figure(out, n);
  return out << ' ' << (n == 1 ? one : many);
}
/// Shortens a list to at most `most` characters: `F0 F1 ... 40 more`.
constexpr text first_entries(std::string_view list, std::size_t most) {
  if (list.size() <= most) return list;
  std::size_t end = most;
  while (end > 0 && list[end] != ' ') --end;
  int more = 0;
  for (const char c : list.substr(end)) more += c == ' ';
  return concat(list.substr(0, end), " ... ", more, " more");
}

/// The lines that follow those of the tactics.
class pipeline_lines {
 public:
  constexpr pipeline_lines(const pipelined& p, const pipeline_figures& all) : p_(p), all_(all) {}

  constexpr void print(text& out) const {
    out << "in all: " << counted(p_.stages, "stage", "stages") << " on "
        << counted(p_.topology.count(), "mesh", "meshes") << ", "
        << counted(p_.microbatches, "microbatch", "microbatches") << ", "
        << counted(static_cast<std::int64_t>(p_.units.size()), "function", "functions") << ", "
        << counted(all_.messages, "message", "messages") << " of " << bytes(all_.message_bytes)
        << '\n';
    for (int m = 0; m < p_.topology.count(); ++m) print_mesh(out, m);
  }

 private:
  const pipelined& p_;
  const pipeline_figures& all_;

  static constexpr text bytes(std::int64_t n) { return counted(n, "byte", "bytes"); }
  constexpr void print_mesh(text& out, int m) const {
    const mesh_figures& f = all_.meshes[m];
    out << name_text(p_.topology.name(m)) << ' ' << p_.topology.mesh_of(m);
    if (p_.topology[m].has_device && !p_.topology[m].device.name().empty())
      out << " of " << p_.topology[m].device.name();
    out << ":\n  stages: ";
    if (f.stages.empty()) out << "none";
    append_list(out, static_cast<int>(f.stages.size()), [&](int i) { out << f.stages[i]; });
    out << "; at most " << counted(f.in_flight, "microbatch", "microbatches") << " in flight\n";
    out << "  runs: " << first_entries(p_.order_of(p_.topology.name(m)), 120) << '\n';
    out << "  collectives: " << f.collectives << '\n';
    out << "  per device: arguments " << bytes(f.memory.arguments) << ", peak "
        << bytes(f.memory.peak);
    if (f.memory.call >= 0) out << ", in " << p_.text_of(f.memory.call);
    out << '\n';
  }
};

/// Returns a note that names the arguments and results whose attributes the functions of a pipeline
/// drop; empty if they drop none. (Donation is decided again for each function; values in another
/// memory stay there.)
constexpr text attributes_left_out(const program& p) {
  text names;
  int count = 0;
  const auto look = [&](const vec<interface_port>& ports, const auto& name) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (!ports[i].attributes.empty() || !ports[i].frontend.empty())
        if (count++ < 4) names << (count > 1 ? ", \"" : "\"") << name(static_cast<int>(i)) << '"';
  };
  look(p.interface.inputs, [&](int i) { return p.input_name(i); });
  look(p.interface.outputs, [&](int k) { return p.output_name(k); });
  if (count == 0) return {};
  if (count > 4) names << " and " << count - 4 << " more";
  return concat("functions of a pipeline drop the module's attributes of ", names);
}

}  // namespace report_detail

/// Prints for each tactic: actions, collectives of a step, newly sharded inputs with their layout
/// and mesh, conflicts, and notes. Then come the transfers of the pipeline, and for each mesh its
/// stages, the order of its calls, its collectives and its memory. At most `limit` lines of each
/// kind; the rest is counted.
///
/// Errors    those of the pipeline, as the text "error: " and the message
/// Cost      linear in ops, actions and calls, except for memory_of
constexpr text report(const pipelined& p, int limit = 12) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  vec<int> mesh_of(p.core.p.types.size(), -1);
  for (int i = 0; i < p.core.p.input_count(); ++i) mesh_of[p.core.p.inputs[i]] = p.input_mesh[i];
  report_detail::print_tactics(
      out, p.core, p.tactics, value_names(flat_program(p.source).p), scope_list(), limit,
      [&](value_id v) {
        return report_detail::place_of_input{&p.meshes[mesh_of[v]], p.topology.name(mesh_of[v])};
      },
      [](const conflict&) { return text(); });
  const pipeline_figures all(p);
  schedule_detail::print_notes(out, p.removed, all.unknown);
  for (const text& note : p.notes) out << "note: " << note << '\n';
  for (const text& note : p.source.interface.notes) out << "note: " << note << '\n';
  if (const text note = report_detail::attributes_left_out(p.source); !note.empty())
    out << "note: " << note << '\n';
  if (const text note = ignored_exactness(p.source); !note.empty()) out << "note: " << note << '\n';
  report_detail::pipeline_lines(p, all).print(out);
  return out;
}

/// A table of pipelines, one line each: time of a step with and without the bubble, the bubble as a
/// fraction of the step, the peak memory of the mesh that needs the most, and the bytes of all
/// messages.
class pipeline_table {
 public:
  constexpr pipeline_table() {
    for (const std::string_view head : {"tactic", "in turn", "without bubble", "bubble",
                                        "collectives", "peak bytes", "bytes between meshes"})
      rows_.cell(head, head != "tactic");
    rows_.end_row();
  }
  constexpr void add(std::string_view name, const pipelined& p, const pipeline_time& t) {
    const pipeline_figures figures(p);
    rows_.cell(name).cell(time_text(t.times.total), true);
    rows_.cell(time_text(t.times.ideal()), true);
    rows_.cell(percent_text(t.times.bubble_of_total()), true).number(p.collectives.total());
    rows_.number(figures.peak_bytes).number(figures.message_bytes);
    rows_.end_row();
  }
  constexpr text print() const {
    text out;
    rows_.print(out, "  ");
    return out;
  }

 private:
  report_detail::columns rows_;
};

/// Prints the timeline of a simulated pipeline; see print_timeline of its parts.
constexpr text print_timeline(const pipelined& p, const pipeline_time& t, int width = 100) {
  if (t.error) return concat("error: ", t.error.message, '\n');
  const vec<std::string_view> names = p.topology.names();
  return print_timeline(p.calls, t.lists, t.times, names, width);
}

}  // namespace partita
