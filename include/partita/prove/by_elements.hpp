/// Proof by elements: executes both programs on symbolic formulas.
#pragma once

#include <partita/prove/elements/interpreter.hpp>
#include <partita/prove/seen_values.hpp>
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

/// A drawn variable, or a number if the algebra runs at numbers, drawn by `seed`.
constexpr element drawn(algebra& a, dtype t, drawing d, int seed) {
  if (!a.at_numbers) return a.unknown(t, d.drawn());
  const std::uint64_t any = d.add(seed).drawn().a;
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(any % n); };
  if (is_floating(t)) return real(0.25 * static_cast<double>(below(33) - 16));
  if (t == dtype::boolean) return integer(t, below(2));
  constexpr std::uint64_t most[] = {100, 4, 8, 12};
  return integer(t, below(most[seed % 4]) - (seed % 4 == 3 ? 4 : 0));
}
/// An element of padding: arbitrary, or for the first seed zero, as padding is when programs run.
constexpr element padding(algebra& a, dtype t, drawing d, int seed) {
  return a.at_numbers && seed == 1 ? small_number(t, 0) : drawn(a, t, d, seed);
}

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
                            std::int64_t most_steps, const vec<seen_value>& known = {},
                            formula_words* words = nullptr)
      : source_(source), d_(d), outputs_(outputs), known_(known), on_(d.mesh), words_(words) {
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
    vec<tensors> whole;
    for (int i = 0; i < source_.input_count(); ++i) whole.push_back(variables(i));
    const mesh alone;
    const devices one(alone);
    element_interpreter source(a_, one, true), local(a_, on_, false);
    if (a_.is_over()) return said(element_verdict::too_large);
    vec<value_id> in_source, in_local;
    for (const int i : outputs_) {
      in_source.push_back(source_.outputs[i].value);
      in_local.push_back(d_.local.outputs[i].value);
    }
    const vec<int> place_of = want_known(in_local, in_source);
    const vec<tensors> wanted = source.run(
        source_, whole, in_source, [](value_id) { return false; },
        [](value_id) { return tensors(); });
    if (a_.is_over()) return said(element_verdict::too_large);
    vec<tensors> pieces;
    for (int i = 0; i < source_.input_count(); ++i) pieces.push_back(cut(i, whole[i]));
    const vec<tensors> made = local.run(
        d_.local, pieces, in_local, [&](value_id v) { return is_known(v); },
        [&](value_id v) { return seen(v, wanted[place_of[known_[v].whole]]); });
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
  vec<seen_value> known_;
  devices on_;
  formula_words* words_;
  algebra a_;
  int seed_ = 0;  ///< seed of numbers; 0: formulas

  constexpr bool is_known(value_id v) const { return !known_.empty() && known_[v].whole >= 0; }
  /// Adds the source values that local values are copied from: by value of the source, its index in
  /// the list.
  constexpr vec<int> want_known(const vec<value_id>& in_local, vec<value_id>& in_source) const {
    vec<int> place_of(source_.types.size(), -1);
    const program& p = d_.local;
    const vec<char> runs =
        element_interpreter::needed_ops(p, in_local, [&](value_id v) { return is_known(v); });
    for (op_id o = 0; o < p.op_count() && !known_.empty(); ++o)
      for (int r = 0; r < p.op(o).result_count && runs[o] == element_interpreter::is_taken; ++r) {
        const value_id whole = known_[p.op(o).result + r].whole;
        if (whole < 0 || place_of[whole] >= 0) continue;
        place_of[whole] = static_cast<int>(in_source.size());
        in_source.push_back(whole);
      }
    return place_of;
  }
  /// A local value according to a claim. Padding is arbitrary, or a number that the claim states.
  constexpr tensors seen(value_id v, const tensors& whole) {
    const tensor_type& t = d_.local.type(v);
    a_.steps =
        saturating_add(a_.steps, 1 + saturating_multiply(t.shape.elements(), on_.count()) / 10);
    if (a_.is_over()) return {};
    tensors made = no_elements_yet(t, on_.count());
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for_each_place(t.shape, [&](const place& i, std::int64_t n) {
        place at;
        std::int64_t bits = 0;
        const standing stands = known_[v].find(
            whole.type.shape, t.shape, i.at, [&](int axis) { return on_.along(axis, d); }, at.at,
            bits);
        element& x = made.on(d)[n];
        if (stands == standing::inside)
          x = whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))];
        else if (stands == standing::number)
          x = number_of_bits(t.element, bits);
        else
          x = a_.unknown(t.element, drawing(9).add(v).add(d).add(n).drawn());
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
  constexpr tensors variables(int input) {
    const tensor_type& t = source_.input_type(input);
    a_.steps = saturating_add(a_.steps, t.shape.elements());
    if (a_.is_over()) return {};
    tensors made = no_elements_yet(t, 1);
    for_each_place(t.shape, [&](const place& i, std::int64_t n) {
      made.on(0)[n] = drawn(t.element, drawing(3).add(input).add(n));
      if (words_ == nullptr) return;
      words_->add(made.on(0)[n].of, {origin::input, source_.input_name(input), index(i, t.shape)});
    });
    return made;
  }
  constexpr element drawn(dtype t, drawing d) { return prove_detail::drawn(a_, t, d, seed_); }
  static constexpr vec<std::int64_t> index(const place& i, const shape& s) {
    vec<std::int64_t> list;
    for (int d = 0; d < s.rank; ++d) list.push_back(i[d]);
    return list;
  }
  /// The shards of an input on each device; padding is arbitrary.
  constexpr tensors cut(int input, const tensors& whole) {
    const tensor_type& t = d_.local.input_type(input);
    a_.steps = saturating_add(a_.steps, saturating_multiply(t.shape.elements(), on_.count()));
    if (a_.is_over()) return {};
    tensors made = no_elements_yet(t, on_.count());
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for_each_place(t.shape, [&](const place& i, std::int64_t n) {
        const place at = on_.whole(d_.inputs[input], t.shape, i, d);
        const bool inside = lies_in(at, whole.type.shape);
        element& x = made.on(d)[n];
        x = inside ? whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))]
                   : padding(a_, t.element, drawing(4).add(input).add(d).add(n), seed_);
        if (!inside && words_ != nullptr) words_->add(x.of, {origin::input, "padding"});
      });
    return made;
  }
  constexpr void compare(int output, const tensors& whole, const tensors& pieces,
                         element_verdict& v) const {
    const shape& local = pieces.type.shape;
    for (std::int64_t d = 0; d < on_.count() && v.kind == element_verdict::proved; ++d)
      for_each_place(local, [&](const place& i, std::int64_t n) {
        const place at = on_.whole(d_.outputs[output], local, i, d);
        if (v.kind != element_verdict::proved || !lies_in(at, whole.type.shape)) return;
        const element& made = pieces.on(d)[n];
        const element& wanted =
            whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))];
        if (made == wanted || (a_.at_numbers && !(made.known && wanted.known))) return;
        v.kind = element_verdict::differs;
        v.output = output;
        v.at = at;
        v.device = d;
        if (words_ != nullptr) v.formulas = words_->difference(made, wanted);
      });
  }
};

/// Compares outputs of a local program with its source by elements. `most_steps` limits the number
/// of computed elements and products of both programs on all devices. Joining products of
/// exponentials may take the same number again.
constexpr element_verdict prove_by_elements(const program& source, const device_program& d,
                                            const vec<int>& outputs, std::int64_t most_steps,
                                            const vec<seen_value>& known = {}) {
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
