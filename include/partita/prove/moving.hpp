/// Ops that move elements: their results are other views of the same terms.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/movement.hpp>

namespace partita::prove_detail {

/// True if the result of an op can be padded where its operand could not.
constexpr bool is_reshaping(std::uint64_t id) {
  return id == def<op::reshape>.id || id == def<op::broadcast_in_dim>.id ||
         id == def<op::slice>.id || id == def<op::pad>.id || id == def<op::roll>.id ||
         id == def<op::concatenate>.id || id == def<op::dynamic_slice>.id;
}

/// True if an op shows all elements of its operand, and no others.
constexpr bool moves_all(const op_def& d) {
  return d.id == def<op::transpose>.id || d.id == def<op::broadcast_in_dim>.id ||
         d.id == def<op::reshape>.id || d.id == def<op::slice>.id || d.id == def<op::reverse>.id ||
         d.id == def<op::roll>.id;
}

constexpr bool slice_all(view& v, const shape& from, const shape& result,
                         span<const std::int64_t> attrs) {
  for (int d = 0; d < from.rank; ++d) {
    const op::slice::bounds at(attrs.data(), attrs.size(), from.rank, d);
    if (at.start == 0 && at.stride == 1 && result.extents[d] == from.extents[d]) continue;
    if (!slice(v, d, at.start, result.extents[d], at.stride)) return false;
  }
  return true;
}

/// True if reducing this replicated scalar leaves it unchanged.
constexpr bool stays_reduced(const workspace& w, const pending& sums, int beyond, dtype element) {
  return !sums.any() || w.all.is_identity(beyond, sums.combine, element);
}

constexpr bool pad_all(workspace& w, view& v, const shape& from, const shape& result,
                       span<const std::int64_t> attrs, const shape& tensor) {
  if (w.chosen[1].sums.any()) return false;
  const operand_term scalar = w.all.scalar(w.given[1]);
  if (scalar.view < 0) return false;
  const int all = w.all.beyond(scalar);
  const bool stays = stays_reduced(w, w.chosen[0].sums, all, w.all.terms[scalar.term].element);
  const int fill = stays ? all : outside::unknown;
  for (int d = 0; d < from.rank; ++d) {
    std::int64_t low = attrs[d], high = attrs[from.rank + d], size = from.extents[d];
    if (low == 0 && high == 0 && attrs[2 * from.rank + d] == 0) continue;
    if (attrs[2 * from.rank + d] != 0 || result.extents[d] == 0) return false;
    const std::int64_t first = low < 0 ? -low : 0, cut = high < 0 ? -high : 0;
    if (first + cut >= size) return false;
    if (first + cut > 0 && !slice(v, d, first, size - first - cut, 1)) return false;
    size -= first + cut;
    low += first;
    high += cut;
    if ((low > 0 || high > 0) && !pad(v, d, size, low, high, fill, tensor, w.defining))
      return false;
  }
  return true;
}

/// Turns a claim on a tensor in one shape into a claim on another shape. (Along dimensions in which
/// only the new one repeats all positions are equal: uses the first ones.)
constexpr bool see_in_shape(const workspace& w, const claim& known,
                            const meanings::reshaping& whole, const shape& local, view& v) {
  const term& of = w.all.terms[known.term];
  const view& mine = w.all.views[known.view];
  view seen;
  if (!match_dimensions(w.all.views[of.alias.view], of.shape, w.all.views[whole.view], whole.to,
                        seen))
    return false;
  int to[max_rank];
  for (int d = 0; d < of.shape.rank; ++d) to[d] = -1;
  for (int i = 0; i < seen.count; ++i) to[seen.digits[i].owner] = seen.digits[i].dim;
  v = view(mine.rank, whole.to.rank);
  for (int d = 0; d < of.shape.rank; ++d) {
    if (to[d] < 0 && mine.reaches_beyond(d, of.shape.extents[d])) return false;
    if (to[d] < 0) continue;
    v.start[to[d]] = mine.start[d];
    v.beyond[to[d]] = mine.beyond[d];
  }
  for (int d = 0; d < mine.rank; ++d) {
    int begin = 0;
    const int end = mine.find(d, begin);
    const bool repeated =
        begin == end && d < whole.to.rank && !seen.sees_along(d) && mine.rank == whole.to.rank;
    if (repeated) v.add(d, d, local.extents[d], 1);
    for (; begin < end; ++begin) {
      const digit& each = mine.digits[begin];
      v.add(d, each.dim < 0 ? no_dim : to[each.dim], each.extent, each.stride);
    }
  }
  for (int i = 0; i < mine.count; ++i)
    if (const digit& each = mine.digits[i]; each.owner < 0) {
      const int dim = each.dim < 0 ? no_dim : to[each.dim];
      if (dim < 0 && each.owner == on_axis(bound_axis)) return false;  // it counts summed positions
      v.add(each.owner, dim, each.extent, each.stride);
    }
  return v.good();
}

/// Turns a claim into one on a reshaped tensor of the source. False if it is not a shard of it.
/// (Dimensions that are added or removed must be seen along one dimension of the value. If the
/// tensor repeats all positions are equal: uses the first ones, or the first one if there are
/// more.)
constexpr bool see_reshaped(const workspace& w, const claim& known, int reshaping,
                            const shape& local, view& v) {
  const auto& whole = w.all.reshapings[reshaping];
  const view& seen = w.all.views[known.view];
  if (w.all.terms[known.term].alias.term == whole.of)
    return see_in_shape(w, known, whole, local, v);
  if (known.term != whole.of) return false;  // views of a shape of a shape do not fit this one
  const auto find = [&](piece* pieces, bool loops) {
    return relative_view(w.all.views[whole.view], whole.to, seen, w.all.terms[known.term].shape,
                         w.all.own(known.term), loops)
        .find(pieces);
  };
  piece pieces[max_rank];
  const bool same = seen.rank == whole.to.rank && find(pieces, false);
  if (!same && !find(pieces, true)) return false;
  v = view(local.rank, whole.to.rank);
  unsigned owners = 0;
  for (int d = 0; d < whole.to.rank; ++d) {
    v.start[d] = pieces[d].start;
    v.beyond[d] = pieces[d].beyond;
    unsigned mine = 0;
    for (int i = 0; i < pieces[d].count; ++i) {
      const digit& each = pieces[d].digits[i];
      const int owner = same && each.owner >= 0 ? d : each.owner;
      if (owner >= 0) mine |= 1u << owner;
      v.add(owner, d, each.extent, each.stride);
    }
    if (pieces[d].free && same && local.extents[d] <= whole.to.extents[d])
      v.add(d, d, local.extents[d], 1);
    if ((pieces[d].free && !same && whole.to.extents[d] > 1) || (owners & mine) != 0) return false;
    owners |= mine;
  }
  return v.good();
}
/// Applies `move` to a shard of a reshaped tensor of the source. (Positions have many shapes: uses
/// that of the value, if it is among them.)
template <class Move>
constexpr void move_reshaped(workspace& w, const claim& known, const shape& local, claim_list& to,
                             value_id result, const Move& move) {
  const int exact = w.all.terms.is_positions(known.term)
                        ? w.all.known_reshaping(known.term, known.view, local)
                        : -1;
  for (int t = known.term; t >= 0; t = w.all.terms[t].alias.term)
    for (int i = w.all.terms[t].reshaped; i >= 0; i = w.all.reshapings[i].next) {
      view v;
      pending sums = known.sums;
      const meanings::reshaping whole = w.all.reshapings[i];
      if ((exact >= 0 && i != exact) || (t != known.term && whole.term == known.term)) continue;
      if (!see_reshaped(w, known, i, local, v)) continue;
      v.normalize(whole.to);  // an axis along two dimensions has its digits together
      if (move(v, sums, whole)) w.add(to, result, w.all.reshaped(t, i), v, sums, known.scale);
    }
}
/// Turns a claim into one on the tensor of another claim, if the source reshapes one to the other.
constexpr bool see_as(workspace& w, claim& mine, const claim& other, const shape& local) {
  if (mine.term == other.term) return true;
  const operand_term alias = w.all.terms[other.term].alias;
  if (alias.term != mine.term) return false;
  const int i = w.all.reshaping_of(alias.term, alias.view, w.all.terms[other.term].shape);
  view v;
  if (!see_reshaped(w, mine, i, local, v)) return false;
  mine.term = other.term;
  mine.view = w.number(v, other.term);
  return true;
}

/// Uses the positions at this distance after another value's, along a dimension in which only a
/// reshaped tensor repeats, where all positions are equal. False if these are not all of its
/// positions.
constexpr bool see_beside(const workspace& w, int t, int d, view& v, std::int64_t extent,
                          const view& other, std::int64_t distance) {
  const term& of = w.all.terms[t];
  if (of.alias.term < 0 || d >= v.dims || !w.all.views[of.alias.view].repeats(d) ||
      v.reaches_beyond(d, of.shape.extents[d]) || v.is_reduced_along(d))
    return false;
  view r(v.rank, v.dims);
  for (int dim = 0; dim < v.dims; ++dim) {
    r.start[dim] = dim == d ? other.start[d] + distance : v.start[dim];
    r.beyond[dim] = v.beyond[dim];
  }
  for (int owner = 0; owner < v.rank; ++owner) {
    if (owner == d) r.add(d, d, extent, 1);
    for (int i = 0; i < v.count; ++i)
      if (v.digits[i].owner == owner && v.digits[i].dim != d) r.add(owner, v.digits[i]);
  }
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner < 0 && v.digits[i].dim != d) r.add(v.digits[i].owner, v.digits[i]);
  for (int i = 0; i < other.count; ++i)
    if (other.digits[i].owner < 0 && other.digits[i].dim == d)
      r.add(other.digits[i].owner, other.digits[i]);
  v = r;
  v.normalize(of.shape);
  return v.good() && !v.reaches_beyond(d, of.shape.extents[d]);
}

