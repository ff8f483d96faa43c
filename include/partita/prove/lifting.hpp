/// From the values of a program to what they mean.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/op/registry.hpp>
#include <partita/prove/exchange.hpp>
#include <partita/prove/movement.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail {

/// A view number for a value of which only the term is known: what enters a loop for the first time
/// may fit many views.
inline constexpr int open_view = -1;

/// What is known of a value: reduced over what is pending, it is what a view shows of a term.
struct claim {
  int term = -1, view = -1;
  pending sums;
  int next = -1;  ///< another one of the same value

  constexpr operand_term seen() const { return {term, view}; }
  friend constexpr bool operator==(const claim& a, const claim& b) {
    return a.term == b.term && a.view == b.view && a.sums == b.sums;
  }
};

/// Of all values of a program, the first of their claims, or -1.
struct claim_list {
  vec<int> first;
  constexpr claim_list() = default;
  constexpr explicit claim_list(const program& p) : first(p.types.size(), -1) {}
};

/// A loop of the source, whose values are terms of their own: what is carried is the same from
/// iteration to iteration, for all that is known.
struct source_loop {
  const program* p = nullptr;
  op_id op = -1;
  vec<claim> operands;      ///< the first claim of each
  vec<vec<claim>> inputs;   ///< by nested program: of each of its inputs
  vec<vec<claim>> outputs;  ///< by nested program: of each of its outputs
  int results = -1;         ///< the first of the terms
};

class lifting;
constexpr void lift_control(lifting& work, const program& p, op_id o, claim_list& to);

/// Goes through programs in order of execution. The source makes terms (`defining`); a local
/// program meets them: its ops by the laws that the source's ops have.
class lifting {
 public:
  constexpr explicit lifting(const mesh& m) : mesh_(m) {}

  meanings all;
  vec<claim> claims;
  text reason;  ///< why the op that was lifted last has no claim
  text lost_reason;
  vec<claim> lost_operands;  ///< what is known of them
  const program* lost_in = nullptr;
  op_id lost = -1;  ///< the first op without claim whose operands have some

  bool defining = true;  ///< is it the source?
  vec<source_loop> loops;
  int depth = 0;  ///< of loops around, whose iterations are coordinates

  /// Is a value everywhere the identity of a combiner?
  constexpr bool is_identity(const claim& c, combiner combine) const {
    if (c.view == open_view || c.sums.any()) return false;
    std::int64_t bits = 1;
    const operand_term s = all.scalar(c.seen());
    return s.view >= 0 && all.is_number(s, bits) &&
           bits == identity_bits(combine, all.terms[c.term].element);
  }

  constexpr void add(claim_list& to, value_id v, claim c) {
    int last = -1, count = 0;
    for (int i = to.first[v]; i >= 0; i = claims[i].next) {
      if (claims[i] == c || ++count == most_claims) return;
      last = i;
    }
    claims.push_back(c);
    claims.back().next = -1;
    (last < 0 ? to.first[v] : claims[last].next) = static_cast<int>(claims.size()) - 1;
  }
  constexpr int number(view v, int term) {
    v.normalize(all.terms[term].shape);
    return all.views.number(v);
  }
  constexpr void add(claim_list& to, value_id v, int term, const view& seen, pending sums) {
    if (seen.good()) add(to, v, {term, number(seen, term), sums});
  }

  /// What the source's ops know a term as.
  constexpr operand_term known_as(const operand_term& given) const {
    const operand_term& alias = all.terms[given.term].alias;
    return alias.term < 0 ? given : alias;
  }
  /// All ways to choose one of the claims of each list, but for too many. (Templates stand before
  /// what calls them: else Clang does not evaluate them in a constant.)
  template <class F>
  constexpr void for_each_choice(const vec<int>& heads, const F& f) {
    for (int head : heads)
      if (head < 0) return;
    vec<int> at = heads;
    for (int tries = 0; tries < most_choices; ++tries) {
      chosen_.clear();
      given_.clear();
      for (int each : at) {
        chosen_.push_back(claims[each]);
        given_.push_back(claims[each].seen());
      }
      f();
      std::size_t i = 0;
      for (; i < at.size(); ++i) {
        at[i] = claims[at[i]].next;
        if (at[i] >= 0) break;
        at[i] = heads[i];
      }
      if (i == at.size()) return;
    }
  }

