/// Writers of elementwise ops, and of random bits.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/decompositions.hpp>
#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/write_composite.hpp>

namespace partita::stablehlo_detail {

/// Returns the operands of an elementwise op; those from `first` on are repeated to the result's
/// shape.
constexpr vec<ssa> spread_operands(body_writer& w, op_id o, int first = 0) {
  const shape& to = w.result_type(o).shape;
  vec<ssa> list;
  for (int i = 0; i < w.p.op(o).operand_count; ++i) {
    const tensor_type& t = w.type_of(o, i);
    const bool spread = i >= first && t.shape.rank != to.rank;
    list.push_back(spread ? w.everywhere(w.operand(o, i), t.element, to) : w.operand(o, i));
  }
  return list;
}
/// `name` includes its dialect.
constexpr void write_elementwise(body_writer& w, op_id o, std::string_view name) {
  const vec<ssa> x = spread_operands(w, o);
  const tensor_type& result = w.result_type(o);
  w.begin(o);
  w.out() << name << ' ';
  append_list(w.out(), static_cast<int>(x.size()),
              [&](int i) { w.out() << x[static_cast<std::size_t>(i)]; });
  write_accuracy(w.out(), w.p.attrs(o));
  const bool typed_twice = name.starts_with("chlo");
  if (w.type_of(o, 0).element == result.element) {
    w.out() << " : ";
    w.type(result);
    if (typed_twice) {
      w.out() << " -> ";
      w.type(result);
    }
    w.out() << '\n';
    return;
  }
  vec<tensor_type> from;
  for (std::size_t i = 0; i < x.size(); ++i)
    from.push_back({w.type_of(o, static_cast<int>(i)).element, result.shape});
  w.signature({from.data(), from.size()}, {&result, 1});
}
constexpr void write_compare(body_writer& w, op_id o) {
  constexpr std::string_view names[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  const vec<ssa> x = spread_operands(w, o);
  const tensor_type& result = w.result_type(o);
  w.begin(o);
  w.out() << "stablehlo.compare  " << names[w.p.attrs(o)[0]] << ", " << x[0] << ", " << x[1];
  const tensor_type from[] = {{w.type_of(o, 0).element, result.shape},
                              {w.type_of(o, 1).element, result.shape}};
  w.signature(from, {&result, 1});
}
constexpr void write_select(body_writer& w, op_id o) {
  const vec<ssa> x = spread_operands(w, o, 1);
  const tensor_type& result = w.result_type(o);
  w.begin(o);
  w.out() << "stablehlo.select " << x[0] << ", " << x[1] << ", " << x[2] << " : ";
  w.type(w.type_of(o, 0));
  w.out() << ", ";
  w.type(result);
  w.out() << '\n';
}
/// (Bounds may be scalars in StableHLO, too.)
constexpr void write_clamp(body_writer& w, op_id o) {
  const tensor_type& result = w.result_type(o);
  ssa x = w.operand(o, 1);
  if (w.type_of(o, 1).shape.rank != result.shape.rank)
    x = w.everywhere(x, result.element, result.shape);
  w.begin(o);
  w.out() << "stablehlo.clamp " << w.operand(o, 0) << ", " << x << ", " << w.operand(o, 2);
  const tensor_type from[] = {w.type_of(o, 0), result, w.type_of(o, 2)};
  w.signature(from, {&result, 1});
}
/// Writes abs and sign of unsigned integers, which StableHLO lacks.
constexpr bool write_of_unsigned(body_writer& w, op_id o, bool is_abs) {
  const dtype t = w.result_type(o).element;
  if (!is_unsigned(t)) return false;
  write_composed(w, o, [&](builder& b, const vec<value_id>& x) {
    return one(is_abs ? x[0] : ops::minimum(b, x[0], ops::integer(b, t, 1)));
  });
  return true;
}
constexpr void write_abs(body_writer& w, op_id o) {
  if (!write_of_unsigned(w, o, true)) write_elementwise(w, o, "stablehlo.abs");
}
constexpr void write_sign(body_writer& w, op_id o) {
  if (!write_of_unsigned(w, o, false)) write_elementwise(w, o, "stablehlo.sign");
}
constexpr void write_random_bits(body_writer& w, op_id o) {
  const shape to = w.result_type(o).shape;
  write_composed(
      w, o, [&](builder& b, const vec<value_id>& x) { return one(as_rounds(b, x[0], x[1], to)); });
}

/// Elementwise ops that differ at most in their names.
struct same_name {
  const op_def* op;
  std::string_view name;
};
inline constexpr same_name written_elementwise[] = {
    {&def<op::add>, "stablehlo.add"},
    {&def<op::atan2>, "stablehlo.atan2"},
    {&def<op::cbrt>, "stablehlo.cbrt"},
    {&def<op::ceil>, "stablehlo.ceil"},
    {&def<op::cosine>, "stablehlo.cosine"},
    {&def<op::count_leading_zeros>, "stablehlo.count_leading_zeros"},
    {&def<op::digamma>, "chlo.digamma"},
    {&def<op::divide>, "stablehlo.divide"},
    {&def<op::erf>, "chlo.erf"},
    {&def<op::erf_inv>, "chlo.erf_inv"},
    {&def<op::erfc>, "chlo.erfc"},
    {&def<op::exp>, "stablehlo.exponential"},
    {&def<op::expm1>, "stablehlo.exponential_minus_one"},
    {&def<op::floor>, "stablehlo.floor"},
    {&def<op::is_finite>, "stablehlo.is_finite"},
    {&def<op::lgamma>, "chlo.lgamma"},
    {&def<op::log>, "stablehlo.log"},
    {&def<op::log1p>, "stablehlo.log_plus_one"},
    {&def<op::logical_and>, "stablehlo.and"},
    {&def<op::logical_not>, "stablehlo.not"},
    {&def<op::logical_or>, "stablehlo.or"},
    {&def<op::logical_xor>, "stablehlo.xor"},
    {&def<op::logistic>, "stablehlo.logistic"},
    {&def<op::maximum>, "stablehlo.maximum"},
    {&def<op::minimum>, "stablehlo.minimum"},
    {&def<op::multiply>, "stablehlo.multiply"},
    {&def<op::negate>, "stablehlo.negate"},
    {&def<op::popcnt>, "stablehlo.popcnt"},
    {&def<op::power>, "stablehlo.power"},
    {&def<op::remainder>, "stablehlo.remainder"},
    {&def<op::round_nearest_away>, "stablehlo.round_nearest_afz"},
    {&def<op::round_nearest_even>, "stablehlo.round_nearest_even"},
    {&def<op::rsqrt>, "stablehlo.rsqrt"},
    {&def<op::shift_left>, "stablehlo.shift_left"},
    {&def<op::shift_right_arithmetic>, "stablehlo.shift_right_arithmetic"},
    {&def<op::shift_right_logical>, "stablehlo.shift_right_logical"},
    {&def<op::sine>, "stablehlo.sine"},
    {&def<op::sqrt>, "stablehlo.sqrt"},
    {&def<op::subtract>, "stablehlo.subtract"},
    {&def<op::tan>, "stablehlo.tan"},
    {&def<op::tanh>, "stablehlo.tanh"},
};

}  // namespace partita::stablehlo_detail
