/// Masks: the elements of a value that a select keeps, and the new padding.
#pragma once

#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/ranges.hpp>

namespace partita::prove_detail {

/// Relates a view to flags along dimension `dim` of its tensor: for one position of the flags it
/// has `steps` positions and `rest` more, from the first to the last of these.
struct masked {
  int dim = -1;
  std::int64_t steps = 0, first = 0, last = 0;
};
constexpr bool is_masked(const view& flags, const view& v, int dim, masked& found) {
  found = {dim};
  bool used[max_digits] = {};
  for (int i = 0, next = 0; i < flags.count; ++i) {
    const digit& mine = flags.digits[i];
    // (Digits of a dimension are compared in order.)
    const bool same_owner = i > 0 && flags.digits[i - 1].owner == mine.owner;
    for (int k = same_owner ? next : 0; k < v.count && mine.dim == 0; ++k) {
      const digit& each = v.digits[k];
      if (each.owner != mine.owner || each.extent != mine.extent || each.dim != dim ||
          each.stride % mine.stride != 0 || used[k])
        continue;
      const std::int64_t steps = each.stride / mine.stride;
      if (found.steps != 0 && found.steps != steps) return false;
      found.steps = steps;
      used[k] = true;
      next = k + 1;
      break;
    }
  }
  int matched = 0;
  for (int k = 0; k < v.count; ++k) {
    matched += used[k];
    if (v.digits[k].dim != dim || used[k]) continue;
    const std::int64_t reach = (v.digits[k].extent - 1) * v.digits[k].stride;
    (reach < 0 ? found.first : found.last) += reach;
  }
  return matched > 0 && matched == flags.count;
}

/// Restricts a view to the flags' range [low, high) and pads it with `fill`. `exact`: true if
/// nothing known is lost.
constexpr bool mask(view& v, const shape& tensor, const view& flags, std::int64_t low,
                    std::int64_t high, int fill, bool& exact) {
  masked at;
  for (int d = 0; d < v.dims && at.dim < 0; ++d)
    if (masked each; is_masked(flags, v, d, each)) at = each;
  if (at.dim < 0 || outside::turns(v.beyond[at.dim])) return false;
  const std::int64_t extent = tensor.extents[at.dim];
  std::int64_t least = 0, greatest = 0;
  flags.range(0, least, greatest);
  const auto position = [&](std::int64_t flag) {
    return v.start[at.dim] + at.steps * (flag - flags.start[0]);
  };
  const bool up = at.steps > 0, below = low > least, above = high <= greatest;
  if (!below) low = least;
  if (!above) high = greatest + 1;
  if (low >= high) return false;
  // The removed part is outside of the tensor.
  if ((up ? below : above) && position(up ? low - 1 : high) + at.last >= 0) return false;
  if ((up ? above : below) && position(up ? high : low - 1) + at.first < extent) return false;
  const std::int64_t first = position(up ? low : high - 1) + at.first;
  const std::int64_t last = position(up ? high - 1 : low) + at.last;
  const bool filled = (first >= 0 && last < extent) || v.beyond[at.dim] == fill;
  if (!filled && counts_positions(tensor, at.dim)) return false;
  const bool only = v.fill_beyond(at.dim, filled ? fill : outside::unknown, tensor);
  exact = filled && only;
  return true;
}

constexpr bool depends_on_some(const view& v, const pending& sums) {
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner < 0 && sums.contains(axis_of(v.digits[i]))) return true;
  return false;
}
/// Adds the digits of an owner in flags, along a dimension of another tensor.
constexpr void add_digits(const view& flags, int owner, int dim, view& to) {
  for (int i = 0; i < flags.count; ++i)
    if (const digit& each = flags.digits[i]; each.owner == owner)
      to.add(owner, dim, each.extent, each.stride);
}
/// Uses the positions of the flags along a dimension in which only a reshaped tensor repeats, where
/// all positions are equal. False if the value sees other positions, too.
constexpr bool see_as_flags(const workspace& w, int t, const view& flags, int dim, view& v) {
  const term& of = w.all.terms[t];
  if (of.alias.term < 0 || !w.all.views[of.alias.view].repeats(dim) ||
      v.reaches_beyond(dim, of.shape.extents[dim]) || v.is_reduced_along(dim))
    return false;
  view r(v.rank, v.dims);
  for (int d = 0; d < v.dims; ++d) {
    r.start[d] = d == dim ? flags.start[0] : v.start[d];
    r.beyond[d] = v.beyond[d];
  }
  for (int owner = 0; owner < v.rank; ++owner) {
    const bool of_flags = flags.has(owner);
    for (int i = 0; i < v.count; ++i) {
      if (v.digits[i].owner != owner) continue;
      if (of_flags != (v.digits[i].dim == dim)) return false;
      if (!of_flags) r.add(owner, v.digits[i]);
    }
    add_digits(flags, owner, dim, r);
  }
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner < 0 && v.digits[i].dim != dim) r.add(v.digits[i].owner, v.digits[i]);
  for (int i = 0; i < flags.count; ++i)
    if (flags.digits[i].owner < 0) add_digits(flags, flags.digits[i].owner, dim, r);
  v = r;
  return v.good();
}
/// The same for a shard of a tensor in its own shape or a reshaped one. Along dimensions in which
/// it repeats all positions are equal: uses those of the flags, and the first one.
constexpr bool mask_reshaped(workspace& w, const program& p, op_id o, const view& flags,
                             std::int64_t low, std::int64_t high, int fill, claim_list& to) {
  const claim x = w.chosen[1];
  const view seen = w.all.views[x.view];
  const shape& local = p.type(p.op(o).result).shape;
  int owner = -1;
  for (int i = 0; i < flags.count; ++i)
    if (flags.digits[i].owner >= 0) owner = flags.digits[i].owner;
  const auto masked_in = [&](int whole, const shape& in, int along, view& v) {
    piece pieces[max_rank];
    if (!relative_view(w.all.views[whole], in, seen, w.all.terms[x.term].shape, w.all.own(x.term))
             .find(pieces))
      return false;
    for (int d = 0; d < in.rank; ++d) {
      if (!pieces[d].free) continue;
      pieces[d] = piece();
      if (d == along) pieces[d].start = flags.start[0];
      for (int k = 0; d == along && k < flags.count; ++k)
        pieces[d].add(flags.digits[k].owner, flags.digits[k].extent, flags.digits[k].stride);
    }
    v = as_view(pieces, in.rank);
    bool exact = false;
    return v.good() && mask(v, in, flags, low, high, fill, exact);
  };
  const int base = w.all.terms[x.term].base < 0 ? x.term : w.all.terms[x.term].base;
  const double scale = w.all.terms[x.term].factor;
  bool done = false;
  for (int along = 0; along < local.rank; ++along) {
    if (owner >= 0 ? along != owner : local.extents[along] != 1) continue;
    view v;
    if (const int own = w.all.terms[base].own;
        own >= 0 && masked_in(own, w.all.terms[x.term].shape, along, v)) {
      w.add(to, p.op(o).result, x.term, v, x.sums);
      done = true;
    }
    for (int i = w.all.terms[base].reshaped; i >= 0; i = w.all.reshapings[i].next) {
      const auto whole = w.all.reshapings[i];
      if (!masked_in(whole.view, whole.to, along, v)) continue;
      w.add(to, p.op(o).result, w.all.scaled(w.all.reshaped(base, i), scale), v, x.sums);
      done = true;
    }
  }
  return done;
}

