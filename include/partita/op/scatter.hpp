/// scatter: updates windows of a tensor at computed positions.
#pragma once

#include <partita/op/combine.hpp>
#include <partita/op/gather.hpp>
#include <partita/op/window_rows.hpp>

namespace partita::op {

/// Returns these dimension numbers as attributes, or an empty list if the updates are full rows of
/// a table.
constexpr vec<std::int64_t> scatter_numbers(const ops::gather_dimensions& d, const shape& to,
                                            const shape& indices, const shape& updates) {
  bool rows = is_rows(d, to.rank, indices.rank) && updates.rank == indices.rank + to.rank - 1;
  for (int i = 1; rows && i < to.rank; ++i)
    rows = same_extent(to[i], updates[indices.rank + i - 1]);
  if (rows) return {};  // (GCC 12 cannot evaluate `?:` of vectors in constant expressions)
  return encode(d);
}

/// Replaces windows of the input by windows of `updates`, or combines the two. This is the inverse
/// of gather, with the same dimension numbers. Attributes: the kind of update (0 assign, 1 add, 2
/// max, 3 min, 4 multiply, 5 and, 6 or), then the dimension numbers (see gather_dims; its
/// offset_dims are update_window_dims, its collapsed_slice_dims inserted_window_dims, its
/// start_index_map scatter_dims_to_operand_dims). Without dimension numbers, the updates are full
/// rows of a table.
///
/// The input is optional. Without one, the updates are combined from the identity of the combiner
/// (0, -inf, inf, 1; for integers the minimum and maximum value) into a tensor of the declared
/// shape, so that the updates can be sharded. Windows are applied in row-major order of their index
/// vectors; if several assign an element, the last one wins. A window that is not fully within the
/// input is skipped (the StableHLO specification skips its elements one by one; XLA skips the
/// window, as here).
///
/// A result sharded along updated rows needs no communication: each device applies the updates of
/// its rows. Updates sharded along the batch are combined by one all-reduce; with an input for add
/// and multiply only if that sends less than to gather the updates. Then the input counts on one
/// device for add and multiply, and on every device for max, min, and, or.
///
/// Shapes    [input (n...),] indices (i..., starts), updates (i..., window...) -> (n...)
/// Tile map  ([i], [i, d]) -> ([r@, d])  reduce={i:add}; with an input ([r@, d], [i@], [i@, d]):
///           all but one iteration over i start from the identity. For max, min, and, or, all
///           iterations start from the input, which they may combine more than once; assign cannot
///           be sharded along i. A shard of r, a dimension that windows partly cover, applies only
///           its own updates. A batching dimension is one factor of input, indices, updates and
///           result; a window dimension of full extent is one factor of input, updates and result
/// Cost      one flop per element of the updates
/// Errors    S102 element types differ, S104 not a number, S112 updates do not fit, S120 neither an
///           integer type nor i1, S139 bad dimension numbers, S141 an unknown update, or one that
///           needs an input
struct scatter {
  static constexpr std::string_view name = "scatter";
  static constexpr bool in_place = true;
  /// The attributes of an update of full rows.
  struct rows {
    static constexpr std::string_view name = "scatter";
    template <class Fields>
    static constexpr void attributes(Fields& f) {
      f.word("", {"assign", "add", "max", "min", "multiply", "and", "or"});
    }
  };
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    rows::attributes(f);
    gather_dims::attributes(f);
  }
  static constexpr void print(print_context& c) {
    if (c.p.attrs(c.op).size() == 1) return partita::ir_detail::print_attributes<rows>(c);
    partita::ir_detail::print_attributes<scatter>(c);
  }
  static constexpr void parse(parse_context& c) {
    const bool has_dims = c.in.find(',') != std::string_view::npos;
    if (!has_dims) return partita::ir_detail::parse_attributes<rows>(c);
    partita::ir_detail::parse_attributes<scatter>(c);
  }

  static constexpr ops::scatter_update update_of(ops::ints attrs) {
    return static_cast<ops::scatter_update>(attrs[0]);
  }

