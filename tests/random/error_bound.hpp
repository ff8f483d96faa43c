/// Bounds how much the order of sums can change the results of a program of real values: a running
/// error analysis, op by op, for the given values.
#pragma once

#include "values.hpp"

namespace random_test {

/// An array, and the maximum difference between its elements in two runs that sum in other orders.
struct bounded_array {
  pt::array values;
  double error = 0;
};

/// Runs every op on its operands, and on operands that are changed by their errors.
///
/// An elementwise function returns equal bits for equal operands. For n terms t in any order, a sum
/// has |error| <= (n - 1) u sum|t| (Higham, section 4.2), and a product of n factors one of (n - 1)
/// u times its size; both runs have one. Where an op jumps (a comparison of inexact values), its
/// error has no bound and is infinite. `Regrouped`: sums and products of two elements may be
/// grouped differently, too, so that each of them rounds.
template <bool Regrouped = false>
class error_analysis {
 public:
  static std::vector<bounded_array> run(const pt::program& p, std::vector<bounded_array> inputs) {
    std::vector<bounded_array> known(p.types.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) known[at(p.inputs[i])] = std::move(inputs[i]);
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      if (p.is(o, pt::op_role::parameter)) continue;
      std::vector<bounded_array> operands;
      for (value_id v : p.operands(o)) operands.push_back(known[at(v)]);
      auto results = result_of(p, o, operands);
      for (std::size_t r = 0; r < results.size(); ++r)
        known[at(p.op(o).result) + r] = std::move(results[r]);
    }
    std::vector<bounded_array> out;
    for (const auto& o : p.outputs) out.push_back(known[at(o.value)]);
    return out;
  }

 private:
  using list = std::vector<bounded_array>;
  using arrays = std::vector<pt::array>;
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static list result_of(const pt::program& p, pt::op_id o, const list& operands) {
    const pt::op_def* d = p.op(o).def;
    if (d == &pt::def<pt::op::call>) return run(p.region(o, 0), operands);
    if (d == &pt::def<pt::op::case_of>) return branch(p, o, operands);
    if (d == &pt::def<pt::op::scan>) return scan(p, o, operands);
    return is_linear(p, o) ? sums(p, o, operands) : function(p, o, operands);
  }

