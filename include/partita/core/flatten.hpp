/// Flattens a program with nested programs into one graph, in which loops can be introduced.
#pragma once

#include <partita/core/loops.hpp>
#include <partita/ir/copy.hpp>
#include <partita/ir/wires.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/trip_count.hpp>

namespace partita {

namespace op {

/// A wire of an op with nested programs. It ties together the values that enter it (operands of the
/// op, outputs of nested programs) and leave it (inputs of nested programs, results of the op); all
/// of them have the same layout.
///
/// Attributes: for each operand and result, the number of its leading dimensions that the others
/// lack.
///
/// Tile map  ([i], [i]) -> ([i], [i]), the leading dimensions unsharded
struct wire {
  static constexpr std::string_view name = "wire";
  static constexpr op_role role = op_role::wire;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
  static constexpr void tile_map(tile_map_context& c) {
    const int ends = c.attr_count, operands = static_cast<int>(c.operands.size());
    if (ends == operands) return;  // a predicate or an index: it has no dimensions
    const int rank = c.result.shape.rank - static_cast<int>(c.attrs[operands]);
    for (int d = 0; d < rank; ++d) {
      const int first = d + static_cast<int>(c.attrs[operands]);
      c.tile(c.result.shape[first], first);
      for (int i = 0; i < operands; ++i) c.operand(i, d + static_cast<int>(c.attrs[i]));
      for (int r = 1; r < ends - operands; ++r)
        c.also(r, d + static_cast<int>(c.attrs[operands + r]));
    }
  }
};

}  // namespace op

/// A program whose nested programs are inlined.
///
/// An op with nested programs (or only wires) becomes its wires, then a marker (the op itself,
/// without operands and results), then the ops of the nested programs. The graph has cycles where
/// values are carried around a loop; propagation handles them.
struct flat_program {
  program p;
  vec<int> scope;        ///< by op: the nested program it belongs to; 0 is the top-level program
  vec<int> value_scope;  ///< by value

  struct scope_info {
    op_id marker = -1;
    /// The number of runs for each run of the top-level program (at most 2^40). A loop whose trip
    /// count is unknown counts as one iteration.
    std::int64_t trips = 1;
    vec<known_integer> known;  ///< values of the inputs, in order; empty if none is known
    vec<value_id> inputs;      ///< results of wires
    vec<use> outputs;          ///< operands of wires
  };
  struct control_info {
    op_id marker = -1;
    int first_scope = 0, scope_count = 0;
    bool branches = false;  ///< true if only one of the nested programs runs
    vec<use> operands;      ///< operands of wires
    vec<value_id> results;  ///< results of wires
  };
  vec<scope_info> scopes;
  vec<control_info> controls;
  /// By op: the index in `controls` of the op that a wire or marker belongs to, or -1; see
  /// control_of.
  vec<int> control;
  /// By op: the source op that it is, or is nested in. Empty: the same number.
  vec<op_id> source_op;
  /// By value of the source, not of nested programs. Empty: the same number.
  vec<value_id> value_of;

  constexpr flat_program() = default;
  constexpr explicit flat_program(const program& source) {
    scopes.push_back({});
    if (!has_controls(source)) {
      p = source;
      scope.resize(p.ops.size(), 0);
      value_scope.resize(p.types.size(), 0);
      return;
    }
    p.error = source.error;
    p.labels = source.labels;
    p.interface = source.interface;
    program_copier copy(source, p);
    add(source, 0, copy);
    copy.interface();
    value_of = static_cast<vec<value_id>&&>(copy.renamed);
  }
  /// The op with nested programs that a wire or marker belongs to; null for other ops.
  constexpr const control_info* control_of(op_id o) const {
    const bool known = at(o) < control.size() && control[o] >= 0;
    return known ? &controls[control[o]] : nullptr;
  }

 private:
  static constexpr bool has_controls(const program& source) {
    bool any = !source.regions.empty();
    for (op_id o = 0; !any && o < source.op_count(); ++o) any = source.is(o, op_role::control);
    return any;
  }
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// The product, saturated at the maximum number of runs.
  static constexpr std::int64_t times(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t most = std::int64_t{1} << 40;
    return b > 0 && a > most / b ? most : a * b;
  }

  /// Assigns everything appended since the last call to nested program `in`.
  constexpr void belongs_to(int in) {
    scope.resize(p.ops.size(), in);
    control.resize(p.ops.size(), -1);
    value_scope.resize(p.types.size(), in);
  }

