/// Boxes at device-dependent positions of concatenated values, where constants fill what no device
/// uses.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/by_device.hpp>
#include <partita/prove/movement.hpp>

namespace partita::prove_detail {

/// dynamic_slice(concatenate(..., constant, ..., x, ..., constant, ...)), along one dimension.
///
/// Law       If adjacent values, except for constants, show one shard of a tensor, then a box that
///           covers constants only outside of the tensor shows a shard of it. Its padding is known
///           if all constants agree.
/// Cost      linear in operands times devices along the axes that shard the dimension
class joined_window {
 public:
  constexpr joined_window(workspace& w, const program& p, op_id o, claim_list& to)
      : w_(w), p_(p), o_(o), to_(to) {}

  /// Adds the claims about the result.
  constexpr void lift() {
    if (!find_parts()) return;
    for (int s = to_.first[p_.operand(o_, dim_ + 1)]; s >= 0; s = w_.claims[s].next)
      for (int c = to_.first[parts_[known_].value]; c >= 0; c = w_.claims[c].next) {
        const claim start = w_.claims[s], one = w_.claims[c];
        if (!see_whole(one) || !rest_fits(one) || !take(start, one.scale)) continue;
        w_.add(to_, p_.op(o_).result, one.term, taken_, {}, one.scale);
      }
  }

 private:
  struct part {
    value_id value = -1;
    std::int64_t from = 0, extent = 0;
    bool constant = false;
    std::int64_t fill = outside::unknown;  ///< the padding of the tensor
  };
  workspace& w_;
  const program& p_;
  op_id o_;
  claim_list& to_;
  int dim_ = -1, known_ = -1;
  std::int64_t extent_ = 0;  ///< total of all parts
  vec<part> parts_;
  bool beyond_ = false;                   ///< true if padding is used
  std::int64_t fill_ = outside::unknown;  ///< its value, for all used padding
  view whole_;                            ///< all parts, if all showed the tensor
  int along_ = -1;
  std::int64_t step_ = 0, positions_ = 0;  ///< along dimension `along_` of the tensor
  view taken_;
  int term_ = -1;

  constexpr bool find_parts() {
    const op_id joins = p_.producer(p_.operand(o_, 0));
    if (p_.op(joins).def->id != def<op::concatenate>.id) return false;
    const shape &from = p_.type(p_.operand(o_, 0)).shape, &to = p_.type(p_.op(o_).result).shape;
    dim_ = static_cast<int>(p_.attrs(joins)[0]);
    for (int d = 0; d < from.rank; ++d)
      if (d != dim_ && from.extents[d] != to.extents[d]) return false;
    for (value_id v : p_.operands(joins)) {
      part each{v, extent_, p_.type(v).shape.extents[dim_]};
      extent_ += each.extent;
      if (each.extent == 0 || !see(each)) return false;
      parts_.push_back(each);
    }
    return known_ >= 0 && extent_ > 1;
  }
  /// True if a part is a constant, or has a claim.
  constexpr bool see(part& each) {
    const int first = to_.first[each.value];
    if (first < 0) return false;
    std::int64_t bits = 0;
    const claim& c = w_.claims[first];
    const operand_term scalar = c.view == open_view || c.sums.any() || c.scale != 1
                                    ? operand_term{}
                                    : w_.all.scalar(c.seen());
    each.constant = scalar.view >= 0 && w_.all.is_number(scalar, bits);
    if (!each.constant) {
      if (known_ < 0) known_ = static_cast<int>(parts_.size());
      return true;
    }
    each.fill = w_.all.beyond(scalar);
    return true;
  }
  /// Extends the view of one part to all parts.
  constexpr bool see_whole(const claim& one) {
    if (one.view == open_view || one.sums.any()) return false;
    whole_ = w_.all.views[one.view];
    if (!whole_.has(dim_)) {  // one element
      const int dim = parts_[known_].extent == 1 ? dimension_of_one(whole_, dim_) : -1;
      if (dim < 0 || whole_.count == max_digits) return false;
      whole_.digits[whole_.count++] = {static_cast<std::int16_t>(dim_),
                                       static_cast<std::int16_t>(dim), 1, 1};
    }
    const digit* const only = only_digit(whole_, dim_);
    if (only == nullptr || only->dim < 0 || only->stride == 0) return false;
    term_ = one.term;
    along_ = only->dim;
    step_ = only->stride;
    positions_ = w_.all.terms[one.term].shape.extents[along_];
    if (!slice(whole_, dim_, -parts_[known_].from, extent_, 1)) return false;
    for (int i = 0; i < whole_.count; ++i)
      if (const digit& each = whole_.digits[i]; each.dim == along_ && each.owner != dim_ &&
                                                (each.owner >= 0 || axis_of(each) >= w_.mesh.rank))
        return false;
    return true;
  }
  /// True if the other parts show the adjacent positions.
  constexpr bool rest_fits(const claim& one) {
    for (part& each : parts_) {
      bool fits = each.constant;
      for (int c = to_.first[each.value]; c >= 0 && !fits; c = w_.claims[c].next)
        fits = shows(each, w_.claims[c], one);
      if (!fits) return false;
    }
    return true;
  }
  constexpr bool shows(part& each, const claim& c, const claim& one) {
    if (c.term != one.term || c.view == open_view || c.sums.any() || c.scale != one.scale)
      return false;
    view v = whole_;
    if (!slice(v, dim_, each.from, each.extent, 1)) return false;
    const view& seen = w_.all.views[c.view];
    if (v.reaches_beyond(along_, positions_) && outside::turns(seen.beyond[along_])) return false;
    each.fill = v.beyond[along_] = seen.beyond[along_];
    return w_.number(v, c.term) == c.view;
  }

