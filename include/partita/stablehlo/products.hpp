/// Products of older versions, which name dimensions by letters, and ops that select rows.
#pragma once

#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/ragged_product.hpp>

namespace partita::stablehlo_detail {

// ---- Products by letters

/// Parses `ab,bc->ac`: a letter for each dimension; `...` replaces any number of them.
class letter_product {
 public:
  constexpr explicit letter_product(op_context& c, std::size_t operands) : c_(c) {
    if (!c.count(operands)) return;
    const std::string_view config =
        without_quotes(c.o.attribute(c.o.has("config") ? "config" : "einsum_config"));
    const std::size_t arrow = config.find("->"), comma = config.find(',');
    if (arrow == std::string_view::npos || (comma < arrow) != (operands == 2)) {
      c.fail("H005", "einsum_config = \"", config, "\" is not like ",
             operands == 2 ? "ab,bc->ac" : "ab->b");
      return;
    }
    letters_[0] = dims_of(config.substr(0, operands == 2 ? comma : arrow), 0);
    if (operands == 2) letters_[1] = dims_of(config.substr(comma + 1, arrow - comma - 1), 1);
    const std::string_view to = config.substr(arrow + 2);
    result_ = letters_of(to, to.find("...") == std::string_view::npos ? 0 : most_hidden_);
  }

  constexpr void give() {
    if (c_.failed()) return;
    value_id x = summed(0), y = c_.operands.size() == 2 ? summed(1) : -1;
    vec<int> made;
    if (y < 0) {
      made = letters_[0];
    } else {
      vec<std::int64_t> lists[4];  // batch and contracting dimensions of each operand
      for (const bool batch : {true, false})
        for (const int letter : letters_[0]) {
          if (!is_in(letters_[1], letter) || is_in(result_, letter) != batch) continue;
          lists[batch ? 0 : 2].push_back(place(letters_[0], letter));
          lists[batch ? 1 : 3].push_back(place(letters_[1], letter));
          if (batch) made.push_back(letter);
        }
      for (const auto& list : letters_)
        for (const int letter : list)
          if (!is_in(letters_[&list == &letters_[0] ? 1 : 0], letter)) made.push_back(letter);
      if (!c_.o.result_types.empty()) {
        x = ops::convert(c_.b, x, c_.declared().element);
        y = ops::convert(c_.b, y, c_.declared().element);
      }
      x = ops::dot_general(c_.b, x, y,
                           {as_ints(lists[0]), as_ints(lists[1]), as_ints(lists[2]),
                            as_ints(lists[3]), read_product_precision(c_)});
    }
    vec<std::int64_t> order;
    for (const int letter : result_) {
      if (!is_in(made, letter))
        return c_.fail("H005",
                       "einsum_config: a letter of the result does not occur in an operand");
      order.push_back(place(made, letter));
    }
    if (order.size() != made.size())
      return c_.fail("H005", "einsum_config: a letter of the result occurs twice");
    if (!c_.failed()) c_.give(ops::transpose(c_.b, x, as_ints(order)));
  }

 private:
  op_context& c_;
  vec<int> letters_[2], result_;  ///< dimensions hidden by `...` have negative numbers
  int most_hidden_ = 0;

  static constexpr std::int64_t place(const vec<int>& list, int letter) {
    std::size_t i = 0;
    while (i < list.size() && list[i] != letter) ++i;
    return static_cast<std::int64_t>(i);
  }
  static constexpr bool is_in(const vec<int>& list, int letter) {
    return place(list, letter) < static_cast<std::int64_t>(list.size());
  }
  constexpr vec<int> letters_of(std::string_view part, int hidden) {
    vec<int> list;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (is_space(part[i])) continue;
      if (part.substr(i).starts_with("...")) {
        for (int k = hidden; k > 0; --k) list.push_back(-k);
        i += 2;
      } else if ((part[i] | 32) >= 'a' && (part[i] | 32) <= 'z') {
        list.push_back(part[i]);
      } else {
        c_.fail("H005", "einsum_config: \"", part, "\" has other characters than letters");
      }
    }
    return list;
  }
  constexpr vec<int> dims_of(std::string_view part, std::size_t operand) {
    const int rank = c_.type(operand).shape.rank;
    const bool dots = part.find("...") != std::string_view::npos;
    const int hidden = rank - static_cast<int>(letters_of(part, 0).size());
    if (dots && hidden > most_hidden_) most_hidden_ = hidden;
    const vec<int> list = letters_of(part, dots ? hidden : 0);
    if (static_cast<int>(list.size()) != rank && !c_.failed())
      c_.fail("H005", "einsum_config: \"", part, "\" is not for ", c_.type(operand));
    for (std::size_t i = 0; i < list.size(); ++i)
      if (place(list, list[i]) != static_cast<std::int64_t>(i))
        c_.fail("H013", "einsum_config: a letter occurs twice in \"", part,
                "\"; diagonals are not supported");
    return list;
  }
  /// Sums the operand over dimensions that neither the other operand nor the result has.
  constexpr value_id summed(std::size_t operand) {
    vec<std::int64_t> dims;
    vec<int> rest;
    for (const int letter : letters_[operand]) {
      const bool kept = is_in(result_, letter) ||
                        (c_.operands.size() == 2 && is_in(letters_[1 - operand], letter));
      if (kept)
        rest.push_back(letter);
      else
        dims.push_back(place(letters_[operand], letter));
    }
    letters_[operand] = rest;
    return dims.empty() ? c_.x(operand)
                        : ops::reduce(c_.b, c_.x(operand), combiner::add, as_ints(dims));
  }
};
constexpr void read_einsum(op_context& c) { letter_product(c, 2).give(); }
constexpr void read_unary_einsum(op_context& c) { letter_product(c, 1).give(); }

/// Selects rows of the operand along a dimension, by number, as a gather.
constexpr void read_torch_index_select(op_context& c) {
  if (!c.count(2)) return;
  const int dim = c.dimension(c.needed("dim")), rank = c.type(0).shape.rank;
  const std::int64_t batch = c.number("batch_dims", 0);
  const int indices = c.type(1).shape.rank;
  if (c.failed()) return;
  if (dim >= rank || batch < 0 || batch > dim || batch > indices)
    return c.fail("H005", "dim = ", dim, " and batch_dims = ", batch, " of ", c.type(0), " and ",
                  c.type(1));
  vec<std::int64_t> offset, along, sizes;
  const std::int64_t row[] = {dim};
  const int looked = indices - static_cast<int>(batch);  // dimensions that replace the row
  for (int d = 0; d < rank; ++d) {
    if (d < batch) along.push_back(d);
    if (d >= batch && d != dim) offset.push_back(d < dim ? d : d - 1 + looked);
    sizes.push_back(d < batch || d == dim ? 1 : c.type(0).shape[d]);
  }
  c.give(ops::gather(c.b, c.x(0), c.x(1),
                     {as_ints(offset), row, as_ints(along), as_ints(along), row, indices},
                     as_ints(sizes)));
}
constexpr void read_get_dimension_size(op_context& c) {
  if (!c.count(1)) return;
  const int dim = c.dimension(c.needed("dimension", "dim"));
  if (c.failed()) return;
  if (dim >= c.type(0).shape.rank) return c.fail("H005", "dimension = ", dim, " of ", c.type(0));
  c.give(ops::integer(c.b, dtype::i32, c.type(0).shape[dim]));
}

}  // namespace partita::stablehlo_detail
