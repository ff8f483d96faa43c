/// `refute`: inputs for which a device-local program does not compute its source.
///
/// It runs both programs, so it is in this folder: `prove` (prove/prove.hpp) never runs anything,
/// and is a constant expression.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include <partita/cost/cost.hpp>
#include <partita/ir/copy.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/fold.hpp>
#include <partita/op/while_loop.hpp>
#include <partita/prove/prove.hpp>
#include <partita/run/applied_op.hpp>
#include <partita/run/compare.hpp>
#include <partita/run/executor.hpp>

namespace partita {

/// Options of refute.
struct refute_options {
  int seeds = 8;  ///< the number of input sets to try
  /// Limit of flops and bytes of one run, of the source and of all devices together. Programs at
  /// full size exceed it and are not run (Q010).
  std::int64_t most_work = std::int64_t{1} << 32;
  /// Limit of the iterations of `while` loops in one run: a wrong program may never end.
  int most_iterations = 500;
  run_options run = {};  ///< with kernels for user-defined ops
};

/// The result of `refute`: inputs on which the programs differ; or none; or the reason why they
/// cannot be run.
struct refutation {
  bool refuted = false;
  failure error;           ///< Q005 refuted, Q010 unknown; empty: no inputs were found
  std::uint64_t seed = 0;  ///< of the inputs, see inputs_of_seed
  int output = -1;         ///< the first output that differs
  std::int64_t element = -1;
  double expected = 0, got = 0;
};

/// Returns inputs of a program, the same on every machine. Sets alternate between reals, positive
/// reals, small integers and larger ones. Integers are 0 or more, as indices are, except in one of
/// four sets.
inline std::vector<array> inputs_of_seed(const program& p, std::uint64_t seed);

namespace run_detail {

/// A generator of random numbers (splitmix64).
struct seeded {
  std::uint64_t state;

  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    return mixed(state);
  }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
  }
  double integer(std::int64_t low, std::int64_t high) {
    return static_cast<double>(
        low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1)));
  }
};
inline array drawn(const tensor_type& t, int kind, seeded& r) {
  static constexpr double reals[][2] = {{-1, 1}, {0.25, 2}, {-2, 2}, {-8, 8}};
  static constexpr int integers[][2] = {{0, 3}, {0, 1}, {0, 7}, {-2, 100}};
  return filled(t, [&](std::int64_t) {
    if (t.element == dtype::boolean) return r.integer(0, 1);
    if (is_floating(t.element) && kind == 2) return r.integer(-2, 2);
    if (is_floating(t.element)) return r.real(reals[kind][0], reals[kind][1]);
    return r.integer(is_unsigned(t.element) ? 0 : integers[kind][0], integers[kind][1]);
  });
}
/// Returns the array with all floats changed slightly.
inline array moved(const array& a, seeded& r) {
  if (!is_floating(a.element())) return a;
  const array wide = as_type(a, dtype::f64);
  return filled(a.type(), [&](std::int64_t i) {
    return wide.data<double>()[i] * (1 + 1e-11 * r.real(-1, 1));
  });
}

