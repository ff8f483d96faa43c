/// Reductions by any function: halves are combined elementwise until one element is left.
#pragma once

#include <partita/op/fold.hpp>
#include <partita/op/halves.hpp>
#include <partita/op/window.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// The program of a reduction, applied to tensors instead of scalars.
///
/// Errors    H009 an op that does not work element by element
class vectorized {
 public:
  constexpr vectorized(op_context& c, const program& f) : c_(c), f_(f), needed_(f.types.size(), 0) {
    for (const auto& out : f.outputs) needed_[static_cast<std::size_t>(out.value)] = 1;
    for (op_id o = f.op_count(); o-- > 0;)
      if (is_needed(o))
        for (value_id v : f.operands(o)) needed_[static_cast<std::size_t>(v)] = 1;
  }

  /// Emits the results for tensors of a shape. Each input has that shape or is a scalar.
  constexpr vec<value_id> operator()(shape whole, const vec<value_id>& inputs) const {
    vec<value_id> here(f_.types.size(), -1);
    for (int i = 0; i < f_.input_count(); ++i)
      at(here, f_.inputs[i]) = inputs[static_cast<std::size_t>(i)];
    for (op_id o = 0; o < f_.op_count() && !c_.failed(); ++o)
      if (is_needed(o)) at(here, f_.op(o).result) = copy(here, o);
    vec<value_id> results;
    for (const auto& out : f_.outputs) results.push_back(in_full(at(here, out.value), whole));
    return results;
  }

 private:
  op_context& c_;
  const program& f_;
  vec<char> needed_;  ///< by value: 1 if a result depends on it

  constexpr bool is_needed(op_id o) const {
    return !f_.is(o, op_role::parameter) && needed_[static_cast<std::size_t>(f_.op(o).result)] != 0;
  }
  static constexpr value_id& at(vec<value_id>& list, value_id v) {
    return list[static_cast<std::size_t>(v)];
  }
  constexpr value_id in_full(value_id v, const shape& whole) const {
    return v < 0 || c_.b.type(v).shape.rank == whole.rank
               ? v
               : ops::broadcast_in_dim(c_.b, v, whole, {});
  }
  constexpr value_id copy(vec<value_id>& here, op_id o) const {
    const op_def& d = *f_.op(o).def;
    const dtype t = f_.type(f_.op(o).result).element;
    vec<value_id> operands;
    for (value_id v : f_.operands(o)) operands.push_back(at(here, v));
    if (d.id == def<op::constant>.id) return c_.b.scalar(d, t, f_.attrs(o)[0]);
    if (d.id == def<op::bitcast_convert>.id) return ops::bitcast_convert(c_.b, operands[0], t);
    if (d.elementwise)
      return c_.b.emit(d, {operands.data(), operands.size()}, f_.attrs(o), tensor_type{t, {}});
    c_.fail("H009", "its program uses ", d.name, ", which does not work element by element");
    return -1;
  }
};

/// Combines tensors by a program of n + n scalars. The order of elements is preserved.
struct folder {
  op_context& c;
  const vectorized f;
  const std::size_t n = c.operands.size() / 2;

  constexpr explicit folder(op_context& in) : c(in), f(in, in.regions[0]) {}

  constexpr bool fits() const {
    const program& p = c.regions[0];
    if (p.output_count() != static_cast<int>(n) || p.input_count() != static_cast<int>(2 * n))
      c.fail("H012", "its program has ", p.input_count(), " arguments and ", p.output_count(),
             " results; ", 2 * n, " and ", n, " are needed");
    return !c.failed();
  }
  constexpr vec<value_id> tensors() const {
    return vec<value_id>(c.operands.begin(), c.operands.begin() + n);
  }
  constexpr const shape& extents(const vec<value_id>& xs) const { return c.b.type(xs[0]).shape; }
  constexpr vec<value_id> combined(const vec<value_id>& left, const vec<value_id>& right) const {
    if (c.failed()) return left;
    vec<value_id> both = left;
    both.insert_back(right.begin(), right.end());
    return f(extents(right), both);
  }
  /// Combines the initial values with `xs` and returns the results of the op.
  constexpr void give(const vec<value_id>& xs) const {
    const vec<value_id> initial(c.operands.begin() + n, c.operands.end());
    for (value_id v : combined(initial, xs)) c.give(v);
  }
  /// Combines x0 x1, x2 x3, ... repeatedly, until one element is left along the dimension.
  constexpr void reduce(vec<value_id>& xs, int d) const {
    if (c.failed()) return;
    op_detail::halve(c.b, xs, d, [this](const vec<value_id>& left, const vec<value_id>& right) {
      return combined(left, right);
    });
  }
  /// Combines the elements of each window. Windows of 1, 2, 4, ... elements make a window of any
  /// size.
  constexpr void slide(vec<value_id>& xs, int d, const window_dim& w) const {
    pad(xs, d, w);
    const std::int64_t count = extents(xs)[d] - (w.size - 1) * w.dilation;
    if (c.failed() || count < 1) {
      xs = op_detail::cut(c.b, xs, d, 0, 0);
      return;
    }
    vec<value_id> power = xs, made;
    std::int64_t reach = 1, covered = 0;
    for (std::int64_t rest = w.size; rest > 0 && !c.failed(); rest /= 2, reach *= 2) {
      if (rest % 2 != 0) {
        made = covered == 0 ? power : joined(made, power, d, covered * w.dilation);
        covered += reach;
      }
      if (rest > 1) power = joined(power, power, d, reach * w.dilation);
    }
    xs = op_detail::cut(c.b, made, d, 0, count, w.stride);
  }

