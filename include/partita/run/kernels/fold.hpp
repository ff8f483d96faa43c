/// fold: a function of scalars, step by step on all lines at once.
#pragma once

#include <cstring>
#include <vector>

#include <partita/op/fold.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/movement.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// The lines of a fold, and what each step makes of them. 16-bit floats are computed in binary32,
/// and rounded where the function converts to them, and at the end.
class fold_lines {
 public:
  fold_lines(const kernel_context& c)
      : c_(c), parts_(c.attrs, c.types.size()), count_(c.result.shape.elements()) {}

  void run() {
    if (count_ == 0) return;
    std::int64_t steps = 1;
    for (auto d : parts_.dims) steps *= c_.types[0].shape[static_cast<int>(d)];
    const std::size_t n = c_.types.size();
    for (std::size_t i = 0; i < n; ++i) lines_.push_back(packed(i));
    for (std::size_t i = 0; i < 2 * n; ++i) value(c_.types[i % n].element);
    for (std::size_t i = 0; i < n; ++i)
      if (steps == 0)
        fill(values_[i], parts_.identities.subspan(i, 1));
      else
        load(i, 0, values_[i]);
    for (std::int64_t k = 1; k < steps; ++k) combine(k);
    for (std::size_t i = 0; i < n; ++i) store(i);
  }

 private:
  struct register_type {
    std::byte* data;
    dtype type, declared;  ///< it is computed in, it is said to be
  };
  const kernel_context& c_;
  const op::fold::parts parts_;
  const std::int64_t count_;
  std::vector<const std::byte*> lines_;
  std::vector<register_type> values_;

  static dtype computed(dtype t) { return is_half(t) ? dtype::f32 : t; }
  std::size_t bytes(dtype t) const { return static_cast<std::size_t>(count_ * size_of(t)); }
  std::int64_t lanes_of() const { return round_up(count_, lanes); }
  register_type& value(dtype t) {
    const tensor_type type{computed(t), {count_}};
    std::byte* data = c_.memory.take(padded_bytes(type));
    std::memset(data, 0, static_cast<std::size_t>(padded_bytes(type)));
    values_.push_back({data, type.element, t});
    return values_.back();
  }
  /// An operand, its reduced dimensions first.
  const std::byte* packed(std::size_t i) const {
    const shape& from = c_.types[i].shape;
    shape to;
    for (int pass = 0; pass < 2; ++pass)
      for (int d = 0; d < from.rank; ++d)
        if (parts_.reduces(d) == (pass == 0)) to.push_back(from[d]);
    const strides s(from), t(to);
    box b;
    int at = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (int d = 0; d < from.rank; ++d)
        if (parts_.reduces(d) == (pass == 0)) b.push_back(from[d], s[d], t[at++]);
    std::byte* copy = c_.memory.take(padded_bytes(c_.types[i]) + 64 * lanes);
    if (from.elements() > 0) b.copy(size_of(c_.types[i].element), c_.operands[i], copy);
    return copy;
  }
  void load(std::size_t i, std::int64_t k, const register_type& to) const {
    const dtype t = c_.types[i].element;
    const std::byte* from = lines_[i] + static_cast<std::size_t>(k) * bytes(t);
    if (!is_half(t)) {
      std::memcpy(to.data, from, bytes(t));
      return;
    }
    const void* in[] = {from};
    widen_function(t)(lanes_of(), in, to.data);
  }
  void store(std::size_t i) const {
    const dtype t = c_.types[i].element;
    if (!is_half(t)) {
      std::memcpy(c_.outs[i], values_[i].data, bytes(t));
      return;
    }
    const void* in[] = {values_[i].data};
    narrow_function(t)(lanes_of(), in, c_.outs[i]);
  }
  void fill(const register_type& to, span<const std::int64_t> bits) const {
    const tensor_type type{to.type, {count_}};
    constant_kernel({{}, type, {bits.data(), 1}, {}, to.data, c_.memory});
  }
  void combine(std::int64_t k) {
    const std::size_t n = c_.types.size();
    for (std::size_t i = 0; i < n; ++i) load(i, k, values_[n + i]);
    op::scalar_function f(parts_.code);
    std::size_t next = 2 * n;
    for (op::scalar_function::step s; f.next(s); ++next) {
      if (next == values_.size())
        value(s.type >= 0 ? static_cast<dtype>(s.type)
                          : values_[static_cast<std::size_t>(-1 - s.type)].declared);
      step(s, values_[next]);
      if (s.def == &def<op::convert> && is_half(values_[next].declared)) round(values_[next]);
    }
    std::vector<std::vector<std::byte>> made;  // (a result may be an input)
    for (auto r : parts_.results) {
      const register_type& from = values_[static_cast<std::size_t>(r)];
      made.emplace_back(from.data, from.data + bytes(from.type));
    }
    for (std::size_t i = 0; i < n; ++i)
      std::memcpy(values_[i].data, made[i].data(), made[i].size());
  }
  void step(const op::scalar_function::step& s, const register_type& to) const {
    if (s.def == &def<op::constant>) return fill(to, s.attrs);
    const void* in[3] = {};
    for (std::size_t i = 0; i < s.operands.size(); ++i)
      in[i] = values_[static_cast<std::size_t>(s.operands[i])].data;
    const dtype last = values_[static_cast<std::size_t>(s.operands.back())].type;
    if (s.def == &def<op::convert> && last == to.type) {
      std::memcpy(to.data, in[0], bytes(to.type));
      return;
    }
    const block_function f = find_block(s.def, {s.attrs.data(), s.attrs.size()}, last, to.type);
    if (f != nullptr)
      f(lanes_of(), in, to.data);
    else if (last == dtype::f64)
      calculate<double>(s.def, in, to.data);
    else
      calculate<float>(s.def, in, to.data);
  }
  void round(const register_type& x) const {
    const tensor_type type{x.declared, {count_}};
    std::vector<std::byte> rounded(static_cast<std::size_t>(padded_bytes(type)));
    const void *wide[] = {x.data}, *narrow[] = {rounded.data()};
    narrow_function(x.declared)(lanes_of(), wide, rounded.data());
    widen_function(x.declared)(lanes_of(), narrow, x.data);
  }
  /// What elsewhere is a link of a chain.
  template <class T>
  void calculate(const op_def* what, const void* const* in, void* out) const {
    const auto *x = static_cast<const T*>(in[0]), *y = static_cast<const T*>(in[1]);
    auto* z = static_cast<T*>(out);
    for (std::int64_t i = 0; i < count_; ++i)
      z[i] = what == &def<op::add>        ? x[i] + y[i]
             : what == &def<op::subtract> ? x[i] - y[i]
             : what == &def<op::multiply> ? x[i] * y[i]
             : what == &def<op::divide>   ? x[i] / y[i]
                                          : -x[i];
  }
};
inline void fold_kernel(const kernel_context& c) { fold_lines(c).run(); }

}  // namespace partita::run_detail
