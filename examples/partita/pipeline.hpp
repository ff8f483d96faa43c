/// Partitions, reports and writes programs on several meshes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/print_calls.hpp>
#include <partita/mpmd/print_pipeline.hpp>
#include <partita/mpmd/write_functions.hpp>
#include <partita/partita.hpp>
#include <partita/report/passes.hpp>
#include <partita/report/pipeline_diff.hpp>
#include <partita/report/pipeline_explain.hpp>
#include <partita/report/pipeline_html.hpp>
#include <partita/report/pipeline_json.hpp>
#include <partita/report/pipeline_peak.hpp>
#include <partita/report/pipeline_report.hpp>
#include <partita/report/pipeline_trace.hpp>
#include <partita/report/value_json.hpp>
#include <partita/run/file/npz.hpp>
#include <partita/run/pipeline.hpp>
#include <partita/spec/bounds.hpp>
#include <partita/spec/fits.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/system.hpp>
#include <partita/stablehlo/write.hpp>

#include "dump.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace pipelines {

/// Refuses options that apply only to programs on one mesh.
///
/// Errors    O142 an option for programs on one mesh
inline void refuse_options(const options& o) {
  if (o.environment)
    throw partita::error(
        "O142 option --environment is for programs on one mesh, and the system has several; leave "
        "it out, or give a system of one");
  if (o.emit == "annotated")
    throw partita::error(
        "O142 option --emit annotated is for programs on one mesh: a module with shardings has "
        "one, and the system has several; give --emit local, a module for each function, or a "
        "system of one");
}

/// Returns the first device of a topology, with the minimum memory of all its devices.
inline partita::device searched_device(const partita::topology& t) {
  partita::device d = t[0].device;
  for (int m = 1; m < t.count(); ++m)
    if (t[m].has_device) d.memory = std::min(d.memory, t[m].device.memory);
  return d;
}

/// A program with a schedule that has a pipeline, on the meshes of a system.
class session {
 public:
  /// `strict` is partition_options::strict.
  session(const partita::program& p, partita::text_schedule s,
          const partita::system_description& system,
          std::int64_t strict = partita::partition_options::off)
      : p_(p), schedule_(std::move(s)), system_(system), strict_(strict) {}

  partita::pipelined partition() {
    partita::vec<partita::search_result> results;
    return partition(results);
  }
  /// Partitions the program. Runs the searches of automatic tactics, stores their results in
  /// `results`, and replaces these tactics by what they found.
  partita::pipelined partition(partita::vec<partita::search_result>& results) {
    partita::text_schedule s = schedule_;
    const partita::topology t = system_.topology();
    partita::search_on(s, searched_device(t), &progress::searching, &results);
    partita::partition_options options = s.options();
    options.strict = strict_;
    partita::pipelined p = partita::partition(p_, t, s.tactics, options);
    partita::take_found(schedule_, results);
    return p;
  }
  /// Returns the program after a tactic: later tactics do not shard, and memory is unlimited.
  partita::pipelined after(std::size_t tactic) const {
    partita::text_schedule some = schedule_;
    some.tactics.clear();
    for (std::size_t i = 0; i < schedule_.tactics.size(); ++i) {
      const partita::text_tactic& t = schedule_.tactics[i];
      if (i <= tactic || t.is_pipeline() || t.kind == partita::text_tactic::remat)
        some.tactics.push_back(t);
    }
    some.passes.memory_bound = 0;
    partita::topology endless;
    for (partita::named_mesh m : system_.several) {
      m.device.memory = std::numeric_limits<double>::max();
      endless.push_back(m);
    }
    partita::search_on(some, endless[0].device);
    return partita::partition(p_, endless, some.tactics, some.options());
  }
  partita::pipeline_time simulated(const partita::pipelined& p) const {
    return partita::simulate(p, system_.on.device);
  }
  std::size_t tactics() const { return schedule_.tactics.size(); }
  std::string_view name(std::size_t tactic) const { return schedule_.tactics[tactic].name(); }
  const partita::system_description& system() const { return system_; }