  constexpr void note_lost(const program& p, op_id o, const claim_list& of, const text& why) {
    for (value_id v : p.operands(o))
      if (of.first[v] < 0) return;
    lost_in = &p;
    lost = o;
    lost_reason = why;
    lost_operands.clear();
    for (value_id v : p.operands(o)) lost_operands.push_back(claims[of.first[v]]);
  }

  constexpr void run(const program& p, claim_list& to) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.is(o, op_role::parameter)) continue;
      reason = {};
      lift(p, o, to);
      if (!defining && lost < 0 && to.first[p.op(o).result] < 0) note_lost(p, o, to, reason);
    }
  }

  /// One of the results of an op with branches: the op, element by element, of the number of the
  /// branch and what the branches give.
  constexpr void choose(const program& p, op_id o, int result, const vec<int>& heads,
                        claim_list& to) {
    const site at{&p, o, result};
    for_each_choice(heads, [&] {
      for (const auto& each : chosen_)
        if (each.view == open_view) return;
      if (!by_element(at, to) || sees_beyond()) by_law(at, to);
    });
  }

 private:
  static constexpr int most_claims = 4, most_choices = 16;

  const mesh& mesh_;
  factor_table map_;
  vec<claim> chosen_;  ///< of each operand of the op that is lifted
  vec<operand_term> given_;

  constexpr void lift(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    if (n.def->role == op_role::control) return lift_control(*this, p, o, to);
    switch (n.def->id) {
      case def<op::optimization_barrier>.id:
        for (int i = 0; i < n.operand_count; ++i)
          for (int c = to.first[p.operand(o, i)]; c >= 0; c = claims[c].next)
            add(to, n.result + i, claim(claims[c]));
        return;
      case def<op::shard_start>.id:
        return lift_start(p, o, to);
      default:
        break;
    }
    if (n.def->collective) return lift_collective(p, o, to);
    vec<int> heads;
    for (value_id v : p.operands(o)) heads.push_back(to.first[v]);
    for_each_choice(heads, [&] {
      if (settle(p, o, to)) lift_chosen(p, o, to);
    });
  }
  /// An open operand is seen as the others of an elementwise op are.
  constexpr bool settle(const program& p, op_id o, claim_list& to) {
    int open = -1, other = -1;
    for (int i = 0; i < static_cast<int>(chosen_.size()); ++i) {
      if (chosen_[i].view == open_view)
        open = i;
      else if (all.views[chosen_[i].view].count > 0)
        other = i;
    }
    if (open < 0) return true;
    if (p.op(o).def->identity) {
      add(to, p.op(o).result, claim(chosen_[0]));
      return false;
    }
    if (!p.op(o).def->elementwise || other < 0) return false;
    const term &mine = all.terms[chosen_[open].term], &theirs = all.terms[chosen_[other].term];
    if (mine.shape != theirs.shape) return false;
    claim now = chosen_[other];
    now.term = chosen_[open].term;
    now.next = -1;
    claims[to.first[p.operand(o, open)]] = now;
    chosen_[open] = now;
    given_[open] = now.seen();
    return true;
  }

  constexpr void lift_chosen(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    if (n.def->identity && n.operand_count == 1) return add(to, n.result, claim(chosen_[0]));
    if (n.operand_count == 0) return lift_number(p, o, to);
    if (moves(p, o, to)) return;
    if (counts(p, o, to)) return;
    bool done = false;
    if (n.def->id == def<op::select>.id) done = masks(p, o, to) && defining;
    if (n.def->elementwise) done = by_element(p, o, to) || done;
    if (!done || sees_beyond()) by_law(site{&p, o}, to);
  }
  constexpr bool sees_beyond() const {
    for (const auto& c : chosen_) {
      const view& v = all.views[c.view];
      for (int d = 0; d < v.dims; ++d)
        if (v.beyond[d] >= outside::first_value) return true;
    }
    return false;
  }

  // ---- Numbers and positions --------------------------------------------------------------------

  constexpr void lift_number(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    const tensor_type& t = p.type(n.result);
    const auto attrs = p.attrs(o);
    const bool small = attrs.empty() || (attrs[0] < max_elements && attrs[0] > -max_elements);
    if (n.def->constant && is_integer(t.element) && small) {
      view v(t.shape.rank, 1);
      v.start[0] = attrs[0];
      return add(to, n.result, all.terms.positions(t.element), v, {});
    }
    if (n.def->constant)
      return add(to, n.result, all.terms.number(attrs[0], t.element), view(t.shape.rank, 0), {});
    if (n.def->id == def<op::iota>.id && exact(t.element, t.shape.extents[attrs[0]])) {
      view v(t.shape.rank, 1);
      const int d = static_cast<int>(attrs[0]);
      v.add(d, 0, t.shape.extents[d], 1);
      const int positions = all.terms.positions(t.element);
      if (defining && t.shape.rank > 1) all.reshaping_of(positions, number(v, positions), t.shape);
      return add(to, n.result, positions, v, {});
    }
    by_law(site{&p, o}, to);
  }
  static constexpr bool exact(dtype t, std::int64_t n) {
    return n >= 0 && n <= op::iota::exact_up_to(t);
  }
  constexpr void lift_start(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    view v(0, 1);
    std::int64_t step = op::shard_start::distance(p.attrs(o));
    const axis_list axes = op::shard_start::axes(p.attrs(o));
    for (int i = axes.count; i-- > 0;) {
      v.add(on_axis(axes.axes[i]), 0, mesh_.size(axes.axes[i]), step);
      step *= mesh_.size(axes.axes[i]);
    }
    if (exact(p.type(n.result).element, step))
      add(to, n.result, all.terms.positions(p.type(n.result).element), v, {});
  }
  /// Sums and differences of positions are positions, in their exact range.
  constexpr bool counts(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    const dtype t = p.type(n.result).element;
    for (const auto& c : chosen_)
      if (!all.terms.is_positions(c.term) || c.sums.any()) return false;
    view v;
    switch (n.def->id) {
      case def<op::add>.id:
        if (!combined(1, p.type(n.result).shape.rank, v)) return false;
        break;
      case def<op::subtract>.id:
        if (!combined(-1, p.type(n.result).shape.rank, v)) return false;
        break;
      case def<op::convert>.id:
        v = all.views[chosen_[0].view];
        break;
      default:
        return false;
    }
    std::int64_t least = 0, greatest = 0;
    v.range(0, least, greatest);
    if (!exact(t, least < 0 ? -least : least) || !exact(t, greatest < 0 ? -greatest : greatest))
      return false;
    if (t != dtype::f32 && t != dtype::f64 && !is_integer(t)) return false;
    if (least < 0 && t == dtype::u8) return false;
    add(to, n.result, all.terms.positions(t), v, {});
    return true;
  }
  /// Positions of two values, as those of their sum or difference.
  constexpr bool combined(std::int64_t sign, int rank, view& v) const {
    const view a = spread(all.views[chosen_[0].view], rank);
    const view b = spread(all.views[chosen_[1].view], rank);
    v = view(rank, 1);
    v.start[0] = a.start[0] + sign * b.start[0];
    int i = 0, k = 0;
    while (i < a.count || k < b.count) {
      const bool both = i < a.count && k < b.count && a.digits[i].owner == b.digits[k].owner;
      if (both && a.digits[i].extent != b.digits[k].extent) return false;
      if (both) {
        const std::int64_t step = a.digits[i].stride + sign * b.digits[k].stride;
        v.add(a.digits[i].owner, step == 0 ? no_dim : 0, a.digits[i].extent, step);
        ++i, ++k;
      } else if (k == b.count || (i < a.count && owner_before(a.digits[i], b.digits[k]))) {
        v.add(a.digits[i].owner, a.digits[i]);
        ++i;
      } else {
        v.add(b.digits[k].owner, b.digits[k].dim, b.digits[k].extent, sign * b.digits[k].stride);
        ++k;
      }
    }
    return v.good();
  }
  static constexpr bool owner_before(const digit& a, const digit& b) {
    if ((a.owner < 0) != (b.owner < 0)) return b.owner < 0;
    return a.owner < 0 ? a.owner > b.owner : a.owner < b.owner;
  }
  static constexpr view spread(const view& v, int rank) {
    if (v.rank == rank) return v;
    return with_owners(v, rank, [](int d) { return d; });
  }

  // ---- Ops that move elements -------------------------------------------------------------------

  constexpr bool moves(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    const auto attrs = p.attrs(o);
    const shape &from = p.type(p.operand(o, 0)).shape, &result = p.type(n.result).shape;
    const shape& tensor = all.terms[chosen_[0].term].shape;
    view v = all.views[chosen_[0].view];
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
        good = pad_all(v, from, result, attrs, tensor);
        break;
      case def<op::concatenate>.id:
        good = joined(p, o, v, tensor);
        break;
      case def<op::dynamic_slice>.id:
        good = slice_at(v, from, result);
        break;
      default:
        return false;
    }
    if (!good && n.def->id == def<op::pad>.id && !defining) pad_reshaped(p, o, to);
    if (!good || !v.good()) return false;
    add(to, n.result, chosen_[0].term, v, chosen_[0].sums);
    if (defining && is_reshaping(n.def->id))
      all.reshaping_of(chosen_[0].term, number(v, chosen_[0].term), result);
    return defining || n.def->id != def<op::pad>.id;  // it may be one that the source has, too
  }
  /// Can what an op makes be padded where its operand could not?
  static constexpr bool is_reshaping(std::uint64_t id) {
    return id == def<op::reshape>.id || id == def<op::broadcast_in_dim>.id ||
           id == def<op::slice>.id || id == def<op::pad>.id || id == def<op::roll>.id ||
           id == def<op::concatenate>.id || id == def<op::dynamic_slice>.id;
  }
  /// Padded in a shape that the source gives a tensor: a piece of it in that shape.
  constexpr void pad_reshaped(const program& p, op_id o, claim_list& to) {
    const int t = chosen_[0].term;
    const shape& tensor = all.terms[t].shape;
    for (int i = all.terms[t].reshaped; i >= 0; i = all.reshapings[i].next) {
      const auto whole = all.reshapings[i];
      piece pieces[max_rank];
      if (!relative_view(all.views[whole.view], whole.to, all.views[chosen_[0].view], tensor)
               .find(pieces))
        continue;
      view v = as_view(pieces, whole.to.rank);
      const shape &from = p.type(p.operand(o, 0)).shape, &result = p.type(p.op(o).result).shape;
      if (!v.good() || !pad_all(v, from, result, p.attrs(o), whole.to)) continue;
      add(to, p.op(o).result, all.reshaped(t, i), v, chosen_[0].sums);
    }
  }
  static constexpr bool slice_all(view& v, const shape& from, const shape& result,
                                  span<const std::int64_t> attrs) {
    for (int d = 0; d < from.rank; ++d) {
      const op::slice::bounds at(attrs.data(), attrs.size(), from.rank, d);
      if (at.start == 0 && at.stride == 1 && result.extents[d] == from.extents[d]) continue;
      if (!slice(v, d, at.start, result.extents[d], at.stride)) return false;
    }
    return true;
  }
  constexpr bool pad_all(view& v, const shape& from, const shape& result,
                         span<const std::int64_t> attrs, const shape& tensor) {
    if (chosen_[1].sums.any()) return false;
    const operand_term scalar = all.scalar(given_[1]);
    if (scalar.view < 0) return false;
    const int fill = chosen_[0].sums.any() ? outside::unknown : all.beyond(scalar);
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
  constexpr bool joined(const program& p, op_id o, view& v, const shape& tensor) const {
    const int d = static_cast<int>(p.attrs(o)[0]);
    std::int64_t extent = p.type(p.operand(o, 0)).shape.extents[d];
    for (std::size_t i = 1; i < chosen_.size(); ++i) {
      if (chosen_[i].term != chosen_[0].term || chosen_[i].sums != chosen_[0].sums) return false;
      const std::int64_t more = p.type(p.operand(o, static_cast<int>(i))).shape.extents[d];
      if (extent == 0 || more == 0) return false;
      if (!append(v, all.views[chosen_[i].view], d, extent, more, tensor)) return false;
      extent += more;
    }
    return true;
  }
  /// A box at known places.
  constexpr bool slice_at(view& v, const shape& from, const shape& result) const {
    for (int d = 0; d < from.rank; ++d) {
      if (result.extents[d] == from.extents[d]) continue;
      const claim& at = chosen_[static_cast<std::size_t>(d + 1)];
      if (!all.terms.is_positions(at.term) || at.sums.any()) return false;
      const view& start = all.views[at.view];
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
        if (chosen_[0].sums.contains(axis_of(start.digits[i])) ||
            !advance(v, dim, start.digits[i].owner, start.digits[i].extent,
                     start.digits[i].stride * step))
          return false;
    }
    return true;
  }
  /// So much more for each step of a coordinate.
  static constexpr bool advance(view& v, int dim, int owner, std::int64_t extent,
                                std::int64_t step) {
    for (int i = 0; i < v.count; ++i)
      if (v.digits[i].owner == owner && v.digits[i].dim == dim) {
        v.digits[i].stride += step;
        if (v.digits[i].stride == 0) v.digits[i].dim = no_dim;
        return true;
      }
    v.add(owner, dim, extent, step);
    return v.good();
  }

  // ---- Ops element by element -------------------------------------------------------------------

  /// Operands that see their terms alike, and scalars: the op on the terms, seen so.
  constexpr bool by_element(const program& p, op_id o, claim_list& to) {
    const value_id result = p.op(o).result;
    const tensor_type& type = p.type(result);
    if (type.element == p.type(p.operand(o, 0)).element && p.op(o).def->id == def<op::convert>.id)
      return false;
    return by_element(site{&p, o}, to);
  }
  constexpr bool by_element(const site& at, claim_list& to) {
    const tensor_type& type = at.result_type(0);
    pending sums;
    if (!joint_sums(*at.p, at.op, sums)) return false;
    int leader = -1;
    shape common{max_elements};
    vec<operand_term> operands;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const view& given = all.views[chosen_[i].view];
      // (A tensor of one element is one of all positions that there are.)
      const bool single = at.operand_type(static_cast<int>(i)).shape.rank > 0 && given.dims > 0 &&
                          all.terms[chosen_[i].term].shape.elements() == 1;
      if (given.count == 0 && !single) {
        view scalar = given;
        scalar.rank = 0;
        operands.push_back({chosen_[i].term, all.views.number(scalar)});
        continue;
      }
      const int seen = seen_alike(given, type.shape.rank);
      if (seen < 0) return false;
      const bool positions = all.terms.is_positions(chosen_[i].term);
      const shape& tensor = all.terms[chosen_[i].term].shape;
      if (leader >= 0 && seen != leader) return false;
      if (leader < 0 || !positions) {
        if (leader >= 0 && common != shape{max_elements} && common != tensor) return false;
        common = tensor;
      }
      leader = seen;
      operands.push_back({chosen_[i].term, operand_term::by_element});
    }
    if (leader < 0) common = {};
    const tensor_type of{type.element, common};
    const int shape_of = leader < 0 ? -1 : same_reshaping(operands);
    sort_commutative(*at.node().def, operands);
    int t = all.terms.find(at, operands, true, of);
    if (t < 0) t = all.terms.make(at, operands, true, of);
    if (shape_of >= 0) t = all.reshaped(t, all.reshaping_of(t, shape_of, common));
    add(to, at.result(0), t, leader < 0 ? view(type.shape.rank, 0) : all.views[leader], sums);
    return true;
  }
  /// Are these tensors in another shape, all in the same? Then they become these tensors; gives how
  /// the shape is seen, or -1.
  constexpr int same_reshaping(vec<operand_term>& operands) const {
    int seen = -1;
    for (const auto& each : operands) {
      if (each.view != operand_term::by_element) continue;
      const operand_term& alias = all.terms[each.term].alias;
      if (alias.term < 0 || (seen >= 0 && alias.view != seen)) return -1;
      seen = alias.view;
    }
    for (auto& each : operands)
      if (each.view == operand_term::by_element) each.term = all.terms[each.term].alias.term;
    return seen;
  }
  /// The view without what stands beyond; -1 where the source sees that.
  constexpr int seen_alike(const view& given, int rank) {
    view v = spread(given, rank);
    for (int d = 0; d < v.dims; ++d)
      if (v.beyond[d] >= outside::first_value) {
        if (defining) return -1;
        v.beyond[d] = outside::unknown;
      }
    return all.views.number(v);
  }
  static constexpr bool commutes(const op_def& d) {
    switch (d.id) {
      case def<op::add>.id:
      case def<op::multiply>.id:
      case def<op::maximum>.id:
      case def<op::minimum>.id:
      case def<op::logical_and>.id:
      case def<op::logical_or>.id:
      case def<op::logical_xor>.id:
        return true;
      default:
        return false;
    }
  }
  static constexpr void sort_commutative(const op_def& d, vec<operand_term>& operands) {
    if (!commutes(d)) return;
    if (operands[1].term < operands[0].term ||
        (operands[1].term == operands[0].term && operands[1].view < operands[0].view)) {
      const operand_term kept = operands[0];
      operands[0] = operands[1];
      operands[1] = kept;
    }
  }

  /// What is pending of a result where it is of operands: sums of linear ops, and of products in
  /// one factor.
  constexpr bool joint_sums(const program& p, op_id o, pending& sums) const {
    const op_node& n = p.op(o);
    std::uint32_t linear = 0;  // operands in which the op is linear, together
    bool product = false;
    bool any = false;
    for (const auto& c : chosen_) any = any || c.sums.any();
    if (!any) return true;
    switch (n.def->id) {
      case def<op::multiply>.id:
      case def<op::dot_general>.id:
      case def<op::convolution>.id:
        linear = 3;
        product = true;
        break;
      case def<op::divide>.id:  // of integers it rounds
        linear = is_floating(p.type(n.result).element) ? 1 : 0;
        product = true;
        break;
      case def<op::select>.id:
      case def<op::case_of>.id:  // of what the branches give
        linear = ~1u;
        break;
      case def<op::reduce>.id:
        for (const auto& c : chosen_)
          if (c.sums.any() && static_cast<std::int64_t>(c.sums.combine) != p.attrs(o)[0])
            return false;
        sums = chosen_[0].sums;
        return chosen_.size() == 1;
      case def<op::concatenate>.id:
      case def<op::pad>.id:
        linear = ~0u;
        break;
      case def<op::gather>.id:
      case def<op::dynamic_slice>.id:
        linear = 1;
        product = true;
        break;
      default:
        if (n.def->linear) linear = ~0u;
        break;
    }
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const pending& mine = chosen_[i].sums;
      if (!mine.any()) continue;
      if (mine.combine != combiner::add || i >= 32 || (linear >> i & 1u) == 0) return false;
      if (sums.any() && (product || sums != mine)) return false;
      sums = mine;
    }
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i].sums.any()) continue;
      const bool with = i < 32 && (linear >> i & 1u) != 0;
      if (with && !product && !is_identity(chosen_[i], combiner::add)) return false;
      for (int a = 0; a < 32; ++a)
        if (sums.contains(a) && all.views[chosen_[i].view].depends_on(a)) return false;
    }
    return true;
  }

  // ---- Masks ------------------------------------------------------------------------------------

  /// For which positions does a comparison with numbers hold: [low, high).
  constexpr bool truth_range(int t, std::int64_t& low, std::int64_t& high) const {
    if (all.terms[t].at.p == nullptr || !all.terms[t].by_element) return false;
    if (all.terms.is(t, def<op::logical_and>)) {
      std::int64_t a = 0, b = 0;
      if (all.terms.operand(all.terms[t], 0).view != operand_term::by_element ||
          all.terms.operand(all.terms[t], 1).view != operand_term::by_element ||
          !truth_range(all.terms.operand(all.terms[t], 0).term, low, high) ||
          !truth_range(all.terms.operand(all.terms[t], 1).term, a, b))
        return false;
      low = a > low ? a : low;
      high = b < high ? b : high;
      return true;
    }
    if (!all.terms.is(t, def<op::compare>)) return false;
    const operand_term &x = all.terms.operand(all.terms[t], 0),
                       &y = all.terms.operand(all.terms[t], 1);
    std::int64_t bound = 0;
    if (!all.terms.is_positions(x.term) || x.view != operand_term::by_element ||
        y.view == operand_term::by_element || !all.terms.is_positions(y.term) ||
        !all.is_number(y, bound))
      return false;
    low = -max_elements;
    high = max_elements;
    switch (static_cast<ops::direction>(all.terms.attrs(t)[0])) {
      case ops::direction::lt:
        high = bound;
        return true;
      case ops::direction::le:
        high = bound + 1;
        return true;
      case ops::direction::ge:
        low = bound;
        return true;
      case ops::direction::gt:
        low = bound + 1;
        return true;
      default:
        return false;
    }
  }
  /// select(is inside, x, scalar): x, with the scalar beyond its ends.
  constexpr bool masks(const program& p, op_id o, claim_list& to) {
    const claim &mask = chosen_[0], &x = chosen_[1];
    std::int64_t low = 0, high = 0;
    const operand_term scalar = all.scalar(given_[2]);
    if (scalar.view < 0 || chosen_[2].sums.any() || mask.sums.any() ||
        !truth_range(mask.term, low, high))
      return false;
    const view& flags = all.views[mask.view];
    view v = all.views[x.view];
    if (flags.dims != 1 || flags.rank != v.rank) return false;
    const int dim = masked_dim(flags, v);
    if (dim < 0) return mask_repeated(p, o, flags, low, high, scalar, to);
    const std::int64_t extent = all.terms[x.term].shape.extents[dim];
    const std::int64_t shift = v.start[dim] - flags.start[0];
    low += shift;
    high += shift;
    std::int64_t least = 0, greatest = 0;
    v.range(dim, least, greatest);
    if ((least > 0 ? least : 0) < low) return false;                            // cut off
    if ((greatest < extent - 1 ? greatest : extent - 1) >= high) return false;  // cut off
    const int fill = all.beyond(scalar);
    const bool all_filled = (least >= 0 || low >= 0) && (greatest < extent || high <= extent);
    if (v.beyond[dim] == outside::wraps) return false;
    if (all_filled)
      v.beyond[dim] = fill;
    else if (v.beyond[dim] != fill)
      v.beyond[dim] = outside::unknown;
    if (x.sums.any() && !is_identity(chosen_[2], combiner::add)) return false;
    add(to, p.op(o).result, x.term, v, x.sums);
    return true;
  }
  /// The same, of a value that is repeated along the dimension: a piece of it in the shape that the
  /// source repeats it in.
  constexpr bool mask_repeated(const program& p, op_id o, const view& flags, std::int64_t low,
                               std::int64_t high, const operand_term& scalar, claim_list& to) {
    const claim x = chosen_[1];
    const view& seen = all.views[x.view];
    int d = -1;
    for (int i = 0; i < flags.count; ++i)
      if (flags.digits[i].owner >= 0) d = flags.digits[i].owner;
    if (defining || d < 0 || !seen.repeats(d) || x.sums.any()) return false;
    bool done = false;
    for (int i = all.terms[x.term].reshaped; i >= 0; i = all.reshapings[i].next) {
      const auto whole = all.reshapings[i];
      piece pieces[max_rank];
      if (whole.to.rank != flags.rank ||
          !relative_view(all.views[whole.view], whole.to, seen, all.terms[x.term].shape)
               .find(pieces) ||
          !pieces[d].free)
        continue;
      pieces[d] = piece();
      pieces[d].start = flags.start[0];
      for (int k = 0; k < flags.count; ++k)
        pieces[d].add(flags.digits[k].owner, flags.digits[k].extent, flags.digits[k].stride);
      view v = as_view(pieces, whole.to.rank);
      std::int64_t least = 0, greatest = 0;
      v.range(d, least, greatest);
      const std::int64_t extent = whole.to.extents[d];
      if (least < 0 || low > 0 || high != extent) continue;
      v.beyond[d] = all.beyond(scalar);
      add(to, p.op(o).result, all.reshaped(x.term, i), v, {});
      done = true;
    }
    return done;
  }
  /// The dimension along which both see the same positions, but for where they start; or -1.
  static constexpr int masked_dim(const view& flags, const view& v) {
    int dim = -1, found = 0;
    for (int i = 0; i < flags.count; ++i) {
      bool same = false;
      for (int k = 0; k < v.count; ++k) {
        if (v.digits[k].owner != flags.digits[i].owner ||
            v.digits[k].extent != flags.digits[i].extent ||
            v.digits[k].stride != flags.digits[i].stride || v.digits[k].dim < 0)
          continue;
        if (dim >= 0 && dim != v.digits[k].dim) continue;
        dim = v.digits[k].dim;
        same = true;
        ++found;
        break;
      }
      if (!same) return -1;
    }
    for (int k = 0; k < v.count; ++k) found -= v.digits[k].dim == dim;
    return found == 0 ? dim : -1;
  }

  // ---- Other ops --------------------------------------------------------------------------------

  constexpr void by_law(const site& at, claim_list& to) {
    if (defining) {
      int t = all.terms.find(at, given_, false, at.result_type(0));
      if (t < 0) t = define(at);
      for (int r = 0; r < at.result_count(); ++r)
        add(to, at.result(r), {t + r, all.terms[t + r].own, {}});
      return;
    }
    if (meet(at, to) || !commutes(*at.node().def)) return;
    const operand_term first = given_[0];
    given_[0] = given_[1];
    given_[1] = first;
    site swapped = at;
    swapped.swapped = true;
    meet(swapped, to);
  }
  /// Finds what the op makes among the terms of the source.
  constexpr bool meet(const site& at, claim_list& to) {
    const tensor_type& type = at.result_type(0);
    bool met = false;
    vec<operand_term> known;
    for (const auto& each : given_) known.push_back(known_as(each));
    int t = all.terms.first_candidate(*at.node().def, known);
    if (t < 0) reason = concat("the source has no such op of these operands");
    for (; t >= 0; t = all.terms[t].next) {
      if (all.terms[t].element != type.element ||
          all.terms[t].at.result_count() != at.result_count())
        continue;
      pending sums;
      if (!joint_sums(*at.p, at.op, sums)) {
        reason = concat("an operand is pending");
        continue;
      }
      op_law law(all, t, map_, at, given_);
      vec<view> results;
      if (!law.apply(results, sums)) {
        reason = law.reason;
        continue;
      }
      for (int r = 0; r < at.result_count(); ++r) add(to, at.result(r), t + r, results[r], sums);
      met = true;
    }
    return met;
  }
  constexpr int define(const site& at) {
    const int t = all.terms.make(at, given_, false, at.result_type(0));
    vec<tensor_type> operands;
    for (int i = 0; i < at.operand_count(); ++i) operands.push_back(at.operand_type(i));
    all.terms[t].factors = static_cast<int>(map_.ops.size());
    const auto attrs = at.p->attrs(at.op);
    tile_map_context c(operands, at.result_type(0), attrs.data(), static_cast<int>(attrs.size()),
                       map_, at.result_count());
    if (at.branched < 0)
      at.node().def->tile_map(c);
    else
      op::elementwise_op::tile_map(c);
    vec<view> results;
    for (int r = 0; r < at.result_count(); ++r) results.push_back(view(at.result_type(r).shape));
    pending none;
    if (some_operand_repeats(at)) {
      op_law law(all, t, map_, at, given_);
      vec<view> repeated;
      if (law.apply(repeated, none)) results = repeated;
    }
    for (int r = 0; r < at.result_count(); ++r) all.terms[t + r].own = number(results[r], t + r);
    return t;
  }
  constexpr bool some_operand_repeats(const site& at) const {
    for (int i = 0; i < at.operand_count(); ++i) {
      const shape& s = at.operand_type(i).shape;
      if (s.elements() == 0) return true;
      for (int d = 0; d < s.rank; ++d)
        if (s.extents[d] > 1 && all.views[given_[i].view].repeats(d)) return true;
    }
    return false;
  }

  constexpr void lift_collective(const program& p, op_id o, claim_list& to) {
    const op_node& n = p.op(o);
    const collective what = p.collective_of(o);
    for (int i = 0; i < n.operand_count; ++i) {
      const tensor_type& from = p.type(p.operand(o, i));
      for (int c = to.first[p.operand(o, i)]; c >= 0; c = claims[c].next) {
        claim known = claims[c];
        if (known.view == open_view) continue;
        view v = all.views[known.view];
        const exchange rule(what, mesh_, from.shape, all.terms[known.term].shape);
        if (rule.apply(v, known.sums, identity_beyond(what.combine, from.element)))
          add(to, n.result + i, known.term, v, known.sums);
      }
    }
  }
  constexpr int identity_beyond(combiner combine, dtype element) {
    const std::int64_t bits = identity_bits(combine, element);
    for (std::size_t i = 0; i < all.scalars.size(); ++i) {
      std::int64_t known = 0;
      if (all.terms[all.scalars[i].term].element == element &&
          all.is_number(all.scalars[i], known) && known == bits)
        return outside::first_value + static_cast<int>(i);
    }
    return outside::first_value + number_scalar(bits, element);
  }
  constexpr int number_scalar(std::int64_t bits, dtype element) {
    operand_term s;
    if (is_integer(element)) {
      view v(0, 1);
      v.start[0] = bits;
      s = {all.terms.positions(element), all.views.number(v)};
    } else {
      s = {all.terms.number(bits, element), all.views.number(view(0, 0))};
    }
    return all.beyond(s) - outside::first_value;
  }
};

}  // namespace partita::prove_detail

#include <partita/prove/control.hpp>  // what lift_control is
