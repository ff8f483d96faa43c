/// Readers of constants, and of ops that change the shape of a value or move its elements.
#pragma once

#include <partita/op/iteration_numbers.hpp>
#include <partita/stablehlo/batching.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

constexpr void read_constant(op_context& c) {
  tensor_type type = c.o.result_types.empty() ? tensor_type() : c.declared();
  std::string_view value = c.o.attribute("value");
  if (c.o.result_types.empty()) return c.fail("H005", "its type is needed");
  vec<std::int64_t> bits;
  text fault;
  if (!read_dense(value, type, bits, fault)) return c.fail("H008", fault);
  if (bits.size() == 1)
    c.give(c.b.emit(def<op::constant>, {}, {bits[0]}, type));
  else
    c.give(ops::literal(c.b, type, as_ints(bits)));
}
/// The number of operands of an op; a dynamic op has one more, the shape of the result, which the
/// text also states.
constexpr std::size_t with_shape(const op_context& c, std::size_t operands) {
  return operands + (c.o.name.find("dynamic_") != std::string_view::npos ? 1 : 0);
}
constexpr void read_iota(op_context& c) {
  const auto dim = c.needed("dim", "iota_dimension");
  const tensor_type type = c.declared();
  const int d = c.dimension(dim);
  if (c.count(with_shape(c, 0))) c.give(ops::iota(c.b, type, d));
}
constexpr void read_broadcast_in_dim(op_context& c) {
  const auto dims = c.numbers("dims", "broadcast_dimensions");
  const tensor_type type = c.declared();
  if (!c.count(with_shape(c, 1))) return;
  if (!is_sorted(dims)) return c.give(repeated(c.b, c.x(0), type.shape, dims));
  const value_id operands[] = {c.x(0)};
  c.give(c.b.emit(def<op::broadcast_in_dim>, operands, as_ints(dims), type));
}
/// Reads the `broadcast` of older versions, which adds leading dimensions.
constexpr void read_broadcast(op_context& c) {
  const tensor_type type = c.declared();
  if (!c.count(1)) return;
  vec<std::int64_t> dims;
  for (int d = 0; d < c.type(0).shape.rank; ++d)
    dims.push_back(type.shape.rank - c.type(0).shape.rank + d);
  c.give(ops::broadcast_in_dim(c.b, c.x(0), type.shape, as_ints(dims)));
}
constexpr void read_reshape(op_context& c) {
  const tensor_type type = c.declared();
  if (c.count(with_shape(c, 1))) c.give(ops::reshape(c.b, c.x(0), type.shape));
}
/// Reads `chlo.constant_like %x {value = 1.0 : f32}`.
constexpr void read_constant_like(op_context& c) {
  if (!c.count(1)) return;
  const double number = c.real("value");
  if (!c.failed())
    c.give(ops::broadcast_in_dim(c.b, c.scalar_like(c.x(0), number), c.type(0).shape, {}));
}
constexpr void read_convert(op_context& c) {
  const tensor_type type = c.declared();
  if (c.count(1)) c.give(c.b.emit(def<op::convert>, {c.x(0)}, {}, tensor_type{type.element, {}}));
}
constexpr void read_bitcast_convert(op_context& c) {
  const tensor_type type = c.declared();
  if (c.count(1)) c.give(ops::bitcast_convert(c.b, c.x(0), type.element));
}
/// Reads `format = e5m10`.
constexpr void read_reduce_precision(op_context& c) {
  std::int64_t exponent = 0, mantissa = 0;
  if (c.o.has("format")) {
    const std::string_view format = c.o.attribute("format");
    const std::size_t m = format.find('m');
    if (m == std::string_view::npos || !read_integer(format.substr(1, m - 1), exponent) ||
        !read_integer(format.substr(m + 1), mantissa))
      c.fail("H005", "format ", format, " is not like e5m10");
  } else {
    exponent = c.needed("exponent_bits");
    mantissa = c.needed("mantissa_bits");
  }
  if (c.count(1))
    c.give(
        ops::reduce_precision(c.b, c.x(0), static_cast<int>(exponent), static_cast<int>(mantissa)));
}
constexpr void read_transpose(op_context& c) {
  const auto dims = c.numbers("dims", "permutation");
  if (!c.count(1)) return;
  bool moves = dims.size() != static_cast<std::size_t>(c.type(0).shape.rank);
  for (std::size_t d = 0; d < dims.size(); ++d)
    moves = moves || dims[d] != static_cast<std::int64_t>(d);
  c.give(moves ? ops::transpose(c.b, c.x(0), as_ints(dims)) : c.x(0));
}
/// Reads an op that sets a dimension to its actual size, as TensorFlow writes it; it changes
/// nothing.
constexpr void read_set_dimension_size(op_context& c) {
  const int d = c.dimension(c.needed("dim", "dimension"));
  if (!c.count(2)) return;
  std::int64_t size = -1;
  if (d >= c.type(0).shape.rank || !op_detail::integer_constant(c.b.p, c.x(1), size) ||
      size != c.type(0).shape[d])
    return c.fail("H013", "of dimension ", d, " of ", c.type(0),
                  "; only a constant that is the size of the dimension is supported");
  c.give(c.x(0));
}
constexpr void read_reverse(op_context& c) {
  const auto dims = c.numbers("dims", "dimensions");
  if (!c.count(1)) return;
  c.give(dims.empty() ? c.x(0) : ops::reverse(c.b, c.x(0), as_ints(dims)));
}
constexpr void read_concatenate(op_context& c) {
  const auto dim = c.needed("dim", "dimension");
  const int d = c.dimension(dim);
  if (c.operands.empty() && !c.failed()) return c.fail("H012", "it has no operands");
  if (!c.failed()) c.give(ops::concatenate(c.b, {c.operands.data(), c.operands.size()}, d));
}
/// Reads `[0:4, 0:8:2]`.
constexpr void read_slice(op_context& c) {
  vec<std::int64_t> start = c.numbers("start_indices"), limit = c.numbers("limit_indices"),
                    strides = c.numbers("strides", {}, start.size(), 1);
  if (c.o.has("[]")) {
    for (std::string_view range : parts_of(inside(c.o.attribute("[]"), '[', ']'))) {
      std::int64_t numbers[3] = {0, 0, 1};
      int k = 0;
      bool good = true;
      while (good && k < 3) {
        const std::size_t colon = range.find(':');
        good = read_integer(range.substr(0, colon), numbers[k++]);
        if (colon == std::string_view::npos) break;
        range.remove_prefix(colon + 1);
      }
      if (!good || k < 2) return c.fail("H005", "a range is not like 0:4 or 0:8:2");
      start.push_back(numbers[0]);
      limit.push_back(numbers[1]);
      strides.push_back(numbers[2]);
    }
  }
  if (c.count(1) && c.per_dimension({&start, &limit, &strides}))
    c.give(ops::slice(c.b, c.x(0), as_ints(start), as_ints(limit), as_ints(strides)));
}
constexpr void read_pad(op_context& c) {
  if (!c.count(2)) return;
  const auto rank = static_cast<std::size_t>(c.type(0).shape.rank);
  const auto low = c.numbers("low", "edge_padding_low"),
             high = c.numbers("high", "edge_padding_high"),
             interior = c.numbers("interior", "interior_padding", rank);
  if (c.per_dimension({&low, &high, &interior}))
    c.give(ops::pad(c.b, c.x(0), c.x(1), as_ints(low), as_ints(high), as_ints(interior)));
}
constexpr void read_dynamic_slice(op_context& c) {
  const auto sizes = c.numbers("sizes", "slice_sizes");
  if (!c.count(static_cast<std::size_t>(c.type(0).shape.rank) + 1)) return;
  if (c.per_dimension({&sizes}))
    c.give(ops::dynamic_slice(c.b, c.x(0), {c.operands.data() + 1, c.operands.size() - 1},
                              as_ints(sizes)));
}
constexpr void read_dynamic_update_slice(op_context& c) {
  if (!c.count(static_cast<std::size_t>(c.type(0).shape.rank) + 2)) return;
  c.give(ops::dynamic_update_slice(c.b, c.x(0), c.x(1),
                                   {c.operands.data() + 2, c.operands.size() - 2}));
}

}  // namespace partita::stablehlo_detail
