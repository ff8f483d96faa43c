/// Derives claims about the values of a program, op by op in order of execution.
#pragma once

#include <partita/prove/blocks.hpp>
#include <partita/prove/elementwise.hpp>
#include <partita/prove/exchange.hpp>
#include <partita/prove/located.hpp>
#include <partita/prove/masks.hpp>
#include <partita/prove/meeting.hpp>
#include <partita/prove/moving.hpp>
#include <partita/prove/positions.hpp>
#include <partita/prove/starts.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail {

/// Handles an op with nested programs; see control.hpp.
constexpr void lift_control(workspace& w, const program& p, op_id o, claim_list& to);

constexpr bool only_moves(const collective& what) {
  return !what.reduces() &&
         (what.kind != collective::permute || what.map.form != device_map::shifted);
}

constexpr void lift_collective(workspace& w, const program& p, op_id o, claim_list& to) {
  const collective what = p.collective_of(o);
  for (int i = 0; i < p.op(o).operand_count; ++i) {
    const tensor_type& from = p.type(p.operand(o, i));
    for (int c = to.first[p.operand(o, i)]; c >= 0; c = w.claims[c].next) {
      claim known = w.claims[c];
      if (what.reduces() && w.is_identity(known, what.combine)) {
        w.add(to, p.op(o).result + i, known);
        continue;
      }
      if (what.combine != combiner::add) known = w.unscaled(known);
      view v = w.all.views[known.view];
      const int identity = w.all.identity_beyond(what.combine, from.element);  // may add a term
      const exchange rule(what, w.mesh, from.shape, w.all.terms[known.term].shape);
      pending sums = known.sums;
      if (rule.apply(v, sums, identity))
        w.add(to, p.op(o).result + i, known.term, v, sums, known.scale);
      else if (what.kind == collective::all_reduce)
        reduce_axes(w, what, from, p.op(o).result + i, known, to);
      else
        move_reshaped(
            w, known, from.shape, to, p.op(o).result + i,
            [&](view& each, pending& left, const meanings::reshaping& whole) {
              bool cuts =
                  what.kind == collective::permute && what.map.form != device_map::renumbered;
              for (const auto& e : what.axes) cuts = cuts && !each.depends_on(e.axis);
              return !cuts &&
                     exchange(what, w.mesh, from.shape, whole.to).apply(each, left, identity);
            });
    }
  }
}

/// True if the result equals the operand. (A conversion to the same type.)
constexpr bool changes_nothing(const program& p, const op_node& n) {
  if (n.operand_count != 1) return false;
  return n.def->identity ||
         (n.def->id == def<op::convert>.id &&
          p.type(n.result).element == p.type(p.operand_list[n.operand_begin]).element);
}

constexpr bool sees_beyond(const workspace& w) {
  for (const auto& c : w.chosen) {
    if (w.all.views.is_unfilled(c.view)) continue;
    const view& v = w.all.views[c.view];
    for (int d = 0; d < v.dims; ++d)
      if (v.beyond[d] >= outside::first_value) return true;
  }
  return false;
}

/// Restores the chosen claims after rules have changed them.
class kept_choice {
 public:
  constexpr explicit kept_choice(workspace& w) : w_(w), chosen_(w.chosen), given_(w.given) {}
  kept_choice(const kept_choice&) = delete;
  constexpr ~kept_choice() {
    w_.chosen = static_cast<vec<claim>&&>(chosen_);
    w_.given = static_cast<vec<operand_term>&&>(given_);
  }

 private:
  workspace& w_;
  vec<claim> chosen_;
  vec<operand_term> given_;
};

/// Tries the other rules for an elementwise op of a local program.
constexpr void lift_local_elements(workspace& w, const program& p, op_id o, const site& at,
                                   claim_list& to) {
  const bool selects = at.as->id == def<op::select>.id;
  for_any_start(w, at, to);
  if (selects || at.as->id == def<op::multiply>.id) picks(w, p, o, to);
}
/// Handles an op with one chosen claim for each operand. (Most laws concern a few kinds of ops and
/// are not called for others: in constant evaluation a call that rejects an op is as expensive as
/// some laws.)
constexpr void lift_chosen(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  const bool elements = n.def->elementwise;
  if (changes_nothing(p, n)) return w.add(to, n.result, claim(w.chosen[0]));
  if (n.operand_count == 0 && lift_number(w, p, o, to)) return;
  if (elements ? goes_around(w, p, o, to) || counts(w, p, o, to)
               : n.operand_count > 0 && moves(w, p, o, to))
    return;
  const site at(p, o);
  if (!w.defining && join(w, p, o, to)) return;
  bool done = false;
  if (n.def->id == def<op::select>.id) {
    w.unscale();
    done = masks(w, p, o, to) && w.defining;
  }
  if (elements) done = by_element(w, at, to) || done;
  const bool local = elements && !w.defining, by_laws = !done || sees_beyond(w);
  if (!local) {
    if (by_laws) by_law(w, at, to);
    return;
  }
  if (by_laws) {
    const kept_choice kept(w);
    by_law(w, at, to);
  }
  lift_local_elements(w, p, o, at, to);
}

constexpr void lift(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  if (n.def->passes_on) {
    for (int i = 0; i < n.result_count; ++i)
      for (int c = to.first[p.operand(o, i)]; c >= 0; c = w.claims[c].next)
        w.add(to, n.result + i, claim(w.claims[c]));
    return;
  }
  if (n.def->role == op_role::control) return lift_control(w, p, o, to);
  if (n.def->collective) return lift_collective(w, p, o, to);
  if (n.def->id == def<op::shard_start>.id) return lift_start(w, p, o, to);
  write_blocks(w, p, o, to);
  w.heads.resize(static_cast<std::size_t>(n.operand_count));
  const value_id* const operands = p.operand_list.data() + n.operand_begin;
  int* const heads = w.heads.data();
  const int* const first = to.first.data();
  for (int i = 0; i < n.operand_count; ++i) heads[i] = first[operands[i]];
  w.for_each_choice(w.heads, [&] { lift_chosen(w, p, o, to); });
}

