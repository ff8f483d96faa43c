/// Values from outside that the program of an op uses.
///
/// Constants are copied into the program. Other scalars become operands of the op, since nested
/// programs of this library see only their arguments.
#pragma once

#include <partita/op/reverse_mode.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// Copies scalars that depend only on constants into a nested program.
///
/// Cost      at most 64 ops for each scalar; a larger expression stays outside
class constant_copier {
 public:
  constexpr constant_copier(const program& from, builder& to) : from_(from), to_(to) {}

  /// True if the value is a scalar that depends only on constants, through at most 64 ops.
  static constexpr bool applies(const program& p, value_id v) {
    int budget = 64;
    return applies(p, v, budget);
  }
  constexpr value_id operator()(value_id v) {
    for (const auto& pair : made_)
      if (pair.from == v) return pair.to;
    const op_id o = from_.producer(v);
    vec<value_id> operands;
    for (const value_id each : from_.operands(o)) operands.push_back((*this)(each));
    const value_id to = to_.emit(*from_.op(o).def, {operands.data(), operands.size()},
                                 from_.attrs(o), from_.type(v));
    made_.push_back({v, to});
    return to;
  }

 private:
  struct copied {
    value_id from, to;
  };
  const program& from_;
  builder& to_;
  vec<copied> made_;

  static constexpr bool applies(const program& p, value_id v, int& budget) {
    if (v < 0 || --budget < 0 || p.type(v).shape.rank != 0) return false;
    const op_id o = p.producer(v);
    const op_node& n = p.op(o);
    if (n.def->constant) return true;
    if (n.operand_count == 0 || n.result_count != 1 || n.region_count != 0) return false;
    if (!n.def->elementwise && n.def->id != def<op::bitcast_convert>.id) return false;
    for (const value_id each : p.operands(o))
      if (!applies(p, each, budget)) return false;
    return true;
  }
};

/// True if the programs of the op use only scalars from outside; otherwise an error.
constexpr bool captures_scalars(op_context& c) {
  for (const value_id v : c.captured)
    if (!c.failed() && c.b.type(v).shape.rank != 0)
      c.fail("H009", "its program uses a ", c.b.type(v),
             " from outside; scalars are supported there");
  return !c.failed();
}
/// Turns outside values that the program of a reduction uses into additional operands: the scalar
/// repeated, which the program passes on, and the scalar as its initial value. Results of these
/// operands come last.
///
///   reduce(x, i; (a, b) -> f(a, b, s)) =>
///     reduce(x, [s, s, ...], i, s; (a, t, b, u) -> f(a, b, t), t)
///
/// Errors    H009 a value from outside is not a scalar
constexpr bool close_reduction(op_context& c) {
  const std::size_t n = c.operands.size() / 2;
  if (c.captured.empty()) return !c.failed();
  if (!captures_scalars(c)) return false;
  program& f = c.regions[0];
  const std::size_t k = c.captured.size();
  if (f.inputs.size() != 2 * n + k || f.outputs.size() != n) {
    c.fail("H012", "its program has ", f.inputs.size() - k, " arguments and ", f.outputs.size(),
           " results; ", 2 * n, " and ", n, " are needed");
    return false;
  }
  const shape all = c.type(0).shape;
  vec<value_id> tensors(c.operands.begin(), c.operands.begin() + n), initial;
  for (const value_id v : c.captured) tensors.push_back(ops::broadcast_in_dim(c.b, v, all, {}));
  initial.insert_back(c.operands.begin() + n, c.operands.end());
  initial.insert_back(c.captured.begin(), c.captured.end());
  builder b;
  vec<value_id> given, passed;
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t i = 0; i < n + k; ++i) {
      const std::size_t from = i < n ? side * n + i : n + i;
      const value_id v = ops::parameter(b, "", f.input_type(static_cast<int>(from)));
      if (i < n) given.push_back(v);
      if (i >= n && side == 0) passed.push_back(v);
    }
  given.insert_back(passed.begin(), passed.end());
  vec<value_id> made = op_detail::append_with_marks(b, static_cast<program&&>(f), given);
  made.insert_back(passed.begin(), passed.end());
  for (const value_id v : made) b.p.outputs.push_back({v, {}});
  c.b.p.error.record(b.p.error);
  c.regions[0] = static_cast<program&&>(b.p);
  c.operands = tensors;
  c.operands.insert_back(initial.begin(), initial.end());
  c.captured.clear();
  return !c.failed();
}

}  // namespace partita::stablehlo_detail
