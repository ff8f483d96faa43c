/// Indices minus the start of a shard: gathers from and scatters to a tensor whose rows are
/// distributed over devices.
///
/// Terms of such indices, and of flags that compare them, have one more dimension than the indices:
/// the start of the shard. A device sees one position of it.
///
/// Law       The row that an index names is in exactly one of the shards of a tensor. The gathered
///           rows of each shard, with 0 where the index belongs to another shard, therefore sum to
///           the gathered rows of the tensor; and a scatter to a shard, restricted to indices of
///           the shard, is the shard of the scatter to the tensor.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/prove/elementwise.hpp>
#include <partita/prove/ranges.hpp>

namespace partita::prove_detail {

/// True for a position that differs between devices or between iterations.
constexpr bool is_start(const workspace& w, const claim& c) {
  if (!w.all.terms.is_positions(c.term)) return false;
  const view& v = w.all.views[c.view];
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner >= 0) return false;
  return v.count > 0;
}
constexpr bool has_starts(const workspace& w, int t) {
  const shape& s = w.all.terms[t].shape;
  return s.rank > 0 && s.extents[s.rank - 1] == max_elements && !w.all.terms.is_positions(t);
}
/// The view of a tensor as a view of the tensor with one more dimension, for starts.
constexpr view with_start(const view& v, const view& start) {
  view r(v.rank, v.dims + 1);
  for (int d = 0; d < v.dims; ++d) {
    r.start[d] = v.start[d];
    r.beyond[d] = v.beyond[d];
  }
  for (int i = 0; i < v.count; ++i) r.add(v.digits[i].owner, v.digits[i]);
  for (int i = 0; i < start.count; ++i)
    if (const digit& each = start.digits[i]; each.dim == start.dims - 1)
      r.add(each.owner, v.dims, each.extent, each.stride);
  return r;
}
/// The view without that dimension.
constexpr view without_start(const view& v) {
  view r(v.rank, v.dims - 1);
  for (int d = 0; d < r.dims; ++d) {
    r.start[d] = v.start[d];
    r.beyond[d] = v.beyond[d];
  }
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].dim < r.dims) r.add(v.digits[i].owner, v.digits[i]);
  return r;
}

/// A tensor that is the same for all starts; or, for positions, the starts.
constexpr operand_term for_starts(workspace& w, int t, const shape& s) {
  const bool starts = w.all.terms.is_positions(t);
  if (starts && s.rank == 1) return {t};
  view v(s.rank, starts ? 1 : s.rank - 1);
  for (int d = 0; d < s.rank; ++d)
    if (starts == (d == s.rank - 1)) v.add(d, starts ? 0 : d, s.extents[d], 1);
  const operand_term operands[] = {{t, w.all.views.number(v)}};
  const site at(def<op::broadcast_in_dim>);
  const tensor_type type{w.all.terms[t].element, s};
  const int known = w.all.terms.find(at, operands, true, type);
  return {known >= 0 ? known : w.all.terms.make(at, operands, true, type)};
}

/// The start of a shard. Its view determines all but the number that it starts with.
constexpr operand_term start_at(workspace& w, const claim& c, const shape& space) {
  const operand_term starts = for_starts(w, c.term, space);
  const std::int64_t first = w.all.views[c.view].start[0];
  if (first == 0) return starts;
  const dtype element = w.all.terms[c.term].element;
  element_form sum(w.all, site(def<op::add>));
  sum.add(starts, 1);
  sum.add(w.all.number(first, element), 1);
  double scale = 1;
  return sum.make({element, space}, scale);
}

/// The common views of indices and starts among the operands of an op.
class start_space {
 public:
  view seen;            ///< view of the indices
  view start;           ///< view of the start
  shape space;          ///< shape of the terms of both
  bool needed = false;  ///< false: the op needs no such space

