/// Bounds on the figures of a partitioned program, read from text.
#pragma once

#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/schedule/figures.hpp>
#include <partita/spec/lines.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

/// A bound on a figure: its name, a relation and a value in the figure's base unit.
struct bound {
  enum relation_type : std::uint8_t { at_most, at_least, below, above, equal };
  text name;
  relation_type relation = at_most;
  double value = 0;
  text written;  ///< the bound as in the text: "peak_bytes <= 16 GiB"
};
/// Bounds that were read from text; after an error, those before it.
struct bound_list {
  vec<bound> bounds;
  failure error;
};

namespace spec_detail {
/// The unit kind of a bound's number, determined by the name of its figure: bytes, FLOPs, or a
/// plain number.
constexpr measure measure_of(std::string_view figure) {
  const std::size_t dot = figure.rfind('.');
  const std::string_view name = dot == std::string_view::npos ? figure : figure.substr(dot + 1);
  const bool bytes = name.ends_with("bytes");
  return {"a number",
          bytes             ? measure::bytes
          : name == "flops" ? measure::flop
                            : measure::plain,
          1e30, true};
}
}  // namespace spec_detail

/// Reads bounds, one per line; `#` and `//` begin comments:
///
/// ```
/// all_gather <= 2
/// all_reduce == 5
/// peak_bytes <= 16 GiB
/// ```
///
/// For a program on one mesh, the names are those of `collectives` and of the figures (flops,
/// bytes, argument_bytes, result_bytes, peak_bytes, collective_bytes, replicated_bytes,
/// replicated_count, conflicts, ops, ...).
///
/// For a pipeline, the names are those of `collectives`, stages, microbatches, functions, messages,
/// message_bytes, conflicts, tactic_count, argument_bytes and peak_bytes (both of the mesh that
/// needs the most). Figures of one mesh are `m0.peak_bytes`, `m0.argument_bytes`, `m0.in_flight`,
/// `m0.all_reduce` and so on.
///
/// Errors    X001 syntax, X002 a unit that is unknown or of another kind, X020 a number
///           out of range, with line and column
constexpr bound_list read_bounds(std::string_view in) {
  bound_list list;
  spec_detail::lines l(in, "check");
  while (!l.failed() && !l.at_end()) {
    const std::size_t begin = l.position();
    bound b;
    b.name = l.starts("\"") ? l.name() : text(l.word("<>="));
    if (b.name.empty()) l.expected("the name of a figure");
    using enum bound::relation_type;
    if (l.accept("<="))
      b.relation = at_most;
    else if (l.accept(">="))
      b.relation = at_least;
    else if (l.accept("=="))
      b.relation = equal;
    else if (l.accept("<"))
      b.relation = below;
    else if (l.accept(">"))
      b.relation = above;
    else
      l.expected("<=, <, ==, > or >=");
    b.value = l.quantity(spec_detail::measure_of(b.name));
    std::string_view written = in.substr(begin, l.position() - begin);
    b.written = written;
    if (!l.failed() && !l.at_line_end()) l.expected("the end of the line");
    if (!l.failed()) list.bounds.push_back(b);
  }
  list.error.record(l.error);
  return list;
}

/// Stores the figure with this name in `value`: that of the full program on one device. Returns
/// false if the name is unknown; `known` receives all names.
constexpr bool figure_of(const partitioned& p, std::string_view name, double& value,
                         vec<std::string_view>& known) {
  const schedule_detail::replicated_sum replicated(p.core);
  bool found = false;
  const auto put = [&](std::string_view figure, auto v) {
    known.push_back(figure);
    if (figure != name) return;
    value = static_cast<double>(v);
    found = true;
  };
  put("all_gather", p.collectives.all_gather);
  put("all_reduce", p.collectives.all_reduce);
  put("reduce_scatter", p.collectives.reduce_scatter);
  put("all_to_all", p.collectives.all_to_all);
  put("permute", p.collectives.permute);
  put("collectives", p.collectives.total());
#define PARTITA_COUNTS(member, value)
#define PARTITA_SIZE(member, value, name, before, after) put(#member, value);
#define PARTITA_NUMBER(member, value) put(#member, value);
  PARTITA_FIGURES(PARTITA_COUNTS, PARTITA_SIZE, PARTITA_NUMBER)
#undef PARTITA_COUNTS
#undef PARTITA_SIZE
#undef PARTITA_NUMBER
  return found;
}

