/// Products other than dot_general: ragged products, and those of older versions, which name
/// dimensions by letters.
#pragma once

#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

// ---- Ragged products

/// Products of groups of rows: the rows of lhs are divided into groups of given sizes, and each
/// group is multiplied by its own matrix. The groups may also divide a contracted dimension, and
/// each group then yields its own product; or a batching dimension, where they have no effect.
///
/// Elements outside of a group are masked, so that one dot_general computes the products of all
/// groups.
///
/// Cost      multiplies all rows with the matrices of all groups
/// Source    the definition of chlo.ragged_dot
class ragged_product {
 public:
  constexpr explicit ragged_product(op_context& c) : c_(c), b_(c.b) {
    constexpr std::string_view names[] = {
        "lhs_batching_dimensions",    "rhs_batching_dimensions", "lhs_contracting_dimensions",
        "rhs_contracting_dimensions", "lhs_ragged_dimensions",   "rhs_group_dimensions"};
    const std::string_view value = c.o.attribute("ragged_dot_dimension_numbers");
    bool splat = false;
    for (std::string_view part : parts_of(inside(value, '<', '>')))
      for (int i = 0; i < 6; ++i)
        if (part.starts_with(names[i]) &&
            !read_integers(part.substr(part.find('=') + 1), lists_[i], splat))
          c.fail("H005", "dimension number \"", part, "\" is not a list");
    check();
  }

  constexpr void give() const {
    if (c_.failed()) return;
    const dtype to = c_.o.result_types.empty() ? c_.type(0).element : c_.declared().element;
    const value_id x = ops::convert(b_, c_.x(0), to), y = ops::convert(b_, c_.x(1), to);
    const bool batched = is_in(lists_[0], ragged_), contracted = is_in(lists_[2], ragged_);
    vec<std::int64_t> batch[2] = {lists_[0], lists_[1]}, contract[2] = {lists_[2], lists_[3]};
    if (batched) return product(x, y, batch, contract);
    // lhs gets a leading dimension of groups.
    const value_id left = by_group(x, ragged_, prefix(lists_[0], lists_[2], ragged_, contracted));
    for (auto& d : batch[0]) ++d;
    for (auto& d : contract[0]) ++d;
    if (!contracted) {
      contract[0].push_back(0);
      contract[1].push_back(lists_[5][0]);
      return product(left, y, batch, contract);
    }
    const int other = static_cast<int>(lists_[3][place(lists_[2], ragged_)]);
    const value_id right = by_group(y, other, prefix(lists_[1], lists_[3], other, true));
    for (auto& d : batch[1]) ++d;
    for (auto& d : contract[1]) ++d;
    for (auto& list : batch) {
      vec<std::int64_t> longer{0};
      longer.insert_back(list.begin(), list.end());
      list = longer;
    }
    product(left, right, batch, contract);
  }

 private:
  op_context& c_;
  builder& b_;
  vec<std::int64_t> lists_[6];
  int ragged_ = 0;

