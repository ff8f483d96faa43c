/// Halo exchange: extends a device's block of a value to the piece that its loops read, which
/// reaches into the neighbours' blocks.
#pragma once

#include <cstdint>

#include <partita/core/halo.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/concatenate.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/dynamic_slice.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::spmd_detail {

/// Appends to a device-local program the ops that extend one operand along one dimension.
///
/// x => concatenate(permute(slice(x)), x, permute(slice(x))), followed by a slice if the piece is
/// smaller, or starts at a different offset on each device. Out-of-bounds elements have the value
/// that the range states.
class halo_exchange {
 public:
  /// `axes` cut the dimension, major to minor, into `pieces` blocks. The appended ops get the marks
  /// of op `like`: origin and transposition.
  constexpr halo_exchange(program& out, const op_node& like, int dim, const axis_list& axes,
                          std::int64_t pieces)
      : out_(out), like_(like), dim_(dim), axes_(axes), pieces_(pieces) {}

  /// Calls send(shift, from, elements) for each permute of an exchange: the distance, and the
  /// elements of the block that it sends. Shift 0 is the mirrored permute.
  template <class Send>
  static constexpr void for_each_message(const halo_range& r, std::int64_t block,
                                         std::int64_t pieces, const Send& send) {
    if (r.mirrored(block, pieces)) return send(std::int64_t{0}, std::int64_t{0}, block);
    r.for_each_border(block, pieces, send);
  }

  /// The permute that sends blocks by `shift`; `fill` as in halo_range.
  static constexpr collective permutation(std::int64_t shift, combiner fill,
                                          const axis_list& axes) {
    collective c;
    c.kind = collective::permute;
    c.map = {shift == 0                ? device_map::mirrored
             : fill == combiner::stack ? device_map::ring
                                       : device_map::shifted,
             shift};
    if (fill != combiner::stack) c.combine = fill;
    for (int axis : axes) c.axes.push_back(axis, no_dim);
    return c;
  }

  /// Returns the piece of a local value. `fill` is a local scalar for out-of-bounds elements, or -1
  /// for the identity of the range's combiner; `n` is the extent of the unpadded dimension. For
  /// each message, send(shift, from, elements, make) returns the received local value, which
  /// `make()` exchanges.
  template <class Send>
  constexpr value_id operator()(value_id x, const halo_range& r, value_id fill, std::int64_t n,
                                const Send& send) {
    const std::int64_t block = extent(x);
    const auto received = [&](std::int64_t shift, std::int64_t from, std::int64_t elements) {
      return send(shift, from, elements,
                  [&] { return permute(part(x, from, elements), shift, r.fill); });
    };
    if (r.mirrored(block, pieces_)) return received(0, 0, block);
    // Parts next to each other, starting at `begin`, relative to the start of the own block.
    std::int64_t begin = r.least(block, pieces_), end = r.greatest(block, pieces_);
    const bool own = begin < block && end > 0;
    if (own && begin > 0) begin = 0;
    if (own && end < block) end = block;
    vec<value_id> parts;
    std::int64_t at = begin;
    const auto add = [&](std::int64_t from, value_id v) {
      if (from > at) parts.push_back(nothing(x, from - at, r.fill));
      parts.push_back(v);
      at = from + extent(v);
    };
    for_each_message(r, block, pieces_,
                     [&](std::int64_t shift, std::int64_t from, std::int64_t elements) {
                       if (own && shift < 0 && at <= 0) add(0, x);
                       add(from - shift * block, received(shift, from, elements));
                     });
    if (own && at <= 0) add(0, x);
    if (at < end) parts.push_back(nothing(x, end - at, r.fill));
    const value_id y = joined(parts);
    const std::int64_t start = r.first - begin, advance = r.step - block;
    if (r.inside) return sliced(y, offset_inside(r, block, -begin), r.length);
    const value_id piece =
        advance == 0 ? part(y, start, r.length) : moving_part(y, start, advance, r.length);
    return fill < 0 ? piece : filled(piece, r, fill, n);
  }

  /// Returns the device's shard of a result that was computed with extra elements.
  constexpr value_id kept(value_id made, const halo_cut& cut, std::int64_t extent) {
    const std::int64_t first = -cut.ranges[0].first / cut.unit,
                       advance = extent - cut.ranges[0].step / cut.unit;
    if (!cut.ranges[0].inside)
      return advance == 0 ? part(made, first, extent) : moving_part(made, first, advance, extent);
    const value_id operands[] = {start_of(0, extent),
                                 start_inside(cut.ranges[0], cut.blocks[0], cut.unit)};
    return sliced(made, append(def<op::subtract>, operands, {}, scalar_type()), extent);
  }
  /// Returns elements [start, start + n) of a local value, or the value itself if these are all.
  constexpr value_id part(value_id x, std::int64_t start, std::int64_t n) {
    if (n == extent(x)) return x;
    const int rank = out_.type(x).shape.rank;
    std::int64_t attrs[2 * max_rank] = {};
    for (int d = 0; d < rank; ++d) {
      attrs[d] = d == dim_ ? start : 0;
      attrs[rank + d] = d == dim_ ? start + n : ops::whole;
    }
    const value_id operands[] = {x};
    return append(def<op::slice>, operands, {attrs, static_cast<std::size_t>(2 * rank)},
                  resized(x, n));
  }

 private:
  program& out_;
  const op_node& like_;
  int dim_;
  const axis_list& axes_;
  std::int64_t pieces_;

