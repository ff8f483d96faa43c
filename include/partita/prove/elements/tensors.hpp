/// Tensors of elements, as ops see them.
#pragma once

#include <partita/ir/program.hpp>
#include <partita/prove/elements/algebra.hpp>

namespace partita::prove_detail {

/// A value of a program on all devices, tensor by tensor, in row-major order.
struct tensors {
  tensor_type type;
  vec<element> all;

  constexpr std::int64_t size() const { return type.shape.elements(); }
  constexpr const element* on(std::int64_t device) const { return all.data() + device * size(); }
  constexpr element* on(std::int64_t device) { return all.data() + device * size(); }
};
constexpr tensors no_elements_yet(const tensor_type& t, std::int64_t devices) {
  tensors made{t, {}};
  made.all.resize(static_cast<std::size_t>(t.shape.elements() * devices));
  return made;
}

/// A place in a tensor.
struct place {
  std::int64_t at[max_rank] = {};

  constexpr std::int64_t& operator[](int d) { return at[d]; }
  constexpr std::int64_t operator[](int d) const { return at[d]; }
};
constexpr std::int64_t number_of(const place& i, const shape& s) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) n = n * s.extents[d] + i.at[d];
  return n;
}
constexpr bool lies_in(const place& i, const shape& s) {
  for (int d = 0; d < s.rank; ++d)
    if (i[d] >= s[d]) return false;
  return true;
}
/// Visits all positions of a shape, in row-major order.
template <class F>
constexpr void for_each_place(const shape& s, const F& f) {
  const std::int64_t count = s.elements();
  place i;
  for (std::int64_t n = 0; n < count; ++n) {
    f(i, n);
    for (int d = s.rank; d-- > 0;) {
      if (++i.at[d] < s.extents[d]) break;
      i.at[d] = 0;
    }
  }
}

/// An op on one device: its operands, and its results to be filled in.
struct op_elements {
  algebra& a;
  const op_def& def;
  span<const std::int64_t> attrs;
  vec<tensor_type> types;  ///< of operands
  vec<const element*> operands;
  vec<tensor_type> made;  ///< types of results
  vec<element*> results;

  constexpr const shape& shape_of(int operand) const { return types[operand].shape; }
  constexpr dtype type() const { return made[0].element; }
  constexpr const element& read(int operand, const place& i) const {
    return operands[operand][number_of(i, types[operand].shape)];
  }
  /// Fills the first result, element by element. (Empty after too many steps.)
  template <class F>
  constexpr void fill(const F& f) const {
    for_each_place(made[0].shape, [&](const place& i, std::int64_t n) {
      if (!a.is_over()) results[0][n] = f(i);
    });
  }
};

namespace elements {
/// An op with its types.
constexpr drawing drawing_of(const op_elements& c) {
  drawing d(c.def.id);
  for (const auto& t : c.types) d.add(static_cast<int>(t.element));
  return d;
}

}  // namespace elements

}  // namespace partita::prove_detail
