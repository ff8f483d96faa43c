/// The stages of `partition`, in order. Each does nothing after an error.
#pragma once

#include <climits>
#include <string_view>
#include <type_traits>

#include <partita/ir/tidy.hpp>
#include <partita/schedule/any_tactic.hpp>
#include <partita/schedule/partitioned.hpp>
#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/spmd/count.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/spmd/verify.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita::separate {
/// Errors    Q... the program does not compute its source. Returns no error if the proof would take
///           too long.
bool prove_by_default(const program& source, const device_program& made, failure& f);
}  // namespace partita::separate

namespace partita::schedule_detail {

/// Errors    M001 to M005 the mesh, and the error of the source
constexpr void validate(partitioned& r, const mesh& m) {
  r.error.record(r.source.error);
  r.error.record(validate(m.whole()));
}

/// The report of a tactic that rewrites the program.
struct rewrite_report {
  vec<text> notes;
  remat_price remat;
};

/// Removes dead code from a program before partitioning, and numbers the remaining ops. `original`
/// becomes the program with dead code, or stays empty.
constexpr dead_code remove_dead_code(program& p, program& original) {
  live_program live = without_dead_code(p);
  if (!live.changed) return {};
  const dead_code found{live.removed, estimate(p).flops - estimate(live.p).flops};
  original = static_cast<program&&>(p);
  p = static_cast<program&&>(live.p);
  number_ops(p);
  return found;
}

/// Runs the tactics that rewrite the program; returns their reports, by tactic.
template <class Schedule>
constexpr vec<rewrite_report> rewrite(partitioned& r, const mesh& m, const Schedule& tactics) {
  vec<rewrite_report> list;
  rewriting work;
  work.given = r.original.ops.empty() ? nullptr : &r.original;
  work.one_device = m.devices() == 1;
  work.advice = syntax_of_schedule(tactics);
  for_each_tactic(tactics, [&](const auto& t) {
    list.push_back({});
    if constexpr (Rewriter<std::remove_cvref_t<decltype(t)>>) {
      if (r.error || work.error || !rewrites(t)) return;
      if (work.p.ops.empty()) {
        work.p = r.source;
        work.labels = r.source.labels;
      }
      work.notes.clear();
      work.remat = {};
      t.rewrite(work);
      list.back() = {work.notes, work.remat};
    }
  });
  r.error.record(work.error);
  r.rewritten = static_cast<program&&>(work.p);
  if (!r.rewritten.ops.empty()) {
    r.rewritten.labels = r.source.labels;
    r.rewritten.interface = r.source.interface;
  }
  return list;
}

/// Notes in a tactic's report that it did nothing, unless the report already explains why. (All
/// propagation before it left nothing for its own propagation to find.)
constexpr void note_idle(core_program& core, tactic_report& report,
                         const vec<tactic_report>& before) {
  if (!report.notes.empty()) return;
  for (int a = report.first_action; a < report.last_action; ++a)
    if (core.actions[a].kind != action_kind::propagate) return;
  bool twice = false;
  for (const tactic_report& t : before) twice = twice || t.name == report.name;
  report.notes.push_back(
      concat("it changes nothing", twice ? "; an earlier tactic has the same name" : ""));
}

/// Runs the actions of one tactic on a core program; returns its report, without collectives.
constexpr tactic_report run_actions(core_program& core, tactic_context& context,
                                    std::string_view name, auto&& apply) {
  tactic_report report;
  report.name = name;
  report.first_action = static_cast<int>(core.actions.size());
  core.start_tactic(name);
  context.notes.clear();
  context.search = {};
  apply();
  report.last_action = static_cast<int>(core.actions.size());
  report.conflicts = static_cast<int>(core.conflicts.size());
  report.conflict_changes = static_cast<int>(core.conflict_changes.size());
  report.notes = context.notes;
  report.search = context.search;
  return report;
}

/// Runs the actions of one tactic. The collectives after the last tactic are counted when the
/// program is lowered.
constexpr void apply_and_report(partitioned& r, tactic_context& context,
                                collective_counter& counter, std::string_view name, bool last,
                                bool rewrote, auto&& apply) {
  if (r.error || context.error) return;
  tactic_report report = run_actions(r.core, context, name, apply);
  if (!rewrote && !context.error) note_idle(r.core, report, r.tactics);
  if (!last) {
    counter.update();
    report.counts = counter.counts();
    report.counts_as_written = counter.as_written();
  }
  r.tactics.push_back(static_cast<tactic_report&&>(report));
}

/// Runs the actions of all tactics on the core program, which may already contain actions of other
/// tactics. `rewrite_reports` is the result of `rewrite`. `strict`: notes list all conflicts that
/// are settled.
template <class Schedule>
constexpr void apply_tactics(partitioned& r, const Schedule& tactics,
                             const vec<rewrite_report>& rewrite_reports, bool strict) {
  if (r.error) return;
  if (tactic_count(tactics) > 0) r.core.set_advice(syntax_of_schedule(tactics));
  tactic_context context(r.core);
  if (strict) context.most_choices = INT_MAX;
  context.given = r.original.ops.empty() ? nullptr : &r.original;
  collective_counter counter(r.core, r.passes);
  const int count = tactic_count(tactics);
  int number = 0;
  for_each_tactic(tactics, [&](const auto& t) {
    apply_and_report(r, context, counter, t.name(), number + 1 == count, rewrites(t), [&] {
      apply_before_others(t, context, tactics, number);
      for (const auto& note : rewrite_reports[number].notes) context.note(note);
    });
    if (!r.error && !context.error && !r.tactics.empty())
      r.tactics.back().remat = rewrite_reports[number].remat;
    ++number;
  });
  r.error.record(context.error);
}

/// Errors    S020 a value of more than `limit` bytes is replicated by default
constexpr void refuse_replication(partitioned& r, std::int64_t limit) {
  if (!r.error && limit >= 0) r.error.record(be_strict(r.core, r.sharded(), limit));
}

/// Lowers the program to the device-local one and counts its collectives.
template <class Partitioned>
constexpr void lower_to_devices(Partitioned& r) {
  if (r.error) return;
  lowered l = lower_relocated(r.core, {.passes = r.passes});
  r.error = l.error;
  if (r.error) return;
  r.overlap.apply(l);
  r.device = static_cast<device_program&&>(l.device);
  r.notes = static_cast<vec<collective_note>&&>(l.notes);
  r.collectives = l.counts;
  r.collectives_as_written = as_written(r.notes);
  if (r.tactics.empty()) return;
  tactic_report& last = r.tactics.back();
  last.counts = l.passes.empty() ? l.counts : l.passes[0].before;
  last.counts_as_written = l.passes.empty() ? r.collectives_as_written : l.passes[0].written_before;
}

/// Errors    P001 the device-local program does not verify, which is a bug in the library
constexpr void verify_made(partitioned& r) {
  if (r.error) return;
  if (const failure f = verify(r.device); f)
    r.error.record(
        "P001", "internal error: partition made a wrong device-local program: ", f.message.view());
}

constexpr void estimate_cost(partitioned& r) {
  if (!r.error) r.cost = estimate(r.device);
}

/// Notes states that a step receives in one layout and returns in another, so that the layout has
/// to be restored between steps.
constexpr void note_states(partitioned& r) {
  if (r.error || r.tactics.empty()) return;
  name_table inputs(r.source.inputs.size());
  for (int i = 0; i < r.source.input_count(); ++i) inputs.insert(r.source.input_name(i), i);
  for (int i = 0; i < r.source.output_count(); ++i) {
    const int state = inputs.find(r.source.output_name(i));
    if (state < 0) continue;
    const layout &in = r.device.inputs[state], &out = r.device.outputs[i];
    if (in == out) continue;
    text note;
    const int rank = r.source.output_type(i).shape.rank;
    note << "state \"" << escaped(r.source.output_name(i)) << "\" arrives as ";
    print_layout(note, in, rank, r.mesh());
    note << " and leaves as ";
    print_layout(note, out, rank, r.mesh());
    note << "; name it in a tactic to keep it in one layout";
    r.tactics.back().notes.push_back(note);
  }
}

/// Applies the actions of another program's tactics, up to tactic `last`, from its log.
constexpr void apply_again(partitioned& r, const partitioned& from, int last) {
  const core_program& log = from.core;
  r.core = core_program(r.sharded(), log.named.mesh, r.passes.core());
  r.core.set_advice(log.advice());
  for (int t = 0; t <= last; ++t) {
    const tactic_report& report = from.tactics[static_cast<std::size_t>(t)];
    r.core.start_tactic(report.name);
    for (int a = report.first_action; a < report.last_action; ++a) {
      const action& each = log.actions[static_cast<std::size_t>(a)];
      const bool everywhere = each.kind == action_kind::propagate;
      const int axis = everywhere ? -1 : r.core.axis(log.named.at(each.axis));
      r.error.record(r.core.apply(each, axis));
    }
    r.tactics.push_back(report);
  }
}

/// Proves the result if the options request it, and by default if the compiled library was built
/// without NDEBUG.
template <class Partitioned, class Proof>
constexpr void prove_made(Partitioned& r, Proof* asked) {
#if defined(PARTITA_SEPARATE_ENGINE) && !defined(NDEBUG)
  if (asked == nullptr) asked = &separate::prove_by_default;
#endif
  if (asked != nullptr && !r.error) r.proved = asked(r.given(), r.device, r.error);
}

/// Runs the stages that follow the tactics.
template <class Partitioned, class Options>
constexpr void finish(Partitioned& r, const Options& options) {
  refuse_replication(r, options.strict);
  lower_to_devices(r);
  if (options.verifies()) verify_made(r);
  prove_made(r, options.prove);
  estimate_cost(r);
  note_states(r);
  r.error.raise();
}

}  // namespace partita::schedule_detail
