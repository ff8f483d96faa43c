/// Finds the cheapest conversion from one layout to another where it is not plain.
///
/// Source    Hart, Nilsson, Raphael, A formal basis for the heuristic determination of minimum cost
///           paths, 1968
#pragma once

#include <cstdint>

#include <partita/ir/collective.hpp>
#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// One collective of a layout conversion.
struct reshard_step {
  collective what;
  layout after;       ///< the layout of the value after it
  bool last = false;  ///< true if it is the last one
  /// The value that is sent if it is not the converted one, with layout `after`; or -1.
  value_id of = -1;

  constexpr reshard_step() = default;
  constexpr reshard_step(collective::kind_type kind, const layout& axes, const layout& then,
                         bool is_last)
      : after(then), last(is_last) {
    what.kind = kind;
    what.axes = axes;
  }
};

namespace spmd_detail {

/// Stores the axes of a dimension, major to minor, and returns their number.
constexpr int axes_on(const layout& l, int dim, std::int8_t* axes) {
  int n = 0;
  std::uint64_t rest = l.packed;
  for (int i = 0; i < l.count; ++i, rest >>= 8)
    if (const layout::entry e = layout::unpacked(rest); e.dim == dim) axes[n++] = e.axis;
  return n;
}

constexpr layout joined(layout a, const layout& b) {
  for (const auto& e : b) a.push_back(e.axis, e.dim);
  return a;
}
/// Sorts a layout by dimension, then major to minor, so that equal layouts compare equal.
constexpr layout in_order_of_dims(const layout& l, int rank) {
  layout sorted;
  for (int d = 0; d < rank; ++d)
    for (const auto& e : l)
      if (e.dim == d) sorted.push_back(e.axis, d);
  return sorted;
}
/// True if a layout contains an axis, even if the axis slices no dimension.
constexpr bool names(const layout& l, int axis) {
  for (const auto& e : l)
    if (e.axis == axis) return true;
  return false;
}
/// The entries of `a` whose axes do not occur in `b`.
constexpr layout without(const layout& a, const layout& b) {
  layout left;
  for (const auto& e : a)
    if (!names(b, e.axis)) left.push_back(e.axis, e.dim);
  return left;
}

/// A shortest-path search (A*) over layouts. Its edges are all_slice, all_gather, all_to_all (of
/// any axes and dimensions at once) and permutes of entire shards. The cost is the bytes that a
/// device sends, then the largest shard on the way, then the number of collectives.
///
/// The common part of both layouts stays in place. Cost: there are 106 layouts of three axes and
/// three dimensions; few of them are visited, because the bytes still to be received are a lower
/// bound. With many more axes the search stops after a fixed number of layouts and keeps the best
/// conversion so far.
class reshard_search {
 public:
  struct cost {
    std::int64_t sent = 0, most = 0;
    int steps = 0;

    friend constexpr bool operator<(const cost& a, const cost& b) {
      if (a.sent != b.sent) return a.sent < b.sent;
      if (a.most != b.most) return a.most < b.most;
      return a.steps < b.steps;
    }
  };

  constexpr reshard_search(const layout& now, const layout& want, const layout& keep,
                           const tensor_type& type, const mesh& m)
      : m_(m), type_(type), keep_(keep) {
    const int rank = type.shape.rank;
    now_ = in_order_of_dims(without(now, keep), rank);
    want_ = in_order_of_dims(without(want, keep), rank);
    for (int d = 0; d < rank; ++d) {
      extent_[d] = type.shape[d] / keep.pieces(m, d);
      uses_[d] = now_.pieces(m, d) > 1 || want_.pieces(m, d) > 1;
    }
    add_a_dimension();
    for (int i = 0; i < m.rank; ++i) {
      const int axis = m.order[i];
      if (m.size(axis) > 1 && keep.dim_of(axis) < 0) axes_.push_back(axis);
    }
    if (axes_.count > most_free) {  // only the axes that must move
      axes_.count = 0;
      for (int i = 0; i < m.rank; ++i) {
        const int axis = m.order[i];
        if (now_.dim_of(axis) >= 0 || want_.dim_of(axis) >= 0) axes_.push_back(axis);
      }
    }
  }