  static constexpr std::size_t place(const vec<std::int64_t>& list, std::int64_t d) {
    std::size_t i = 0;
    while (i < list.size() && list[i] != d) ++i;
    return i;
  }
  static constexpr bool is_in(const vec<std::int64_t>& list, std::int64_t d) {
    return place(list, d) < list.size();
  }
  constexpr void check() {
    if (c_.failed() || !c_.count(3)) return;
    const int rank = c_.type(0).shape.rank, other = c_.type(1).shape.rank;
    for (int i = 0; i < 6; ++i)
      for (const auto d : lists_[i])
        if (d < 0 || d >= (i == 0 || i == 2 || i == 4 ? rank : other))
          return c_.fail("H005", "ragged_dot_dimension_numbers: dimension ", d, " of ",
                         c_.type(i == 0 || i == 2 || i == 4 ? 0 : 1));
    if (lists_[4].size() != 1)
      return c_.fail("H005", lists_[4].size(), " ragged dimensions; one is needed");
    ragged_ = static_cast<int>(lists_[4][0]);
    const bool plain = !is_in(lists_[0], ragged_) && !is_in(lists_[2], ragged_);
    if (lists_[5].size() != (plain ? 1u : 0u))
      return c_.fail("H005", lists_[5].size(), " group dimensions; ", plain ? "one is" : "none are",
                     " needed");
    if (lists_[0].size() != lists_[1].size() || lists_[2].size() != lists_[3].size())
      return c_.fail("H005", "lists of dimensions of lhs and rhs differ in length");
    const tensor_type& sizes = c_.type(2);
    if (!is_integer(sizes.element) || sizes.shape.rank == 0)
      return c_.fail("H007", "the sizes of the groups are ", sizes,
                     "; a list of integers is needed");
    if (rank == max_rank || other == max_rank)
      return c_.fail("H013", "operands of types ", c_.type(0), " and ", c_.type(1),
                     "; ranks below ", max_rank, " are supported");
  }
  /// Returns the dimensions whose positions may have different group sizes.
  constexpr vec<std::int64_t> prefix(const vec<std::int64_t>& batch,
                                     const vec<std::int64_t>& contract, int ragged,
                                     bool contracted) const {
    vec<std::int64_t> list = batch;
    const int rank = c_.type(contracted && &batch == &lists_[1] ? 1 : 0).shape.rank;
    for (std::int64_t d = 0; !contracted && d < rank; ++d) {
      if (is_in(batch, d) || is_in(contract, d)) continue;
      if (d == ragged) break;
      list.push_back(d);
    }
    for (std::size_t i = 0; contracted && contract[i] != ragged; ++i) list.push_back(contract[i]);
    return list;
  }
  /// Returns (groups, x...), in which elements outside of a group are 0.
  constexpr value_id by_group(value_id x, int ragged, const vec<std::int64_t>& before) const {
    using enum ops::direction;
    if (c_.failed()) return -1;
    const tensor_type sizes = c_.type(2), from = b_.type(x);
    const int last = sizes.shape.rank - 1;
    if (last != 0 && last != static_cast<int>(before.size())) {
      c_.fail("H007", "the sizes of the groups are ", sizes, "; a rank of 1 or ", before.size() + 1,
              " is needed");
      return -1;
    }
    shape to{sizes.shape[last]};
    vec<std::int64_t> own, at;
    for (int d = 0; d < from.shape.rank; ++d) {
      to.push_back(from.shape[d]);
      own.push_back(d + 1);
    }
    for (int d = 0; d < last; ++d) at.push_back(before[static_cast<std::size_t>(d)] + 1);
    at.push_back(0);
    const value_id end = ops::cumsum(b_, c_.x(2), last, false, false, combiner::add);
    const value_id start = ops::subtract(b_, end, c_.x(2));
    const value_id position = ops::iota(b_, {sizes.element, to}, ragged + 1);
    const auto in_full = [&](value_id v) { return repeated(b_, v, to, at); };
    const value_id inside = ops::logical_and(b_, ops::compare(b_, ge, position, in_full(start)),
                                             ops::compare(b_, lt, position, in_full(end)));
    return ops::select(b_, inside, ops::broadcast_in_dim(b_, x, to, as_ints(own)),
                       ops::scalar(b_, from.element, 0));
  }
  constexpr void product(value_id x, value_id y, const vec<std::int64_t> (&batch)[2],
                         const vec<std::int64_t> (&contract)[2]) const {
    if (c_.failed()) return;
    c_.give(ops::dot_general(b_, x, y,
                             {as_ints(batch[0]), as_ints(batch[1]), as_ints(contract[0]),
                              as_ints(contract[1]), read_product_precision(c_)}));
  }
};
constexpr void read_ragged_dot(op_context& c) { ragged_product(c).give(); }

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
