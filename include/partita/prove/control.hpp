/// Ops with nested programs: claims inside and after them.
#pragma once

#include <cstdint>

#include <partita/ir/same_code.hpp>
#include <partita/ir/wires.hpp>
#include <partita/op/call.hpp>
#include <partita/op/case_of.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/while_loop.hpp>
#include <partita/prove/iterations.hpp>
#include <partita/prove/lifting.hpp>

namespace partita::prove_detail {

/// Handles a named computation like its body.
constexpr void lift_call(workspace& w, const program& p, op_id o, claim_list& to) {
  const program& body = p.region(o, 0);
  claim_list inside(body);
  for (int i = 0; i < body.input_count(); ++i) pass(w, to, p.operand(o, i), inside, body.inputs[i]);
  lift_all(w, body, inside);
  for (int i = 0; i < body.output_count(); ++i)
    pass(w, inside, body.outputs[i].value, to, p.op(o).result + i);
}

constexpr void lift_case(workspace& w, const program& p, op_id o, claim_list& to) {
  const op_node& n = p.op(o);
  vec<claim_list> branches;
  for (const auto& r : p.regions_of(o)) {
    claim_list inside(r);
    for (int i = 0; i < r.input_count(); ++i) pass(w, to, p.operand(o, i + 1), inside, r.inputs[i]);
    lift_all(w, r, inside);
    branches.push_back(inside);
  }
  for (int k = 0; k < n.result_count; ++k) {
    vec<int> heads;
    heads.push_back(to.first[p.operand(o, 0)]);
    for (int r = 0; r < n.region_count; ++r)
      heads.push_back(branches[r].first[p.region(o, r).outputs[k].value]);
    choose(w, p, o, k, heads, to);
  }
}

/// One loop, of the source or of a local program.
class loop_lifting {
 public:
  constexpr loop_lifting(workspace& w, const program& p, op_id o, claim_list& to)
      : w_(w), p_(p), o_(o), to_(to) {
    p.op(o).def->wires(p, o, wires_);
  }

  constexpr void define() {
    source_loop made;
    made.p = &p_;
    made.op = o_;
    vec<operand_term> operands;
    for (value_id v : p_.operands(o_)) {
      if (to_.first[v] < 0) return;
      made.operands.push_back(w_.claims[to_.first[v]]);
      operands.push_back(made.operands.back().seen());
    }
    if (is_defined(made, operands)) return;
    for (const auto& r : p_.regions_of(o_)) {
      made.inputs.push_back(vec<claim>(r.inputs.size(), claim{}));
      made.outputs.push_back(vec<claim>(r.outputs.size(), claim{}));
    }
    vec<unsigned> alike;
    for (const auto& w : wires_.wires) {
      const wire_end* const operand = end_of(w, wire_end::operand);
      alike.push_back(
          operand == nullptr ? 0 : same_along(made.operands[operand->index], operand->shift));
    }
    while (define_inside(made, alike)) {
    }
    for (const auto& outputs : made.outputs)
      for (const auto& c : outputs)
        if (c.term < 0) return;
    made.results = w_.all.terms.make(site(p_, o_), operands, false, p_.type(p_.op(o_).result));
    w_.all.terms[made.results].factors = static_cast<int>(w_.loops.size());
    define_results(made, alike);
    w_.loops.push_back(made);
  }

  /// Compares a local loop with the loops of the source, or with a value that the source computes
  /// without a loop.
  constexpr void meet() {
    vec<int> heads, found;
    for (value_id v : p_.operands(o_)) heads.push_back(to_.first[v]);
    w_.for_each_choice(heads, [&] {
      int t = w_.all.terms.first_candidate(*p_.op(o_).def, w_.given);
      for (; t >= 0; t = w_.all.terms[t].next)
        if (!is_one_of(found, t)) found.push_back(t);
    });
    for (int t : found) {
      const source_loop source = w_.loops[w_.all.terms[t].factors];
      if (follows(source)) return;
    }
    if (is_scan()) in_time();
  }

 private:
  workspace& w_;
  const program& p_;
  op_id o_;
  claim_list& to_;
  wire_list wires_;

