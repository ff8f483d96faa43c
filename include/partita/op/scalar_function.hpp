/// Functions of scalars, encoded as attributes of an op.
#pragma once

#include <partita/op/step_ops.hpp>

namespace partita::op {

/// A function of scalars encoded as integers, which are stored as attributes of an op. It is a list
/// of steps. Each step operates on the inputs and on the results of earlier steps. A step is
/// encoded as: the index of its op in `step_ops`; its result type (-1 - i means the type of input
/// i); the number of operands and their indices; the number of attributes and their values.
///
/// Cost: linear in the number of steps.
class scalar_function {
 public:
  struct step {
    const op_def* def = nullptr;
    std::int64_t type = 0;
    span<const std::int64_t> operands, attrs;
  };

  constexpr explicit scalar_function(span<const std::int64_t> code) : rest_(code) {}

  /// Reads the next step. Returns false at the end or if the encoding is invalid.
  constexpr bool next(step& s) {
    constexpr auto ops = static_cast<std::int64_t>(sizeof(step_ops) / sizeof(step_ops[0]));
    if (rest_.empty() || !good) return false;
    good = false;
    if (rest_.size() < 4 || rest_[0] < 0 || rest_[0] >= ops || rest_[1] < -max_inputs ||
        rest_[1] >= dtype_count)
      return false;
    s.def = step_ops[rest_[0]];
    s.type = rest_[1];
    rest_ = rest_.subspan(2);
    return good = list(s.operands) && list(s.attrs);
  }
  bool good = true;

  /// Encodes a program of scalars. Returns false if an op is not in `step_ops`.
  static constexpr bool encode(const program& f, vec<std::int64_t>& code,
                               vec<std::int64_t>& results) {
    vec<std::int64_t> place(f.types.size(), -1);
    std::int64_t count = 0;
    for (value_id v : f.inputs) place[static_cast<std::size_t>(v)] = count++;
    for (op_id o = 0; o < f.op_count(); ++o) {
      if (f.is(o, op_role::parameter)) continue;
      const int which = step_of(*f.op(o).def);
      if (which < 0 || f.type(f.op(o).result).shape.rank > 0) return false;
      code.push_back(which);
      code.push_back(type_of(f, f.type(f.op(o).result).element));
      code.push_back(f.op(o).operand_count);
      for (value_id v : f.operands(o)) code.push_back(place[static_cast<std::size_t>(v)]);
      code.push_back(static_cast<std::int64_t>(f.attrs(o).size()));
      for (auto a : f.attrs(o)) code.push_back(a);
      place[static_cast<std::size_t>(f.op(o).result)] = count++;
    }
    for (const auto& each : f.outputs)
      results.push_back(place[static_cast<std::size_t>(each.value)]);
    return true;
  }
  /// Returns the first op of a program that is not in `step_ops`, or null.
  static constexpr const op_def* unsupported_op(const program& f) {
    for (op_id o = 0; o < f.op_count(); ++o)
      if (!f.is(o, op_role::parameter) && step_of(*f.op(o).def) < 0) return f.op(o).def;
    return nullptr;
  }
  /// Replaces the type t of every step that states one by f(t). Types that refer to an input stay.
  template <class F>
  static constexpr void replace_types(std::int64_t* code, std::size_t size, const F& f) {
    scalar_function steps({code, size});
    for (std::size_t at = 0; at < size; at = size - steps.rest_.size()) {
      step s;
      if (!steps.next(s)) return;
      if (s.type >= 0) code[at + 1] = static_cast<std::int64_t>(f(static_cast<dtype>(s.type)));
    }
  }
  /// Appends the steps as ops on tensors of one shape and on scalars. `values` holds the inputs;
  /// each step appends its result. Returns false if the encoding is invalid.
  constexpr bool emit(builder& b, vec<value_id>& values) {
    step s;
    const std::size_t inputs = values.size();
    while (next(s)) {
      vec<value_id> operands;
      for (auto i : s.operands) {
        if (i < 0 || i >= static_cast<std::int64_t>(values.size())) return false;
        operands.push_back(values[static_cast<std::size_t>(i)]);
      }
      const auto like = static_cast<std::size_t>(s.type < 0 ? -1 - s.type : 0);
      if (like >= inputs) return false;
      const dtype t = s.type < 0 ? b.type(values[like]).element : static_cast<dtype>(s.type);
      values.push_back(
          b.emit(*s.def, {operands.data(), operands.size()}, s.attrs, tensor_type{t, {}}));
      if (b.failed() || b.type(values.back()).element != t) return false;
    }
    return good;
  }

 private:
  span<const std::int64_t> rest_;

  static constexpr std::int64_t max_inputs = 1 << 20;

  /// Encodes a type relative to an input if possible, so that the function also applies to other
  /// element types.
  static constexpr std::int64_t type_of(const program& f, dtype t) {
    for (int i = 0; i < f.input_count(); ++i)
      if (f.input_type(i).element == t) return -1 - i;
    return static_cast<std::int64_t>(t);
  }
  static constexpr int step_of(const op_def& d) {
    constexpr int count = sizeof(step_ops) / sizeof(step_ops[0]);
    for (int i = 0; i < count; ++i)
      if (step_ops[i]->id == d.id) return i;
    return -1;
  }
  constexpr bool list(span<const std::int64_t>& to) {
    if (rest_.empty() || rest_[0] < 0 || rest_[0] >= static_cast<std::int64_t>(rest_.size()))
      return false;
    const auto count = static_cast<std::size_t>(rest_[0]);
    to = rest_.subspan(1, count);
    rest_ = rest_.subspan(1 + count);
    return true;
  }
};

}  // namespace partita::op
