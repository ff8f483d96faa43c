/// `partition`: applies a schedule to a program.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <boost/hana/concept/foldable.hpp>
#include <boost/hana/tuple.hpp>

#include <partita/ir/source_ids.hpp>
#include <partita/schedule/partitioned.hpp>
#include <partita/schedule/stages.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

/// Returns a typed list of tactics, applied first to last.
template <Tactic... Tactics>
constexpr auto schedule(Tactics... tactics) {
  return boost::hana::make_tuple(tactics...);
}

/// A value for partition_options::prove that turns proofs off, including the default one.
constexpr bool no_proof(const program&, const device_program&, failure&) { return false; }

/// Options of `partition`: limits, checks, and passes over the collectives.
struct partition_options {
  static constexpr std::int64_t off = -1;
  /// Maximum bytes per device of a value that is replicated by default (S020). A larger value must
  /// be sharded or placed `replicated`. Notes then list all conflicts that were settled by cost.
  std::int64_t strict = off;
  partita::passes passes = {};
  /// Rewrites that overlap collectives with kernels, for one machine.
  overlapping overlap = {};
  /// If true, verifies the resulting device-local program (P001). Builds without NDEBUG always do
  /// so at run time. In constant evaluation it adds a sixth of the time, so `check` does it only on
  /// request.
  bool verify = false;
  /// Proves the resulting device-local program, or reports why it is not proved (Q...). Use `proof`
  /// or `proof_in_debug` of <partita/prove/prove.hpp>; for several meshes,
  /// <partita/mpmd/prove_pipeline.hpp> proves the pipeline. If this is null, programs that use the
  /// compiled library (partita::separate) are proved at run time in builds without NDEBUG;
  /// `no_proof` turns that off.
  bool (*prove)(const program& source, const device_program& made, failure& f) = nullptr;

  /// Errors    S027 `strict` is negative but not `off`, C001 a pass has a negative size
  constexpr failure validate() const {
    failure f;
    if (strict < 0 && strict != off)
      f.record("S027", "strict: the limit is ", strict,
               " bytes; give 0 or more, or pt::partition_options::off (", off, ')');
    f.record(passes.validate());
    return f;
  }
  /// True if `partition` verifies its result.
  constexpr bool verifies() const {
#ifdef NDEBUG
    return verify;
#else
    return verify || !std::is_constant_evaluated();
#endif
  }
};

namespace schedule_detail {

template <class Schedule, class Partitioned>
constexpr Partitioned partition(program&& source, const mesh& m, const Schedule& tactics,
                                const partition_options& options, Partitioned r) {
  r.source = static_cast<program&&>(source);
  number_ops(r.source);
  r.removed = remove_dead_code(r.source, r.original);
  r.passes = options.passes;
  r.overlap = options.overlap;
  validate(r, m);
  r.error.record(options.validate());
  if (!r.error) r.error.record(options.overlap.options.validate(m));
  const vec<rewrite_report> rewrite_reports = rewrite(r, m, tactics);
  if (!r.error) r.core = core_program(r.sharded(), m, options.passes.core());
  apply_tactics(r, tactics, rewrite_reports, options.strict >= 0);
  finish(r, options);
  return r;
}

template <class Schedule, class Partitioned>
constexpr Partitioned extend(Partitioned r, const Schedule& tactics,
                             const partition_options& options) {
  r.error.record(options.validate());
  vec<rewrite_report> rewrite_reports;
  for_each_tactic(tactics, [&](const auto& t) {
    rewrite_reports.push_back({});
    if (rewrites(t))
      r.error.record("S028", "extend: \"", t.name(),
                     "\" rewrites the program, which has been partitioned; give it to partition");
  });
  apply_tactics(r, tactics, rewrite_reports, options.strict >= 0);
  finish(r, options);
  return r;
}

template <class Partitioned>
constexpr Partitioned after(const Partitioned& p, int tactic, Partitioned r) {
  r.source = p.source;
  r.original = p.original;
  r.removed = p.removed;
  r.rewritten = p.rewritten;
  r.passes = p.passes;
  r.overlap = p.overlap;
  r.error = p.error;
  if (tactic < 0 || tactic >= static_cast<int>(p.tactics.size()))
    r.error.record("P007", "after: no tactic ", tactic, "; there are ", p.tactics.size());
  if (!r.error) apply_again(r, p, tactic);
  finish(r, partition_options());
  return r;
}

}  // namespace schedule_detail