  /// True if a loop with the same body and operands was defined before: its results are the same.
  constexpr bool is_defined(const source_loop& made, const vec<operand_term>& operands) {
    int t = w_.all.terms.first_candidate(*p_.op(o_).def, operands);
    for (; t >= 0; t = w_.all.terms[t].next) {
      const source_loop& known = w_.loops[w_.all.terms[t].factors];
      if (!ir_detail::same_elements(known.operands, made.operands) || !same_loop(known)) continue;
      for (int i = 0; i < p_.op(o_).result_count; ++i)
        w_.add(to_, p_.op(o_).result + i, {t + i, w_.all.terms[t + i].own, {}});
      return true;
    }
    return false;
  }
  constexpr bool same_loop(const source_loop& other) const {
    bool same = p_.op(o_).region_count == other.p->op(other.op).region_count &&
                same_elements(p_.attrs(o_), other.p->attrs(other.op));
    for (int r = 0; r < p_.op(o_).region_count && same; ++r)
      same = same_code(p_.region(o_, r), other.p->region(other.op, r));
    return same;
  }
  /// True if there is at least one iteration. Scans without iterations are handled elsewhere.
  constexpr bool is_scan() const { return p_.op(o_).def->id == def<op::scan>.id; }
  static constexpr const wire_end* end_of(const wire& w, wire_end::kind_type kind) {
    for (const auto& e : w.ends)
      if (e.kind == kind) return &e;
    return nullptr;
  }
  /// True if a value only enters, unsharded. Its value inside equals the one outside.
  static constexpr bool only_enters(const wire& w) {
    const wire_end* const operand = end_of(w, wire_end::operand);
    return operand != nullptr && operand->shift == 0 && end_of(w, wire_end::output) == nullptr;
  }
  /// The dimensions along which a value repeats, except for the first ones, as bits.
  constexpr unsigned same_along(const claim& c, int shift) const {
    const view& seen = w_.all.views[c.view];
    unsigned bits = 0;
    for (int d = shift; d < seen.rank; ++d)
      if (seen.repeats(d)) bits |= 1u << (d - shift);
    return bits;
  }
  static constexpr view view_of(const shape& s, unsigned alike, int shift) {
    view v(s);
    for (int d = shift; d < s.rank; ++d)
      if ((alike >> (d - shift) & 1u) != 0) v.drop(d);
    return v;
  }
  /// Defines the values inside. An input repeats along some dimensions (`alike`, by wire) if the
  /// output of the iteration does, too. Otherwise dimensions are removed and the body is visited
  /// again.
  constexpr bool define_inside(source_loop& made, vec<unsigned>& alike) {
    for (std::size_t i = 0; i < alike.size(); ++i) define_inputs(wires_.wires[i], alike[i], made);
    for (int r = 0; r < p_.op(o_).region_count; ++r) {
      const program& region = p_.region(o_, r);
      claim_list inside(region);
      for (int i = 0; i < region.input_count(); ++i)
        w_.add(inside, region.inputs[i], made.inputs[r][i]);
      lift_all(w_, region, inside);
      for (int i = 0; i < region.output_count(); ++i) {
        const int c = inside.first[region.outputs[i].value];
        made.outputs[r][i] = c < 0 ? claim{} : w_.claims[c];
        if (c < 0) return false;
      }
    }
    bool fewer = false;
    for (std::size_t i = 0; i < alike.size(); ++i)
      for (const auto& e : wires_.wires[i].ends) {
        if (e.kind != wire_end::output) continue;
        const unsigned kept = alike[i] & same_along(made.outputs[e.region][e.index], 0);
        fewer = fewer || kept != alike[i];
        alike[i] = kept;
      }
    return fewer;
  }
  constexpr void define_inputs(const wire& w, unsigned alike, source_loop& made) {
    claim inner;
    for (const auto& e : w.ends) {
      if (e.kind != wire_end::input) continue;
      const tensor_type& type = p_.region(o_, e.region).input_type(e.index);
      if (only_enters(w))
        inner = made.operands[end_of(w, wire_end::operand)->index];
      else if (inner.term < 0)
        inner = own_claim(w_.all.terms.fresh(type), view_of(type.shape, alike, 0));
      made.inputs[e.region][e.index] = inner;
    }
  }
  constexpr claim own_claim(int t, const view& own) {
    w_.own(t, w_.number(own, t));
    return {t, w_.all.terms[t].own, {}};
  }
  /// Defines the results. A result repeats along a dimension if the output of the iteration does,
  /// and also the initial value if there may be no iterations.
  constexpr void define_results(const source_loop& made, const vec<unsigned>& alike) {
    for (std::size_t i = 0; i < alike.size(); ++i) {
      const wire_end* const result = end_of(wires_.wires[i], wire_end::result);
      const wire_end* const out = end_of(wires_.wires[i], wire_end::output);
      if (result == nullptr || out == nullptr) continue;
      const value_id v = p_.op(o_).result + result->index;
      const unsigned same =
          is_scan() ? same_along(made.outputs[out->region][out->index], 0) : alike[i];
      w_.add(
          to_, v,
          own_claim(made.results + result->index, view_of(p_.type(v).shape, same, result->shift)));
    }
  }