/// Joins consecutive shards of one tensor: the operands from `begin` on; the first one has view
/// `v`.
constexpr bool join_pieces(workspace& w, const program& p, op_id o, const vec<claim>& list,
                           int begin, view& v) {
  const int d = static_cast<int>(p.attrs(o)[0]);
  const shape tensor = w.all.terms[list[0].term].shape;
  std::int64_t extent = p.type(p.operand(o, begin)).shape.extents[d];
  for (std::size_t i = 1; i < list.size(); ++i) {
    const shape& next = p.type(p.operand(o, begin + static_cast<int>(i))).shape;
    claim each = list[i];
    if (!see_as(w, each, list[0], next) || each.sums != list[0].sums || each.scale != list[0].scale)
      return false;
    const std::int64_t more = next.extents[d];
    if (extent == 0 || more == 0) return false;
    view last = w.all.views[each.view], first = v;
    if (append(v, last, d, extent, more, tensor, w.defining)) {
    } else if (v = first; see_beside(w, each.term, d, last, more, first, extent)) {
      if (!append(v, last, d, extent, more, tensor, w.defining)) return false;
    } else {
      last = w.all.views[each.view];
      if (i > 1 || !see_beside(w, each.term, d, v, extent, last, -extent) ||
          !append(v, last, d, extent, more, tensor, w.defining))
        return false;
    }
    extent += more;
  }
  return true;
}
constexpr bool joined(workspace& w, const program& p, op_id o, view& v) {
  return join_pieces(w, p, o, vec<claim>(w.chosen), 0, v);
}

