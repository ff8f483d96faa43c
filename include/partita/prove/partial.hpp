/// Partial sums: values that reduce some of the elements that the source reduces, until all are
/// included.
///
/// Law       A sum over two disjoint sets of positions is the sum of the sums over each of them
///           (likewise max, min, and, or, *).
#pragma once

#include <partita/op/combine.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/contraction.hpp>
#include <partita/prove/positions.hpp>
#include <partita/prove/sums.hpp>

namespace partita::prove_detail {

constexpr bool is_partial(const claim& c) { return c.sums.contains(bound_axis); }

/// Represents the dimensions of a value as loops.
constexpr void set_loops(workspace& w, const tensor_type& value) {
  w.local.clear();
  vec<tensor_type> operands;
  operands.push_back(value);
  tile_map_context c(operands, value, nullptr, 0, w.local);
  for (int d = 0; d < value.shape.rank; ++d) c.tile(value.shape[d], d).operand(0, d);
}

/// True if it is a sum of products of two elements. (Convolutions whose windows see one position
/// each are, too.)
constexpr bool is_product(const site& at) {
  if (at.def().id == def<op::dot_general>.id) return true;
  if (at.def().id != def<op::convolution>.id) return false;
  const op::convolution::roles r(at.attrs().data(), at.operand_type(1).shape);
  bool trivial = !r.grouped && r.batch_groups == 1;
  for (int d = 0; d < r.spatial; ++d) trivial = trivial && r.window.at[d].trivial();
  return trivial;
}
/// True if the loops of a local op describe it completely.
constexpr bool has_loops(const site& at) {
  const op_def& d = at.def();
  const bool reduces = d.id == def<op::reduce>.id && at.operand_count() == 1;
  return at.op >= 0 && at.branched < 0 && (d.elementwise || reduces || is_product(at));
}
/// True if a sum contains something that no sum of the source contains.
constexpr bool reduces_beyond(const workspace& w, const claim& c) {
  const view& v = w.all.views[c.view];
  const term& of = w.all.terms[c.term];
  for (int i = 0; i < v.count; ++i) {
    const int d = v.digits[i].dim;
    if (v.digits[i].owner == on_axis(bound_axis) && v.beyond[d] != outside::wraps &&
        v.reaches_beyond(d, of.shape.extents[d]) &&
        !w.all.is_identity(outside::filling(v.beyond[d]), c.sums.combine, of.element))
      return true;
  }
  return false;
}
/// If a partial sum covers everything the source reduces, records the full sum; otherwise keeps it
/// partial.
constexpr void close(workspace& w, const tensor_type& type, value_id v, const claim& c,
                     claim_list& to) {
  bool closed = false;
  const auto leave = [&](int t, view& result, pending sums) {
    close(w, type, v, {t, w.number(result, t), sums, c.scale}, to);
    closed = true;
  };
  if (is_partial(c)) {
    const operand_term seen = c.seen();
    const int product_of = w.all.terms[c.term].product_of;
    int t = product_of >= 0 ? product_of : w.all.terms.first_candidate(def<op::reduce>, {&seen, 1});
    for (; t >= 0 && w.step(); t = product_of >= 0 ? -1 : w.all.terms[t].next) {
      view result;
      pending sums = c.sums;
      set_loops(w, type);
      contraction_law law(w.all, w.room, t, w.map(), w.local, 0, false, {&seen, 1});
      const bool good =
          product_of >= 0 ? law.apply_to_product(w.all.views[c.view], type.shape.rank, result, sums)
                          : static_cast<combiner>(w.all.terms.attrs(t)[0]) == c.sums.combine &&
                                law.apply(type.shape.rank, result, sums);
      if (good) leave(t, result, sums);
    }
  }
  if (closed) return;
  if (is_partial(c) && reduces_beyond(w, c))
    w.explain(most_near, concat("padding is reduced, too"));
  else
    w.add(to, v, c);
}

/// Turns the digits of `owner` into bound ones. False if something repeats, which would be reduced
/// more than once.
constexpr bool bind(view& v, int owner, int rank) {
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner == owner && v.digits[i].dim < 0) return false;
  v = with_owners(v, rank, [](int d) { return d; });
  for (int i = 0; i < v.count; ++i)
    if (v.digits[i].owner == owner) v.digits[i].owner = on_axis(bound_axis);
  return true;
}
/// Records that the same value is reduced `count` times.
constexpr bool repeat(claim& c, std::int64_t count, combiner combine, dtype element) {
  if (count == 1 || is_idempotent(combine)) return true;
  return combine == combiner::add && is_floating(element) &&
         take_factor(c.scale, static_cast<double>(count));
}

