/// A program as a constant: what the compiler generates code from.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/backend/code/plan.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/static_error.hpp>

namespace partita::backend_detail {

struct frozen_operand {
  tensor_type type;
  code_access access;  ///< in a loop; `source` of a local one: which member makes it
  code_place place;
  std::int64_t source_elements = 0;  ///< of what is read in a loop
};
struct frozen_result {
  tensor_type type;
  code_place place;
};
struct frozen_op {
  std::uint64_t id = 0;
  int operand = 0, operands = 0, result = 0, results = 0, attr = 0, attrs = 0;
};
struct frozen_step {
  code_step::kind what = code_step::kind::kernel;
  std::int64_t elements = 0;
  int op = 0, ops = 0;  ///< of a loop its members
};
struct frozen_argument {
  tensor_type global, local;
  layout sharding;
  code_place place;    ///< of an output: where its value is
  char name[48] = {};  ///< its first characters
  std::size_t name_size = 0;
};

/// Arrays of a fixed size, so that one evaluation fills them. A structure for the compiler alone:
/// what a program needs at run time is generated from it.
struct frozen_program {
  static constexpr int most_ops = 400, most_arguments = 100, most_attrs = 4000;

  frozen_step steps[most_ops];
  frozen_op ops[most_ops];
  frozen_operand operands[3 * most_ops];
  frozen_result results[2 * most_ops];
  std::int64_t attrs[most_attrs] = {};
  frozen_argument inputs[most_arguments], outputs[most_arguments];
  int step_count = 0, op_count = 0, operand_count = 0, result_count = 0, attr_count = 0;
  int input_count = 0, output_count = 0;
  partita::mesh mesh;
  std::int64_t copies = 1;        ///< of every value: the devices of the mesh
  std::int64_t memory_bytes = 0;  ///< of all copies
  char error[512] = {};           ///< empty: none

  constexpr explicit frozen_program(const program& p) { freeze(on_one_device(p)); }
  constexpr explicit frozen_program(const device_program& d) { freeze(d); }
  constexpr explicit frozen_program(const partitioned& p) {
    if (p.source.error)
      fail(p.source.error.message);
    else if (p.error)
      fail(p.error.message);
    else
      freeze(p.device);
  }

 private:
  constexpr void fail(std::string_view s) {
    for (std::size_t i = 0; i < s.size() && i + 1 < sizeof error; ++i) error[i] = s[i];
  }
  constexpr void freeze(const device_program& d) {
    const program& p = d.local;
    if (p.error) return fail(p.error.message);
    const auto inputs_given = static_cast<int>(d.inputs.size());
    const auto outputs_given = static_cast<int>(d.outputs.size());
    const int arguments = inputs_given > outputs_given ? inputs_given : outputs_given;
    if (p.op_count() > most_ops || arguments > most_arguments)
      return fail(concat("E023 compiled: a program of ", p.op_count(), " ops and ", arguments,
                         " inputs or outputs is too large to be compiled into a binary; up to ",
                         most_ops, " ops and ", most_arguments,
                         " inputs or outputs are: run it with emulate or an executable"));
    mesh = d.mesh;
    copies = mesh.devices();
    const code_plan plan(p, 0, copies, true);
    memory_bytes = plan.end;
    for (const code_step& s : plan.steps) {
      frozen_step& to = steps[step_count++];
      to = {s.what, s.elements, op_count, 0};
      if (s.what == code_step::kind::loop) {
        for (op_id o : s.members) add(p, plan, s, o);
      } else {
        add(p, plan, s, s.op);
      }
      to.ops = op_count - to.op;
      if (error[0] != '\0') return;
    }
    for (int i = 0; i < p.input_count(); ++i) {
      frozen_argument& x = inputs[input_count++];
      x = {d.input_types[i], p.input_type(i), d.inputs[i], {}, {}, 0};
      const std::string_view name = p.input_name(i);
      for (; x.name_size < name.size() && x.name_size < sizeof x.name; ++x.name_size)
        x.name[x.name_size] = name[x.name_size];
    }
    for (int i = 0; i < p.output_count(); ++i)
      outputs[output_count++] = {
          d.output_types[i], p.output_type(i), d.outputs[i], plan.place(p.outputs[i].value), {}, 0};
  }
  constexpr void add(const program& p, const code_plan& plan, const code_step& s, op_id o) {
    const op_node& n = p.op(o);
    const auto attributes = static_cast<int>(p.attrs(o).size());
    if (!has_code(*n.def)) return fail(no_code(*n.def, "compiled"));
    if (n.region_count > 0 || attr_count + attributes > most_attrs ||
        operand_count + n.operand_count > 3 * most_ops ||
        result_count + n.result_count > 2 * most_ops)
      return fail(concat("E024 compiled: op ", n.def->name,
                         n.region_count > 0 ? " has nested programs" : " has too many attributes",
                         ", which is not compiled into a binary; run the program with emulate or "
                         "an executable, or write it with write_cpp"));
    ops[op_count++] = {n.def->id,      operand_count, n.operand_count, result_count,
                       n.result_count, attr_count,    attributes};
    for (value_id x : p.operands(o)) {
      frozen_operand& to = operands[operand_count++];
      to.type = p.type(x);
      to.place = plan.place(x);
      if (s.what != code_step::kind::loop) continue;
      to.access = plan.access(p, s, x);
      to.place = plan.places[to.access.source];
      to.source_elements = p.type(to.access.source).shape.elements();
      if (to.access.how != code_access::kind::local) continue;
      for (std::size_t m = 0; m < s.members.size(); ++m)
        if (p.op(s.members[m]).result == to.access.source) {
          to.access.source = static_cast<int>(m);
          break;
        }
    }
    for (int r = 0; r < n.result_count; ++r)
      results[result_count++] = {p.type(n.result + r), plan.places[n.result + r]};
    for (const std::int64_t a : p.attrs(o)) attrs[attr_count++] = a;
  }
};

template <auto Thunk>
inline constexpr frozen_program frozen{Thunk()};

template <auto Thunk>
struct frozen_error {
  constexpr std::string_view operator()() const { return frozen<Thunk>.error; }
};

}  // namespace partita::backend_detail
