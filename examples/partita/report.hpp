/// What the program prints.
#pragma once

#include <string>
#include <string_view>

#include <partita/partita.hpp>
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

/// `{"loops": 1, "figures": ["flops", "step_seconds"]}`: loops of unknown length, and the figures
/// that count one iteration of them.
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

/// A module without a specification: its interface, and what it costs on one device, dead code not
/// counted.
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

/// Calls f(kind, axes, type of the operand, bytes that a device sends) for each collective as it is
/// written.
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

inline std::string json_report(const partita::partitioned& p,
                               const partita::system_description& system) {
  std::string out = "{\n  \"tactics\": [";
  for (std::size_t i = 0; i < p.tactics.size(); ++i)
    out += std::string(i > 0 ? ", " : "") + json_text(p.tactics[i].name.view());
  out += "],\n  \"figures\": {";
  partita::vec<std::string_view> names;
  double v = 0;
  partita::figure_of(p, "", v, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    partita::vec<std::string_view> again;
    partita::text number;
    partita::figure_of(p, names[i], v, again);
    partita::print_number(number, v);
    out += std::string(i > 0 ? "," : "") + "\n    " + json_text(names[i]) + ": " +
           std::string(number.view());
  }
  out += "\n  },\n  \"unknown_loops\": " + unknown_loops_json(p.cost.unknown) + ",";
  if (system.on.device.memory > 0)
    out += "\n  \"memory_bytes\": " +
           std::to_string(static_cast<std::int64_t>(system.on.device.memory)) + ",\n  \"fits\": " +
           (static_cast<double>(p.cost.peak_bytes) <= system.on.device.memory ? "true," : "false,");
  if (system.can_simulate()) {
    const partita::simulation s = partita::simulate(p.device, system.on),
                              hidden = partita::simulate(p.device, system.on, {.overlap = true});
    const auto figure = [&](std::string_view name, double v) {
      partita::text number;
      partita::print_number(number, v);
      out += "\n  \"" + std::string(name) + "\": " + std::string(number.view()) + ",";
    };
    figure("step_seconds", s.time);
    figure("overlapped_seconds", hidden.time);
    figure("kernel_seconds", s.compute);
    figure("collective_seconds", s.communication);
    figure("mfu", s.mfu());
    figure("hfu", s.hfu());
  }
  out += "\n  \"collectives\": [";
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
      partita::text type = partita::concat(partita::tensor_type{s.element, s.global_shape}),
                    local = partita::concat(partita::tensor_type{s.element, s.local_shape});
      out += std::string(i > 0 ? "," : "") + "\n    {\"name\": " + json_text(s.name.view()) +
             ", \"type\": " + json_text(type.view()) + ", \"local\": " + json_text(local.view()) +
             ", \"dims\": [";
      for (int d = 0; d < s.global_shape.rank; ++d) {
        out += d > 0 ? ", [" : "[";
        bool some = false;
        for (const auto& e : s.sharding) {
          if (e.dim != d) continue;
          out += std::string(some ? ", " : "") + json_text(p.device.mesh.name(e.axis));
          some = true;
        }
        out += "]";
      }
      out += "]}";
    }
  };
  values("inputs", p.source.input_count(), [&](int i) { return p.input(i); });
  values("outputs", p.source.output_count(), [&](int i) { return p.output(i); });
  return out + "\n  ]\n}\n";
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