  constexpr cost cost_of(const vec<reshard_step>& way) const {
    std::int64_t bytes = bytes_of(now_);
    cost c{0, bytes, 0};
    for (const reshard_step& s : way) {
      const std::int64_t then = bytes_of(without(s.after, keep_));
      c = after(c, s.what, bytes, then);
      bytes = then;
    }
    return c;
  }
  /// Replaces `way`, which converts the one layout to the other, by a cheaper one if there is one.
  constexpr void improve(vec<reshard_step>& way) {
    const cost given = cost_of(way);
    bound_ = given;
    if (given.sent <= still_to_get(now_) && given.most <= least_possible()) return;
    add(now_, {0, bytes_of(now_), 0}, -1);
    for (int looked_at = 0; looked_at < most_layouts; ++looked_at) {
      at_ = next();
      if (at_ < 0 || at_ == found_) break;
      nodes_[at_].done = true;
      slices();
      gathers();
      exchanges();
      permutes();
    }
    if (found_ >= 0 && nodes_[found_].so_far < given) write(found_, way);
  }

 private:
  static constexpr int most_free = 5, most_layouts = 1000, most_steps = 40000;

  struct node {
    layout lies;  ///< by dimension, without the common part
    cost so_far;
    int before = -1;
    collective by;  ///< the step from `before`
    bool done = false;
  };

  const mesh& m_;
  const tensor_type& type_;
  layout keep_, now_, want_;
  axis_list axes_;
  std::int64_t extent_[max_rank] = {};  ///< of a shard that is sliced by the common part only
  /// True if a dimension may be sliced before, after or during the conversion.
  bool uses_[max_rank] = {};
  vec<node> nodes_;
  cost bound_;
  int at_ = -1;     ///< the layout being visited
  int found_ = -1;  ///< the layout to be found, once it was visited
  int steps_ = 0;   ///< the number of steps visited

  /// Allows one more dimension to be sliced on the way: the longest.
  constexpr void add_a_dimension() {
    int longest = -1;
    for (int d = 0; d < rank(); ++d)
      if (!uses_[d] && extent_[d] > 1 && (longest < 0 || extent_[d] > extent_[longest]))
        longest = d;
    if (longest >= 0) uses_[longest] = true;
  }
  constexpr int rank() const { return type_.shape.rank; }
  constexpr std::int64_t bytes_of(const layout& l) const {
    tensor_type t = type_;
    keep_.slice(t.shape, m_);
    l.slice(t.shape, m_);
    return t.bytes();
  }
  constexpr std::int64_t least_possible() const {
    const std::int64_t a = bytes_of(now_), b = bytes_of(want_);
    return a > b ? a : b;
  }
  /// A lower bound of the bytes that a device must still receive: those of its shard of the result
  /// that the device with the least of them lacks.
  constexpr std::int64_t still_to_get(const layout& l) const {
    tensor_type has = type_;
    keep_.slice(has.shape, m_);
    for (int d = 0; d < rank(); ++d) {
      std::int8_t now[max_axes] = {}, to[max_axes] = {};
      const int n = axes_on(l, d, now), m = axes_on(want_, d, to);
      int common = 0;
      while (common < n && common < m && now[common] == to[common]) ++common;
      if (common < n && common < m) return bytes_of(want_);
      has.shape[d] /= n > m ? l.pieces(m_, d) : want_.pieces(m_, d);
    }
    return bytes_of(want_) - has.bytes();
  }
  constexpr cost after(cost c, const collective& what, std::int64_t before,
                       std::int64_t then) const {
    c.sent = saturating_add(c.sent, bytes_sent(what.kind, what.members(m_), before));
    if (then > c.most) c.most = then;
    c.steps += what.communicates();
    return c;
  }

  // ---- The open list ----------------------------------------------------------------------------