  constexpr std::int64_t extent(value_id x) const { return out_.type(x).shape[dim_]; }
  constexpr value_id append(const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, tensor_type type) {
    return marked(out_.append(def, operands, attrs, type));
  }
  /// Sets the marks of the op appended last, and returns its value.
  constexpr value_id marked(value_id v) {
    out_.ops.back().marks = like_.marks;
    return v;
  }
  constexpr tensor_type resized(value_id x, std::int64_t n) const {
    tensor_type t = out_.type(x);
    t.shape[dim_] = n;
    return t;
  }
  /// `n` out-of-bounds elements with the other extents of x.
  constexpr value_id nothing(value_id x, std::int64_t n, combiner fill) {
    const std::int64_t bits[] = {identity_bits(fill, out_.type(x).element)};
    return append(def<op::constant>, {}, bits, resized(x, n));
  }
  constexpr value_id joined(const vec<value_id>& parts) {
    if (parts.size() == 1) return parts[0];
    std::int64_t n = 0;
    for (value_id each : parts) n += extent(each);
    const std::int64_t attrs[] = {dim_};
    return append(def<op::concatenate>, {parts.data(), parts.size()}, attrs, resized(parts[0], n));
  }
  constexpr value_id permute(value_id x, std::int64_t shift, combiner fill) {
    return marked(
        partita::append(out_, permutation(shift, fill, axes_), x, tensor_type(out_.type(x))));
  }
  /// On device i, elements [start + i * advance, ... + n).
  constexpr value_id moving_part(value_id x, std::int64_t start, std::int64_t advance,
                                 std::int64_t n) {
    return sliced(x, start_of(start, advance), n);
  }
  /// Elements [start, start + n), where `start` is a scalar.
  constexpr value_id sliced(value_id x, value_id start, std::int64_t n) {
    const int rank = out_.type(x).shape.rank;
    value_id operands[1 + max_rank] = {x};
    std::int64_t sizes[max_rank] = {};
    for (int d = 0; d < rank; ++d) {
      operands[1 + d] = d == dim_ ? start : number(0);
      sizes[d] = d == dim_ ? n : ops::whole;
    }
    return append(def<op::dynamic_slice>, {operands, static_cast<std::size_t>(1 + rank)},
                  {sizes, static_cast<std::size_t>(rank)}, resized(x, n));
  }
  /// The offset of a piece that is shifted so that it is in bounds, divided by `unit`.
  constexpr value_id start_inside(const halo_range& r, std::int64_t block, std::int64_t unit) {
    const value_id low[] = {start_of(r.first / unit, r.step / unit), number(0)};
    const value_id high[] = {append(def<op::maximum>, low, {}, scalar_type()),
                             number((block * pieces_ - r.length) / unit)};
    return append(def<op::minimum>, high, {}, scalar_type());
  }
  /// The same offset, relative to `below` elements before the device's block.
  constexpr value_id offset_inside(const halo_range& r, std::int64_t block, std::int64_t below) {
    const value_id operands[] = {start_inside(r, block, 1), start_of(-below, block)};
    return append(def<op::subtract>, operands, {}, scalar_type());
  }
  static constexpr tensor_type scalar_type() { return {dtype::i64, {}}; }
  constexpr value_id number(std::int64_t n) {
    const std::int64_t attrs[] = {n};
    return append(def<op::constant>, {}, attrs, scalar_type());
  }
  /// start + i * advance on device i.
  constexpr value_id start_of(std::int64_t start, std::int64_t advance) {
    const value_id moved =
        marked(append_shard_start(out_, advance < 0 ? -advance : advance, axes_, dtype::i64));
    if (start == 0 && advance > 0) return moved;
    const value_id operands[] = {number(start), moved};
    const op_def& combine = advance < 0 ? def<op::subtract> : def<op::add>;
    return append(combine, operands, {}, scalar_type());
  }
  constexpr value_id spread(value_id x, const shape& to, span<const std::int64_t> dims) {
    if (out_.type(x).shape == to) return x;
    const value_id operands[] = {x};
    return append(def<op::broadcast_in_dim>, operands, dims, tensor_type{out_.type(x).element, to});
  }
  /// Replaces the elements whose position first + i * step + j is out of bounds by the scalar.
  constexpr value_id filled(value_id y, const halo_range& r, value_id fill, std::int64_t n) {
    const shape row{r.length}, whole = out_.type(y).shape;
    const std::int64_t zero[] = {0}, dims[] = {dim_};
    const tensor_type places{dtype::i64, row}, truth{dtype::boolean, row};
    if (r.first >= 0 && r.first + (pieces_ - 1) * r.step + r.length <= n) return y;
    const value_id place[] = {append(def<op::iota>, {}, zero, places),
                              spread(start_of(r.first, r.step), row, {})};
    const value_id at = append(def<op::add>, place, {}, places);
    const auto compared = [&](std::int64_t bound, ops::direction d) {
      const value_id operands[] = {at, spread(number(bound), row, {})};
      const std::int64_t attrs[] = {static_cast<std::int64_t>(d)};
      return append(def<op::compare>, operands, attrs, truth);
    };
    value_id inside = -1;
    if (r.first < 0) inside = compared(0, ops::direction::ge);
    if (r.first + (pieces_ - 1) * r.step + r.length > n) {
      const value_id both[] = {inside, compared(n, ops::direction::lt)};
      inside = inside < 0 ? both[1] : append(def<op::logical_and>, both, {}, truth);
    }
    inside = spread(inside, whole, dims);
    const value_id chosen[] = {inside, y, spread(fill, whole, {})};
    return append(def<op::select>, chosen, {}, tensor_type(out_.type(y)));
  }
};

}  // namespace partita::spmd_detail
