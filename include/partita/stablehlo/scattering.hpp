/// Scatters of several tensors, and by any function.
#pragma once

#include <partita/op/fold.hpp>
#include <partita/op/scan.hpp>
#include <partita/stablehlo/attributes.hpp>
#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/reducer.hpp>

namespace partita::stablehlo_detail {

/// The effect of an update on an element, if the result depends on nothing else.
enum class update_kind { keeps, assigns, combines, other };

/// One result of the program of a scatter of n tensors, as a program of inputs i and n + i: an
/// element and its update.
class scatter_part {
 public:
  update_kind kind = update_kind::other;
  combiner how = combiner::add;

  constexpr scatter_part() = default;
  constexpr scatter_part(const program& f, int i) {
    const int n = f.output_count();
    const value_id v = f.outputs[i].value;
    needed_.resize(f.types.size(), 0);
    need(f, v);
    for (int k = 0; k < f.input_count(); ++k)
      if (is_needed(f.inputs[k]) && k != i && k != n + i) return;
    if (v == f.inputs[i]) kind = update_kind::keeps;
    if (v == f.inputs[n + i]) kind = update_kind::assigns;
    if (kind == update_kind::other && find_combiner(alone(f, i, v), how))
      kind = update_kind::combines;
  }

 private:
  vec<char> needed_;  ///< by value

  constexpr bool is_needed(value_id v) const { return needed_[static_cast<std::size_t>(v)] != 0; }
  constexpr void need(const program& f, value_id last) {
    needed_[static_cast<std::size_t>(last)] = 1;
    for (op_id o = f.op_count(); o-- > 0;) {
      const op_node& n = f.op(o);
      bool wanted = false;
      for (int r = 0; r < n.result_count; ++r) wanted = wanted || is_needed(n.result + r);
      if (!wanted || f.is(o, op_role::parameter)) continue;
      for (value_id v : f.operands(o)) needed_[static_cast<std::size_t>(v)] = 1;
    }
  }
  constexpr program alone(const program& f, int i, value_id v) const {
    builder b;
    vec<value_id> here(f.types.size(), -1);
    for (int k : {i, f.output_count() + i})
      here[static_cast<std::size_t>(f.inputs[k])] = ops::parameter(b, "", f.input_type(k));
    for (op_id o = 0; o < f.op_count(); ++o) {
      const op_node& n = f.op(o);
      if (f.is(o, op_role::parameter) || n.result_count != 1 || !is_needed(n.result)) continue;
      vec<value_id> operands;
      for (value_id x : f.operands(o)) operands.push_back(here[static_cast<std::size_t>(x)]);
      here[static_cast<std::size_t>(n.result)] =
          b.emit(*n.def, {operands.data(), operands.size()}, f.attrs(o), f.type(n.result));
    }
    const value_id made = here[static_cast<std::size_t>(v)];
    if (!b.failed() && made >= 0) b.p.outputs.push_back({made, {}});
    return static_cast<program&&>(b.p);
  }
};

/// A loop that applies updates in sequence, in the order of their index vectors, by any function of
/// scalars. Each iteration reads, combines and writes a window of each tensor.
///
/// Cost      one iteration per window
/// Errors    H009 an op of the program does not work element by element
class scatter_loop {
 public:
  /// `lists` are those of dimension_numbers.
  constexpr scatter_loop(op_context& c, const vec<std::int64_t> (&lists)[5],
                         std::int64_t vector_dim, value_id indices)
      : c_(c), n_(c.operands.size() / 2), vector_dim_(vector_dim) {
    c.operands[n_] = indices;
    const shape from = c.b.type(indices).shape;
    for (int d = 0; d < from.rank; ++d)
      if (d != vector_dim) batch_.push_back(from[d]);
    for (const auto& list : lists) lists_.push_back(list);
    if (fits()) starts_ = flat_starts(indices);
  }

  /// Emits the loop and returns the updated tensors as results of the op.
  constexpr void give() {
    vec<std::int64_t> code, results;
    if (const op_def* other = op::scalar_function::unsupported_op(c_.regions[0]); other != nullptr)
      return c_.fail("H009", "its program uses ", other->name,
                     ", which does not work element by element");
    if (!op::scalar_function::encode(c_.regions[0], code, results) || !fits()) return;
    const vec<value_id>& constants = c_.captured;
    vec<value_id> carried, sliced{starts_};
    for (std::size_t i = 0; i < n_; ++i) {
      carried.push_back(c_.x(i));
      sliced.push_back(flat_updates(c_.x(n_ + 1 + i)));
    }
    if (c_.failed()) return;
    const std::int64_t count = batch_.elements();
    builder body;
    step(body, carried, sliced, code, results);
    c_.b.p.error.record(body.p.error);
    if (c_.failed()) return;
    c_.give(ops::scan(c_.b, count, false, {constants.data(), constants.size()},
                      {carried.data(), carried.size()}, {sliced.data(), sliced.size()},
                      static_cast<program&&>(body.p)),
            static_cast<int>(n_));
  }

 private:
  op_context& c_;
  const std::size_t n_;
  const std::int64_t vector_dim_;
  shape batch_;  ///< of the indices
  vec<vec<std::int64_t>> lists_;
  value_id starts_ = -1;