  /// False if the views differ, or no operand is a start.
  constexpr bool find(const workspace& w, int rank) {
    bool has_tensor = false, has_start = false, has_index = false, is_moved = false;
    bool is_alone = false;  // a start that is not in an index yet
    for (const auto& c : w.chosen) {
      if (c.sums.any() || c.scale != 1) return false;
      const bool starts = is_start(w, c), both = has_starts(w, c.term);
      if (!starts && !both && repeats_one(w, c, rank)) {
        std::int64_t number = 0;
        has_index = has_index || !w.all.is_number(w.all.scalar(c.seen()), number);
        continue;
      }
      if (!starts && w.all.terms.is_positions(c.term)) return false;
      const view v = spread(w.all.views[c.view], rank);
      is_moved = is_moved || (starts && v.start[0] != 0);
      if (starts || both) {
        const view digits = with_start(view(rank, 0), v);
        if ((has_start && digits != start) || (both && v.start[v.dims - 1] != 0)) return false;
        for (int i = 0; i < digits.count; ++i)
          if (digits.digits[i].owner >= 0) return false;
        start = digits;
        has_start = true;
      }
      has_index = has_index || !starts;
      is_alone = is_alone || starts;
      needed = needed || (is_alone && space.rank > 0);
      if (starts) continue;
      const view of = without_beyond(both ? without_start(v) : v);
      shape s = w.all.terms[c.term].shape;
      if (both) --s.rank;
      if (has_tensor && (of != seen || s != space)) return false;
      needed = needed || !both || (is_alone && s.rank > 0);
      seen = of;
      space = s;
      has_tensor = true;
    }
    needed = needed || (is_moved && has_index);
    if (!has_tensor) seen = view(rank, 0);
    space.push_back(max_elements);
    return has_start && space.rank <= max_rank;
  }
};

/// Handles an elementwise op on indices and starts of shards, for any start. (If no other claim
/// exists, or only one for another start.)
constexpr void for_any_start(workspace& w, const site& at, claim_list& to) {
  bool starts_elsewhere = false;
  for (const auto& c : w.chosen)
    starts_elsewhere = starts_elsewhere || (is_start(w, c) && w.all.views[c.view].start[0] != 0);
  if (!starts_elsewhere && to.first[at.result(0)] >= 0) return;
  bool integers = false;
  for (const auto& c : w.chosen) {
    if (is_floating(w.all.terms[c.term].element)) return;
    integers = integers || is_start(w, c) || has_starts(w, c.term);
  }
  const tensor_type& type = at.result_type(0);
  start_space in;
  if (!integers || !in.find(w, type.shape.rank) || !in.needed) return;
  element_form form(w.all, at);
  for (const auto& c : w.chosen) {
    const bool starts = is_start(w, c);
    if (!starts && has_starts(w, c.term))
      form.add({c.term}, 1);
    else if (!starts && repeats_one(w, c, type.shape.rank)) {
      const operand_term scalar = w.all.filling(w.all.scalar(c.seen()));
      if (!is_known_scalar(w, scalar)) return;
      form.add(scalar, 1);
    } else
      form.add(starts ? start_at(w, c, in.space) : for_starts(w, c.term, in.space), 1);
  }
  double scale = 1;
  const operand_term made = form.make({type.element, in.space}, scale);
  if (made.view != operand_term::by_element) return;
  w.add(to, at.result(0), made.term, with_start(in.seen, in.start), {});
}

// ---- Gathers and scatters -----------------------------------------------------------------------

/// Finds the tensor of an index, wherever the index is not replaced by a number.
constexpr bool find_index(const workspace& w, const operand_term& of, offset& x) {
  x = {};
  const term& t = w.all.terms[of.term];
  if (of.view != operand_term::by_element || !t.by_element) return false;
  operand_term inner;
  std::int64_t number = 0;
  if (w.all.terms.is(of.term, def<op::select>)) {
    for (int i = 1; i < 3; ++i)
      if (find_index(w, w.all.terms.operand(t, i), x)) return true;
    return false;
  }
  if (with_number(w.all, of, def<op::maximum>, inner, number) ||
      with_number(w.all, of, def<op::minimum>, inner, number))
    return find_index(w, inner, x);
  return add_offset(w.all, of, 1, x) && x.tensor_sign == 1 && x.position_sign == -1 &&
         x.number == 0;
}
/// True if the operand is the index x wherever that is in a range.
constexpr bool is_index(const workspace& w, const operand_term& of, const offset& x,
                        const range& in) {
  const term& t = w.all.terms[of.term];
  if (of.view != operand_term::by_element || !t.by_element) return false;
  operand_term inner;
  std::int64_t number = 0;
  if (w.all.terms.is(of.term, def<op::select>)) {
    for (int i = 1; i < 3; ++i) {
      offset flagged;
      range chosen;
      if (truth_range(w.all, w.all.terms.operand(t, 0).term, i == 1, flagged, chosen) &&
          flagged.same(x) && chosen.contains(in))
        return is_index(w, w.all.terms.operand(t, i), x, in);
    }
    return false;
  }
  if (with_number(w.all, of, def<op::maximum>, inner, number))
    return number <= in.low && is_index(w, inner, x, in);
  if (with_number(w.all, of, def<op::minimum>, inner, number))
    return number >= in.high - 1 && is_index(w, inner, x, in);
  offset y;
  return add_offset(w.all, of, 1, y) && y.same(x) && y.number == 0;
}

