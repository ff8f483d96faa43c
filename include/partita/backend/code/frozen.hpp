/// A program as a constant: what the compiler generates code from.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/backend/code/plan.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/static_error.hpp>

namespace partita::backend_detail {

/// A list of a fixed capacity.
template <class T, int Most>
struct frozen_list {
  T at[Most] = {};
  int count = 0;

  constexpr const T& operator[](int i) const { return at[i]; }
  constexpr void push_back(const T& x) { at[count++] = x; }
  /// False if there is not enough room.
  constexpr bool set(const vec<T>& list) {
    if (list.size() > Most) return false;
    for (const T& x : list) push_back(x);
    return true;
  }
};
struct frozen_argument {
  tensor_type global, local;
  layout sharding;
  code_place place;    ///< where the value of an output is
  char name[48] = {};  ///< its first characters
  std::size_t name_size = 0;
};

/// A plan in arrays of a fixed size, so that one evaluation fills them. A structure for the
/// compiler alone: what a program needs at run time is generated from it.
struct frozen_program {
  static constexpr int most_ops = 400, most_arguments = 100;

  frozen_list<code_step, most_ops> steps;
  frozen_list<code_op, most_ops> ops;
  frozen_list<code_value, 3 * most_ops> operands;
  frozen_list<code_value, 2 * most_ops> results;
  frozen_list<std::int64_t, 10 * most_ops> attrs;
  frozen_list<frozen_argument, most_arguments> inputs, outputs;
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
    const int arguments = p.input_count() > p.output_count() ? p.input_count() : p.output_count();
    if (p.op_count() > most_ops || arguments > most_arguments)
      return fail(concat("E023 compiled: a program of ", p.op_count(), " ops and ", arguments,
                         " inputs or outputs is too large to be compiled into a binary; up to ",
                         most_ops, " ops and ", most_arguments,
                         " inputs or outputs are: run it with emulate or an executable"));
    mesh = d.mesh;
    copies = mesh.devices();
    for (op_id o = 0; o < p.op_count(); ++o)
      if (p.op(o).region_count > 0) return refuse(p.op(o), " has nested programs");
    const code_plan plan(p, 0, copies, true);
    memory_bytes = plan.end;
    if (plan.error) return fail(plan.error.message);
    if (!attrs.set(plan.attrs) || !operands.set(plan.operands) || !results.set(plan.results)) {
      const code_op* most = plan.ops.data();
      for (const code_op& o : plan.ops)
        if (o.attrs + o.operands + o.results > most->attrs + most->operands + most->results)
          most = &o;
      return refuse(p.op(most->op), " has too many attributes");
    }
    steps.set(plan.steps);
    ops.set(plan.ops);
    for (int i = 0; i < p.input_count(); ++i) {
      frozen_argument x{d.input_types[i], p.input_type(i), d.inputs[i], {}, {}, 0};
      for (const char c : p.input_name(i))
        if (x.name_size < sizeof x.name) x.name[x.name_size++] = c;
      inputs.push_back(x);
    }
    for (int i = 0; i < p.output_count(); ++i)
      outputs.push_back({d.output_types[i],
                         p.output_type(i),
                         d.outputs[i],
                         plan.place(p.outputs[i].value),
                         {},
                         0});
  }
  constexpr void refuse(const op_node& n, std::string_view why) {
    fail(concat("E024 compiled: op ", n.def->name, why,
                ", which is not compiled into a binary; run the program with emulate or an "
                "executable, or write it with write_cpp"));
  }
};

template <auto Thunk>
inline constexpr frozen_program frozen{Thunk()};

template <auto Thunk>
struct frozen_error {
  constexpr std::string_view operator()() const { return frozen<Thunk>.error; }
};

}  // namespace partita::backend_detail
