/// Ops that create or move elements.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail::elements {

constexpr void constant(const op_elements& c) {
  const element x = number_of_bits(c.type(), c.attrs[0]);
  c.fill([&](const place&) { return x; });
}
constexpr void literal(const op_elements& c) {
  for_each_place(c.made[0].shape, [&](const place&, std::int64_t n) {
    c.results[0][n] = number_of_bits(c.type(), c.attrs[static_cast<std::size_t>(n)]);
  });
}
constexpr void iota(const op_elements& c) {
  const auto dim = static_cast<int>(c.attrs[0]);
  c.fill([&](const place& i) {
    if (!is_floating(c.type())) return integer(c.type(), i[dim]);
    const auto v = static_cast<double>(i[dim]);
    return is_of_type(c.type(), v) ? real(v)
                                   : c.a.convert(dtype::i64, c.type(), integer(dtype::i64, i[dim]));
  });
}
constexpr void broadcast(const op_elements& c) {
  c.fill([&](const place& i) {
    place from;
    for (int d = 0; d < c.shape_of(0).rank; ++d)
      from[d] = c.shape_of(0)[d] == 1 ? 0 : i[static_cast<int>(c.attrs[d])];
    return c.read(0, from);
  });
}
constexpr void transpose(const op_elements& c) {
  c.fill([&](const place& i) {
    place from;
    for (int d = 0; d < c.shape_of(0).rank; ++d) from[static_cast<int>(c.attrs[d])] = i[d];
    return c.read(0, from);
  });
}
constexpr void slice(const op_elements& c) {
  const int rank = c.shape_of(0).rank;
  c.fill([&](const place& i) {
    place from;
    for (int d = 0; d < rank; ++d) {
      const op::slice::bounds at(c.attrs.data(), c.attrs.size(), rank, d);
      from[d] = at.start + i[d] * at.stride;
    }
    return c.read(0, from);
  });
}
constexpr void reverse(const op_elements& c) {
  c.fill([&](const place& i) {
    place from = i;
    for (auto d : c.attrs)
      from[static_cast<int>(d)] = c.shape_of(0)[static_cast<int>(d)] - 1 - i[static_cast<int>(d)];
    return c.read(0, from);
  });
}
constexpr void roll(const op_elements& c) {
  const auto dim = static_cast<int>(c.attrs[0]);
  const std::int64_t n = c.shape_of(0)[dim];
  c.fill([&](const place& i) {
    place from = i;
    from[dim] = ((i[dim] - c.attrs[1] % n) % n + n) % n;
    return c.read(0, from);
  });
}
constexpr void pad(const op_elements& c) {
  const shape& s = c.shape_of(0);
  c.fill([&](const place& i) {
    place from;
    for (int d = 0; d < s.rank; ++d) {
      const std::int64_t at = i[d] - c.attrs[d], step = c.attrs[2 * s.rank + d] + 1;
      from[d] = at / step;
      if (at < 0 || at % step != 0 || from[d] >= s[d]) return c.operands[1][0];
    }
    return c.read(0, from);
  });
}
constexpr void concatenate(const op_elements& c) {
  const auto dim = static_cast<int>(c.attrs[0]);
  c.fill([&](const place& i) {
    place from = i;
    int operand = 0;
    for (; from[dim] >= c.shape_of(operand)[dim]; ++operand) from[dim] -= c.shape_of(operand)[dim];
    return c.read(operand, from);
  });
}
/// Reshapes and tags: the same elements in the same order.
constexpr void same(const op_elements& c) {
  for_each_place(c.made[0].shape,
                 [&](const place&, std::int64_t n) { c.results[0][n] = c.operands[0][n]; });
}
/// An element of a wide type consists of several of a narrow one.
constexpr void bitcast(const op_elements& c) {
  const dtype from = c.types[0].element, to = c.type();
  const std::int64_t have = size_of(from), want = size_of(to);
  const std::int64_t parts = have > want ? have / want : 1, joined = want > have ? want / have : 1;
  for_each_place(c.made[0].shape, [&](const place&, std::int64_t n) {
    vec<element> of;
    for (std::int64_t k = 0; k < joined; ++k) of.push_back(c.operands[0][n / parts * joined + k]);
    c.results[0][n] =
        from == to ? of[0]
                   : c.a.function(c.def.id, from, to, of, static_cast<std::uint64_t>(n % parts));
  });
}

}  // namespace partita::prove_detail::elements