/// The roles of the operands of an op.
struct index_roles {
  int whole = -1;  ///< the tensor whose rows are sharded; -1: zeros
  int index = -1;
  int updates = -1;
  int dim = -1;  ///< row dimension of the tensor
  bool reads = false;
};
constexpr bool find_roles(const workspace& w, const site& at, index_roles& r) {
  const int count = at.operand_count();
  const std::uint64_t id = at.def().id;
  if (id == def<op::dynamic_update_slice>.id) {
    r.whole = 0;
    r.updates = 1;
    for (int i = 2; i < count; ++i) {
      if (!has_starts(w, w.given[static_cast<std::size_t>(i)].term)) continue;
      if (r.index >= 0) return false;
      r.index = i;
      r.dim = i - 2;
    }
    return r.index >= 0 && at.operand_type(1).shape.extents[r.dim] == 1;
  }
  if (id == def<op::dynamic_slice>.id) {
    r.reads = true;
    r.whole = 0;
    for (int i = 1; i < count; ++i) {
      if (!has_starts(w, w.given[static_cast<std::size_t>(i)].term)) continue;
      if (r.index >= 0) return false;
      r.index = i;
      r.dim = i - 1;
    }
    return r.index >= 0 && at.attrs()[static_cast<std::size_t>(r.dim)] == 1;
  }
  if (id != def<op::gather>.id && id != def<op::scatter>.id) return false;
  r.reads = id == def<op::gather>.id;
  r.whole = r.reads || count == 3 ? 0 : -1;
  r.index = r.reads ? 1 : count - 2;
  r.updates = r.reads ? -1 : count - 1;
  const auto attrs = at.attrs();
  const op::gather_dims dims(r.reads ? attrs : attrs.subspan(1),
                             r.reads ? at.operand_type(0).shape : at.result_type(0).shape,
                             at.operand_type(r.index).shape);
  r.dim = dims.start_map[0];
  const shape& windows = r.reads ? at.result_type(0).shape : at.operand_type(r.updates).shape;
  return dims.starts == 1 && dims.window(windows).extents[r.dim] == 1 &&
         has_starts(w, w.given[static_cast<std::size_t>(r.index)].term);
}
/// The view of each index along the dimensions of the gathered rows (or of the updates).
constexpr view along_results(const workspace& w, const site& at, const index_roles& r) {
  const view& index = w.all.views[w.given[static_cast<std::size_t>(r.index)].view];
  if (at.def().id != def<op::gather>.id && at.def().id != def<op::scatter>.id) return index;
  const auto attrs = at.attrs();
  const op::gather_dims dims(r.reads ? attrs : attrs.subspan(1),
                             r.reads ? at.operand_type(0).shape : at.result_type(0).shape,
                             at.operand_type(r.index).shape);
  int to[max_rank] = {};
  for (int d = 0; d < dims.result_rank; ++d)
    if (dims.index_dim[d] >= 0) to[dims.index_dim[d]] = d;
  return with_owners(index, dims.result_rank, [&](int d) { return to[d]; });
}