  static constexpr bool is_of_bits(ops::scatter_update update) {
    return update == ops::scatter_update::logical_and || update == ops::scatter_update::logical_or;
  }
  static constexpr bool is_of_numbers(ops::scatter_update update) {
    return update != ops::scatter_update::assign && !is_of_bits(update);
  }

  static constexpr void infer(infer_context& c) {
    if (c.operands.size() != 2 && c.operands.size() != 3)
      return c.fail("S112", "scatter: ", c.operands.size(),
                    " operands; an optional input, indices and updates are needed");
    const bool has_input = c.operands.size() == 3;
    const auto& indices = c.operands[c.operands.size() - 2];
    const auto& updates = c.operands.back();
    if (c.attrs.empty() || c.attrs[0] < 0 || c.attrs[0] > 6)
      return c.fail("S141",
                    "scatter: an update is one of assign, add, max, min, multiply, and, or");
    const auto update = update_of(c.attrs);
    if (update == ops::scatter_update::assign && !has_input)
      return c.fail("S141", "scatter: an update that assigns needs an input");
    c.result = {updates.element, has_input ? c.operands[0].shape : c.declared.shape};
    if (has_input && c.operands[0].element != updates.element)
      return c.fail("S102", "scatter: element types ", name_of(c.operands[0].element), " and ",
                    name_of(updates.element), " differ; use convert");
    if (updates.element == dtype::boolean && is_of_numbers(update))
      return c.fail("S104", "scatter: element type i1 is not a number");
    if (is_floating(updates.element) && is_of_bits(update))
      return c.fail("S120", "scatter: element type ", name_of(updates.element),
                    " is neither an integer type nor i1");
    const gather_dims dims(c.attrs.subspan(1), c.result.shape, indices.shape);
    if (!dims.fault.empty())
      return c.fail("S139", "scatter: ", dims.fault, " for ", c.result, " and ", indices);
    bool good = is_integer(indices.element) && updates.shape.rank == dims.result_rank &&
                c.attrs.size() == dims.attrs_read + 1;
    for (int r = 0; good && r < dims.result_rank; ++r)
      good =
          dims.index_dim[r] < 0 || same_extent(updates.shape[r], indices.shape[dims.index_dim[r]]);
    for (int d = 0; good && d < dims.operand_rank; ++d) {
      if (dims.window_dim[d] < 0) continue;
      const std::int64_t extent = c.result.shape[d], covered = updates.shape[dims.window_dim[d]];
      good = same_extent(extent, covered) || (c.attrs.size() > 1 && covered < extent);
    }
    if (!good)
      c.fail("S112", "scatter: updates ", updates, " are not windows of ", c.result,
             " at integer indices ", indices);
  }
  static constexpr void tile_map(tile_map_context& c) {
    const bool has_input = c.operands.size() == 3;
    const int indices = has_input ? 1 : 0, updates = indices + 1;
    const shape& windows = c.operands[static_cast<std::size_t>(updates)].shape;
    const ops::ints attrs{c.attrs, static_cast<std::size_t>(c.attr_count)};
    const auto update = update_of(attrs);
    const gather_dims dims(attrs.subspan(1), c.result.shape,
                           c.operands[static_cast<std::size_t>(indices)].shape);
    for (int r = 0; r < dims.result_rank; ++r) {
      int along = -1;  // the input's dimension of the same factor
      for (int d = 0; d < dims.operand_rank; ++d)
        if ((dims.window_dim[d] == r && c.result.shape[d] == windows[r]) ||
            (dims.index_dim[r] >= 0 && dims.batching_dim[d] == dims.index_dim[r]))
          along = d;
      const bool splits = update != ops::scatter_update::assign;
      const bool again = !has_input || update == ops::scatter_update::max ||
                         update == ops::scatter_update::min || is_of_bits(update);
      if (along >= 0)
        c.tile(windows[r], along).operand(updates, r);
      else if (dims.index_dim[r] >= 0 && splits && (again || windows.elements() > 0))
        c.reduce(windows[r], static_cast<combiner>(update)).operand(updates, r);
      else
        continue;
      if (along >= 0 && has_input) c.operand(0, along);
      if (along < 0 && !again) c.located();
      if (dims.index_dim[r] >= 0) c.operand(indices, dims.index_dim[r]);
    }
    for (int d = 0; d < dims.operand_rank; ++d) {
      if (!is_partly_covered(dims, d, c.result.shape, dims.window(windows))) continue;
      c.tile(c.result.shape[d], d).located();
      if (has_input) c.operand(0, d);
    }
  }
  /// Indices of other shards are out of bounds in this one, so their updates are skipped. Of
  /// iterations over updates, only the first starts from the input.
  static constexpr void locate(locate_context& c) {
    builder& b = c.b;
    vec<value_id> operands(c.operands.data(), c.operands.data() + c.operands.size());
    const std::size_t indices = operands.size() - 2;
    const auto combine = static_cast<combiner>(update_of(c.attrs));
    const gather_dims dims(c.attrs.subspan(1), c.result_types[0].shape,
                           b.type(operands[indices]).shape);
    const shape window = dims.window(b.type(operands.back()).shape);
    vec<int> cut;
    int pieces = 0;
    bool rows = true;
    for (int i = 0; i < static_cast<int>(c.pieces.size()); ++i) {
      if (c.entry(i).combine == combiner::stack) {
        cut.push_back(c.dim(i, -1));
        rows = ++pieces == 1 && are_rows(dims, cut.back(), window);
        if (rows) operands[indices] = local_index(c, i, c.operands[indices]);
        continue;
      }
      cut.push_back(-1);
      const value_id start = c.start(i, dtype::i32), zero = ops::integer(b, dtype::i32, 0);
      const value_id first = ops::compare(b, ops::direction::eq, start, zero);
      const dtype t = b.type(operands[0]).element;
      const value_id none = b.scalar(def<constant>, t, neutral_bits(combine, t));
      operands[0] = ops::select(b, first, operands[0], none);
    }
    if (pieces == 0 || rows)
      c.results.push_back(c.emit(operands));
    else
      c.results.push_back(scattered(c, operands, dims, cut, window));
  }
  /// Emits the updates for windows whose starts are vectors, or that may span shards.
  static constexpr value_id scattered(locate_context& c, const vec<value_id>& operands,
                                      const gather_dims& dims, const vec<int>& cut,
                                      const shape& window) {
    const shape to = c.result_types[0].shape;
    const window_rows rows(c, dims, cut, to, window, c.operands[operands.size() - 2], false);
    const value_id updates = rows.in_new_order(operands.back());
    if (c.b.failed()) return -1;
    const auto attrs =
        scatter_numbers(rows.numbers, to, c.b.type(rows.indices).shape, c.b.type(updates).shape);
    vec<std::int64_t> all{c.attrs[0]};
    all.insert_back(attrs.begin(), attrs.end());
    vec<value_id> given;
    if (operands.size() == 3) given.push_back(operands[0]);
    given.push_back(rows.indices);
    given.push_back(updates);
    return c.b.emit(def<scatter>, {given.data(), given.size()}, {all.data(), all.size()},
                    c.result_types[0]);
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    return c.operands.back().shape.elements();
  }
  /// With an input, counts the updates only: the other elements stay in place.
  static constexpr std::int64_t bytes(const cost_context& c) {
    if (c.operands.size() < 3) return bytes_of_all(c);
    return saturating_add(saturating_multiply(3, c.operands.back().bytes()), c.operands[1].bytes());
  }

