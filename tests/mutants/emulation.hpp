/// Runs a device program and a source program and compares their results.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <partita/run/refute.hpp>

#include "../data.hpp"

namespace mutants {

namespace pt = partita;

// ---- Loops that do not end ----------------------------------------------------------------------

/// Passes on the condition of a loop a limited number of times, then throws.
struct fuel {
  static constexpr std::string_view name = "fuel";
  static constexpr int operand_count = 1;
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
  static inline thread_local int left = 0;
  static void run(const pt::kernel_context& c) {
    if (--left < 0) throw pt::error("fuel: a loop does not end");
    *c.out = *c.operands[0];
  }
};
/// The limit: mutants of conditions may hold forever.
inline constexpr int most_iterations = 500;

inline void add_fuel(pt::program& p) {
  for (auto& r : p.regions) add_fuel(r);
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    if (p.op(o).def != &pt::def<pt::op::while_loop>) continue;
    pt::program& condition = p.regions[p.op(o).region_begin];
    pt::value_id& holds = condition.outputs[0].value;
    const pt::value_id operands[] = {holds};
    holds = condition.append(pt::def<fuel>, operands, {}, pt::tensor_type{pt::dtype::boolean, {}});
  }
}

// ---- One run ------------------------------------------------------------------------------------

/// Returns the same program, whose outputs have an additional leading dimension: the copies of all
/// devices, which should be equal. `emulate` refuses outputs whose copies differ by a bit.
inline pt::device_program with_all_copies(const pt::device_program& d) {
  pt::device_program q = d;
  for (int i = 0; i < d.local.output_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto type = d.local.output_type(i);
    pt::shape local{1}, global{1};
    for (auto extent : type.shape) local.push_back(extent);
    pt::layout l;
    for (const auto& e : d.outputs[at]) l.push_back(e.axis, e.dim + 1);
    for (int a = 0; a < d.mesh.rank; ++a)
      if (d.outputs[at].dim_of(a) < 0) {
        l.push_back(a, 0);
        global[0] *= d.mesh.size(a);
      }
    for (auto extent : d.output_types[at].shape) global.push_back(extent);
    const pt::value_id operands[] = {d.local.outputs[at].value};
    q.local.outputs[at].value = q.local.append(pt::def<pt::op::reshape>, operands, {},
                                               pt::tensor_type{type.element, local});
    q.outputs[at] = l;
    q.output_types[at] = {type.element, global};
  }
  return q;
}

/// `unknown`: emulation does not define the result. A loop does not end, or values that decide
/// about loops and branches differ between devices.
enum class outcome { results, failure, unknown };
struct run_result {
  outcome what = outcome::failure;
  std::vector<pt::array> arrays = {};
};
inline outcome outcome_of(std::string_view message) {
  const bool unknown = message.starts_with("fuel") || message.starts_with("R014");
  return unknown ? outcome::unknown : outcome::failure;
}

class runnable {
 public:
  explicit runnable(pt::device_program d) : d_(std::move(d)) { add_fuel(d_.local); }

  run_result operator()(const std::vector<pt::array>& inputs) {
    try {
      return {outcome::results, run(inputs)};
    } catch (const std::exception& e) {
      const std::string_view message = e.what();
      if (all_copies_ || !message.starts_with("R006") || !ranks_allow())
        return {outcome_of(message)};
    }
    d_ = with_all_copies(d_);
    ready_.reset();
    all_copies_ = true;
    return (*this)(inputs);
  }

 private:
  pt::device_program d_;
  std::optional<pt::executable> ready_;
  bool all_copies_ = false;

  bool ranks_allow() const {
    bool low = true;
    for (const auto& t : d_.output_types) low = low && t.shape.rank < pt::max_rank;
    return low;
  }
  std::vector<pt::array> run(const std::vector<pt::array>& inputs) {
    if (!ready_) ready_.emplace(d_, pt::run_options{.kernels = {{&pt::def<fuel>, &fuel::run}}});
    fuel::left = most_iterations;
    return (*ready_)(inputs);
  }
};

/// True if elements are further apart than a bound. All NaN are equal, and 0 equals -0. `got` may
/// contain the array several times. `finite`: compares only elements that are numbers in both.
inline bool is_apart(const pt::array& got, const pt::array& expected, double bound,
                     bool finite = false) {
  if (got.element() != expected.element()) return true;
  const pt::array a = pt::as_type(got, pt::dtype::f64), b = pt::as_type(expected, pt::dtype::f64);
  if (b.size() == 0 || a.size() % b.size() != 0) return a.size() != b.size();
  const double *x = a.data<double>(), *y = b.data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double mine = x[i], other = y[i % b.size()];
    if (mine == other || (mine != mine && other != other)) continue;
    if (finite && !(std::isfinite(mine) && std::isfinite(other))) continue;
    if (!(std::fabs(mine - other) <= bound)) return true;
  }
  return false;
}

// ---- Real numbers -------------------------------------------------------------------------------

/// True if a program rounds floats to fewer bits or reads their bits. Such a program is not the
/// same in a wider type.
inline bool depends_on_width(const pt::program& p) {
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    const std::string_view name = p.op(o).def->name;
    if (name.starts_with("bitcast")) return true;
    if (name != "convert") continue;
    const pt::dtype from = p.type(p.operand(o, 0)).element, to = p.type(p.op(o).result).element;
    if (pt::is_floating(from) && pt::is_floating(to) && !pt::prove_detail::has_all_of(to, from))
      return true;
  }
  for (const auto& r : p.regions)
    if (depends_on_width(r)) return true;
  return false;
}
/// Returns the program with all floats as f64. For numbers of at most f32, roundings are then far
/// below real differences.
inline pt::device_program in_doubles(pt::device_program d) {
  pt::run_detail::widen(d.local);
  for (auto* types : {&d.input_types, &d.output_types})
    for (auto& t : *types)
      if (pt::is_floating(t.element)) t.element = pt::dtype::f64;
  return d;
}
inline bool has_doubles(const pt::program& p) {
  for (const auto& t : p.types)
    if (t.element == pt::dtype::f64) return true;
  for (const auto& r : p.regions)
    if (has_doubles(r)) return true;
  return false;
}

