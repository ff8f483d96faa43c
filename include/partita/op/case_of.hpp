/// case: runs one of several nested programs.
#pragma once

#include <partita/op/control_op.hpp>
#include <partita/op/reverse_mode.hpp>

namespace partita::op {

/// Applies the nested program with the given number to the arguments. A number out of range selects
/// the last program.
///
/// Shapes    index (i32, rank 0), arguments... -> results...; each nested program: arguments... ->
///           results...
/// Errors    S180 wrong number of values, S181 wrong type, S185 branches disagree, S186 index
struct case_of : control_op {
  static constexpr std::string_view name = "case";
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 1, 1000)) return;
    if (c.operands.empty()) return c.fail("S186", name, ": the index is missing");
    const tensor_type index{dtype::i32, {}};
    if (c.operands[0] != index)
      return c.fail("S186", name, ": the index has type ", c.operands[0], "; ", index,
                    " is needed");
    const program& first = c.regions[0];
    for (std::size_t r = 0; r < c.regions.size() && !c.error; ++r) {
      const program& branch = c.regions[r];
      check_inputs(c, name, branch, static_cast<int>(c.operands.size()) - 1,
                   [&](int i) { return c.operands[static_cast<std::size_t>(i + 1)]; });
      bool same = branch.output_count() == first.output_count();
      for (int j = 0; same && j < first.output_count(); ++j)
        same = branch.output_type(j) == first.output_type(j);
      if (!same) {
        text mine, theirs;
        append_list(mine, branch.output_count(), [&](int j) { mine << branch.output_type(j); });
        append_list(theirs, first.output_count(), [&](int j) { theirs << first.output_type(j); });
        c.fail("S185", name, ": branch ", r, " returns (", mine, "), branch 0 returns (", theirs,
               ")");
      }
    }
    vec<tensor_type> types;
    for (int j = 0; j < first.output_count(); ++j) types.push_back(first.output_type(j));
    set_results(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    const op_node& n = p.op(o);
    w.branches = true;
    w.add().operand(0);
    for (int i = 1; i < n.operand_count; ++i) {
      w.add().operand(i);
      for (int r = 0; r < n.region_count; ++r) w.input(r, i - 1);
    }
    for (int j = 0; j < n.result_count; ++j) {
      w.add().result(j);
      for (int r = 0; r < n.region_count; ++r) w.output(r, j);
    }
  }
  static constexpr void derive(derive_context& c) {
    const known_cotangents known(c);
    const vec<int> wanted = wanted_operands(c, 1);
    if (wanted.empty()) return;
    vec<program> branches;
    for (int r = 0; r < c.b.p.op(c.op).region_count; ++r) {
      branches.push_back(op_detail::transposed(c.b, c.b.p.region(c.op, r), wanted, known.results));
    }
    const vec<value_id> arguments = operands_and(c, 1, known.values);
    const value_id first =
        ops::case_of(c.b, c.b.p.operand(c.op, 0), {arguments.data(), arguments.size()},
                     static_cast<vec<program>&&>(branches));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      c.operands[static_cast<std::size_t>(wanted[k] + 1)] = first + static_cast<int>(k);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::case_of)
}  // namespace partita

namespace partita::ops {

constexpr value_id case_of(builder& b, value_id index, span<const value_id> arguments,
                           vec<program>&& branches) {
  vec<value_id> operands{index};
  operands.insert_back(arguments.begin(), arguments.end());
  return b.emit(def<op::case_of>, operands, {}, {}, static_cast<vec<program>&&>(branches));
}

}  // namespace partita::ops
