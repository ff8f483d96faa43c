/// Checks the invariants of a program.
#pragma once

#include <partita/support/vec.hpp>

#include <partita/ir/program.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

/// Names must be unique among inputs and tags, and among outputs; some output there must be.
///
/// Errors    P002 duplicate input name, P003 duplicate tag, P004 duplicate output name, P005 no
/// output
constexpr failure check_names(const program& p) {
  failure f;
  name_table inputs(p.inputs.size() + p.ops.size() / 8), outputs(p.outputs.size());
  for (int i = 0; i < p.input_count(); ++i)
    if (inputs.insert(p.input_name(i), i) != i)
      f.record("P002", "trace: two inputs are named \"", p.input_name(i), '"');
  for (op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, op_role::tag) && inputs.insert(p.view(p.op(o).name), -2 - o) != -2 - o)
      f.record("P003", "trace: tag \"", p.view(p.op(o).name),
               "\" has the name of another tag or of an input");
  for (int i = 0; i < p.output_count(); ++i)
    if (outputs.insert(p.output_name(i), i) != i)
      f.record("P004", "trace: two outputs are named \"", p.output_name(i), '"');
  if (p.outputs.empty()) f.record("P005", "trace: the model returns no tensor");
  return f;
}

/// What a source program promises beyond that: names that tactics and action texts can refer to,
/// and next states (outputs with the name of an input) of the type of their state. In a
/// device-local program the two may lie on the mesh in different ways.
///
/// Errors    P008 next state of another type, P009 not a name
constexpr failure check_interface(const program& p) {
  failure f;
  const auto readable = [&](std::string_view name, std::string_view what) {
    bool good = !name.empty();
    for (char c : name)
      good = good && c != ',' && c != '<' && c != '>' && c != '"' && c != '%' && c != ' ';
    if (!good)
      f.record("P009", "trace: ", what, " name \"", name,
               "\" is empty or has one of the characters , < > \" % or a blank");
  };
  name_table inputs(p.inputs.size());
  for (int i = 0; i < p.input_count(); ++i) {
    readable(p.input_name(i), "input");
    inputs.insert(p.input_name(i), i);
  }
  for (op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, op_role::tag)) readable(p.view(p.op(o).name), "tag");
  for (int i = 0; i < p.output_count(); ++i) {
    const std::string_view name = p.output_name(i);
    readable(name, "output");
    const int input = inputs.find(name);
    if (input >= 0 && p.input_type(input) != p.output_type(i))
      f.record("P008", "trace: output \"", name, "\" has type ", p.output_type(i),
               ", the input of that name has type ", p.input_type(input),
               "; a next state has the type of its state, another output another name");
  }
  return f;
}

/// Operands defined before use, types as the shape rules give them, inputs and outputs in order,
/// names unique. A failure is a mistake of ours, unless the program was put together by hand.
///
/// Errors    P001 broken program, and those of check_names
constexpr failure verify(const program& p) {
  failure f = p.error;
  if (f) return f;
  vec<tensor_type> operands;
  for (op_id o = 0; o < p.op_count() && !f; ++o) {
    const op_node& n = p.op(o);
    if (n.def == nullptr || n.result < 0 || n.result >= p.value_count() ||
        p.producer(n.result) != o) {
      f.record("P001", "internal error: op ", o, " does not define its result; please report");
      break;
    }
    operands.clear();
    for (value_id v : p.operands(o)) {
      if (v < 0 || v >= n.result) {
        f.record("P001", "internal error: op ", o, " (", n.def->name, ") uses value ", v,
                 " before its definition; please report");
        return f;
      }
      operands.push_back(p.type(v));
    }
    infer_context c;
    c.operands = operands;
    c.attrs = p.attrs(o);
    c.declared = p.type(n.result);
    n.def->infer(c);
    if (c.error)
      f.record(c.error);
    else if (c.result != p.type(n.result))
      f.record("P001", "internal error: op ", o, " (", n.def->name, ") has type ", p.type(n.result),
               ", its shape rule gives ", c.result, "; please report");
  }
  f.record(check_names(p));
  return f;
}

}  // namespace partita
