/// Evidence for loops: which entry of an op's tile map do the ops around it support?
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

constexpr void support(const loop_program& c, match& m, op_id o, int axis, evidence e) {
  if (m.first.factor == e.factor || m.several) return;
  if (c.local(o, e.factor) % c.mesh.size(axis) != 0) m.indivisible = true;
  if (m.first.factor == any_factor) {
    m.first = e;
  } else {
    m.second = e;
    m.several = true;
    m.indivisible = false;
  }
}

/// The most major factor that is left of a dimension of an operand (-1 - r: of result r).
constexpr int front_factor(const loop_program& c, op_id o, int operand, int dim) {
  const auto& row = c.map.ops[o];
  const factor* factors = c.map.factors.data() + row.begin;
  const std::int64_t* local = c.locals_of(o);
  int last = any_factor;
  for (int f = 0; f < row.count; ++f) {
    PARTITA_WORK(1);
    if (c.map.dim_of(factors[f], operand) != dim) continue;
    last = f;
    if (local[f] > 1) break;
  }
  return last != any_factor && c.map.is_front(o, last, local) ? last : any_factor;
}

/// Is `wants` what `has` gives along `dim`, up to but not including `axis`?
constexpr bool next_along(const factor_table& map, const nest& has, op_id has_op, int has_operand,
                          const nest& wants, op_id wants_op, int wants_operand, int dim, int axis) {
  int j = 0;
  const factor *has_factors = map.factors_of(has_op), *wants_factors = map.factors_of(wants_op);
  const auto other = [&](const loop& l, const factor* factors, int end) {
    return l.factor == any_factor || map.dim_of(factors[l.factor], end) != dim;
  };
  for (int i = 0; i < has.count; ++i) {
    const loop& l = has.loops[i];
    if (other(l, has_factors, has_operand)) continue;
    while (j < wants.count && other(wants.loops[j], wants_factors, wants_operand)) ++j;
    if (l.axis == axis) return j == wants.count;
    if (j == wants.count || wants.loops[j].axis != l.axis) return false;
    ++j;
  }
  return false;
}

/// May a factor with a halo be cut once more? Not if the axis does not divide both sides, or if
/// the halos were more than a gather.
constexpr bool fits(const loop_program& c, op_id o, int f, int axis) {
  const std::int64_t left = c.local(o, f), size = c.mesh.size(axis);
  if (!c.sees_halos() || left == 0 || left % size != 0) return false;
  if (size == 1) return true;
  const auto given = c.p.attrs(o);
  vec<std::int64_t> attrs(given.begin(), given.end());
  const halo_cut one = c.cut(o, f, c.map.at(o, f).size / left * size, attrs);
  bool good = one.possible;
  for (int k = 0; k < max_halo_operands; ++k) good = good && (!one.slices(k) || one.worthwhile(k));
  return good;
}

/// The dimension on which all ops that use a value slice it along an axis. Being a result of the
/// program is no use in this sense: results may lie on the mesh as they are made. That is how an
/// optimizer's next state follows its parameters (section 5.2.2); `replicated` keeps one whole.
constexpr int sliced_by_all_uses(const loop_program& c, value_id v, int axis) {
  int dim = no_dim;
  const factor_table& map = c.map;
  const nest_list& nests = c.nests;
  const span<const use> uses = c.uses(v);
  const nest_list::row* rows = nests.rows();
  const use* const all = uses.data();
  const int count = static_cast<int>(uses.size());
  for (int i = 0; i < count; ++i)
    if ((rows[all[i].op].axes >> axis & 1u) == 0) return no_dim;
  for (int i = 0; i < count; ++i) {
    const use& u = all[i];
    const loop* l = nests.find(u.op, axis);
    if (l->factor == any_factor) return no_dim;
    const int d = map.operand_dim(map.at(u.op, l->factor), u.operand);
    if (d == no_dim || (dim != no_dim && d != dim)) return no_dim;
    dim = d;
    const op_id o = c.p.producer(v);
    if (!next_along(map, nests[u.op], u.op, u.operand, nests[o], o, -1 - c.p.result_index(v), dim,
                    axis))
      return no_dim;
  }
  return dim;
}

/// Which tile-map entries of an op does the evidence support for a loop over an axis?
constexpr match find_match(const loop_program& c, op_id o, int axis) {
  match m;
  const nest_list& nests = c.nests;
  const nest_list::row* rows = nests.rows();  // (few calls: most ops have no such loops)
  if ((rows[o].axes >> axis & 1u) != 0) return m;
  const program& p = c.p;
  const factor_table& map = c.map;
  const op_node& n = p.ops[o];
  const op_id* producers = p.producers.data();
  const value_id* operands = p.operand_list.data() + n.operand_begin;
  for (int i = 0; i < n.operand_count; ++i) {
    const value_id x = operands[i];
    const op_id q = producers[x];
    if ((rows[q].axes >> axis & 1u) == 0) continue;
    const loop* l = nests.find(q, axis);
    if (l->factor == any_factor) continue;
    const int result = p.ops[q].result - x - 1;
    const int dim = map.dim_of(map.at(q, l->factor), result);
    if (dim == no_dim || !next_along(map, nests[q], q, result, nests[o], o, i, dim, axis)) continue;
    const int f = front_factor(c, o, i, dim);
    if (f != any_factor && (!map.at(o, f).halo || fits(c, o, f, axis)))
      support(c, m, o, axis, {f, i});
    if (m.several) return m;  // an op of many operands may have as many factors
  }
  for (int r = 0; r < n.result_count; ++r) {
    const int dim = sliced_by_all_uses(c, n.result + r, axis);
    if (dim == no_dim) continue;
    const int f = front_factor(c, o, -1 - r, dim);
    if (f != any_factor && (!map.at(o, f).halo || fits(c, o, f, axis)))
      support(c, m, o, axis, {f, -1});
    if (m.several) return m;
  }
  return m;
}

/// Does a factor take only a part of the dimension that the evidence slices?
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