/// Applies a reduction to the chosen claim: its digits become bound.
constexpr bool find_part(workspace& w, const site& at, claim& c) {
  if (at.def().id != def<op::reduce>.id || at.operand_count() != 1) return false;
  const auto attrs = at.attrs();
  const auto combine = static_cast<combiner>(attrs[0]);
  c = w.chosen[0];
  if (c.sums.any() && c.sums.combine != combine) return false;
  view v = w.all.views[c.view];
  const shape& s = at.operand_type(0).shape;
  int kept[max_rank] = {}, rank = 0;
  for (int d = 0; d < s.rank; ++d) {
    const bool reduced = reduces_dimension(attrs, d);
    kept[d] = reduced ? -1 : rank++;
    if (!reduced) continue;
    if (!v.has(d) && !repeat(c, s.extents[d], combine, at.result_type(0).element)) return false;
    if (!bind(v, d, v.rank)) return false;
  }
  v = with_owners(v, rank, [&](int d) { return kept[d]; });
  if (!v.good()) return false;
  c.view = w.number(v, c.term);
  if (v.depends_on(bound_axis)) c.sums.add(1u << bound_axis, combine);
  return true;
}
/// The products of a contraction, if the source's op t sums them over more loops.
constexpr bool find_products(workspace& w, const site& at, int t, claim& c) {
  view product;
  c = {};
  if (!is_product(at) || !joint_sums(w, *at.p, at.op, c.sums) ||
      !c.sums.add(1u << bound_axis, combiner::add) || !has_loops(at))
    return false;
  const int row = w.row_of(at);
  if (!contraction_law(w.all, w.room, t, w.map(), w.map(), row, at.swapped, w.given)
           .multiply(at.result_type(0).shape.rank, product))
    return false;
  c.term = w.all.product(t, w.map());
  c.view = w.number(product, c.term);
  return product.good();
}
/// Handles a reduction that has no counterpart in the source.
constexpr bool reduce_partly(workspace& w, const site& at, double scale, claim_list& to) {
  claim c;
  if (!find_part(w, at, c) || !take_factor(c.scale, scale)) return false;
  close(w, at.result_type(0), at.result(0), c, to);
  return true;
}
constexpr bool contract_partly(workspace& w, const site& at, int t, double scale, claim_list& to) {
  claim c;
  if (!find_products(w, at, t, c)) return false;
  c.scale = scale;
  close(w, at.result_type(0), at.result(0), c, to);
  return true;
}
/// Treats a value that the source reduces as a partial sum before the devices reduce it.
constexpr bool open(workspace& w, const program& p, value_id v, const claim& like, claim_list& to,
                    claim& c) {
  const site at(p, p.producer(v));
  const vec<claim> chosen = w.chosen;
  const vec<operand_term> given = w.given;
  w.chosen.clear();
  w.given.clear();
  for (value_id each : p.operands(at.op)) {
    if (to.first[each] < 0) continue;
    w.chosen.push_back(w.claims[to.first[each]]);
    w.given.push_back(w.chosen.back().seen());
  }
  bool good = static_cast<int>(w.chosen.size()) == at.operand_count() && at.operand_count() > 0;
  if (good) {
    const double scale = joint_scale(w, at);
    const int product_of = w.all.terms[like.term].product_of;
    good = (product_of < 0 ? find_part(w, at, c) : find_products(w, at, product_of, c)) &&
           take_factor(c.scale, scale);
  }
  w.chosen = chosen;
  w.given = given;
  return good;
}

