/// Windows at computed positions in a sharded tensor; shared by `locate` of gather and scatter.
#pragma once

#include <partita/op/gather_dims.hpp>
#include <partita/op/local_index.hpp>
#include <partita/op/slice.hpp>
#include <partita/op/transpose.hpp>

namespace partita::op {

/// Makes window positions relative to the shard along each sharded dimension. A window of several
/// elements along such a dimension may span several shards. So it becomes several windows of one
/// element, each with its own index vector.
///
/// Shapes    indices (i..., starts) -> (i..., w..., starts'), results (updates) in any order ->
///           (i..., w..., window...), where w are the extents of the windows that are split
class window_rows {
 public:
  ops::gather_dimensions numbers;
  value_id indices = -1;
  shape window;             ///< extents along the dimensions of the tensor
  vec<std::int64_t> place;  ///< by dimension of the result: its position in the new result
  vec<value_id> here;       ///< by shard, (i..., w...): true if the element is in it

  /// Splits the windows. `cut` has the dimension of the tensor for each shard, or -1; `part` is the
  /// shape of the shard; `sizes` are the extents of the windows. A gather clamps windows into the
  /// tensor (`clamps`); a scatter skips those that are not within it.
  constexpr window_rows(locate_context& c, const gather_dims& dims, const vec<int>& cut,
                        const shape& part, const shape& sizes, value_id given, bool clamps)
      : window(sizes), c_(c), b_(c.b), dims_(dims), cut_(cut), part_(part), clamps_(clamps) {
    read(given);
    for (int d = 0; d < part.rank; ++d)
      if (shard_of(d) >= 0 && sizes[d] > 1) widened_.push_back(d);
    for (auto d : widened_) batch_.push_back(sizes[static_cast<int>(d)]);
    for (int d : cut)
      if (d >= 0) add_start(d);
    for (std::size_t k = 0; k < starts_.size(); ++k) starts_[k] = placed(starts_[k], k);
    join();
    number();
  }

  /// Transposes updates to the dimension order of the new results.
  constexpr value_id in_new_order(value_id updates) const {
    vec<std::int64_t> from(place.size(), 0);
    for (std::size_t r = 0; r < place.size(); ++r)
      from[static_cast<std::size_t>(place[r])] = static_cast<std::int64_t>(r);
    return ops::transpose(b_, updates, {from.data(), from.size()});
  }
  /// Transposes new results to the dimension order of the op's result.
  constexpr value_id in_old_order(value_id found) const {
    return ops::transpose(b_, found, {place.data(), place.size()});
  }
  /// Returns a mask: true for elements of the new results that are in all shards.
  constexpr value_id all_here(const shape& result) const {
    value_id all = -1;
    for (value_id each : here) all = all < 0 ? each : ops::logical_and(b_, all, each);
    vec<std::int64_t> along;
    for (int d = 0; d < batch_.rank; ++d) along.push_back(d);
    return ops::broadcast_in_dim(b_, all, result, {along.data(), along.size()});
  }

 private:
  locate_context& c_;
  builder& b_;
  const gather_dims& dims_;
  const vec<int>& cut_;
  const shape& part_;
  const bool clamps_;
  dtype type_ = dtype::i32;    ///< element type of the new indices
  shape batch_;                ///< shape of the indices, then w...
  int outer_ = 0;              ///< number of dimensions of the indices
  vec<std::int64_t> widened_;  ///< dimensions of the tensor whose windows are split
  vec<std::int64_t> map_;      ///< the dimension of each start
  vec<value_id> starts_;       ///< (i...), then (i..., w...)

