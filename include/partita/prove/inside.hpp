/// Shards whose starts differ between devices by unequal steps, as for halos without padding.
///
/// Law       The shards of a halo, shifted inside, contain what an op needs for its own shard of
///           the result (and more); see halo_range.
#pragma once

#include <cstdint>

#include <partita/prove/by_device.hpp>
#include <partita/prove/moving.hpp>

namespace partita::prove_detail {

constexpr const moved_piece* moved_of(const workspace& w, int t) {
  const int moved = w.all.terms[t].moved;
  return moved < 0 ? nullptr : &w.all.moved[moved];
}
/// Finds the view of unshifted shards for a claim on a tensor of shifted ones. False unless the
/// claim uses the devices' own numbers.
constexpr bool without_moves(const moved_piece& is, const view& v, int dims, view& seen) {
  seen = view(v.rank, dims);
  for (int d = 0; d < dims; ++d) {
    seen.start[d] = v.start[d];
    seen.beyond[d] = v.beyond[d];
  }
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].dim < dims) seen.add(v.digits[i].owner, v.digits[i]);
  view again = seen;
  again.dims = v.dims;
  for (std::size_t m = 0; m < is.moves.size(); ++m) {
    const int e = dims + static_cast<int>(m);
    const device_row& row = is.moves[m].row;
    again.start[e] = 0;
    again.beyond[e] = outside::unknown;
    for (int i = 0; i < row.count; ++i)
      again.add(on_axis(row.axis[i]), e, row.extent[i], row.step(i));
  }
  shape all;  // (in the order of claims)
  for (int e = 0; e < v.dims; ++e) all.push_back(max_elements);
  view mine = v;
  again.normalize(all);
  mine.normalize(all);
  return seen.good() && again.good() && again == mine;
}
/// Shifted shards as if they were adjacent, in the order of the devices' numbers, for op_law, which
/// knows that they are not.
constexpr bool next_to_each_other(const workspace& w, const moved_piece& is, const view& given,
                                  view& v) {
  if (!without_moves(is, given, w.all.terms[is.of].shape.rank, v)) return false;
  for (const auto& m : is.moves) {
    std::int64_t extent = 1;
    if (v.start[m.dim] != 0) return false;
    for (int i = 0; i < v.count; ++i) {
      const digit& each = v.digits[i];
      if (each.dim != m.dim) continue;
      if (each.owner < 0 || each.stride != 1 || extent != 1) return false;
      extent = each.extent;
    }
    for (int i = 0; i < m.row.count; ++i)
      v.add(on_axis(m.row.axis[i]), m.dim, m.row.extent[i], m.row.step(i) * extent);
  }
  return v.good();
}
/// Adds a claim about a value that sees shards of a tensor, shifted in this way.
constexpr void add_moved(workspace& w, claim_list& to, value_id v, int t, const view& seen,
                         const vec<moved_piece::move>& moves, pending sums, double scale) {
  if (moves.size() == 0) return w.add(to, v, t, seen, sums, scale);
  shape s = w.all.terms[t].shape;
  if (s.rank + static_cast<int>(moves.size()) > max_rank || !seen.good()) return;
  view all(seen.rank, s.rank + static_cast<int>(moves.size()));
  for (int d = 0; d < seen.dims; ++d) {
    all.start[d] = seen.start[d];
    all.beyond[d] = seen.beyond[d];
  }
  for (int i = 0; i < seen.count; ++i) all.add(seen.digits[i].owner, seen.digits[i]);
  for (const auto& m : moves) {
    for (int i = 0; i < m.row.count; ++i)
      all.add(on_axis(m.row.axis[i]), s.rank, m.row.extent[i], m.row.step(i));
    s.push_back(m.row.devices);
  }
  const int made = w.all.terms.fresh({w.all.terms[t].element, s});
  w.all.terms[made].moved = static_cast<int>(w.all.moved.size());
  w.all.moved.push_back({t, moves});
  w.add(to, v, made, all, sums, scale);
}

/// A box whose position is known on each device.
class slice_by_device {
 public:
  constexpr slice_by_device(workspace& w, const program& p, op_id o, claim_list& to)
      : w_(w), p_(p), o_(o), to_(to), x_(w.chosen[0]), t_(x_.term), seen_(w.all.views[x_.view]) {}

  constexpr bool apply() {
    if (!find_dimension() || !find_moves()) return false;
    const digit* const along = only_digit(seen_, d_);
    if (along == nullptr || along->dim < 0 || along->stride <= 0) return false;
    dim_ = along->dim;
    step_ = along->stride;
    if (!find_row() || !find_starts()) return false;
    return add();
  }

 private:
  workspace& w_;
  const program& p_;
  op_id o_;
  claim_list& to_;
  const claim x_;
  int t_;                  ///< the sliced tensor
  view seen_;              ///< its view
  int d_ = -1, dim_ = -1;  ///< of the value, of the tensor
  std::int64_t step_ = 0;
  vec<moved_piece::move> moves_;  ///< the ones that stay
  moved_piece::move mine_;

  constexpr const shape& from() const { return p_.type(p_.operand(o_, 0)).shape; }
  constexpr const shape& made() const { return p_.type(p_.op(o_).result).shape; }
  constexpr const claim& start() const { return w_.chosen[static_cast<std::size_t>(d_ + 1)]; }
  constexpr bool is_fixed() const { return p_.op(o_).def->id == def<op::slice>.id; }