/// Advances a view by this amount for each step of a coordinate.
constexpr bool advance(view& v, int dim, int owner, std::int64_t extent, std::int64_t step) {
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner == owner && v.digits[i].dim == dim) {
      v.digits[i].stride += step;
      if (v.digits[i].stride == 0) v.digits[i].dim = no_dim;
      return true;
    }
  v.add(owner, dim, extent, step);
  return v.good();
}

/// True if the major digit of a dimension of a value wraps once around a dimension of the tensor,
/// or of the padded tensor, while the other digits are parts of a step.
constexpr bool is_once_around(const view& v, int d, const shape& tensor) {
  int first = 0;
  if (v.find(d, first) == first) return false;
  const digit& major = v.digits[first];
  if (major.dim < 0 || major.stride <= 0) return false;
  const std::int64_t all = major.extent * major.stride, n = tensor.extents[major.dim];
  const std::int64_t beyond = v.beyond[major.dim];
  if (all < n || (outside::turns(beyond) && outside::modulus(beyond, n) != all)) return false;
  std::int64_t within = v.start[major.dim];
  for (int i = 0; i < v.count; ++i) {
    const digit& each = v.digits[i];
    if (&each == &major || each.dim != major.dim) continue;
    if (each.stride < 0) return false;
    within += (each.extent - 1) * each.stride;
  }
  return v.start[major.dim] >= 0 && within < major.stride;
}
/// True if blocks with this start, modulo the extent, never cross the end.
constexpr bool keeps_blocks(const view& start, std::int64_t block, std::int64_t extent) {
  bool whole = block > 0 && extent % block == 0 && start.start[0] % block == 0;
  for (int i = 0; i < start.count; ++i) whole = whole && start.digits[i].stride % block == 0;
  return whole;
}

