/// Values that are written block by block, in a different order on each device.
///
/// Law       If each block of a dimension was written with the contents that a view shows there, in
///           whatever order, the value equals the view.
#pragma once

#include <cstdint>

#include <partita/op/dynamic_slice.hpp>
#include <partita/prove/moving.hpp>

namespace partita::prove_detail {

/// One dynamic_update_slice of a value with some written blocks.
class writing_blocks {
 public:
  constexpr writing_blocks(workspace& w, const program& p, op_id o, claim_list& to)
      : w_(w), p_(p), o_(o), to_(to), whole_(p.type(p.op(o).result).shape) {}

 private:
  workspace& w_;
  const program& p_;
  op_id o_;
  claim_list& to_;
  shape whole_;
  int dim_ = -1;
  std::int64_t block_ = 0;
  view start_;          ///< start of the block, in elements; it wraps around
  bool turns_ = false;  ///< true if it may be out of bounds; the contents must then wrap, too

  constexpr bool find_dimension() {
    const shape& update = p_.type(p_.operand(o_, 1)).shape;
    for (int d = 0; d < whole_.rank; ++d) {
      if (update.extents[d] == whole_.extents[d]) continue;
      if (dim_ >= 0) return false;
      dim_ = d;
    }
    if (dim_ < 0 || update.extents[dim_] == 0) return false;
    block_ = update.extents[dim_];
    return whole_.extents[dim_] % block_ == 0;
  }
  constexpr bool find_start() {
    const int c = to_.first[p_.operand(o_, 2 + dim_)];
    if (c < 0 || w_.claims[c].sums.any()) return false;
    const int t = w_.claims[c].term;
    const std::int64_t extent = whole_.extents[dim_];
    start_ = w_.all.views[w_.claims[c].view];
    std::int64_t least = 0, greatest = 0;
    if (start_.rank != 0 || start_.dims != 1) return false;
    start_.range(0, least, greatest);
    turns_ = w_.all.terms.is_modulo(t);
    const bool inside =
        turns_ ? w_.all.terms[t].shape.extents[0] == extent &&
                     goes_around(start_, 0, w_.all.terms[t].shape)
               : w_.all.terms.is_positions(t) && least >= 0 && greatest <= extent - block_;
    return inside && keeps_blocks(start_, block_, extent);
  }
  /// Calls `f` for each claim that extends the update: its view, from the start of the first block
  /// on. (One element may belong to any dimension, with any step that wraps around it.) `f` may add
  /// claims and views, so the claims read here are copies.
  template <class F>
  constexpr void for_each_whole(const claim update, const F& f) const {
    const view seen = w_.all.views[update.view];
    const digit* const only = only_digit(seen, dim_);
    const shape tensor = w_.all.terms[update.term].shape;
    claim whole;
    if (only != nullptr && only->dim >= 0 && only->stride > 0 &&
        goes_on(update, only->dim, only->stride, whole))
      f(whole);
    for (int dim = 0; dim < seen.dims && only == nullptr && block_ == 1; ++dim)
      if (const std::int64_t all = outside::modulus(seen.beyond[dim], tensor.extents[dim]);
          sees_one(seen, dim) && goes_on(update, dim, steps_around(all), whole))
        f(whole);
    if (repeats_block(update, whole)) f(whole);
  }
  constexpr void write(const claim& whole) {
    written_blocks now{whole, dim_, start_, block_, start_.start[0] / block_, 1};
    join(now);
    keep(now);
    if (now.count * block_ == whole_.extents[dim_]) w_.add(to_, p_.op(o_).result, now.whole);
  }
  /// True if each block repeats the same contents.
  constexpr bool repeats_block(const claim& update, claim& whole) const {
    for (int i = 0; i < start_.count; ++i)
      if (update.sums.contains(axis_of(start_.digits[i]))) return false;
    const view& seen = w_.all.views[update.view];
    view v = seen;
    v.count = 0;
    for (int owner = 0; owner < seen.rank; ++owner) {
      if (owner == dim_) v.add(owner, no_dim, whole_.extents[owner] / block_, 0);
      for (int i = 0; i < seen.count; ++i)
        if (seen.digits[i].owner == owner) v.add(owner, seen.digits[i]);
    }
    for (int i = 0; i < seen.count; ++i)
      if (seen.digits[i].owner < 0) v.add(seen.digits[i].owner, seen.digits[i]);
    if (!v.good()) return false;
    whole = {update.term, w_.number(v, update.term), update.sums, update.scale};
    return true;
  }
  /// (A tensor whose global value is not known yet may be padded.)
  constexpr std::int64_t steps_around(std::int64_t all) const {
    return (all + whole_.extents[dim_] - 1) / whole_.extents[dim_];
  }
  static constexpr bool sees_one(const view& v, int dim) {
    for (int i = 0; i < v.count; ++i)
      if (v.digits[i].dim == dim && v.digits[i].owner >= 0) return false;
    return true;
  }
  /// The same, with this step along a dimension of the tensor.
  constexpr bool goes_on(const claim& update, int along, std::int64_t step, claim& whole) const {
    const view& seen = w_.all.views[update.view];
    view v(seen.rank, seen.dims);
    for (int d = 0; d < seen.dims; ++d) {
      v.start[d] = seen.start[d];
      v.beyond[d] = seen.beyond[d];
    }
    v.start[along] -= start_.start[0] * step;
    bool added = false;
    const auto add = [&] {
      if (!added) v.add(dim_, along, whole_.extents[dim_], step);
      added = true;
    };
    for (int i = 0; i < seen.count; ++i) {
      const digit& each = seen.digits[i];
      if (each.owner < 0 || each.owner >= dim_) add();
      if (each.owner != dim_) v.add(each.owner, each);
    }
    add();
    for (int i = 0; i < start_.count; ++i)
      if (!advance(v, along, start_.digits[i].owner, start_.digits[i].extent,
                   -start_.digits[i].stride * step))
        return false;
    const shape& tensor = w_.all.terms[update.term].shape;
    const std::int64_t n = tensor.extents[along], all = whole_.extents[dim_] * step;
    if (outside::turns(v.beyond[along])) {
      if (outside::modulus(v.beyond[along], n) != all) return false;
      v.start[along] %= all;
      if (v.start[along] < 0) v.start[along] += all;
    } else if (turns_) {
      return false;
    }
    v.normalize(tensor);
    if (!v.good() || !is_once_around(v, dim_, tensor)) return false;
    // (A block of one element counts only if its distance from the start is the same on all
    // devices.)
    for (int i = 0; i < start_.count && block_ == 1; ++i)
      for (int k = 0; k < v.count; ++k)
        if (v.digits[k].owner == start_.digits[i].owner && v.digits[k].dim == along) return false;
    for (int i = 0; i < start_.count; ++i)
      if (update.sums.contains(axis_of(start_.digits[i]))) return false;
    whole = {update.term, w_.number(v, update.term), update.sums, update.scale};
    return true;
  }
  /// True if two starts have the same distance on all devices.
  static constexpr bool same_steps(const view& a, const view& b) {
    for (int i = 0; i < a.count && a.count == b.count; ++i)
      if (a.digits[i] != b.digits[i]) return false;
    return a.count == b.count;
  }
  /// Joins this block with adjacent blocks that were written before, whatever the value contained.
  constexpr void join(written_blocks& now) const {
    const std::int64_t all = whole_.extents[dim_] / block_;
    const auto around = [&](std::int64_t n) { return (n % all + all) % all; };
    for (int i = w_.written_of[p_.operand(o_, 0)]; i >= 0; i = w_.written[i].next) {
      const written_blocks& old = w_.written[i];
      if (!(old.whole == now.whole) || old.dim != now.dim || old.block != now.block ||
          !same_steps(old.start, now.start))
        continue;
      const bool behind = around(old.first + old.count - now.first) == 0;
      if (!behind && around(now.first + 1 - old.first) != 0) continue;
      if (behind) now.first = old.first;
      now.count = old.count + 1;
      return;
    }
  }
  /// Removes the claims from an earlier visit to this program, possibly with other inputs.
  constexpr void forget() {
    if (w_.written_in != &p_) {
      w_.written_in = &p_;
      w_.written_of.assign(p_.types.size(), -1);
    }
    w_.written_of[p_.op(o_).result] = -1;
  }
  constexpr void keep(written_blocks now) {
    int& first = w_.written_of[p_.op(o_).result];
    now.next = first;
    first = static_cast<int>(w_.written.size());
    w_.written.push_back(now);
  }

 public:
  // (Defined after its templates because otherwise Clang does not evaluate them in a constant
  // expression.)
  constexpr void apply() {
    forget();
    if (!find_dimension() || !find_start()) return;
    for (int c = to_.first[p_.operand(o_, 1)]; c >= 0; c = w_.claims[c].next)
      for_each_whole(w_.claims[c], [&](const claim& whole) { write(whole); });
  }
};

/// Handles an update of a block. The source may contain the same op, so other rules are tried, too.
constexpr void write_blocks(workspace& w, const program& p, op_id o, claim_list& to) {
  if (!w.defining && p.op(o).def->id == def<op::dynamic_update_slice>.id)
    writing_blocks(w, p, o, to).apply();
}

/// True if some blocks of a value are written.
constexpr bool is_being_written(const workspace& w, const program& p, value_id v) {
  return w.written_in == &p && w.written_of[v] >= 0;
}

}  // namespace partita::prove_detail
