/// Names of values and their values.
#pragma once

#include <string_view>

#include <partita/stablehlo/ops.hpp>
#include <partita/support/name_table.hpp>

namespace partita::stablehlo_detail {

/// The values of a function or a nested program, by their names in the text.
class value_scope {
 public:
  constexpr value_scope(syntax& text, builder& in) : b(in), in_(text), names_(8) {}

  builder& b;

  constexpr void define(std::size_t at, std::string_view name, span<const value_id> values) {
    const int number = static_cast<int>(first_.size());
    if (names_.insert(name, number) != number)
      return in_.fail(at, "H006", name, " is defined twice");
    first_.push_back(static_cast<int>(values_.size()));
    values_.insert_back(values.begin(), values.end());
  }
  constexpr void define(std::size_t at, std::string_view name, value_id v) {
    define(at, name, {&v, 1});
  }
  /// Defines a name for several values that form one tuple.
  constexpr void define_tuple(std::size_t at, std::string_view name, span<const value_id> values) {
    tuples_.push_back(static_cast<int>(first_.size()));
    define(at, name, values);
  }
  /// Appends the value of a name, or the values of a tuple.
  constexpr void use(std::size_t at, std::string_view name, vec<value_id>& to) {
    const int number = tuples_.empty() ? -1 : names_.find(name);
    for (const int each : tuples_)
      if (each == number) {
        for (std::size_t i = begin_of(number); i < begin_of(number + 1); ++i)
          to.push_back(values_[i]);
        return;
      }
    to.push_back(use(at, name));
  }
  /// Returns the value of `%3` or `%3#1`, or -1.
  constexpr value_id find(std::string_view name) const {
    // (In a nested program, the name of a value from outside may include the `#1`.)
    if (const int whole = names_.find(name); whole >= 0) return values_[begin_of(whole)];
    const std::size_t hash = name.find('#');
    if (hash == std::string_view::npos) return -1;
    const int number = names_.find(name.substr(0, hash));
    std::int64_t index = 0;
    if (number < 0 || !read_integer(name.substr(hash + 1), index)) return -1;
    const std::size_t begin = begin_of(number), end = begin_of(number + 1);
    if (index < 0 || index >= static_cast<std::int64_t>(end - begin)) return -1;
    return values_[begin + static_cast<std::size_t>(index)];
  }
  constexpr value_id use(std::size_t at, std::string_view name) {
    if (in_.failed()) return -1;
    const value_id v = find(name);
    if (v == -1) in_.fail(at, "H006", name, " is used before it is defined, or not defined at all");
    return v;
  }

  constexpr const tensor_type& type(value_id v) const {
    return is_spread(v) ? spread_[spread_number(v)].type : b.type(v);
  }
  /// Returns the value as a tensor; a repeated scalar is broadcast.
  constexpr value_id in_full(value_id v) {
    if (!is_spread(v)) return v;
    spread_scalar& e = spread_[spread_number(v)];
    if (e.made < 0) e.made = ops::broadcast_in_dim(b, e.scalar, e.type.shape, {});
    return e.made;
  }
  /// Replaces repeated scalars by the scalars, if the op works by element and has an operand of its
  /// shape.
  constexpr void resolve(std::string_view op, vec<value_id>& operands) {
    bool any = false, full = false;
    for (value_id v : operands) any = any || is_spread(v);
    if (!any) return;
    for (value_id v : operands) full = full || (!is_spread(v) && b.type(v).shape.rank > 0);
    const bool by_element = full && works_by_element(op);
    for (value_id& v : operands)
      v = by_element && is_spread(v) ? spread_[spread_number(v)].scalar : in_full(v);
  }
  /// Reads `%1 = stablehlo.broadcast %0, sizes = [4] : (tensor<f32>) -> tensor<4xf32>` as a
  /// repeated scalar; false for other broadcasts.
  constexpr bool spread(const op_text& o, const vec<value_id>& operands) {
    if (operands.size() != 1 || o.result_types.size() != 1 || is_spread(operands[0]) ||
        o.results.size() != 1 || o.results[0].count != 1)
      return false;
    const tensor_type from = b.type(operands[0]), to = o.result_types[0];
    if (from.shape.rank != 0 || to.shape.rank == 0 || from.element != to.element) return false;
    spread_.push_back({operands[0], to, -1});
    define(o.at, o.results[0].name, -1 - static_cast<value_id>(spread_.size()));
    return true;
  }

 private:
  /// A `broadcast` of a scalar. Ops that work by element use the scalar itself; other uses emit the
  /// broadcast.
  struct spread_scalar {
    value_id scalar = -1;
    tensor_type type;
    value_id made = -1;
  };
  syntax& in_;
  name_table names_;
  vec<int> first_;  ///< by number: the index of its first value
  vec<value_id> values_;
  vec<int> tuples_;            ///< numbers of the names that are tuples
  vec<spread_scalar> spread_;  ///< value -2 is the first of them, -3 the next, ...

  constexpr std::size_t begin_of(int number) const {
    const auto n = static_cast<std::size_t>(number);
    return n < first_.size() ? static_cast<std::size_t>(first_[n]) : values_.size();
  }
  static constexpr bool is_spread(value_id v) { return v < -1; }
  static constexpr std::size_t spread_number(value_id v) {
    return static_cast<std::size_t>(-2 - v);
  }
  static constexpr bool works_by_element(std::string_view name) {
    if (name == "compare" || name == "select") return true;
    for (const auto& each : same_ops)
      if (each.name == name) return each.op->elementwise;
    return false;
  }
};

}  // namespace partita::stablehlo_detail
