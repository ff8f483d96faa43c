/// What executables do: part of executor.hpp, or of the library that is compiled once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <partita/run/executor.hpp>
#include <partita/run/interpreter.hpp>
#if !defined(PARTITA_SEPARATE)
#include <partita/run/kernels/table.hpp>
#endif

namespace partita {

namespace run_detail {

/// A source program as a program for a mesh without axes.
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
    : executable(run_detail::as_device_program(p), options) {}
PARTITA_LINKAGE executable::executable(const device_program& d, const run_options& options)
    : impl_(std::make_shared<run_detail::interpreter>(d, options)) {}
PARTITA_LINKAGE std::vector<array> executable::operator()(std::span<const array> inputs) const {
  return impl_->run(inputs);
}
PARTITA_LINKAGE const std::shared_ptr<const std::vector<std::string>>& executable::output_names()
    const {
  return impl_->names();
}
PARTITA_LINKAGE std::int64_t executable::workspace_bytes() const {
  return impl_->workspace_bytes();
}

PARTITA_LINKAGE std::vector<array> run_op(const op_def& def, std::span<const array> operands,
                                          std::span<const std::int64_t> attrs,
                                          std::span<const tensor_type> results,
                                          const run_options& options) {
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
