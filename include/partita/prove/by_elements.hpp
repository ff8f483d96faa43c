/// Proof by elements: executes both programs on symbolic formulas.
#pragma once

#include <partita/prove/elements/interpreter.hpp>
#include <partita/prove/elements/shards.hpp>
#include <partita/prove/kernel/claim.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita::prove_detail {

/// The result of a proof by elements.
struct element_verdict {
  enum kind_type : std::uint8_t { proved, differs, not_known, too_large };
  kind_type kind = not_known;
  std::int64_t steps = 0;       ///< number of steps
  int output = -1;              ///< the first output that differs
  place at;                     ///< its first element that differs
  std::int64_t device = 0;      ///< the first device on which it differs
  text formulas;                ///< both formulas, shortened, on request
  std::string_view unknown_op;  ///< an op with unknown results, if any
  bool has_products = false;    ///< true if there are products of exponentials
};

/// Executes the source, and the local program on all devices, on formulas, one for each element.
/// Inputs are variables, sharded by their layouts, and outputs must have the same formulas. Ops
/// that the compared outputs do not need are skipped.
///
/// Cost      linear in the elements of all values on all devices, and in what sums add up
class element_checker {
 public:
  /// `outputs`: the outputs to compare. `known`: by local value, a claim whose value is copied from
  /// the source. `words`: if set, the verdict contains both formulas of the difference, in these
  /// words.
  constexpr element_checker(const program& source, const device_program& d, const vec<int>& outputs,
                            std::int64_t most_steps, const vec<shard_claim>& known = {},
                            formula_words* words = nullptr)
      : source_(source), d_(d), outputs_(outputs), known_(known), on_(d.mesh) {
    a_.most_steps = most_steps;
    a_.log = words;
  }
  /// Leaves products of exponentials unsimplified.
  constexpr element_checker& leave_exponentials() {
    a_.joins_exponentials = false;
    return *this;
  }

  /// Uses numbers as inputs, drawn by `seed` (at least 1): small integers and quarters, whose sums
  /// and products are exact. Functions are arbitrary, because claims hold for any function, except
  /// that exp(a + b) is exp(a) exp(b). Results that are not exact numbers (rounded quotients,
  /// folds, sorts) are not compared, because equal formulas may look different.
  constexpr element_checker& at_numbers(int seed) {
    seed_ = seed;
    a_.at_numbers = true;
    return *this;
  }

  constexpr element_verdict check() {
    vec<value_id> in_source, in_local;
    for (const int i : outputs_) {
      in_source.push_back(source_.outputs[i].value);
      in_local.push_back(d_.local.outputs[i].value);
    }
    const vec<int> place_of = want_known(in_local, in_source);
    if (least_steps(in_source) > a_.most_steps) return said(element_verdict::too_large);
    element_inputs inputs(a_, seed_);
    vec<tensors> whole;
    for (int i = 0; i < source_.input_count(); ++i)
      whole.push_back(inputs.variables(source_.input_type(i), i, source_.input_name(i)));
    const mesh alone;
    const devices one(alone);
    element_interpreter source(a_, one, true), local(a_, on_, false);
    if (a_.is_over()) return said(element_verdict::too_large);
    const vec<tensors> wanted = source.run(
        source_, whole, in_source, [](value_id) { return false; },
        [](value_id) { return tensors(); });
    if (a_.is_over()) return said(element_verdict::too_large);
    vec<tensors> pieces;
    for (int i = 0; i < source_.input_count(); ++i)
      pieces.push_back(
          inputs.shards(whole[i], d_.local.input_type(i), d_.inputs[i], on_, drawing(4).add(i)));
    const vec<tensors> made = local.run(
        d_.local, pieces, in_local, [&](value_id v) { return is_known(v); },
        [&](value_id v) { return seen(v, wanted[place_of[known_[v].of]]); });
    if (a_.is_over()) return said(element_verdict::too_large);
    element_verdict v = said(element_verdict::proved);
    for (std::size_t i = 0; i < outputs_.size() && v.kind == element_verdict::proved; ++i)
      compare(outputs_[i], wanted[i], made[i], v);
    v.unknown_op = local.unknown_op().empty() ? source.unknown_op() : local.unknown_op();
    if (v.kind == element_verdict::differs && (!v.unknown_op.empty() || a_.cut_short))
      v.kind = element_verdict::not_known;
    return v;
  }

 private:
  const program& source_;
  const device_program& d_;
  vec<int> outputs_;
  vec<shard_claim> known_;
  devices on_;
  algebra a_;
  int seed_ = 0;  ///< seed of numbers; 0: formulas