/// True if the start differs along a dimension along which other positions are seen, too. (Views
/// have no diagonals.)
constexpr bool starts_along(const view& v, const view& start) {
  for (int i = 0; i < start.count; ++i)
    if (const digit& each = start.digits[i];
        each.owner >= 0 && each.dim == start.dims - 1 && v.has(each.owner))
      return true;
  return false;
}
/// True if all positions that a view shows along a dimension of the tensor are distinct: none wraps
/// around, and each step is longer than all smaller ones together.
constexpr bool tells_apart(const view& v, int dim) {
  if (outside::turns(v.beyond[dim])) return false;
  const auto length = [](const digit& d) { return d.stride < 0 ? -d.stride : d.stride; };
  for (int i = 0; i < v.count; ++i) {
    if (v.digits[i].dim != dim) continue;
    checked reach = 0;
    for (int k = 0; k < v.count; ++k)
      if (const digit& each = v.digits[k];
          k != i && each.dim == dim &&
          (length(each) < length(v.digits[i]) || (length(each) == length(v.digits[i]) && k < i)))
        reach = reach + checked(each.extent - 1) * length(each);
    if (length(v.digits[i]) <= reach.value_or(INT64_MAX)) return false;
  }
  return true;
}
/// True if a view distinguishes its elements wherever the flags do (except for their start). Flags
/// may keep different parts of repeated elements.
constexpr bool is_seen_along(const view& v, const view& flags) {
  for (int i = 0; i < flags.count; ++i) {
    const digit& each = flags.digits[i];
    if (each.dim < 0 || each.dim == flags.dims - 1) continue;
    int begin = 0;
    const int end = v.find(each.owner, begin);
    if (begin == end) return false;
    for (; begin < end; ++begin)
      if (v.digits[begin].dim < 0 || !tells_apart(v, v.digits[begin].dim)) return false;
  }
  return true;
}
/// Adds a separate term for a value that equals another one only on a shard; `start`: its view,
/// with the start of the shard. (Padding may also keep other contents, unless it is zero.)
constexpr void add_guarded(workspace& w, value_id v, meanings::guard g, const view& start,
                           claim_list& to) {
  if (starts_along(w.all.views[g.of.view], start)) return;
  tensor_type type{w.all.terms[g.of.term].element, w.all.terms[g.of.term].shape};
  type.shape.push_back(max_elements);
  const int t = w.all.terms.fresh(type);
  view seen = w.all.views[w.without_scalars({g.of.term, g.of.view, {}})];
  if (g.index >= 0) seen = without_beyond(seen);
  g.seen = w.number(with_start(seen, start), t);
  w.all.terms[t].guarded = static_cast<int>(w.all.guards.size());
  w.all.guards.push_back(g);
  w.add(to, v, {t, g.seen, {}});
}

/// True for a scatter into an input that is on one device, while others have the identity of the
/// update.
constexpr bool starts_once(const workspace& w, const site& at, pending& input) {
  if (at.def().id != def<op::scatter>.id || w.chosen.size() != 3) return false;
  input = w.chosen[0].sums;
  const bool good = input.any() && !input.contains(bound_axis) && !w.chosen[1].sums.any() &&
                    !w.chosen[2].sums.any() && at.attrs()[0] == static_cast<int>(input.combine);
  if (!good) input = {};
  return good;
}

/// One op on sharded rows, with an index minus their start.
class rows_law {
 public:
  constexpr rows_law(workspace& w, const site& at, claim_list& to) : w_(w), at_(at), to_(to) {}

  constexpr bool apply() {
    if (!find_roles(w_, at_, roles_)) return false;
    for (std::size_t i = 0; i < w_.chosen.size(); ++i)
      if (w_.chosen[i].sums.any() && (i > 0 || !starts_once(w_, at_, input_))) return false;
    const claim& index = w_.chosen[static_cast<std::size_t>(roles_.index)];
    if (!is_far_from_overflow(w_.all.terms[index.term].element) ||
        !find_index(w_, {index.term}, x_))
      return false;
    index_ = w_.all.views[index.view];
    if (index_.dims > 0 && index_.start[index_.dims - 1] != 0)
      return no("the index counts from a different start");
    rows_ = {};
    rows_.add(0, extent(at_), 1);
    for (int i = 0; i < index_.count; ++i) {
      const digit& each = index_.digits[i];
      if (each.dim != index_.dims - 1) continue;
      if (each.owner >= 0) return no("the index belongs to other shards along a dimension");
      rows_.add(each.owner, each.extent, each.stride);
    }
    given_ = w_.given;
    if (!find_updates()) return no("an update outside of this shard is applied");
    operand_term y;
    std::int64_t last = max_elements;
    const bool clamped = is_clamped(w_.all, x_.of, y, last);
    return meet(x_.of, last) || (clamped && updates_ < 0 && meet(y, last, true)) || meet_wider();
  }

