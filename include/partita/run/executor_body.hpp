/// Implementation of executor.hpp. It is part of that header, or of the library that is compiled
/// once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <partita/run/executor.hpp>
#include <partita/run/interpreter.hpp>
#include <partita/run/probes.hpp>
#include <partita/schedule/sharding_of.hpp>
#if !defined(PARTITA_SEPARATE)
#include <partita/run/kernels/table.hpp>
#endif

namespace partita {

namespace run_detail {

/// Returns a source program as a program for a mesh without axes.
inline device_program as_device_program(const program& p) {
  device_program d;
  d.local = p;
  if (p.error) return d;
  for (int i = 0; i < p.input_count(); ++i) d.input_types.push_back(p.input_type(i));
  for (int i = 0; i < p.output_count(); ++i) d.output_types.push_back(p.output_type(i));
  d.inputs.resize(d.input_types.size(), layout{});
  d.outputs.resize(d.output_types.size(), layout{});
  return d;
}

}  // namespace run_detail

PARTITA_LINKAGE executable::executable(const program& p, const run_options& options)
    : executable(run_detail::probed_source(p, options.probes), options) {}
PARTITA_LINKAGE executable::executable(const run_detail::probed_source& s,
                                       const run_options& options)
    : executable(run_detail::as_device_program(s.p), s.names, options) {}
PARTITA_LINKAGE executable::executable(const device_program& d, const run_options& options)
    : executable(d, {}, options) {}
PARTITA_LINKAGE executable::executable(const device_program& d,
                                       const std::vector<std::string>& probes,
                                       const run_options& options)
    : impl_(std::make_shared<run_detail::interpreter>(d, options)),
      probes_(std::make_shared<const std::vector<std::string>>(probes)),
      outputs_(impl_->names()) {
  if (probes.empty()) return;
  auto own = *outputs_;
  own.resize(own.size() - probes.size());
  outputs_ = std::make_shared<const std::vector<std::string>>(std::move(own));
}
PARTITA_LINKAGE std::vector<array> executable::operator()(std::span<const array> inputs) const {
  std::vector<array> out = impl_->run(inputs);
  out.resize(outputs_->size());
  return out;
}
PARTITA_LINKAGE results executable::named_run(std::span<const array> inputs) const {
  std::vector<array> out = impl_->run(inputs);
  const auto own = out.begin() + static_cast<std::ptrdiff_t>(outputs_->size());
  std::vector<array> probes(own, out.end());
  out.resize(outputs_->size());
  return results(std::move(out), outputs_, std::move(probes), probes_);
}
PARTITA_LINKAGE executable run_detail::probed_executable(const partitioned& p,
                                                         const run_options& options) {
  const tag_filter wanted(options.probes);
  const probed_program probed = with_probes(p, wanted.names());
  probed.error.raise();
  wanted.need(probed.names, p.core.p);
  if (probed.names.empty()) return executable(p.device, options);
  std::vector<std::string> names;
  for (const text& name : probed.names) names.emplace_back(name.view());
  return executable(probed.device, names, options);
}
PARTITA_LINKAGE const std::shared_ptr<const std::vector<std::string>>& executable::output_names()
    const {
  return outputs_;
}
PARTITA_LINKAGE std::int64_t executable::workspace_bytes() const {
  return impl_->workspace_bytes();
}

namespace run_detail {
/// Rejects ops that run_op cannot run: ops that do not compute, and types that their rule rejects.
inline void need_fitting(const op_def& op, std::span<const array> operands,
                         std::span<const std::int64_t> attrs,
                         std::span<const tensor_type> results) {
  if (op.role == op_role::control && !op.passes_on)
    throw error(concat("R007 ", op.name,
                       ": run_op runs ops without nested programs; evaluate runs "
                       "this one"));
  if (op.role == op_role::parameter || op.role == op_role::wire)
    throw error(concat("R005 ", op.name, ": this op has no kernel; it does not compute anything"));
  if (op.operand_count >= 0 && op.operand_count != static_cast<int>(operands.size()))
    throw error(concat("R001 run: ", op.name, " has ", op.operand_count, " operands; ",
                       operands.size(), " arrays are given"));
  vec<tensor_type> types;
  for (const array& a : operands) types.push_back(a.type());
  infer_context c;
  c.operands = {types.data(), types.size()};
  c.attrs = {attrs.data(), attrs.size()};
  if (!results.empty()) c.declared = results[0];
  op.infer(c);
  c.error.raise();
  const std::size_t count = 1 + c.more.size();
  if (results.size() != count)
    throw error(concat("R001 run: ", op.name, " has ", count, " results; ", results.size(),
                       " types are given"));
  for (std::size_t i = 0; i < count; ++i)
    if (const tensor_type& made = i == 0 ? c.result : c.more[i - 1]; made != results[i])
      throw error(
          concat("R002 run: result ", i, " of ", op.name, " is ", made, ", not ", results[i]));
}
}  // namespace run_detail

PARTITA_LINKAGE std::vector<array> run_op(const op_def& def, std::span<const array> operands,
                                          std::span<const std::int64_t> attrs,
                                          std::span<const tensor_type> results,
                                          const run_options& options) {
  run_detail::need_fitting(def, operands, attrs, results);
  program p;
  std::vector<value_id> values;
  for (const array& a : operands) {
    values.push_back(p.append(partita::def<op::parameter>, {}, {}, a.type()));
    p.inputs.push_back(values.back());
  }
  p.append_op(def, values, attrs);
  for (const auto& t : results) p.outputs.push_back({p.append_result(t), {}});
  return executable(p, options)(operands);
}

}  // namespace partita