  constexpr void add(const layout& l, const cost& c, int before, const collective& by = {}) {
    cost least = c;
    least.sent = saturating_add(c.sent, still_to_get(l));
    if (bound_ < least) return;
    int i = 0;
    while (i < static_cast<int>(nodes_.size()) &&
           (nodes_[i].lies.packed != l.packed || nodes_[i].lies.count != l.count))
      ++i;
    if (i == static_cast<int>(nodes_.size()))
      nodes_.push_back({});
    else if (nodes_[i].done || !(c < nodes_[i].so_far))
      return;
    nodes_[i] = {l, c, before, by, false};
    if (l.packed != want_.packed || l.count != want_.count) return;
    found_ = i;
    bound_ = c;
  }
  constexpr void step(const layout& to, const collective& by) {
    if (steps_ == most_steps) return;
    ++steps_;
    const node& from = nodes_[at_];
    const layout l = in_order_of_dims(to, rank());
    add(l, after(from.so_far, by, bytes_of(from.lies), bytes_of(l)), at_, by);
  }
  constexpr int next() const {
    int best = -1;
    cost least;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      const node& each = nodes_[i];
      if (each.done) continue;
      cost c = each.so_far;
      c.sent = saturating_add(c.sent, still_to_get(each.lies));
      if (best >= 0 && !(c < least)) continue;
      best = i;
      least = c;
    }
    return best;
  }
  /// True if a dimension can be sliced along one more axis.
  constexpr bool divides(const layout& l, int dim, int axis) const {
    return extent_[dim] % (l.pieces(m_, dim) * m_.size(axis)) == 0;
  }

  // ---- Steps ------------------------------------------------------------------------------------

