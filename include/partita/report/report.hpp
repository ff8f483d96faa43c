/// Effects of a schedule, as text.
#pragma once

#include <string_view>

#include <partita/core/action_text.hpp>
#include <partita/report/clamped.hpp>
#include <partita/report/conflict.hpp>
#include <partita/report/exactness.hpp>
#include <partita/schedule/figures.hpp>
#include <partita/schedule/summary.hpp>
#include <partita/support/error.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/separate.hpp>

namespace partita {

namespace report_detail {

/// The layout of a value after the tactics up to `tactic`.
constexpr layout layout_after(const core_program& c, value_id v, int tactic) {
  layout l;
  const op_id o = c.p.producer(v);
  for (const auto& each : c.nest_of(o)) {
    if (each.factor == any_factor || each.tactic > tactic) continue;
    const int dim = c.map.at(o, each.factor).result_dim;
    if (dim != no_dim) l.push_back(each.axis, dim);
  }
  return l;
}

/// For each tactic, the inputs in which it created a loop, each once and in order.
constexpr vec<vec<value_id>> inputs_by_tactic(const core_program& c, std::size_t tactics) {
  vec<vec<value_id>> list(tactics, vec<value_id>());
  for (value_id v : c.p.inputs)
    for (const auto& l : c.nest_of(c.p.producer(v)))
      if (auto& of = list[l.tactic]; of.empty() || of.back() != v) of.push_back(v);
  return list;
}

/// Prints `12 flop, 34 bytes read and written, arguments 56 bytes, ...`.
constexpr void print_sizes(text& out, const figures& all) {
  bool first = true;
  for (const auto& f : schedule_detail::figure_texts) {
    if (f.name.empty()) continue;
    out << (first ? "" : ", ") << f.before;
    print_figure(out, all.*f.member);
    out << f.after;
    first = false;
  }
}

/// The mesh on which an input is, and the name of the mesh if there are several.
struct place_of_input {
  const mesh* on = nullptr;
  std::string_view name;
};

/// Prints the effects of each tactic. `place(value)` returns the place_of_input of an input;
/// `settle(conflict)` returns how to settle a conflict, or an empty text.
template <class Place, class Settle>
constexpr void print_tactics(text& out, const core_program& core, const vec<tactic_report>& tactics,
                             const value_names& source_names, const scope_list& scopes, int limit,
                             const Place& place, Settle&& settle) {
  const value_names core_names(core.p);
  const vec<vec<value_id>> sharded = inputs_by_tactic(core, tactics.size());
  schedule_detail::conflict_history conflicts(core);
  for (std::size_t t = 0; t < tactics.size(); ++t) {
    const auto& tactic = tactics[t];
    const int number = static_cast<int>(t);
    out << "after " << tactic.name << ":\n  actions:";
    int shown = 0;
    const int count = tactic.last_action - tactic.first_action;
    for (int a = tactic.first_action; a < tactic.last_action; ++a) {
      const bool last = a + 1 == tactic.last_action;
      if (shown++ < limit || last) {
        if (last && count > limit + 1) out << " ... " << count - limit - 1 << " more;";
        out << ' ';
        print_action(out, core.actions[static_cast<std::size_t>(a)], source_names, core.named);
        out << ';';
      }
    }
    out << "\n  collectives: " << tactic.counts;
    if (!(tactic.counts_as_written == tactic.counts))
      out << "\n  as written:  " << tactic.counts_as_written;
    out << "\n  sharded inputs:\n";
    int more = 0;
    shown = 0;
    for (value_id v : sharded[t]) {
      const layout l = layout_after(core, v, number);
      const layout before = layout_after(core, v, number - 1);
      if (l.count == 0 || l == before) continue;
      if (shown++ >= limit) {
        ++more;
        continue;
      }
      const tensor_type& type = core.p.type(v);
      const place_of_input at = place(v);
      out << "    " << name_text(core.p.name(v));
      if (!at.name.empty()) out << '@' << name_text(at.name);
      out << ' ';
      print_layout(out, l, type.shape.rank, *at.on);
      out << " : " << core.true_type(v) << " -> "
          << tensor_type{type.element, l.local(type.shape, *at.on)} << '\n';
    }
    if (more > 0) out << "    and " << more << " more\n";
    if (shown == 0) out << "    none new\n";
    out << "  conflicts: " << tactic.conflicts << '\n';
    conflicts.advance(tactic.conflict_changes);
    conflicts.for_each(limit, [&](const conflict& k) {
      out << "    " << describe_conflict(core, core_names, k, scopes) << '\n';
      if (const text how = settle(k); !how.empty()) out << "      " << how << '\n';
    });
    shown = 0;
    for (const auto& note : tactic.notes)
      if (shown++ < limit) out << "  note: " << note << '\n';
  }
}

/// Notes outputs of a traced program that would be the next state of an input if their names were
/// equal: the types are, and the names differ in one or two letters, at most a quarter of them.
///
/// Cost      outputs that have no input's name, times inputs that have no output's name
constexpr void print_misspelled_states(text& out, const program& p, int limit) {
  if (p.interface.known()) return;
  name_table inputs(p.inputs.size()), outputs(p.outputs.size());
  for (int i = 0; i < p.input_count(); ++i) inputs.insert(p.input_name(i), i);
  for (int k = 0; k < p.output_count(); ++k) outputs.insert(p.output_name(k), k);
  for (int k = 0, printed = 0; k < p.output_count() && printed < limit; ++k) {
    const std::string_view name = p.output_name(k);
    const int letters = name.size() < 8 ? static_cast<int>(name.size()) / 4 : 2;
    if (letters == 0 || inputs.find(name) >= 0) continue;
    for (int i = 0; i < p.input_count(); ++i) {
      const std::string_view like = p.input_name(i);
      if (p.input_type(i) != p.output_type(k) || outputs.find(like) >= 0) continue;
      if (edit_distance(name, like, letters + 1) > letters) continue;
      out << "note: output \"" << escaped(name) << "\" is not the next state of input \""
          << escaped(like) << "\", because their names differ\n";
      ++printed;
      break;
    }
  }
}

/// Prints the collectives and bytes that sharing more gathers would save (those of neighbouring
/// uses or all), and the memory that it would cost.
///
/// Cost      two lowerings, if something is gathered more than once
constexpr void print_sharing(text& out, const partitioned& p) {
  if (p.passes.shared() == shared_uses::all || p.overlap.any() || p.collectives.all_gather < 2)
    return;
  passes on = p.passes;
  std::int64_t fewest = p.collectives.all_gather;
  for (const auto uses : {shared_uses::neighbours, shared_uses::all}) {
    on.share_gathers = uses;
    const lowered shared = lower(p.core, {.passes = on});
    if (shared.error || shared.counts.all_gather == fewest) continue;
    fewest = shared.counts.all_gather;
    const cost then = estimate(shared.device);
    out << "possible with passes share_gathers" << (uses == shared_uses::all ? "" : " neighbours")
        << ": all_gather " << p.collectives.all_gather << " -> " << fewest << ", sent "
        << p.cost.collective_bytes << " -> " << then.collective_bytes << " bytes, peak "
        << p.cost.peak_bytes << " -> " << then.peak_bytes << " bytes\n";
  }
}

/// True if there is a gather from a table with sharded rows, or a scatter into such a table.
constexpr bool looks_up_cut_rows(const core_program& c) {
  for (op_id o : c.order) {
    const op_node& n = c.p.ops[o];
    const bool gathers = n.def->id == def<op::gather>.id;
    if (!gathers && n.def->id != def<op::scatter>.id) continue;
    if (c.view().produced_layout(c.p.operand(o, 0)).count > 0) return true;
  }
  return false;
}
/// Prints the bytes that keeping the table rows of gathers and scatters in place would save, if
/// that pass is off.
///
/// Cost      a propagation and a lowering, if there is such a gather or scatter
constexpr void print_stationary_rows(text& out, const partitioned& p) {
  if (p.passes.stationary_rows || p.error || p.tactics.empty() || p.overlap.any() ||
      p.collectives.total() == 0 || !looks_up_cut_rows(p.core))
    return;
  partitioned with;
  with.source = p.source;
  with.rewritten = p.rewritten;
  with.passes = p.passes;
  with.passes.stationary_rows = true;
  schedule_detail::apply_again(with, p, static_cast<int>(p.tactics.size()) - 1);
  if (with.error) return;
  const lowered kept = lower(with.core, {.passes = with.passes});
  if (kept.error) return;
  const cost then = estimate(kept.device);
  if (then.collective_bytes >= p.cost.collective_bytes) return;
  out << "possible with passes stationary_rows: sent " << p.cost.collective_bytes << " -> "
      << then.collective_bytes << " bytes, peak " << p.cost.peak_bytes << " -> " << then.peak_bytes
      << " bytes\n";
}

}  // namespace report_detail

namespace report_detail {
constexpr text reported(const partitioned& p, int limit) {
  text out;
  const value_names source_names(flat_program(p.sharded()).p);
  report_detail::settler settle(p, limit);
  report_detail::print_tactics(
      out, p.core, p.tactics, source_names, p.source.scopes, limit,
      [&](value_id) {
        return report_detail::place_of_input{&p.core.mesh, {}};
      },
      settle);
  if (!p.tactics.empty() && !(p.tactics.back().counts == p.collectives)) {
    out << "after passes:\n  collectives: " << p.collectives << '\n';
    if (!(p.collectives_as_written == p.collectives))
      out << "  as written:  " << p.collectives_as_written << '\n';
  }
  if (const std::int64_t n = launched(p.notes); n < p.collectives.total())
    out << "combined: " << p.collectives.total() << " collectives are launched as " << n << '\n';
  if (p.tactics.empty() && !p.error)
    out << "note: the schedule is empty: every device holds and computes everything\n";
  schedule_detail::print_notes(out, p.removed, p.cost.unknown);
  for (const text& note : clamped_indices(p.source, limit)) out << "note: " << note << '\n';
  for (const text& note : p.source.interface.notes) out << "note: " << note << '\n';
  report_detail::print_misspelled_states(out, p.source, limit);
  if (const text note = ignored_exactness(p.source); !note.empty()) out << "note: " << note << '\n';
  out << "per device: ";
  report_detail::print_sizes(out, figures(p));
  schedule_detail::print_messages(out, p.cost.messages, p.mesh());
  out << '\n';
  report_detail::print_sharing(out, p);
  report_detail::print_stationary_rows(out, p);
  return out;
}
}  // namespace report_detail

namespace separate {
text report(const partitioned& p, int limit);
}

/// Prints for each tactic: actions, collectives (also as written, if loops contain some), newly
/// sharded inputs with their layouts, conflicts, and notes. Below a conflict are the actions that
/// settle it; they are searched for at most `limit` unsettled conflicts. If passes changed the
/// collectives, those after the passes follow; `explain` lists them.
///
/// At the end are the work, traffic and memory of a device, the effect of sharing gathers, and the
/// effect of keeping rows of lookups in place. At most `limit` lines of each kind are printed; the
/// rest is counted.
///
/// Cost      linear in ops, actions and the length of the report
constexpr text report(const partitioned& p, int limit = 12) {
  PARTITA_RETURN(report_detail::reported(p, limit), separate::report(p, limit));
}

}  // namespace partita
