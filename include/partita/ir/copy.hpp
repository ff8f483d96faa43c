/// Copies of ops. Only these functions decide how a pass transfers an op's name, marks and nested
/// programs to another program.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Gives the op that was appended last to `to` the name and the marks of op `o` of `from`.
constexpr void copy_marks(program& to, const program& from, op_id o) {
  const op_node& n = from.ops[o];
  to.ops.back().marks = n.marks;
  if (n.name.size > 0) to.ops.back().name = to.intern(from.view(n.name));
}

/// Appends op `o` of `from` without results or nested programs; `operands` are values of `to`.
/// Returns its id.
constexpr op_id append_copy(program& to, const program& from, op_id o,
                            span<const value_id> operands, span<const std::int64_t> attrs) {
  op_node n = from.ops[o];
  if (n.name.size > 0) n.name = to.intern(from.view(n.name));
  to.append_op(n, operands, attrs);
  return to.op_count() - 1;
}

/// Appends an op with one result on behalf of another op, whose marks it gets.
constexpr value_id append_for(program& to, const op_marks& sake, const op_def& def,
                              span<const value_id> operands, span<const std::int64_t> attrs,
                              const tensor_type& result) {
  const value_id v = to.append(def, operands, attrs, result);
  to.ops.back().marks = sake;
  return v;
}

/// Copies a program into another one, op by op, and maps its values to their copies.
///
/// Copy an op at once with `op`, or in steps: one `operand` call per operand, then `append`, then
/// its results and its nested programs.
class program_copier {
 public:
  vec<value_id> renamed;  ///< by value of `from`: its copy, or -1

  constexpr program_copier(const program& from, program& to)
      : renamed(from.types.size(), -1), from_(from), to_(to) {}

  /// Reserves memory for all of `from`.
  constexpr void reserve() {
    to_.ops.reserve(from_.ops.size());
    to_.types.reserve(from_.types.size());
    to_.producers.reserve(from_.types.size());
    to_.operand_list.reserve(from_.operand_list.size());
    to_.attr_list.reserve(from_.attr_list.size());
  }

  constexpr void operand(value_id v) { operands_.push_back(renamed[v]); }
  constexpr op_id append(op_id o, span<const std::int64_t> attrs) {
    const op_id copy = append_copy(to_, from_, o, operands_, attrs);
    operands_.clear();
    return copy;
  }
  constexpr void result(value_id v) { renamed[v] = to_.append_result(from_.types[v]); }
  constexpr void results(op_id o) {
    const op_node& n = from_.ops[o];
    for (value_id v = n.result; v < n.result + n.result_count; ++v) result(v);
  }
  /// Copies an op except for its nested programs.
  constexpr op_id op(op_id o) {
    const op_node& n = from_.ops[o];
    const int begin = n.operand_begin, end = begin + n.operand_count;
    PARTITA_WORK(n.operand_count);
    const value_id* const operands = from_.operand_list.data();
    value_id* const copies = renamed.data();
    for (int i = begin; i < end; ++i) operands_.push_back(copies[operands[i]]);
    const op_id copy = append_copy(to_, from_, o, operands_, from_.attrs(o));
    operands_.clear();
    for (value_id v = n.result, last = v + n.result_count; v < last; ++v)
      copies[v] = to_.append_result(from_.types[v]);
    return copy;
  }
  constexpr void input(value_id v) { to_.inputs.push_back(renamed[v]); }
  /// Adds an output `v` with the name of `like`.
  constexpr void output(const program_output& like, value_id v) {
    text_ref name;
    if (like.name.size > 0) name = to_.intern(from_.view(like.name));
    to_.outputs.push_back({renamed[v], name});
  }
  /// Copies all inputs and outputs.
  constexpr void interface() {
    for (value_id v : from_.inputs) input(v);
    for (const auto& out : from_.outputs) output(out, out.value);
  }

 private:
  const program& from_;
  program& to_;
  vec<value_id> operands_;
};

}  // namespace partita
