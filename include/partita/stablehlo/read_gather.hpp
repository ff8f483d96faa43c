/// Readers of gather and scatter.
#pragma once

#include <partita/stablehlo/batching.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/reducer.hpp>
#include <partita/stablehlo/regions.hpp>
#include <partita/stablehlo/scattering.hpp>

namespace partita::stablehlo_detail {

/// Reads `#stablehlo.gather<offset_dims = [2], ...>`.
struct dimension_numbers {
  vec<std::int64_t> lists[5];
  std::int64_t vector_dim = 0;

  constexpr dimension_numbers(op_context& c, std::string_view value,
                              const std::string_view (&names)[5]) {
    for (std::string_view part : parts_of(inside(value, '<', '>'))) {
      std::string_view name = part.substr(0, part.find('='));
      while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) continue;
      bool splat = false, good = false;
      if (name == "index_vector_dim") good = read_integer(part.substr(equal + 1), vector_dim);
      for (int i = 0; i < 5; ++i)
        if (name == names[i]) good = read_integers(part.substr(equal + 1), lists[i], splat);
      if (!good) c.fail("H005", "dimension number \"", part, "\" is unknown");
    }
  }
  /// Returns the indices of a gather (operand 1) without columns that count.
  constexpr value_id without_counting(op_context& c) {
    if (c.failed()) return -1;
    return stablehlo_detail::without_counting(c.b, c.x(0), c.x(1), lists, vector_dim);
  }
  constexpr ops::gather_dimensions numbers() const {
    return {as_ints(lists[0]), as_ints(lists[1]), as_ints(lists[2]),
            as_ints(lists[3]), as_ints(lists[4]), vector_dim};
  }
};
constexpr void read_gather(op_context& c) {
  constexpr std::string_view names[5] = {"offset_dims", "collapsed_slice_dims",
                                         "operand_batching_dims", "start_indices_batching_dims",
                                         "start_index_map"};
  dimension_numbers dims(c, c.o.attribute("dimension_numbers"), names);
  const auto sizes = c.numbers("slice_sizes");
  if (!c.count(2)) return;
  const value_id indices = dims.without_counting(c);
  c.give(ops::gather(c.b, c.x(0), indices, dims.numbers(), as_ints(sizes)));
}

/// Reads a scatter of one tensor. If the tensor is the identity of the combiner, emits a scatter
/// without an initial tensor, so that sharded updates yield partial results.
constexpr void scatter_one(op_context& c, const scatter_part& part, const dimension_numbers& dims,
                           value_id input, value_id indices, value_id updates) {
  if (part.kind == update_kind::keeps) return c.give(input);
  if (part.kind == update_kind::assigns)
    return c.give(
        ops::scatter(c.b, ops::scatter_update::assign, input, indices, updates, dims.numbers()));
  const auto update = static_cast<ops::scatter_update>(part.how);
  const bool nothing = is_identity(c.b, input, part.how);
  const shape to = c.failed() ? shape() : c.b.type(input).shape;
  c.give(nothing ? ops::scatter(c.b, update, to, indices, updates, dims.numbers())
                 : ops::scatter(c.b, update, input, indices, updates, dims.numbers()));
}
/// Reads a scatter. Several tensors are scattered separately if no result depends on the others;
/// otherwise, or for another kind of function, the scatter becomes a loop.
constexpr void read_scatter(op_context& c) {
  constexpr std::string_view names[5] = {"update_window_dims", "inserted_window_dims",
                                         "input_batching_dims", "scatter_indices_batching_dims",
                                         "scatter_dims_to_operand_dims"};
  dimension_numbers dims(c, c.o.attribute("scatter_dimension_numbers"), names);
  const std::size_t n = c.operands.size() / 2;
  if ((c.operands.size() % 2 == 0 || n == 0) && !c.failed())
    return c.fail("H012", c.operands.size(),
                  " operands; tensors, indices and updates for each tensor are needed");
  if (!c.region_count(1) || !captures_scalars(c)) return;
  const program& f = c.regions[0];
  const int arguments = f.input_count() - static_cast<int>(c.captured.size());
  if (f.output_count() != static_cast<int>(n) || arguments != static_cast<int>(2 * n))
    return c.fail("H012", "its program has ", arguments, " arguments and ", f.output_count(),
                  " results; ", 2 * n, " and ", n, " are needed");
  vec<scatter_part> parts;
  bool alone = true;
  for (int i = 0; i < static_cast<int>(n); ++i) {
    parts.push_back(scatter_part(f, i));
    alone = alone && parts.back().kind != update_kind::other;
  }
  // (The indices are operand n. `without_counting` looks at the first tensor; all have the same
  // shape.)
  const value_id indices =
      c.failed() ? -1 : without_counting(c.b, c.x(0), c.x(n), dims.lists, dims.vector_dim);
  if (c.failed() || indices < 0) return;
  if (!alone) return scatter_loop(c, dims.lists, dims.vector_dim, indices).give();
  for (std::size_t i = 0; i < n; ++i)
    scatter_one(c, parts[i], dims, c.x(i), indices, c.x(n + 1 + i));
}

}  // namespace partita::stablehlo_detail