/// An op that passes on the condition of a loop, a limited number of times in a run.
struct fuel {
  static constexpr std::string_view name = "fuel";
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) { c.result = c.operands[0]; }
  static inline thread_local int left = 0;
  static void run(const kernel_context& c) {
    if (--left < 0) throw error("a loop has more iterations than refute_options allows");
    *c.out = *c.operands[0];
  }
};
inline void add_fuel(program& p) {
  for (auto& r : p.regions) add_fuel(r);
  for (op_id o = 0; o < p.op_count(); ++o) {
    if (p.op(o).def->id != def<op::while_loop>.id) continue;
    program& condition = p.regions[p.op(o).region_begin];
    value_id& holds = condition.outputs[0].value;
    const value_id operands[] = {holds};
    holds = condition.append(def<fuel>, operands, {}, tensor_type{dtype::boolean, {}});
  }
}
/// Converts floats to f64, in functions of folds, too: rounding errors are then far smaller than
/// real differences.
inline void widen(program& p) {
  const auto wide = [](dtype t) { return is_floating(t) ? dtype::f64 : t; };
  for (auto& t : p.types) t.element = wide(t.element);
  for (op_id o = 0; o < p.op_count(); ++o)
    if (p.op(o).def->id == def<op::fold>.id) op::fold::replace_types(p, o, wide);
  for (auto& r : p.regions) widen(r);
}
inline program runnable(program p) {
  widen(p);
  add_fuel(p);
  return p;
}
/// Returns the program with each f64 result changed by a few roundings, in every iteration of
/// loops, too. A change of the order of sums may cause as large a difference. (Slightly changed
/// inputs do not show that: a large value that is added and subtracted again leaves the same
/// rounding.)
inline program with_roundings(const program& p, seeded& r) {
  program q;
  program_copier copy(p, q);
  for (op_id o = 0; o < p.op_count(); ++o) {
    copy.op(o);
    for (const auto& nested : p.regions_of(o)) q.append_region(with_roundings(nested, r));
    const op_node& n = p.op(o);
    for (value_id v = n.result; v < n.result + n.result_count; ++v) {
      const tensor_type type = p.type(v);
      if (n.def->role != op_role::compute || n.operand_count == 0 || type.element != dtype::f64)
        continue;
      const double off = 1 + r.integer(-8, 8) * 0x1p-52;
      const std::int64_t bits[] = {std::bit_cast<std::int64_t>(off)};
      const value_id both[] = {copy.renamed[v], q.append(def<op::constant>, {}, bits, type)};
      copy.renamed[v] = q.append(def<op::multiply>, both, {}, type);
    }
  }
  copy.interface();
  return q;
}
/// Gives a device program the types of the source. Outputs get an additional first dimension, along
/// which devices keep separate copies of replicated values: these may differ by roundings.
inline device_program runnable(device_program d, const program& source) {
  d.local = runnable(d.local);
  d.input_types.clear();
  d.output_types.clear();
  for (int i = 0; i < source.input_count(); ++i) d.input_types.push_back(source.input_type(i));
  for (int i = 0; i < source.output_count(); ++i) {
    tensor_type all{source.output_type(i).element, {1}}, local{all.element, {1}};
    layout l;
    for (int a = 0; a < d.mesh.rank; ++a) {
      if (d.outputs[i].dim_of(a) >= 0) continue;
      l.push_back(a, 0);
      all.shape[0] *= d.mesh.size(a);
    }
    for (const auto& e : d.outputs[i]) l.push_back(e.axis, e.dim + 1);
    for (auto extent : source.output_type(i).shape) all.shape.push_back(extent);
    value_id& result = d.local.outputs[i].value;
    for (auto extent : d.local.type(result).shape) local.shape.push_back(extent);
    const value_id operands[] = {result};
    result = d.local.append(def<op::reshape>, operands, {}, local);
    d.outputs[i] = l;
    d.output_types.push_back(all);
  }
  return d;
}

/// Returns flops plus bytes.
inline std::int64_t work_of(const cost& c) { return saturating_add(c.flops, c.bytes); }

/// Runs a source and a program that should compute the same, on generated inputs.
class refuter {
 public:
  using arrays = std::vector<array>;
  /// A function that computes the outputs for inputs, with the additional dimension of runnable().
  using runner = std::function<arrays(const arrays&)>;

  refuter(const program& source, const refute_options& options)
      : options_(options), given_(source), source_(runnable(source)) {
    options_.run.kernels.push_back({&def<fuel>, &fuel::run});
  }
  const run_options& kernels() const { return options_.run; }
  const program& wide_source() const { return source_; }

