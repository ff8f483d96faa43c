/// `prove` for pipelines: checks that the units of all meshes, and the values they send, compute
/// the source.
///
/// batch_checker, or own_loop_checker, proves that the program of one microbatch computes the
/// source, and value_flow that units compute its values. list_walker checks that calls use these
/// values, and when they are available; joint_checker checks what merged calls run. If claims do
/// not suffice, step_elements plays the list of all steps on formulas.
#pragma once

#include <partita/mpmd/check_joint.hpp>
#include <partita/mpmd/given_pipeline.hpp>
#include <partita/mpmd/prove_batch.hpp>
#include <partita/mpmd/prove_own_loop.hpp>
#include <partita/mpmd/prove_steps.hpp>
#include <partita/mpmd/value_flow.hpp>
#include <partita/mpmd/walk_lists.hpp>
#include <partita/prove/prove.hpp>

namespace partita {

namespace mpmd_detail {

/// The first output for which the program of one microbatch is not proved, or -1.
constexpr int wrong_microbatch(const program& source, const pipelined& p) {
  if (verify(p.source)) return 0;
  const op_id loop = p.own_loop < 0 ? -1 : find_loop(source, p.own_loop, p.microbatches);
  if (loop >= 0) return own_loop_checker(source, loop, p.source).run();
  return batch_checker(source, p.source, p.microbatches).run();
}
/// Finds the first mistake by claims, or the first output that they do not prove (Q003, Q004).
constexpr failure check_by_claims(const program& source, const pipelined& p,
                                  const prove_options& options) {
  failure f = given_pipeline(source, p).check();
  if (f) return f;
  std::int64_t steps = source.op_count() + p.source.op_count();
  for (const pipeline_unit& u : p.units) steps += u.device.local.op_count();
  if (options.most_steps >= 0 && options.most_steps < steps) {
    f.record("Q008", "prove: it takes ", steps, " steps; at most ", options.most_steps,
             " are allowed");
    return f;
  }
  value_flow flow(p, f);
  flow.run();
  if (!f) joint_checker(p, f).run();
  if (!f) list_walker(p, flow.givers(), f).run();
  int open = -1;
  for (int i = source.output_count(); i-- > 0 && !f;)
    if (!flow.check_output(i)) open = i;
  if (f) return f;
  if (const text lost = flow.lost(); open >= 0)
    f.record(lost.empty() ? "Q004" : "Q003", "prove: output \"", source.output_name(open),
             "\", on mesh \"", p.topology.name(p.output_mesh[open]),
             "\", is not known to be that of the source", lost.view());
  if (f) return f;
  open = wrong_microbatch(source, p);
  if (open < 0) return f;
  const live_program live = without_dead_code(source);
  if (live.changed && wrong_microbatch(live.p, p) < 0) return f;
  f.record("Q004", "prove: output \"", source.output_name(open),
           "\" is not known to be computed microbatch by microbatch as the source computes it");
  return f;
}
/// Plays the steps on formulas, then on numbers: `proved` if no difference is found, `differs` if
/// numbers differ.
constexpr prove_detail::element_verdict compare_steps(const program& source, const pipelined& p,
                                                      std::int64_t most) {
  using prove_detail::element_verdict;
  element_verdict v;
  if (most <= 0) return v;
  v = step_elements(source, p, most).check();
  const bool compared = v.kind == element_verdict::proved || v.kind == element_verdict::differs;
  for (int seed = 1; compared && seed <= 4 && !std::is_constant_evaluated(); ++seed)
    if (const element_verdict at = step_elements(source, p, most).at_numbers(seed).check();
        at.kind == element_verdict::differs)
      return at;
  if (v.kind == element_verdict::differs && !std::is_constant_evaluated())
    v.kind = element_verdict::not_known;  // (equal formulas may look different)
  return v;
}
/// Proves a pipeline by claims, or by elements over its steps.
constexpr verdict prove(const program& source, const pipelined& p, const prove_options& options) {
  verdict v;
  v.error = check_by_claims(source, p, options);
  v.proved = !v.error;
  if (v.proved) v.method = proof_method::claims;
  if (v.proved) return v;
  const std::string_view code = v.error.message.view().substr(0, 4);
  if (code != "Q003" && code != "Q004") return v;
  std::int64_t most = options.most_elements;
  if (std::is_constant_evaluated()) most = options.most_elements_in_constants;
  const prove_detail::element_verdict steps = compare_steps(source, p, most);
  v.undecided = steps.kind != prove_detail::element_verdict::differs;
  if (steps.kind != prove_detail::element_verdict::proved) return v;
  v = {};
  v.proved = v.by_elements = true;
  v.method = proof_method::elements;
  return v;
}

}  // namespace mpmd_detail

namespace separate {
verdict prove(const program& source, const pipelined& p, const prove_options& options);
}  // namespace separate

/// Proves that a pipeline computes the source for all inputs, up to the order of sums.
///
/// Cost      linear in ops of units, in transfers and in calls
/// Errors    those of prove() of one program; Q011 the parts of the pipeline are inconsistent, Q012
///           a call uses, or a mesh sends, a value that is not available then; Q013 a call runs
///           twice or not at all; Q014 a value is used or sent in the wrong layout; Q015 a joint
///           call differs from its parts
constexpr verdict prove(const program& source, const pipelined& p,
                        const prove_options& options = {}) {
  PARTITA_RETURN(mpmd_detail::prove(source, p, options), separate::prove(source, p, options));
}
/// Proves a pipeline against the step that it was made from.
constexpr verdict prove(const pipelined& p, const prove_options& options = {}) {
  return prove(p.original, p, options);
}

/// Returns a pipeline after proving it. Without a proof it has an error; see proved() of one
/// program.
constexpr pipelined proved(pipelined p) {
  if (p.error) return p;
  p.error.record(prove(p).error);
  p.error.raise();
  p.proved = !p.error;
  return p;
}

/// Runs the proof of a pipeline that partition_options::prove requests by `proof` or
/// `proof_in_debug`. The latter reports mistakes only: a pipeline that is neither proved nor
/// refuted passes.
///
/// Errors    those of prove(); O148 another function, which handles programs on one mesh only
constexpr void prove_when_asked(pipelined& p, decltype(partition_options::prove) asked) {
  if (asked == &no_proof) return;
  if (asked == &proof_in_debug && (std::is_constant_evaluated() || !proves_in_debug)) return;
  if (asked != &proof && asked != &proof_in_debug)
    p.error.record("O148",
                   "pipeline: prove: a custom proof function handles programs on one mesh only; "
                   "pass pt::proof or pt::proof_in_debug");
  if (p.error) return;
  const verdict v = prove(p);
  p.proved = v.proved;
  if (asked == &proof || !v.undecided) p.error.record(v.error);
}

}  // namespace partita
