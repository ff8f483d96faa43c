/// An op applied to operands of given types, for checks of laws that run it and name it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <partita/op/registry.hpp>
#include <partita/run/compare.hpp>
#include <partita/run/element_text.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// Scatters the bits of a number (splitmix64).
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
/// Returns number `i` of a scattered sequence.
constexpr std::uint64_t scattered(std::uint64_t i) { return mixed((i + 1) * 0x9e3779b97f4a7c15u); }

/// Returns an array of this shape with `value(i)` in element i.
template <class F>
array filled(const tensor_type& t, F value) {
  array a(tensor_type{dtype::f64, t.shape});
  double* x = a.mutable_data<double>();
  for (std::int64_t i = 0; i < a.size(); ++i) x[i] = value(i);
  return as_type(a, t.element);
}

/// Returns scattered integers in [low, high].
inline array scattered_integers(const tensor_type& t, std::uint64_t seed, std::int64_t low,
                                std::int64_t high) {
  if (is_unsigned(t.element)) low = std::max<std::int64_t>(low, 0);
  if (t.element == dtype::boolean) low = 0, high = 1;
  return filled(t, [=](std::int64_t i) {
    const std::uint64_t r = scattered(scattered(seed) + static_cast<std::uint64_t>(i));
    return static_cast<double>(
        low + static_cast<std::int64_t>(r % static_cast<std::uint64_t>(high - low + 1)));
  });
}

/// An op applied to operands of given types.
struct applied_op {
  const op_def& op;
  vec<tensor_type> operands;
  vec<std::int64_t> attrs;
  tensor_type declared;

  /// Returns the types of the results.
  ///
  /// Errors    those of the op's shape rule
  vec<tensor_type> infer(const vec<tensor_type>& types, const tensor_type& as_declared) const {
    infer_context c;
    c.operands = {types.data(), types.size()};
    c.attrs = {attrs.data(), attrs.size()};
    c.declared = as_declared;
    op.infer(c);
    c.error.raise();
    vec<tensor_type> results{c.result};
    results.insert_back(c.more.begin(), c.more.end());
    return results;
  }
  /// Prints the op with its attributes, as in `reduce {max, dims=[0]}`.
  void print(text& out) const {
    program p;
    vec<value_id> values;
    for (const auto& t : operands) values.push_back(p.append(def<op::parameter>, {}, {}, t));
    const op_id o = p.append_op(op, {values.data(), values.size()}, {attrs.data(), attrs.size()});
    for (const auto& t : infer(operands, declared)) p.append_result(t);
    print_context c{p, o, nullptr, out};
    out << op.name;
    op.print(c);
  }
};
inline void print_types(text& out, const vec<tensor_type>& types) {
  out << '(';
  append_list(out, static_cast<int>(types.size()), [&](int i) { out << types[at(i)]; });
  out << ')';
}

inline applied_op apply_op(const op_def& op, const std::vector<tensor_type>& operands,
                           const std::vector<std::int64_t>& attrs, const tensor_type& declared) {
  return {op,
          {operands.data(), operands.data() + operands.size()},
          {attrs.data(), attrs.data() + attrs.size()},
          declared};
}

}  // namespace partita::run_detail
