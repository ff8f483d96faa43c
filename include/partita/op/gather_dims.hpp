/// The role of each dimension of a gather or scatter.
#pragma once

#include <partita/op/constant.hpp>
#include <partita/op/reshape.hpp>

namespace partita::op {

/// The dimension numbers of a gather, decoded and checked. A scatter uses the same ones: its input
/// is the operand, its updates are the result, and the updates determine the window sizes.
///
/// The window starts are stored along index_vector_dim of the indices. The other dimensions of the
/// indices, in order, are the result's dimensions that are not offset_dims. A dimension of the
/// operand is covered by a window (offset), or has one element per window (collapsed), or is
/// indexed together with a dimension of the indices (batching).
///
/// Attributes, in this order: offset_dims, collapsed_slice_dims, operand_batching_dims,
/// start_indices_batching_dims and start_index_map, each as its length and its numbers, then
/// index_vector_dim. An empty list of attributes means rows of a table: indices (i...) into an
/// operand (rows, d...) yield (i..., d...). That is offset_dims = [the last ones],
/// collapsed_slice_dims = start_index_map = [0], index_vector_dim = rank of the indices.
struct gather_dims {
  int operand_rank = 0, indices_rank = 0, result_rank = 0;
  int vector_dim = 0;               ///< indices_rank if every index is a scalar
  int starts = 0;                   ///< length of the index vector
  int start_map[max_rank] = {};     ///< operand dimension of each start
  int window_dim[max_rank] = {};    ///< per operand dimension: its result dimension, or -1
  int batching_dim[max_rank] = {};  ///< per operand dimension: its dimension of the indices, or -1
  int index_dim[max_rank] = {};     ///< per result dimension: its dimension of the indices, or -1
  bool mapped[max_rank] = {};       ///< per operand dimension: true if it has a start
  std::size_t attrs_read = 0;       ///< number of attributes that are dimension numbers
  text fault;                       ///< error text; empty if the numbers are valid

  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.counted("offset_dims");
    f.counted("collapsed_slice_dims");
    f.counted("operand_batching_dims");
    f.counted("start_indices_batching_dims");
    f.counted("start_index_map");
    f.number("index_vector_dim");
  }

  constexpr gather_dims(ops::ints attrs, const shape& operand, const shape& indices)
      : operand_rank(operand.rank), indices_rank(indices.rank) {
    for (int d = 0; d < max_rank; ++d) window_dim[d] = batching_dim[d] = index_dim[d] = -1;
    if (attrs.empty())
      rows_of_a_table();
    else
      read(attrs, operand, indices);
  }

  /// Repeats a value that has one element per index along the other dimensions of the result
  /// (updates).
  constexpr value_id along_result(builder& b, value_id x, const shape& result) const {
    if (vector_dim < indices_rank) {
      shape without;
      for (int d = 0; d < indices_rank; ++d)
        if (d != vector_dim) without.push_back(b.type(x).shape[d]);
      x = ops::reshape(b, x, without);
    }
    std::int64_t along[max_rank] = {};
    std::size_t count = 0;
    for (int r = 0; r < result_rank; ++r)
      if (index_dim[r] >= 0) along[count++] = r;
    return ops::broadcast_in_dim(b, x, result, {along, count});
  }
  /// Returns the window's extents along the operand's dimensions, given the shape of the result
  /// (updates).
  constexpr shape window(const shape& result) const {
    shape s;
    for (int d = 0; d < operand_rank; ++d)
      s.push_back(window_dim[d] < 0 ? 1 : result[window_dim[d]]);
    return s;
  }

 private:
  constexpr void rows_of_a_table() {
    vector_dim = indices_rank;
    starts = 1;
    result_rank = indices_rank + operand_rank - 1;
    if (operand_rank == 0) return refuse("a table of rank 1 or more is needed");
    if (result_rank > max_rank) return refuse("the rank of the result is above 8");
    mapped[0] = true;
    for (int d = 0; d < indices_rank; ++d) index_dim[d] = d;
    for (int d = 1; d < operand_rank; ++d) window_dim[d] = indices_rank + d - 1;
  }