 private:
  const partita::program& p_;
  partita::text_schedule schedule_;
  const partita::system_description& system_;
  std::int64_t strict_;
};

// ---- JSON ---------------------------------------------------------------------------------------

/// Appends `"name": ` for each field, with a comma before every field but the first.
class json_fields {
 public:
  explicit json_fields(std::string& out, std::string_view indent = " ")
      : out_(out), indent_(indent) {}
  std::string& operator()(std::string_view name) {
    out_ += first_ ? "" : ",";
    first_ = false;
    return out_ += std::string(indent_) + json_text(name) + ": ";
  }

 private:
  std::string& out_;
  std::string_view indent_;
  bool first_ = true;
};

inline void mesh_json(std::string& out, const partita::pipelined& p, int m,
                      const partita::pipeline_figures& all) {
  const partita::mesh_figures& f = all.meshes[static_cast<std::size_t>(m)];
  const partita::mesh& mesh = p.topology.mesh_of(m);
  out += "{\"name\": " + json_text(p.topology.name(m)) + ", \"axes\": {";
  json_fields axes(out, "");
  for (int a = 0; a < mesh.rank; ++a) axes(mesh.name(a)) += std::to_string(mesh.size(a));
  out += "}, \"stages\": [";
  for (std::size_t i = 0; i < f.stages.size(); ++i)
    out += (i > 0 ? ", " : "") + std::to_string(f.stages[i]);
  out += "], \"order\": " + json_text(p.order_of(p.topology.name(m)).view()) + ", \"figures\": {";
  json_fields figures(out, "");
  partita::for_each_figure(p, all, [&](auto of, auto name, auto v) {
    if (of == p.topology.name(m)) figures(name) += json_number(static_cast<double>(v));
  });
  out += "}}";
}
inline void value_json(std::string& out, std::string_view name, const partita::pipelined& p,
                       const partita::tensor_type& type, int mesh, partita::value_id slot,
                       const partita::layout& l) {
  const partita::mesh& on = p.meshes[static_cast<std::size_t>(mesh)];
  partita::text fields;
  partita::print_value_json(fields, name, type, l.local(p.values().type(slot).shape, on), l, on);
  out += "{" + std::string(fields.view()) + ", \"mesh\": " + json_text(p.topology.name(mesh)) + "}";
}
/// Writes a list, one element per line, by calls of write(i).
template <class Write>
void list_json(std::string& out, std::size_t count, const Write& write) {
  out += "[";
  for (std::size_t i = 0; i < count; ++i) {
    out += i > 0 ? ",\n    " : "\n    ";
    write(i);
  }
  out += "\n  ]";
}
inline void transfer_json(std::string& out, const partita::pipelined& p, std::size_t i) {
  const partita::transfer& t = p.transfers[i];
  int times = 0;
  for (const auto& m : p.lists.messages) times += m.transfer == static_cast<int>(i);
  out += "{\"from\": " + json_text(p.topology.name(t.from)) +
         ", \"to\": " + json_text(p.topology.name(t.to)) +
         ", \"type\": " + json_text(partita::concat(p.source.type(t.value)).view()) +
         ", \"times\": " + std::to_string(times) + "}";
}
/// Calls f(unit, calls, kind, axes, type, bytes) for each collective of each function.
template <class F>
void for_each_collective_of(const partita::pipelined& p, const F& f) {
  for (const auto& u : p.units)
    for_each_collective(u.device.local, u.device.mesh,
                        [&](auto kind, auto axes, const auto& type, auto sent) {
                          f(u, u.inside ? p.microbatches : 1, kind, axes, type, sent);
                        });
}
/// Writes the figures of all meshes together, of each mesh, and of a simulated step.
inline void figures_json(json_fields& field, std::string& out, const session& s,
                         const partita::pipelined& p) {
  const partita::pipeline_figures all(p);
  field("figures") += "{";
  json_fields figures(out, "\n    ");
  partita::for_each_figure(p, all, [&](auto of, auto name, auto v) {
    if (of.empty()) figures(name) += json_number(static_cast<double>(v));
  });
  out += "\n  }";
  field("unknown_loops") += unknown_loops_json(all.unknown);
  if (s.system().can_simulate()) {
    const partita::pipeline_time t = s.simulated(p);
    field("step_seconds") += json_number(t.times.total);
    field("ideal_seconds") += json_number(t.times.ideal());
    field("bubble") += json_number(t.times.bubble_of_total());
    field("mfu") += json_number(t.mfu);
    field("hfu") += json_number(t.hfu);
  }
  field("meshes");
  list_json(out, all.meshes.size(),
            [&](std::size_t m) { mesh_json(out, p, static_cast<int>(m), all); });
}
/// Returns the figures of a tactic; `p` is the program after it.
inline std::string tactic_json(const session& s, std::size_t tactic, const partita::pipelined& p) {
  std::string out = "{";
  json_fields field(out);
  field("name") += json_text(s.name(tactic));
  figures_json(field, out, s, p);
  return out + "}";
}
/// Returns the report as JSON; `tactics` has the tactic_json of each tactic.
inline std::string json_report(const session& s, const partita::pipelined& p,
                               const std::vector<std::string>& tactics) {
  std::string out = "{";
  json_fields field(out, "\n  ");
  field("tactics");
  list_json(out, tactics.size(), [&](std::size_t i) { out += tactics[i]; });
  figures_json(field, out, s, p);
  field("transfers");
  list_json(out, p.transfers.size(), [&](std::size_t i) { transfer_json(out, p, i); });
  std::vector<std::string> lines;
  for_each_collective_of(
      p, [&](const auto& u, int calls, auto kind, auto axes, const auto& type, auto sent) {
        lines.push_back("{\"kind\": " + json_text(kind) + ", \"axes\": " + json_text(axes) +
                        ", \"operand\": " + json_text(partita::concat(type).view()) +
                        ", \"bytes_sent\": " + std::to_string(sent) +
                        ", \"mesh\": " + json_text(p.topology.name(u.piece.mesh)) +
                        ", \"function\": " + json_text(partita::mpmd_detail::unit_text(u).view()) +
                        ", \"calls\": " + std::to_string(calls) + "}");
      });
  field("collectives");
  list_json(out, lines.size(), [&](std::size_t i) { out += lines[i]; });
  field("inputs");
  list_json(out, p.input_mesh.size(), [&](std::size_t i) {
    const int k = static_cast<int>(i);
    value_json(out, p.source.input_name(k), p, p.source.input_type(k), p.input_mesh[i],
               p.slot_of[p.source.inputs[i]], p.input_layout[i]);
  });
  field("outputs");
  list_json(out, p.output_mesh.size(), [&](std::size_t i) {
    const int k = static_cast<int>(i);
    value_json(out, p.source.output_name(k), p, p.source.output_type(k), p.output_mesh[i],
               p.output_slot[i], p.output_layout[i]);
  });
  return out + "\n}\n";
}
/// Returns the report as JSON.
///
/// Cost      partitions the program again for each tactic but the last
inline std::string json_report(const session& s, const partita::pipelined& p) {
  std::vector<std::string> tactics;
  for (std::size_t t = 0; t < s.tactics(); ++t)
    tactics.push_back(tactic_json(s, t, t + 1 < s.tactics() ? s.after(t) : p));
  return json_report(s, p, tactics);
}
inline std::string csv_report(const partita::pipelined& p) {
  std::string out = "kind,axes,operand,bytes_sent,mesh,function,calls\n";
  for_each_collective_of(p, [&](const auto& u, int calls, auto kind, auto axes, const auto& type,
                                auto sent) {
    out +=
        std::string(kind) + ',' + csv_field(axes) + ',' + csv_field(partita::concat(type).view()) +
        ',' + std::to_string(sent) + ',' + csv_field(p.topology.name(u.piece.mesh)) + ',' +
        csv_field(partita::mpmd_detail::unit_text(u).view()) + ',' + std::to_string(calls) + '\n';
  });
  return out;
}