// ---- Many runs ----------------------------------------------------------------------------------

/// One set of inputs, the results of the source, and per output the bound on differences between
/// two runs that sum in another order.
struct sample {
  std::vector<pt::array> inputs;
  std::vector<pt::array> expected;
  std::vector<double> bounds;
};

/// A source program with which device programs are compared, on samples that are drawn on demand
/// and are always the same. Of the mutants of random programs that differ on one of 60 samples,
/// nine in ten differ on the first, and one in a hundred on none of the first eight.
class reference {
 public:
  using sampler = std::function<sample(int)>;
  reference() = default;
  reference(int few, int many, sampler draw) : few_(few), many_(many), draw_(std::move(draw)) {}

  enum answer { same, different, unknown };
  /// On a few samples.
  answer compare(const pt::device_program& d) { return compare(d, few_); }
  /// On many samples.
  answer compare_more(const pt::device_program& d) { return compare(d, many_); }
  /// The same without infinities and NaN in inputs; those that result count as equal to anything. A
  /// proof over the real numbers may claim 0 where an infinity is multiplied by 0.
  answer compare_finite(const pt::program& source, const pt::device_program& d) {
    runnable run(d);
    for (int i = 0; i < many_; ++i) {
      sample s{{}, {}, at(i).bounds};
      for (const auto& each : at(i).inputs) s.inputs.push_back(in_numbers(each));
      s.expected = pt::evaluate(source, s.inputs).arrays();
      if (const answer a = compare(run, s, true); a != same) return a;
    }
    return same;
  }
  /// The same over the real numbers, for programs that are equal but round differently, such as `x
  /// - (x + y)` and `-y`. Both programs run with all floats as f64, on many samples, with a bound
  /// far below real differences. Returns `different` if that decides nothing, because programs have
  /// f64 or round to fewer bits. `finite`: as compare_finite.
  answer compare_as_reals(const pt::program& source, const pt::device_program& d,
                          bool finite = false) {
    if (has_doubles(source) || has_doubles(d.local) || depends_on_width(source) ||
        depends_on_width(d.local))
      return different;
    pt::program wide = source;
    pt::run_detail::widen(wide);
    runnable run(in_doubles(d));
    for (int i = 0; i < many_; ++i) {
      std::vector<pt::array> inputs = at(i).inputs;
      for (auto& each : inputs)
        if (finite) each = in_numbers(each);
      if (const answer a = compare(run, sample_in_doubles(wide, inputs), finite); a != same)
        return a;
    }
    return same;
  }
  const sample& at(int i) {
    while (static_cast<int>(samples_.size()) <= i)
      samples_.push_back(draw_(static_cast<int>(samples_.size())));
    return samples_[static_cast<std::size_t>(i)];
  }

 private:
  int few_ = 0, many_ = 0;
  sampler draw_;
  std::vector<sample> samples_;

  answer compare(const pt::device_program& d, int samples) {
    runnable run(d);
    for (int i = 0; i < samples; ++i)
      if (const answer a = compare(run, at(i), false); a != same) return a;
    return same;
  }
  /// With small numbers instead of infinities and NaN.
  static pt::array in_numbers(const pt::array& a) {
    if (!pt::is_floating(a.element())) return a;
    pt::array made = pt::as_type(a, pt::dtype::f64);
    double* const x = made.mutable_data<double>();
    for (std::int64_t k = 0; k < made.size(); ++k)
      if (!std::isfinite(x[k])) x[k] = static_cast<double>(k % 5 - 2);
    return pt::as_type(made, a.element());
  }
  static sample sample_in_doubles(const pt::program& wide, const std::vector<pt::array>& inputs) {
    constexpr double rounding = 0x1p-40;  // 2^13 units of f64: sums of several thousand terms
    sample s;
    double greatest = 1;
    const auto note = [&](const pt::array& a) {
      const double* const x = a.data<double>();
      for (std::int64_t k = 0; k < a.size(); ++k)
        if (std::isfinite(x[k])) greatest = std::max(greatest, std::fabs(x[k]));
    };
    for (const auto& each : inputs) {
      const bool real = pt::is_floating(each.element());
      s.inputs.push_back(real ? pt::as_type(each, pt::dtype::f64) : each);
      if (real) note(s.inputs.back());
    }
    s.expected = pt::evaluate(wide, s.inputs).arrays();
    for (const auto& y : s.expected)
      if (pt::is_floating(y.element())) note(y);
    for (const auto& y : s.expected)
      s.bounds.push_back(pt::is_floating(y.element()) ? rounding * greatest : 0);
    return s;
  }
  static answer compare(runnable& run, const sample& s, bool finite) {
    const run_result got = run(s.inputs);
    if (got.what == outcome::unknown) return unknown;
    if (got.what == outcome::failure || got.arrays.size() != s.expected.size()) return different;
    for (std::size_t i = 0; i < s.expected.size(); ++i)
      if (is_apart(got.arrays[i], s.expected[i], s.bounds[i], finite)) return different;
    return same;
  }
};

}  // namespace mutants