 private:
  /// Combines each element on the left with the one on the right `distance` positions later.
  constexpr vec<value_id> joined(const vec<value_id>& left, const vec<value_id>& right, int d,
                                 std::int64_t distance) const {
    if (c.failed()) return left;
    const std::int64_t most = extents(right)[d] - distance, have = extents(left)[d];
    const std::int64_t count = most < have ? most : have;
    return combined(op_detail::cut(c.b, left, d, 0, count),
                    op_detail::cut(c.b, right, d, distance, distance + count));
  }
  constexpr void pad(vec<value_id>& xs, int d, const window_dim& w) const {
    const auto rank = static_cast<std::size_t>(extents(xs).rank);
    std::int64_t low[max_rank] = {}, high[max_rank] = {}, interior[max_rank] = {};
    low[d] = w.low, high[d] = w.high, interior[d] = w.base_dilation - 1;
    for (std::size_t i = 0; i < n && !c.failed(); ++i)
      xs[i] = ops::pad(c.b, xs[i], c.x(n + i), {low, rank}, {high, rank}, {interior, rank});
  }
};

/// Reads `reduce` of n tensors by a program that combines any of their elements, in order.
///
/// Errors    H009 an op of the program does not work element by element, H012 its arguments
constexpr void fold(op_context& c, ops::ints dims) {
  const folder f(c);
  if (c.failed() || !f.fits()) return;
  vec<value_id> xs = f.tensors();
  shape rest;
  bool none = false;
  for (int d = 0; d < f.extents(xs).rank; ++d) {
    bool reduced = false;
    for (auto each : dims) reduced = reduced || each == d;
    if (!reduced) rest.push_back(f.extents(xs)[d]);
    none = none || (reduced && f.extents(xs)[d] == 0);
  }
  for (auto d : dims)
    if (d < 0 || d >= f.extents(xs).rank)
      return c.fail("H005", "dimension ", d, " is out of range of ", c.type(0));
  if (none) {  // Nothing to combine.
    for (std::size_t i = 0; i < f.n; ++i)
      c.give(ops::broadcast_in_dim(c.b, c.x(f.n + i), rest, {}));
    return;
  }
  if (vec<std::int64_t> code, results; op::scalar_function::encode(c.regions[0], code, results)) {
    // (The initial values may not be identities, and no dimension is empty.)
    const value_id first = ops::fold(c.b, {xs.data(), xs.size()}, dims, {}, false, c.regions[0]);
    for (std::size_t i = 0; i < f.n && first >= 0; ++i) xs[i] = first + static_cast<int>(i);
    if (!c.failed()) f.give(xs);
    return;
  }
  // (The last dimensions come first, so that elements are combined in row-major order.)
  for (std::size_t i = dims.size(); i > 0; --i) f.reduce(xs, static_cast<int>(dims[i - 1]));
  for (value_id& x : xs) x = ops::reshape(c.b, x, rest);
  if (!c.failed()) f.give(xs);
}
/// The same for `reduce_window`.
constexpr void fold_windows(op_context& c, const vec<window_dim>& windows) {
  const folder f(c);
  if (c.failed() || !f.fits()) return;
  vec<value_id> xs = f.tensors();
  for (std::size_t d = windows.size(); d > 0 && !c.failed(); --d) {
    const window_dim& w = windows[d - 1];
    const bool positive = w.size > 0 && w.stride > 0 && w.base_dilation > 0 && w.dilation > 0;
    if (!positive || !w.fits(f.extents(xs)[static_cast<int>(d - 1)]))
      return c.fail("H005", "sizes, strides and dilations of windows must be positive and below ",
                    max_elements);
    f.slide(xs, static_cast<int>(d - 1), w);
  }
  if (!c.failed()) f.give(xs);
}

}  // namespace partita::stablehlo_detail
