/// Finds the place of a mistake: the first local op whose result is not a value of the source.
#pragma once

#include <partita/prove/by_elements.hpp>
#include <partita/prove/kernel/kernel.hpp>
#include <partita/prove/words.hpp>

namespace partita::prove_detail {

/// The place of a mistake.
struct mistake {
  op_id op = -1;           ///< the local op, or -1: the output itself
  value_id pending = -1;   ///< an operand of this op, or the output, that lacks a reduction
  shard_claim of_pending;  ///< the claim about it
};

/// Finds the place of a mistake: by claims, and by elements for what claims do not know, if both
/// programs are small enough. A local value is known by elements if all its elements are elements
/// of source values, or numbers. It lacks a reduction if this holds for its reduction over some
/// axes. Padding is zero. Running both programs takes at most `most_steps`.
class mistake_finder {
 public:
  constexpr mistake_finder(const program& source, const device_program& d,
                           const claim_kernel& claims, std::int64_t most_steps)
      : source_(source), d_(d), claims_(claims.claims()), on_(d.mesh) {
    a_.most_steps = most_steps;
    if (most_steps <= 0 || !run_all()) return;
    has_elements_ = true;
    for (value_id v = 0; v < source.value_count(); ++v)
      for (const element& x : of_source_[v].all)
        if (!x.known) found_.add(x.of, claims.canonical(v));
  }

  /// The place that makes an output differ.
  constexpr mistake find(int output) {
    const value_id last = d_.local.outputs[output].value;
    mistake m;
    if (is_known(last)) return m;
    vec<char> needed(d_.local.ops.size(), 0);
    needed[d_.local.producer(last)] = 1;
    for (op_id o = d_.local.op_count(); o-- > 0;)
      for (int i = 0; needed[o] != 0 && i < d_.local.op(o).operand_count; ++i)
        if (const value_id x = d_.local.operand(o, i); !is_known(x) && !is_pending(x))
          needed[d_.local.producer(x)] = 1;
    for (op_id o = 0; m.op < 0 && o < d_.local.op_count(); ++o)
      if (needed[o] != 0 && is_first(o)) m.op = o;
    if (m.op >= 0 && d_.local.op(m.op).operand_count == 0) m.op = -1;
    if (is_pending(last)) m.op = -1;
    for (int i = 0; m.op >= 0 && m.pending < 0 && i < d_.local.op(m.op).operand_count; ++i)
      if (is_pending(d_.local.operand(m.op, i))) m.pending = d_.local.operand(m.op, i);
    if (m.op < 0 && is_pending(last)) m.pending = last;
    if (m.pending >= 0) m.of_pending = claim_of(m.pending);
    return m;
  }
  /// Prints the claim about a local value, or the source value that has its elements.
  constexpr void print(text& out, value_id v) {
    const shard_claim c = claim_of(v);
    if (!c.known() && is_known(v)) {
      out << "constant";
      return;
    }
    if (claims_[v].known() || c.of < 0) return print_claim(out, source_, c, d_.mesh);
    if (c.pending.empty()) out << "elements of ";
    print_source_value(out, source_, c.of);
    if (c.pending.empty()) return;
    out << ", to be reduced by " << name_of(c.combine) << " over ";
    print_axis_set(out, c.pending, d_.mesh);
  }

 private:
  const program& source_;
  const device_program& d_;
  const vec<shard_claim>& claims_;
  devices on_;
  algebra a_;
  bool has_elements_ = false;
  vec<tensors> of_source_, of_local_;  ///< by value
  facts<value_id> found_;              ///< by element: the first source value that has it
  vec<shard_claim> by_elements_;       ///< by value; see `looked`
  vec<char> looked_;                   ///< by value; `numbers` if all its elements are numbers
  static constexpr char seen = 1, numbers = 2;

