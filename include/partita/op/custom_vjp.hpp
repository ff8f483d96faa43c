/// custom_vjp: a user-defined derivative. Exists only while a program is being traced.
#pragma once

#include <partita/op/control_op.hpp>
#include <partita/op/reverse_mode.hpp>

namespace partita::op_detail {

/// Appends a program as ops of the derivative being emitted, with `of` as their origin. Tags keep
/// the names that the user gave them.
constexpr vec<value_id> append_as_derivative(builder& b, program&& f, const op_marks& of,
                                             span<const value_id> arguments) {
  const auto inside = [&](program& nested) {
    ir_detail::for_each_op(nested, [&](op_node& n) {
      n.marks.origin = n.def->role == op_role::tag ? -1 : of.source;
      n.marks.transposed += of.transposed + 1;
    });
  };
  return append_ops(b, f, arguments, inside, [&](op_id o) {
    const op_node& n = f.op(o);
    if (n.name.size > 0) b.name_last(f.view(n.name));
    if (n.def->role == op_role::tag) b.p.ops.back().marks.origin = -1;
  });
}

}  // namespace partita::op_detail

namespace partita::op {

/// Passes the results of a function through. The ops before it that compute the results are not
/// differentiated; instead, the nested program returns the cotangents of the arguments. `trace`
/// drops this op once all derivatives are emitted.
///
/// Attributes  the numbers of results, of arguments, and of values that are used without being
///             arguments
/// Shapes      results..., arguments..., used..., inputs of the nested program... -> results...
/// Errors      G004 a cotangent's type differs from its argument's, G005 a gradient would be lost
struct custom_vjp {
  static constexpr std::string_view name = "custom_vjp";
  static constexpr bool passes_on = true;
  static constexpr void infer(infer_context& c) {
    const auto results = static_cast<std::size_t>(c.attrs[0]);
    const auto arguments = static_cast<std::size_t>(c.attrs[1]);
    const program& backward = c.regions[0];
    if (static_cast<std::size_t>(backward.output_count()) != arguments)
      return c.fail("G004", "custom_vjp: the backward function returns ", backward.output_count(),
                    " tensors; the arguments have ", arguments);
    for (std::size_t i = 0; i < arguments; ++i)
      if (backward.output_type(static_cast<int>(i)) != c.operands[results + i])
        return c.fail("G004", "custom_vjp: the backward function returns ",
                      backward.output_type(static_cast<int>(i)), " as cotangent ", i,
                      "; its argument has type ", c.operands[results + i]);
    c.result = c.operands[0];
    for (std::size_t r = 1; r < results; ++r) c.more.push_back(c.operands[r]);
  }
  static constexpr void derive(derive_context& c) {
    const auto attrs = c.b.p.attrs(c.op);
    const int results = static_cast<int>(attrs[0]), arguments = static_cast<int>(attrs[1]);
    const int used = static_cast<int>(attrs[2]);
    for (int i = results + arguments; i < results + arguments + used; ++i)
      if (c.wanted[static_cast<std::size_t>(i)]) return lost(c, c.b.p.operand(c.op, i));
    vec<value_id> inputs;
    for (int i = results + arguments + used; i < c.b.p.op(c.op).operand_count; ++i)
      inputs.push_back(c.b.p.operand(c.op, i));
    for (int r = 0; r < results; ++r) {
      const value_id given = c.cotangents[static_cast<std::size_t>(r)];
      const tensor_type type = c.b.type(c.b.p.op(c.op).result + r);
      inputs.push_back(given >= 0 ? given : ops::constant(c.b, type, 0));
    }
    const op_marks marks = start_from_result(c, results, arguments);
    program backward = c.b.p.region(c.op, 0);
    const vec<value_id> found = op_detail::append_as_derivative(
        c.b, static_cast<program&&>(backward), marks, {inputs.data(), inputs.size()});
    for (int i = 0; i < arguments && !c.b.failed(); ++i)
      c.operands[static_cast<std::size_t>(results + i)] = found[static_cast<std::size_t>(i)];
  }

 private:
  /// Marks the derivative as that of the op that computes the result, since this op is dropped. If
  /// the result is an argument itself, the marks of this op stay. The named part and the source
  /// place stay those of the call.
  static constexpr op_marks start_from_result(derive_context& c, int results, int arguments) {
    op_marks marks = c.b.p.op(c.op).marks;
    const value_id made = c.b.p.operand(c.op, 0);
    bool given = false;
    for (int i = results; i < results + arguments; ++i)
      given = given || c.b.p.operand(c.op, i) == made;
    if (given) return marks;
    const int scope = c.b.origin_scope(), place = c.b.origin_place();
    marks.source = c.b.p.op(c.b.p.producer(made)).marks.source;
    c.b.set_origin(marks.source, marks.transposed + 1);
    c.b.set_origin_scope(scope);
    c.b.set_origin_place(place);
    return marks;
  }
  static constexpr void lost(derive_context& c, value_id v) {
    text what;
    if (!c.b.p.name(v).empty()) what << '"' << short_name(c.b.p.name(v)) << "\", ";
    c.b.p.error.record("G005", "custom_vjp: the forward function uses ", what, c.b.type(v),
                       ", which is not an argument, and a gradient is wanted for it; pass it as an "
                       "argument, or use stop_gradient");
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::custom_vjp)
}  // namespace partita

namespace partita::ops {

/// Emits a custom_vjp. `backward` maps (its own inputs..., cotangents of the results...) to the
/// cotangents of the arguments.
constexpr value_id custom_vjp(builder& b, span<const value_id> results,
                              span<const value_id> arguments, span<const value_id> used,
                              span<const value_id> inputs, program&& backward) {
  vec<value_id> operands;
  for (const auto& list : {results, arguments, used, inputs})
    operands.insert_back(list.begin(), list.end());
  const std::int64_t attrs[] = {static_cast<std::int64_t>(results.size()),
                                static_cast<std::int64_t>(arguments.size()),
                                static_cast<std::int64_t>(used.size())};
  return b.emit(def<op::custom_vjp>, operands, attrs, {},
                region_list(static_cast<program&&>(backward)));
}

}  // namespace partita::ops

namespace partita::op_detail {

/// Makes users of a custom_vjp, in nested programs too, use the values that it passes through. The
/// ops remain, without uses, until the program is tidied.
constexpr void drop_custom_vjps(program& p) {
  vec<value_id> stands_for(p.types.size(), -1);
  bool any = false;
  for (const op_node& n : p.ops) {  // operands come before results
    if (n.def->id != def<op::custom_vjp>.id) continue;
    any = true;
    for (int r = 0; r < n.result_count; ++r) {
      const value_id passed = p.operand_list[n.operand_begin + r];
      stands_for[n.result + r] = stands_for[passed] >= 0 ? stands_for[passed] : passed;
    }
    for (int r = 0; r < n.region_count; ++r) p.regions[n.region_begin + r] = program{};
  }
  for (program& r : p.regions) drop_custom_vjps(r);
  if (!any) return;
  for (value_id& v : p.operand_list)
    if (stands_for[v] >= 0) v = stands_for[v];
  for (program_output& out : p.outputs)
    if (stands_for[out.value] >= 0) out.value = stands_for[out.value];
}

}  // namespace partita::op_detail
