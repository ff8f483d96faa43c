/// Decompositions of matrices, and equations.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail::elements {

/// A random number for `count` elements of matrices.
constexpr fingerprint drawn_of(const element* first, std::int64_t count) {
  drawing d(0x3a);
  for (std::int64_t k = 0; k < count; ++k) d.add(first[k].of);
  return d.drawn();
}
/// Matrices in the last two dimensions; each result is a function of all elements.
constexpr void cholesky(const op_elements& c) {
  const shape& s = c.shape_of(0);
  const std::int64_t size = s[s.rank - 1] * s[s.rank - 2];
  fingerprint matrix;
  for_each_place(c.made[0].shape, [&](const place&, std::int64_t n) {
    if (n % size == 0) matrix = drawn_of(c.operands[0] + n, size);
    drawing d = drawing_of(c);
    d.add(c.attrs[0]).add(n % size).add(size).add(matrix);
    c.results[0][n] = formula(c.type(), d.drawn());
  });
  c.a.steps += c.made[0].shape.elements();
}
/// Each column (or row) separately.
constexpr void triangular_solve(const op_elements& c) {
  const shape &as = c.shape_of(0), &bs = c.shape_of(1);
  const int line = c.attrs[0] != 0 ? bs.rank - 2 : bs.rank - 1;
  const std::int64_t size = as[as.rank - 1] * as[as.rank - 2],
                     others = bs[bs.rank - 1] * bs[bs.rank - 2];
  fingerprint matrix;
  for_each_place(bs, [&](place i, std::int64_t n) {
    if (n % others == 0) matrix = drawn_of(c.operands[0] + n / others * size, size);
    if (i[line] > 0 || c.a.is_over()) return;
    drawing d = drawing_of(c);
    for (auto each : c.attrs) d.add(each);
    d.add(matrix).add(size);
    for (; i[line] < bs[line]; ++i[line]) d.add(c.read(1, i).of);
    for (i[line] = 0; i[line] < bs[line]; ++i[line]) {
      drawing of_line = d;
      c.results[0][number_of(i, bs)] = formula(c.type(), of_line.add(i[line]).drawn());
    }
    c.a.steps += bs[line];
  });
}

}  // namespace partita::prove_detail::elements
