/// Checks of a program's invariants.
#pragma once

#include <type_traits>

#include <partita/support/vec.hpp>

#include <partita/ir/program.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

namespace ir_detail {
/// Calls f(program, node) for every tag, those of nested programs included.
template <class Program, class F>
constexpr void for_each_tag(Program& p, const F& f) {
  for (auto& n : p.ops)
    if (n.def->role == op_role::tag) f(p, n);
  for (auto& r : p.regions) for_each_tag(r, f);
}
}  // namespace ir_detail

/// Checks that names are unique among inputs and tags, and among outputs, and that there is an
/// output.
///
/// Errors    P002 duplicate input name, P003 duplicate tag, P004 duplicate output name, P005 no
///           output
constexpr failure check_names(const program& p) {
  failure f;
  name_table inputs(p.inputs.size() + p.ops.size() / 8), outputs(p.outputs.size());
  for (int i = 0; i < p.input_count(); ++i)
    if (inputs.insert(p.input_name(i), i) != i)
      f.record("P002", "trace: two inputs are named \"", p.input_name(i), '"');
  int number = -2;  // inputs have numbers from 0 up
  ir_detail::for_each_tag(p, [&](const program& in, const op_node& n) {
    const std::string_view name = in.view(n.name);
    --number;
    if (inputs.insert(name, number) != number)
      f.record("P003", "trace: tag \"", name, "\" has the name of another tag or of an input");
  });
  for (int i = 0; i < p.output_count(); ++i)
    if (outputs.insert(p.output_name(i), i) != i)
      f.record("P004", "trace: two outputs are named \"", p.output_name(i), '"');
  if (p.outputs.empty()) f.record("P005", "trace: the model returns no tensor");
  return f;
}

/// Checks the additional guarantees of a source program. Inputs, tags and outputs have names (of
/// any characters), so tactics and action texts can refer to them. A next state (an output with the
/// name of an input) has the type of its state. In a device-local program, the layouts of the two
/// may differ.
///
/// Errors    P008 next state of another type, P009 no name
constexpr failure check_interface(const program& p) {
  failure f;
  const auto readable = [&](std::string_view name, std::string_view what) {
    if (name.empty()) f.record("P009", "trace: ", what, " name \"\" is empty; give it a name");
  };
  name_table inputs(p.inputs.size());
  for (int i = 0; i < p.input_count(); ++i) {
    readable(p.input_name(i), "input");
    inputs.insert(p.input_name(i), i);
  }
  ir_detail::for_each_tag(
      p, [&](const program& in, const op_node& n) { readable(in.view(n.name), "tag"); });
  for (int i = 0; i < p.output_count(); ++i) {
    const std::string_view name = p.output_name(i);
    readable(name, "output");
    const int input = inputs.find(name);
    if (input >= 0 && p.input_type(input) != p.output_type(i))
      f.record("P008", "trace: output \"", name, "\" has type ", p.output_type(i),
               ", the input of that name has type ", p.input_type(input),
               "; a next state must have the type of its state; rename any other output");
  }
  return f;
}

namespace ir_detail {

/// Returns `op 7: add(tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>`.
constexpr text op_and_types(const program& p, op_id o) {
  text out = concat("op ", o, ": ", p.op(o).def->name, '(');
  append_list(out, p.op(o).operand_count, [&](int i) { out << p.type(p.operand(o, i)); });
  out << ") -> ";
  append_list(out, p.op(o).result_count, [&](int i) { out << p.type(p.op(o).result + i); });
  return out;
}

/// Checks the ops of a program and of its nested programs.
///
/// Errors    P001, and those of the ops' shape rules
constexpr failure verify_ops(const program& p) {
  failure f = p.error;
  vec<tensor_type> operands;
  const op_node* const ops = p.ops.data();
  const tensor_type* const types = p.types.data();
  const op_id* const producers = p.producers.data();
  const op_id count = p.op_count();
  const value_id values = p.value_count();
  for (op_id o = 0; o < count && !f.is_set; ++o) {
    const op_node& n = ops[o];
    // (With sanitizers on, GCC does not compare addresses in constant evaluation.)
    bool defines = (std::is_constant_evaluated() || n.def != nullptr) && n.result_count > 0 &&
                   n.result >= 0 && n.result + n.result_count <= values;
    for (int r = 0; r < n.result_count && defines; ++r) defines = producers[n.result + r] == o;
    if (!defines) {
      f.record("P001", "internal error: op ", o, " does not define its result; please report");
      break;
    }
    operands.clear();
    const value_id* const taken = p.operand_list.data() + n.operand_begin;
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = taken[i];
      if (v < 0 || v >= n.result) {
        f.record("P001", "internal error: op ", o, " (", n.def->name, ") uses value ", v,
                 " before its definition; please report");
        return f;
      }
      operands.push_back(types[v]);
    }
    for (int r = 0; r < n.region_count; ++r) f.record(verify_ops(p.region(o, r)));
    if (f.is_set) break;
    infer_context c;
    c.operands = operands;
    c.attrs = p.attrs(o);
    c.declared = types[n.result];
    if (n.region_count > 0) c.regions = p.regions_of(o);
    n.def->infer(c);
    if (c.error.is_set) {
      f.set(concat(c.error.message, " (", op_and_types(p, o), ')'));
      break;
    }
    if (static_cast<int>(c.more.size()) + 1 != n.result_count)
      f.record("P001", "internal error: op ", o, " (", n.def->name, ") has ", n.result_count,
               " results, its shape rule returns ", c.more.size() + 1, "; please report");
    for (int r = 0; r < n.result_count && !f.is_set; ++r) {
      const tensor_type& rule = r == 0 ? c.result : c.more[r - 1];
      if (rule != types[n.result + r])
        f.record("P001", "internal error: op ", o, " (", n.def->name, ") has type ",
                 p.type(n.result + r), ", its shape rule returns ", rule, "; please report");
    }
  }
  const auto has = [&](value_id v) { return v >= 0 && v < p.value_count(); };
  for (int i = 0; i < p.input_count() && !f; ++i)
    if (!has(p.inputs[i]) || !p.is(p.producer(p.inputs[i]), op_role::parameter))
      f.record("P001", "internal error: input ", i, " is not a parameter; please report");
  for (int i = 0; i < p.output_count() && !f; ++i)
    if (!has(p.outputs[i].value))
      f.record("P001", "internal error: output ", i, " is value ", p.outputs[i].value,
               ", which does not exist; please report");
  return f;
}

}  // namespace ir_detail

/// Checks that operands are defined before their uses, types match the shape rules, inputs and
/// outputs are valid, and names are unique. A failure is a bug in the library, unless the program
/// was built by hand.
///
/// Errors    P001 broken program, and those of check_names
constexpr failure verify(const program& p) {
  failure f = ir_detail::verify_ops(p);
  if (!f) f.record(check_names(p));
  return f;
}

}  // namespace partita
