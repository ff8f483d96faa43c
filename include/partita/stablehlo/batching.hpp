/// Indices that count up: rows of a gather or scatter that correspond to the rows of its indices.
#pragma once

#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// Finds the dimension along which the elements of a value are 0, 1, 2, ..., or no_dim.
class counted_dimension {
 public:
  constexpr explicit counted_dimension(const program& p) : p_(p) {}

  /// `steps`: the maximum number of ops to look through.
  constexpr int operator()(value_id v, int steps = 8) const {
    const op_id o = p_.producer(v);
    const tensor_type& t = p_.type(v);
    if (steps == 0 || !is_integer(t.element) || size_of(t.element) < 4) return no_dim;
    const auto is = [&](const op_def& d) { return p_.op(o).def->id == d.id; };
    if (is(def<op::iota>)) return static_cast<int>(p_.attrs(o)[0]);
    if (is(def<op::convert>)) return (*this)(p_.operand(o, 0), steps - 1);
    if (is(def<op::broadcast_in_dim>)) return broadcast(o, (*this)(p_.operand(o, 0), steps - 1));
    if (is(def<op::reshape>)) return reshaped(o, (*this)(p_.operand(o, 0), steps - 1));
    // jax.numpy adds the extent to negative indices.
    if (is(def<op::select>) && is_negative(p_.operand(o, 0), p_.operand(o, 2)))
      return (*this)(p_.operand(o, 2), steps - 1);
    return no_dim;
  }

 private:
  const program& p_;

  constexpr const shape& from(op_id o) const { return p_.type(p_.operand(o, 0)).shape; }
  constexpr const shape& to(op_id o) const { return p_.type(p_.op(o).result).shape; }
  constexpr int broadcast(op_id o, int dim) const {
    if (dim == no_dim) return no_dim;
    const int made = static_cast<int>(p_.attrs(o)[dim]);
    return to(o)[made] == from(o)[dim] ? made : no_dim;
  }
  /// For a reshape that adds or drops dimensions of one element: the dimension of the result that
  /// corresponds to `dim`, found by its position among the dimensions with more elements.
  constexpr int reshaped(op_id o, int dim) const {
    if (dim == no_dim || from(o)[dim] == 1) return no_dim;
    vec<int> wide[2];
    for (int i = 0; i < 2; ++i) {
      const shape& s = i == 0 ? from(o) : to(o);
      for (int d = 0; d < s.rank; ++d)
        if (s[d] != 1) wide[i].push_back(d);
    }
    if (wide[0].size() != wide[1].size()) return no_dim;
    int found = no_dim;
    for (std::size_t i = 0; i < wide[0].size(); ++i) {
      if (from(o)[wide[0][i]] != to(o)[wide[1][i]]) return no_dim;
      if (wide[0][i] == dim) found = wide[1][i];
    }
    return found;
  }
  constexpr bool is_negative(value_id v, value_id x) const {
    const op_id o = p_.producer(v);
    return p_.op(o).def->id == def<op::compare>.id &&
           p_.attrs(o)[0] == static_cast<std::int64_t>(ops::direction::lt) &&
           p_.operand(o, 0) == x && is_zero(p_.operand(o, 1));
  }
  constexpr bool is_zero(value_id v) const {
    const op_id o = p_.producer(v);
    const bool repeated = p_.op(o).def->id == def<op::broadcast_in_dim>.id;
    return p_.is_zero(repeated ? p_.operand(o, 0) : v);
  }
};

/// Turns index columns that count along a dimension of the indices into batching dimensions: each
/// position along it selects only its own row of the operand, so one axis can shard both. `lists`
/// are as in dimension_numbers (stablehlo/ops.hpp). Returns the remaining columns.
///
///   x[arange(n), y] => one element of each row of x
///
/// At least one column remains. The extents must be equal.
constexpr value_id without_counting(builder& b, value_id operand, value_id indices,
                                    vec<std::int64_t> (&lists)[5], std::int64_t vector_dim) {
  if (b.failed() || operand < 0 || indices < 0) return indices;
  const op_id o = b.p.producer(indices);
  if (b.p.op(o).def->id != def<op::concatenate>.id || b.p.attrs(o)[0] != vector_dim) return indices;
  const auto given = b.p.operands(o);
  const vec<value_id> columns(given.begin(), given.end());
  if (columns.size() != lists[4].size()) return indices;
  const int along = static_cast<int>(vector_dim);
  for (value_id v : columns)
    if (b.type(v).shape[along] != 1) return indices;
  const auto erase = [](vec<std::int64_t>& list, std::int64_t n) {
    vec<std::int64_t> rest;
    for (auto each : list)
      if (each != n) rest.push_back(each);
    const bool found = rest.size() < list.size();
    list = rest;
    return found;
  };
  const shape rows = b.type(operand).shape, places = b.type(indices).shape;
  vec<value_id> left;
  vec<std::int64_t> map;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const std::int64_t row = lists[4][k];
    const bool last = left.empty() && k + 1 == columns.size();
    const int place = last ? no_dim : counted_dimension(b.p)(columns[k]);
    bool good = place != no_dim && place != along && row >= 0 && row < rows.rank &&
                rows[static_cast<int>(row)] == places[place];
    for (auto each : lists[3]) good = good && each != place;
    if (!good || !erase(lists[1], row)) {
      left.push_back(columns[k]);
      map.push_back(row);
      continue;
    }
    // (The batching dimensions of the operand must be sorted.)
    lists[2].push_back(row);
    lists[3].push_back(place);
    for (std::size_t i = lists[2].size() - 1; i > 0 && lists[2][i] < lists[2][i - 1]; --i)
      for (auto* list : {&lists[2], &lists[3]}) {
        const auto before = (*list)[i - 1];
        (*list)[i - 1] = (*list)[i];
        (*list)[i] = before;
      }
  }
  if (left.size() == columns.size()) return indices;
  lists[4] = map;
  return ops::concatenate(b, {left.data(), left.size()}, along);
}

}  // namespace partita::stablehlo_detail
