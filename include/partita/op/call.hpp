/// call: runs a named nested program.
#pragma once

#include <partita/op/control_op.hpp>
#include <partita/op/reverse_mode.hpp>

namespace partita::op {

/// Applies a named computation to the arguments.
///
/// Shapes    arguments... -> results..., as declared by the nested program
/// Errors    S180 wrong number of values, S181 wrong type
struct call : control_op {
  static constexpr std::string_view name = "call";
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 1, 1)) return;
    check_inputs(c, name, c.regions[0], static_cast<int>(c.operands.size()),
                 [&](int i) { return c.operands[static_cast<std::size_t>(i)]; });
    vec<tensor_type> types;
    for (int j = 0; j < c.regions[0].output_count(); ++j)
      types.push_back(c.regions[0].output_type(j));
    set_results(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    for (int i = 0; i < p.op(o).operand_count; ++i) w.add().operand(i).input(0, i);
    for (int j = 0; j < p.op(o).result_count; ++j) w.add().output(0, j).result(j);
  }
  /// Emits a call of the transposed computation, which recomputes the forward values.
  static constexpr void derive(derive_context& c) {
    const known_cotangents known(c);
    const vec<int> wanted = wanted_operands(c, 0);
    if (wanted.empty()) return;
    const text called = concat(c.b.p.view(c.b.p.op(c.op).name), ".transposed");
    const vec<value_id> arguments = operands_and(c, 0, known.values);
    const value_id first =
        ops::call(c.b, called.view(), {arguments.data(), arguments.size()},
                  op_detail::transposed(c.b, c.b.p.region(c.op, 0), wanted, known.results));
    for (std::size_t k = 0; k < wanted.size(); ++k)
      c.operands[static_cast<std::size_t>(wanted[k])] = first + static_cast<int>(k);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::call)
}  // namespace partita

namespace partita::ops {

constexpr value_id call(builder& b, std::string_view name, span<const value_id> arguments,
                        program&& f) {
  const value_id v =
      b.emit(def<op::call>, arguments, {}, {}, region_list(static_cast<program&&>(f)));
  b.name_last(name);
  return v;
}

}  // namespace partita::ops