 private:
  workspace& w_;
  const site& at_;
  claim_list& to_;
  index_roles roles_;
  offset x_;
  view index_;
  pending input_;  ///< for a scatter; see op_law
  piece rows_;
  vec<operand_term> given_;
  int updates_ = -1;      ///< for a scatter: the operand
  bool guarded_ = false;  ///< true if they are zeros elsewhere

  constexpr bool no(std::string_view why) {
    w_.explain(most_near, concat(why));
    return false;
  }
  constexpr std::int64_t extent(const site& of) const {
    const tensor_type& type = roles_.whole < 0 ? of.result_type(0) : of.operand_type(roles_.whole);
    return type.shape.extents[roles_.dim];
  }
  /// Checks that updates for other shards are dropped, or add zeros somewhere.
  constexpr bool find_updates() {
    if (at_.def().id != def<op::scatter>.id) return true;
    updates_ = roles_.updates;
    operand_term& given = given_[static_cast<std::size_t>(updates_)];
    const operand_term index{w_.given[static_cast<std::size_t>(roles_.index)].term};
    const int g = w_.all.terms[given.term].guarded;
    if (g < 0) {
      offset all;
      return add_offset(w_.all, index, 1, all) && all.same(x_) && all.number == 0;
    }
    const meanings::guard& is = w_.all.guards[g];
    offset x;
    range in;
    guarded_ = is.flags >= 0 && given.view == is.seen &&
               static_cast<combiner>(at_.attrs()[0]) == combiner::add &&
               truth_range(w_.all, is.flags, is.hold, x, in) && x.same(x_) &&
               in == range{0, extent(at_)} && is_index(w_, index, x_, in) &&
               w_.number(along_results(w_, at_, roles_), index.term) == is.along;
    given = {is.of.term, w_.without_scalars({is.of.term, is.of.view, {}})};
    return guarded_;
  }
  /// Checks that the source has the same op with the index itself, or with a clamped index.
  constexpr bool meet(const operand_term& x, std::int64_t last, bool clamps = false) {
    const std::size_t at = static_cast<std::size_t>(roles_.index);
    const bool scalar = x_.of.view != operand_term::by_element;
    view seen = scalar ? view(index_.rank, 0) : without_start(index_);
    if (x.view != operand_term::by_element) seen = spread(w_.all.views[x.view], index_.rank);
    given_[at] = {x.term, w_.number(seen, x.term)};
    const std::int64_t most = op::greatest_integer(w_.all.terms[x.term].element);
    int t = w_.all.terms.first_candidate(at_.def(), given_);
    for (; t >= 0 && w_.step(); t = w_.all.terms[t].next) {
      if (w_.all.terms[t].element != at_.result_type(0).element) continue;
      const std::int64_t all = extent(w_.all.terms[t].at);
      if (all > offset::most) continue;
      const bool inside = clamps ? last == all - 1 || (last == most && last < all) : last < all;
      if (!inside && (updates_ < 0 || guarded_)) {
        w_.explain(most_near, concat("an index may be outside of the source's ", all,
                                     " rows; clamp it before subtracting the start of the shard"));
        continue;
      }
      op_law law(w_.all, w_.room, t, w_.map(), at_, given_);
      const op_law::cut_rows cut[] = {{&rows_, roles_.dim, roles_.whole, !roles_.reads}};
      law.cuts = cut;
      law.input = input_;
      vec<view> results;
      pending sums;
      if (!law.apply(results, sums)) {
        w_.explain(law.near, law.reason);
      } else if (updates_ >= 0) {
        w_.add(to_, at_.result(0), t, results[0], sums);
        return true;
      } else if (add_guard(t, results[0], sums, all)) {
        return true;
      }
    }
    return false;
  }
  /// True if the index is one of the source's in a wider type.
  constexpr bool meet_wider() {
    const term& wide = w_.all.terms[x_.of.term];
    const bool alone = x_.of.view != operand_term::by_element;  // one index for all
    if (!wide.by_element || !w_.all.terms.is(x_.of.term, def<op::convert>) ||
        (alone && w_.all.views.reaches_beyond(x_.of.view, wide.shape)))
      return false;
    operand_term x = w_.all.terms.operand(wide, 0);
    if (alone && x.view == operand_term::by_element) x.view = x_.of.view;
    const dtype from = w_.all.terms[x.term].element;
    if (!is_integer(from) || (size_of(from) >= size_of(wide.element) && from != dtype::u64) ||
        (from == dtype::u64 && wide.element != dtype::i64))
      return false;
    operand_term y;
    std::int64_t last = max_elements;
    const bool clamped = is_clamped(w_.all, x, y, last);
    return meet(x, last) || (clamped && updates_ < 0 && meet(y, last, true));
  }
  constexpr bool add_guard(int t, const view& result, const pending& sums, std::int64_t all) {
    if (sums.any() || w_.all.terms[t].shape.rank == max_rank) return false;
    if (rows_.least() < 0 || (roles_.reads && rows_.covered() < all)) {  // (padding is not named)
      w_.explain(most_near, concat("the shards do not cover the source's ", all, " rows"));
      return false;
    }
    meanings::guard g;
    g.of = {t, w_.number(result, t)};
    if (!roles_.reads) g.elsewhere = w_.given[0];
    g.index = w_.given[static_cast<std::size_t>(roles_.index)].term;
    g.along = w_.number(along_results(w_, at_, roles_), g.index);
    g.rows = extent(at_);
    for (int i = 0; i < rows_.count && roles_.reads; ++i)
      if (rows_.digits[i].owner < 0) g.axes |= 1u << axis_of(rows_.digits[i]);
    add_guarded(w_, at_.result(0), g, index_, to_);
    return true;
  }
};

