/// Sharding and pending reductions of the values that pass through an op with nested programs.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/prove/kernel/claim.hpp>
#include <partita/prove/kernel/pending_rule.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// True if a value about which `c` is known also has the sharding and the pending reduction of
/// `want`. (`of` is ignored.)
constexpr bool has_form(const shard_claim& c, const shard_claim& want, int rank) {
  if (c.pending != want.pending || (!c.pending.empty() && c.combine != want.combine)) return false;
  for (int d = 0; d < rank; ++d) {
    if (want.is_free(d) && !c.is_free(d)) return false;
    if (!c.is_free(d) && !same_axes(axes_along(c.sharding, d), axes_along(want.sharding, d)))
      return false;
  }
  return true;
}

/// The form of a slice of a value, which lacks leading dimensions, or (with a negative `shift`) of
/// a stack of values, which has more.
constexpr shard_claim shifted_form(const shard_claim& c, int shift) {
  shard_claim r = c;
  r.of = -1;
  r.sharding = {};
  for (const auto& e : c.sharding) r.sharding.push_back(e.axis, e.dim - shift);
  r.free = static_cast<std::uint8_t>(shift >= 0 ? c.free >> shift : c.free << -shift);
  return r;
}

/// The forms of the values of each wire of an op: sharding and pending reduction, as the nested
/// programs see them. A value that a loop carries has one form in all iterations.
class wire_forms {
 public:
  constexpr wire_forms(const program& source, op_id s, const program& local, op_id o,
                       const vec<shard_claim>& operands)
      : source_(source), s_(s), local_(local), o_(o), operands_(operands) {
    local.op(o).def->wires(local, o, list_);
  }

  /// Finds the forms of the operands. False if a leading dimension that a loop runs over is
  /// sharded.
  constexpr bool enter() {
    forms_.resize(list_.wires.size(), shard_claim{});
    known_.resize(list_.wires.size(), 0);
    for (std::size_t w = 0; w < list_.wires.size(); ++w)
      for (const wire_end& e : list_.wires[w].ends) {
        if (e.kind == wire_end::input) known_[w] = 1;
        if (e.kind != wire_end::operand) continue;
        const shard_claim& c = operands_[e.index];
        for (const auto& each : c.sharding)
          if (each.dim < e.shift) return false;
        if (!same_leading(source_.type(source_.operand(s_, e.index)),
                          local_.type(local_.operand(o_, e.index)), e.shift))
          return false;
        forms_[w] = shifted_form(c, e.shift);
        if (!c.pending.empty() && !has(w, wire_end::input)) return false;  // it selects a branch
      }
    return true;
  }
  /// Marks values that start as zeros: sums that a loop adds to them may stay pending. Whether they
  /// do is found in a first pass, and checked in a second one without marks. False if there are
  /// none.
  constexpr bool guess() {
    bool any = false;
    for (std::size_t w = 0; w < list_.wires.size(); ++w) {
      if (!has(w, wire_end::output)) continue;
      for (const wire_end& e : list_.wires[w].ends)
        if (e.kind == wire_end::operand && e.shift == 0 && forms_[w].pending.empty() &&
            is_zero_everywhere(source_, operands_[e.index].of))
          any = forms_[w].starts_zero = true;
    }
    return any;
  }
  constexpr void end_guess() {
    for (shard_claim& each : forms_) each.starts_zero = false;
  }
  /// Calls f(region, input, form) for each input of the nested programs.
  template <class F>
  constexpr void for_inputs(const F& f) const {
    for (std::size_t w = 0; w < list_.wires.size(); ++w)
      for (const wire_end& e : list_.wires[w].ends)
        if (e.kind == wire_end::input) f(e.region, e.index, forms_[w]);
  }
  /// Compares the outputs of the nested programs, output(region, index) -> claim, with the forms.
  /// Changes the form of a carried value to that of the output if the value at the start has this
  /// form, too; `changed` is then true. False if the forms do not fit.
  template <class Output>
  constexpr bool leave(const Output& output, bool& changed) {
    for (std::size_t w = 0; w < list_.wires.size(); ++w)
      for (const wire_end& e : list_.wires[w].ends) {
        if (e.kind != wire_end::output) continue;
        const shard_claim c = output(e.region, e.index);
        if (!c.known()) return false;
        if (!c.pending.empty() && !has(w, wire_end::result)) return false;  // it ends a loop
        const int rank = local_.region(o_, e.region).output_type(e.index).shape.rank;
        if (known_[w] && has_form(c, forms_[w], rank)) continue;
        shard_claim next = c;
        next.of = -1;
        if (known_[w]) {
          next.free = static_cast<std::uint8_t>(next.free & forms_[w].free);
          if (!has_form(c, next, rank) || !starts_with(w, next, rank)) return false;
          changed = true;
        }
        forms_[w] = next;
        known_[w] = 1;
      }
    return true;
  }
  /// Sets the claims about the results. False if a result has no form, or another type.
  constexpr bool results(vec<shard_claim>& made) const {
    made.clear();
    made.resize(static_cast<std::size_t>(local_.op(o_).result_count), shard_claim{});
    for (std::size_t w = 0; w < list_.wires.size(); ++w)
      for (const wire_end& e : list_.wires[w].ends) {
        if (e.kind != wire_end::result) continue;
        const value_id of = source_.op(s_).result + e.index;
        if (!known_[w] ||
            !same_leading(source_.type(of), local_.type(local_.op(o_).result + e.index), e.shift))
          return false;
        made[e.index] = shifted_form(forms_[w], -e.shift);
        made[e.index].of = of;
      }
    return true;
  }

 private:
  const program& source_;
  op_id s_;
  const program& local_;
  op_id o_;
  const vec<shard_claim>& operands_;
  wire_list list_;
  vec<shard_claim> forms_;  ///< by wire
  vec<char> known_;         ///< by wire

  constexpr bool has(std::size_t w, wire_end::kind_type kind) const {
    for (const wire_end& e : list_.wires[w].ends)
      if (e.kind == kind) return true;
    return false;
  }
  static constexpr bool same_leading(const tensor_type& whole, const tensor_type& here, int count) {
    if (whole.element != here.element || whole.shape.rank != here.shape.rank) return false;
    for (int d = 0; d < count; ++d)
      if (whole.shape[d] != here.shape[d]) return false;
    return true;
  }
  /// True if the operand of a wire has this form. Zeros are terms of any sum.
  constexpr bool starts_with(std::size_t w, const shard_claim& form, int rank) const {
    for (const wire_end& e : list_.wires[w].ends) {
      if (e.kind != wire_end::operand) continue;
      shard_claim c = shifted_form(operands_[e.index], e.shift);
      if (c.pending.empty() && form.combine == combiner::add &&
          (c.varies() & form.pending).empty() &&
          is_zero_everywhere(source_, operands_[e.index].of)) {
        c.pending = form.pending;
        c.combine = combiner::add;
      }
      return e.shift == 0 && has_form(c, form, rank);
    }
    return false;
  }
};

}  // namespace partita::prove_detail
