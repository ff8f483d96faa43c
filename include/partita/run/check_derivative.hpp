/// Checks derivative rules against central differences.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include <partita/dsl/grad.hpp>
#include <partita/ir/verify.hpp>
#include <partita/run/applied_op.hpp>
#include <partita/run/executor.hpp>

namespace partita {

/// Options of check_derivative.
struct derivative_options {
  /// Floating-point operands are in [low, high] and far from each other, so that no maximum changes
  /// within a step.
  double low = -2, high = 2;
  std::int64_t index_low = 0, index_high = 3;  ///< range of integer operands
  std::vector<array> operands;                 ///< replaces the generated operands, unless empty
  /// Defaults for binary64. Use about 1e-2 with kernels for binary32 only.
  double step = 1e-5, tolerance = 1e-6;
  /// True if the operands are batches of symmetric matrices. Each step then changes an element and
  /// its mirror image by half.
  bool symmetric = false;
  run_options run;  ///< with the op's kernel, if the library lacks one
};

/// Compares an op's derivative rule with central differences of a weighted sum of its results. It
/// leaves out infinite results (such as the maximum of nothing), where differences are meaningless.
/// Returns the number of partial derivatives compared: 0 if all results or all operands are
/// integers.
///
/// Errors    L003 values differ, or a cotangent has another type than its operand; G002 the op has
///           no rule
inline std::int64_t check_derivative(const op_def& op, const std::vector<tensor_type>& operands,
                                     const std::vector<std::int64_t>& attrs = {},
                                     const tensor_type& declared = {},
                                     const derivative_options& options = {}) {
  const run_detail::applied_op a = run_detail::apply_op(op, operands, attrs, declared);
  const auto refuse = [&](const auto&... parts) {
    text out = "L003 laws: derivative of ";
    a.print(out);
    out << " of ";
    run_detail::print_types(out, a.operands);
    out << ": operand ";
    (out << ... << parts);
    throw error(out.view());
  };
  const auto spread = [&](const tensor_type& t, std::size_t k, double low, double high) {
    return run_detail::filled(t, [=](std::int64_t i) {
      const auto r = (static_cast<std::uint64_t>(i) * 7919u + k * 31u) % 101u;
      return low +
             (high - low) * (static_cast<double>(r) + 0.07 * static_cast<double>(k + 1)) / 101;
    });
  };

  const auto mirrored = [](const shape& s, std::int64_t e) {
    const std::int64_t n = s[s.rank - 1], row = e / n % n, column = e % n;
    return e + (column - row) * n + row - column;
  };

  builder b;
  vec<value_id> x, wanted;
  std::vector<array> values = options.operands;
  std::vector<std::size_t> differentiated;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    x.push_back(ops::parameter(b, concat(k), operands[k]));
    const bool real = is_floating(operands[k].element);
    if (real) wanted.push_back(x.back()), differentiated.push_back(k);
    if (values.size() > k) continue;
    values.push_back(real ? spread(operands[k], k, options.low, options.high)
                          : run_detail::scattered_integers(operands[k], k, options.index_low,
                                                           options.index_high));
  }
  const value_id y = b.emit(op, {x.data(), x.size()}, attrs, declared);
  b.p.error.raise();
  value_id loss = -1;  // a weighted sum of all floating-point results
  const int results = b.p.op(b.p.producer(y)).result_count;
  for (int r = 0; r < results && !wanted.empty(); ++r) {
    if (!is_floating(b.type(y + r).element)) continue;
    const value_id wide = ops::convert(b, y + r, dtype::f64);
    const value_id weights = ops::parameter(b, concat("weights", r), b.type(wide));
    values.push_back(spread(b.type(weights), operands.size() + static_cast<std::size_t>(r), -1, 3));
    vec<std::int64_t> all;
    for (int d = 0; d < b.type(wide).shape.rank; ++d) all.push_back(d);
    const tensor_type type = b.type(wide);
    const value_id infinite = ops::constant(b, type, std::numeric_limits<double>::infinity());
    const value_id finite = ops::compare(b, ops::direction::ne, ops::abs(b, wide), infinite);
    const value_id product =
        ops::select(b, finite, ops::multiply(b, wide, weights), ops::constant(b, type, 0));
    const value_id sum = ops::reduce(b, product, combiner::add, {all.data(), all.size()});
    loss = loss < 0 ? sum : ops::add(b, loss, sum);
  }
  if (loss < 0) return 0;

  program forward = b.p;
  forward.outputs.push_back({loss, forward.intern("loss")});
  const vec<value_id> gradients = dsl_detail::reverse(b, loss, wanted);
  b.p.error.raise();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (b.type(gradients[i]) != b.type(wanted[i]))
      refuse(differentiated[i], ": its cotangent has type ", b.type(gradients[i]));
    b.p.outputs.push_back({gradients[i], b.p.intern(concat(i))});
  }
  verify(b.p).raise();
  const std::vector<array> found = executable(b.p, options.run)(values);
  const executable f(forward, options.run);
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t k = differentiated[i];
    const array start = as_type(values[k], dtype::f64), got = as_type(found[i], dtype::f64);
    for (std::int64_t e = 0; e < start.size(); ++e, ++compared) {
      const auto moved = [&](double by) {
        std::vector<array> changed = values;
        array at = start;
        double* x_at = at.mutable_data<double>();
        x_at[e] += options.symmetric ? by / 2 : by;
        if (options.symmetric) x_at[mirrored(start.shape(), e)] += by / 2;
        changed[k] = as_type(at, values[k].element());
        return f(changed).front().item<double>();
      };
      const double expected = (moved(options.step) - moved(-options.step)) / (2 * options.step);
      if (std::fabs(got.data<double>()[e] - expected) <=
          options.tolerance * (1 + std::fabs(expected)))
        continue;
      text position;
      char slopes[80];
      std::snprintf(slopes, sizeof slopes, "the rule gives %.7g, central differences %.7g",
                    got.data<double>()[e], expected);
      run_detail::print_position(position, start.shape(), e);
      refuse(k, ", element ", position, ": ", slopes);
    }
  }
  return compared;
}

}  // namespace partita