  /// Reads the next counted list. If it is incomplete, or its numbers repeat or are not below
  /// `rank` (or do not increase, if `sorted`), sets the fault and returns an empty list.
  constexpr ops::ints list(ops::ints attrs, std::string_view name, int rank, bool sorted) {
    if (!fault.empty()) return {};
    const auto left = static_cast<std::int64_t>(attrs.size() - attrs_read) - 1;
    if (left < 0 || attrs[attrs_read] < 0 || attrs[attrs_read] > left) {
      fault << "the list " << name << " is incomplete";
      return {};
    }
    const ops::ints found =
        attrs.subspan(attrs_read + 1, static_cast<std::size_t>(attrs[attrs_read]));
    attrs_read += found.size() + 1;
    bool good = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
      good = good && found[i] >= 0 && found[i] < rank;
      for (std::size_t j = 0; j < i; ++j)
        good = good && (sorted ? found[j] < found[i] : found[j] != found[i]);
    }
    if (good) return found;
    fault << name << ' ';
    print_ints(fault, found);
    fault << (sorted ? " are out of order or out of range" : " are repeated or out of range");
    return {};
  }
  constexpr void refuse(std::string_view what) {
    if (fault.empty()) fault = what;
  }

  constexpr void read(ops::ints attrs, const shape& operand, const shape& indices) {
    const ops::ints offset = list(attrs, "offset_dims", max_rank, true);
    const ops::ints collapsed = list(attrs, "collapsed_slice_dims", operand_rank, true);
    const ops::ints batching = list(attrs, "operand_batching_dims", operand_rank, true);
    const ops::ints partners = list(attrs, "start_indices_batching_dims", indices_rank, false);
    const ops::ints map = list(attrs, "start_index_map", operand_rank, false);
    if (!fault.empty()) return;
    if (attrs_read == attrs.size() || attrs[attrs_read] < 0 || attrs[attrs_read] > indices_rank)
      return refuse("index_vector_dim is missing or out of range");
    vector_dim = static_cast<int>(attrs[attrs_read++]);
    const bool explicit_vector = vector_dim < indices_rank;
    starts = static_cast<int>(map.size());
    if (!same_extent(explicit_vector ? indices[vector_dim] : 1, starts))
      return refuse("start_index_map has another length than the index vectors");
    if (batching.size() != partners.size())
      return refuse("operand_batching_dims and start_indices_batching_dims differ in length");
    if (offset.size() + collapsed.size() + batching.size() !=
        static_cast<std::size_t>(operand_rank))
      return refuse("offset, collapsed and batching dimensions do not make up the operand");

    bool not_in_window[max_rank] = {};  // operand dimensions that are not window dimensions
    for (auto d : collapsed) not_in_window[d] = true;
    for (std::size_t i = 0; i < batching.size(); ++i) {
      const auto d = static_cast<int>(batching[i]), partner = static_cast<int>(partners[i]);
      if (not_in_window[d]) return refuse("a dimension is both collapsed and batching");
      if (partner == vector_dim) return refuse("index_vector_dim is a batching dimension");
      if (!same_extent(operand[d], indices[partner])) {
        fault << "batching extents differ: " << operand[d] << " of dimension " << d
              << " of the operand, " << indices[partner] << " of dimension " << partner
              << " of the indices,";
        return;
      }
      not_in_window[d] = true;
      batching_dim[d] = partner;
    }
    for (std::size_t k = 0; k < map.size(); ++k) {
      start_map[k] = static_cast<int>(map[k]);
      if (batching_dim[map[k]] >= 0) return refuse("a batching dimension has a start index");
      mapped[map[k]] = true;
    }
    result_rank = indices_rank - (explicit_vector ? 1 : 0) + static_cast<int>(offset.size());
    if (result_rank > max_rank || (!offset.empty() && offset.back() >= result_rank))
      return refuse("offset_dims are out of range for the result");
    std::size_t next_offset = 0;
    int next_index = 0, next_window = 0;
    for (int r = 0; r < result_rank; ++r) {
      if (next_offset < offset.size() && offset[next_offset] == r) {
        while (not_in_window[next_window]) ++next_window;
        window_dim[next_window++] = r;
        ++next_offset;
      } else {
        if (next_index == vector_dim) ++next_index;
        index_dim[r] = next_index++;
      }
    }
  }
};

/// True if these are the dimension numbers of a gather of table rows, which are stored as an empty
/// list.
constexpr bool is_rows(const ops::gather_dimensions& d, int operand_rank, int indices_rank) {
  const auto is_first = [](ops::ints list) { return list.size() == 1 && list[0] == 0; };
  bool rows = d.operand_batching_dims.empty() && d.start_indices_batching_dims.empty() &&
              is_first(d.collapsed_slice_dims) && is_first(d.start_index_map) &&
              d.index_vector_dim == indices_rank &&
              static_cast<int>(d.offset_dims.size()) == operand_rank - 1;
  for (std::size_t i = 0; i < d.offset_dims.size(); ++i)
    rows = rows && d.offset_dims[i] == indices_rank + static_cast<std::int64_t>(i);
  return rows;
}
/// Encodes dimension numbers as attributes.
constexpr vec<std::int64_t> encode(const ops::gather_dimensions& d) {
  vec<std::int64_t> attrs;
  for (ops::ints list : {d.offset_dims, d.collapsed_slice_dims, d.operand_batching_dims,
                         d.start_indices_batching_dims, d.start_index_map}) {
    attrs.push_back(static_cast<std::int64_t>(list.size()));
    attrs.insert_back(list.begin(), list.end());
  }
  attrs.push_back(d.index_vector_dim);
  return attrs;
}

// Used by gather and scatter for each other's derivatives. They have the same dimension numbers, as
// attributes.

/// Gathers windows of the given extents.
constexpr value_id gather_like(builder& b, ops::ints dims, value_id operand, value_id indices,
                               const shape& window);
/// Scatters into `input`, or, if that is -1, into a tensor of shape `to`.
constexpr value_id scatter_like(builder& b, ops::ints dims, ops::scatter_update update,
                                value_id input, const shape& to, value_id indices,
                                value_id updates);

/// Clamps the window starts so that the windows are within the operand, as gather does.
constexpr value_id clamp_starts(builder& b, const gather_dims& dims, const shape& operand,
                                const shape& window, value_id indices) {
  const tensor_type type = b.type(indices);
  const std::int64_t greatest = greatest_integer(type.element);
  vec<std::int64_t> limits;
  bool equal = true;
  for (int k = 0; k < dims.starts; ++k) {
    const int d = dims.start_map[k];
    const std::int64_t last = operand[d] - window[d];
    limits.push_back(last < 0 ? 0 : last < greatest ? last : greatest);
    equal = equal && limits.back() == limits[0];
  }
  if (limits.empty()) return indices;
  value_id last = ops::integer(b, type.element, limits[0]);
  if (!equal) {
    vec<value_id> parts;
    for (auto limit : limits)
      parts.push_back(ops::broadcast_in_dim(b, ops::integer(b, type.element, limit), {1}, {}));
    const std::int64_t along[] = {dims.vector_dim};
    last = ops::concatenate(b, {parts.data(), parts.size()}, 0);
    last = ops::broadcast_in_dim(b, last, type.shape, along);
  }
  const value_id below = ops::minimum(b, indices, last);
  return ops::maximum(b, below, ops::integer(b, type.element, 0));
}

}  // namespace partita::op
