/// `partition`: runs a schedule over a program.
#pragma once

#include <partita/support/vec.hpp>
#include <string_view>

#include <boost/hana/for_each.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/tuple.hpp>

#include <partita/core/core_program.hpp>
#include <partita/cost/cost.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/spmd/lower.hpp>

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
  collectives counts;                     ///< of the whole program after this tactic
  vec<conflict> conflicts;                ///< what its propagation left open
  vec<text> notes;                        ///< what was asked for and could not be had
};

/// A partitioned program: the source, the loops, the device-local program, and what each tactic
/// did.
struct partitioned {
  program source;
  core_program core;
  device_program device;
  vec<collective_note> notes;  ///< where each collective comes from
  vec<tactic_report> tactics;
  partita::collectives collectives;  ///< of the device-local program
  partita::cost cost;                ///< per device
  failure error;

  constexpr const partita::mesh& mesh() const { return device.mesh; }
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

constexpr void apply_and_report(partitioned& r, tactic_context& context, std::string_view name,
                                bool last, auto&& apply) {
  if (r.error || context.error) return;
  tactic_report report;
  report.name = name;
  report.first_action = static_cast<int>(r.core.actions.size());
  r.core.tactic = static_cast<int>(r.tactics.size());
  context.notes.clear();
  apply();
  report.last_action = static_cast<int>(r.core.actions.size());
  if (!last) report.counts = lower(r.core, {.fuse = true, .build = false}).counts;
  report.conflicts = r.core.conflicts;
  report.notes = context.notes;
  r.tactics.push_back(report);
}
}  // namespace detail

/// Applies a schedule to a program on a mesh. The schedule is what `schedule(...)` gives, or, where
/// it is known only at run time, a range of tactics of one type.
///
/// At run time a mistake is thrown as `error`; in constant evaluation it is kept in
/// `partitioned::error`, which `check` shows. Cost: linear in ops and tactics, independent of the
/// number of devices.
template <class Schedule>
constexpr partitioned partition(const program& source, const mesh& m, const Schedule& tactics) {
  partitioned r;
  r.source = source;
  r.error = source.error;
  r.error.record(validate(m));
  if (r.error) {
    r.error.raise();
    return r;
  }
  r.core = core_program(source, m);
  tactic_context context(r.core, r.source);
  const int count = detail::tactic_count(tactics);
  int number = 0;
  detail::for_each_tactic(tactics, [&](const auto& t) {
    detail::apply_and_report(r, context, t.name(), ++number == count, [&] { t.apply(context); });
  });
  r.error.record(context.error);
  if (r.error) {
    r.error.raise();
    return r;
  }
  lowered l = lower(r.core);
  r.device = static_cast<device_program&&>(l.device);
  r.notes = static_cast<vec<collective_note>&&>(l.notes);
  r.collectives = l.counts;
  if (r.tactics.size() > 0) r.tactics.back().counts = l.counts;
  r.cost = estimate(r.device.local);
  return r;
}

}  // namespace partita
