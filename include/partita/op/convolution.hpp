/// convolution: weighted sums over features under a sliding window.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Slides windows (see window.hpp) with the shape of rhs over the spatial dimensions of lhs. For
/// each position and output feature, it multiplies the elements under the window with rhs and sums
/// them over the window and the input features.
///
/// With feature groups, an output feature uses only the input features of its own group. The number
/// of groups is the number of features of lhs divided by the input features of rhs. With batch
/// groups, an output feature uses only the batch entries of its own group. Groups are contiguous.
///
/// Differs from StableHLO: feature_group_count is stored as a flag, because the shapes determine
/// the count; the flag stays correct for slices of the groups.
///
/// Shapes    lhs (batch, feature, n...), rhs (feature / groups, output feature, k...), each in the
///           order of its dimension numbers -> (batch / batch groups, output feature, positions...)
/// Attributes: the dimensions of lhs that are batch, feature, spatial...; those of rhs that are
///           input feature, output feature, spatial...; those of the result that are batch,
///           feature, spatial...; then one number per spatial dimension each: strides, lhs
///           dilations, rhs dilations, low padding, high padding, 1 if reversed; then 1 if there
///           are feature groups (else 0), the number of batch groups, and the precision (see
///           numerics.hpp)
/// Tile map  ([b, i, x~], [i, o, 3]) -> ([b, o, x])  reduce={i:add}
///           ([b, i, x~], [i, o, x], more taps than positions) -> ([b, o, 3])  reduce={i:add,
///           x:add}
///           ([b, gi, x~], [i, go, 3], feature groups) -> ([b, go, x])  reduce={i:add}
///           ([g~*2, i, 6], [i, g~*4, 3], batch groups) -> ([2, g*4, 4])  reduce={i:add}: a shard
///           has proportionally fewer groups
/// Cost      2 flop per product with an element (padding and holes of dilation cost nothing)
/// Errors    S102 element types differ, S104 not a number, S118 too many positions, S150 count of
///           attributes, S151 a number out of range, S156 bad dimension numbers, S157 features do
///           not fit, S158 bad groups, S199 bad precision
struct convolution {
  static constexpr std::string_view name = "convolution";
  static constexpr int operand_count = 2;

  /// The parsed attributes.
  struct roles {
    int rank = 0, spatial = 0;
    int lhs[max_rank] = {}, rhs[max_rank] = {}, result[max_rank] = {};
    windows window;
    bool grouped = false;
    std::int64_t batch_groups = 1;
    product_precision exactness = {};  ///< precision of the products that a derivative emits

    constexpr roles(const std::int64_t* a, const shape& rhs_shape)
        : rank(rhs_shape.rank), spatial(rhs_shape.rank - 2) {
      for (int* list : {lhs, rhs, result})
        for (int i = 0; i < rank; ++i) list[i] = static_cast<int>(*a++);
      window = windows(a, spatial, false);
      a += (windows::lists - 1) * spatial;
      for (int d = 0; d < spatial; ++d) {
        window.at[d].size = rhs_shape[rhs[2 + d]];
        window.at[d].reversed = *a++ != 0;
      }
      grouped = *a++ != 0;
      batch_groups = *a;
    }
    constexpr std::int64_t feature_groups(const shape& ls, const shape& rs) const {
      return grouped ? ls[lhs[1]] / rs[rhs[0]] : 1;
    }
  };