  /// Errors    S103 shapes of tensors differ, S112 updates do not fit, S139 dimension numbers
  constexpr bool fits() {
    if (c_.failed()) return false;
    const auto attrs = op::encode({as_ints(lists_[0]), as_ints(lists_[1]), as_ints(lists_[2]),
                                   as_ints(lists_[3]), as_ints(lists_[4]), vector_dim_});
    const shape &to = c_.type(0).shape, &from = c_.type(n_).shape;
    const op::gather_dims dims(as_ints(attrs), to, from);
    if (!dims.fault.empty()) c_.fail("S139", dims.fault, " for ", c_.type(0), " and ", c_.type(n_));
    for (std::size_t i = 0; i < n_; ++i) {
      if (!same_shape(c_.type(i).shape, to))
        c_.fail("S103", "shapes ", to, " and ", c_.type(i).shape, " differ");
      if (c_.type(n_ + 1 + i).shape.rank != dims.result_rank)
        c_.fail("S112", "updates ", c_.type(n_ + 1 + i), " are not windows of ", c_.type(0));
    }
    return !c_.failed();
  }

  /// Returns (windows, starts); batching dimensions of the operand also have a start.
  constexpr value_id flat_starts(value_id indices) {
    builder& b = c_.b;
    const dtype t = b.type(indices).element;
    shape one{batch_.elements(), 1};
    vec<value_id> columns;
    for (std::size_t k = 0; k < lists_[4].size(); ++k)
      columns.push_back(ops::reshape(b, column(indices, static_cast<std::int64_t>(k)), one));
    for (auto partner : lists_[3]) {
      const auto place = static_cast<int>(partner > vector_dim_ ? partner - 1 : partner);
      if (place >= batch_.rank) return -1;
      columns.push_back(ops::reshape(b, ops::iota(b, {t, batch_}, place), one));
    }
    if (columns.empty()) return ops::constant(b, {t, {batch_.elements(), 0}}, 0);
    return ops::concatenate(b, {columns.data(), columns.size()}, 1);
  }
  constexpr value_id column(value_id indices, std::int64_t k) const {
    const shape all = c_.b.type(indices).shape;
    if (vector_dim_ == all.rank) return indices;
    vec<std::int64_t> start(static_cast<std::size_t>(all.rank), 0), limit;
    for (int d = 0; d < all.rank; ++d) limit.push_back(all[d]);
    start[static_cast<std::size_t>(vector_dim_)] = k;
    limit[static_cast<std::size_t>(vector_dim_)] = k + 1;
    return ops::slice(c_.b, indices, {start.data(), start.size()}, {limit.data(), limit.size()});
  }
  constexpr bool in(const vec<std::int64_t>& list, std::int64_t n) const {
    for (auto each : list)
      if (each == n) return true;
    return false;
  }
  /// Returns (windows, window...).
  constexpr value_id flat_updates(value_id updates) const {
    if (updates < 0) return -1;
    const shape from = c_.b.type(updates).shape;
    vec<std::int64_t> order;
    shape to{batch_.elements()};
    for (int d = 0; d < from.rank; ++d)
      if (!in(lists_[0], d)) order.push_back(d);
    for (int d = 0; d < from.rank; ++d)
      if (in(lists_[0], d)) {
        order.push_back(d);
        to.push_back(from[d]);
      }
    return ops::reshape(c_.b, ops::transpose(c_.b, updates, {order.data(), order.size()}), to);
  }
  /// Emits one iteration, for one window of each tensor.
  constexpr void step(builder& b, const vec<value_id>& carried, const vec<value_id>& sliced,
                      const vec<std::int64_t>& code, const vec<std::int64_t>& results) const {
    ops::parameter(b, "", {dtype::i32, {}});
    vec<value_id> captured, tensors, given;
    for (value_id v : c_.captured) captured.push_back(ops::parameter(b, "", c_.b.type(v)));
    for (value_id v : carried) tensors.push_back(ops::parameter(b, "", c_.b.type(v)));
    for (value_id v : sliced)
      given.push_back(ops::parameter(b, "", op::scan::slice_of(c_.b.type(v))));
    vec<std::int64_t> windows, collapsed, map = lists_[4];
    map.insert_back(lists_[2].begin(), lists_[2].end());
    const shape first = b.type(tensors[0]).shape;
    vec<std::int64_t> sizes;
    const shape window = b.type(given[1]).shape;
    for (int d = 0, next = 0; d < first.rank; ++d) {
      const bool single = in(lists_[1], d) || in(lists_[2], d);
      if (single) collapsed.push_back(d);
      if (!single) windows.push_back(next);
      sizes.push_back(single ? 1 : next < window.rank ? window[next] : 0);
      next += !single;
    }
    const ops::gather_dimensions numbers{windows, collapsed, {}, {}, map, 0};
    vec<value_id> values;
    for (value_id x : tensors)
      values.push_back(ops::gather(b, x, given[0], numbers, {sizes.data(), sizes.size()}));
    values.insert_back(given.begin() + 1, given.end());
    values.insert_back(captured.begin(), captured.end());
    op::scalar_function f({code.data(), code.size()});
    if (b.failed() || !f.emit(b, values)) return;
    for (std::size_t i = 0; i < n_; ++i) {
      value_id made = values[static_cast<std::size_t>(results[i])];
      if (b.type(made).shape.rank != window.rank) made = ops::broadcast_in_dim(b, made, window, {});
      b.p.outputs.push_back(
          {ops::scatter(b, ops::scatter_update::assign, tensors[i], given[0], made, numbers), {}});
    }
  }
};

}  // namespace partita::stablehlo_detail