  /// Runs a single op of a program.
  static arrays apply(const pt::program& p, pt::op_id o, const arrays& operands) {
    pt::program alone;
    std::vector<value_id> values;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      values.push_back(alone.append(pt::def<pt::op::parameter>, {}, {}, operands[i].type()));
      alone.ops.back().name = alone.intern("x" + std::to_string(i));
      alone.inputs.push_back(values.back());
    }
    const pt::op_node& n = p.op(o);
    alone.append_op(*n.def, values, p.attrs(o));
    for (int r = 0; r < n.result_count; ++r)
      alone.outputs.push_back(
          {alone.append_result(p.type(n.result + r)), alone.intern("y" + std::to_string(r))});
    return pt::evaluate(alone, operands).arrays();
  }
  static pt::array only(const pt::program& p, pt::op_id o, const arrays& operands) {
    return apply(p, o, operands)[0];
  }

  static double greatest(const pt::array& a) {
    double most = 0;
    const pt::array wide = pt::as_type(a, dtype::f64);
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const double x = std::fabs(wide.data<double>()[i]);
      if (!(x <= most)) most = x == x ? x : infinite;
    }
    return most;
  }
  static pt::array changed(const pt::array& a, auto f) {
    const pt::array wide = pt::as_type(a, dtype::f64);
    return data::fill(a.type(), [&](std::int64_t i) { return f(wide.data<double>()[i]); });
  }
  static arrays values_of(const list& operands) {
    arrays out;
    for (const auto& x : operands) out.push_back(x.values);
    return out;
  }

  /// True if the op is linear in each of its floating-point operands. (An operand that selects is
  /// exact or has no bound.) Products of all elements are treated alike.
  static bool is_linear(const pt::program& p, pt::op_id o) {
    const pt::op_def* d = p.op(o).def;
    if (!pt::is_floating(p.type(p.op(o).result).element)) return false;
    const auto combine = [&] { return static_cast<pt::combiner>(p.attrs(o)[0]); };
    const auto adds = [&] {
      return combine() == pt::combiner::add || combine() == pt::combiner::multiply;
    };
    if (d == &pt::def<pt::op::reduce> || d == &pt::def<pt::op::reduce_window>) return adds();
    if (d == &pt::def<pt::op::scatter>) return adds();
    if (d == &pt::def<pt::op::cumsum>) {
      const pt::combiner c = pt::op::cumsum::combiner_of(p.attrs(o));
      return c == pt::combiner::add || c == pt::combiner::multiply;
    }
    return d == &pt::def<pt::op::dot_general> || d == &pt::def<pt::op::convolution> ||
           d == &pt::def<pt::op::select_and_scatter>;
  }
  static list sums(const pt::program& p, pt::op_id o, const list& operands) {
    const bool selects = p.op(o).def == &pt::def<pt::op::select_and_scatter>;
    arrays sizes = values_of(operands), more;
    std::int64_t terms = 2;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (selects && i == 0 && operands[i].error > 0) return {{only(p, o, sizes), infinite}};
      more.push_back(sizes[i]);
      terms += sizes[i].size();
      if (!pt::is_floating(sizes[i].element()) || (selects && i == 0)) continue;
      const double e = operands[i].error;
      more.back() = changed(sizes[i], [&](double x) { return std::fabs(x) + e; });
      sizes[i] = changed(sizes[i], [](double x) { return std::fabs(x); });
    }
    const pt::array upper = only(p, o, more), size = only(p, o, sizes);
    const double u = rounding_of(size.element());
    const double rounding = 2 * static_cast<double>(terms) * u * greatest(upper);
    return {{only(p, o, values_of(operands)), pt::max_difference(upper, size) + rounding}};
  }

  /// Returns the maximum change for operands that are off, over all combinations of signs.
  static list function(const pt::program& p, pt::op_id o, const list& operands) {
    const arrays exact = values_of(operands), results = apply(p, o, exact);
    std::vector<std::size_t> inexact;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].error > 0) inexact.push_back(i);
    list out;
    for (const auto& y : results) out.push_back({y, rounds(p, o) ? rounding_error(y) : 0});
    if (inexact.empty()) return out;
    if (selects(p, o)) return without_bound(out);
    // If there are many operands (a concatenation), each is changed separately.
    const bool few = inexact.size() <= 3;
    for (int signs = 0; signs < (few ? 1 << inexact.size() : 2); ++signs) {
      arrays off = exact;
      for (std::size_t k = 0; k < inexact.size(); ++k) {
        const std::size_t i = inexact[k];
        const double e = (signs >> (few ? k : 0)) % 2 != 0 ? -operands[i].error : operands[i].error;
        if (!std::isfinite(e)) return without_bound(out);
        off[i] = changed(exact[i], [&](double x) { return x + e; });
      }
      const arrays got = apply(p, o, off);
      for (std::size_t r = 0; r < out.size(); ++r) {
        // A derivative is nearly constant over so small an interval; the factor 2 covers the rest.
        const double moved = 2 * pt::max_difference(got[r], results[r]);
        const bool real = pt::is_floating(results[r].element());
        const double rounding = real ? rounding_error(got[r]) : 0;
        const double e = real ? moved + rounding : moved > 0 ? infinite : 0;
        if (!(e <= out[r].error)) out[r].error = e == e ? e : infinite;
      }
    }
    return out;
  }
  static double rounding_error(const pt::array& a) {
    return 4 * rounding_of(a.element()) * greatest(a);
  }
  static bool rounds(const pt::program& p, pt::op_id o) {
    const pt::op_def* d = p.op(o).def;
    return Regrouped && pt::is_floating(p.type(p.op(o).result).element) &&
           (d == &pt::def<pt::op::add> || d == &pt::def<pt::op::subtract> ||
            d == &pt::def<pt::op::multiply> || d == &pt::def<pt::op::divide>);
  }
  /// True if the op picks elements by comparing those of one operand.
  static bool selects(const pt::program& p, pt::op_id o) {
    const pt::op_def* d = p.op(o).def;
    return d == &pt::def<pt::op::top_k> || d == &pt::def<pt::op::select_and_gather> ||
           (d == &pt::def<pt::op::sort> && p.op(o).operand_count > 1) ||
           (d == &pt::def<pt::op::reduce> && p.op(o).result_count > 1);
  }
  static list without_bound(list results) {
    for (auto& x : results) x.error = infinite;
    return results;
  }

  static list branch(const pt::program& p, pt::op_id o, const list& operands) {
    const auto index = pt::as_type(operands[0].values, dtype::f64).data<double>()[0];
    const int last = p.op(o).region_count - 1;
    const int taken = index < 0 || index > last ? last : static_cast<int>(index);
    list results = run(p.region(o, taken), {operands.begin() + 1, operands.end()});
    return operands[0].error > 0 ? without_bound(results) : results;
  }

  static pt::array slice_of(const pt::array& a, std::int64_t i) {
    pt::builder b;
    const auto x = pt::ops::parameter(b, "x", a.type());
    shape one = a.shape(), rest = pt::op::scan::slice_of(a.type()).shape;
    ints start(at(one.rank), 0), limit(at(one.rank), pt::ops::whole);
    start[0] = i, limit[0] = i + 1;
    const auto y = pt::ops::reshape(b, pt::ops::slice(b, x, start, limit), rest);
    b.p.outputs.push_back({y, b.p.intern("y")});
    b.p.error.raise();
    return pt::evaluate(b.p, a).only();
  }
  static bounded_array stack_of(const list& slices, const tensor_type& type) {
    bounded_array out{data::fill(type, [](std::int64_t) { return 0; }), 0};
    if (slices.empty()) return out;
    pt::builder b;
    std::vector<value_id> parts;
    arrays values;
    shape one = type.shape;
    one[0] = 1;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const auto x = pt::ops::parameter(b, "x" + std::to_string(i), slices[i].values.type());
      parts.push_back(pt::ops::reshape(b, x, one));
      values.push_back(slices[i].values);
      out.error = std::max(out.error, slices[i].error);
    }
    b.p.outputs.push_back({pt::ops::concatenate(b, parts, 0), b.p.intern("y")});
    b.p.error.raise();
    out.values = pt::evaluate(b.p, values).only();
    return out;
  }
  static list scan(const pt::program& p, pt::op_id o, const list& operands) {
    const pt::op::scan::counts k(p.attrs(o));
    const auto constants = operands.begin() + k.constants;
    list carried(constants, constants + k.carried);
    std::vector<list> stacked(at(k.stacked), list(at(static_cast<int>(k.length))));
    for (std::int64_t t = 0; t < k.length; ++t) {
      const std::int64_t i = k.reversed ? k.length - 1 - t : t;
      list inputs{{data::fill({dtype::i32, {}}, [&](std::int64_t) { return i; }), 0}};
      inputs.insert(inputs.end(), operands.begin(), constants);
      inputs.insert(inputs.end(), carried.begin(), carried.end());
      for (auto x = constants + k.carried; x != operands.end(); ++x)
        inputs.push_back({slice_of(x->values, i), x->error});
      list outputs = run(p.region(o, 0), inputs);
      for (int s = 0; s < k.stacked; ++s)
        stacked[at(s)][static_cast<std::size_t>(i)] = outputs[at(k.carried + s)];
      carried.assign(outputs.begin(), outputs.begin() + k.carried);
    }
    for (int s = 0; s < k.stacked; ++s)
      carried.push_back(stack_of(stacked[at(s)], p.type(p.op(o).result + k.carried + s)));
    return carried;
  }
};

/// Returns, by output, the maximum difference that another order of sums may make (`Regrouped`: and
/// other groups of sums and products of two elements).
template <bool Regrouped = false>
inline std::vector<double> order_errors(const pt::program& p,
                                        const std::vector<pt::array>& inputs) {
  std::vector<bounded_array> exact;
  for (const auto& x : inputs) exact.push_back({x, 0});
  std::vector<double> out;
  for (const auto& y : error_analysis<Regrouped>::run(p, exact)) out.push_back(y.error);
  return out;
}

}  // namespace random_test