/// Slices a box at known positions.
constexpr bool slice_at(const workspace& w, view& v, const shape& from, const shape& result,
                        const shape& tensor) {
  for (int d = 0; d < from.rank; ++d) {
    if (result.extents[d] == from.extents[d]) continue;
    const claim& at = w.chosen[static_cast<std::size_t>(d + 1)];
    const bool around = w.all.terms.is_modulo(at.term);
    if (!(around || w.all.terms.is_positions(at.term)) || at.sums.any()) return false;
    const view& start = w.all.views[at.view];
    if (around && !goes_around(start, 0, w.all.terms[at.term].shape)) return false;
    std::int64_t least = 0, greatest = 0;
    start.range(0, least, greatest);
    const std::int64_t extent = from.extents[d], block = result.extents[d];
    if (around
            ? w.all.terms[at.term].shape.extents[0] != extent || !keeps_blocks(start, block, extent)
            : least < 0 || greatest > extent - block)
      return false;  // it may be clamped
    // (A pending value differs between devices.)
    for (int i = 0; i < start.count; ++i)
      if (w.chosen[0].sums.contains(axis_of(start.digits[i]))) return false;
    if (v.repeats(d)) continue;
    if (around && !is_once_around(v, d, tensor)) return false;
    int first = 0;
    const int end = v.find(d, first);
    const digit major = v.digits[first];
    const std::int64_t unit = extent / major.extent;  // positions of each step
    if (end > first + 1 &&
        !(major.dim >= 0 && keeps_blocks(start, unit, extent) && block % unit == 0))
      return false;
    const std::int64_t step = major.stride;
    const int dim = major.dim;
    if (!slice(v, d, start.start[0], result.extents[d], 1)) return false;
    for (int i = 0; i < start.count; ++i)
      if (!advance(v, dim, start.digits[i].owner, start.digits[i].extent,
                   start.digits[i].stride / unit * step))
        return false;
    if (around) {
      if (major.extent * step > outside::farthest) return false;
      v.beyond[dim] = goes_around(v.beyond[dim], major.extent * step, tensor.extents[dim]);
    }
  }
  return true;
}

/// Handles an op that shows elements of its first operand, or concatenates its operands.
constexpr bool moved(workspace& w, const program& p, op_id o, view& v, const shape& tensor) {
  const auto attrs = p.attrs(o);
  const shape &from = p.type(p.operand(o, 0)).shape, &result = p.type(p.op(o).result).shape;
  switch (p.op(o).def->id) {
    case def<op::transpose>.id:
      return transpose(v, attrs);
    case def<op::broadcast_in_dim>.id:
      return broadcast(v, result, attrs);
    case def<op::reshape>.id:
      return reshape(v, from, result);
    case def<op::slice>.id:
      return slice_all(v, from, result, attrs);
    case def<op::reverse>.id:
      for (auto d : attrs) reverse(v, static_cast<int>(d));
      return true;
    case def<op::roll>.id:
      return attrs[1] % result.extents[attrs[0]] == 0 ||
             roll(v, static_cast<int>(attrs[0]), attrs[1], tensor);
    case def<op::pad>.id:
      return pad_all(w, v, from, result, attrs, tensor);
    case def<op::concatenate>.id:
      return joined(w, p, o, v);
    case def<op::dynamic_slice>.id:
      return slice_at(w, v, from, result, tensor);
    default:
      return false;
  }
}