  constexpr bool is_known(value_id v) const {
    return !known_.empty() && known_[v].known() && known_[v].pending.empty();
  }
  /// A lower bound of the steps for these source values: the elements and products that elementwise
  /// ops, dot_general and convolutions compute.
  constexpr std::int64_t least_steps(const vec<value_id>& wanted) const {
    const program& p = source_;
    const vec<char> runs =
        element_interpreter::needed_ops(p, wanted, [](value_id) { return false; });
    std::int64_t steps = 0;
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_def& d = *p.op(o).def;
      if (runs[o] == 0 ||
          !(d.elementwise || d.id == def<op::dot_general>.id || d.id == def<op::convolution>.id))
        continue;
      vec<tensor_type> types;
      for (const value_id v : p.operands(o)) types.push_back(p.type(v));
      const cost_context c{types, p.type(p.op(o).result), p.attrs(o)};
      steps = saturating_add(steps, d.elementwise ? c.result.shape.elements() : d.flops(c) / 2);
    }
    return steps;
  }
  /// Adds the source values that local values are copied from: by value of the source, its index in
  /// the list.
  constexpr vec<int> want_known(const vec<value_id>& in_local, vec<value_id>& in_source) const {
    vec<int> place_of(source_.types.size(), -1);
    const program& p = d_.local;
    const vec<char> runs =
        element_interpreter::needed_ops(p, in_local, [&](value_id v) { return is_known(v); });
    for (op_id o = 0; o < p.op_count() && !known_.empty(); ++o)
      for (int r = 0; r < p.op(o).result_count && runs[o] == element_interpreter::is_taken; ++r) {
        const value_id whole = known_[p.op(o).result + r].of;
        if (!is_known(p.op(o).result + r) || place_of[whole] >= 0) continue;
        place_of[whole] = static_cast<int>(in_source.size());
        in_source.push_back(whole);
      }
    return place_of;
  }
  /// A local value according to a claim. Padding is arbitrary.
  constexpr tensors seen(value_id v, const tensors& whole) {
    const tensor_type& t = d_.local.type(v);
    const shard_claim& c = known_[v];
    a_.steps =
        saturating_add(a_.steps, 1 + saturating_multiply(t.shape.elements(), on_.count()) / 10);
    if (a_.is_over()) return {};
    tensors made = no_elements_yet(t, on_.count());
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for_each_place(t.shape, [&](const place& i, std::int64_t n) {
        place at = on_.whole(c.sharding, t.shape, i, d);
        for (int dim = 0; dim < t.shape.rank; ++dim)
          if (c.is_free(dim)) at[dim] = 0;
        made.on(d)[n] = lies_in(at, whole.type.shape)
                            ? whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))]
                            : a_.unknown(t.element, drawing(9).add(v).add(d).add(n).drawn());
      });
    return made;
  }
  constexpr element_verdict said(element_verdict::kind_type kind) const {
    element_verdict v;
    v.kind = kind;
    v.steps = a_.steps;
    v.has_products = a_.has_products;
    return v;
  }
  constexpr void compare(int output, const tensors& whole, const tensors& pieces,
                         element_verdict& v) const {
    const element_difference first = first_difference(a_, on_, d_.outputs[output], whole, pieces);
    if (!first.found) return;
    v.kind = element_verdict::differs;
    v.output = output;
    v.at = first.at;
    v.device = first.device;
    if (a_.log != nullptr) v.formulas = a_.log->difference(first.made, first.wanted);
  }
};

/// Compares outputs of a local program with its source by elements. `most_steps` limits the number
/// of computed elements and products of both programs on all devices. Joining products of
/// exponentials may take the same number again.
constexpr element_verdict prove_by_elements(const program& source, const device_program& d,
                                            const vec<int>& outputs, std::int64_t most_steps,
                                            const vec<shard_claim>& known = {}) {
  const element_verdict v =
      element_checker(source, d, outputs, most_steps, known).leave_exponentials().check();
  if (v.kind == element_verdict::proved || !v.has_products) return v;
  return element_checker(source, d, outputs, most_steps, known).check();
}
constexpr vec<int> all_outputs(const program& p) {
  vec<int> all;
  for (int i = 0; i < p.output_count(); ++i) all.push_back(i);
  return all;
}
constexpr element_verdict prove_by_elements(const program& source, const device_program& d,
                                            std::int64_t most_steps) {
  return prove_by_elements(source, d, all_outputs(source), most_steps);
}
/// Returns a difference of outputs for random numbers, if there is one.
constexpr element_verdict compare_at_numbers(const program& source, const device_program& d,
                                             std::int64_t most_steps) {
  constexpr int most_seeds = 8;
  element_verdict v;
  for (int seed = 1; seed <= most_seeds; ++seed) {
    v = element_checker(source, d, all_outputs(source), most_steps).at_numbers(seed).check();
    if (v.kind != element_verdict::proved) return v;
  }
  return v;
}

/// The position of a difference: `element [0, 1] of output "y" on device {"B": 1}`.
constexpr text element_text(const program& source, const mesh& m, const element_verdict& v) {
  text out;
  out << "element [";
  append_list(out, source.output_type(v.output).shape.rank, [&](int d) { out << v.at[d]; });
  out << "] of output \"" << source.output_name(v.output) << "\"";
  if (m.devices() == 1) return out;
  out << " on device {";
  const devices on(m);
  append_list(out, m.rank,
              [&](int a) { out << '"' << m.name(a) << "\": " << on.along(a, v.device); });
  return out << '}';
}

}  // namespace partita::prove_detail