/// Calls put(mesh, name, value) for each figure of a pipeline. The mesh is "" for figures of the
/// full pipeline.
template <class Put>
constexpr void for_each_figure(const pipelined& p, const pipeline_figures& all, const Put& put) {
  constexpr std::string_view no_mesh;
  const auto counts = [&](std::string_view mesh, const collectives& c) {
    put(mesh, "all_gather", c.all_gather);
    put(mesh, "all_reduce", c.all_reduce);
    put(mesh, "reduce_scatter", c.reduce_scatter);
    put(mesh, "all_to_all", c.all_to_all);
    put(mesh, "permute", c.permute);
    put(mesh, "collectives", c.total());
  };
  counts(no_mesh, p.collectives);
  put(no_mesh, "launched", all.launched);
  put(no_mesh, "stages", p.stages);
  put(no_mesh, "microbatches", p.microbatches);
  put(no_mesh, "functions", p.units.size());
  put(no_mesh, "messages", all.messages);
  put(no_mesh, "message_bytes", all.message_bytes);
  put(no_mesh, "argument_bytes", all.argument_bytes);
  put(no_mesh, "peak_bytes", all.peak_bytes);
  put(no_mesh, "conflicts", p.core.conflicts.size());
  put(no_mesh, "tactic_count", p.tactics.size());
  put(no_mesh, "removed_ops", p.removed.ops);
  put(no_mesh, "unknown_loops", all.unknown.loops);
  put(no_mesh, "unknown_loops_in_flops", all.unknown.flops);
  put(no_mesh, "unknown_loops_in_bytes", all.unknown.bytes);
  put(no_mesh, "unknown_loops_in_collectives", all.unknown.collectives);
  for (int m = 0; m < p.topology.count(); ++m) {
    const std::string_view name = p.topology.name(m);
    counts(name, all.meshes[m].collectives);
    put(name, "argument_bytes", all.meshes[m].memory.arguments);
    put(name, "peak_bytes", all.meshes[m].memory.peak);
    put(name, "in_flight", all.meshes[m].in_flight);
  }
}

namespace spec_detail {
/// Returns `m0.peak_bytes`, or `peak_bytes` without a mesh.
constexpr text figure_name(std::string_view mesh, std::string_view figure) {
  return mesh.empty() ? text(figure) : concat(mesh, '.', figure);
}
}  // namespace spec_detail

/// The same for a pipeline.
///
/// Cost      that of memory_of
constexpr bool figure_of(const pipelined& p, std::string_view name, double& value,
                         vec<text>& known) {
  bool found = false;
  for_each_figure(p, pipeline_figures(p),
                  [&](std::string_view mesh, std::string_view figure, auto v) {
                    known.push_back(spec_detail::figure_name(mesh, figure));
                    if (known.back().view() != name) return;
                    value = static_cast<double>(v);
                    found = true;
                  });
  return found;
}

/// Returns the number of loops of unknown length that a figure counts as one iteration.
/// `m0.all_reduce` is treated like `all_reduce`.
constexpr int unknown_loops_of(const unknown_loops& u, std::string_view figure) {
  for (std::size_t i = figure.size(); i-- > 0;)
    if (figure[i] == '.') {
      figure = figure.substr(i + 1);
      break;
    }
  if (figure == "flops") return u.flops;
  if (figure == "bytes") return u.bytes;
  for (const std::string_view each : {"all_gather", "all_reduce", "reduce_scatter", "all_to_all",
                                      "permute", "collectives", "collective_bytes"})
    if (figure == each) return u.collectives;
  for (const std::string_view each : {"step_seconds", "overlapped_seconds", "kernel_seconds",
                                      "collective_seconds", "ideal_seconds"})
    if (figure == each) return u.loops;
  return 0;
}

/// Returns a note for each bound on a figure that counts one iteration of loops of unknown length.
/// Such a bound is checked like any other; it applies to the counted value.
constexpr text notes_on_bounds(const unknown_loops& u, const bound_list& list) {
  text out;
  for (const auto& b : list.bounds)
    if (const int loops = unknown_loops_of(u, b.name); loops > 0)
      out << "note: " << b.name << " counts one iteration of " << loops
          << (loops == 1 ? " loop" : " loops") << " of unknown length\n";
  return out;
}

/// Returns a line for each bound that does not hold, with the figure and the bound; empty if all
/// hold.
///
/// Errors    X008 (in `error`) a bound on an unknown figure
template <class Program>
constexpr text broken_bounds(const Program& p, const bound_list& list, failure& error) {
  using name_list =
      std::conditional_t<std::is_same_v<Program, pipelined>, vec<text>, vec<std::string_view>>;
  text out;
  for (const auto& b : list.bounds) {
    double v = 0;
    name_list known;
    if (!figure_of(p, b.name, v, known)) {
      vec<std::string_view> names;
      for (const auto& each : known) names.push_back(each);
      error.record("X008", "check: figure \"", b.name, "\" is unknown; ",
                   known_names(b.name, names));
      return out;
    }
    using enum bound::relation_type;
    const bool holds = b.relation == at_most    ? v <= b.value
                       : b.relation == at_least ? v >= b.value
                       : b.relation == below    ? v < b.value
                       : b.relation == above    ? v > b.value
                                                : v == b.value;
    if (holds) continue;
    out << b.name << " is ";
    print_number(out, v);
    out << "; " << b.written << " does not hold\n";
  }
  return out;
}

}  // namespace partita
