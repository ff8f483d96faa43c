/// Explains why named parts of a step cannot be one loop over microbatches.
#pragma once

#include <partita/ir/program.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/scan.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita::mpmd_detail {

/// Two loops of a program, where the second one needs the complete result of the first one.
class whole_batch_need {
 public:
  constexpr whole_batch_need(const program& p, op_id first, op_id second)
      : p_(p), first_(first), second_(second) {}

  /// The text `multiply (tensor<4x4xf32>) of "b" needs the result of reduce (tensor<f32>) of "a"
  /// over all microbatches`.
  ///
  /// Cost: linear in ops.
  constexpr text words() const {
    const vec<int> result = results_behind();
    const auto operands = p_.operands(second_);
    for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
      const int r = result_of(operands[i], result);
      const program& body = p_.region(second_, 0);
      const op_id user = r < 0 ? -1 : user_of(body, body.inputs[1 + i]);
      if (user >= 0)
        return concat(shown(body, user), " needs the result of ",
                      shown(p_.region(first_, 0), maker(r)), " over all microbatches");
    }
    return "named parts need a result over all microbatches";
  }

 private:
  const program& p_;
  op_id first_, second_;

  constexpr int result_of(value_id v, const vec<int>& result) const {
    const op_id o = p_.producer(v);
    return o == first_ ? v - p_.op(o).result : result[o];
  }
  /// By op before the second loop: the result of the first loop that it is computed from, or -1.
  constexpr vec<int> results_behind() const {
    vec<int> result(p_.ops.size(), -1);
    for (op_id o = first_ + 1; o < second_; ++o)
      for (const value_id v : p_.operands(o))
        if (result[o] < 0) result[o] = result_of(v, result);
    return result;
  }
  static constexpr op_id user_of(const program& body, value_id v) {
    for (op_id o = 0; o < body.op_count(); ++o)
      for (const value_id each : body.operands(o))
        if (each == v) return o;
    return -1;
  }
  /// The op that computes a result in an iteration; for a sum, its summand.
  constexpr op_id maker(int result) const {
    const program& body = p_.region(first_, 0);
    const op::scan::counts k(p_.attrs(first_));
    const op_id o = body.producer(body.outputs[result].value);
    if (result >= k.carried) return o;
    const value_id carried = body.inputs[1 + k.constants + result];
    bool adds = false;
    for (const value_id v : body.operands(o)) adds = adds || v == carried;
    if (!adds) return o;
    for (const value_id v : body.operands(o))
      if (v != carried) return body.producer(v);
    return o;
  }
  constexpr text shown(const program& body, op_id o) const {
    const op_node& n = body.op(o);
    text out = concat(n.def->name, " (", body.type(n.result), ')');
    if (const int scope = p_.scopes.of(n.marks.source); scope >= 0) {
      out << " of \"" << p_.scopes.name(scope) << '"';
      if (n.marks.transposed > 0) out << '(' << n.marks.transposed << ')';
    } else if (const auto label = p_.labels.find(n.marks.source, n.def->id); !label.empty()) {
      out << " of \"" << label << '"';
    }
    return out;
  }
};

}  // namespace partita::mpmd_detail
