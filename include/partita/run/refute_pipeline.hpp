/// `refute` for pipelines: inputs for which the meshes do not compute the step.
#pragma once

#include <memory>
#include <vector>

#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/run/pipeline.hpp>
#include <partita/run/refute.hpp>

namespace partita {

namespace run_detail {

/// Converts floats to f64, and limits loops.
inline pipelined runnable(pipelined p) {
  for (program* each : {&p.source, &p.original, &const_cast<program&>(p.core.p)}) widen(*each);
  const auto run_function = [](pipeline_unit& u) {
    u.device.local = runnable(std::move(u.device.local));
    for (auto* types : {&u.device.input_types, &u.device.output_types})
      for (tensor_type& t : *types)
        if (is_floating(t.element)) t.element = dtype::f64;
  };
  for (pipeline_unit& u : p.units) run_function(u);
  for (joint_function& f : p.joint_functions) run_function(f.whole);
  return p;
}
/// Returns flops plus bytes of all devices in one step.
inline std::int64_t work_of(const pipelined& p) {
  std::int64_t all = 0;
  for (const pipeline_unit& u : p.units)
    all = saturating_add(
        all, saturating_multiply(
                 work_of(estimate(u.device)),
                 saturating_multiply(u.device.mesh.devices(), u.inside ? p.microbatches : 1)));
  return all;
}
/// Returns the error of `v` if the pipeline cannot be run because its parts do not fit together.
/// Q011 to Q015 report that; Q001, Q002, Q006 and Q007 report invalid inputs, outputs or programs
/// of units.
inline failure parts_error(const verdict& v) {
  const std::string_view code = v.error.message.view().substr(0, 4);
  const bool inside = code == "Q001" || code == "Q002" || code == "Q006" || code == "Q007";
  return inside || (code >= "Q011" && code <= "Q015") ? v.error : failure();
}
/// Runs a pipeline and its source; `v` is the verdict of prove.
inline refutation refuted_by_runs(const program& source, const pipelined& p, const verdict& v,
                                  const refute_options& options) {
  refuter r(source, options);
  return r.run(p.error ? p.error : parts_error(v), work_of(p), [&] {
    auto meshes = std::make_shared<executable_pipeline>(runnable(p), r.kernels(), true);
    return [meshes](const std::vector<array>& inputs) { return meshes->of_every_device(inputs); };
  });
}

}  // namespace run_detail

/// Looks for inputs on which an emulated pipeline does not compute its source, or the step that it
/// was made from; see refute() for one program.
///
/// Errors    Q005 they differ, Q010 they cannot be run, Q011 to Q015 the parts of the pipeline do
///           not fit together
inline refutation refute(const program& source, const pipelined& p,
                         const refute_options& options = {}) {
  return run_detail::refuted_by_runs(source, p, prove(source, p), options);
}
inline refutation refute(const pipelined& p, const refute_options& options = {}) {
  return refute(p.original, p, options);
}

/// Tries to prove a pipeline; if that fails, looks for inputs on which it is wrong.
inline judgement prove_or_refute(const program& source, const pipelined& p,
                                 const prove_options& how = {}, const refute_options& runs = {}) {
  const verdict v = prove(source, p, how);
  if (v.proved) return {.kind = verdict_kind::proved, .error = {}, .inputs = {}};
  return run_detail::judged(v, run_detail::refuted_by_runs(source, p, v, runs));
}
inline judgement prove_or_refute(const pipelined& p, const prove_options& how = {},
                                 const refute_options& runs = {}) {
  return prove_or_refute(p.original, p, how, runs);
}

}  // namespace partita