/// Finds the dimension of `to` for each dimension of `from`, or -1, if two views show the same
/// elements along different dimensions.
constexpr bool find_turned(const view& from, const view& to, int* place) {
  view turned(to.rank, from.dims);
  for (int d = 0; d < from.rank; ++d) {
    place[d] = -1;
    int mine = 0, theirs = 0;
    const int end = from.find(d, mine);
    for (int e = 0; e < to.rank && mine < end && place[d] < 0; ++e) {
      const int other = to.find(e, theirs);
      bool same = other - theirs == end - mine;
      for (int i = 0; same && i < end - mine; ++i) {
        const digit &a = from.digits[mine + i], &b = to.digits[theirs + i];
        same = a.dim == b.dim && a.extent == b.extent && a.stride == b.stride;
      }
      if (same) place[d] = e;
    }
    if (mine < end && place[d] < 0) return false;
  }
  for (int i = 0; i < to.count; ++i) {  // in the order of its owners
    const digit& each = to.digits[i];
    bool found = false;
    for (int d = 0; d < from.rank; ++d)
      found = found || (each.owner >= 0 && place[d] == each.owner);
    if (each.owner >= 0 && !found) return false;
  }
  for (int d = 0; d < from.dims; ++d) {
    turned.start[d] = from.start[d];
    turned.beyond[d] = from.beyond[d];
  }
  for (int i = 0; i < to.count; ++i)
    if (to.digits[i].owner >= 0) turned.add(to.digits[i].owner, to.digits[i]);
  for (int i = 0; i < from.count; ++i)
    if (from.digits[i].owner < 0) turned.add(from.digits[i].owner, from.digits[i]);
  return turned == to;
}
/// The view of a gathered row's index along the present dimensions.
constexpr bool find_along(const workspace& w, const meanings::guard& is, const claim& kept,
                          view& along) {
  along = w.all.views[is.along];
  if (kept.view == is.seen) return true;
  int place[max_rank] = {};
  if (is.elsewhere.term >= 0 || !find_turned(w.all.views[is.seen], w.all.views[kept.view], place))
    return false;
  for (int i = 0; i < along.count; ++i)
    if (along.digits[i].owner >= 0 && place[along.digits[i].owner] < 0) return false;
  view turned(w.all.views[kept.view].rank, along.dims);
  for (int d = 0; d < along.dims; ++d) {
    turned.start[d] = along.start[d];
    turned.beyond[d] = along.beyond[d];
  }
  for (int e = 0; e < turned.rank; ++e)
    for (int i = 0; i < along.count; ++i)
      if (const digit& each = along.digits[i]; each.owner >= 0 && place[each.owner] == e)
        turned.add(e, each);
  for (int i = 0; i < along.count; ++i)
    if (along.digits[i].owner < 0) turned.add(along.digits[i].owner, along.digits[i]);
  along = turned;
  return true;
}