/// The view by which an op shows all elements of a term that is not a reshaped one, or -1.
constexpr int show_all(workspace& w, const program& p, op_id o, const claim& known) {
  const question asked{question::moving, false, -1, w.row_of(site(p, o)), -1, {}};
  const operand_term given = known.seen();
  if (const answer* const is = w.answers.find(asked, {&given, 1}); is != nullptr)
    return w.answers.view(*is, 0);
  view v = w.all.views[known.view];
  const bool good =
      moved(w, p, o, v, w.all.terms[known.term].shape) && w.can_be_seen(v, known.term);
  const int seen = good ? w.number(v, known.term) : -1;
  w.answers.add(asked, {&given, 1}, {}, {&seen, 1});
  return seen;
}
constexpr bool moves_whole(workspace& w, const program& p, op_id o, claim_list& to) {
  const claim known = w.chosen[0];
  if (!moves_all(*p.op(o).def) || w.all.terms[known.term].alias.term >= 0) return false;
  const int seen = show_all(w, p, o, known);
  if (seen < 0) return false;
  w.add_seen(to, p.op(o).result, known.term, seen, known.sums, known.scale);
  if (w.defining) w.reshape(known.term, seen, p.type(p.op(o).result).shape);
  return true;
}

/// True if an op slices elements that repeat next to each other. The shape in which the source has
/// all of them distinguishes them.
constexpr bool cuts_repeated(const workspace& w, const program& p, op_id o) {
  if (p.op(o).def->id != def<op::slice>.id) return false;
  const shape &from = p.type(p.operand(o, 0)).shape, &result = p.type(p.op(o).result).shape;
  const view& v = w.all.views[w.chosen[0].view];
  for (int i = 0; i < v.count; ++i)
    if (const digit& each = v.digits[i]; each.owner >= 0 && each.dim < 0 &&
                                         each.owner < from.rank && !v.repeats(each.owner) &&
                                         from.extents[each.owner] != result.extents[each.owner])
      return true;
  return false;
}

constexpr bool moves(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_def& d = *p.op(o).def;
  if (!moves_all(d) && !is_reshaping(d.id)) return false;
  const bool repeated = !w.defining && cuts_repeated(w, p, o);
  if (!repeated && moves_whole(w, p, o, to)) return true;
  const value_id result = p.op(o).result;
  if (d.id == def<op::pad>.id && !w.is_identity(w.chosen[1], combiner::add)) w.unscale();
  if (d.id == def<op::concatenate>.id)  // in the shape of one of them
    for (std::size_t i = 1; i < w.chosen.size(); ++i)
      if (see_as(w, w.chosen[0], w.chosen[i], p.type(p.operand(o, 0)).shape)) break;
  claim known = w.chosen[0];
  view v = w.all.views[known.view];
  bool good = moved(w, p, o, v, w.all.terms[known.term].shape) && w.can_be_seen(v, known.term);
  if (w.defining && !good &&
      (d.id == def<op::roll>.id || d.id == def<op::pad>.id || d.id == def<op::slice>.id)) {
    const shape& from = p.type(p.operand(o, 0)).shape;
    known.term = w.all.reshaped(known.term, w.all.reshaping_of(known.term, known.view, from));
    v = view(from);
    good = moved(w, p, o, v, from) && v.good();
  }
  if (good) w.add(to, result, known.term, v, known.sums, known.scale);
  if (!w.defining &&
      (repeated || d.id == def<op::pad>.id || (!good && d.id != def<op::concatenate>.id)))
    move_reshaped(w, known, p.type(p.operand(o, 0)).shape, to, result,
                  [&](view& each, pending&, const meanings::reshaping& whole) {
                    return moved(w, p, o, each, whole.to) && each.good();
                  });
  if (!good) return false;
  if (w.defining) w.reshape(known.term, w.number(v, known.term), p.type(result).shape);
  // The source may have this op, too.
  return w.defining || (d.id != def<op::pad>.id && d.id != def<op::dynamic_slice>.id &&
                        w.all.terms[known.term].alias.term < 0);
}

}  // namespace partita::prove_detail