  /// Computes all values of both programs. False after too many steps.
  constexpr bool run_all() {
    element_inputs inputs(a_);
    inputs.pad_zeros();
    vec<tensors> whole, shards;
    for (int i = 0; i < source_.input_count(); ++i) {
      whole.push_back(inputs.variables(source_.input_type(i), i, source_.input_name(i)));
      if (a_.is_over()) return false;
      shards.push_back(
          inputs.shards(whole[i], d_.local.input_type(i), d_.inputs[i], on_, drawing(4).add(i)));
      if (a_.is_over()) return false;
    }
    const mesh alone;
    const devices one(alone);
    of_source_ = run_all(source_, whole, one, true);
    if (!a_.is_over()) of_local_ = run_all(d_.local, shards, on_, false);
    return !a_.is_over();
  }
  constexpr vec<tensors> run_all(const program& p, const vec<tensors>& inputs, const devices& on,
                                 bool is_source) {
    vec<value_id> all;
    for (value_id v = 0; v < p.value_count(); ++v) all.push_back(v);
    return element_interpreter(a_, on, is_source)
        .run(
            p, inputs, all, [](value_id) { return false; }, [](value_id) { return tensors(); });
  }
  /// True if devices along each of these axes have different elements.
  constexpr bool varies(const tensors& of, axis_set axes) const {
    axis_set found;
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for (int a = 0; a < d_.mesh.rank; ++a)
        for (std::int64_t n = 0; n < of.size() && axes.contains(a) && !found.contains(a); ++n)
          if (!(of.on(d)[n] == of.on(on_.moved(d, a, 0))[n])) found.insert(a);
    return found == axes;
  }
  /// A local value after a reduction over these axes.
  constexpr tensors reduced(const tensors& from, axis_set axes, combiner how) {
    collective what;
    what.kind = collective::all_reduce;
    what.combine = how;
    for (int a = 0; a < d_.mesh.rank; ++a)
      if (axes.contains(a)) what.axes.push_back(a, no_dim);
    a_.steps = saturating_add(
        a_.steps, saturating_multiply(from.size() * on_.count(), what.members(d_.mesh)));
    if (a_.is_over()) return {};
    tensors to = no_elements_yet(from.type, on_.count());
    exchanged(a_, on_, what, from, to).fill();
    return to;
  }
  constexpr bool is_known(value_id v) {
    const shard_claim c = claim_of(v);
    return (c.known() && c.pending.empty()) || (!looked_.empty() && looked_[v] == numbers);
  }
  constexpr bool is_pending(value_id v) { return !claim_of(v).pending.empty(); }
  constexpr bool is_first(op_id o) {
    for (const value_id x : d_.local.operands(o))
      if (!is_known(x) && !is_pending(x)) return false;
    return true;
  }
  constexpr shard_claim claim_of(value_id v) {
    if (claims_[v].known() || !has_elements_ || of_local_[v].all.empty()) return claims_[v];
    if (looked_.empty()) {
      looked_.resize(of_local_.size(), 0);
      by_elements_.resize(of_local_.size(), shard_claim{});
    }
    if (looked_[v] == 0) {
      looked_[v] = numbers;
      for (const element& x : of_local_[v].all)
        if (!x.known) looked_[v] = seen;
      if (looked_[v] == seen) by_elements_[v] = look_up(v);
    }
    return by_elements_[v];
  }
  constexpr shard_claim look_up(value_id v) {
    shard_claim c;
    c.of = find(of_local_[v]);
    if (c.known()) return c;
    const dtype t = of_local_[v].type.element;
    for (unsigned axes = 1; axes < 1u << d_.mesh.rank; ++axes)
      for (const combiner how : {combiner::add, combiner::max, combiner::min, combiner::logical_and,
                                 combiner::logical_or}) {
        const bool of_flags = how == combiner::logical_and || how == combiner::logical_or;
        if (of_flags != (t == dtype::boolean) || a_.is_over()) continue;
        if (!varies(of_local_[v], {static_cast<std::uint8_t>(axes)})) continue;
        c.pending.bits = static_cast<std::uint8_t>(axes);
        c.combine = how;
        c.of = find(reduced(of_local_[v], c.pending, how));
        if (c.known()) return c;
      }
    return {};
  }
  /// The source value that elements are found in, or -1 if one is not found. (Numbers are in many.)
  constexpr value_id find(const tensors& made) const {
    value_id of = -1;
    for (const element& x : made.all) {
      const value_id* const found = x.known ? nullptr : found_.find(x.of);
      if (found == nullptr && !x.known) return -1;
      if (found != nullptr && of < 0) of = *found;
    }
    return of;
  }
};

/// Reports why an output is not proved.
///
/// Errors    Q003, Q009 for an op without a tile map, Q004
constexpr void report_mistake(const program& source, const device_program& d,
                              const claim_kernel& claims, int output, std::int64_t most_steps,
                              failure& f) {
  mistake_finder finder(source, d, claims, most_steps);
  const mistake m = finder.find(output);
  const program& p = d.local;
  text out;
  if (m.op >= 0) {
    const value_names names(p);
    const op_node& n = p.op(m.op);
    out << op_text(p, m.op) << ": "
        << (m.pending >= 0         ? "an operand is pending"
            : has_tile_map(*n.def) ? "the source computes nothing like it"
                                   : "its operands must be unsharded because it has no tile map");
    for (int i = 0; i < n.operand_count && i < 4; ++i) {
      out << "; %" << names[p.operand(m.op, i)] << " is ";
      finder.print(out, p.operand(m.op, i));
    }
    if (m.pending >= 0)
      out << "; "
          << missing_reduction(m.of_pending, concat(" of %", names[m.pending]).view(), d.mesh);
    else
      out << "; output \"" << source.output_name(output) << "\" is computed from it";
    return f.record(has_tile_map(*n.def) ? "Q003" : "Q009", "prove: ", out);
  }
  out << "output \"" << source.output_name(output) << "\" is ";
  finder.print(out, p.outputs[output].value);
  out << "; in the source it is ";
  print_source_value(out, source, source.outputs[output].value);
  print_sharding(out, d.outputs[output], source.output_type(output).shape.rank, d.mesh);
  if (m.pending >= 0 && m.of_pending.of == claims.canonical(source.outputs[output].value))
    out << "; " << missing_reduction(m.of_pending, "", d.mesh);
  f.record("Q004", "prove: ", out);
}

}  // namespace partita::prove_detail