/// True for zeros, or -0, which change nothing in a sum.
constexpr bool is_nothing(const workspace& w, const claim& c) {
  std::int64_t bits = 0;
  const operand_term scalar = c.sums.any() ? operand_term() : w.all.scalar(c.seen());
  const bool number = scalar.view >= 0 && w.all.is_number(scalar, bits);
  const bool real = number && is_floating(w.all.terms[c.term].element);
  return w.is_identity(c, combiner::add) || (real && std::bit_cast<double>(bits) == 0);
}

/// Handles a select by flags of a value that is valid only on a shard.
constexpr bool pick(workspace& w, const program& p, op_id o, const operand_term& flags, bool hold,
                    const claim& kept, const claim& other, claim_list& to) {
  const int rank = p.type(p.op(o).result).shape.rank;
  const view seen = spread(w.all.views[flags.view], rank);
  const int along = w.number(seen, flags.term), g = w.all.terms[kept.term].guarded;
  const bool zeros = is_nothing(w, other);
  offset x, index;
  range in;
  if (kept.sums.any() || kept.scale != 1 || !has_starts(w, flags.term) ||
      !truth_range(w.all, flags.term, hold, x, in) || x.tensor_sign != 1 || x.position_sign != -1)
    return false;
  if (g < 0) {
    if (!zeros || w.all.terms[kept.term].shape.rank == max_rank) return false;
    const view whole = spread(w.all.views[kept.view], rank);
    if (!is_seen_along(whole, seen)) return false;
    meanings::guard made;
    made.of = {kept.term, w.number(whole, kept.term)};
    made.flags = flags.term;
    made.hold = hold;
    made.along = along;
    add_guarded(w, p.op(o).result, made, seen, to);
    return true;
  }
  const meanings::guard is = w.all.guards[g];
  view of_index;
  if (is.index < 0 || !find_along(w, is, kept, of_index) || in != range{0, is.rows} ||
      !find_index(w, {is.index}, index) || !index.same(x) || !is_index(w, {is.index}, x, in) ||
      w.number(spread(of_index, rank), flags.term) != along)
    return false;
  const bool as_before = other.seen() == is.elsewhere && other.scale == 1 && !other.sums.any();
  if (is.elsewhere.term < 0 ? !zeros : !as_before) return false;
  pending sums;
  sums.add(is.axes, op::shard_combiner(w.all.terms[is.of.term].element));
  const view found =
      kept.view == is.seen ? w.all.views[is.of.view] : without_start(w.all.views[kept.view]);
  for (int a = 0; a < 32; ++a)
    if (sums.contains(a) && found.depends_on(a)) return false;
  w.add(to, p.op(o).result, is.of.term, found, sums);
  return true;
}
/// Handles select(flags, x, 0), select(flags, 0, x) and convert(flags) * x. (For values that belong
/// to no shard, if no other claim exists.)
constexpr bool picks(workspace& w, const program& p, op_id o, claim_list& to) {
  if (w.defining || p.op(o).operand_count < 2) return false;
  const std::uint64_t id = p.op(o).def->id;
  if (id != def<op::select>.id && id != def<op::multiply>.id) return false;
  bool guarded = false;
  for (const auto& c : w.chosen) guarded = guarded || w.all.terms[c.term].guarded >= 0;
  if (!guarded && to.first[p.op(o).result] >= 0) return false;
  if (id == def<op::select>.id) {
    const claim flags = w.chosen[0], a = w.chosen[1], b = w.chosen[2];
    if (flags.sums.any()) return false;
    return (pick(w, p, o, flags.seen(), true, a, b, to) ||
            pick(w, p, o, flags.seen(), false, b, a, to));
  }
  for (std::size_t i = 0; i < 2 && id == def<op::multiply>.id; ++i) {
    const claim factor = w.chosen[i];
    if (!has_starts(w, factor.term) || !w.all.terms.is(factor.term, def<op::convert>)) continue;
    const operand_term flags = w.all.terms.operand(w.all.terms[factor.term], 0);
    const tensor_type& type = p.type(p.op(o).result);
    const operand_term zero = w.all.number(0, type.element);
    if (flags.view == operand_term::by_element && factor.scale == 1 && !factor.sums.any() &&
        pick(w, p, o, {flags.term, factor.view}, true, w.chosen[1 - i], {zero.term, zero.view, {}},
             to))
      return true;
  }
  return false;
}

}  // namespace partita::prove_detail
