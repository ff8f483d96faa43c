/// Readers of dot_general, convolution, Cholesky factors and triangular solutions.
#pragma once

#include <partita/stablehlo/numerics.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// Reads `batching_dims = [0] x [0], contracting_dims = [1] x [0]`, or dimension numbers.
constexpr void read_dot_general(op_context& c) {
  vec<std::int64_t> lists[4];  // lhs batch, rhs batch, lhs contracting, rhs contracting
  bool splat = false;
  if (c.o.has("dot_dimension_numbers")) {
    constexpr std::string_view names[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                          "lhs_contracting_dimensions",
                                          "rhs_contracting_dimensions"};
    for (std::string_view part : parts_of(inside(c.o.attribute("dot_dimension_numbers"), '<', '>')))
      for (int i = 0; i < 4; ++i)
        if (part.starts_with(names[i]))
          read_integers(part.substr(part.find('=') + 1), lists[i], splat);
  }
  const auto pair = [&](std::string_view name, int first) {
    const std::string_view value = c.o.attribute(name);
    const std::size_t x = value.find('x');
    if (value.empty()) return;
    if (x == std::string_view::npos || !read_integers(value.substr(0, x), lists[first], splat) ||
        !read_integers(value.substr(x + 1), lists[first + 1], splat))
      c.fail("H005", "attribute ", name, " = ", value, " is not like [0] x [0]");
  };
  pair("batching_dims", 0);
  pair("contracting_dims", 2);
  if (!c.count(2)) return;
  value_id x = c.x(0), y = c.x(1);
  // Operands whose type differs from that of the result are converted: products are exact in the
  // wider one.
  if (!c.o.result_types.empty()) {
    const dtype to = c.declared().element;
    x = ops::convert(c.b, x, to);
    y = ops::convert(c.b, y, to);
  }
  c.give(ops::dot_general(c.b, x, y,
                          {as_ints(lists[0]), as_ints(lists[1]), as_ints(lists[2]),
                           as_ints(lists[3]), read_product_precision(c)}));
}
/// Contracts the last dimension of lhs with the first of rhs.
constexpr void read_dot(op_context& c) {
  if (!c.count(2)) return;
  const std::int64_t last[] = {c.type(0).shape.rank - 1}, first[] = {0};
  value_id x = c.x(0), y = c.x(1);
  if (!c.o.result_types.empty()) {
    const dtype to = c.declared().element;
    x = ops::convert(c.b, x, to);
    y = ops::convert(c.b, y, to);
  }
  c.give(ops::dot_general(c.b, x, y, {{}, {}, last, first, read_product_precision(c)}));
}

/// Reads `[b, 0, 1, f]`: the position of the batch (or input feature), then of the feature, then of
/// the spatial dimensions.
constexpr bool read_roles(std::string_view list, char first, char second, vec<std::int64_t>& to) {
  const auto parts = parts_of(list);
  if (parts.size() < 2) return false;
  to.assign(parts.size(), -1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::int64_t n = 0;
    std::size_t at = 0;
    if (parts[i].size() == 1 && parts[i][0] == first)
      at = 0;
    else if (parts[i].size() == 1 && parts[i][0] == second)
      at = 1;
    else if (read_integer(parts[i], n) && n >= 0 && n + 2 < static_cast<std::int64_t>(parts.size()))
      at = static_cast<std::size_t>(n) + 2;
    else
      return false;
    if (to[at] >= 0) return false;
    to[at] = static_cast<std::int64_t>(i);
  }
  return true;
}
constexpr void read_convolution(op_context& c) {
  std::string_view dims = c.o.attribute("dim_numbers");
  if (c.o.has("dimension_numbers")) dims = inside(c.o.attribute("dimension_numbers"), '<', '>');
  const std::size_t x = dims.find("]x["), arrow = dims.find("->");
  vec<std::int64_t> lhs, rhs, result;
  if (x == std::string_view::npos || arrow == std::string_view::npos || arrow < x ||
      !read_roles(inside(dims.substr(0, x + 1), '[', ']'), 'b', 'f', lhs) ||
      !read_roles(inside(dims.substr(x + 2, arrow - x - 2), '[', ']'), 'i', 'o', rhs) ||
      !read_roles(inside(dims.substr(arrow), '[', ']'), 'b', 'f', result))
    return c.fail("H005", "dimension numbers ", dims.substr(0, 60),
                  " are not like [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
  const std::size_t n = lhs.size() - 2;
  vec<std::int64_t> stride = c.numbers("window_strides", {}, n, 1),
                    pad = c.numbers("padding", {}, 2 * n, 0),
                    lhs_dilate = c.numbers("lhs_dilation", {}, n, 1),
                    rhs_dilate = c.numbers("rhs_dilation", {}, n, 1),
                    reverse = c.numbers("window_reversal", {}, n, 0);
  if (c.o.has("window"))
    for (std::string_view part : parts_of(inside(c.o.attribute("window"), '{', '}'))) {
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) continue;
      std::string_view name = part.substr(0, equal);
      while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
      vec<std::int64_t> list;
      bool splat = false;
      if (!read_integers(part.substr(equal + 1), list, splat))
        return c.fail("H005", "window ", part, " is not a list of numbers");
      (name == "stride"       ? stride
       : name == "pad"        ? pad
       : name == "lhs_dilate" ? lhs_dilate
       : name == "rhs_dilate" ? rhs_dilate
                              : reverse) = list;
    }
  if (!c.count(2)) return;
  const shape& taps = c.type(1).shape;
  if (stride.size() != n || pad.size() != 2 * n || lhs_dilate.size() != n ||
      rhs_dilate.size() != n || reverse.size() != n || rhs.size() != n + 2 ||
      result.size() != n + 2 || taps.rank != static_cast<int>(n) + 2)
    return c.fail("H005", "windows and dimension numbers differ in rank");
  vec<window_dim> windows;
  for (std::size_t d = 0; d < n; ++d)
    windows.push_back({taps[static_cast<int>(rhs[d + 2])], stride[d], lhs_dilate[d], rhs_dilate[d],
                       pad[2 * d], pad[2 * d + 1], reverse[d] != 0});
  value_id l = c.x(0), r = c.x(1);
  if (!c.o.result_types.empty()) {
    const dtype to = c.declared().element;
    l = ops::convert(c.b, l, to);
    r = ops::convert(c.b, r, to);
  }
  c.give(ops::convolution(c.b, l, r,
                          {as_ints(lhs),
                           as_ints(rhs),
                           as_ints(result),
                           {windows.data(), windows.size()},
                           c.number("feature_group_count", 1),
                           c.number("batch_group_count", 1),
                           read_product_precision(c)}));
}

constexpr void read_cholesky(op_context& c) {
  if (c.count(1)) c.give(ops::cholesky(c.b, c.x(0), c.number("lower", 0) != 0));
}
constexpr void read_triangular_solve(op_context& c) {
  const std::string_view transpose = c.o.attribute("transpose_a");
  if (c.count(2))
    c.give(ops::triangular_solve(
        c.b, c.x(0), c.x(1),
        {c.number("left_side", 1) != 0, c.number("lower", 1) != 0,
         c.number("unit_diagonal", 0) != 0,
         transpose.find("NO_TRANSPOSE") == std::string_view::npos && !transpose.empty()}));
}

}  // namespace partita::stablehlo_detail