namespace schedule_detail {

/// Error text for an argument that is not a schedule; empty otherwise.
template <class Schedule>
struct schedule_message {
  constexpr text operator()() const {
    if constexpr (Tactic<Schedule>)
      return "S039 partition: the schedule is a single tactic; write pt::schedule(tactic)";
    else if constexpr (!TacticRange<Schedule> && !boost::hana::Foldable<Schedule>::value)
      return "S039 partition: the argument is not a schedule; write pt::schedule(tactics...), or "
             "pass a vector of tactics of one type";
    return {};
  }
};
/// Accepts several tactics: the type that `{BP, MP}` converts to where a schedule is expected.
struct several_tactics {
  template <class... Tactics>
  constexpr several_tactics(const Tactics&...) {}
};
template <class Result>
struct several_message {
  constexpr text operator()() const {
    return "S039 partition: several tactics are passed without a schedule; write "
           "pt::schedule(tactics...)";
  }
};
template <class Schedule>
inline constexpr bool is_schedule =
    !Tactic<Schedule> && (TacticRange<Schedule> || boost::hana::Foldable<Schedule>::value);

/// Errors    P000 the schedule did not compile
template <class Partitioned>
constexpr Partitioned not_partitioned(Partitioned r) {
  r.error.record("P000", "partition: the schedule did not compile");
  return r;
}

}  // namespace schedule_detail

namespace separate {
partitioned partition(program&& source, const mesh& m,
                      const vec<schedule_detail::any_tactic>& tactics,
                      const partition_options& options);
partitioned extend(partitioned&& r, const vec<schedule_detail::any_tactic>& tactics,
                   const partition_options& options);
partitioned after(const partitioned& p, int tactic);
}  // namespace separate

/// Applies a schedule to a program on a mesh. The schedule is the result of `schedule(...)` or, if
/// it is known only at run time, a range of tactics of one type.
///
/// At run time an error is thrown as `error`. In constant evaluation it is stored in
/// `partitioned::error`, which `check` reports.
///
/// Cost      linear in ops and tactics, independent of the number of devices
/// Errors    S039 the argument is not a schedule, M001 to M005 the mesh, S020 a value is replicated
///           beyond `options.strict`, P001 the resulting program is wrong (if verified), those of
///           the options and of the tactics
///
/// (`Partitioned` is always `partitioned`. As a template parameter it keeps compilers from
/// instantiating the stages in files that only include this header.)
template <class Schedule, std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned partition(program source, const mesh& m, const Schedule& tactics,
                                const partition_options& options = {}) {
  if constexpr (!schedule_detail::is_schedule<Schedule>) {
    report_static_error<schedule_detail::schedule_message<Schedule>>();
    return schedule_detail::not_partitioned(Partitioned());
  } else {
    PARTITA_RETURN(schedule_detail::partition(static_cast<program&&>(source), m, tactics, options,
                                              Partitioned()),
                   separate::partition(static_cast<program&&>(source), m,
                                       schedule_detail::type_erased(tactics), options));
  }
}

/// Overloads for tactics that are passed without `schedule(...)`, in sequence or in braces.
///
/// Errors    S039 the argument is not a schedule
template <Tactic First, Tactic Second, class... More,
          std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned partition(const program&, const mesh&, const First&, const Second&,
                                const More&...) {
  report_static_error<schedule_detail::several_message<Partitioned>>();
  return schedule_detail::not_partitioned(Partitioned());
}
template <std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned partition(const program&, const mesh&, schedule_detail::several_tactics,
                                const partition_options& = {}) {
  report_static_error<schedule_detail::several_message<Partitioned>>();
  return schedule_detail::not_partitioned(Partitioned());
}

/// Applies further tactics to a partitioned program. The result is that of one schedule with all of
/// the tactics, without repeating the first ones. Options are those of the first call, except for
/// `strict` and `verify`.
///
/// Errors    S028 a tactic that rewrites the program (microbatch, remat) comes too late; and those
///           of partition
template <class Schedule, std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned extend(Partitioned r, const Schedule& tactics,
                             const partition_options& options = {}) {
  if constexpr (!schedule_detail::is_schedule<Schedule>) {
    report_static_error<schedule_detail::schedule_message<Schedule>>();
    return schedule_detail::not_partitioned(Partitioned());
  } else {
    PARTITA_RETURN(schedule_detail::extend(static_cast<Partitioned&&>(r), tactics, options),
                   separate::extend(static_cast<Partitioned&&>(r),
                                    schedule_detail::type_erased(tactics), options));
  }
}

/// Returns the program as it was after tactic number `tactic` of its schedule, counted from 0, with
/// its device-local program, cost and layouts.
///
/// Cost      one propagation and one lowering
///
/// Errors    P007 no such tactic
template <std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned after(const Partitioned& p, int tactic) {
  PARTITA_RETURN(schedule_detail::after(p, tactic, Partitioned()), separate::after(p, tactic));
}

}  // namespace partita
