/// `partition`: runs a schedule over a program.
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

/// A typed list of tactics, applied first to last.
template <Tactic... Tactics>
constexpr auto schedule(Tactics... tactics) {
  return boost::hana::make_tuple(tactics...);
}

/// For partition_options::prove: nothing is proved, not by default either.
constexpr bool no_proof(const program&, const device_program&, failure&) { return false; }

/// What `partition` is to refuse and to check, and which passes run over the collectives.
struct partition_options {
  static constexpr std::int64_t off = -1;
  /// A value of more bytes than this on one device that is replicated by default is an error
  /// (S020): it is to be sharded, or placed `replicated`.
  std::int64_t strict = off;
  partita::passes passes = {};
  /// Rewrites that let collectives run beside kernels, for one machine.
  overlapping overlap = {};
  /// Verifies the device-local program that was made (P001). Builds without NDEBUG do so at run
  /// time in any case; in constant evaluation it takes a sixth of the time again, so that `check`
  /// does it on demand only.
  bool verify = false;
  /// Proves the device-local program that was made, or says why it is not proved (Q...): what
  /// <partita/prove/prove.hpp> calls `proof`, or `proof_in_debug`. On several meshes the pipeline,
  /// with <partita/mpmd/prove_pipeline.hpp>. Where nothing is said, programs that use the library
  /// that is compiled once (partita::separate) prove it in builds without NDEBUG, at run time;
  /// `no_proof` turns that off.
  bool (*prove)(const program& source, const device_program& made, failure& f) = nullptr;

  /// Errors    S027 `strict` is negative but not `off`, C001 a size of a pass is negative
  constexpr failure validate() const {
    failure f;
    if (strict < 0 && strict != off)
      f.record("S027", "strict: the limit is ", strict,
               " bytes; give 0 or more, or pt::partition_options::off (", off, ')');
    f.record(passes.validate());
    return f;
  }
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
  const vec<rewritten_by> said = rewrite(r, tactics);
  if (!r.error) r.core = core_program(r.sharded(), m, options.passes.core());
  apply_tactics(r, tactics, said);
  finish(r, options);
  return r;
}

template <class Schedule, class Partitioned>
constexpr Partitioned extend(Partitioned r, const Schedule& tactics,
                             const partition_options& options) {
  r.error.record(options.validate());
  vec<rewritten_by> said;
  for_each_tactic(tactics, [&](const auto& t) {
    said.push_back({});
    if (rewrites(t))
      r.error.record("S028", "extend: \"", t.name(),
                     "\" rewrites the program, which has been partitioned; give it to partition");
  });
  apply_tactics(r, tactics, said);
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

/// What is said of a schedule that is none; nothing of one.
template <class Schedule>
struct schedule_message {
  constexpr text operator()() const {
    if constexpr (Tactic<Schedule>)
      return "S039 partition: a tactic stands where the schedule is wanted; write "
             "pt::schedule(tactic)";
    else if constexpr (!TacticRange<Schedule> && !boost::hana::Foldable<Schedule>::value)
      return "S039 partition: what stands where the schedule is wanted is none; write "
             "pt::schedule(tactics...), or give a vector of tactics of one type";
    return {};
  }
};
/// Stands for several tactics, and is what `{BP, MP}` becomes, where a schedule is wanted.
struct several_tactics {
  template <class... Tactics>
  constexpr several_tactics(const Tactics&...) {}
};
template <class Result>
struct several_message {
  constexpr text operator()() const {
    return "S039 partition: several tactics stand where the schedule is wanted; write "
           "pt::schedule(tactics...)";
  }
};
template <class Schedule>
inline constexpr bool is_schedule =
    !Tactic<Schedule> && (TacticRange<Schedule> || boost::hana::Foldable<Schedule>::value);

/// Errors    P000 it did not compile
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

/// Applies a schedule to a program on a mesh. The schedule is what `schedule(...)` gives, or, where
/// it is known only at run time, a range of tactics of one type.
///
/// At run time a mistake is thrown as `error`; in constant evaluation it is kept in
/// `partitioned::error`, which `check` shows. Cost: linear in ops and tactics, independent of the
/// number of devices.
/// Errors    S039 it is no schedule, M001 to M004 the mesh, S020 a value is replicated against
/// `options.strict`, P001 the
///           program that was made is wrong (if that is checked), those of the options and of the
///           tactics
///
/// (`Partitioned` is what it says: as a parameter it keeps compilers from making what the stages
/// consist of where the header is only included.)
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
                                       schedule_detail::erased(tactics), options));
  }
}

/// What is written without `schedule(...)`: one tactic after the other, or in braces.
///
/// Errors    S039 it is no schedule
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

/// Goes on from where a schedule ended: the same as its tactics and these in one schedule, without
/// doing the first ones again. Options are those of the first call, but for `strict` and `verify`.
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
    PARTITA_RETURN(
        schedule_detail::extend(static_cast<Partitioned&&>(r), tactics, options),
        separate::extend(static_cast<Partitioned&&>(r), schedule_detail::erased(tactics), options));
  }
}

/// The program as it was after tactic number `tactic` of its schedule, counted from 0: device-local
/// program, cost, layouts and all. Costs a propagation and a lowering.
///
/// Errors    P007 there is no such tactic
template <std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned after(const Partitioned& p, int tactic) {
  PARTITA_RETURN(schedule_detail::after(p, tactic, Partitioned()), separate::after(p, tactic));
}

}  // namespace partita