  /// Slices at known positions. False if a position may be clamped, or covers constants inside of
  /// the tensor.
  constexpr bool take(const claim& start, double scale) {
    device_row row;
    beyond_ = false;
    if (!add_axes(w_, start, row)) return false;
    for (int i = 0; i < whole_.count; ++i)
      if (whole_.digits[i].dim == along_ && whole_.digits[i].owner < 0)
        row.add(axis_of(whole_.digits[i]), whole_.digits[i].extent);
    if (row.devices > device_row::most || row.devices < 1) return false;
    vec<std::int64_t> places;  // in the tensor, by device
    for (std::int64_t device = 0; device < row.devices; ++device) {
      std::int64_t at = 0, begin = whole_.start[along_];
      if (!number_on(w_, start, row, device, at)) return false;
      for (int i = 0; i < whole_.count; ++i)
        if (const digit& each = whole_.digits[i]; each.dim == along_ && each.owner < 0)
          begin += row.coordinate(device, axis_of(each)) * each.stride;
      if (!takes_what_is_there(begin, at, scale)) return false;
      places.push_back(begin + at * step_);
    }
    return put(row, places);
  }
  constexpr std::int64_t size() const { return p_.type(p_.op(o_).result).shape.extents[dim_]; }
  constexpr bool takes_what_is_there(std::int64_t begin, std::int64_t at, double scale) {
    if (at < 0 || at > extent_ - size()) return false;
    for (const part& each : parts_) {
      const std::int64_t first = each.from > at ? each.from : at;
      const std::int64_t end =
          each.from + each.extent < at + size() ? each.from + each.extent : at + size();
      if (first >= end) continue;
      const std::int64_t a = begin + first * step_, b = begin + (end - 1) * step_;
      if (each.constant && !(a < 0 && b < 0) && !(a >= positions_ && b >= positions_)) return false;
      if (a < 0 || b < 0 || a >= positions_ || b >= positions_) take_beyond(each, scale);
    }
    return true;
  }
  /// (Constants count as they are, tensors with their factor.)
  constexpr void take_beyond(const part& each, double scale) {
    const bool stands = !each.constant || scale == 1 ||
                        w_.all.is_identity(each.fill, combiner::add, w_.all.terms[term_].element);
    const std::int64_t fill = stands ? each.fill : outside::unknown;
    fill_ = beyond_ && fill_ != fill ? outside::unknown : fill;
    beyond_ = true;
  }
  constexpr bool put(const device_row& row, const vec<std::int64_t>& places) {
    view places_view;
    if (!as_positions(row, places, places_view)) return false;
    view all = whole_;
    if (!slice(all, dim_, 0, size(), 1)) return false;
    taken_ = all;
    taken_.count = 0;
    for (int i = 0; i < all.count; ++i)
      if (all.digits[i].dim != along_ || all.digits[i].owner >= 0)
        taken_.add(all.digits[i].owner, all.digits[i]);
    for (int i = 0; i < places_view.count; ++i)
      taken_.add(places_view.digits[i].owner, along_, places_view.digits[i].extent,
                 places_view.digits[i].stride);
    taken_.start[along_] = places_view.start[0];
    taken_.beyond[along_] = outside::unknown;
    const bool lost =
        beyond_ && fill_ == outside::unknown && counts_positions(w_.all.terms[term_].shape, along_);
    return taken_.good() && !lost &&
           (!beyond_ || taken_.fill_beyond(along_, fill_, w_.all.terms[term_].shape));
  }
};

}  // namespace partita::prove_detail
