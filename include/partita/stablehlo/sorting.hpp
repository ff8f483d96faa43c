/// Sorting by any comparison program.
///
/// Source    K. E. Batcher, Sorting networks and their applications (1968)
#pragma once

#include <partita/op/halves.hpp>
#include <partita/stablehlo/folding.hpp>
#include <partita/stablehlo/reducer.hpp>
#include <partita/stablehlo/regions.hpp>

namespace partita::stablehlo_detail {

/// A comparison program of the form f(elements) < f(other elements): the function f.
class compared_key {
 public:
  /// `captured`: the number of inputs that come from outside, which are the last ones.
  constexpr compared_key(const program& p, std::size_t captured)
      : p_(p), own_(p.input_count() - static_cast<int>(captured)) {
    if (p.output_count() != 1 || own_ % 2 != 0) return;
    const value_id v = p.outputs[0].value;
    if (!is_made_by(p, v, def<op::compare>)) return;
    const op_id o = p.producer(v);
    const auto d = static_cast<ops::direction>(p.attrs(o)[0]);
    if (d != ops::direction::lt && d != ops::direction::gt) return;
    for (const bool swapped : {false, true}) {
      int budget = 1000;
      const value_id left = p.operand(o, swapped ? 1 : 0), right = p.operand(o, swapped ? 0 : 1);
      if (!mirrored(left, right, budget)) continue;
      key = left;
      descending = (d == ops::direction::gt) != swapped;
      return;
    }
  }

  value_id key = -1;  ///< the key as a value of the program, or -1
  bool descending = false;

 private:
  const program& p_;
  int own_;

  /// True if replacing each first element in `left` by its second one yields `right`.
  constexpr bool mirrored(value_id left, value_id right, int& budget) const {
    if (--budget < 0) return false;
    const int a = input_of(p_, left), b = input_of(p_, right);
    if (a >= 0 || b >= 0)
      return a == b ? a >= own_ : a >= 0 && a < own_ && a % 2 == 0 && b == a + 1;
    const op_id l = p_.producer(left), r = p_.producer(right);
    if (p_.op(l).def->id != p_.op(r).def->id || p_.type(left) != p_.type(right) ||
        p_.op(l).operand_count != p_.op(r).operand_count ||
        p_.attrs(l).size() != p_.attrs(r).size())
      return false;
    for (std::size_t i = 0; i < p_.attrs(l).size(); ++i)
      if (p_.attrs(l)[i] != p_.attrs(r)[i]) return false;
    for (int i = 0; i < p_.op(l).operand_count; ++i)
      if (!mirrored(p_.operand(l, i), p_.operand(r, i), budget)) return false;
    return true;
  }
};

/// A sorting network: each step compares and swaps all its pairs of elements at once. Elements that
/// compare equal keep their order.
///
/// Cost      log2(n) (log2(n) + 1) / 2 steps for lines of n elements
/// Errors    H009 the program has an op that does not work element by element
class sorting_network {
 public:
  constexpr sorting_network(op_context& c, int dim)
      : c_(c), before_(c, c.regions[0]), n_(c.type(0).shape[dim]) {
    for (int d = 0; d < c.type(0).shape.rank; ++d) {
      if (d < dim) outer_ *= c.type(0).shape[d];
      if (d > dim) inner_ *= c.type(0).shape[d];
    }
    while (padded_ < n_) padded_ *= 2;
  }

  constexpr void give() {
    vec<value_id> xs;
    for (const value_id v : c_.operands) {
      const value_id line = ops::reshape(c_.b, v, {outer_, n_, inner_});
      const std::int64_t none[] = {0, 0, 0}, more[] = {0, padded_ - n_, 0};
      const dtype t = c_.b.type(v).element;
      xs.push_back(padded_ == n_ ? line
                                 : ops::pad(c_.b, line, c_.b.scalar(def<op::constant>, t, 0), none,
                                            more, none));
    }
    // Positions make the order strict; those from n on are padding, which comes last.
    xs.push_back(ops::iota(c_.b, {dtype::i32, {outer_, padded_, inner_}}, 1));
    for (std::int64_t block = 2; block <= padded_ && !c_.failed(); block *= 2) {
      merge(xs, block, true);
      for (std::int64_t part = block / 2; part > 1 && !c_.failed(); part /= 2)
        merge(xs, part, false);
    }
    for (std::size_t i = 0; i < c_.operands.size() && !c_.failed(); ++i)
      c_.give(ops::reshape(c_.b, op_detail::cut(c_.b, xs[i], 1, 0, n_), c_.type(i).shape));
  }

