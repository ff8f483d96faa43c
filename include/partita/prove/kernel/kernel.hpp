/// The kernel of claims: proves what the lowering makes, exactly, at any size.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/prove/kernel/collective_rule.hpp>
#include <partita/prove/kernel/position_rule.hpp>
#include <partita/prove/kernel/source_values.hpp>
#include <partita/prove/kernel/tile_rule.hpp>
#include <partita/prove/kernel/wire_forms.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita::prove_detail {

/// Derives a claim about each local value from those about its operands, in one pass.
class claim_kernel {
 public:
  constexpr claim_kernel(const program& source, const device_program& d)
      : source_(source), d_(d), tiles_(d.mesh), values_(source) {}

  /// Derives the claims about all local values; `open` then has the outputs that are not proved
  /// to be the blocks of the source's outputs that their layouts state.
  constexpr void run() {
    claims_.resize(d_.local.types.size(), shard_claim{});
    for (int i = 0; i < source_.input_count(); ++i) {
      shard_claim& c = claims_[d_.local.inputs[i]];
      c.of = values_.canonical(source_.inputs[i]);
      c.sharding = without_trivial_axes(d_.inputs[i], d_.mesh);
    }
    visit(values_, d_.local, claims_);
    for (int i = 0; i < source_.output_count(); ++i) {
      shard_claim want;
      want.of = values_.canonical(source_.outputs[i].value);
      want.sharding = without_trivial_axes(d_.outputs[i], d_.mesh);
      const shape& s = source_.type(want.of).shape;
      const shard_claim& have = claims_[d_.local.outputs[i].value];
      if (!s.has_no_elements() && (have.of != want.of || !has_form(have, want, s.rank)))
        open_.push_back(i);
    }
  }
  /// Derives the claims about the results of an op from those about its operands, on the mesh that
  /// the device program has now.
  constexpr void visit(const program& local, op_id o, vec<shard_claim>& claims) {
    visit(values_, local, o, claims);
  }
  constexpr const source_values& values() const { return values_; }
  /// Axes slice a factor next to others only if this number divides its size.
  constexpr void set_grain(std::int64_t grain) { tiles_.grain = grain; }
  constexpr const vec<int>& open() const { return open_; }
  /// The first source value that is computed in the same way.
  constexpr value_id canonical(value_id of_source) const { return values_.canonical(of_source); }
  /// The claims about the values of the local program outside of nested programs.
  constexpr const vec<shard_claim>& claims() const { return claims_; }

 private:
  const program& source_;
  const device_program& d_;
  tile_rule tiles_;
  source_values values_;
  vec<shard_claim> claims_;
  vec<int> open_;
  vec<value_id> operands_;
  vec<shard_claim> given_, made_;

  constexpr void visit(const source_values& values, const program& local,
                       vec<shard_claim>& claims) {
    for (op_id o = 0; o < local.op_count(); ++o) visit(values, local, o, claims);
  }
  constexpr void visit(const source_values& values, const program& local, op_id o,
                       vec<shard_claim>& claims) {
    const op_node& n = local.op(o);
    if (n.def->role == op_role::parameter || n.def->id == def<op::shard_start>.id) return;
    if (n.def->id == def<op::add>.id) {
      claims[n.result] = block_of_iota(values, local, o, d_.mesh);
      if (claims[n.result].known()) return;
    }
    given_.clear();
    operands_.clear();
    for (value_id x : local.operands(o)) {
      const shard_claim& c = claims[x];
      if (!c.known()) return;
      given_.push_back(c);
      operands_.push_back(c.of);
    }
    if (n.def->collective) {
      const collective what = local.collective_of(o);
      for (int r = 0; r < n.result_count; ++r) {
        shard_claim c = given_[r];
        if (collective_rule(what, d_.mesh).apply(c)) claims[n.result + r] = c;
      }
      return;
    }
    if (returns_operands(local, o)) {
      for (int r = 0; r < n.result_count; ++r) claims[n.result + r] = given_[r];
      return;
    }
    if (source_values::sort_operands(*n.def, operands_)) {
      const shard_claim kept = given_[0];
      given_[0] = given_[1];
      given_[1] = kept;
    }
    const op_id first = values.first(*n.def, local.attrs(o), operands_);
    if (first < 0) return;
    const op_id hint = values.next(first) < 0 ? -1 : values.numbered(n.marks.source);
    for (op_id s = first; s >= 0; s = values.next(s))
      if (s == hint && computed(values, s, local, o, claims)) return;
    for (op_id s = first; s >= 0; s = values.next(s))
      if (computed(values, s, local, o, claims)) return;
  }
  /// True if the local op computes blocks of the results of source op `s`.
  constexpr bool computed(const source_values& values, op_id s, const program& local, op_id o,
                          vec<shard_claim>& claims) {
    const op_node& n = local.op(o);
    if (n.region_count > 0 ? !repeated(values, s, local, o)
                           : !tiles_.apply(values.source(), s, local, o, given_, made_))
      return false;
    for (int r = 0; r < n.result_count; ++r) claims[n.result + r] = made_[r];
    return true;
  }
  /// The same for ops with nested programs: these compute blocks of what the source's compute, if
  /// the values that enter them are such blocks. For a loop, this is an induction: the carried
  /// values keep their form from one iteration to the next.
  constexpr bool repeated(const source_values& values, op_id s, const program& local, op_id o) {
    const program& source = values.source();
    const op_node &of = source.op(s), &n = local.op(o);
    if (of.region_count != n.region_count || of.result_count != n.result_count) return false;
    vec<source_values> nested;
    for (int r = 0; r < n.region_count; ++r) {
      const program &whole = source.region(s, r), &block = local.region(o, r);
      if (whole.input_count() != block.input_count() ||
          whole.output_count() != block.output_count())
        return false;
      nested.push_back(source_values(whole));
    }
    const vec<shard_claim> operands = given_;
    wire_forms forms(source, s, local, o, operands);
    bool same = forms.enter(), guesses = same && forms.guess();
    for (int tries = 0; same && tries < most_forms; ++tries) {
      vec<vec<shard_claim>> claims;
      for (int r = 0; r < n.region_count; ++r)
        claims.push_back(vec<shard_claim>(local.region(o, r).types.size(), shard_claim{}));
      forms.for_inputs([&](int r, int i, const shard_claim& form) {
        shard_claim& c = claims[r][local.region(o, r).inputs[i]];
        c = form;
        c.of = nested[r].canonical(source.region(s, r).inputs[i]);
      });
      for (int r = 0; r < n.region_count; ++r) visit(nested[r], local.region(o, r), claims[r]);
      bool changed = false;
      same = forms.leave(
          [&](int r, int i) {
            shard_claim c = claims[r][local.region(o, r).outputs[i].value];
            if (c.of != nested[r].canonical(source.region(s, r).outputs[i].value)) c.of = -1;
            return c;
          },
          changed);
      if (same && !changed && !guesses) return forms.results(made_);
      forms.end_guess();
      guesses = false;
    }
    given_ = operands;
    return false;
  }
  static constexpr int most_forms = 5;
};

}  // namespace partita::prove_detail