constexpr bool is_part(const workspace& w, value_id v, const claim_list& of) {
  return of.first[v] >= 0 && is_partial(w.claims[of.first[v]]);
}
/// True if an op extends a pending sum.
constexpr bool sums_up(const workspace& w, const program& p, op_id o, const claim_list& of) {
  const op_def& d = *p.op(o).def;
  if (d.collective || d.id == def<op::reduce>.id || d.id == def<op::dot_general>.id) return true;
  bool all = commutes(d);
  for (value_id v : p.operands(o)) all = all && is_part(w, v, of);
  return all;
}
/// Reports the last op of the sum if a value is only a partial sum.
constexpr void blame_part(workspace& w, const program& p, value_id v, const claim_list& of) {
  if (w.lost >= 0 || !is_part(w, v, of)) return;
  const op_id o = p.producer(v);
  if (sums_up(w, p, o, of))
    return w.note_lost(p, o, of, concat("the source reduces more than this"));
  for (value_id each : p.operands(o)) blame_part(w, p, each, of);
}

/// Gives values without elements an empty claim, since all are equal.
constexpr void know_nothing(workspace& w, const program& p, claim_list& to) {
  const tensor_type* const types = p.types.data();
  const auto count = static_cast<value_id>(p.types.size());
  for (value_id v = 0; v < count; ++v) {
    const tensor_type& t = types[v];
    if (t.shape.rank == 0 || !t.shape.has_no_elements()) continue;
    to.first[v] = -1;
    w.add(to, v, w.all.terms.nothing(t.element), view(t.shape.rank, 1), {});
  }
}

/// Marks the operands of needed ops as needed.
constexpr void need_operands(const program& p, vec<char>& needed) {
  char* const list = needed.data();
  const op_node* const ops = p.ops.data();
  const op_id* const producers = p.producers.data();
  for (op_id o = p.op_count(); o-- > 0;) {
    if (list[o] == 0) continue;
    const value_id* const operands = p.operand_list.data() + ops[o].operand_begin;
    for (int i = 0; i < ops[o].operand_count; ++i) list[producers[operands[i]]] = 1;
  }
}

constexpr bool adds(const op_def& d) {
  return d.id == def<op::add>.id || d.id == def<op::subtract>.id || d.id == def<op::negate>.id;
}
/// True if two ops form one sum together (or another commutative combination).
constexpr bool are_joint(const op_def& a, const op_def& b) {
  return a.id == b.id ? adds(a) || commutes(a) : adds(a) && adds(b);
}
/// By op: true if its result is used once, by an op of the same kind.
constexpr vec<char> sum_parts(const program& p) {
  vec<char> inner(p.ops.size(), 0), used(p.ops.size(), 0);
  const op_node* const ops = p.ops.data();
  const op_id* const producers = p.producers.data();
  char *const is_inner = inner.data(), *const is_used = used.data();
  const op_id count = p.op_count();
  for (op_id o = 0; o < count; ++o) {
    const op_def& d = *ops[o].def;
    const bool joins = are_joint(d, d);
    const value_id* const operands = p.operand_list.data() + ops[o].operand_begin;
    for (int i = 0; i < ops[o].operand_count; ++i) {
      const op_id from = producers[operands[i]];
      is_inner[from] = joins && is_used[from] == 0 && are_joint(*ops[from].def, d) ? 1 : 0;
      is_used[from] = 1;
    }
  }
  for (const auto& each : p.outputs) inner[p.producer(each.value)] = 0;
  return inner;
}

/// Derives the claims of all needed ops.
constexpr void lift_all(workspace& w, const program& p, claim_list& to) {
  know_nothing(w, p, to);
  vec<char> needed(p.ops.size(), w.defining ? 1 : 0);
  if (!w.defining) {
    for (const auto& each : p.outputs) needed[p.producer(each.value)] = 1;
    need_operands(p, needed);
  }
  const vec<char> inner = sum_parts(p);
  const op_node* const ops = p.ops.data();
  const op_id count = p.op_count();
  for (op_id o = 0; o < count; ++o) {
    const op_node& n = ops[o];
    if (n.def->role == op_role::parameter || needed.data()[o] == 0) continue;
    w.all.ends_sum = inner.data()[o] == 0;
    if (n.result_count == 1 && p.types.data()[n.result].shape.has_no_elements()) continue;
    if (w.stopped()) return;
    w.look_at(p, o);
    if (!w.step()) return;
    lift(w, p, o, to);
    if (!w.defining && to.first.data()[n.result] < 0) located_op(w, p, o, to).apply();
    if (w.defining || w.lost >= 0 || to.first.data()[n.result] >= 0) continue;
    if (is_being_written(w, p, n.result)) continue;
    if (!sums_up(w, p, o, to))
      for (value_id v : p.operands(o)) blame_part(w, p, v, to);
    if (w.lost < 0) w.note_lost(p, o, to, w.reason);
  }
}

/// Handles a result of an op with branches, as an elementwise op of the branch number and the
/// results of the branches.
constexpr void choose(workspace& w, const program& p, op_id o, int result, const vec<int>& heads,
                      claim_list& to) {
  const site at(p, o, result);
  w.for_each_choice(heads, [&] {
    if (!by_element(w, at, to) || sees_beyond(w)) by_law(w, at, to);
  });
}

}  // namespace partita::prove_detail

#include <partita/prove/control.hpp>  // defines lift_control