 private:
  op_context& c_;
  const vectorized before_;
  std::int64_t n_, outer_ = 1, inner_ = 1, padded_ = 1;

  /// In each block, compares elements of the first half with those of the second half, reversed if
  /// `crossed`, and keeps the earlier one in the first half.
  constexpr void merge(vec<value_id>& xs, std::int64_t block, bool crossed) const {
    builder& b = c_.b;
    const std::int64_t half = block / 2, count = padded_ / block, along[] = {2};
    vec<value_id> left, right;
    for (const value_id x : xs) {
      const value_id halves = ops::reshape(b, x, {outer_, count, block, inner_});
      left.push_back(op_detail::cut(b, halves, 2, 0, half));
      const value_id second = op_detail::cut(b, halves, 2, half, block);
      right.push_back(crossed && half > 1 ? ops::reverse(b, second, along) : second);
    }
    if (c_.failed()) return;
    const value_id exchanged = comes_before(right, left);
    for (std::size_t i = 0; i < xs.size() && !c_.failed(); ++i) {
      const value_id low = ops::select(b, exchanged, right[i], left[i]);
      const value_id high = ops::select(b, exchanged, left[i], right[i]);
      const value_id parts[] = {low, crossed && half > 1 ? ops::reverse(b, high, along) : high};
      xs[i] = ops::reshape(b, ops::concatenate(b, parts, 2), {outer_, padded_, inner_});
    }
  }
  constexpr value_id compared(const vec<value_id>& x, const vec<value_id>& y) const {
    vec<value_id> inputs;
    for (std::size_t i = 0; i < c_.operands.size(); ++i) {
      inputs.push_back(x[i]);
      inputs.push_back(y[i]);
    }
    inputs.insert_back(c_.captured.begin(), c_.captured.end());
    const vec<value_id> made = before_(c_.b.type(x[0]).shape, inputs);
    return c_.failed() ? -1 : made[0];
  }
  constexpr value_id comes_before(const vec<value_id>& x, const vec<value_id>& y) const {
    builder& b = c_.b;
    using enum ops::direction;
    const value_id earlier = ops::compare(b, lt, x.back(), y.back());
    const value_id equal = ops::logical_not(b, compared(y, x));
    const value_id first = ops::logical_or(b, compared(x, y), ops::logical_and(b, equal, earlier));
    if (padded_ == n_) return first;
    const value_id n = ops::integer(b, dtype::i32, n_);
    const value_id x_is_real = ops::compare(b, lt, x.back(), n);
    const value_id y_is_real = ops::compare(b, lt, y.back(), n);
    return ops::logical_and(b, x_is_real,
                            ops::logical_or(b, ops::logical_not(b, y_is_real), first));
  }
};

/// Sorts by any comparison of scalars. If the program compares the same function of both elements,
/// that key is computed first; otherwise a network sorts.
///
/// Errors    H009 the program has an op that does not work element by element, H012 its arguments
constexpr void sort_by_program(op_context& c, int dim) {
  const program& f = c.regions[0];
  const std::size_t n = c.operands.size();
  if (f.inputs.size() != 2 * n + c.captured.size() || f.output_count() != 1 ||
      f.output_type(0) != tensor_type{dtype::boolean, {}})
    return c.fail("H012", "its program has ", f.inputs.size() - c.captured.size(),
                  " arguments and ", f.output_count(), " results; ", 2 * n,
                  " and one flag are needed");
  for (std::size_t i = 1; i < n; ++i)
    if (!same_shape(c.type(i).shape, c.type(0).shape))
      return c.fail("S187", "shapes ", c.type(0).shape, " and ", c.type(i).shape, " differ");
  if (c.type(0).shape.elements() == 0 || c.type(0).shape[dim] < 2) {
    for (const value_id v : c.operands) c.give(v);
    return;
  }
  const compared_key found(f, c.captured.size());
  if (found.key < 0) return sorting_network(c, dim).give();
  program key = f;
  key.outputs[0].value = found.key;
  vec<value_id> inputs;
  for (const value_id v : c.operands) {
    inputs.push_back(v);
    inputs.push_back(v);
  }
  inputs.insert_back(c.captured.begin(), c.captured.end());
  const vec<value_id> made = vectorized(c, key)(c.type(0).shape, inputs);
  if (c.failed()) return;
  vec<value_id> operands{made[0]};
  operands.insert_back(c.operands.begin(), c.operands.end());
  const value_id first =
      ops::sort(c.b, {operands.data(), operands.size()}, dim, 1, found.descending);
  c.give(first < 0 ? -1 : first + 1, static_cast<int>(n));
}

}  // namespace partita::stablehlo_detail
