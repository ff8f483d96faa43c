/// Ops that move elements: their results are other views of the same terms.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/movement.hpp>

namespace partita::prove_detail {

/// Can what an op makes be padded where its operand could not?
constexpr bool is_reshaping(std::uint64_t id) {
  return id == def<op::reshape>.id || id == def<op::broadcast_in_dim>.id ||
         id == def<op::slice>.id || id == def<op::pad>.id || id == def<op::roll>.id ||
         id == def<op::concatenate>.id || id == def<op::dynamic_slice>.id;
}

constexpr bool moves_elements(std::uint64_t id) {
  return is_reshaping(id) || id == def<op::transpose>.id || id == def<op::reverse>.id;
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

constexpr bool pad_all(workspace& w, view& v, const shape& from, const shape& result,
                       span<const std::int64_t> attrs, const shape& tensor) {
  if (w.chosen[1].sums.any()) return false;
  const operand_term scalar = w.all.scalar(w.given[1]);
  if (scalar.view < 0) return false;
  const int fill = w.chosen[0].sums.any() ? outside::unknown : w.all.beyond(scalar);
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
    if ((low > 0 || high > 0) && !pad(v, d, size, low, high, fill, tensor)) return false;
  }
  return true;
}

/// Padded in a shape that the source gives a tensor: a piece of it in that shape.
constexpr void pad_reshaped(workspace& w, const program& p, op_id o, claim_list& to) {
  const int t = w.chosen[0].term;
  const shape tensor = w.all.terms[t].shape;
  for (int i = w.all.terms[t].reshaped; i >= 0; i = w.all.reshapings[i].next) {
    const auto whole = w.all.reshapings[i];
    piece pieces[max_rank];
    if (!relative_view(w.all.views[whole.view], whole.to, w.all.views[w.chosen[0].view], tensor)
             .find(pieces))
      continue;
    view v = as_view(pieces, whole.to.rank);
    const shape &from = p.type(p.operand(o, 0)).shape, &result = p.type(p.op(o).result).shape;
    if (!v.good() || !pad_all(w, v, from, result, p.attrs(o), whole.to)) continue;
    w.add(to, p.op(o).result, w.all.reshaped(t, i), v, w.chosen[0].sums, w.chosen[0].scale);
  }
}

constexpr bool joined(const workspace& w, const program& p, op_id o, view& v, const shape& tensor) {
  const int d = static_cast<int>(p.attrs(o)[0]);
  std::int64_t extent = p.type(p.operand(o, 0)).shape.extents[d];
  for (std::size_t i = 1; i < w.chosen.size(); ++i) {
    if (w.chosen[i].term != w.chosen[0].term || w.chosen[i].sums != w.chosen[0].sums ||
        w.chosen[i].scale != w.chosen[0].scale)
      return false;
    const std::int64_t more = p.type(p.operand(o, static_cast<int>(i))).shape.extents[d];
    if (extent == 0 || more == 0) return false;
    if (!append(v, w.all.views[w.chosen[i].view], d, extent, more, tensor)) return false;
    extent += more;
  }
  return true;
}

/// So much more for each step of a coordinate.
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

/// A box at known places.
constexpr bool slice_at(const workspace& w, view& v, const shape& from, const shape& result) {
  for (int d = 0; d < from.rank; ++d) {
    if (result.extents[d] == from.extents[d]) continue;
    const claim& at = w.chosen[static_cast<std::size_t>(d + 1)];
    if (!w.all.terms.is_positions(at.term) || at.sums.any()) return false;
    const view& start = w.all.views[at.view];
    std::int64_t least = 0, greatest = 0;
    start.range(0, least, greatest);
    if (least < 0 || greatest > from.extents[d] - result.extents[d]) return false;  // clamped
    if (v.repeats(d)) continue;
    const digit* const only = only_digit(v, d);
    if (only == nullptr) return false;
    const std::int64_t step = only->stride;
    const int dim = only->dim;
    if (!slice(v, d, start.start[0], result.extents[d], 1)) return false;
    for (int i = 0; i < start.count; ++i)
      if (w.chosen[0].sums.contains(axis_of(start.digits[i])) ||
          !advance(v, dim, start.digits[i].owner, start.digits[i].extent,
                   start.digits[i].stride * step))
        return false;
  }
  return true;
}

constexpr bool moves(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  if (!moves_elements(n.def->id)) return false;
  const auto attrs = p.attrs(o);
  const shape &from = p.type(p.operand(o, 0)).shape, &result = p.type(n.result).shape;
  if (n.def->id == def<op::pad>.id && !w.is_identity(w.chosen[1], combiner::add)) w.unscale();
  const shape tensor = w.all.terms[w.chosen[0].term].shape;
  view v = w.all.views[w.chosen[0].view];
  bool good = false;
  switch (n.def->id) {
    case def<op::transpose>.id:
      good = transpose(v, attrs);
      break;
    case def<op::broadcast_in_dim>.id:
      good = broadcast(v, result, attrs);
      break;
    case def<op::reshape>.id:
      good = reshape(v, from, result);
      break;
    case def<op::slice>.id:
      good = slice_all(v, from, result, attrs);
      break;
    case def<op::reverse>.id:
      good = true;
      for (auto d : attrs) good = good && reverse(v, static_cast<int>(d));
      break;
    case def<op::roll>.id:
      good = roll(v, static_cast<int>(attrs[0]), attrs[1], tensor);
      break;
    case def<op::pad>.id:
      good = pad_all(w, v, from, result, attrs, tensor);
      break;
    case def<op::concatenate>.id:
      good = joined(w, p, o, v, tensor);
      break;
    case def<op::dynamic_slice>.id:
      good = slice_at(w, v, from, result);
      break;
    default:
      return false;
  }
  if (!good && n.def->id == def<op::pad>.id && !w.defining) pad_reshaped(w, p, o, to);
  if (!good || !v.good()) return false;
  w.add(to, n.result, w.chosen[0].term, v, w.chosen[0].sums, w.chosen[0].scale);
  if (w.defining && is_reshaping(n.def->id))
    w.all.reshaping_of(w.chosen[0].term, w.number(v, w.chosen[0].term), result);
  return w.defining || n.def->id != def<op::pad>.id;  // it may be one that the source has, too
}

}  // namespace partita::prove_detail