  /// Compares both on all inputs. `error`: the reason why the program is invalid, or empty; `work`:
  /// flops and bytes of one run; `start()` returns a runner.
  template <class Start>
  refutation run(const failure& error, std::int64_t work, const Start& start) {
    found_.error = error;
    if (!can_be_run(work)) return found_;
    try {
      const executable source(source_, options_.run);
      const runner other = start();
      for (int s = 0; s < options_.seeds && !found_.refuted; ++s)
        try_seed(source, other, static_cast<std::uint64_t>(s));
    } catch (const std::exception& e) {
      if (!found_.refuted) unknown(e.what());
    }
    return found_;
  }

 private:
  refute_options options_;
  const program& given_;
  program source_;
  refutation found_;

  template <class... Why>
  void unknown(const Why&... why) {
    found_.error.record("Q010", "refute: not known: ", why...);
  }
  bool can_be_run(std::int64_t others) {
    if (found_.error) return false;
    for (int i = 0; i < given_.output_count(); ++i)
      if (given_.output_type(i).shape.rank == max_rank)
        unknown("an output has ", max_rank, " dimensions");
    const std::int64_t work = saturating_add(work_of(estimate(given_)), others);
    if (work > options_.most_work)
      unknown("a run takes ", work, " flops and bytes, more than refute_options.most_work, ",
              options_.most_work, "; trace the model at a smaller size");
    return !found_.error;
  }
  template <class Program>
  arrays results(const Program& of, const arrays& inputs) const {
    fuel::left = options_.most_iterations;
    return of(inputs);
  }
  void try_seed(const executable& source, const runner& device, std::uint64_t seed) {
    const arrays inputs = inputs_of_seed(source_, seed);
    const arrays expected = results(source, inputs), got = results(device, inputs);
    std::vector<double> bounds;
    for (std::size_t i = 0; i < expected.size(); ++i)
      bounds.push_back(is_floating(expected[i].element()) ? 1e-12 * (1 + greatest(expected[i]))
                                                          : 0);
    if (!differs(expected, got, bounds)) return;
    // Widen the bounds by the effect of slightly changed inputs before reporting a difference.
    seeded r{seed};
    for (int tries = 0; tries < 3; ++tries) {
      arrays near;
      for (const auto& x : inputs) near.push_back(moved(x, r));
      widen_bounds(bounds, expected, results(source, near));
      widen_bounds(bounds, got, results(device, near));
      widen_bounds(bounds, expected,
                   results(executable(with_roundings(source_, r), options_.run), inputs));
    }
    found_.refuted = differs(expected, got, bounds);
    found_.seed = seed;
    if (found_.refuted) report(expected);
  }
  static double greatest(const array& a) {
    double most = 0;
    const array wide = as_type(a, dtype::f64);
    for (std::int64_t i = 0; i < a.size(); ++i)
      if (const double x = std::fabs(wide.data<double>()[i]); x > most && std::isfinite(x))
        most = x;
    return most;
  }
  static void widen_bounds(std::vector<double>& bounds, const arrays& a, const arrays& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double moved = max_difference(a[i], b[i]);
      if (moved == 0) continue;
      bounds[i] = is_floating(a[i].element()) ? std::max(bounds[i], 16 * moved)
                                              : std::numeric_limits<double>::infinity();
    }
  }
  /// Records the first difference. `got` has the copies of all devices in its first dimension.
  bool differs(const arrays& expected, const arrays& got, const std::vector<double>& bounds) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const array a = as_type(got[i], dtype::f64), b = as_type(expected[i], dtype::f64);
      const double *x = a.data<double>(), *y = b.data<double>();
      for (std::int64_t k = 0; k < a.size(); ++k) {
        const double want = y[k % b.size()];
        if (x[k] == want || !std::isfinite(want) || std::fabs(x[k] - want) <= bounds[i]) continue;
        if (!std::isfinite(bounds[i])) continue;
        found_.output = static_cast<int>(i);
        found_.element = k % b.size();
        found_.expected = want;
        found_.got = x[k];
        return true;
      }
    }
    return false;
  }
  void report(const arrays& expected) {
    const auto i = static_cast<std::size_t>(found_.output);
    const shape& s = expected[i].shape();
    const strides by(s);
    text index;
    append_list(index, s.rank, [&](int d) { index << found_.element / by[d] % s[d]; });
    text numbers;
    numbers << "is ";
    print_number(numbers, found_.got);
    numbers << " on the devices, ";
    print_number(numbers, found_.expected);
    found_.error.record("Q005", "refute: output \"", given_.output_name(found_.output),
                        "\", element [", index, "], ", numbers,
                        " in the source, for the inputs of seed ", found_.seed);
  }
};

}  // namespace run_detail

