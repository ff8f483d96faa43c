/// Evidence for loops: the entries of an op's tile map that the surrounding ops support.
///
/// Source    PartIR, section 5.2 and appendix B
#pragma once

#include <partita/core/loop_program.hpp>

namespace partita::core_detail {

/// The entries that the evidence supports for a loop over an axis.
struct match {
  evidence first, second;
  bool several = false, indivisible = false;
  constexpr bool one() const { return first.factor != any_factor && !several && !indivisible; }
};

/// True if evidence for the rows of a gather should yield to evidence for its batch: the rows then
/// stay in place without a loop (core_options::stationary_rows).
constexpr bool gives_way(const factor& rows, const factor& batch) {
  return rows.located && rows.result_dim == no_dim && !batch.located && batch.result_dim != no_dim;
}
/// Adds evidence to a match.
constexpr void support(const loop_program& c, match& m, op_id o, int axis, evidence e) {
  if (m.first.factor == e.factor || m.several) return;
  if (c.keeps_rows() && m.first.factor != any_factor) {
    const factor* const factors = c.map.factors_of(o);
    if (gives_way(factors[e.factor], factors[m.first.factor])) return;
    if (gives_way(factors[m.first.factor], factors[e.factor])) m = {};
  }
  if (c.local(o, e.factor) % c.size(o, axis) != 0) m.indivisible = true;
  if (m.first.factor == any_factor) {
    m.first = e;
  } else {
    m.second = e;
    m.several = true;
    m.indivisible = false;
  }
}

// Propagation calls these functions most often, so they make few calls and use plain arrays.

/// Returns the loop of an op over an axis; it must have one.
constexpr const loop& loop_over(const loop_view& now, op_id o, int axis) {
  const loop* const loops = now.loops_of(o);
  int i = 0;
  while (loops[i].axis != axis) ++i;
  return loops[i];
}

/// Returns the most major factor of a dimension of an operand (-1 - r: of result r) that is not
/// used up by loops.
constexpr int front_factor(const loop_program& c, const loop_view& now, op_id o, int operand,
                           int dim) {
  const factor_table::row& row = now.maps[o];
  const factor* const factors = now.factors + row.begin;
  const std::int64_t* local = now.locals + row.begin;
  vec<std::int64_t> left;
  if (row.composed && c.uneven_sizes().axes != 0) {  // used up on all meshes
    for (int f = 0; f < row.count; ++f)
      left.push_back(local[f] > 1 || c.is_used_up(o, f) ? local[f] : 2);
    local = left.data();
  }
  int last = any_factor;
  for (int f = 0; f < row.count; ++f) {
    PARTITA_WORK(1);
    if (now.dim_of(factors[f], operand) != dim) continue;
    last = f;
    if (local[f] > 1) break;
  }
  if (last == any_factor || !row.composed) return last;
  return c.map.is_front(o, last, local) ? last : any_factor;
}

/// True if the axes that slice dimension `dim` in op `wants` are those in op `has` up to but not
/// including `axis`. Ends as in front_factor.
constexpr bool next_along(const loop_view& now, op_id has, int has_end, op_id wants, int wants_end,
                          int dim, int axis) {
  const loop *const given = now.loops_of(has), *const needed = now.loops_of(wants);
  const factor *const given_factors = now.factors + now.maps[has].begin, *const needed_factors =
                                                                             now.factors +
                                                                             now.maps[wants].begin;
  const int given_count = now.nests[has].count, needed_count = now.nests[wants].count;
  const auto other = [&](int f, const factor* factors, int end) {
    return f == any_factor || now.dim_of(factors[f], end) != dim;
  };
  for (int i = 0, j = 0; i < given_count; ++i) {
    const loop& l = given[i];
    if (other(l.factor, given_factors, has_end)) continue;
    while (j < needed_count && other(needed[j].factor, needed_factors, wants_end)) ++j;
    if (l.axis == axis) return j == needed_count;
    if (j == needed_count || needed[j].axis != l.axis) return false;
    ++j;
  }
  return false;
}

/// True if a factor with a halo may be cut once more: the axis must divide both sides, and the
/// halos must cost less than a gather.
constexpr bool fits(const loop_program& c, op_id o, int f, int axis) {
  if (c.differs(o, axis)) return false;
  const std::int64_t left = c.local(o, f), size = c.size(o, axis);
  if (!c.sees_halos() || left == 0 || left % size != 0) return false;
  if (size == 1) return true;
  const auto given = c.p.attrs(o);
  vec<std::int64_t> attrs(given.begin(), given.end());
  const halo_cut one = c.cut(o, f, c.map.at(o, f).size / left * size, attrs);
  bool good = one.possible;
  for (int k = 0; k < max_halo_operands; ++k) good = good && (!one.slices(k) || one.worthwhile(k));
  return good;
}

/// True if the sum of all devices' results, for which a device sends about two results, costs less
/// than a gather of the operands that the factor slices. (For a scatter, of the updates.)
constexpr bool sums_send_less(const loop_program& c, op_id o, const factor& of) {
  std::int64_t gathered = 0;
  for (int i = 0; i < c.p.op(o).operand_count; ++i)
    if (c.map.operand_dim(of, i) != no_dim)
      gathered = saturating_add(gathered, c.p.type(c.p.operand(o, i)).bytes());
  return gathered / 2 >= c.p.type(c.p.op(o).result).bytes();
}
/// True if a loop may cut a factor: a halo must fit, and the iterations of a located factor must be
/// allowed and large enough.
constexpr bool may_take(const loop_program& c, op_id o, int f, const factor& of, int axis) {
  if (of.halo) return fits(c, o, f, axis);
  if (!of.located && !of.again && of.carry == combiner::stack) return true;
  if (of.located && of.result_dim == no_dim && c.map.operand_dim(of, 0) == no_dim &&
      !sums_send_less(c, o, of))
    return false;
  return c.sees_halos() && !c.differs(o, axis) && c.local(o, f) >= of.least * c.size(o, axis);
}

/// Returns the dimension on which all users of a value slice it along an axis, or no_dim. Program
/// outputs do not count as uses, because results may keep the layout in which they are produced.
/// That is how an optimizer's next state follows its parameters (section 5.2.2); `replicated` keeps
/// a result unsharded.
constexpr int sliced_by_all_uses(const loop_view& now, value_id v, int axis) {
  int dim = no_dim;
  const use* const uses = now.uses + now.use_ranges[v].begin;
  const int count = now.use_ranges[v].count;
  for (int i = 0; i < count; ++i) {
    PARTITA_WORK(1);
    if ((now.axes[uses[i].op] >> axis & 1) == 0) return no_dim;
  }
  const op_id o = now.producers[v];
  const int result = now.ops[o].result - v - 1;
  for (int i = 0; i < count; ++i) {
    const use& u = uses[i];
    const int f = loop_over(now, u.op, axis).factor;
    if (f == any_factor) return no_dim;
    const int d = now.dim_of(now.factors[now.maps[u.op].begin + f], u.operand);
    if (d == no_dim || (dim != no_dim && d != dim)) return no_dim;
    dim = d;
    if (!next_along(now, u.op, u.operand, o, result, dim, axis)) return no_dim;
  }
  return dim;
}

/// Calls take(evidence) for each operand, and each result with uses, that supports a loop of an op
/// over an axis along which it has none, until take returns false. `now` is a current view of the
/// program.
template <class Take>
constexpr void for_each_evidence(const loop_program& c, const loop_view& now, op_id o, int axis,
                                 const Take& take) {
  if ((now.axes[o] >> axis & 1) != 0) return;
  const op_node& n = now.ops[o];
  const value_id* const operands = now.operands + n.operand_begin;
  const factor* const mine = now.factors + now.maps[o].begin;
  for (int i = 0; i < n.operand_count; ++i) {
    PARTITA_WORK(1);
    const value_id x = operands[i];
    const op_id q = now.producers[x];
    if ((now.axes[q] >> axis & 1) == 0) continue;
    const int given = loop_over(now, q, axis).factor;
    if (given == any_factor) continue;
    const int result = now.ops[q].result - x - 1;
    const int dim = now.dim_of(now.factors[now.maps[q].begin + given], result);
    if (dim == no_dim || !next_along(now, q, result, o, i, dim, axis)) continue;
    const int f = front_factor(c, now, o, i, dim);
    if (f != any_factor && may_take(c, o, f, mine[f], axis) && !take(evidence{f, i})) return;
  }
  for (int r = 0; r < n.result_count; ++r) {
    const int dim = sliced_by_all_uses(now, n.result + r, axis);
    if (dim == no_dim) continue;
    const int f = front_factor(c, now, o, -1 - r, dim);
    if (f != any_factor && may_take(c, o, f, mine[f], axis) && !take(evidence{f, -1})) return;
  }
}

/// Returns the tile-map entries of an op that the evidence supports for a loop over an axis.
constexpr match find_match(const loop_program& c, const loop_view& now, op_id o, int axis) {
  match m;
  for_each_evidence(c, now, o, axis, [&](const evidence& e) {
    support(c, m, o, axis, e);
    return !m.several;  // an op with many operands may have as many factors
  });
  return m;
}

/// The factors that the evidence of a conflict supports and the axis divides, in its order; none if
/// some evidence comes from an earlier tactic.
constexpr vec<int> choices(const loop_program& c, const loop_view& now, op_id o, int axis) {
  vec<int> list;
  int count = 0;
  bool at_once = true;
  const auto is_older = [&](op_id other) {
    return (now.axes[other] >> axis & 1) != 0 && loop_over(now, other, axis).tactic != c.tactic;
  };
  const op_node& n = now.ops[o];
  for_each_evidence(c, now, o, axis, [&](const evidence& e) {
    ++count;
    if (e.operand >= 0 && is_older(now.producers[now.operands[n.operand_begin + e.operand]]))
      at_once = false;
    for (int r = 0; e.operand < 0 && r < n.result_count; ++r)
      for (const use& u : c.uses(n.result + r)) at_once = at_once && !is_older(u.op);
    bool skip = c.local(o, e.factor) % c.size(o, axis) != 0;
    for (int f : list) skip = skip || f == e.factor;
    if (!skip) list.push_back(e.factor);
    return at_once;
  });
  if (!at_once || count < 2) list.clear();
  return list;
}

/// True if a factor is only a part of the dimension that the evidence slices.
constexpr bool is_composed(const loop_program& c, op_id o, const evidence& e) {
  if (c.map.ops[o].composed) return true;
  const factor& f = c.map.at(o, e.factor);
  if (e.operand >= 0)
    return c.p.type(c.p.operand(o, e.operand)).shape[c.map.operand_dim(f, e.operand)] != f.size;
  const value_id v = c.p.op(o).result;
  for (int r = 0; r < c.p.op(o).result_count; ++r)
    if (const int d = c.map.result_dim(f, r); d != no_dim && c.p.type(v + r).shape[d] != f.size)
      return true;
  return false;
}

}  // namespace partita::core_detail
