/// Index classes: the digits of all dimensions of a source and its local program, and of the axes.
#pragma once

#include <string_view>

#include <partita/op/registry.hpp>
#include <partita/prove/shrink/digits.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita::prove_detail {

/// How an op treats the indices of its dimensions.
enum class index_rule : std::uint8_t {
  by_factors,  ///< stacked and reduced as its tile map says
  by_blocks,   ///< slice, pad, concatenate: whole blocks of positions are moved
  by_lookup,   ///< gather, scatter: positions are compared with numbers
  by_window,   ///< convolution: positions under taps
  by_lines,    ///< stacked as its tile map says; other dimensions are kept
  exchanged,   ///< collectives
  passed,      ///< results are operands
  whole        ///< all dimensions are kept
};
constexpr index_rule index_rule_of(const op_node& n, span<const std::int64_t> attrs, dtype t) {
  if (n.def->passes_on || n.def->identity) return index_rule::passed;
  if (n.def->collective) return index_rule::exchanged;
  const std::uint64_t id = n.def->id;
  if (n.def->elementwise) return index_rule::by_factors;
  for (const std::uint64_t each :
       {def<op::constant>.id, def<op::iota>.id, def<op::broadcast_in_dim>.id, def<op::transpose>.id,
        def<op::reshape>.id, def<op::dot_general>.id, def<op::shard_start>.id})
    if (id == each) return index_rule::by_factors;
  if (id == def<op::reduce>.id && !op::reduce::with_position(attrs)) {
    const auto how = static_cast<combiner>(attrs[0]);
    const bool extreme = how == combiner::max || how == combiner::min;
    return (how == combiner::add && t != dtype::boolean) || (extreme && is_floating(t))
               ? index_rule::by_factors
               : index_rule::by_lines;
  }
  for (const std::uint64_t each : {def<op::slice>.id, def<op::pad>.id, def<op::concatenate>.id})
    if (id == each) return index_rule::by_blocks;
  if (id == def<op::gather>.id && t != dtype::boolean) return index_rule::by_lookup;
  if (id == def<op::scatter>.id && t != dtype::boolean)
    return op::scatter::update_of(attrs) == ops::scatter_update::add ? index_rule::by_lookup
                                                                     : index_rule::by_lines;
  if (id == def<op::convolution>.id) return index_rule::by_window;
  for (const std::uint64_t each :
       {def<op::reverse>.id, def<op::roll>.id, def<op::cumsum>.id, def<op::sort>.id,
        def<op::top_k>.id, def<op::reduce>.id, def<op::reduce_window>.id,
        def<op::select_and_scatter>.id, def<op::select_and_gather>.id, def<op::dynamic_slice>.id,
        def<op::dynamic_update_slice>.id, def<op::fold>.id, def<op::cholesky>.id,
        def<op::triangular_solve>.id, def<op::gather>.id, def<op::scatter>.id})
    if (id == each) return index_rule::by_lines;
  return index_rule::whole;
}
/// True if the loop over a factor only stacks slices, or reduces them.
constexpr bool is_plain(const factor& f) {
  return !f.offset && !f.halo && !f.located && !f.again && f.carry == combiner::stack;
}

/// The digits of all dimensions of a program.
struct program_digits {
  vec<int> first;  ///< by value: the place of its dimensions in `nodes`
  vec<int> nodes;

  constexpr program_digits(const program& p, digit_forest& f) {
    for (const tensor_type& t : p.types) {
      first.push_back(static_cast<int>(nodes.size()));
      for (const auto extent : t.shape) nodes.push_back(f.make(extent));
    }
  }
  constexpr int at(value_id v, int dim) const { return nodes[first[v] + dim]; }
};

/// Ties digits by the ops of both programs, by collectives, and by the layouts of inputs and
/// outputs. A dimension that an op treats in any other way than its rule says is kept.
class index_classes {
 public:
  digit_forest forest;
  program_digits of_source, of_local;
  vec<int> axes;
  std::string_view refused;  ///< an op with nested programs, if any

