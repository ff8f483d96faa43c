/// `partition`: runs a schedule over a program.
#pragma once

#include <string_view>

#include <boost/hana/for_each.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/tuple.hpp>

#include <partita/core/core_program.hpp>
#include <partita/cost/cost.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/schedule/replicated.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A typed list of tactics, applied first to last.
template <Tactic... Tactics>
constexpr auto schedule(Tactics... tactics) {
  return boost::hana::make_tuple(tactics...);
}

/// What one tactic did.
struct tactic_report {
  text name;
  int first_action = 0, last_action = 0;  ///< [first, last) of core_program::actions
  collectives counts;                     ///< of the whole program after this tactic, fused
  collectives counts_as_written;          ///< the same, those inside of loops once
  vec<conflict> conflicts;                ///< what its propagation left open
  vec<text> notes;                        ///< what was asked for and could not be had
};

/// One input or output of a partitioned program. The local shape is that of a whole piece: with
/// padding, where the dimension is uneven.
struct sharded_value {
  std::string_view name;
  dtype element = dtype::f32;
  shape global_shape, local_shape;
  layout sharding;
};

namespace detail {
/// Not a constant expression: `check` has nothing of that name.
inline sharded_value no_such_value(std::string_view what, std::string_view name, const program& p) {
  vec<std::string_view> known;
  for (int i = 0; what == "input" && i < p.input_count(); ++i) known.push_back(p.input_name(i));
  for (int i = 0; what == "output" && i < p.output_count(); ++i) known.push_back(p.output_name(i));
  throw error(concat("P007 partitioned: no ", what, " \"", name, "\"; ", known_names(name, known)));
}

}  // namespace detail

/// A partitioned program: the source, the loops, the device-local program, and what each tactic
/// did.
struct partitioned {
  program source;
  /// The source after tactics that rewrite it (microbatch), which the actions are about; without
  /// such tactics it is empty.
  program rewritten;
  core_program core;
  device_program device;
  vec<collective_note> notes;  ///< where each collective comes from
  vec<tactic_report> tactics;
  partita::collectives collectives;  ///< of the device-local program
  /// The same, each once as it stands in the text: not times the trip counts of the loops around.
  partita::collectives collectives_as_written;
  partita::cost cost;      ///< per device
  partita::passes passes;  ///< as they were asked for
  failure error;

  /// As loops, layouts and collectives number its axes: axis i of the user's mesh is i or, where it
  /// had to be split, i is its most major part. `mesh().whole()` is the user's.
  constexpr const partita::mesh& mesh() const { return device.mesh; }
  /// The program that the actions are about.
  constexpr const program& sharded() const { return rewritten.ops.empty() ? source : rewritten; }
  /// An input, by position or name. Errors: P007 there is none.
  constexpr sharded_value input(int i) const {
    if (i < 0 || i >= source.input_count())
      return detail::no_such_value("input", concat(i), source);
    return {source.input_name(i), source.input_type(i).element, source.input_type(i).shape,
            device.local.input_type(i).shape, device.inputs[i]};
  }
  constexpr sharded_value input(std::string_view name) const {
    for (int i = 0; i < source.input_count(); ++i)
      if (source.input_name(i) == name) return input(i);
    return detail::no_such_value("input", name, source);
  }
  /// An output, by position or name. Errors: P007 there is none.
  constexpr sharded_value output(int i) const {
    if (i < 0 || i >= source.output_count())
      return detail::no_such_value("output", concat(i), source);
    return {source.output_name(i), source.output_type(i).element, source.output_type(i).shape,
            device.local.output_type(i).shape, device.outputs[i]};
  }
  constexpr sharded_value output(std::string_view name) const {
    for (int i = 0; i < source.output_count(); ++i)
      if (source.output_name(i) == name) return output(i);
    return detail::no_such_value("output", name, source);
  }
};

namespace detail {

/// A list of tactics of one type, chosen at run time.
template <class Schedule>
concept TacticRange = requires(const Schedule& s) {
  { *s.begin() } -> Tactic;
  s.size();
};

template <class Schedule>
constexpr int tactic_count(const Schedule& tactics) {
  if constexpr (TacticRange<Schedule>)
    return static_cast<int>(tactics.size());
  else
    return static_cast<int>(decltype(boost::hana::length(tactics))::value);
}
template <class Schedule, class F>
constexpr void for_each_tactic(const Schedule& tactics, const F& f) {
  if constexpr (TacticRange<Schedule>) {
    for (const auto& t : tactics) f(t);
  } else {
    boost::hana::for_each(tactics, f);
  }
}

/// For the collectives alone: the program is not built, so no pass rewrites it.
constexpr lowering_options fused_only(passes p) {
  p.combine_below = p.memory_bound = 0;
  p.place = p.share_gathers = false;
  return {.fuse = true, .build = false, .passes = p};
}
/// Runs the tactics that rewrite the program; gives what they note, by tactic.
template <class Schedule>
constexpr vec<vec<text>> rewrite(partitioned& r, const Schedule& tactics) {
  vec<vec<text>> notes;
  rewriting work;
  for_each_tactic(tactics, [&](const auto& t) {
    notes.push_back({});
    if constexpr (Rewriter<std::remove_cvref_t<decltype(t)>>) {
      if (work.error) return;
      if (work.p.ops.empty()) work.p = r.source;
      work.notes.clear();
      t.rewrite(work);
      notes.back() = work.notes;
    }
  });
  r.error.record(work.error);
  r.rewritten = static_cast<program&&>(work.p);
  return notes;
}

constexpr void apply_and_report(partitioned& r, tactic_context& context, std::string_view name,
                                bool last, auto&& apply) {
  if (r.error || context.error) return;
  tactic_report report;
  report.name = name;
  report.first_action = static_cast<int>(r.core.actions.size());
  r.core.tactic = static_cast<int>(r.tactics.size());
  r.core.tactic_names.push_back(name);
  context.notes.clear();
  apply();
  report.last_action = static_cast<int>(r.core.actions.size());
  if (!last) {
    const lowered now = lower(r.core, fused_only(r.passes));
    report.counts = now.counts;
    report.counts_as_written = as_written(now.notes);
  }
  report.conflicts = r.core.conflicts;
  report.notes = context.notes;
  r.tactics.push_back(report);
}
}  // namespace detail