/// Reduces the values of all `n` positions along an axis: its digits become bound.
constexpr bool reduce_axis(claim& c, view& v, int axis, std::int64_t n, combiner combine,
                           dtype element) {
  int begin = 0;
  const int end = v.find(on_axis(axis), begin);
  if (c.sums.any() && c.sums.combine != combine) return false;
  if (c.sums.contains(axis)) {
    c.sums.remove(axis);
    return begin == end;
  }
  if (begin == end) return repeat(c, n, combine, element);
  return end == begin + 1 && bind(v, on_axis(axis), v.rank) &&
         c.sums.add(1u << bound_axis, combine);
}
/// The same for all devices along axes.
constexpr bool reduce_axes(workspace& w, const collective& what, const tensor_type& type,
                           value_id result, claim c, claim_list& to) {
  view v = w.all.views[c.view];
  for (const auto& e : what.axes)
    if (const std::int64_t n = w.mesh.size(e.axis);
        n > 1 && !reduce_axis(c, v, e.axis, n, what.combine, type.element))
      return false;
  c.view = w.number(v, c.term);
  if (!v.good() || !is_partial(c)) return false;
  close(w, type, result, c, to);
  return true;
}

/// Joins two adjacent parts of one sum into `v`: the second starts where the first ends.
class joining {
 public:
  constexpr joining(const view& first, const view& second, const shape& tensor)
      : a_(first), b_(second), tensor_(tensor) {}

  constexpr bool apply(view& v) {
    if (a_.rank != b_.rank || a_.dims != b_.dims || !find_dimension()) return false;
    int extra_a = -1, extra_b = -1;
    if (!same_but_one(a_, b_, extra_a) || !same_but_one(b_, a_, extra_b)) return false;
    std::int64_t first = 1, step = distance_, second = 1;
    if (extra_a >= 0) {
      first = a_.digits[extra_a].extent;
      step = a_.digits[extra_a].stride;
    }
    if (extra_b >= 0) {
      second = b_.digits[extra_b].extent;
      if (extra_a >= 0 && b_.digits[extra_b].stride != step) return false;
      step = b_.digits[extra_b].stride;
    }
    if (!equal_distance(first * step)) return false;
    v = view(a_.rank, a_.dims);
    for (int d = 0; d < a_.dims; ++d) {
      v.start[d] = a_.start[d];
      const bool first_tells =
          a_.reaches_beyond(d, tensor_.extents[d]) && !outside::turns(b_.beyond[d]);
      v.beyond[d] = first_tells || outside::turns(a_.beyond[d]) ? a_.beyond[d] : b_.beyond[d];
    }
    for (int i = 0; i < a_.count; ++i)
      if (i != extra_a) v.add(a_.digits[i].owner, a_.digits[i]);
    if (step < 0) {  // counted from the other end
      v.start[dim_] += (first + second - 1) * step;
      step = -step;
    }
    v.add(on_axis(bound_axis), dim_, first + second, step);
    if (v.good()) go_around(v);
    return v.good();
  }

 private:
  const view& a_;
  const view& b_;
  const shape& tensor_;
  int dim_ = -1;
  std::int64_t distance_ = 0;