  static constexpr std::size_t attr_count(int rank) {
    return static_cast<std::size_t>(3 * rank + windows::lists * (rank - 2) + 2);
  }
  /// Returns the attributes after the first attr_count: the precision.
  static constexpr span<const std::int64_t> numerics(span<const std::int64_t> attrs, int rank) {
    return attrs.subspan(attr_count(rank));
  }
  static constexpr void infer(infer_context& c) {
    same_elements(c, name);
    need_number(c, name);
    const auto& [element, ls] = c.operands[0];
    const shape& rs = c.operands[1].shape;
    if (ls.rank != rs.rank || ls.rank < 2)
      return c.fail("S156", "convolution: ", c.operands[0], " and ", c.operands[1],
                    " do not have the same rank, 2 or more");
    const std::size_t count = attr_count(ls.rank);
    if (c.attrs.size() < count)
      return c.fail("S150", "convolution: ", c.attrs.size(), " attributes for ", c.operands[0],
                    "; ", count, " are needed");
    if (product_precision how;
        !product_precision::load(numerics(c.attrs, ls.rank), how) || how.has_algorithm)
      return c.fail("S199", "convolution: ", c.attrs.size() - count,
                    " attributes after the groups are not two precisions");
    const std::int64_t* a = c.attrs.data();
    for (std::string_view which : {"lhs", "rhs", "result"}) {
      if (!permutation(a, ls.rank)) {
        text list;
        print_ints(list, {a, static_cast<std::size_t>(ls.rank)});
        return c.fail("S156", "convolution: dimension numbers ", list, " of ", which,
                      " are not a permutation of its ", ls.rank, " dimensions");
      }
      a += ls.rank;
    }
    if (!check_windows(c, name, a, ls.rank - 2, false)) return;
    for (const std::int64_t* flag = a + 5 * (ls.rank - 2); flag + 1 != c.attrs.data() + count;
         ++flag)
      if (*flag != 0 && *flag != 1)
        return c.fail("S151", "convolution: flag ", *flag, " is neither 0 nor 1");
    const roles r(c.attrs.data(), rs);
    const std::int64_t batch = ls[r.lhs[0]], features = ls[r.lhs[1]], inputs = rs[r.rhs[0]],
                       outputs = rs[r.rhs[1]];
    if (r.batch_groups < 1 || (r.grouped && r.batch_groups > 1))
      return c.fail("S158", "convolution: ", r.batch_groups, " batch groups",
                    r.grouped ? " besides feature groups" : "", "; 1 or more are needed, and 1 if ",
                    "there are feature groups");
    if (!divides(r.batch_groups, batch) || !divides(r.batch_groups, outputs))
      return c.fail("S158", "convolution: ", r.batch_groups, " batch groups do not divide batch ",
                    batch, " and ", outputs, " output features");
    if (!r.grouped && !same_extent(features, inputs))
      return c.fail("S157", "convolution: dimension ", r.lhs[1], " of lhs ", c.operands[0], " has ",
                    features, " features, dimension ", r.rhs[0], " of rhs ", c.operands[1], " has ",
                    inputs);
    if (r.grouped && features != dyn && inputs != dyn) {
      if (inputs == 0 || features == 0 || features % inputs != 0)
        return c.fail("S157", "convolution: ", features, " features of lhs ", c.operands[0],
                      " are not groups of ", inputs, " input features of rhs ", c.operands[1]);
      if (!divides(features / inputs, outputs))
        return c.fail("S157", "convolution: ", features / inputs, " feature groups do not divide ",
                      outputs, " output features of rhs ", c.operands[1]);
    }
    c.result.element = element;
    c.result.shape.rank = ls.rank;
    c.result.shape[r.result[0]] = batch == dyn ? dyn : batch / r.batch_groups;
    c.result.shape[r.result[1]] = outputs;
    for (int d = 0; d < r.spatial; ++d) {
      const std::int64_t n = ls[r.lhs[2 + d]], k = rs[r.rhs[2 + d]];
      if (!window_fits(c, name, r.window.at[d], r.lhs[2 + d], n)) return;
      c.result.shape[r.result[2 + d]] = k == dyn ? dyn : r.window.at[d].positions(n);
    }
  }
  static constexpr void tile_map(tile_map_context& c) {
    const shape& ls = c.operands[0].shape;
    const shape& rs = c.operands[1].shape;
    const roles r(c.attrs, rs);
    const std::int64_t groups = r.feature_groups(ls, rs), outputs = rs[r.rhs[1]];
    if (r.batch_groups == 1) c.tile(ls[r.lhs[0]], r.result[0]).operand(0, r.lhs[0]);
    if (r.grouped) {
      c.composed();
      c.tile(groups, r.result[1]).operand(0, r.lhs[1]).operand(1, r.rhs[1]);
    }
    if (r.batch_groups == 1) c.tile(outputs / groups, r.result[1]).operand(1, r.rhs[1]);
    if (r.batch_groups > 1 && outputs > 0 && ls[r.lhs[0]] > 0)
      c.tile(r.batch_groups, r.result[1]).operand(0, r.lhs[0]).operand(1, r.rhs[1]).halo();
    c.reduce(rs[r.rhs[0]], combiner::add).operand(0, r.lhs[1]).operand(1, r.rhs[0]);
    for (int d = 0; d < r.spatial; ++d) spatial_factor(c, r, d);
  }
  static constexpr void halo(halo_context& c) {
    const roles r(c.attrs.data(), c.operands[1].shape);
    if (c.operand_dims[0] == r.lhs[0]) return cut_groups(c, r);
    const int d = cut_dim(c, r);
    const std::int64_t n = c.operand_extent(0), m = c.result.shape[r.result[2 + d]];
    window_dim w = r.window.at[d], local;
    if (c.result_dim != no_dim) {
      c.possible = w.cut(n, m, c.pieces, c.ranges[0], local);
    } else {  // the taps are sharded: they are the positions of the exchanged window
      c.ranges[1] = halo_range::exact(w.size, c.pieces);
      c.possible = w.exchanged(n, m).cut(n, w.size, c.pieces, c.ranges[0], local);
    }
    w.low = local.low;
    w.high = local.high;
    replace_window(c.attrs.data() + 3 * r.rank, r.spatial, d, w, false);
  }
  static constexpr void stretch(halo_context& c) {
    const roles r(c.attrs.data(), c.operands[1].shape);
    c.possible = c.operand_dims[0] != r.lhs[0];  // the number of groups cannot change
    if (!c.possible) return;
    const int d = cut_dim(c, r);
    window_dim w = r.window.at[d];
    w.high = w.high_for(c.operand_extent(0), c.result.shape[r.result[2 + d]]);
    c.apart = w.base_dilation == 1;
    if (c.result_dim == no_dim) c.alone = 1;  // the taps
    replace_window(c.attrs.data() + 3 * r.rank, r.spatial, d, w, false);
  }
  /// Keeps a range of taps, at the same positions.
  static constexpr void narrow(halo_context& c) {
    const roles r(c.attrs.data(), c.operands[1].shape);
    const int d = cut_dim(c, r);
    window_dim w = r.window.at[d];
    w.low -= c.begin * w.dilation;
    w.size = c.count;
    w.high = w.high_for(c.operand_extent(0), c.result.shape[r.result[2 + d]]);
    replace_window(c.attrs.data() + 3 * r.rank, r.spatial, d, w, false);
  }
  /// Shards the groups: no elements overlap, but each shard has fewer batch groups.
  static constexpr void cut_groups(halo_context& c, const roles& r) {
    c.possible = r.batch_groups % c.pieces == 0;
    for (int k = 0; k < 2; ++k) c.ranges[k] = halo_range::exact(c.operand_extent(k), c.pieces);
    c.attrs[attr_count(r.rank) - 1] = r.batch_groups / c.pieces;
  }
  /// Returns the spatial dimension that the factor slices.
  static constexpr int cut_dim(const halo_context& c, const roles& r) {
    int d = 0;
    while (r.lhs[2 + d] != c.operand_dims[0]) ++d;
    return d;
  }
  /// Shards the longer of the two dimensions, positions or taps; the other stays unsharded. In the
  /// derivative of a window, the cotangent acts as the window and the taps are longer.
  static constexpr void spatial_factor(tile_map_context& c, const roles& r, int d) {
    const window_dim& w = r.window.at[d];
    const int lhs = r.lhs[2 + d], rhs = r.rhs[2 + d], result = r.result[2 + d];
    const std::int64_t n = c.operands[0].shape[lhs], m = c.result.shape[result];
    if (w.trivial()) {
      c.tile(m, result).operand(0, lhs);
    } else if (m == 1 && !w.reversed && w.exchanged(n, m).trivial()) {
      c.reduce(n, combiner::add).operand(0, lhs).operand(1, rhs);
    } else if (m >= w.size) {
      if (const auto both = common_extent(n, m); both > 1 && w.cuts(n, m))
        c.tile(both, result).operand(0, lhs).halo();
    } else if (!w.reversed) {
      if (const auto both = common_extent(n, w.size); both > 1 && w.exchanged(n, m).cuts(n, w.size))
        c.reduce(both, combiner::add).operand(0, lhs).operand(1, rhs).halo();
    }
  }
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const value_id lhs = b.p.operand(c.op, 0), rhs = b.p.operand(c.op, 1);
    const shape ls = b.type(lhs).shape, rs = b.type(rhs).shape, to = b.type(c.cotangent).shape;
    if (ls.elements() == 0 || rs.elements() == 0 || to.elements() == 0) return;  // no cotangent
    roles r(b.p.attrs(c.op).data(), rs);
    product_precision::load(numerics(b.p.attrs(c.op), r.rank), r.exactness);
    if (c.wanted[0]) c.operands[0] = lhs_cotangent(b, rhs, c.cotangent, r, ls, rs, to);
    if (c.wanted[1]) c.operands[1] = rhs_cotangent(b, lhs, c.cotangent, r, ls, rs, to);
  }
  /// Returns the equivalent product of positions and features, for each group.
  static constexpr product_shape product(const cost_context& c) {
    const shape& ls = c.operands[0].shape;
    const shape& rs = c.operands[1].shape;
    const roles r(c.attrs.data(), rs);
    const std::int64_t outputs = c.result.shape[r.result[1]], all = c.result.shape.elements();
    if (all == 0) return {};
    // A shard has fewer batch groups than the attribute says, so the shapes determine the number.
    const std::int64_t groups =
        r.batch_groups > 1 ? ls[r.lhs[0]] / c.result.shape[r.result[0]] : r.feature_groups(ls, rs);
    if (groups == 0 || outputs < groups) return {};
    const std::int64_t n = outputs / groups, taps = flops(c) / all / 2;  // without taps in padding
    return {groups,
            all / outputs,
            n,
            taps > 0 ? taps : 1,
            lines_under_window(r, ls, rs),
            moved(r, ls, rs, all)};
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    const shape& ls = c.operands[0].shape;
    const shape& rs = c.operands[1].shape;
    const roles r(c.attrs.data(), rs);
    std::int64_t n = 2 * c.result.shape[r.result[0]];
    const auto times = [&](std::int64_t more) { n = saturating_multiply(n, more); };
    times(rs[r.rhs[0]]);
    times(rs[r.rhs[1]]);
    for (int d = 0; d < r.spatial; ++d) times(r.window.at[d].pairs(ls[r.lhs[2 + d]]));
    return n;
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    const int rank = f.operands[0].shape.rank, spatial = rank - 2;
    f.list("lhs", rank);
    f.list("rhs", rank);
    f.list("result", rank);
    f.list_or("strides", spatial, 1);
    f.list_or("lhs_dilation", spatial, 1);
    f.list_or("rhs_dilation", spatial, 1);
    f.list_or("low", spatial, 0);
    f.list_or("high", spatial, 0);
    f.list_or("reversed", spatial, 0);
    f.flag("feature_groups");
    f.number_or("batch_groups", 1);
    f.template tail<product_precision>("a precision");
  }

 private:
  /// Returns the number of contiguous runs of elements under a window. The last dimension is one
  /// run if its taps are adjacent. Returns 0 if the window is one element in its place.
  static constexpr std::int64_t lines_under_window(const roles& r, const shape& ls,
                                                   const shape& rs) {
    bool trivial = true;
    std::int64_t lines = 1;
    for (int d = 0; d < r.spatial; ++d) {
      const window_dim& w = r.window.at[d];
      const bool side_by_side = d == r.spatial - 1 && w.dilation == 1 && w.base_dilation == 1 &&
                                ls[r.lhs[1]] == rs[r.rhs[0]];
      if (!side_by_side) lines = saturating_multiply(lines, rs[r.rhs[2 + d]]);
      trivial = trivial && w.trivial();
    }
    return trivial ? 0 : lines;
  }
  /// Returns the number of elements in operands and result that are not laid out as (batch,
  /// spatial..., feature), or, for weights, as (spatial..., input, output).
  static constexpr std::int64_t moved(const roles& r, const shape& ls, const shape& rs,
                                      std::int64_t results) {
    bool left = r.lhs[0] == 0, right = true, result = r.result[0] == 0;
    for (int d = 0; d < r.spatial; ++d) {
      left = left && r.lhs[2 + d] == 1 + d;
      right = right && r.rhs[2 + d] == d && !(r.window.at[d].reversed && rs[r.rhs[2 + d]] > 1);
      result = result && r.result[2 + d] == 1 + d;
    }
    right = right && r.rhs[0] == r.spatial;
    return (left ? 0 : ls.elements()) + (right ? 0 : rs.elements()) + (result ? 0 : results);
  }
  static constexpr bool permutation(const std::int64_t* a, int n) {
    bool seen[max_rank] = {};
    for (int i = 0; i < n; ++i) {
      if (a[i] < 0 || a[i] >= n || seen[a[i]]) return false;
      seen[a[i]] = true;
    }
    return true;
  }
  static constexpr bool divides(std::int64_t n, std::int64_t extent) {
    return extent == dyn || extent % n == 0;
  }
  /// Moves the groups from the major part of dimension `from` to the major part of dimension `to`.
  static constexpr value_id move_groups(builder& b, value_id x, std::int64_t groups, int from,
                                        int to) {
    if (groups == 1 || b.failed()) return x;
    shape split, merged = b.type(x).shape;
    std::int64_t order[max_rank + 1] = {};
    int count = 0, at = 0;
    const int rank = merged.rank;
    for (int d = 0; d < rank; ++d) {
      if (d == from) split.push_back(groups);
      split.push_back(d == from ? merged[d] / groups : merged[d]);
    }
    for (int d = 0; d < rank; ++d, ++at) {
      if (d == to) order[count++] = from;
      if (d == from) ++at;
      order[count++] = at;
    }
    merged[from] /= groups;
    merged[to] *= groups;
    const value_id parts = ops::reshape(b, x, split);
    const value_id moved = ops::transpose(b, parts, {order, static_cast<std::size_t>(count)});
    return ops::reshape(b, moved, merged);
  }
  static constexpr value_id reverse(builder& b, value_id x, int dim) {
    if (b.failed()) return -1;
    const shape s = b.type(x).shape;
    vec<value_id> parts;
    for (std::int64_t i = s[dim]; i-- > 0;) {
      std::int64_t start[max_rank] = {}, limit[max_rank] = {};
      for (auto& l : limit) l = ops::whole;
      start[dim] = i;
      limit[dim] = i + 1;
      const auto n = static_cast<std::size_t>(s.rank);
      parts.push_back(ops::slice(b, x, {start, n}, {limit, n}));
    }
    return ops::concatenate(b, {parts.data(), parts.size()}, dim);
  }
  /// Sends the cotangent back through the reversed window, with input and output features of rhs
  /// exchanged. Batch groups become feature groups.
  static constexpr value_id lhs_cotangent(builder& b, value_id rhs, value_id cotangent,
                                          const roles& r, const shape& ls, const shape& rs,
                                          const shape& to) {
    const std::int64_t features = r.feature_groups(ls, rs);
    const std::int64_t groups = features * r.batch_groups;
    const value_id weights = move_groups(b, rhs, groups, r.rhs[1], r.rhs[0]);
    roles t = r;
    std::swap(t.rhs[0], t.rhs[1]);
    for (int d = 0; d < r.spatial; ++d) {
      t.window.at[d] = r.window.at[d].transposed(ls[r.lhs[2 + d]], to[r.result[2 + d]]);
      t.window.at[d].reversed = !r.window.at[d].reversed;
    }
    const value_id g =
        emit(b, cotangent, weights, r.result, t.rhs, r.lhs, t.window, groups, 1, r.exactness);
    return move_groups(b, g, r.batch_groups, r.lhs[1], r.lhs[0]);
  }
  /// Slides the cotangent as a window over lhs, with features as batch and batch as features.
  /// Feature groups become batch groups, and vice versa.
  static constexpr value_id rhs_cotangent(builder& b, value_id lhs, value_id cotangent,
                                          const roles& r, const shape& ls, const shape& rs,
                                          const shape& to) {
    roles t = r;
    std::swap(t.lhs[0], t.lhs[1]);
    for (int d = 0; d < r.spatial; ++d)
      t.window.at[d] = r.window.at[d].exchanged(ls[r.lhs[2 + d]], to[r.result[2 + d]]);
    value_id g = emit(b, lhs, cotangent, t.lhs, r.result, r.rhs, t.window, r.batch_groups,
                      r.feature_groups(ls, rs), r.exactness);
    for (int d = 0; d < r.spatial; ++d)
      if (r.window.at[d].reversed) g = reverse(b, g, r.rhs[2 + d]);
    return g;
  }
  static constexpr value_id emit(builder& b, value_id lhs, value_id rhs, const int* lhs_dims,
                                 const int* rhs_dims, const int* result_dims, const windows& w,
                                 std::int64_t feature_groups, std::int64_t batch_groups,
                                 const product_precision& exactness) {
    std::int64_t dims[3][max_rank] = {};
    const auto rank = static_cast<std::size_t>(w.rank + 2);
    for (std::size_t i = 0; i < rank; ++i) {
      dims[0][i] = lhs_dims[i];
      dims[1][i] = rhs_dims[i];
      dims[2][i] = result_dims[i];
    }
    return ops::convolution(b, lhs, rhs,
                            {{dims[0], rank},
                             {dims[1], rank},
                             {dims[2], rank},
                             w.all(),
                             feature_groups,
                             batch_groups,
                             exactness});
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::convolution)
}  // namespace partita

