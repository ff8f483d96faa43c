/// Readers of reductions, of all elements and of windows, and of select_and_scatter.
#pragma once

#include <partita/stablehlo/folding.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/read_elementwise.hpp>
#include <partita/stablehlo/reducer.hpp>
#include <partita/stablehlo/regions.hpp>

namespace partita::stablehlo_detail {

/// Combines the result x of a reduction with the initial value, unless that is the identity.
constexpr value_id with_initial(op_context& c, value_id x, value_id initial, combiner how) {
  if (c.failed() || initial < 0) return x;
  if (is_identity(c.b, initial, how)) return x;
  const value_id operands[] = {x, initial};
  return c.b.emit(combining_op(how), operands, {});
}
/// Reads `applies stablehlo.add`: an op as the program of a reduction.
constexpr program applied(op_context& c) {
  std::string_view name = c.o.words.empty() ? std::string_view() : c.o.words[0];
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  const op_def* const* found = nullptr;
  for (const auto& each : same_ops)
    if (each.name == name && each.op->operand_count == 2) found = &each.op;
  builder b;
  if (found == nullptr) {
    c.fail("H009", "applies \"", name, "\", which is not an op of two scalars");
    return {};
  }
  const tensor_type scalar{c.type(0).element, {}};
  const value_id x = ops::parameter(b, "", scalar), y = ops::parameter(b, "", scalar);
  const value_id made = b.emit(**found, {x, y});
  if (b.failed())
    c.fail("H009", "applies \"", name, "\", which does not combine ", c.type(0));
  else
    b.p.outputs.push_back({made, {}});
  return static_cast<program&&>(b.p);
}
/// True if the initial values of argmax or argmin lose against any element or equal it.
constexpr bool is_nothing(const op_context& c, ops::extreme which, const vec<std::int64_t>& dims) {
  const program& p = c.b.p;
  const op_id at = p.producer(c.x(3)), positions = p.producer(c.x(1));
  const combiner how = which == ops::extreme::argmax ? combiner::max : combiner::min;
  if (!is_identity(c.b, c.x(2), how) || p.op(at).def->id != def<op::constant>.id) return false;
  // Among equal values the smallest position wins, so the last position never does. If all elements
  // are equal, 0 wins as the first of the counted positions.
  const std::int64_t start = p.attrs(at)[0];
  const bool counted = p.op(positions).def->id == def<op::iota>.id && dims.size() == 1 &&
                       p.attrs(positions)[0] == dims[0];
  return start == identity_bits(combiner::min, c.type(1).element) || (start == 0 && counted);
}
/// Reads argmax and argmin. (Elements of i1 are compared as bytes.)
constexpr void read_extreme(op_context& c, ops::extreme which, const vec<std::int64_t>& dims) {
  const bool none = c.type(0).shape.elements() == 0;
  if (none || !same_shape(c.type(0).shape, c.type(1).shape)) return fold(c, as_ints(dims));
  const bool boolean = c.type(0).element == dtype::boolean;
  const value_id x = boolean ? ops::convert(c.b, c.x(0), dtype::u8) : c.x(0);
  const value_id first = ops::reduce(c.b, x, c.x(1), which, as_ints(dims));
  if (c.failed()) return;
  vec<value_id> made;
  made.push_back(boolean ? ops::convert(c.b, first, dtype::boolean) : first);
  made.push_back(first + 1);
  if (is_nothing(c, which, dims)) {
    for (value_id v : made) c.give(v);
  } else if (const folder f(c); f.fits()) {
    f.give(made);
  }
}
constexpr void read_reduce(op_context& c) {
  auto dims = c.numbers("dimensions");
  // (The order of the dimensions does not matter, so they are sorted.)
  for (std::size_t i = 1; i < dims.size(); ++i)
    for (std::size_t j = i; j > 0 && dims[j] < dims[j - 1]; --j) {
      const auto d = dims[j];
      dims[j] = dims[j - 1];
      dims[j - 1] = d;
    }
  const std::size_t n = c.operands.size() / 2;
  if (n == 0 || c.operands.size() % 2 != 0)
    return c.fail("H012", c.operands.size(),
                  " operands; each tensor and its initial value are needed");
  if (c.regions.empty()) {
    // `applies stablehlo.add`
    c.regions.push_back(applied(c));
    if (c.failed()) return;
  }
  if (!c.region_count(1) || !close_reduction(c)) return;
  ops::extreme which{};
  combiner how = combiner::add;
  if (c.operands.size() == 4 && find_extreme(c.regions[0], which))
    return read_extreme(c, which, dims);
  if (c.operands.size() > 2 || !find_combiner(c.regions[0], how)) {
    fold(c, as_ints(dims));
    return c.keep_results(n);
  }
  for (std::size_t i = 0; i < n; ++i)
    c.give(with_initial(c, ops::reduce(c.b, c.x(i), how, as_ints(dims)), c.x(n + i), how));
}
constexpr vec<window_dim> windows_of(op_context& c, std::size_t rank) {
  const auto size = c.numbers("window_dimensions", {}, rank, 1),
             stride = c.numbers("window_strides", {}, rank, 1),
             base = c.numbers("base_dilations", {}, rank, 1),
             dilation = c.numbers("window_dilations", {}, rank, 1),
             padding = c.numbers("padding", {}, 2 * rank, 0);
  vec<window_dim> w;
  if (size.size() != rank || stride.size() != rank || base.size() != rank ||
      dilation.size() != rank || padding.size() != 2 * rank) {
    c.fail("H005", "windows of rank ", rank, " are needed");
    return w;
  }
  for (std::size_t d = 0; d < rank; ++d)
    w.push_back(
        {size[d], stride[d], base[d], dilation[d], padding[2 * d], padding[2 * d + 1], false});
  return w;
}
/// Returns the only dimension along which windows have more than one element, if they reach from
/// each element to the first one or (`reverse`) to the last one; -1 otherwise.
constexpr int running_dim(const shape& s, const vec<window_dim>& w, bool& reverse) {
  int dim = -1;
  for (int d = 0; d < s.rank; ++d) {
    const window_dim& each = w[static_cast<std::size_t>(d)];
    const bool plain = each.stride == 1 && each.base_dilation == 1 && each.dilation == 1;
    if (plain && each.size == 1 && each.low == 0 && each.high == 0) continue;
    const bool ends = each.low == 0 || each.high == 0;
    if (!plain || !ends || dim >= 0 || each.size != s[d] || each.low + each.high != s[d] - 1)
      return -1;
    dim = d;
    reverse = each.low == 0;
  }
  return dim;
}
/// Reads `reduce_window`. Windows of all elements up to each one become a cumulative sum (or
/// another combination).
constexpr void read_reduce_window(op_context& c) {
  const std::size_t n = c.operands.size() / 2;
  if (n == 0 || c.operands.size() % 2 != 0)
    return c.fail("H012", c.operands.size(),
                  " operands; each tensor and its initial value are needed");
  if (!c.region_count(1) || !close_reduction(c)) return;
  const auto w = windows_of(c, static_cast<std::size_t>(c.type(0).shape.rank));
  combiner how = combiner::add;
  if (c.failed()) return;
  if (c.operands.size() > 2 || !find_combiner(c.regions[0], how)) {
    fold_windows(c, w);
    return c.keep_results(n);
  }
  bool reverse = false;
  const int dim = running_dim(c.type(0).shape, w, reverse);
  const value_id made = dim >= 0 ? ops::cumsum(c.b, c.x(0), dim, reverse, false, how)
                                 : ops::reduce_window(c.b, c.x(0), how, {w.data(), w.size()});
  c.give(with_initial(c, made, c.x(1), how));
}
constexpr void read_select_and_scatter(op_context& c) {
  if (!c.count(3) || !c.region_count(2) || !c.closed()) return;
  const auto w = windows_of(c, static_cast<std::size_t>(c.type(0).shape.rank));
  if (c.failed()) return;
  const program& select = c.regions[0];
  const value_id v =
      select.output_count() == 1 && select.input_count() == 2 ? select.outputs[0].value : -1;
  bool good = v >= 0 && is_made_by(select, v, def<op::compare>);
  ops::direction d{};
  if (good) {
    const op_id o = select.producer(v);
    d = static_cast<ops::direction>(select.attrs(o)[0]);
    good = input_of(select, select.operand(o, 0)) == 0 &&
           input_of(select, select.operand(o, 1)) == 1 && d != ops::direction::eq &&
           d != ops::direction::ne;
  }
  combiner how = combiner::add;
  if (!good || !find_combiner(c.regions[1], how) || how != combiner::add)
    return c.fail("H009", "its programs are not a comparison (GE, GT, LE, LT) and a sum");
  c.give(with_initial(c, ops::select_and_scatter(c.b, c.x(0), c.x(1), d, {w.data(), w.size()}),
                      c.x(2), how));
}

}  // namespace partita::stablehlo_detail