  /// Appends the ops of a program. The inputs of a nested program are renamed already.
  constexpr void add(const program& q, int in, program_copier& copy) {
    for (op_id o = 0; o < q.op_count(); ++o) {
      if (q.is(o, op_role::parameter) && in != 0) continue;
      if (q.is(o, op_role::control)) {
        add_control(q, o, in, copy);
      } else {
        copy.op(o);
        belongs_to(in);
      }
      if (in == 0) source_op.resize(p.ops.size(), o);
    }
  }

  constexpr void add_control(const program& q, op_id o, int in, program_copier& copy) {
    const int number = static_cast<int>(controls.size());
    controls.push_back(wired(q, o, in, copy));
    const int first_scope = controls[number].first_scope;
    for (int r = 0; r < q.op(o).region_count; ++r)
      add_nested(q.region(o, r), first_scope + r, controls[number].marker);
  }
  constexpr void add_nested(const program& q, int in, op_id marker) {
    scopes[in].marker = marker;
    program_copier copy(q, p);
    for (int i = 0; i < q.input_count(); ++i) copy.renamed[q.inputs[i]] = scopes[in].inputs[i];
    add(q, in, copy);
    for (int j = 0; j < q.output_count(); ++j) {
      const use& out = scopes[in].outputs[j];
      const value_id v = copy.renamed[q.outputs[j].value];
      p.operand_list[p.op(out.op).operand_begin + out.operand] = v;
      take_marks(out.op, v);
    }
  }
  /// If a wire belongs to an op that is not in the source, takes the marks of the op that produces
  /// value `v`.
  constexpr void take_marks(op_id wire, value_id v) {
    if (p.op(wire).marks.source < 0) p.op(wire).marks = p.op(p.producer(v)).marks;
  }
  /// Appends the wires of an op with nested programs, and its marker.
  constexpr control_info wired(const program& q, op_id o, int in, program_copier& copy) {
    const op_node& n = q.op(o);
    const vec<known_integer> known = scopes[in].known;
    wire_list list;
    list.inputs = known;
    n.def->wires(q, o, list);
    const op_id first_wire = p.op_count();
    control_info k;
    k.first_scope = static_cast<int>(scopes.size());
    k.scope_count = n.region_count;
    k.branches = list.branches;
    k.operands.resize(at(n.operand_count), use{});
    k.results.resize(at(n.result_count), -1);
    for (int region = 0; region < n.region_count; ++region) {
      const program& r = q.region(o, region);
      scope_info s;
      s.known = known_inputs(q, o, region, list);
      s.trips = times(scopes[in].trips, list.trips);
      s.inputs.resize(r.inputs.size(), -1);
      s.outputs.resize(r.outputs.size(), use{});
      scopes.push_back(s);
    }
    vec<value_id> operands;
    vec<std::int64_t> shifts;
    for (const auto& w : list.wires) {
      operands.clear();
      shifts.clear();
      const op_id wire = p.op_count();
      for (const auto& e : w.ends) {
        const use here{wire, static_cast<int>(operands.size())};
        if (e.kind == wire_end::operand) {
          k.operands[e.index] = here;
          operands.push_back(copy.renamed[q.operand(o, e.index)]);
        } else if (e.kind == wire_end::output) {
          scopes[k.first_scope + e.region].outputs[e.index] = here;
          operands.push_back(-1);  // filled in with the nested program
        } else {
          continue;
        }
        shifts.push_back(e.shift);
      }
      for (const auto& e : w.ends)
        if (e.kind == wire_end::input || e.kind == wire_end::result) shifts.push_back(e.shift);
      p.append_op(def<op::wire>, operands, shifts);
      p.ops.back().marks = n.marks;
      if (!operands.empty() && operands[0] >= 0) take_marks(wire, operands[0]);
      belongs_to(in);
      for (const auto& e : w.ends) {
        if (e.kind == wire_end::input) {
          const int inner = k.first_scope + e.region;
          scopes[inner].inputs[e.index] =
              p.append_result(q.region(o, e.region).input_type(e.index));
          belongs_to(inner);
        } else if (e.kind == wire_end::result) {
          k.results[e.index] = p.append_result(q.type(n.result + e.index));
          belongs_to(in);
        }
      }
    }
    k.marker = append_copy(p, q, o, {}, q.attrs(o));
    belongs_to(in);
    for (op_id wire = first_wire; wire <= k.marker; ++wire)
      control[wire] = static_cast<int>(controls.size());
    for (int r = 0; r < n.result_count; ++r) copy.renamed[n.result + r] = k.results[r];
    if (const auto label = q.label(o, p.labels); !label.empty())
      for (int r = 0; r < n.result_count; ++r)
        p.labels.values.push_back({k.results[r], q.result_label(o, r, n.result_count, p.labels)});
    return k;
  }
};

}  // namespace partita
