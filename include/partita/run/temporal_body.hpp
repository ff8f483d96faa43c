/// Implementation of temporal.hpp. It is part of that header, or of the library that is compiled
/// once.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <partita/run/device/control_table.hpp>
#include <partita/run/interpreter.hpp>
#include <partita/run/locate.hpp>
#include <partita/run/slices.hpp>
#include <partita/run/temporal.hpp>

namespace partita {

namespace run_detail {

/// Runs a core program op by op, each op in its own nest of loops, and the programs nested in it.
class temporal_interpreter {
 public:
  temporal_interpreter(const core_program& c, const run_options& options)
      : c_(c), options_(options), by_scope_(c.nested.scopes.size()) {
    for (op_id o : c_.order) by_scope_[at(c_.nested.scope[o])].push_back(o);
  }

  /// Runs on global arrays, and returns global arrays.
  ///
  /// Errors    R001 to R003 wrong arrays, R005 no kernel for an op, R007 unknown op with nested
  ///           programs
  std::vector<array> operator()(std::span<const array> inputs) const {
    c_.p.error.raise();
    std::vector<tensor_type> types;
    for (int i = 0; i < c_.p.input_count(); ++i) types.push_back(c_.true_type(c_.p.inputs[i]));
    check_arrays(c_.p, types, inputs);
    memory values(at(c_.p.value_count()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values[at(c_.p.inputs[i])] = resized(inputs[i], c_.p.type(c_.p.inputs[i]).shape);
    run_scope(0, values);
    std::vector<array> out;
    for (const auto& each : c_.p.outputs)
      out.push_back(resized(values[at(each.value)], c_.true_shape(each.value)));
    return out;
  }

 private:
  using memory = std::vector<array>;  // by value
  using control_info = flat_program::control_info;

  const core_program& c_;
  run_options options_;
  std::vector<std::vector<op_id>> by_scope_;
  mutable std::array<std::int64_t, max_axes> index_ = {};  ///< by axis: the current iteration

  void run_scope(int scope, memory& values) const {
    for (op_id o : by_scope_[at(scope)]) {
      const op_node& n = c_.p.op(o);
      if (n.def->role == op_role::parameter || n.def->role == op_role::wire) continue;
      if (n.def->role == op_role::control) {
        run_control(*c_.nested.control_of(o), values);
        continue;
      }
      std::vector<array> operands;
      for (value_id v : c_.p.operands(o)) operands.push_back(values[at(v)]);
      vec<tensor_type> results;
      for (int r = 0; r < n.result_count; ++r) results.push_back(c_.p.type(n.result + r));
      const auto given = c_.p.attrs(o);
      vec<std::int64_t> attrs(given.begin(), given.end());
      const vec<halo_loops> halos = c_.halos_of(o, attrs);
      const std::vector<array> made =
          run_halos(o, {halos.data(), halos.size()}, operands, results, attrs);
      for (int r = 0; r < n.result_count; ++r) values[at(n.result + r)] = made[at(r)];
    }
  }

  /// Runs the loops over factors with halos, beginning with the first of `halos`, then the other
  /// loops. `results` are the types of their results.
  std::vector<array> run_halos(op_id o, std::span<const halo_loops> halos,
                               const std::vector<array>& operands, const vec<tensor_type>& results,
                               const vec<std::int64_t>& attrs) const {
    if (halos.empty()) return run_loops(o, 0, operands, results, attrs);
    const auto& [factor, axes, cut] = halos[0];
    const auto inner = [&](const std::vector<array>& sliced, const vec<tensor_type>& parts,
                           std::int64_t i) {
      for (int a = axes.count; a-- > 0;) {
        const int axis = axes.axes[a];
        index_[at(axis)] = i % c_.mesh.size(axis);
        i /= c_.mesh.size(axis);
      }
      return run_halos(o, halos.subspan(1), sliced, parts, attrs);
    };
    return run_slices(*c_.p.op(o).def, c_.map, o, factor, cut.pieces, cut, operands, results, attrs,
                      options_, inner, ignored);
  }

  /// Runs the loops of an op from depth `depth` inwards; `results` are the types of their results.
  std::vector<array> run_loops(op_id o, int depth, const std::vector<array>& operands,
                               const vec<tensor_type>& results,
                               const vec<std::int64_t>& attrs) const {
    const nest& loops = c_.nest_of(o);
    if (depth == loops.count) {
      if (c_.p.op(o).def->identity) return operands;
      if (const vec<located_loops> located = c_.located_of(o); !located.empty())
        return run_located(o, located, operands, results);
      return run_taps(o, operands, attrs, results);
    }
    const loop& l = loops.loops[depth];
    if (l.factor == any_factor || c_.map.at(o, l.factor).halo)
      return run_loops(o, depth + 1, operands, results, attrs);
    const auto inner = [&](const std::vector<array>& sliced, const vec<tensor_type>& parts,
                           std::int64_t i) {
      index_[at(l.axis)] = i;
      return run_loops(o, depth + 1, sliced, parts, attrs);
    };
    return run_slices(*c_.p.op(o).def, c_.map, o, l.factor, c_.mesh.size(l.axis), halo_cut{},
                      operands, results, attrs, options_, inner, ignored);
  }
  static void ignored(std::size_t, const array&, const array&) {}

  /// Runs an op on taps that are in bounds; taps in the padding at the end of a dimension are left
  /// out.
  std::vector<array> run_taps(op_id o, std::vector<array> operands, vec<std::int64_t> attrs,
                              const vec<tensor_type>& results) const {
    const op_def& def = *c_.p.op(o).def;
    for (const padded_taps& taps : c_.padded_taps_of(o)) {
      std::int64_t i = 0;
      for (int axis : taps.axes) i = i * c_.mesh.size(axis) + index_[at(axis)];
      const std::int64_t left = taps.size - i * taps.block,
                         count = left < taps.block ? left : taps.block;
      array& w = operands[at(taps.operand)];
      if (count <= 0) return {filled(results[0], c_.map.at(o, taps.factor).combine)};
      vec<tensor_type> types;
      for (const array& each : operands) types.push_back(each.type());
      narrow_taps(def, c_.map, c_.map.at(o, taps.factor), types, results[0], 0, count, attrs);
      w = piece_of(w, taps.dim, 0, count, w);
    }
    return run_op(def, operands, {attrs.data(), attrs.size()}, {results.data(), results.size()},
                  options_);
  }
  static array filled(const tensor_type& t, combiner c) {
    return run_op(def<op::constant>, std::vector<array>{}, std::vector{neutral_bits(c, t.element)},
                  t);
  }

  /// Runs one iteration of loops that know where their slices start.
  std::vector<array> run_located(op_id o, const vec<located_loops>& loops,
                                 const std::vector<array>& operands,
                                 const vec<tensor_type>& results) const {
    vec<located_piece> pieces;
    std::vector<std::int64_t> starts;
    for (const located_loops& each : loops) {
      std::int64_t i = 0;
      for (int axis : each.axes) i = i * c_.mesh.size(axis) + index_[at(axis)];
      pieces.push_back(each.piece);
      starts.push_back(i * each.piece.block);
    }
    return run_iteration(*c_.p.op(o).def, c_.map, o, operands, {results.data(), results.size()},
                         c_.p.attrs(o), pieces, starts, options_);
  }

  // ---- Ops with nested programs. Their wires pass values unchanged. -----------------------------

  std::vector<array> run_nested(const control_info& k, int region, const std::vector<array>& inputs,
                                memory& values) const {
    const auto& scope = c_.nested.scopes[at(k.first_scope + region)];
    for (std::size_t i = 0; i < inputs.size(); ++i) values[at(scope.inputs[i])] = inputs[i];
    run_scope(k.first_scope + region, values);
    std::vector<array> out;
    for (const auto& u : scope.outputs) out.push_back(values[at(c_.p.operand(u.op, u.operand))]);
    return out;
  }
  void run_control(const control_info& k, memory& values) const {
    std::vector<array> operands;
    for (const auto& u : k.operands) operands.push_back(values[at(c_.p.operand(u.op, u.operand))]);
    const std::vector<array> results = run_control(c_.p.op(k.marker).def, k, operands, values);
    for (std::size_t i = 0; i < results.size(); ++i) values[at(k.results[i])] = results[i];
  }
  std::vector<array> run_control(const op_def* what, const control_info& k,
                                 const std::vector<array>& operands, memory& values) const {
    if (k.scope_count == 0) return operands;  // only wires
    check_control(what);
    switch (control_kind_of(what)) {
      case control_kind::once:
        return run_nested(k, 0, operands, values);
      case control_kind::choose:
        return run_case(k, operands, values);
      case control_kind::repeat:
        return run_while(k, operands, values);
      case control_kind::scan:
        return run_scan(k, operands, values);
      case control_kind::unknown:
        break;
    }
    return {};
  }
  std::vector<array> run_while(const control_info& k, std::vector<array> carried,
                               memory& values) const {
    while (run_nested(k, 0, carried, values)[0].item<bool>())
      carried = run_nested(k, 1, carried, values);
    return carried;
  }
  std::vector<array> run_case(const control_info& k, const std::vector<array>& operands,
                              memory& values) const {
    const auto i = operands[0].item<std::int32_t>();
    const int region = i < 0 || i >= k.scope_count ? k.scope_count - 1 : i;
    return run_nested(k, region, {operands.begin() + 1, operands.end()}, values);
  }
  std::vector<array> run_scan(const control_info& k, std::vector<array> operands,
                              memory& values) const {
    const op::scan::counts n(c_.p.attrs(k.marker));
    const std::size_t first_sliced = at(n.constants + n.carried);
    std::vector<array> stacked;
    for (std::size_t j = at(n.carried); j < k.results.size(); ++j)
      stacked.emplace_back(c_.p.type(k.results[j]));
    for (std::int64_t i = 0; i < n.length; ++i) {
      const std::int64_t position = n.reversed ? n.length - 1 - i : i;
      std::vector<array> inputs{array(static_cast<std::int32_t>(position))};
      for (std::size_t j = 0; j < operands.size(); ++j) {
        if (j < first_sliced) {
          inputs.push_back(operands[j]);
        } else {
          const array slice = slice_of(operands[j], 0, n.length, position);
          inputs.push_back(slice.reshaped(op::scan::slice_of(operands[j].type()).shape));
        }
      }
      const std::vector<array> out = run_nested(k, 0, inputs, values);
      for (int j = 0; j < n.carried; ++j) operands[at(n.constants + j)] = out[at(j)];
      for (std::size_t j = 0; j < stacked.size(); ++j) {
        const array& piece = out[at(n.carried) + j];
        put_slice(piece.reshaped(op::scan::stack_of(1, piece.type()).shape), 0, position,
                  stacked[j]);
      }
    }
    std::vector<array> results(operands.begin() + n.constants,
                               operands.begin() + n.constants + n.carried);
    results.insert(results.end(), stacked.begin(), stacked.end());
    return results;
  }
};

PARTITA_LINKAGE std::vector<array> run_in_sequence::operator()(
    std::span<const array> inputs) const {
  return temporal_interpreter(c, options)(inputs);
}
PARTITA_LINKAGE std::shared_ptr<const std::vector<std::string>> run_in_sequence::output_names()
    const {
  return run_detail::output_names(c.p);
}

}  // namespace run_detail
}  // namespace partita