/// Handles select(is inside, x, scalar): the result is x with the scalar as padding.
constexpr bool masks(workspace& w, const program& p, op_id o, claim_list& to) {
  const claim &flag = w.chosen[0], &x = w.chosen[1];
  offset position;
  range true_in;
  const operand_term scalar = w.all.scalar(w.given[2]);
  if (scalar.view < 0 || w.chosen[2].sums.any() || flag.sums.any() ||
      !truth_range(w.all, flag.term, true, position, true_in) || position.tensor_sign != 0)
    return false;
  const std::int64_t low = true_in.low, high = true_in.high;
  if (x.sums.any() && !w.is_identity(w.chosen[2], combiner::add)) return false;
  const view flags = w.all.views[flag.view];
  view v = w.all.views[x.view];
  if (flags.dims != 1 || flags.rank != v.rank || depends_on_some(flags, x.sums)) return false;
  if (!lies_inside(flags, 0, w.all.terms[flag.term].shape)) return false;
  const int fill = w.all.beyond(scalar), term = x.term;
  const pending sums = x.sums;
  bool exact = false;
  const bool good = mask(v, w.all.terms[term].shape, flags, low, high, fill, exact);
  bool done = good && (exact || !w.defining);
  if (!exact && !w.defining) done = mask_reshaped(w, p, o, flags, low, high, fill, to) || done;
  for (int dim = 0; dim < w.all.views[x.view].dims && !good && !w.defining; ++dim) {
    view seen = w.all.views[x.view];
    if (!see_as_flags(w, term, flags, dim, seen) ||
        !mask(seen, w.all.terms[term].shape, flags, low, high, fill, exact))
      continue;
    w.add(to, p.op(o).result, term, seen, sums);
    done = true;
  }
  if (good && (exact || !w.defining)) w.add(to, p.op(o).result, term, v, sums);
  return done;
}

}  // namespace partita::prove_detail