  /// Values shared by the derivative rules.
  struct derivation {
    builder& b;
    vec<std::int64_t> attrs;  ///< dimension numbers
    value_id input, indices, updates;
    tensor_type type;  ///< of the result
    shape update_shape, window;
    gather_dims dims;

    constexpr derivation(const derive_context& c, ops::ints stored)
        : b(c.b),
          attrs(stored.data() + 1, stored.data() + stored.size()),
          input(c.operands.size() == 3 ? b.p.operand(c.op, 0) : -1),
          indices(b.p.operand(c.op, static_cast<int>(c.operands.size()) - 2)),
          updates(b.p.operand(c.op, static_cast<int>(c.operands.size()) - 1)),
          type(b.type(c.cotangent)),
          update_shape(b.type(updates).shape),
          dims({attrs.data(), attrs.size()}, type.shape, b.type(indices).shape) {
      window = dims.window(update_shape);
    }
    constexpr ops::ints numbers() const { return {attrs.data(), attrs.size()}; }
    /// Reads each update's window from a tensor of the result's shape.
    constexpr value_id windows_of(value_id from) const {
      return gather_like(b, numbers(), from, indices, window);
    }
    constexpr value_id scattered(ops::scatter_update update, value_id into, value_id x) const {
      return scatter_like(b, numbers(), update, into, type.shape, indices, x);
    }
    /// Returns x for elements of updates whose window is within the input, and `otherwise` for the
    /// others.
    constexpr value_id where_inside(value_id x, value_id otherwise) const {
      if (dims.starts == 0) return x;
      const value_id starts = clamp_starts(b, dims, type.shape, window, indices);
      value_id inside = ops::compare(b, ops::direction::eq, indices, starts);
      if (dims.vector_dim < dims.indices_rank) {
        const std::int64_t vector[] = {dims.vector_dim};
        inside = ops::reduce(b, ops::convert(b, inside, dtype::i32), combiner::min, vector);
        inside = ops::compare(b, ops::direction::gt, inside, ops::scalar(b, dtype::i32, 0));
      }
      std::int64_t along[max_rank] = {};
      std::size_t count = 0;
      for (int r = 0; r < dims.result_rank; ++r)
        if (dims.index_dim[r] >= 0) along[count++] = r;
      inside = ops::broadcast_in_dim(b, inside, update_shape, {along, count});
      return ops::select(b, inside, x, otherwise);
    }
    /// Returns a number per element of the updates. Two elements that may update the same position
    /// have different numbers.
    constexpr value_id numbered() const {
      const tensor_type ids{dtype::i64, update_shape};
      value_id sum = ops::constant(b, ids, 0);
      std::int64_t n = 1;
      for (int r = 0; r < dims.result_rank; ++r) {
        bool apart = false;
        for (int d = 0; d < dims.operand_rank; ++d)
          apart = apart || (dims.window_dim[d] == r && type.shape[d] == update_shape[r]) ||
                  (dims.index_dim[r] >= 0 && dims.batching_dim[d] == dims.index_dim[r]);
        if (apart) continue;
        const value_id position = ops::iota(b, ids, r);
        sum = ops::add(b, sum, ops::multiply(b, position, ops::integer(b, dtype::i64, n)));
        n *= update_shape[r];
      }
      return sum;
    }
  };

