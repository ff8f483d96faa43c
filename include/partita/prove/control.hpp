/// Ops with nested programs: what is known inside and behind them.
#pragma once

#include <cstdint>

#include <partita/ir/wires.hpp>
#include <partita/op/call.hpp>
#include <partita/op/case_of.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/while_loop.hpp>
#include <partita/prove/lifting.hpp>

namespace partita::prove_detail {

/// What enters a nested program: everything that is known of a value outside of it.
constexpr void pass(workspace& w, const claim_list& from, value_id v, claim_list& to,
                    value_id input) {
  for (int c = from.first[v]; c >= 0; c = w.claims[c].next) w.add(to, input, claim(w.claims[c]));
}

/// A computation with a name is what it does.
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
    for (const auto& r : p_.regions_of(o_)) {
      made.inputs.push_back(vec<claim>(r.inputs.size(), claim{}));
      made.outputs.push_back(vec<claim>(r.outputs.size(), claim{}));
    }
    for (const auto& w : wires_.wires) define_inputs(w, made);
    for (int r = 0; r < p_.op(o_).region_count; ++r) {
      const program& region = p_.region(o_, r);
      claim_list inside(region);
      for (int i = 0; i < region.input_count(); ++i)
        w_.add(inside, region.inputs[i], made.inputs[r][i]);
      lift_all(w_, region, inside);
      for (int i = 0; i < region.output_count(); ++i) {
        const int c = inside.first[region.outputs[i].value];
        if (c < 0) return;
        made.outputs[r][i] = w_.claims[c];
      }
    }
    made.results = w_.all.terms.make(site(p_, o_), operands, false, p_.type(p_.op(o_).result));
    w_.all.terms[made.results].factors = static_cast<int>(w_.loops.size());
    for (int r = 0; r < p_.op(o_).result_count; ++r) {
      const value_id v = p_.op(o_).result + r;
      w_.add(to_, v, made.results + r, own_view(r, made), {});
      w_.all.terms[made.results + r].own = w_.claims[to_.first[v]].view;
    }
    w_.loops.push_back(made);
  }

  /// A result repeats where what leaves an iteration does (and enters the first, if there may be
  /// none).
  constexpr view own_view(int r, const source_loop& made) const {
    view v(p_.type(p_.op(o_).result + r).shape);
    for (const auto& w : wires_.wires) {
      const wire_end* const result = end_of(w, wire_end::result);
      const wire_end* const out = end_of(w, wire_end::output);
      const wire_end* const in = end_of(w, wire_end::operand);
      if (result == nullptr || result->index != r || out == nullptr) continue;
      const view& last = w_.all.views[made.outputs[out->region][out->index].view];
      for (int d = result->shift; d < v.rank; ++d) {
        bool alike = last.repeats(d - result->shift);
        if (in != nullptr && p_.op(o_).def->id != def<op::scan>.id)
          alike = alike && w_.all.views[made.operands[in->index].view].repeats(d);
        if (alike) v.drop(d);
      }
    }
    return v;
  }

  /// A local loop that does what one of the source does, or takes the place of one that is there in
  /// space.
  constexpr void meet() {
    vec<int> heads, found;
    for (value_id v : p_.operands(o_)) heads.push_back(to_.first[v]);
    w_.for_each_choice(heads, [&] {
      vec<operand_term> operands;
      for (const auto& each : w_.given) operands.push_back(w_.known_as(each));
      int t = w_.all.terms.first_candidate(*p_.op(o_).def, operands);
      for (; t >= 0; t = w_.all.terms[t].next)
        if (!is_one_of(found, t)) found.push_back(t);
    });
    for (int t : found) {
      const source_loop source = w_.loops[w_.all.terms[t].factors];
      if (follows(source, false) || follows(source, true)) return;
    }
    if (p_.op(o_).def->id == def<op::scan>.id) in_time();
  }

 private:
  workspace& w_;
  const program& p_;
  op_id o_;
  claim_list& to_;
  wire_list wires_;

  static constexpr const wire_end* end_of(const wire& w, wire_end::kind_type kind) {
    for (const auto& e : w.ends)
      if (e.kind == kind) return &e;
    return nullptr;
  }
  /// Does a value only enter, whole? Then it is inside what it is outside.
  static constexpr bool only_enters(const wire& w) {
    const wire_end* const operand = end_of(w, wire_end::operand);
    return operand != nullptr && operand->shift == 0 && end_of(w, wire_end::output) == nullptr;
  }
  constexpr void define_inputs(const wire& w, source_loop& made) {
    claim inner;
    for (const auto& e : w.ends) {
      if (e.kind != wire_end::input) continue;
      const program& region = p_.region(o_, e.region);
      const tensor_type& type = region.input_type(e.index);
      if (only_enters(w)) {
        inner = made.operands[end_of(w, wire_end::operand)->index];
      } else if (inner.term < 0) {
        inner.term = w_.all.terms.fresh(type);
        inner.view = w_.number(view(type.shape), inner.term);
      }
      made.inputs[e.region][e.index] = inner;
    }
  }

  // ---- A loop like one of the source ------------------------------------------------------------

  /// How a local value lies among the elements of what it stands for.
  struct place {
    bool known = false;
    piece pieces[max_rank];
    pending sums;
  };
  static constexpr bool same(const place& a, const place& b, int rank) {
    if (!a.known || !b.known || a.sums != b.sums) return false;
    for (int d = 0; d < rank; ++d)
      if (!a.pieces[d].same_positions(b.pieces[d])) return false;
    return true;
  }
  /// The place of a local value, of which this is known; dimensions from `shift` on.
  constexpr place find_place(const claim& whole, const shape& s, const claim& part,
                             int shift) const {
    place found;
    piece pieces[max_rank];
    const bool reshaped =
        w_.all.terms[part.term].alias == whole.seen() && w_.all.terms[part.term].shape == s;
    if (part.view == open_view || part.scale != whole.scale ||
        (whole.term != part.term && !reshaped))
      return found;
    const view seen = reshaped ? view(s) : w_.all.views[whole.view];
    if (!relative_view(seen, s, w_.all.views[part.view], w_.all.terms[part.term].shape)
             .find(pieces))
      return found;
    for (int d = 0; d < shift; ++d)
      if (!pieces[d].free && !pieces[d].whole(s.extents[d])) return found;
    for (int d = shift; d < s.rank; ++d) found.pieces[d - shift] = pieces[d];
    found.known = true;
    found.sums = part.sums;
    return found;
  }
  static constexpr bool is_one_of(const vec<int>& list, int t) {
    for (int each : list)
      if (each == t) return true;
    return false;
  }
  /// One for each wire that is more than a value that enters.
  struct carried {
    const wire* w = nullptr;
    place at;
  };

  /// `open`: does what is the same everywhere enter so, even if it has a place?
  constexpr bool follows(const source_loop& source, bool open) {
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
      if (only_enters(w)) continue;
      const wire_end* const operand = end_of(w, wire_end::operand);
      const bool returns = end_of(w, wire_end::output) != nullptr;
      if (open && operand != nullptr && returns &&
          is_open(to_.first[p_.operand(o_, operand->index)], source.operands[operand->index]))
        list.push_back({&w, {}});
      else
        list.push_back({&w, outside_place(source, w)});
      if (!list.back().at.known && !returns) return false;
    }
    for (int rounds = 0; rounds < 8; ++rounds) {
      bool changed = false;
      vec<claim_list> inside;
      const int guesses = w_.guesses;
      run_regions(source, list, inside);
      for (auto& each : list)
        if (!settles(source, each, inside, changed)) return false;
      if (!changed) return (guesses == w_.guesses || all_known(list)) && leave(source, list);
    }
    return false;
  }
  static constexpr bool all_known(const vec<carried>& list) {
    for (const auto& each : list)
      if (!each.at.known) return false;
    return true;
  }
  /// As the operand lies; where it only repeats, it is open.
  constexpr place outside_place(const source_loop& source, const wire& w) const {
    place found;
    const wire_end* const e = end_of(w, wire_end::operand);
    if (e == nullptr) {
      found.known = end_of(w, wire_end::input) != nullptr &&
                    end_of(w, wire_end::output) == nullptr;  // the number of the iteration
      return found;
    }
    const tensor_type& whole = source.p->type(source.p->operand(source.op, e->index));
    const value_id mine = p_.operand(o_, e->index);
    const shape& local = p_.type(mine).shape;
    for (int c = to_.first[mine]; c >= 0; c = w_.claims[c].next) {
      found = find_place(source.operands[e->index], whole.shape, w_.claims[c], e->shift);
      if (found.known) break;
    }
    if (whole.shape.elements() == 0) return found;
    for (int d = e->shift; found.known && d < whole.shape.rank; ++d) {
      piece& each = found.pieces[d - e->shift];
      if (!each.free) continue;
      if (local.extents[d] < whole.shape.extents[d]) {
        found.known = false;
        break;
      }
      each = piece();
      each.add(0, local.extents[d], 1);
    }
    return found;
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
    if (!each.at.known)
      w_.add(values, v, {whole.term, open_view, {}});
    else
      w_.add(values, v, whole.term, as_view(each.at.pieces, region.type(v).shape.rank),
             each.at.sums);
  }
  /// Is a value at the end of an iteration as it was at its beginning? If it entered as one that
  /// fits many places, it takes this one.
  constexpr bool settles(const source_loop& source, carried& each, const vec<claim_list>& inside,
                         bool& changed) {
    const wire_end* const operand = end_of(*each.w, wire_end::operand);
    for (const auto& e : each.w->ends) {
      if (e.kind != wire_end::output) continue;
      const program& region = p_.region(o_, e.region);
      const value_id v = region.outputs[e.index].value;
      const int rank = region.type(v).shape.rank;
      const claim& whole = source.outputs[e.region][e.index];
      const shape& s = source.p->region(source.op, e.region).output_type(e.index).shape;
      if (operand != nullptr &&
          stays_open(source, each, *operand, inside[e.region].first[v], whole))
        continue;
      place found;
      if (operand == nullptr && is_open(inside[e.region].first[v], whole))
        found = first_place(region.type(v).shape);
      bool good = found.known && each.at.known && !each.at.sums.any();
      for (int c = inside[e.region].first[v]; c >= 0 && !good; c = w_.claims[c].next) {
        const place here = find_place(whole, s, w_.claims[c], 0);
        if (!here.known) continue;
        if (!found.known) found = here;
        good = each.at.known && fits(here, each.at, rank);
      }
      if (!found.known) return false;
      if (good) continue;
      if (operand == nullptr && !each.at.known) {  // made inside
        for (int d = 0; d < rank; ++d)
          if (found.pieces[d].free) found.pieces[d] = whole_piece(region.type(v).shape, s, d);
        each.at = found;
        continue;
      }
      if (operand == nullptr || !starts_as(source, *operand, found, rank)) return false;
      each.at = found;
      changed = true;
    }
    return true;
  }
  /// One that fits what is the same everywhere.
  static constexpr place first_place(const shape& local) {
    place found;
    found.known = true;
    for (int d = 0; d < local.rank; ++d) found.pieces[d].add(0, local.extents[d], 1);
    return found;
  }
  /// Is what enters the same everywhere, and what leaves, too?
  constexpr bool stays_open(const source_loop& source, const carried& each, const wire_end& from,
                            int last, const claim& whole) const {
    return !each.at.known &&
           is_open(to_.first[p_.operand(o_, from.index)], source.operands[from.index]) &&
           is_open(last, whole);
  }
  /// Are all elements of a local value, of which this is known, and of what it stands for the same?
  constexpr bool is_open(int known, const claim& whole) const {
    const view& seen = w_.all.views[whole.view];
    for (; known >= 0; known = w_.claims[known].next) {
      const claim& c = w_.claims[known];
      if (c.term != whole.term || c.scale != whole.scale || c.sums.any()) continue;
      if (c.view == open_view ? sees_inside(w_, whole) : c.view == whole.view && seen.count == 0)
        return true;
    }
    return false;
  }
  static constexpr piece whole_piece(const shape& local, const shape& s, int d) {
    piece whole;
    if (local.extents[d] == s.extents[d])
      whole.add(0, s.extents[d], 1);
    else
      whole.free = true;
    return whole;
  }
  /// Equal, but for what repeats.
  static constexpr bool fits(const place& here, const place& want, int rank) {
    if (here.sums != want.sums) return false;
    for (int d = 0; d < rank; ++d)
      if (!here.pieces[d].free && !here.pieces[d].same_positions(want.pieces[d])) return false;
    return true;
  }
  /// May what enters be seen at this place?
  constexpr bool starts_as(const source_loop& source, const wire_end& e, const place& want,
                           int rank) const {
    const tensor_type& whole = source.p->type(source.p->operand(source.op, e.index));
    const value_id mine = p_.operand(o_, e.index);
    for (int d = 0; d < rank; ++d)
      if (want.pieces[d].free) return false;
    for (int c = to_.first[mine]; c >= 0; c = w_.claims[c].next) {
      place have = find_place(source.operands[e.index], whole.shape, w_.claims[c], e.shift);
      if (!have.known) continue;
      if (want.sums.any() && !have.sums.any() && w_.is_identity(w_.claims[c], want.sums.combine))
        have.sums = want.sums;
      if (fits(have, want, rank)) return true;
    }
    return false;
  }
  /// What is known of the results.
  constexpr bool leave(const source_loop& source, const vec<carried>& list) {
    for (const auto& each : list)
      for (const auto& e : each.w->ends) {
        if (e.kind == wire_end::output &&
            p_.region(o_, e.region).output_type(e.index).shape.rank == 0 &&
            end_of(*each.w, wire_end::result) == nullptr && !is_alike(each.at))
          return false;  // a condition that differs from device to device
        if (e.kind != wire_end::result) continue;
        const value_id v = p_.op(o_).result + e.index;
        const shape& s = source.p->type(source.p->op(source.op).result + e.index).shape;
        if (s.elements() == 0) continue;
        if (!each.at.known) {
          const int own = w_.all.terms[source.results + e.index].own;
          w_.add(to_, v,
                 {source.results + e.index, w_.all.views[own].count == 0 ? own : open_view, {}});
          continue;
        }
        place at = each.at;
        const view& own = w_.all.views[w_.all.terms[source.results + e.index].own];
        for (int d = s.rank; d-- > e.shift;) {
          at.pieces[d] = each.at.pieces[d - e.shift];
          if (own.repeats(d) && at.pieces[d].lies_inside(s.extents[d])) at.pieces[d] = piece();
          if (at.pieces[d].free) return false;
        }
        for (int d = 0; d < e.shift; ++d) {
          at.pieces[d] = piece();
          at.pieces[d].add(0, s.extents[d], 1);
        }
        w_.add(to_, v, source.results + e.index, as_view(at.pieces, s.rank), at.sums);
      }
    return true;
  }
  static constexpr bool is_alike(const place& at) { return at.known && !at.sums.any(); }

  // ---- Iterations instead of devices ------------------------------------------------------------

  /// A loop whose iterations do what the source does at once: its number is a coordinate.
  constexpr void in_time() {
    const op::scan::counts k(p_.attrs(o_));
    const program& body = p_.region(o_, 0);
    const int axis = max_axes + w_.depth;
    if (axis >= bound_axis || k.length < 1) return;
    ++w_.depth;
    claim_list inside(body);
    if (!k.reversed && k.length > 1) {
      view index(0, 1);
      index.add(on_axis(axis), 0, k.length, 1);
      w_.add(inside, body.inputs[0], w_.all.terms.positions(dtype::i32), index, {});
    }
    for (int i = 0; i < k.constants; ++i)
      pass(w_, to_, p_.operand(o_, i), inside, body.inputs[1 + i]);
    for (int i = k.constants + k.carried; i < p_.op(o_).operand_count; ++i)
      enter_slices(p_.operand(o_, i), axis, k.length, inside, body.inputs[1 + i]);
    lift_all(w_, body, inside);
    for (int i = 0; i < k.carried; ++i) leave_carried(i, k, axis, inside);
    for (int i = k.carried; i < body.output_count(); ++i)
      stack(inside, body.outputs[i].value, axis, p_.op(o_).result + i);
    --w_.depth;
  }
  constexpr void enter_slices(value_id v, int axis, std::int64_t length, claim_list& inside,
                              value_id to) {
    for (int c = to_.first[v]; c >= 0; c = w_.claims[c].next) {
      const claim known = w_.claims[c];
      if (known.view == open_view) continue;
      const view& seen = w_.all.views[known.view];
      int begin = 0;
      const int end = seen.find(0, begin);
      if (end > begin + 1 || (end == begin + 1 && seen.digits[begin].extent != length)) continue;
      w_.add(inside, to, known.term,
             with_owners(seen, seen.rank - 1,
                         [&](int d) { return d == 0 ? int{on_axis(axis)} : d - 1; }),
             known.sums, known.scale);
    }
  }
  constexpr void stack(const claim_list& inside, value_id v, int axis, value_id result) {
    for (int c = inside.first[v]; c >= 0; c = w_.claims[c].next) {
      const claim known = w_.claims[c];
      if (known.view == open_view || known.sums.contains(axis)) continue;
      const view& seen = w_.all.views[known.view];
      int begin = 0;
      if (seen.find(on_axis(axis), begin) > begin + 1) continue;
      view v_out = with_owners(seen, seen.rank + 1, [](int d) { return d + 1; });
      for (int i = 0; i < v_out.count; ++i)
        if (v_out.digits[i].owner == on_axis(axis)) v_out.digits[i].owner = 0;
      w_.add(to_, result, known.term, v_out, known.sums, known.scale);
    }
  }
  /// A value that is joined with another one in each iteration, or the one of the last.
  constexpr void leave_carried(int i, const op::scan::counts& k, int axis,
                               const claim_list& inside) {
    const program& body = p_.region(o_, 0);
    const value_id out = body.outputs[i].value, result = p_.op(o_).result + i;
    const value_id before = body.inputs[1 + k.constants + i];
    const auto is_done = [&](const claim& c) {
      return c.view != open_view && !c.sums.contains(axis) &&
             !w_.all.views[c.view].depends_on(axis);
    };
    for (int c = inside.first[out]; c >= 0; c = w_.claims[c].next)
      if (is_done(w_.claims[c])) w_.add(to_, result, claim(w_.claims[c]));
    const op_id o = body.producer(out);
    if (body.op(o).operand_count != 2) return;
    for (int side = 0; side < 2; ++side) {
      if (body.operand(o, side) != before) continue;
      for (int c = inside.first[body.operand(o, 1 - side)]; c >= 0; c = w_.claims[c].next) {
        claim joined = w_.claims[c];
        if (joins_identity(body.op(o), p_.operand(o_, k.constants + i), joined))
          w_.add(to_, result, joined);
        if (!joined.sums.contains(axis) ||
            combining_op(joined.sums.combine).id != body.op(o).def->id)
          continue;
        if (!starts_from_identity(p_.operand(o_, k.constants + i), joined.sums.combine)) continue;
        joined.sums.remove(axis);
        if (is_done(joined)) w_.add(to_, result, joined);
      }
    }
  }
  /// From the identity on, joined with it over and over: that is what it stays.
  constexpr bool joins_identity(const op_node& op, value_id start, const claim& c) const {
    for (combiner each : {combiner::add, combiner::multiply, combiner::max, combiner::min,
                          combiner::logical_and, combiner::logical_or})
      if (combining_op(each).id == op.def->id && w_.is_identity(c, each))
        return starts_from_identity(start, each);
    return false;
  }
  constexpr bool starts_from_identity(value_id v, combiner combine) const {
    for (int c = to_.first[v]; c >= 0; c = w_.claims[c].next)
      if (w_.is_identity(w_.claims[c], combine)) return true;
    return false;
  }
};

/// A scan without iterations gives what it is given.
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
