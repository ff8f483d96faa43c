/// Proves that one microbatch at a time computes what the source computes of the whole batch.
#pragma once

#include <cstdint>

#include <partita/op/combine.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/transpose.hpp>
#include <partita/prove/kernel/kernel.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::mpmd_detail {

/// Derives claims of the kernel about a program of one microbatch (see one_microbatch), with the
/// number of the microbatch as the position of a device along an axis.
///
/// Along this axis a shard is not a block: a dimension of `grain` times b elements is viewed as
/// (grain / n, n, b), and microbatch i holds the elements with index i of the second one. Tile maps
/// hold for any division of a factor, if all operands agree on it. They do, because all slices have
/// one grain, and because the view of a dimension is that of its major factor, if the grain divides
/// that one.
class batch_checker {
 public:
  constexpr batch_checker(const program& source, const program& one, int microbatches)
      : source_(source),
        one_(one),
        n_(microbatches),
        kernel_(source, on_),
        claims_(one.types.size(), shard_claim{}) {
    on_.mesh.push_back({"microbatch", n_});
  }
  /// Returns the first output that is not proved, or -1.
  constexpr int run() {
    for (int i = 0; i < source_.input_count(); ++i)
      claims_[one_.inputs[i]].of = kernel_.values().canonical(source_.inputs[i]);
    for (op_id o = 0; o < one_.op_count(); ++o) visit(o);
    for (int i = 0; i < source_.output_count(); ++i) {
      find_sum(one_.outputs[i].value);
      const shard_claim& c = claims_[one_.outputs[i].value];
      if (c.of != kernel_.values().canonical(source_.outputs[i].value) || !c.varies().empty() ||
          one_.output_type(i) != source_.output_type(i))
        return i;
    }
    return -1;
  }

 private:
  using shard_claim = prove_detail::shard_claim;

  const program &source_, &one_;
  std::int64_t n_, grain_ = 1;
  device_program on_;
  prove_detail::claim_kernel kernel_;
  vec<shard_claim> claims_;

  constexpr bool is(op_id o, const op_def& d) const { return one_.op(o).def->id == d.id; }
  constexpr bool moves(op_id o) const {
    return is(o, def<op::reshape>) || is(o, def<op::transpose>);
  }
  constexpr void visit(op_id o) {
    const value_id result = one_.op(o).result;
    if (is(o, def<op::microbatch_slice>)) return slice(o);
    if (is(o, def<op::microbatch_stack>)) return;
    if (is(o, def<op::microbatch_sum>)) {
      claims_[result] = summed(o, claims_[one_.operand(o, 0)]);
      return;
    }
    for (const value_id v : one_.operands(o))
      if (!is(o, *one_.op(one_.producer(v)).def)) find_sum(v);
    kernel_.visit(one_, o, claims_);
    if (moves(o) && !claims_[result].known()) unstack(result);
  }

  // ---- Slices and stacks ------------------------------------------------------------------------

  constexpr void slice(op_id o) {
    const value_id v = root(one_.operand(o, 0));
    const shape& whole = one_.type(v).shape;
    const std::int64_t stride = moved_stride(one_.operand(o, 0), v, true);
    const shard_claim& c = claims_[v];
    if (!c.known() || !c.varies().empty() || whole.has_no_elements() || stride == 0) return;
    std::int64_t after = 1;
    for (int d = whole.rank; d-- > 0; after *= whole[d]) {
      const std::int64_t block = stride / after;
      tensor_type sliced = one_.type(v);
      sliced.shape[d] /= n_;
      if (stride % after != 0 || whole[d] % (n_ * block) != 0 ||
          sliced != one_.type(one_.op(o).result))
        continue;
      if (grain_ > 1 && grain_ != whole[d] / block) return;
      grain_ = whole[d] / block;
      kernel_.set_grain(grain_);
      shard_claim& made = claims_[one_.op(o).result] = c;
      if (n_ > 1 && !c.is_free(d)) made.sharding.push_back(0, d);
      return;
    }
  }
  /// Finds what moves the elements of a stack back to where slices come from.
  constexpr void unstack(value_id made) {
    const value_id v = root(made);
    if (!is(one_.producer(v), def<op::microbatch_stack>)) return;
    shard_claim c = claims_[one_.operand(one_.producer(v), 0)];
    const shape& whole = one_.type(made).shape;
    if (!c.known() || c.sharding.count != 1 || !c.pending.empty() ||
        source_.type(c.of) != one_.type(made))
      return;
    std::int64_t stride = whole[c.sharding[0].dim] / grain_;
    for (int d = c.sharding[0].dim + 1; d < whole.rank; ++d) stride *= whole[d];
    if (moved_stride(made, v, false) != stride) return;
    c.sharding = {};
    claims_[made] = c;
  }
  /// The value whose elements a value without a claim has in another order.
  constexpr value_id root(value_id v) const {
    while (!claims_[v].known() && moves(one_.producer(v))) v = one_.operand(one_.producer(v), 0);
    return v;
  }
  /// The stride, in a global value, of the digit of its index that is the first one of a stack; `v`
  /// is made of `from` by moving this digit to the front, or from it. 0: by something else.
  constexpr std::int64_t moved_stride(value_id v, value_id from, bool to_front) const {
    const shape& stack = one_.type(to_front ? v : from).shape;
    if (stack.rank == 0 || stack[0] != n_) return 0;
    op_id turn = -1;
    for (; v != from; v = one_.operand(one_.producer(v), 0)) {
      if (!is(one_.producer(v), def<op::transpose>)) continue;
      if (turn >= 0) return 0;
      turn = one_.producer(v);
    }
    if (turn < 0) return stack.elements() / n_;
    const shape& s = one_.type(one_.operand(turn, 0)).shape;
    const auto order = one_.attrs(turn);
    int at = 0;  // the dimension of the digit in the global value
    while (to_front ? at != order[0] : order[static_cast<std::size_t>(at)] != 0) ++at;
    for (int d = 0; d < s.rank; ++d) {
      const int in_order = to_front ? d - (d <= at ? 1 : 0) : d + (d < at ? 1 : 0);
      if (d != (to_front ? 0 : at) && order[static_cast<std::size_t>(d)] != in_order) return 0;
    }
    std::int64_t stride = 1;
    for (int d = at + 1; d < s.rank; ++d) stride *= s[d];
    return s[to_front ? at : 0] == n_ ? stride : 0;
  }