  constexpr bool find_dimension() {
    for (int d = 0; d < a_.dims; ++d) {
      const std::int64_t n = tensor_.extents[d];
      if (a_.reaches_beyond(d, n) && b_.reaches_beyond(d, n) && !goes_with(a_, b_, d) &&
          !goes_with(b_, a_, d))
        return false;
      if (a_.start[d] == b_.start[d]) continue;
      if (dim_ >= 0) return false;
      dim_ = d;
      distance_ = b_.start[d] - a_.start[d];
    }
    if (dim_ >= 0 && wraps()) {
      const std::int64_t n = modulus();
      distance_ = (distance_ % n + n) % n;
      if (distance_ == 0) return false;       // both start at the same position
      if (distance_ > n / 2) distance_ -= n;  // the shorter way around
    }
    return dim_ >= 0;
  }
  /// True if both have the same padding. (The first may wrap around if the second need not.)
  static constexpr bool goes_with(const view& a, const view& b, int d) {
    return a.beyond[d] == b.beyond[d] ||
           (a.beyond[d] < 0 && outside::filling(a.beyond[d]) == b.beyond[d] &&
            !b.reaches_beyond(d, outside::modulus(a.beyond[d], 0)));
  }
  constexpr bool wraps() const {
    return outside::turns(a_.beyond[dim_]) || outside::turns(b_.beyond[dim_]);
  }
  constexpr std::int64_t modulus() const {
    const view& around = outside::turns(a_.beyond[dim_]) ? a_ : b_;
    return outside::modulus(around.beyond[dim_], tensor_.extents[dim_]);
  }
  constexpr bool equal_distance(std::int64_t n) const {
    return wraps() ? (n - distance_) % modulus() == 0 : n == distance_;
  }
  /// True if b has all digits of a in that dimension, except for a bound one. (Those of the value's
  /// dimensions, which come first, in the same order.)
  constexpr bool same_but_one(const view& a, const view& b, int& extra) const {
    for (int i = 0; i < a.count && a.digits[i].owner >= 0; ++i)
      if (i >= b.count || b.digits[i] != a.digits[i]) return false;
    for (int i = 0; i < a.count; ++i) {
      int times = 0;
      for (int k = 0; k < a.count; ++k) times += a.digits[k] == a.digits[i];
      for (int k = 0; k < b.count; ++k) times -= b.digits[k] == a.digits[i];
      if (times == 0) continue;
      if (extra >= 0 || a.digits[i].owner != on_axis(bound_axis) || a.digits[i].dim != dim_)
        return false;
      extra = i;
    }
    return true;
  }
  /// The minimum step by which positions along the dimension are reduced; 0: they are not.
  constexpr std::int64_t bound_step(const view& v) const {
    std::int64_t least = 0;
    for (int i = 0; i < v.count; ++i) {
      const digit& d = v.digits[i];
      if (d.dim != dim_ || d.owner != on_axis(bound_axis)) continue;
      const std::int64_t step = d.stride < 0 ? -d.stride : d.stride;
      if (least == 0 || step < least) least = step;
    }
    return least;
  }
  /// Moves the start to the first position if a dimension, or every n-th position of it, is covered
  /// completely on each device.
  constexpr void go_around(view& v) const {
    if (!wraps()) return;
    const std::int64_t n = modulus(), step = bound_step(v);
    piece all;  // in steps
    for (int i = 0; i < v.count; ++i) {
      const digit& d = v.digits[i];
      if (d.dim == dim_ && d.owner >= 0) return;
      if (d.dim != dim_ || axis_of(d) != bound_axis) continue;
      if (d.stride % step != 0) return;
      all.add(d.owner, d.extent, (d.stride < 0 ? -d.stride : d.stride) / step);
    }
    if (step == 0 || n % step != 0 || all.covered() != n / step) return;
    view whole(v.rank, v.dims);
    for (int d = 0; d < v.dims; ++d) {
      whole.start[d] = d == dim_ ? (v.start[d] % step + step) % step : v.start[d];
      whole.beyond[d] = d == dim_ ? outside::filling(v.beyond[d]) : v.beyond[d];
    }
    for (int i = 0; i < v.count; ++i) {
      const digit& d = v.digits[i];
      if (d.dim == dim_ && (axis_of(d) == bound_axis || d.stride % step == 0)) continue;
      whole.add(d.owner, d);
    }
    whole.add(on_axis(bound_axis), dim_, n / step, step);
    if (whole.good() && !whole.reaches_beyond(dim_, n)) v = whole;
  }
};

/// Joins two partial sums of one sum.
constexpr bool join(workspace& w, const program& p, op_id o, claim_list& to) {
  if (w.defining || w.chosen.size() != 2) return false;
  claim a = w.chosen[0], b = w.chosen[1];
  if (is_partial(a) == is_partial(b) ? !is_partial(a) : !a.sums.any() || !b.sums.any())
    return false;
  if (combining_op(a.sums.combine).id != p.op(o).def->id) return false;
  if (!is_partial(a) && !open(w, p, p.operand(o, 0), b, to, a)) return false;
  if (!is_partial(b) && !open(w, p, p.operand(o, 1), a, to, b)) return false;
  if (a.term != b.term || a.sums != b.sums || a.scale != b.scale) return false;
  const value_id result = p.op(o).result;
  const shape tensor = w.all.terms[a.term].shape;
  view v;
  if (!joining(w.all.views[a.view], w.all.views[b.view], tensor).apply(v) &&
      !joining(w.all.views[b.view], w.all.views[a.view], tensor).apply(v))
    return false;
  close(w, p.type(result), result, {a.term, w.number(v, a.term), a.sums, a.scale}, to);
  return true;
}

}  // namespace partita::prove_detail