namespace partita::ops {

/// Emits a convolution.
///
/// Errors    S157 the features of lhs do not match the feature groups of rhs, S158 bad groups
constexpr value_id convolution(builder& b, value_id lhs, value_id rhs, const convolution_spec& s) {
  if (b.failed() || lhs < 0 || rhs < 0) return -1;
  if (s.feature_groups != 1 && s.lhs.size() > 1 && s.rhs.size() > 1) {
    // The op stores only a flag, not the number of feature groups.
    const auto extent = [&](value_id v, std::int64_t d) {
      const shape of = b.type(v).shape;
      return d >= 0 && d < of.rank ? of[static_cast<int>(d)] : dyn;
    };
    const std::int64_t features = extent(lhs, s.lhs[1]), inputs = extent(rhs, s.rhs[0]);
    if (s.feature_groups < 1)
      b.p.error.record("S158", "convolution: ", s.feature_groups,
                       " feature groups; 1 or more are needed");
    else if (features != dyn && inputs != dyn &&
             (features % s.feature_groups != 0 || features / s.feature_groups != inputs))
      b.p.error.record("S157", "convolution: ", features, " features of lhs ", b.type(lhs),
                       " are not ", s.feature_groups, " groups of ", inputs,
                       " input features of rhs ", b.type(rhs));
  }
  vec<std::int64_t> attrs;
  for (ints list : {s.lhs, s.rhs, s.result})
    for (auto d : list) attrs.push_back(d);
  op::store_windows(attrs, s.windows, false);
  for (const auto& w : s.windows) attrs.push_back(w.reversed ? 1 : 0);
  attrs.push_back(s.feature_groups == 1 ? 0 : 1);
  attrs.push_back(s.batch_groups);
  s.exactness.store(attrs);
  const value_id operands[] = {lhs, rhs};
  return b.emit(def<op::convolution>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::ops
