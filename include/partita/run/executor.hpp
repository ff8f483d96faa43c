/// Executables: programs that are planned and ready to run.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <partita/run/options.hpp>
#include <partita/run/results.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/separate.hpp>

namespace partita {

struct partitioned;

namespace run_detail {

class interpreter;
struct probed_source;

}  // namespace run_detail

/// A program that is planned once and can run many times. Copies share the plan and the memory;
/// several threads may call one executable.
///
/// A device program runs on an emulated mesh inside this process. A value is stored once for each
/// distinct coordinate over the axes along which it varies, so replicated values cost nothing.
///
/// Units     workspace_bytes() in bytes
/// Errors    R001 to R003 wrong arrays, R005 no kernel for an op, R006 an output that should be
///           replicated differs between devices, R007 an op with nested programs that the library
///           cannot run, R008 too many threads, R009 too much memory, R014 the condition of a loop
///           or the index of a case differs between devices, R015 an op names an axis that the mesh
///           does not have; and the error that the program itself has
class executable {
 public:
  explicit executable(const program& p, const run_options& options = {});
  explicit executable(const device_program& d, const run_options& options = {});
  /// Plans a program whose last outputs are the probes of these names.
  executable(const device_program& d, const std::vector<std::string>& probes,
             const run_options& options);

  /// Runs on global arrays in the order of the inputs; returns global arrays in the order of the
  /// outputs.
  std::vector<array> operator()(std::span<const array> inputs) const;
  std::vector<array> operator()(const std::vector<array>& inputs) const {
    return (*this)(std::span<const array>(inputs));
  }
  /// Runs on arrays, xtensor containers, scalars, vectors of arrays and results, flattened in
  /// order.
  template <class... Args>
  requires(sizeof...(Args) != 1 ||
           !(std::convertible_to<const Args&, std::span<const array>> && ...)) results
  operator()(const Args&... args) const {
    std::vector<array> inputs;
    (run_detail::flatten(inputs, args), ...);
    return named_run(inputs);
  }
  /// Does the same, and returns the names of the outputs and the probes, too.
  results named_run(std::span<const array> inputs) const;

  /// Returns the names of the outputs, in order.
  const std::shared_ptr<const std::vector<std::string>>& output_names() const;
  /// Returns the bytes of all memory between the inputs and the outputs.
  std::int64_t workspace_bytes() const;

 private:
  std::shared_ptr<run_detail::interpreter> impl_;
  std::shared_ptr<const std::vector<std::string>> probes_, outputs_;

  executable(const run_detail::probed_source& s, const run_options& options);
};

namespace run_detail {
/// Plans the device-local program, with its probes as additional outputs.
PARTITA_LINKAGE executable probed_executable(const partitioned& p, const run_options& options);
}  // namespace run_detail

/// Runs one op on arrays; `results` are its types.
///
/// Errors    R001 the number of arrays or results does not fit the op, R002 the type of a result
///           differs, R005 no kernel, R007 an op with nested programs, R015 an op that works on the
///           devices of a mesh, and the errors of the op's shape rule
PARTITA_LINKAGE std::vector<array> run_op(const op_def& def, std::span<const array> operands,
                                          std::span<const std::int64_t> attrs,
                                          std::span<const tensor_type> results,
                                          const run_options& options = {});
/// Runs an op with one result.
inline array run_op(const op_def& def, std::span<const array> operands,
                    std::span<const std::int64_t> attrs, const tensor_type& result,
                    const run_options& options = {}) {
  return run_op(def, operands, attrs, std::span(&result, 1), options).front();
}
/// Runs one op of a program, without nested programs, on arrays; returns its first result.
inline array run_op(const program& p, op_id o, std::span<const array> operands,
                    const run_options& options = {}) {
  return run_op(*p.op(o).def, operands, p.attrs(o), p.type(p.op(o).result), options);
}

}  // namespace partita

#if !defined(PARTITA_SEPARATE)
#include <partita/run/executor_body.hpp>
#endif
