/// while: repeats a nested program while a condition is true.
#pragma once

#include <partita/op/control_op.hpp>
#include <partita/op/trip_count.hpp>

namespace partita::op {

/// Repeats the second nested program on the carried values while the first one returns true.
///
/// Shapes    carried values (...) -> the same; condition (...) -> i1, body (...) -> (...)
/// Errors    S180 wrong number of values, S181 types, S182 the body changes a carried type, or the
///           condition does not return an i1
/// Differs   not from StableHLO; it has no derivative (use scan or for_loop)
struct while_loop : control_op {
  static constexpr std::string_view name = "while";
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 2, 2)) return;
    const int n = static_cast<int>(c.operands.size());
    const auto carried = [&](int i) { return c.operands[static_cast<std::size_t>(i)]; };
    for (const auto& r : c.regions) check_inputs(c, name, r, n, carried);
    check_outputs(c, name, "the condition", c.regions[0], 1, 1, [](int) {
      return tensor_type{dtype::boolean, {}};
    });
    check_outputs(c, name, "the body", c.regions[1], n, n, carried);
    vec<tensor_type> types;
    for (const auto& t : c.operands) types.push_back(t);
    set_results(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    for (int i = 0; i < p.op(o).operand_count; ++i)
      w.add().operand(i).input(0, i).input(1, i).output(1, i).result(i);
    w.add().output(0, 0);
    const trip_count count =
        find_trip_count(p, p.operands(o), p.region(o, 0), p.region(o, 1), w.inputs);
    w.unknown_trips = !count.known;
    if (count.known) w.trips = count.trips;
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::while_loop)
}  // namespace partita

namespace partita::ops {

constexpr value_id while_loop(builder& b, span<const value_id> carried, program&& condition,
                              program&& body) {
  vec<program> list = region_list(static_cast<program&&>(condition));
  list.push_back(static_cast<program&&>(body));
  return b.emit(def<op::while_loop>, carried, {}, {}, static_cast<vec<program>&&>(list));
}

}  // namespace partita::ops
