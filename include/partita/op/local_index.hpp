/// Indices relative to a shard of a tensor, shared by the `locate` functions.
#pragma once

#include <partita/ir/locate.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/select.hpp>

namespace partita::op {

/// Returns the index type for positions relative to a shard of a dimension with `size` positions.
constexpr dtype local_index_type(dtype t, std::int64_t size) {
  const bool narrow = size <= greatest_integer(dtype::i32);
  return narrow && t != dtype::i64 && t != dtype::u32 && t != dtype::u64 ? dtype::i32 : dtype::i64;
}
/// Clamps indices to [0, last].
constexpr value_id clamped_index(builder& b, value_id index, std::int64_t last) {
  const dtype t = b.type(index).element;
  if (last > greatest_integer(t)) last = greatest_integer(t);
  const value_id low = ops::integer(b, t, 0), high = ops::integer(b, t, last);
  return ops::clamp(b, low, index, high);
}
/// Makes indices relative to the start of shard number `i`.
constexpr value_id local_index(locate_context& c, int i, value_id index) {
  const dtype given = c.b.type(index).element;
  const dtype t = local_index_type(given, c.pieces[static_cast<std::size_t>(i)].size);
  if (t != given) index = ops::convert(c.b, index, t);
  return ops::subtract(c.b, index, c.start(i, t));
}
/// Returns a mask that is true where relative indices are within the shard.
constexpr value_id is_local_index(locate_context& c, int i, value_id own) {
  const dtype t = c.b.type(own).element;
  const std::int64_t block = c.pieces[static_cast<std::size_t>(i)].block;
  const value_id low = ops::compare(c.b, ops::direction::ge, own, ops::integer(c.b, t, 0));
  const value_id high = ops::compare(c.b, ops::direction::lt, own, ops::integer(c.b, t, block));
  return ops::logical_and(c.b, low, high);
}
/// Returns the combiner that joins the contributions of all shards: one has the value and the
/// others have absent_value.
constexpr combiner shard_combiner(dtype t) {
  return t == dtype::boolean ? combiner::logical_or : combiner::add;
}
/// Returns the identity of shard_combiner. (-0 for floating-point types, so that adding it
/// preserves 0 and -0.)
constexpr value_id absent_value(builder& b, dtype t) {
  return ops::scalar(b, t, is_floating(t) ? -0.0 : 0.0);
}

}  // namespace partita::op