  // ---- A loop that matches one of the source ----------------------------------------------------

  /// The position of a local value among the elements of its source value. Along a dimension in
  /// which the source value repeats, any shard fits.
  struct place {
    bool known = false;
    piece pieces[max_rank];
    pending sums;
    double scale = 1;  ///< factor
  };
  /// Finds the position of a local value from a claim about it; dimensions from `shift` on.
  constexpr place find_place(const claim& whole, const shape& s, const claim& part,
                             int shift) const {
    place found;
    piece pieces[max_rank];
    if (!find_pieces(w_.all, whole.seen(), s, part.seen(), pieces)) return found;
    for (int d = 0; d < shift; ++d)
      if (!pieces[d].free && !pieces[d].whole(s.extents[d])) return found;
    for (int d = shift; d < s.rank; ++d) found.pieces[d - shift] = pieces[d];
    found.sums = part.sums;
    found.scale = part.scale / whole.scale;
    found.known = is_factor(found.scale);
    for (int d = shift; d < s.rank && whole.scale != 1; ++d)
      if (piece& mine = found.pieces[d - shift]; !w_.all.is_identity(
              outside::filling(mine.beyond), combiner::add, w_.all.terms[part.term].element))
        mine.beyond = outside::unfilled(mine.beyond);
    return found;
  }
  static constexpr bool is_one_of(const vec<int>& list, int t) {
    for (int each : list)
      if (each == t) return true;
    return false;
  }
  /// An input of an iteration: by wire, its position.
  struct carried {
    const wire* w = nullptr;
    place at;
  };