  /// add: the input gets the cotangent, and each update its window of it. assign: an element's
  /// cotangent goes to the update that won, or to the input. max, min: the cotangent is shared
  /// equally among the input and the updates that equal the result. multiply: only the input has a
  /// derivative (G002). A skipped update gets zero.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    const auto stored = b.p.attrs(c.op);
    const auto update = update_of(stored);
    const derivation s(c, stored);
    const std::size_t last = c.operands.size() - 1;
    const bool of_input = s.input >= 0 && c.wanted[0], of_updates = c.wanted[last];
    const value_id g = c.cotangent, y = b.p.op(c.op).result;
    const value_id zero = ops::scalar(b, s.type.element, 0);
    using enum ops::scatter_update;
    switch (update) {
      case add:
        if (of_input) c.operands[0] = g;
        if (of_updates) c.operands[last] = s.where_inside(s.windows_of(g), zero);
        return;
      case assign:
        if (of_input)
          c.operands[0] =
              s.scattered(assign, g, ops::constant(b, {s.type.element, s.update_shape}, 0));
        if (of_updates) {
          const value_id ids = s.numbered();
          const value_id none = ops::constant(b, {dtype::i64, s.type.shape}, -1);
          const value_id winners = s.windows_of(s.scattered(assign, none, ids));
          const value_id won = ops::compare(b, ops::direction::eq, winners, ids);
          c.operands[last] = ops::select(b, won, s.windows_of(g), zero);
        }
        return;
      case multiply:
        if (of_input) c.operands[0] = ops::multiply(b, g, s.scattered(multiply, -1, s.updates));
        if (of_updates)
          b.p.error.record("G002", "grad: op scatter (", s.type,
                           ") has no derivative rule for updates that multiply");
        return;
      default:  // max and min; bitwise updates have no derivative
        break;
    }
    const value_id no = ops::scalar(b, dtype::boolean, 0);
    const value_id reach =
        s.where_inside(ops::compare(b, ops::direction::eq, s.windows_of(y), s.updates), no);
    value_id ties = s.scattered(add, -1, ops::convert(b, reach, s.type.element));
    value_id stays = -1;
    if (s.input >= 0) {
      stays = ops::compare(b, ops::direction::eq, s.input, y);
      ties = ops::add(b, ties, ops::convert(b, stays, s.type.element));
    }
    const value_id one = ops::scalar(b, s.type.element, 1);
    const value_id share = ops::divide(b, g, ops::maximum(b, ties, one));
    if (of_input) c.operands[0] = ops::select(b, stays, share, zero);
    if (of_updates) c.operands[last] = ops::select(b, reach, s.windows_of(share), zero);
  }
};