inline std::vector<array> inputs_of_seed(const program& p, std::uint64_t seed) {
  run_detail::seeded r{seed};
  std::vector<array> out;
  for (int i = 0; i < p.input_count(); ++i)
    out.push_back(run_detail::drawn(p.input_type(i), static_cast<int>(seed % 4), r));
  return out;
}

/// Looks for inputs on which a device-local program does not compute its source. Floats of both are
/// f64. Only differences count that are far larger than the effect of changing inputs by 1e-11. So
/// programs that only order sums differently, or that depend on a rounding, are not refuted.
///
/// Errors    Q005 the programs differ, Q010 they cannot be run, and those of `prove` about its
///           arguments
inline refutation refute(const program& source, const device_program& d,
                         const refute_options& options = {}) {
  run_detail::refuter r(source, options);
  const std::int64_t work = saturating_multiply(run_detail::work_of(estimate(d)), d.mesh.devices());
  return r.run(prove_detail::given(source, d).check(), work, [&] {
    auto device =
        std::make_shared<executable>(run_detail::runnable(d, r.wide_source()), r.kernels());
    return [device](const std::vector<array>& inputs) { return (*device)(inputs); };
  });
}
/// Does the same for the result of `partition`.
template <WithDeviceProgram Partitioned>
refutation refute(const Partitioned& p, const refute_options& options = {}) {
  if constexpr (requires { p.given(); })
    return refute(p.given(), p.device, options);
  else
    return refute(p.source, p.device, options);
}

enum class verdict_kind { proved, refuted, not_proved };

/// The result of `prove_or_refute`.
struct judgement {
  verdict_kind kind = verdict_kind::not_proved;
  failure error;  ///< of prove and, if it ran, of refute
  refutation inputs;
};

namespace run_detail {
/// Combines the results of both; `v` is a verdict of prove that is not a proof.
inline judgement judged(const verdict& v, const refutation& inputs) {
  judgement j;
  j.inputs = inputs;
  if (j.inputs.refuted) j.kind = verdict_kind::refuted;
  if (j.inputs.error && j.inputs.error.message.view() != v.error.message.view())
    j.error.set(concat(j.inputs.error.message, " (", v.error.message, ')'));
  else
    j.error = v.error;
  return j;
}
}  // namespace run_detail

/// Tries to prove a device-local program; if that fails, looks for inputs on which it is wrong.
inline judgement prove_or_refute(const program& source, const device_program& d,
                                 const prove_options& how = {}, const refute_options& runs = {}) {
  const verdict v = prove(source, d, how);
  if (v.proved) return {.kind = verdict_kind::proved, .error = {}, .inputs = {}};
  return run_detail::judged(v, refute(source, d, runs));
}
/// Does the same for the result of `partition`.
template <WithDeviceProgram Partitioned>
judgement prove_or_refute(const Partitioned& p, const prove_options& how = {},
                          const refute_options& runs = {}) {
  if constexpr (requires { p.given(); })
    return prove_or_refute(p.given(), p.device, how, runs);
  else
    return prove_or_refute(p.source, p.device, how, runs);
}

}  // namespace partita