  constexpr int shard_of(int d) const {
    for (std::size_t i = 0; i < cut_.size(); ++i)
      if (cut_[i] == d) return static_cast<int>(i);
    return -1;
  }
  constexpr std::int64_t extent(int d) const {
    const int i = shard_of(d);
    return i < 0 ? part_[d] : c_.pieces[static_cast<std::size_t>(i)].size;
  }
  /// Splits the index vectors into one tensor per start.
  constexpr void read(value_id given) {
    const shape all = b_.type(given).shape;
    for (int d = 0; d < all.rank; ++d)
      if (d != dims_.vector_dim) batch_.push_back(all[d]);
    outer_ = batch_.rank;
    const dtype t = b_.type(given).element;
    for (const auto& piece : c_.pieces)
      if (local_index_type(t, piece.size) == dtype::i64) type_ = dtype::i64;
    for (int k = 0; k < dims_.starts; ++k) {
      map_.push_back(dims_.start_map[k]);
      starts_.push_back(component(given, k));
    }
  }
  constexpr value_id component(value_id given, int k) const {
    const shape all = b_.type(given).shape;
    if (dims_.vector_dim == all.rank) return given;
    vec<std::int64_t> start(static_cast<std::size_t>(all.rank), 0), limit;
    for (int d = 0; d < all.rank; ++d) limit.push_back(all[d]);
    const auto at = static_cast<std::size_t>(dims_.vector_dim);
    start[at] = k;
    limit[at] = k + 1;
    const value_id one =
        ops::slice(b_, given, {start.data(), start.size()}, {limit.data(), limit.size()});
    return ops::reshape(b_, one, batch_);
  }
  /// Adds a start of 0 for a dimension without one.
  constexpr void add_start(int d) {
    for (auto each : map_)
      if (each == d) return;
    shape outer;
    for (int i = 0; i < outer_; ++i) outer.push_back(batch_[i]);
    map_.push_back(d);
    starts_.push_back(ops::broadcast_in_dim(b_, ops::integer(b_, type_, 0), outer, {}));
  }
  constexpr value_id placed(value_id x, std::size_t k) {
    const int d = static_cast<int>(map_[k]), piece = shard_of(d);
    const std::int64_t last = extent(d) - window[d];
    if (clamps_) x = clamped_index(b_, x, last < 0 ? 0 : last);
    if (b_.type(x).element != type_) x = ops::convert(b_, x, type_);
    if (!clamps_ && piece >= 0 && window[d] > 1) x = skipped_if_outside(x, last, window[d]);
    x = repeated(x);
    if (piece < 0) return x;
    for (std::size_t w = 0; w < widened_.size(); ++w)
      if (widened_[w] == d)
        x = ops::add(b_, x, ops::iota(b_, {type_, batch_}, outer_ + static_cast<int>(w)));
    x = ops::subtract(b_, x, c_.start(piece, type_));
    if (clamps_) here.push_back(is_local_index(c_, piece, x));
    return x;
  }
  /// Moves the start before all shards if the window is not within the tensor, so that it is
  /// skipped.
  constexpr value_id skipped_if_outside(value_id x, std::int64_t last, std::int64_t size) const {
    const value_id low = ops::compare(b_, ops::direction::ge, x, ops::integer(b_, type_, 0));
    const value_id high = ops::compare(b_, ops::direction::le, x, ops::integer(b_, type_, last));
    return ops::select(b_, ops::logical_and(b_, low, high), x, ops::integer(b_, type_, -size));
  }
  constexpr value_id repeated(value_id x) const {
    if (widened_.empty()) return x;
    vec<std::int64_t> along;
    for (int d = 0; d < outer_; ++d) along.push_back(d);
    return ops::broadcast_in_dim(b_, x, batch_, {along.data(), along.size()});
  }
  constexpr void join() {
    shape one = batch_;
    one.push_back(1);
    vec<value_id> parts;
    for (value_id x : starts_) parts.push_back(ops::reshape(b_, x, one));
    indices = ops::concatenate(b_, {parts.data(), parts.size()}, batch_.rank);
  }
  constexpr void number() {
    vec<std::int64_t> offsets, collapsed, batching, partners;
    vec<int> window_place(static_cast<std::size_t>(part_.rank), -1);
    int next = batch_.rank, next_widened = outer_;
    for (int d = 0; d < part_.rank; ++d) {
      const bool cut_up = shard_of(d) >= 0 && window[d] > 1;
      if (dims_.batching_dim[d] >= 0) {
        batching.push_back(d);
        partners.push_back(outer_place(dims_.batching_dim[d]));
      } else if (cut_up || dims_.window_dim[d] < 0) {
        collapsed.push_back(d);
      } else {
        offsets.push_back(next);
      }
      if (dims_.window_dim[d] >= 0)
        window_place[static_cast<std::size_t>(d)] = cut_up ? next_widened++ : next++;
      if (cut_up) window.extents[d] = 1;
    }
    for (int r = 0; r < dims_.result_rank; ++r) {
      if (dims_.index_dim[r] >= 0) place.push_back(outer_place(dims_.index_dim[r]));
      for (int d = 0; d < part_.rank; ++d)
        if (dims_.window_dim[d] == r) place.push_back(window_place[static_cast<std::size_t>(d)]);
    }
    numbers = {offsets, collapsed, batching, partners, map_, batch_.rank};
  }
  constexpr std::int64_t outer_place(int index_dim) const {
    return index_dim > dims_.vector_dim ? index_dim - 1 : index_dim;
  }
};

/// True if a tensor can be sharded along dimension `d`, because windows cover only a part of it.
constexpr bool is_partly_covered(const gather_dims& dims, int d, const shape& tensor,
                                 const shape& window) {
  int ranks = dims.indices_rank + 1;  // of the indices, if all windows are split
  for (int each = 0; each < tensor.rank; ++each)
    ranks += dims.window_dim[each] >= 0 && window[each] < tensor[each];
  return ranks <= max_rank && dims.batching_dim[d] < 0 && window[d] > 0 && window[d] < tensor[d];
}
/// True if the windows are rows of a table that one index selects, and `dim` is the sharded
/// dimension.
constexpr bool are_rows(const gather_dims& dims, int dim, const shape& window) {
  return dims.starts == 1 && dims.start_map[0] == dim && window[dim] == 1;
}

}  // namespace partita::op