  constexpr bool follows(const source_loop& source) {
    const op_node &mine = p_.op(o_), &theirs = source.p->op(source.op);
    if (mine.region_count != theirs.region_count ||
        !same_elements(p_.attrs(o_), source.p->attrs(source.op)))
      return false;
    for (int r = 0; r < mine.region_count; ++r) {
      const program &a = p_.region(o_, r), &b = source.p->region(source.op, r);
      if (a.input_count() != b.input_count() || a.output_count() != b.output_count()) return false;
    }
    vec<carried> list;
    for (const auto& w : wires_.wires) {
      if (only_enters(w) || end_of(w, wire_end::input) == nullptr) continue;
      list.push_back({&w, first_place(source, w)});
      if (!list.back().at.known) return false;
    }
    for (int rounds = 0; rounds < 8; ++rounds) {
      bool changed = false;
      vec<claim_list> inside;
      run_regions(source, list, inside);
      for (auto& each : list)
        if (!settles(source, each, inside, changed)) return false;
      if (!changed) return leave(source, list, inside);
    }
    return false;
  }
  constexpr const claim& inner(const source_loop& source, const wire& w) const {
    const wire_end* const e = end_of(w, wire_end::input);
    return source.inputs[e->region][e->index];
  }
  /// The position of the loop's input. If the local input only repeats and the source's does not,
  /// it is taken as the first elements if all are there.
  constexpr place first_place(const source_loop& source, const wire& w) const {
    place found;
    const wire_end* const e = end_of(w, wire_end::operand);
    found.known = e == nullptr;  // the number of the iteration
    for (int c = e == nullptr ? -1 : to_.first[p_.operand(o_, e->index)]; c >= 0 && !found.known;
         c = w_.claims[c].next)
      found = operand_place(source, *e, w_.claims[c]);
    if (!found.known || e == nullptr) return found;
    const claim& in = inner(source, w);
    const shape& whole = w_.all.terms[in.term].shape;
    const shape& local = p_.type(p_.operand(o_, e->index)).shape;
    for (int d = 0; d < whole.rank; ++d) {
      if (!found.pieces[d].free || w_.all.views[in.view].repeats(d)) continue;
      found.known = found.known && local.extents[d + e->shift] >= whole.extents[d];
      found.pieces[d] = piece();
      found.pieces[d].add(0, local.extents[d + e->shift], 1);
    }
    return found;
  }
  constexpr place operand_place(const source_loop& source, const wire_end& e,
                                const claim& c) const {
    return find_place(source.operands[e.index],
                      source.p->type(source.p->operand(source.op, e.index)).shape, c, e.shift);
  }
  constexpr void run_regions(const source_loop& source, const vec<carried>& list,
                             vec<claim_list>& inside) {
    const int lost = w_.lost;
    for (int r = 0; r < p_.op(o_).region_count; ++r) {
      const program& region = p_.region(o_, r);
      claim_list values(region);
      for (const auto& w : wires_.wires)
        if (only_enters(w))
          for (const auto& e : w.ends)
            if (e.kind == wire_end::input && e.region == r)
              pass(w_, to_, p_.operand(o_, end_of(w, wire_end::operand)->index), values,
                   region.inputs[e.index]);
      for (const auto& each : list)
        for (const auto& e : each.w->ends)
          if (e.kind == wire_end::input && e.region == r) enter(source, each, e, region, values);
      w_.lost = lost;
      lift_all(w_, region, values);
      inside.push_back(values);
    }
  }
  constexpr void enter(const source_loop& source, const carried& each, const wire_end& e,
                       const program& region, claim_list& values) {
    const claim& whole = source.inputs[e.region][e.index];
    const value_id v = region.inputs[e.index];
    w_.add(values, v, whole.term, as_view(each.at.pieces, region.type(v).shape.rank), each.at.sums,
           each.at.scale * whole.scale);
  }
  /// True if a value at the end of an iteration matches its value at the start. Otherwise it takes
  /// a common position from now on, if there is one.
  constexpr bool settles(const source_loop& source, carried& each, const vec<claim_list>& inside,
                         bool& changed) {
    const wire_end* const e = end_of(*each.w, wire_end::output);
    if (e == nullptr) return true;
    const claim& whole = source.outputs[e->region][e->index];
    const shape& s = inner_shape(source, *e);
    const int first = inside[e->region].first[p_.region(o_, e->region).outputs[e->index].value];
    for (int c = first; c >= 0; c = w_.claims[c].next)
      if (fits(find_place(whole, s, w_.claims[c], 0), each.at, s)) return true;
    for (int c = first; c >= 0; c = w_.claims[c].next) {
      place here = find_place(whole, s, w_.claims[c], 0);
      if (!starts_as(source, *each.w, here, s)) continue;
      each.at = here;
      return changed = true;
    }
    return collects_terms(source, each, *e, inside[e->region]) && (changed = true);
  }
  /// Assumes that a value holds terms of a sum. This applies to values that start as the identity
  /// and with which terms are combined, or into which they are written, in each iteration. The
  /// assumption is dropped if the iteration ends otherwise.
  constexpr bool collects_terms(const source_loop& source, carried& each, const wire_end& e,
                                const claim_list& inside) const {
    const program& region = p_.region(o_, e.region);
    const value_id out = region.outputs[e.index].value;
    const op_id o = region.producer(out);
    combiner combine = combiner_of(*region.op(o).def);
    const std::uint32_t linear = linear_together(*region.op(o).def);
    const std::uint32_t joined = combine == combiner::stack ? linear : 3;
    if (combine == combiner::stack) combine = combiner::add;
    if (each.at.sums.any() || each.at.scale != 1) return false;
    const int count = region.op(o).operand_count;
    for (int side = 0; side < count && side < 32; ++side) {
      bool is_input = false;
      for (const auto& in : each.w->ends)
        is_input = is_input || (in.kind == wire_end::input && in.region == e.region &&
                                region.inputs[in.index] == region.operand(o, side));
      if (!is_input || (joined >> side & 1u) == 0) continue;
      for (int other = 0; other < count && other < 32; ++other) {
        if (other == side || (joined >> other & 1u) == 0) continue;
        for (int c = inside.first[region.operand(o, other)]; c >= 0; c = w_.claims[c].next) {
          place want = each.at;
          want.sums = w_.claims[c].sums;
          if (linear != 0) want.scale = w_.claims[c].scale;
          if ((want.sums.any() ? want.sums.combine != combine : want.scale == 1) ||
              !starts_as(source, *each.w, want, inner_shape(source, e)))
            continue;
          each.at = want;
          return true;
        }
      }
    }
    return false;
  }
  static constexpr const shape& inner_shape(const source_loop& source, const wire_end& output) {
    return source.p->region(source.op, output.region).output_type(output.index).shape;
  }
  /// True if two positions are equal, except along repeating dimensions, and no unknown padding is
  /// required.
  static constexpr bool fits(const place& here, const place& want, const shape& s) {
    if (!here.known || here.sums != want.sums || here.scale != want.scale) return false;
    for (int d = 0; d < s.rank; ++d)
      if (!lies_as(here.pieces[d], want.pieces[d], s.extents[d]) ||
          !tells_beyond(here.pieces[d], want.pieces[d], s.extents[d]))
        return false;
    return true;
  }
  static constexpr bool lies_as(const piece& here, const piece& want, std::int64_t extent) {
    if (here.free) return true;
    return here.same_positions(want) &&
           (here.lies_inside(extent) ||
            outside::unfilled(here.beyond) == outside::unfilled(want.beyond));
  }
  static constexpr bool tells_beyond(const piece& here, const piece& want, std::int64_t extent) {
    return want.lies_inside(extent) || outside::filling(want.beyond) == outside::unknown ||
           (!here.free && here.beyond == want.beyond);
  }
  /// True if an input may be seen at this position. If any position fits, it uses this one; padding
  /// with other contents becomes unknown.
  constexpr bool starts_as(const source_loop& source, const wire& w, place& want,
                           const shape& s) const {
    const wire_end* const e = end_of(w, wire_end::operand);
    if (!want.known) return false;
    const view& own = w_.all.views[inner(source, w).view];
    for (int c = to_.first[p_.operand(o_, e->index)]; c >= 0; c = w_.claims[c].next) {
      place have = operand_place(source, *e, w_.claims[c]), at = want;
      if (want.sums.any() && !have.sums.any() && w_.is_identity(w_.claims[c], want.sums.combine))
        have.sums = want.sums;
      if (w_.is_identity(w_.claims[c], combiner::add)) have.scale = want.scale;
      for (int d = 0; d < s.rank; ++d) {
        if (at.pieces[d].free) at.pieces[d] = have.pieces[d];
        if (!tells_beyond(have.pieces[d], at.pieces[d], s.extents[d]))
          at.pieces[d].beyond = outside::unfilled(at.pieces[d].beyond);
      }
      bool good = fits(have, at, s);
      for (int d = 0; d < s.rank; ++d) good = good && (!at.pieces[d].free || own.repeats(d));
      if (!good) continue;
      want = at;
      return true;
    }
    return false;
  }
  /// Records claims about the results.
  constexpr bool leave(const source_loop& source, const vec<carried>& list,
                       const vec<claim_list>& inside) {
    for (const auto& w : wires_.wires) {
      const wire_end* const out = end_of(w, wire_end::output);
      const wire_end* const result = end_of(w, wire_end::result);
      // (Carried values of a scan leave with their contents at the end of an iteration.)
      const bool enters = end_of(w, wire_end::input) != nullptr;
      if (out == nullptr || (enters && (result == nullptr || !is_scan()))) continue;
      const claim& whole = source.outputs[out->region][out->index];
      const program& region = p_.region(o_, out->region);
      const shape& s = source.p->region(source.op, out->region).output_type(out->index).shape;
      const int first = inside[out->region].first[region.outputs[out->index].value];
      // (A condition is the same on all devices.)
      bool any = s.has_no_elements() || enters;
      for (int c = first; c >= 0; c = w_.claims[c].next) {
        const place here = find_place(whole, s, w_.claims[c], 0);
        any = any || (here.known && (result != nullptr || (!here.sums.any() && here.scale == 1)));
        if (here.known && result != nullptr) leave(source, here, *result);
      }
      if (!any) return false;
    }
    for (const auto& each : list)
      if (const wire_end* const result = end_of(*each.w, wire_end::result))
        leave(source, each.at, *result);
    return true;
  }
  constexpr void leave(const source_loop& source, const place& at, const wire_end& e) {
    const shape& s = source.p->type(source.p->op(source.op).result + e.index).shape;
    const int t = source.results + e.index;
    const view& own = w_.all.views[w_.all.terms[t].own];
    piece pieces[max_rank];
    for (int d = 0; d < s.rank; ++d) {
      if (d >= e.shift) pieces[d] = at.pieces[d - e.shift];
      if (d < e.shift) pieces[d].add(0, s.extents[d], 1);
      if (own.repeats(d) && pieces[d].lies_inside(s.extents[d])) pieces[d] = piece();
      if (pieces[d].free) return;
    }
    w_.add(to_, p_.op(o_).result + e.index, t, as_view(pieces, s.rank), at.sums, at.scale);
  }