  // ---- Sums -------------------------------------------------------------------------------------

  /// The claim about the combination of a value of all microbatches.
  constexpr shard_claim summed(op_id o, shard_claim c) const {
    collective all;
    all.kind = collective::all_reduce;
    all.axes.push_back(0, no_dim);
    all.combine = static_cast<combiner>(one_.attrs(o)[0]);
    const bool same = all.combine == combiner::stack && c.varies().empty();
    if (one_.type(one_.op(o).result) != one_.type(one_.operand(o, 0)) ||
        (!same && !prove_detail::collective_rule(all, on_.mesh).apply(c)))
      c = {};
    return c;
  }
  constexpr bool sums_by(op_id o, const op_def& d) const {
    const auto c = static_cast<combiner>(one_.attrs(o)[0]);
    return c != combiner::stack && combining_op(c).id == d.id;
  }
  /// Finds a sum (or product, maximum, ...) whose terms the source combines in another order.
  constexpr void find_sum(value_id v) {
    const op_def& d = *one_.op(one_.producer(v)).def;
    if (claims_[v].known() || !prove_detail::is_commutative(d)) return;
    struct summand {
      value_id value = -1;
      op_id in = -1;  ///< the microbatch_sum that adds it
    };
    vec<value_id> terms;
    shard_claim form;
    for (vec<summand> open{{v, -1}}; !open.empty();) {
      const summand x = open.back();
      const op_id o = one_.producer(x.value);
      const bool sums = is(o, def<op::microbatch_sum>);
      shard_claim c = claims_[x.value];
      open.pop_back();
      if (x.in >= 0 && c.known()) c = summed(x.in, c);
      if (!c.known()) {
        if (sums ? x.in >= 0 || !sums_by(o, d) : !is(o, d)) return;
        for (const value_id each : one_.operands(o)) open.push_back({each, sums ? o : x.in});
        continue;
      }
      if (terms.empty()) form = c;
      if (c.sharding != form.sharding || c.free != form.free || c.pending != form.pending ||
          (!c.pending.empty() && combining_op(c.combine).id != d.id) ||
          terms.size() > source_.ops.size())
        return;
      terms.push_back(c.of);
    }
    terms = terms_of(d, terms, source_.ops.size());
    for (op_id s = source_.op_count(); s-- > 0 && !claims_[v].known();) {
      const value_id is = source_.op(s).result;
      if (source_.op(s).def->id != d.id || source_.type(is).shape.rank != one_.type(v).shape.rank)
        continue;
      const vec<value_id> have = terms_of(d, {is}, terms.size());
      bool same = have.size() == terms.size() && have.size() < source_.ops.size();
      for (std::size_t i = 0; same && i < have.size(); ++i)
        same = have[i] == terms[i] && source_.type(have[i]) == source_.type(is);
      if (!same) continue;
      claims_[v] = form;
      claims_[v].of = kernel_.values().canonical(is);
    }
  }
  /// The terms of source values, in ascending order; too many, if there are more than `most`.
  constexpr vec<value_id> terms_of(const op_def& d, vec<value_id> open, std::size_t most) const {
    vec<value_id> terms;
    while (!open.empty() && terms.size() <= most) {
      const value_id x = kernel_.values().canonical(open.back());
      const op_id o = source_.producer(x);
      open.pop_back();
      if (source_.op(o).def->id != d.id)
        terms.push_back(x);
      else
        for (const value_id each : source_.operands(o)) open.push_back(each);
    }
    merge_sort(terms, [](value_id a, value_id b) { return a < b; });
    return terms;
  }
};

}  // namespace partita::mpmd_detail
