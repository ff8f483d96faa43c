/// The reports that the program prints, as text, JSON and CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/report/value_json.hpp>
#include <partita/spec/bounds.hpp>
#include <partita/spec/system.hpp>
#include <partita/support/number_text.hpp>

inline std::string json_text(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Returns `{"loops": 1, "figures": ["flops", "step_seconds"]}`: the number of loops of unknown
/// length, and the figures that count one iteration of them.
inline std::string unknown_loops_json(const partita::unknown_loops& u) {
  std::string out = "{\"loops\": " + std::to_string(u.loops) + ", \"figures\": [";
  bool first = true;
  for (const std::string_view each :
       {"all_gather", "all_reduce", "reduce_scatter", "all_to_all", "permute", "collectives",
        "flops", "bytes", "collective_bytes", "step_seconds", "overlapped_seconds",
        "kernel_seconds", "collective_seconds", "ideal_seconds"}) {
    if (partita::unknown_loops_of(u, each) == 0) continue;
    out += (first ? "" : ", ") + json_text(each);
    first = false;
  }
  return out + "]}";
}
inline partita::unknown_loops unknown_loops_in(const partita::partitioned& p) {
  return p.cost.unknown;
}
inline partita::unknown_loops unknown_loops_in(const partita::pipelined& p) {
  return partita::pipeline_figures(p).unknown;
}

/// Returns the report of a module without a specification: its interface, and its cost on one
/// device after dead code has been removed.
inline std::string module_report(const partita::program& given, bool json) {
  partita::program p = given, original;
  const partita::dead_code removed = partita::schedule_detail::remove_dead_code(p, original);
  const partita::cost c = partita::estimate(p);
  std::string out;
  const auto each = [&](int n, const auto& name, const auto& type, std::string_view what) {
    for (int i = 0; i < n; ++i) {
      const partita::text t = partita::concat(type(i));
      if (json)
        out += std::string(i > 0 ? ",\n    " : "\n    ") + "{\"name\": " + json_text(name(i)) +
               ", \"type\": " + json_text(t.view()) + "}";
      else
        out += std::string(what) + ' ' + std::to_string(i) + ' ' + std::string(name(i)) + ' ' +
               std::string(t.view()) + '\n';
    }
  };
  const auto inputs = [&] {
    each(
        p.input_count(), [&](int i) { return p.input_name(i); },
        [&](int i) { return p.input_type(i); }, "input");
  };
  const auto outputs = [&] {
    each(
        p.output_count(), [&](int i) { return p.output_name(i); },
        [&](int i) { return p.output_type(i); }, "output");
  };
  if (json) {
    out = "{\n  \"inputs\": [";
    inputs();
    out += "\n  ],\n  \"outputs\": [";
    outputs();
    out += "\n  ],\n  \"ops\": " + std::to_string(p.op_count()) +
           ",\n  \"flops\": " + std::to_string(c.flops) +
           ",\n  \"removed_ops\": " + std::to_string(removed.ops) +
           ",\n  \"unknown_loops\": " + unknown_loops_json(c.unknown) +
           ",\n  \"argument_bytes\": " + std::to_string(c.argument_bytes) +
           ",\n  \"peak_bytes\": " + std::to_string(c.peak_bytes) + "\n}\n";
    return out;
  }
  inputs();
  outputs();
  partita::text notes;
  partita::schedule_detail::print_notes(notes, removed, c.unknown);
  return out + std::to_string(p.op_count()) + " ops, " + std::to_string(c.flops) +
         " flop, arguments " + std::to_string(c.argument_bytes) + " bytes, peak " +
         std::to_string(c.peak_bytes) + " bytes on one device\n" + std::string(notes.view());
}

/// Calls f(kind, axes, type of the operand, bytes that a device sends) for each collective in the
/// program text; a collective in a loop counts once.
template <class F>
void for_each_collective(const partita::program& p, const partita::mesh& m, const F& f) {
  for (partita::op_id o = 0; o < p.op_count(); ++o) {
    for (const auto& r : p.regions_of(o)) for_each_collective(r, m, f);
    if (!p.op(o).def->collective) continue;
    const partita::collective c = p.collective_of(o);
    partita::text axes;
    partita::axis_set set;
    for (const auto& e : c.axes) set.insert(e.axis);
    partita::print_axis_set(axes, set, m);
    const auto& type = p.type(p.operand(o, 0));
    f(partita::name_of(c.kind), axes.view(), type,
      partita::bytes_sent(c.kind, c.members(m), type.bytes()));
  }
}

inline std::string json_number(double v) {
  partita::text t;
  partita::print_number(t, v);
  return std::string(t.view());
}
/// Returns `"figures": {...}`, and the simulated times if the system can be simulated.
inline std::string figures_json(const partita::partitioned& p,
                                const partita::system_description& system,
                                const std::string& indent) {
  std::string out = indent + "\"figures\": {";
  partita::vec<std::string_view> names;
  double v = 0;
  partita::figure_of(p, "", v, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    partita::vec<std::string_view> again;
    partita::figure_of(p, names[i], v, again);
    out += (i > 0 ? "," : "") + indent + "  " + json_text(names[i]) + ": " + json_number(v);
  }
  out += indent + "}";
  const auto field = [&](std::string_view name, const std::string& value) {
    out += "," + indent + json_text(name) + ": " + value;
  };
  field("unknown_loops", unknown_loops_json(p.cost.unknown));
  if (system.on.device.memory > 0) {
    const bool fits = static_cast<double>(p.cost.peak_bytes) <= system.on.device.memory;
    field("memory_bytes", std::to_string(static_cast<std::int64_t>(system.on.device.memory)));
    field("fits", fits ? "true" : "false");
  }
  if (system.can_simulate()) {
    const partita::simulation s = partita::simulate(p.device, system.on),
                              hidden = partita::simulate(p.device, system.on, {.overlap = true});
    field("step_seconds", json_number(s.time));
    field("overlapped_seconds", json_number(hidden.time));
    field("kernel_seconds", json_number(s.compute));
    field("collective_seconds", json_number(s.communication));
    field("mfu", json_number(s.mfu()));
    field("hfu", json_number(s.hfu()));
  }
  return out;
}
/// Returns the effect of a tactic; `p` is the program after it, which the figures describe.
inline std::string tactic_json(const partita::tactic_report& t, const partita::partitioned& p,
                               const partita::system_description& system) {
  std::string out = "\n    {\"name\": " + json_text(t.name.view()) +
                    ", \"actions\": " + std::to_string(t.last_action - t.first_action) +
                    ", \"conflicts\": " + std::to_string(t.conflicts) + ", \"notes\": [";
  for (std::size_t i = 0; i < t.notes.size(); ++i)
    out += (i > 0 ? ", " : "") + json_text(t.notes[i].view());
  return out + "]," + figures_json(p, system, "\n     ") + "}";
}
/// Returns the report as JSON; `tactics` has the tactic_json of each tactic.
inline std::string json_report(const partita::partitioned& p,
                               const partita::system_description& system,
                               const std::vector<std::string>& tactics) {
  std::string out = "{\n  \"axes\": {";
  const partita::mesh mesh = p.mesh().whole();
  for (int a = 0; a < mesh.rank; ++a)
    out += (a > 0 ? ", " : "") + json_text(mesh.name(a)) + ": " + std::to_string(mesh.size(a));
  out += "},\n  \"tactics\": [";
  for (std::size_t i = 0; i < tactics.size(); ++i) out += (i > 0 ? "," : "") + tactics[i];
  out += "\n  ]," + figures_json(p, system, "\n  ") + ",\n  \"collectives\": [";
  bool first = true;
  for_each_collective(
      p.device.local, p.device.mesh, [&](auto kind, auto axes, const auto& type, auto sent) {
        out += std::string(first ? "" : ",") + "\n    {\"kind\": " + json_text(kind) +
               ", \"axes\": " + json_text(axes) +
               ", \"operand\": " + json_text(partita::concat(type).view()) +
               ", \"bytes_sent\": " + std::to_string(sent) + "}";
        first = false;
      });
  const auto values = [&](std::string_view what, int n, const auto& value) {
    out += "\n  ],\n  \"" + std::string(what) + "\": [";
    for (int i = 0; i < n; ++i) {
      const partita::sharded_value s = value(i);
      partita::text fields;
      partita::print_value_json(fields, s.name, {s.element, s.global_shape}, s.local_shape,
                                s.sharding, p.mesh());
      out += std::string(i > 0 ? "," : "") + "\n    {" + std::string(fields.view()) + "}";
    }
  };
  values("inputs", p.source.input_count(), [&](int i) { return p.input(i); });
  values("outputs", p.source.output_count(), [&](int i) { return p.output(i); });
  return out + "\n  ]\n}\n";
}
/// Returns the report as JSON.
///
/// Cost      per tactic a propagation, a lowering and, if the system can be simulated, two
/// simulations
inline std::string json_report(const partita::partitioned& p,
                               const partita::system_description& system) {
  std::vector<std::string> tactics;
  for (std::size_t t = 0; t < p.tactics.size(); ++t)
    tactics.push_back(
        tactic_json(p.tactics[t],
                    t + 1 < p.tactics.size() ? partita::after(p, static_cast<int>(t)) : p, system));
  return json_report(p, system, tactics);
}

inline std::string csv_field(std::string_view s) {
  std::string quoted = "\"";
  for (const char c : s) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}
inline std::string csv_report(const partita::partitioned& p) {
  std::string out = "kind,axes,operand,bytes_sent\n";
  for_each_collective(
      p.device.local, p.device.mesh, [&](auto kind, auto axes, const auto& type, auto sent) {
        out += std::string(kind) + ',' + csv_field(axes) + ',' +
               csv_field(partita::concat(type).view()) + ',' + std::to_string(sent) + '\n';
      });
  return out;
}