constexpr value_id scatter_like(builder& b, ops::ints dims, ops::scatter_update update,
                                value_id input, const shape& to, value_id indices,
                                value_id updates) {
  vec<std::int64_t> attrs{static_cast<std::int64_t>(update)};
  attrs.insert_back(dims.begin(), dims.end());
  const ops::ints all{attrs.data(), attrs.size()};
  const tensor_type declared{b.type(updates).element, to};
  if (input < 0) {
    const value_id operands[] = {indices, updates};
    return b.emit(def<scatter>, operands, all, declared);
  }
  const value_id operands[] = {input, indices, updates};
  return b.emit(def<scatter>, operands, all, declared);
}

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::scatter)
}  // namespace partita

namespace partita::ops {

constexpr value_id scatter(builder& b, scatter_update update, value_id input, value_id indices,
                           value_id updates, const gather_dimensions& d) {
  if (input < 0 || indices < 0 || updates < 0) return -1;
  const shape to = b.type(input).shape;
  const auto dims = op::scatter_numbers(d, to, b.type(indices).shape, b.type(updates).shape);
  return op::scatter_like(b, {dims.data(), dims.size()}, update, input, to, indices, updates);
}
/// Emits a scatter without an input, into a tensor of shape `to`.
constexpr value_id scatter(builder& b, scatter_update update, const shape& to, value_id indices,
                           value_id updates, const gather_dimensions& d) {
  if (indices < 0 || updates < 0) return -1;
  const auto dims = op::scatter_numbers(d, to, b.type(indices).shape, b.type(updates).shape);
  return op::scatter_like(b, {dims.data(), dims.size()}, update, -1, to, indices, updates);
}
/// Emits a scatter of full rows of a table.
constexpr value_id scatter_rows(builder& b, scatter_update update, value_id input, value_id indices,
                                value_id updates) {
  if (input < 0) return -1;
  return op::scatter_like(b, {}, update, input, b.type(input).shape, indices, updates);
}
/// Adds up rows by index: (i...), (i..., d...) -> (rows, d...).
constexpr value_id scatter_add(builder& b, value_id indices, value_id updates, std::int64_t rows) {
  if (indices < 0 || updates < 0) return -1;
  shape to{rows};
  const shape from = b.type(updates).shape;
  for (int d = b.type(indices).shape.rank; d < from.rank; ++d) to.push_back(from[d]);
  return op::scatter_like(b, {}, scatter_update::add, -1, to, indices, updates);
}

}  // namespace partita::ops
