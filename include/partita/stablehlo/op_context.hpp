/// The context for functions that read an op.
#pragma once

#include <partita/ir/builder.hpp>
#include <partita/op/registry.hpp>
#include <partita/stablehlo/attributes.hpp>

namespace partita::stablehlo_detail {

/// The context for functions that read an op: its text, its operands and the builder.
struct op_context {
  syntax& in;
  builder& b;
  const op_text& o;
  vec<value_id> operands;
  vec<program> regions;              ///< their inputs: arguments, then values from outside
  vec<value_id> captured;            ///< the values from outside that the regions use
  vec<value_id> results;             ///< set by the function
  const mesh* local_mesh = nullptr;  ///< of a program for one device: the mesh
  bool unrolls = false;              ///< true if counting loops are unrolled

  template <class... Parts>
  constexpr void fail(std::string_view code, const Parts&... parts) {
    in.fail(o.at, code, o.name, ": ", parts...);
  }
  constexpr bool failed() const { return in.failed() || b.failed(); }
  constexpr value_id x(std::size_t i) const { return i < operands.size() ? operands[i] : -1; }
  constexpr const tensor_type& type(std::size_t i) const { return b.type(x(i)); }
  /// Returns the type of a result in the text.
  constexpr tensor_type declared(std::size_t i = 0) {
    if (i < o.result_types.size()) return o.result_types[i];
    fail("H005", "its result type is needed");
    return {};
  }
  /// Reads the numbers of an attribute, under either name. If the attribute is optional and
  /// missing, returns `count` numbers `otherwise`.
  constexpr vec<std::int64_t> numbers(std::string_view name, std::string_view other = {},
                                      std::size_t count = 0, std::int64_t otherwise = 0) {
    vec<std::int64_t> list;
    const bool first = o.has(name);
    if (!first && (other.empty() || !o.has(other))) {
      list.assign(count, otherwise);
      return list;
    }
    bool splat = false;
    const std::string_view value = o.attribute(first ? name : other);
    if (!read_integers(value, list, splat))
      fail("H005", "attribute ", first ? name : other, " = ", value.substr(0, 60),
           " is not a list of numbers");
    if (splat && list.size() == 1 && count > 1) list.assign(count, list[0]);
    return list;
  }
  constexpr std::int64_t number(std::string_view name, std::int64_t otherwise) {
    if (!o.has(name)) return otherwise;
    std::int64_t n = 0;
    if (!read_integer(o.attribute(name), n))
      fail("H005", "attribute ", name, " = ", o.attribute(name).substr(0, 60), " is not a number");
    return n;
  }
  constexpr std::int64_t needed(std::string_view name, std::string_view other = {}) {
    if (o.has(name)) return number(name, 0);
    if (!other.empty() && o.has(other)) return number(other, 0);
    fail("H005", "attribute ", name, " is missing");
    return 0;
  }
  /// Reads `epsilon = 1.0e-3 : f32`.
  constexpr double real(std::string_view name) {
    std::string_view value = o.attribute(name);
    while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
    value = value.substr(0, value.find_first_of(" :"));
    std::int64_t bits = 0;
    if (!read_element(value, dtype::f64, bits))
      fail("H005", "attribute ", name, " = ", value.substr(0, 60), " is not a number");
    return std::bit_cast<double>(bits);
  }
  /// Returns a dimension below max_rank; the op checks it against the shape.
  constexpr int dimension(std::int64_t d) {
    if (d < 0 || d >= max_rank)
      fail("H005", "dimension ", d, " is out of range; a tensor has at most ", max_rank);
    return failed() ? 0 : static_cast<int>(d);
  }
  /// True if each list has one number per dimension of the first operand.
  constexpr bool per_dimension(std::initializer_list<const vec<std::int64_t>*> lists) {
    const int rank = type(0).shape.rank;
    for (const auto* list : lists)
      if (static_cast<int>(list->size()) != rank && !failed())
        fail("H005", "a list of ", list->size(), " numbers for ", type(0), "; ", rank,
             rank == 1 ? " is" : " are", " needed");
    return !failed();
  }
  constexpr bool count(std::size_t wanted) {
    if (operands.size() != wanted && !failed())
      fail("H012", operands.size(), " operands are given; ", wanted, wanted == 1 ? " is" : " are",
           " needed");
    return !failed();
  }
  constexpr bool region_count(std::size_t wanted) {
    if (regions.size() != wanted && !failed())
      fail("H012", regions.size(), " programs are given; ", wanted, wanted == 1 ? " is" : " are",
           " needed");
    return !failed();
  }
  /// Checks that the regions use only their arguments, as in a program of reduce.
  constexpr bool closed() {
    if (!captured.empty() && !failed())
      fail("H009", "its program uses values from outside, which is not supported");
    return !failed();
  }
  constexpr void give(value_id v) { results.push_back(v); }
  constexpr void give(value_id first, int count) {
    for (int i = 0; i < count; ++i) results.push_back(first < 0 ? -1 : first + i);
  }
  /// Keeps only the first `count` results.
  constexpr void keep_results(std::size_t count) {
    if (results.size() > count) results.resize(count, -1);
  }
  constexpr value_id scalar_like(value_id v, double number) {
    return ops::scalar(b, b.type(v).element, number);
  }
};

using ints = ops::ints;
constexpr ints as_ints(const vec<std::int64_t>& v) { return {v.data(), v.size()}; }

constexpr bool is_sorted(const vec<std::int64_t>& list) {
  for (std::size_t i = 1; i < list.size(); ++i)
    if (list[i] < list[i - 1]) return false;
  return true;
}
/// Repeats a value to a shape; `dims` are its dimensions there, in any order.
constexpr value_id repeated(builder& b, value_id x, const shape& to,
                            const vec<std::int64_t>& dims) {
  vec<std::int64_t> order, sorted = dims;
  for (std::size_t i = 0; i < dims.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = 1; i < sorted.size(); ++i)
    for (std::size_t j = i; j > 0 && sorted[j] < sorted[j - 1]; --j)
      for (auto* list : {&sorted, &order}) {
        const auto before = (*list)[j - 1];
        (*list)[j - 1] = (*list)[j];
        (*list)[j] = before;
      }
  if (is_sorted(dims)) return ops::broadcast_in_dim(b, x, to, as_ints(dims));
  return ops::broadcast_in_dim(b, ops::transpose(b, x, as_ints(order)), to, as_ints(sorted));
}

}  // namespace partita::stablehlo_detail