  constexpr index_classes(const program& source, const device_program& d)
      : of_source(source, forest), of_local(d.local, forest), d_(d) {
    for (int a = 0; a < d.mesh.rank; ++a) axes.push_back(forest.make(d.mesh.size(a)));
    visit(source, of_source);
    visit(d.local, of_local);
    for (int i = 0; i < source.input_count(); ++i)
      tie_shards(source, source.inputs[i], d.local.inputs[i], d.inputs[i]);
    for (int i = 0; i < source.output_count(); ++i)
      tie_shards(source, source.outputs[i].value, d.local.outputs[i].value, d.outputs[i]);
  }

 private:
  const device_program& d_;

  constexpr vec<int> with_axes(const layout& l, int dim, int rest) const {
    vec<int> list;
    for (const auto& e : l)
      if (e.dim == dim) list.push_back(axes[e.axis]);
    list.push_back(rest);
    return list;
  }
  constexpr void tie_shards(const program& source, value_id whole, value_id piece,
                            const layout& l) {
    const shape &from = source.type(whole).shape, &local = d_.local.type(piece).shape;
    for (int d = 0; d < from.rank; ++d) {
      const vec<int> pieces = with_axes(l, d, of_local.at(piece, d));
      if (l.pieces(d_.mesh, d) * local[d] == from[d]) {
        forest.tie({of_source.at(whole, d)}, pieces);
      } else {  // padded
        forest.keep(of_source.at(whole, d));
        forest.keep(pieces);
      }
    }
  }
  constexpr void visit(const program& p, const program_digits& of) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_node& n = p.op(o);
      if (p.is(o, op_role::parameter)) continue;
      if (n.region_count > 0 && refused.empty()) refused = n.def->name;
      switch (index_rule_of(n, p.attrs(o), p.type(n.result).element)) {
        case index_rule::passed:
          for (int r = 0; r < n.result_count; ++r) tie_all(p, of, p.operand(o, r), n.result + r);
          break;
        case index_rule::exchanged:
          for (int r = 0; r < n.result_count; ++r)
            exchange(p, of, o, p.operand(o, r), n.result + r);
          break;
        case index_rule::by_factors:
        case index_rule::by_lines:
          by_factors(p, of, o);
          break;
        case index_rule::by_blocks:
          for (int d = 0; d < p.type(n.result).shape.rank; ++d) by_blocks(p, of, o, d);
          break;
        case index_rule::by_lookup:
          by_lookup(p, of, o);
          break;
        case index_rule::by_window:
          by_window(p, of, o);
          break;
        case index_rule::whole:
          for (const value_id v : p.operands(o)) keep_all(p, of, v);
          for (int r = 0; r < n.result_count; ++r) keep_all(p, of, n.result + r);
      }
    }
  }
  constexpr void tie_all(const program& p, const program_digits& of, value_id x, value_id y) {
    for (int d = 0; d < p.type(x).shape.rank; ++d) forest.tie(of.at(x, d), of.at(y, d));
  }
  constexpr void keep_all(const program& p, const program_digits& of, value_id v) {
    for (int d = 0; d < p.type(v).shape.rank; ++d) forest.keep(of.at(v, d));
  }

  /// Each dimension consists of the factors of the tile map; the rest of it is kept.
  constexpr void by_factors(const program& p, const program_digits& of, op_id o) {
    const op_node& n = p.op(o);
    if (n.def->id == def<op::shard_start>.id) return;
    vec<tensor_type> operands;
    for (const value_id v : p.operands(o)) operands.push_back(p.type(v));
    factor_table map;
    const auto attrs = p.attrs(o);
    tile_map_context c(operands, p.type(n.result), attrs.data(), static_cast<int>(attrs.size()),
                       map, n.result_count);
    n.def->tile_map(c);
    const bool reduces = index_rule_of(n, attrs, c.result.element) == index_rule::by_factors;
    vec<int> factors;
    for (int f = 0; f < map.ops[0].count; ++f) {
      const factor& each = map.at(0, f);
      const bool stacks = each.combine == combiner::stack && each.result_dim != no_dim;
      factors.push_back(is_plain(each) || n.def->id == def<op::iota>.id ? forest.make(each.size)
                                                                        : -1);
      if (!stacks && !reduces) forest.keep(factors.back());
    }
    for (int end = -n.result_count; end < n.operand_count; ++end) {
      const value_id v = end < 0 ? n.result - 1 - end : p.operand(o, end);
      for (int d = 0; d < p.type(v).shape.rank; ++d) {
        vec<int> parts;
        std::int64_t left = p.type(v).shape[d];
        for (int f = 0; f < map.ops[0].count && left > 0; ++f)
          if (factors[f] >= 0 && map.dim_of(map.at(0, f), end) == d &&
              left % forest.size(factors[f]) == 0) {
            parts.push_back(factors[f]);
            left /= forest.size(factors[f]);
          }
        if (left != 1) {
          parts.push_back(forest.make(left));
          forest.keep(parts.back());
        }
        forest.tie({of.at(v, d)}, parts);
      }
    }
  }
  /// Blocks of positions that start at multiples of their size have an index of their own.
  constexpr void by_blocks(const program& p, const program_digits& of, op_id o, int d) {
    const std::int64_t block = block_of(p, o, d);
    const op_node& n = p.op(o);
    const bool pads = n.def->id == def<op::pad>.id;
    const int within = forest.make(block);
    const auto divide = [&](value_id v) {
      const int blocks = forest.make(p.type(v).shape[d] / block);
      forest.tie({of.at(v, d)}, {blocks, within});
      return blocks;
    };
    const int made = divide(n.result);
    bool same = true;  // all of the only operand
    for (int i = 0; i < (pads ? 1 : n.operand_count); ++i) {
      same = n.operand_count == (pads ? 2 : 1) && is_whole(p, o, d);
      const int blocks = divide(p.operand(o, i));
      if (!same) forest.keep(blocks);
    }
    if (!same) forest.keep(made);
  }

 public:
  /// True if a slice, pad or concatenation leaves a dimension as it is.
  static constexpr bool is_whole(const program& p, op_id o, int d) {
    const std::int64_t from = p.type(p.operand(o, 0)).shape[d];
    return p.type(p.op(o).result).shape[d] == from && block_of(p, o, d) == from;
  }
  /// The size of blocks of positions of dimension d that a slice, pad or concatenation moves.
  static constexpr std::int64_t block_of(const program& p, op_id o, int d) {
    const op_node& n = p.op(o);
    const shape &from = p.type(p.operand(o, 0)).shape, &to = p.type(n.result).shape;
    const auto attrs = p.attrs(o);
    std::int64_t block = 0;
    const auto join = [&](std::int64_t m) {
      if (m < 0) m = -m;
      block = block == 0 || m == 0 ? block + m : greatest_common_divisor(block, m);
    };
    join(to[d]);
    if (n.def->id == def<op::concatenate>.id) {
      for (const value_id v : p.operands(o)) join(p.type(v).shape[d]);
      return block > 0 ? block : 1;
    }
    join(from[d]);
    if (n.def->id == def<op::slice>.id) {
      const op::slice::bounds at(attrs.data(), attrs.size(), from.rank, d);
      join(at.start);
      if (at.stride != 1) block = 1;
    } else {
      join(attrs[static_cast<std::size_t>(d)]);
      join(attrs[static_cast<std::size_t>(from.rank + d)]);
      if (attrs[static_cast<std::size_t>(2 * from.rank + d)] != 0) block = 1;
    }
    return block > 0 ? block : 1;
  }

 private:
  /// Positions of the table are compared with numbers; a window covers one of them, or all.
  constexpr void by_lookup(const program& p, const program_digits& of, op_id o) {
    const op_node& n = p.op(o);
    const bool gathers = n.def->id == def<op::gather>.id;
    const value_id table = gathers ? p.operand(o, 0) : n.result;
    const value_id rows = gathers ? n.result : p.operand(o, n.operand_count - 1);
    const value_id indices = p.operand(o, gathers ? 1 : n.operand_count - 2);
    const shape &from = p.type(table).shape, &to = p.type(rows).shape;
    const op::gather_dims dims(gathers ? p.attrs(o) : p.attrs(o).subspan(1), from,
                               p.type(indices).shape);
    bool simple = true;
    for (int d = 0; d < from.rank; ++d)
      simple = simple && (!dims.mapped[d] || dims.window_dim[d] < 0 ||
                          (gathers && to[dims.window_dim[d]] == from[d]));
    if (!simple) {
      for (const value_id v : p.operands(o)) keep_all(p, of, v);
      return keep_all(p, of, n.result);
    }
    if (!gathers && n.operand_count == 3) tie_all(p, of, p.operand(o, 0), table);
    for (int r = 0; r < to.rank; ++r)
      if (dims.index_dim[r] >= 0) forest.tie(of.at(rows, r), of.at(indices, dims.index_dim[r]));
    if (dims.vector_dim < dims.indices_rank) forest.keep(of.at(indices, dims.vector_dim));
    for (int d = 0; d < from.rank; ++d) {
      if (dims.batching_dim[d] >= 0) {
        forest.tie(of.at(table, d), of.at(indices, dims.batching_dim[d]));
      } else if (dims.window_dim[d] >= 0) {
        if (to[dims.window_dim[d]] == from[d]) {
          forest.tie(of.at(table, d), of.at(rows, dims.window_dim[d]));
        } else {
          forest.keep(of.at(table, d));
          forest.keep(of.at(rows, dims.window_dim[d]));
        }
      } else if (!dims.mapped[d]) {
        forest.keep(of.at(table, d));
      }
    }
  }
  constexpr void by_window(const program& p, const program_digits& of, op_id o) {
    const value_id x = p.operand(o, 0), w = p.operand(o, 1), y = p.op(o).result;
    const op::convolution::roles r(p.attrs(o).data(), p.type(w).shape);
    if (r.grouped || r.batch_groups > 1) {
      for (const value_id v : {x, w, y}) keep_all(p, of, v);
      return;
    }
    forest.tie(of.at(x, r.lhs[0]), of.at(y, r.result[0]));
    forest.tie(of.at(x, r.lhs[1]), of.at(w, r.rhs[0]));
    forest.tie(of.at(w, r.rhs[1]), of.at(y, r.result[1]));
  }
  constexpr void exchange(const program& p, const program_digits& of, op_id o, value_id x,
                          value_id y) {
    const collective what = p.collective_of(o);
    const dtype t = p.type(x).element;
    const bool extreme = what.combine == combiner::max || what.combine == combiner::min;
    const bool sums = what.combine == combiner::add && t != dtype::boolean;
    if (what.kind == collective::permute ||
        (what.reduces() && !sums && !(extreme && is_floating(t))))
      for (const auto& e : what.axes) forest.keep(axes[e.axis]);
    const bool gathers = what.kind == collective::all_gather,
               moves = what.kind == collective::all_to_all,
               slices = moves || what.kind == collective::all_slice ||
                        what.kind == collective::reduce_scatter;
    const layout none;
    for (int d = 0; d < p.type(x).shape.rank; ++d)
      forest.tie(with_axes(gathers ? what.axes
                           : moves ? what.gathers()
                                   : none,
                           d, of.at(x, d)),
                 with_axes(slices ? what.axes : none, d, of.at(y, d)));
  }
};

}  // namespace partita::prove_detail
