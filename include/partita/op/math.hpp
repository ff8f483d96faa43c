/// exp, expm1, log, log1p, logistic, tanh, erf: elementwise functions of floating-point tensors.
///
/// Cost      counted as one flop per element
/// Errors    S104 not a floating-point type
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

template <class Op>
struct math_op : one_type_op<Op, need_floating, 1> {
  /// Multiplies the cotangent by `Op::slope(b, x, y)`, where y = f(x).
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0), y = c.b.p.op(c.op).result;
    c.operands[0] = ops::multiply(c.b, c.cotangent, Op::slope(c.b, x, y));
  }
};

/// Base of functions with a selectable accuracy (see numerics.hpp).
///
/// Errors    S199 the attributes are not an accuracy
template <class Op>
struct accurate_op : math_op<Op> {
  static constexpr void infer(infer_context& c) {
    math_op<Op>::infer(c);
    if (accuracy how; !c.attrs.empty() && !accuracy::load(c.attrs, how))
      c.fail("S199", Op::name, ": ", c.attrs.size(), " attributes that start with ", c.attrs[0],
             " are not an accuracy");
  }
  static constexpr void print(print_context& c) {
    if (c.p.op(c.op).attr_count == 0) return;
    c.out << " {";
    accuracy::print(c.out, c.p.attrs(c.op));
    c.out << '}';
  }
  static constexpr void parse(parse_context& c) {
    scanner in(c.in);
    if (!in.done() && !(accuracy::parse(in, c.attrs) && in.done()))
      c.error.record("P011", "parse: attributes of ", Op::name, ": \"accuracy=highest\" or ",
                     "\"accuracy=[absolute, relative, ulps]\" expected, found \"", c.in, '"');
  }
  static constexpr span<const std::int64_t> numerics(span<const std::int64_t> attrs, int) {
    return attrs;
  }
  static constexpr accuracy of(const program& p, op_id o) {
    accuracy how;
    accuracy::load(p.attrs(o), how);
    return how;
  }
};
template <class Op>
constexpr value_id emit_accurate(builder& b, value_id x, const accuracy& how) {
  if (how.mode == accuracy::standard) return b.emit(def<Op>, {x});
  vec<std::int64_t> attrs;
  how.store(attrs);
  return b.emit(def<Op>, span<const value_id>(&x, 1), {attrs.data(), attrs.size()});
}

/// Returns a number as a scalar with the element type of `like`.
constexpr value_id number_like(builder& b, value_id like, double v) {
  return ops::scalar(b, b.type(like).element, v);
}

struct exp : accurate_op<exp> {
  static constexpr std::string_view name = "exp";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder&, value_id, value_id y) { return y; }
};

/// Computes exp(x) - 1, accurate near 0. (StableHLO's exponential_minus_one.)
struct expm1 : accurate_op<expm1> {
  static constexpr std::string_view name = "expm1";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    return ops::add(b, y, number_like(b, y, 1));
  }
};

struct log : accurate_op<log> {
  static constexpr std::string_view name = "log";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    c.operands[0] = ops::divide(c.b, c.cotangent, c.b.p.operand(c.op, 0));
  }
};

/// Computes log(1 + x), accurate near 0. (StableHLO's log_plus_one.)
struct log1p : accurate_op<log1p> {
  static constexpr std::string_view name = "log1p";
  static constexpr bool costly = true;
  static constexpr void derive(derive_context& c) {
    const value_id x = c.b.p.operand(c.op, 0);
    c.operands[0] = ops::divide(c.b, c.cotangent, ops::add(c.b, x, number_like(c.b, x, 1)));
  }
};

/// Computes 1 / (1 + exp(-x)).
struct logistic : accurate_op<logistic> {
  static constexpr std::string_view name = "logistic";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    return ops::multiply(b, y, ops::subtract(b, number_like(b, y, 1), y));
  }
};

struct tanh : accurate_op<tanh> {
  static constexpr std::string_view name = "tanh";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id, value_id y) {
    const value_id square = ops::multiply(b, y, y), one = number_like(b, y, 1);
    return ops::subtract(b, one, square);
  }
};

struct erf : math_op<erf> {
  static constexpr std::string_view name = "erf";
  static constexpr bool costly = true;
  static constexpr value_id slope(builder& b, value_id x, value_id) {
    constexpr double two_over_sqrt_pi = 1.1283791670955126;
    const value_id gauss = ops::exp(b, ops::negate(b, ops::multiply(b, x, x)));
    return ops::multiply(b, gauss, number_like(b, x, two_over_sqrt_pi));
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::exp)
PARTITA_OP(op::expm1)
PARTITA_OP(op::log)
PARTITA_OP(op::log1p)
PARTITA_OP(op::logistic)
PARTITA_OP(op::tanh)
PARTITA_OP(op::erf)
}  // namespace partita

namespace partita::ops {

constexpr value_id exp(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::exp>(b, x, how);
}
constexpr value_id expm1(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::expm1>(b, x, how);
}
constexpr value_id log(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::log>(b, x, how);
}
constexpr value_id log1p(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::log1p>(b, x, how);
}
constexpr value_id logistic(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::logistic>(b, x, how);
}
constexpr value_id tanh(builder& b, value_id x, const accuracy& how) {
  return op::emit_accurate<op::tanh>(b, x, how);
}
constexpr value_id erf(builder& b, value_id x) { return b.emit(def<op::erf>, {x}); }

}  // namespace partita::ops