namespace detail {
/// States that a step takes in one layout and gives in another, which has to be undone between
/// steps.
constexpr void note_states(partitioned& r) {
  if (r.tactics.empty()) return;
  name_table inputs(r.source.inputs.size());
  for (int i = 0; i < r.source.input_count(); ++i) inputs.insert(r.source.input_name(i), i);
  for (int i = 0; i < r.source.output_count(); ++i) {
    const int state = inputs.find(r.source.output_name(i));
    if (state < 0) continue;
    const layout &in = r.device.inputs[state], &out = r.device.outputs[i];
    if (in == out) continue;
    text note;
    const int rank = r.source.output_type(i).shape.rank;
    note << "state \"" << r.source.output_name(i) << "\" arrives as ";
    print_layout(note, in, rank, r.mesh());
    note << " and leaves as ";
    print_layout(note, out, rank, r.mesh());
    note << "; name it in a tactic to keep it in one layout";
    r.tactics.back().notes.push_back(note);
  }
}
}  // namespace detail

/// What `partition` is to refuse, and which passes run over the collectives.
struct partition_options {
  static constexpr std::int64_t off = -1;
  /// A value of more bytes than this on one device that is replicated by default is an error
  /// (S020): it is to be sharded, or placed `replicated`.
  std::int64_t strict = off;
  partita::passes passes = {};

  /// Errors    S027 `strict` is negative but not `off`, C001 a size of a pass is negative
  constexpr failure validate() const {
    failure f;
    if (strict < 0 && strict != off)
      f.record("S027", "strict: the limit is ", strict,
               " bytes; give 0 or more, or pt::partition_options::off (", off, ')');
    f.record(passes.validate());
    return f;
  }
};

/// What is replicated although nobody asked for it, largest first; see replicated_value.
constexpr vec<replicated_value> replicated_by_default(const partitioned& p) {
  return replicated_by_default(p.core);
}

/// Applies a schedule to a program on a mesh. The schedule is what `schedule(...)` gives, or, where
/// it is known only at run time, a range of tactics of one type.
///
/// At run time a mistake is thrown as `error`; in constant evaluation it is kept in
/// `partitioned::error`, which `check` shows. Cost: linear in ops and tactics, independent of the
/// number of devices.
/// Errors    M001 to M004 the mesh, S020 a value is replicated against `options.strict`, those of
///           the options and of the tactics
template <class Schedule>
constexpr partitioned partition(const program& source, const mesh& m, const Schedule& tactics,
                                const partition_options& options = {}) {
  partitioned r;
  r.source = source;
  r.passes = options.passes;
  r.error = source.error;
  r.error.record(validate(m.whole()));
  r.error.record(options.validate());
  if (r.error) {
    r.error.raise();
    return r;
  }
  const vec<vec<text>> notes = detail::rewrite(r, tactics);
  if (r.error) {
    r.error.raise();
    return r;
  }
  r.core = core_program(r.sharded(), m);
  tactic_context context(r.core);
  const int count = detail::tactic_count(tactics);
  int number = 0;
  detail::for_each_tactic(tactics, [&](const auto& t) {
    detail::apply_and_report(r, context, t.name(), number + 1 == count, [&] {
      t.apply(context);
      for (const auto& note : notes[number]) context.note(note);
    });
    ++number;
  });
  r.error.record(context.error);
  if (!r.error && options.strict >= 0)
    r.error.record(detail::be_strict(r.core, r.sharded(), options.strict));
  if (r.error) {
    r.error.raise();
    return r;
  }
  lowered l = lower(r.core, {.passes = options.passes});
  r.error = l.error;
  if (r.error) {
    r.error.raise();
    return r;
  }
  r.device = static_cast<device_program&&>(l.device);
  r.notes = static_cast<vec<collective_note>&&>(l.notes);
  r.collectives = l.counts;
  r.collectives_as_written = as_written(r.notes);
  if (r.tactics.size() > 0) {
    tactic_report& last = r.tactics.back();
    last.counts = l.passes.empty() ? l.counts : l.passes[0].before;
    last.counts_as_written =
        l.passes.empty() ? r.collectives_as_written : l.passes[0].written_before;
  }
  r.cost = estimate(r.device.local);
  detail::note_states(r);
  return r;
}

}  // namespace partita