  // ---- Iterations instead of devices ------------------------------------------------------------

  /// Handles a loop whose iterations together compute what the source does in one op.
  constexpr void in_time() {
    const op::scan::counts k(p_.attrs(o_));
    const program& body = p_.region(o_, 0);
    iterations each(w_, k.length);
    if (!each.possible()) return;
    claim_list inside(body);
    if (!k.reversed) each.count(inside, body.inputs[0]);
    for (int i = 0; i < k.constants; ++i)
      pass(w_, to_, p_.operand(o_, i), inside, body.inputs[1 + i]);
    for (int i = k.constants + k.carried; i < p_.op(o_).operand_count; ++i)
      each.take_slice(to_, p_.operand(o_, i), inside, body.inputs[1 + i]);
    lift_all(w_, body, inside);
    for (int i = 0; i < body.output_count(); ++i) {
      const value_id v = body.outputs[i].value, result = p_.op(o_).result + i;
      if (i >= k.carried)
        each.give_slice(inside, v, to_, result);
      else
        each.give_joined(
            body, body.inputs[1 + k.constants + i], v, inside,
            [&](combiner c) { return starts_from_identity(p_.operand(o_, k.constants + i), c); },
            to_, result);
    }
  }
  constexpr bool starts_from_identity(value_id v, combiner combine) const {
    for (int c = to_.first[v]; c >= 0 && combine != combiner::stack; c = w_.claims[c].next)
      if (w_.is_identity(w_.claims[c], combine)) return true;
    return false;
  }
};

/// Handles a scan without iterations: it returns its operands.
constexpr bool lift_no_iteration(const program& p, op_id o, workspace& w, claim_list& to) {
  if (p.op(o).def->id != def<op::scan>.id) return false;
  const op::scan::counts k(p.attrs(o));
  if (k.length > 0) return false;
  for (int i = 0; i < k.carried; ++i)
    pass(w, to, p.operand(o, k.constants + i), to, p.op(o).result + i);
  return true;
}

constexpr void lift_control(workspace& w, const program& p, op_id o, claim_list& to) {
  switch (p.op(o).def->id) {
    case def<op::call>.id:
      return lift_call(w, p, o, to);
    case def<op::case_of>.id:
      return lift_case(w, p, o, to);
    default: {
      if (lift_no_iteration(p, o, w, to)) return;
      loop_lifting loop(w, p, o, to);
      return w.defining ? loop.define() : loop.meet();
    }
  }
}

}  // namespace partita::prove_detail
