/// Tile maps as text, in factor notation.
#pragma once

#include <partita/op/vocabulary.hpp>

namespace partita {

/// Returns the letter of a factor: i, j, k, ..., z, a, ..., h, in the order of the tile map.
constexpr char factor_letter(int factor) {
  return static_cast<char>('a' + ('i' - 'a' + factor) % 26);
}

/// Prints the tile map of op number `op` of a table, whose operands and results have these types.
///
/// A dimension prints as its factors, major to minor: `jkl`. A dimension without factors prints as
/// its size: `3`. If the factors do not cover the dimension, the rest follows: `i*3`. `i~` marks a
/// factor whose iterations read elements of neighbouring or other blocks. `i@` marks a factor whose
/// iterations depend on where their block starts. After the shapes come the reduced factors with
/// their combiner, then the factors whose blocks need their offset, then those whose results are
/// reduced again, then those that carry a running value from earlier blocks.
///
/// ```
/// argmax                ([i, j], [i, j]) -> ([i], [i])  again={j}
/// matmul                ([i, k], [k, j]) -> ([i, j])  reduce={k:add}
/// reshape 4x12 -> 4x2x6 ([i, jk]) -> ([i, j, k])
/// gather                ([j@, k], [i]) -> ([i, k])  reduce={j:add}
/// iota, dim 0           () -> ([i, j])  offset={i}
/// reverse, dim 1        ([i, j~]) -> ([i, j])
/// cumsum, dim 1         ([i, j]) -> ([i, j])  carry={j:add}
/// ```
constexpr text print_tile_map(const factor_table& map, int op, span<const tensor_type> operands,
                              span<const tensor_type> results) {
  text out;
  const auto& row = map.ops[static_cast<std::size_t>(op)];
  const auto dims = [&](const shape& s, int operand) {  // -1 - r: result r
    out << '[';
    append_list(out, s.rank, [&](int d) {
      std::int64_t left = s[d];
      int letters = 0;
      for (int f = 0; f < row.count; ++f) {
        const factor& each = map.at(op, f);
        const int dim =
            operand < 0 ? map.result_dim(each, -1 - operand) : map.operand_dim(each, operand);
        if (dim != d) continue;
        out << factor_letter(f);
        if (each.halo && operand >= 0) out << '~';
        if (each.located) out << '@';
        ++letters;
        if (each.halo)
          left = 1;
        else if (each.size > 0)
          left /= each.size;
      }
      if (letters == 0)
        out << left;
      else if (left > 1)
        out << '*' << left;
    });
    out << ']';
  };
  out << '(';
  append_list(out, static_cast<int>(operands.size()),
              [&](int i) { dims(operands[static_cast<std::size_t>(i)].shape, i); });
  out << ") -> (";
  append_list(out, static_cast<int>(results.size()),
              [&](int r) { dims(results[static_cast<std::size_t>(r)].shape, -1 - r); });
  out << ')';
  bool first = true;
  for (int f = 0; f < row.count; ++f) {
    const factor& each = map.at(op, f);
    if (each.combine == combiner::stack) continue;
    out << (first ? "  reduce={" : ", ") << factor_letter(f) << ':' << name_of(each.combine);
    first = false;
  }
  if (!first) out << '}';
  first = true;
  for (int f = 0; f < row.count; ++f) {
    if (!map.at(op, f).offset) continue;
    out << (first ? "  offset={" : ", ") << factor_letter(f);
    first = false;
  }
  if (!first) out << '}';
  first = true;
  for (int f = 0; f < row.count; ++f) {
    if (!map.at(op, f).again) continue;
    out << (first ? "  again={" : ", ") << factor_letter(f);
    first = false;
  }
  if (!first) out << '}';
  first = true;
  for (int f = 0; f < row.count; ++f) {
    if (map.at(op, f).carry == combiner::stack) continue;
    out << (first ? "  carry={" : ", ") << factor_letter(f) << ':' << name_of(map.at(op, f).carry);
    first = false;
  }
  if (!first) out << '}';
  return out;
}

/// Returns the tile map of one op of a program, as text.
constexpr text tile_map_of(const program& p, op_id o) {
  const op_node& n = p.op(o);
  vec<tensor_type> operands;
  for (value_id v : p.operands(o)) operands.push_back(p.type(v));
  factor_table map;
  const auto attrs = p.attrs(o);
  tile_map_context c(operands, p.type(n.result), attrs.data(), static_cast<int>(attrs.size()), map,
                     n.result_count);
  n.def->tile_map(c);
  return print_tile_map(map, 0, {operands.data(), operands.size()},
                        {&p.type(n.result), static_cast<std::size_t>(n.result_count)});
}

/// Returns the tile map of the op that computes a typed tensor, as text: `tile_map_of(matmul(x,
/// w))`. It can be called in constant evaluation. Returns "" for a tensor that is not part of a
/// trace.
template <class Handle>
requires requires(const Handle& h) {
  h.context()->p;
  h.id();
}
constexpr text tile_map_of(const Handle& h) {
  if (h.context() == nullptr || h.id() < 0) return {};
  return tile_map_of(h.context()->p, h.context()->p.producer(h.id()));
}

}  // namespace partita
