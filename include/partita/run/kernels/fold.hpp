/// The kernel of fold: a function of scalars, evaluated step by step on many lines at once.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include <partita/op/fold.hpp>
#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/movement.hpp>
#include <partita/run/kernels/reduce_precision.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// The steps of a fold's function on `count` elements at once. 16-bit floats are stored in
/// binary32, and are rounded where the function converts to them.
class fold_function {
 public:
  fold_function(const kernel_context& c, const op::fold::parts& parts, std::int64_t count)
      : c_(c), parts_(parts), count_(count) {
    for (int side = 0; side < 2; ++side)
      for (const auto& t : c.types) value(t.element);
    op::scalar_function f(parts.code);
    for (op::scalar_function::step s; f.next(s);) {
      value(s.type >= 0 ? static_cast<dtype>(s.type)
                        : values_[static_cast<std::size_t>(-1 - s.type)].declared);
      steps_.push_back({s, block_of(s), link_of(s), values_.size() - 1});
    }
  }

  /// Returns the elements of operand i on the left (side 0) or right (side 1).
  std::byte* input(std::size_t i, int side) const {
    return values_[i + (side == 0 ? 0 : c_.types.size())].data;
  }
  void fill_with_identity(std::size_t i) const {
    fill(values_[i], parts_.identities.subspan(i, 1));
  }
  /// Combines both sides; the results become the left side.
  void combine() {
    for (const compiled& each : steps_) {
      const register_type& to = values_[each.made];
      run(each, to);
      if (each.s.def == &def<op::convert> && is_half(to.declared)) round(to);
    }
    std::vector<std::vector<std::byte>> made;  // (a result may be an input)
    for (auto r : parts_.results) {
      const register_type& from = values_[static_cast<std::size_t>(r)];
      made.emplace_back(from.data, from.data + bytes(from.type));
    }
    for (std::size_t i = 0; i < made.size(); ++i)
      std::memcpy(values_[i].data, made[i].data(), made[i].size());
  }

 private:
  struct register_type {
    std::byte* data;
    dtype type, declared;  ///< the type it is computed in, and its declared type
  };
  struct compiled {
    op::scalar_function::step s;
    block_function block;
    link as_link;
    std::size_t made;  ///< index of the register that it writes
  };
  const kernel_context& c_;
  const op::fold::parts& parts_;
  const std::int64_t count_;
  std::vector<register_type> values_;
  std::vector<compiled> steps_;

  std::size_t bytes(dtype t) const { return static_cast<std::size_t>(count_ * size_of(t)); }
  std::int64_t lanes_of() const { return round_up(count_, lanes); }
  void value(dtype t) {
    const tensor_type type{is_half(t) ? dtype::f32 : t, {count_}};
    std::byte* data = c_.memory.take(padded_bytes(type));
    std::memset(data, 0, static_cast<std::size_t>(padded_bytes(type)));
    values_.push_back({data, type.element, t});
  }
  void fill(const register_type& to, span<const std::int64_t> bits) const {
    const tensor_type type{to.type, {count_}};
    constant_kernel({{}, type, {bits.data(), 1}, {}, to.data, c_.memory});
  }
  const register_type& last_operand(const op::scalar_function::step& s) const {
    return values_[static_cast<std::size_t>(s.operands.back())];
  }
  block_function block_of(const op::scalar_function::step& s) const {
    if (s.operands.empty()) return nullptr;
    const dtype last = last_operand(s).type, to = values_.back().type;
    if (s.def == &def<op::convert> && last == to) return nullptr;
    return find_block(s.def, {s.attrs.data(), s.attrs.size()}, last, to);
  }
  link link_of(const op::scalar_function::step& s) const {
    return s.operands.empty() ? link::none : run_detail::link_of(s.def, last_operand(s).type);
  }
  void run(const compiled& each, const register_type& to) const {
    const op::scalar_function::step& s = each.s;
    if (s.def == &def<op::constant>) return fill(to, s.attrs);
    void* in[3] = {};
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      in[i] = values_[static_cast<std::size_t>(s.operands[i])].data;
    if (each.as_link != link::none) return run_link(each.as_link, to, in);
    if (each.block != nullptr) return each.block(lanes_of(), in, to.data);
    if (s.def == &def<op::convert>) {
      std::memcpy(to.data, in[0], bytes(to.type));
      return;
    }
    if (s.def == &def<op::reduce_precision>)
      return round_to(s.attrs, static_cast<const std::byte*>(in[0]), to);
    throw error(concat("P001 internal error: fold cannot compute ", s.def->name, " of ",
                       name_of(last_operand(s).type), "; please report"));
  }
  void round_to(span<const std::int64_t> attrs, const std::byte* from,
                const register_type& to) const {
    const tensor_type type{to.type, {count_}};
    const std::byte* in[] = {from};
    reduce_precision_kernel({{}, type, {attrs.data(), attrs.size()}, in, to.data, c_.memory});
  }
  void round(const register_type& x) const {
    const tensor_type type{x.declared, {count_}};
    std::vector<std::byte> rounded(static_cast<std::size_t>(padded_bytes(type)));
    const void *wide[] = {x.data}, *narrow[] = {rounded.data()};
    narrow_function(x.declared)(lanes_of(), wide, rounded.data());
    widen_function(x.declared)(lanes_of(), narrow, x.data);
  }
  /// Runs a chain of one link that computes `to` from one or two operands.
  void run_link(link what, const register_type& to, void* const* in) const {
    const chain_link links[] = {
        {link::load, in[0], 1, 0}, {what, in[1], 1, 0}, {link::store, to.data, 1, 0}};
    run_chain(to.type, 1, lanes_of(), links, 3);
  }
};

