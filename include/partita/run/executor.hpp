/// Executables: programs that are planned and ready to run.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <partita/run/interpreter.hpp>
#include <partita/run/results.hpp>
#if !defined(PARTITA_SEPARATE_KERNELS)
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

/// A program that was planned once and can run many times. Copies share the plan and the memory;
/// several threads may call one executable.
///
/// A device program runs on an emulated mesh inside this process: a value is held once per distinct
/// coordinate over the axes that it varies over, so what is replicated costs nothing.
///
/// Units     workspace_bytes() in bytes
/// Errors    R001 to R003 wrong arrays, R005 no kernel for an op, R006 an output that should be
///           replicated differs between devices, R007 an op whose nested programs nothing can run,
///           R008 too many threads, R009 more memory than there is; and what the program itself
///           carries
class executable {
 public:
  explicit executable(const program& p, const run_options& options = {})
      : executable(run_detail::as_device_program(p), options) {}
  explicit executable(const device_program& d, const run_options& options = {})
      : impl_(std::make_shared<run_detail::interpreter>(d, options)) {}

  /// Global arrays in the order of the inputs; gives global arrays in the order of the outputs.
  std::vector<array> operator()(std::span<const array> inputs) const { return impl_->run(inputs); }
  std::vector<array> operator()(const std::vector<array>& inputs) const {
    return impl_->run(inputs);
  }
  /// Arrays, xtensor containers, scalars, vectors of arrays and results, flattened in order.
  template <class... Args>
  requires(sizeof...(Args) != 1 ||
           !(std::convertible_to<const Args&, std::span<const array>> && ...)) results
  operator()(const Args&... args) const {
    return run_detail::run_arguments(*this, args...);
  }

  const std::shared_ptr<const std::vector<std::string>>& output_names() const {
    return impl_->names();
  }
  /// Memory for everything between the inputs and the outputs.
  std::int64_t workspace_bytes() const { return impl_->workspace_bytes(); }

 private:
  std::shared_ptr<run_detail::interpreter> impl_;
};

/// Runs one op on arrays; `results` are its types.
///
/// Errors    R002, R003 an array does not fit the op, R005 no kernel
inline std::vector<array> run_op(const op_def& def, std::span<const array> operands,
                                 std::span<const std::int64_t> attrs,
                                 std::span<const tensor_type> results,
                                 const run_options& options = {}) {
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
/// Runs an op with one result.
inline array run_op(const op_def& def, std::span<const array> operands,
                    std::span<const std::int64_t> attrs, const tensor_type& result,
                    const run_options& options = {}) {
  return run_op(def, operands, attrs, std::span(&result, 1), options).front();
}
/// Runs one op of a program, without nested programs, on arrays; gives its first result.
inline array run_op(const program& p, op_id o, std::span<const array> operands,
                    const run_options& options = {}) {
  return run_op(*p.op(o).def, operands, p.attrs(o), p.type(p.op(o).result), options);
}

}  // namespace partita