  constexpr void slices() {
    const layout l = nodes_[at_].lies;
    for (const int axis : axes_)
      for (int d = 0; d < rank() && l.dim_of(axis) < 0; ++d) {
        if (!uses_[d] || !divides(l, d, axis)) continue;
        collective what;
        what.kind = collective::all_slice;
        what.axes.push_back(axis, d);
        step(joined(l, what.axes), what);
      }
  }
  constexpr void gathers() {
    const layout l = nodes_[at_].lies;
    for (int i = 0; i < l.count; ++i) {
      if (i + 1 < l.count && l[i + 1].dim == l[i].dim) continue;
      collective what;
      what.kind = collective::all_gather;
      what.axes.push_back(l[i].axis, l[i].dim);
      step(without(l, what.axes), what);
    }
  }
  /// Visits all all_to_alls: the last axes of some dimensions move to the end of others, in any
  /// order.
  constexpr void exchanges() { take(0, {}); }
  constexpr void take(int dim, const layout& from) {
    if (dim == rank()) {
      if (from.count > 0) give(from, {});
      return;
    }
    take(dim + 1, from);
    const layout l = nodes_[at_].lies;
    int end = 0;
    while (end < l.count && l[end].dim <= dim) ++end;
    layout taken;
    for (int begin = end - 1; begin >= 0 && l[begin].dim == dim; --begin) {
      taken = {};
      for (int i = begin; i < end; ++i) taken.push_back(l[i].axis, dim);
      take(dim + 1, joined(from, taken));
    }
  }
  constexpr void give(const layout& from, const layout& to) {
    if (steps_ == most_steps) return;
    // no axis twice: a layout has room for all
    const layout then = joined(without(nodes_[at_].lies, from), to);
    if (to.count == from.count) {
      collective what;
      what.kind = collective::all_to_all;
      what.from = from;
      what.axes = to;
      step(then, what);
      return;
    }
    const int first = to.count > 0 ? to[to.count - 1].dim : 0;  // visits each list once
    for (const auto& e : from) {
      if (to.dim_of(e.axis) >= 0) continue;
      for (int d = first; d < rank(); ++d) {
        bool gathers = !uses_[d];
        for (const auto& g : from) gathers = gathers || g.dim == d;
        if (gathers || !divides(then, d, e.axis)) continue;
        layout more = to;
        more.push_back(e.axis, d);
        give(from, more);
      }
    }
  }
  /// Visits all layouts whose shards have the same size along each dimension.
  constexpr void permutes() { place(0, 1, {}); }
  constexpr void place(int dim, std::int64_t pieces, const layout& to) {
    const layout l = nodes_[at_].lies;
    if (dim == rank()) {
      if (to.packed != l.packed) step(to, permutation(l, to));
      return;
    }
    const std::int64_t wanted = l.pieces(m_, dim);
    if (steps_ == most_steps) return;
    if (pieces == wanted) return place(dim + 1, 1, to);
    for (const int axis : axes_) {
      const std::int64_t n = pieces * m_.size(axis);
      if (n == pieces || names(to, axis) || wanted % n != 0) continue;
      layout more = to;
      more.push_back(axis, dim);
      place(dim, n, more);
    }
  }
  constexpr collective permutation(const layout& from, const layout& to) const {
    collective what;
    what.kind = collective::permute;
    what.map = {device_map::renumbered, 0};
    what.from = numbered(from, to);
    what.axes = numbered(to, from);
    // Axes with the same stride in both lists stay in place.
    for (int i = 0; i < what.from.count;) {
      layout one;
      one.push_back(what.from[i].axis, no_dim);
      if (stride(what.from, one[0].axis) != stride(what.axes, one[0].axis)) {
        ++i;
        continue;
      }
      what.from = without(what.from, one);
      what.axes = without(what.axes, one);
      i = 0;
    }
    return what;
  }
  /// Lists all axes: those that number the shards, then those that number the copies of a shard,
  /// where axes that slice the other layout come first.
  constexpr layout numbered(const layout& l, const layout& other) const {
    layout list;
    for (const auto& e : in_order_of_dims(joined(keep_, l), rank())) list.push_back(e.axis, no_dim);
    for (const bool in_other : {true, false})
      for (int i = 0; i < m_.rank; ++i)
        if (!names(list, m_.order[i]) && names(other, m_.order[i]) == in_other)
          list.push_back(m_.order[i], no_dim);
    return list;
  }
  constexpr std::int64_t stride(const layout& l, int axis) const {
    std::int64_t n = 1;
    for (int i = l.count; i-- > 0; n *= m_.size(l[i].axis))
      if (l[i].axis == axis) return n;
    return 0;
  }

  // ---- The result -------------------------------------------------------------------------------

  /// Writes the conversion. Consecutive slices become one, and so do gathers.
  constexpr void write(int end, vec<reshard_step>& way) const {
    vec<int> path;
    for (int i = end; i >= 0; i = nodes_[i].before) path.push_back(i);
    way.clear();
    for (std::size_t i = path.size() - 1; i-- > 0;) {
      const std::size_t first = i + 1;
      const auto kind = nodes_[path[i]].by.kind;
      if (kind == collective::all_slice || kind == collective::all_gather)
        while (i > 0 && nodes_[path[i - 1]].by.kind == kind) --i;
      const layout before = nodes_[path[first]].lies, then = nodes_[path[i]].lies;
      reshard_step s(kind, {}, joined(keep_, then), i == 0);
      s.what = nodes_[path[i]].by;
      if (kind == collective::all_slice) s.what.axes = without(then, before);
      if (kind == collective::all_gather) s.what.axes = without(before, then);
      if (kind == collective::all_to_all) make_plain(s.what);
      way.push_back(s);
    }
  }
  /// Simplifies an all_to_all from one dimension to another with the same axes in the same order.
  static constexpr void make_plain(collective& what) {
    for (int i = 0; i < what.axes.count; ++i)
      if (what.from[i].axis != what.axes[i].axis || what.from[i].dim != what.from[0].dim ||
          what.axes[i].dim != what.axes[0].dim)
        return;
    what.gathered = what.from[0].dim;
    what.sliced = what.axes[0].dim;
    what.from = {};
  }
};

}  // namespace spmd_detail
}  // namespace partita