/// Reduces the rows of each operand: `rows_` rows of `columns_` elements to one row. With few
/// columns, the rows are divided into consecutive parts, placed next to each other. These are
/// combined at once and then with each other: always in order, so that the function need not
/// commute.
class fold_lines {
 public:
  explicit fold_lines(const kernel_context& c)
      : c_(c), parts_(c.attrs, c.types.size()), columns_(c.result.shape.elements()) {}

  void run() {
    if (columns_ == 0) return;
    for (auto d : parts_.dims) rows_ *= c_.types[0].shape[static_cast<int>(d)];
    for (std::size_t i = 0; i < c_.types.size(); ++i) data_.push_back(packed(i));
    while (parts() > 1) halve(parts());
    const std::vector<std::byte*> made = reserve(columns_);
    for (std::int64_t at = 0; at < columns_; at += most_lanes) {
      const std::int64_t width = std::min(most_lanes, columns_ - at);
      fold_function f(c_, parts_, width);
      reduce(f, data_, rows_, columns_, at, width, made, at);
    }
    for (std::size_t i = 0; i < data_.size(); ++i) store(i, made[i]);
  }

 private:
  static constexpr std::int64_t most_lanes = 1024;  // registers that stay in the caches
  const kernel_context& c_;
  const op::fold::parts parts_;
  const std::int64_t columns_;
  std::int64_t rows_ = 1;
  std::vector<const std::byte*> data_;  ///< by operand; 16-bit floats in binary32

  dtype computed_type(std::size_t i) const { return computed(c_.types[i].element); }
  std::int64_t size(std::size_t i) const { return size_of(computed_type(i)); }
  std::int64_t parts() const { return std::min(most_lanes / columns_, rows_ / 2); }
  std::byte* memory(dtype t, std::int64_t elements) const {
    return c_.memory.take(padded_bytes({t, {elements}}));
  }
  std::vector<std::byte*> reserve(std::int64_t elements) const {
    std::vector<std::byte*> list;
    for (std::size_t i = 0; i < c_.types.size(); ++i)
      list.push_back(memory(computed_type(i), elements));
    return list;
  }

  /// Returns an operand with its reduced dimensions first; 16-bit floats in binary32.
  const std::byte* packed(std::size_t i) const {
    const auto& [element, from] = c_.types[i];
    int order[max_rank], at = 0;
    for (const bool reduced : {true, false})
      for (int d = 0; d < from.rank; ++d)
        if (parts_.reduces(d) == reduced) order[at++] = d;
    const std::byte* x = in_order(element, from, order, nullptr, c_.operands[i], c_.memory);
    return widened(element, x, rows_ * columns_, c_.memory);
  }
  void store(std::size_t i, const std::byte* x) const {
    const dtype t = c_.types[i].element;
    if (is_half(t))
      narrow(t, x, columns_, c_.outs[i]);
    else
      std::memcpy(c_.outs[i], x, static_cast<std::size_t>(columns_ * size_of(t)));
  }

  /// Reduces the rows to `count` rows, each the combination of a part of them, plus the remaining
  /// rows.
  void halve(std::int64_t count) {
    const std::int64_t each = rows_ / count, left = rows_ - each * count;
    const std::vector<std::byte*> to = reserve((count + left) * columns_);
    std::vector<std::byte*> turned = reserve(each * count * columns_);
    for (std::size_t i = 0; i < data_.size(); ++i) {
      box b;  // (part, row, column) to (row, part, column)
      b.push_back(count, each * columns_, columns_);
      b.push_back(each, columns_, count * columns_);
      b.push_back(columns_, 1, 1);
      b.copy(size(i), data_[i], turned[i]);
      std::memcpy(to[i] + count * columns_ * size(i), data_[i] + each * count * columns_ * size(i),
                  static_cast<std::size_t>(left * columns_ * size(i)));
    }
    const std::int64_t width = count * columns_;
    fold_function f(c_, parts_, width);
    reduce(f, {turned.begin(), turned.end()}, each, width, 0, width, to, 0);
    data_.assign(to.begin(), to.end());
    rows_ = count + left;
  }
  /// Combines rows that are `stride` elements apart, each with `width` elements from `from` on, and
  /// writes the result to `at` in `to`.
  void reduce(fold_function& f, const std::vector<const std::byte*>& data, std::int64_t rows,
              std::int64_t stride, std::int64_t from, std::int64_t width,
              const std::vector<std::byte*>& to, std::int64_t at) const {
    const auto load = [&](std::int64_t row, int side) {
      for (std::size_t i = 0; i < data.size(); ++i)
        std::memcpy(f.input(i, side), data[i] + (row * stride + from) * size(i),
                    static_cast<std::size_t>(width * size(i)));
    };
    if (rows > 0) load(0, 0);
    for (std::size_t i = 0; rows == 0 && i < data.size(); ++i) f.fill_with_identity(i);
    for (std::int64_t k = 1; k < rows; ++k) {
      load(k, 1);
      f.combine();
    }
    for (std::size_t i = 0; i < data.size(); ++i)
      std::memcpy(to[i] + at * size(i), f.input(i, 0), static_cast<std::size_t>(width * size(i)));
  }
};
inline void fold_kernel(const kernel_context& c) { fold_lines(c).run(); }

}  // namespace partita::run_detail