// ---- Texts and files ----------------------------------------------------------------------------

/// Returns the simulated times after each tactic, and the timeline of the meshes.
inline partita::text simulation_report(const session& s, const partita::pipelined& p) {
  partita::pipeline_table table;
  for (std::size_t t = 0; t + 1 < s.tactics(); ++t) {
    const partita::pipelined before = s.after(t);
    table.add(s.name(t), before, s.simulated(before));
  }
  const partita::pipeline_time time = s.simulated(p);
  table.add(s.name(s.tactics() - 1), p, time);
  const partita::text note = partita::pipeline_figures(p).unknown.note_on_times();
  return partita::concat("simulated:\n", table.print(), note.empty() ? "" : "  ", note,
                         note.empty() ? "" : "\n", partita::print_timeline(p, time));
}
/// Writes the program for a runtime: the list of calls (calls.txt, calls.json), and a module for
/// each function (calls/0.mlir, ...).
inline void dump_calls(const partita::pipelined& p, const std::string& folder) {
  const partita::exported_pipeline e = partita::export_calls(p);
  make_folder(folder + "/calls");
  const auto write = [&](const std::string& name, const partita::text& all) {
    if (all.view().starts_with("error: ")) throw partita::error(all.view().substr(7));
    partita::run_detail::write_file(folder + "/calls" + name, all.view());
  };
  write(".txt", partita::print_calls(p, e));
  write(".json", partita::pipeline_json(p, e));
  for (int f = 0; f < static_cast<int>(e.functions.size()); ++f)
    write('/' + std::to_string(f) + ".mlir", partita::write_stablehlo(p, e, f));
}
/// Writes the source, the functions and figures after each tactic, and the calls for a runtime.
inline void dump(const session& s, const partita::program& source, const partita::pipelined& p,
                 const std::string& folder) {
  make_folder(folder);
  const auto write = [&](const std::string& name, std::string_view all) {
    partita::run_detail::write_file(folder + '/' + name, all);
  };
  std::vector<std::string> figures;  // after each tactic so far
  const auto both = [&](std::size_t t, const partita::pipelined& state) {
    const std::string name = dump_name(t, s.name(t));
    figures.push_back(tactic_json(s, t, state));
    write(name + ".txt", partita::print(state));
    write(name + ".json", json_report(s, state, figures));
  };
  write("0-source.txt", partita::print(source));
  for (std::size_t t = 0; t + 1 < s.tactics(); ++t) both(t, s.after(t));
  both(s.tactics() - 1, p);
  dump_calls(p, folder);
}
inline partita::text text_in_form(const partita::program& source, const partita::pipelined& p,
                                  const std::string& form) {
  if (form == "local") return partita::write_stablehlo(p, partita::export_calls(p));
  if (form == "source") return partita::write_stablehlo(source);
  if (form == "text") return partita::print(source);
  if (form == "core") return partita::print_core(p.core);
  if (form == "device") return partita::print(p);
  if (form == "calls") return partita::print_calls(p);
  if (form == "json") return partita::pipeline_json(p);
  throw usage_error("option --emit: \"" + form +
                    "\" is not allowed; give local, source, core, text, device, calls or json");
}
inline partita::text trace(const partita::pipelined& p, const partita::pipeline_time& t) {
  const partita::text events = partita::trace_events(p, t);
  if (events.view().starts_with("error: ")) throw partita::error(events.view().substr(7));
  return events;
}

}  // namespace pipelines