  constexpr bool find_dimension() {
    for (int d = 0; d < made().rank; ++d) {
      if (made().extents[d] == from().extents[d]) continue;
      if (d_ >= 0) return false;
      d_ = d;
    }
    return d_ >= 0;
  }
  constexpr bool find_moves() {
    const moved_piece* const is = moved_of(w_, t_);
    if (is == nullptr) return true;
    t_ = is->of;
    moves_ = is->moves;
    return without_moves(*is, w_.all.views[x_.view], w_.all.terms[t_].shape.rank, seen_);
  }
  /// Finds the devices in the order of their shards, and the other digits of their starts.
  constexpr bool find_row() {
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (moves_[i].dim != dim_) continue;
      mine_ = moves_[i];
      for (std::size_t k = i + 1; k < moves_.size(); ++k) moves_[k - 1] = moves_[k];
      moves_.pop_back();
      break;
    }
    if (is_fixed() ? mine_.dim < 0
                   : mine_.dim < 0 && w_.all.terms.is_positions(start().term) && stays_inside())
      return false;  // see slice_all, slice_at
    vec<digit> axes;
    for (int i = 0; i < seen_.count; ++i)
      if (const digit& each = seen_.digits[i]; each.dim == dim_ && each.owner < 0) {
        if (axis_of(each) >= w_.mesh.rank) return false;
        axes.push_back(each);
        for (std::size_t k = axes.size() - 1; k > 0 && axes[k - 1].stride < axes[k].stride; --k) {
          const digit kept = axes[k];
          axes[k] = axes[k - 1];
          axes[k - 1] = kept;
        }
      }
    device_row row = mine_.row;
    for (const auto& each : axes) row.add(axis_of(each), each.extent);
    if (!is_fixed() && !add_axes(w_, start(), row)) return false;
    if (mine_.dim >= 0 && row.count != mine_.row.count) return false;
    mine_.row = row;
    return true;
  }
  /// True if the start is in bounds, and hence not clamped, on all devices.
  constexpr bool stays_inside() const {
    std::int64_t least = 0, greatest = 0;
    if (start().view == open_view) return true;
    w_.all.views[start().view].range(0, least, greatest);
    return least >= 0 && greatest <= from().extents[d_] - made().extents[d_];
  }
  constexpr bool find_starts() {
    const std::int64_t most = from().extents[d_] - made().extents[d_];
    const bool moved = mine_.dim >= 0;
    mine_.starts.resize(static_cast<std::size_t>(mine_.row.devices), 0);
    for (std::int64_t device = 0; device < mine_.row.devices; ++device) {
      std::int64_t& at = mine_.starts[static_cast<std::size_t>(device)];
      std::int64_t n = 0;
      if (is_fixed())
        n = p_.attrs(o_)[static_cast<std::size_t>(d_)];
      else if (!number_on(w_, start(), mine_.row, device, n))
        return false;
      n = n < 0 ? 0 : n > most ? most : n;
      at = (moved ? at : 0) + seen_.start[dim_] + n * step_;
      for (int i = 0; i < seen_.count; ++i)
        if (const digit& each = seen_.digits[i]; each.dim == dim_ && each.owner < 0)
          at += mine_.row.coordinate(device, axis_of(each)) * each.stride;
      const std::int64_t last = at + (made().extents[d_] - 1) * step_;
      const std::int64_t low = device * mine_.block,
                         high = mine_.block > 0 ? low + mine_.block
                                                : w_.all.terms[t_].shape.extents[dim_];
      if (at < low || last >= high) return false;
    }
    return true;
  }
  constexpr bool add() {
    view v(seen_.rank, seen_.dims);
    for (int d = 0; d < v.dims; ++d) {
      v.start[d] = d == dim_ ? 0 : seen_.start[d];
      v.beyond[d] = d == dim_ ? outside::unknown : seen_.beyond[d];
    }
    for (int i = 0; i < seen_.count; ++i) {
      digit each = seen_.digits[i];
      if (each.dim == dim_ && each.owner < 0) continue;
      if (each.dim == dim_ && each.owner != d_) return false;
      if (each.dim == dim_) each.extent = made().extents[d_];
      v.add(each.owner, each);
    }
    for (int i = 0; i < mine_.row.count; ++i)
      if (x_.sums.contains(mine_.row.axis[i])) return false;
    if (view at; as_positions(mine_.row, mine_.starts, at)) {
      v.start[dim_] = at.start[0];
      for (int i = 0; i < at.count; ++i)
        v.add(at.digits[i].owner, dim_, at.digits[i].extent, at.digits[i].stride);
    } else if (step_ != 1 || mine_.block > 0) {
      return false;
    } else {
      mine_.dim = dim_;
      moves_.push_back(mine_);
    }
    add_moved(w_, to_, p_.op(o_).result, t_, v, moves_, x_.sums, x_.scale);
    return true;
  }
};
/// True if a slice has no strides.
constexpr bool takes_all_between(const program& p, op_id o) {
  const auto attrs = p.attrs(o);
  for (std::size_t i = 2 * static_cast<std::size_t>(p.type(p.operand(o, 0)).shape.rank);
       i < attrs.size(); ++i)
    if (attrs[i] != 1) return false;
  return true;
}
constexpr bool slices_by_device(workspace& w, const program& p, op_id o, claim_list& to) {
  const std::uint64_t id = p.op(o).def->id;
  if (w.defining || w.some_open ||
      (id != def<op::dynamic_slice>.id && !(id == def<op::slice>.id && takes_all_between(p, o))))
    return false;
  return slice_by_device(w, p, o, to).apply();
}

}  // namespace partita::prove_detail
