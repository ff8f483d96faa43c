/// Which indices the operands and results of an op have in common.
#pragma once

#include <partita/prove/elements/interpreter.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail {

/// How an op treats the indices of its dimensions.
enum class index_rule : std::uint8_t {
  by_factors,  ///< stacked and reduced as its tile map says
  by_blocks,   ///< slice, pad, concatenate: whole blocks of positions are moved
  by_lookup,   ///< gather, scatter: positions are compared with numbers
  by_window,   ///< convolution: positions under taps
  by_lines,   ///< stacked as its tile map says; other dimensions, and those of users' ops, are kept
  exchanged,  ///< collectives
  passed      ///< results are operands
};

/// The indices of the ops of a program, as factors of their dimensions: the results are stacked
/// along a factor, or summed. The last operand of a collective, and its last result, are the device
/// that has the value: their dimensions are the axes of the mesh. A factor that is not plain is
/// kept, unless only its positions matter (`offset`).
class op_indices {
 public:
  factor_table map;

  constexpr op_indices() = default;
  constexpr op_indices(const program& p, const mesh& m) : p_(&p), mesh_(&m) {
    first_.reserve(p.ops.size() + 1);
    for (op_id o = 0; o < p.op_count(); ++o) {
      first_.push_back(static_cast<int>(map.ops.size()));
      rules_.push_back(rule_of(o));
      add_rows(o);
    }
    first_.push_back(static_cast<int>(map.ops.size()));
  }
  constexpr index_rule rule(op_id o) const { return rules_[o]; }
  constexpr int first_row(op_id o) const { return first_[o]; }
  constexpr int last_row(op_id o) const { return first_[o + 1]; }
  constexpr span<const factor> factors(int row) const {
    return {map.factors_of(row), static_cast<std::size_t>(map.ops[row].count)};
  }
  static constexpr bool is_kept(const factor& f) { return !is_plain_factor(f) && !f.offset; }
  static constexpr bool is_summed(const factor& f) { return f.combine != combiner::stack; }

  template <class... Op>
  static constexpr bool is_one(std::uint64_t id) {
    return ((id == def<Op>.id) || ...);
  }
  /// The size of blocks of positions of dimension d that a slice, pad or concatenation moves.
  static constexpr std::int64_t block_of(const program& p, op_id o, int d) {
    const op_node& n = p.op(o);
    const shape &from = p.type(p.operand(o, 0)).shape, &to = p.type(n.result).shape;
    const auto attrs = p.attrs(o);
    std::int64_t block = to[d];
    const auto join = [&](std::int64_t m) {
      block = greatest_common_divisor(block, m < 0 ? -m : m);
    };
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
  const program* p_ = nullptr;
  const mesh* mesh_ = nullptr;
  vec<index_rule> rules_;
  vec<int> first_;  ///< by op, and one more: its first row
  vec<tensor_type> types_;

  /// True if a reduction of numbers may count terms by weights: a sum, or a maximum of floats.
  static constexpr bool is_weighted(combiner how, dtype t) {
    return how == combiner::add ? t != dtype::boolean
                                : (how == combiner::max || how == combiner::min) && is_floating(t);
  }
  constexpr index_rule rule_of(op_id o) const {
    using enum index_rule;
    const op_node& n = p_->op(o);
    const std::uint64_t id = n.def->id;
    const auto attrs = p_->attrs(o);
    if (n.def->passes_on || n.def->identity) return passed;
    if (n.def->collective) return exchanged;
    if (n.def->elementwise || is_one<op::constant, op::iota, op::broadcast_in_dim, op::transpose,
                                     op::reshape, op::shard_start>(id))
      return by_factors;
    const dtype t = p_->type(n.result).element;
    if (id == def<op::reduce>.id)
      return !op::reduce::with_position(attrs) && is_weighted(static_cast<combiner>(attrs[0]), t)
                 ? by_factors
                 : by_lines;
    if (is_one<op::slice, op::pad, op::concatenate>(id)) return by_blocks;
    const bool sums = t != dtype::boolean;
    if (id == def<op::dot_general>.id) return sums ? by_factors : by_lines;
    if (id == def<op::gather>.id) return sums && is_simple_lookup(o) ? by_lookup : by_lines;
    if (id == def<op::scatter>.id)
      return sums && op::scatter::update_of(attrs) == ops::scatter_update::add &&
                     is_simple_lookup(o)
                 ? by_lookup
                 : by_lines;
    if (id == def<op::convolution>.id) {
      const op::convolution::roles r(attrs.data(), p_->type(p_->operand(o, 1)).shape);
      return r.grouped || r.batch_groups > 1 || !sums ? by_lines : by_window;
    }
    return by_lines;
  }

  constexpr void add_rows(op_id o) {
    const op_node& n = p_->op(o);
    const index_rule rule = rules_[o];
    if (n.def->role == op_role::parameter || rule == index_rule::passed) return;
    if (rule == index_rule::exchanged) {
      for (int r = 0; r < n.result_count; ++r) exchange(o, p_->operand(o, r), n.result + r);
      return;
    }
    types_.clear();
    for (const value_id v : p_->operands(o)) types_.push_back(p_->type(v));
    const auto attrs = p_->attrs(o);
    tile_map_context c(types_, p_->type(n.result), attrs.data(), static_cast<int>(attrs.size()),
                       map, n.result_count);
    if (rule == index_rule::by_blocks)
      for (int d = 0; d < c.result.shape.rank; ++d) divide(o, d, c);
    else if (rule == index_rule::by_lookup)
      look_up(o, c);
    else if (rule == index_rule::by_window)
      convolve(c);
    else if (elements::rule_of(*n.def) != nullptr || rule == index_rule::by_factors)
      n.def->tile_map(c);
    for (int f = 0; rule == index_rule::by_lines && f < map.ops.back().count; ++f) {
      factor& each = map.at(static_cast<int>(map.ops.size()) - 1, f);
      each.located = each.located || is_summed(each) || each.result_dim == no_dim;
    }
  }
  /// Blocks of positions that start at multiples of their size have an index of their own.
  constexpr void divide(op_id o, int d, tile_map_context& c) const {
    const int moved = p_->op(o).def->id == def<op::pad>.id ? 1 : p_->op(o).operand_count;
    const std::int64_t block = block_of(*p_, o, d);
    c.tile(c.result.shape[d] / block, d).located();
    for (int i = 0; i < moved; ++i)
      c.tile(c.operands[i].shape[d] / block, no_dim).operand(i, d).located();
    c.tile(block, d);
    for (int i = 0; i < moved; ++i) c.operand(i, d);
  }

  constexpr bool gathers(op_id o) const { return p_->op(o).def->id == def<op::gather>.id; }

 public:
  constexpr op::gather_dims lookup_dims(op_id o) const {
    const bool g = gathers(o);
    const value_id table = g ? p_->operand(o, 0) : p_->op(o).result;
    return {g ? p_->attrs(o) : p_->attrs(o).subspan(1), p_->type(table).shape,
            p_->type(p_->operand(o, g ? 1 : p_->op(o).operand_count - 2)).shape};
  }

 private:
  /// True if a window covers one position of the table that is compared, or all positions.
  constexpr bool is_simple_lookup(op_id o) const {
    const bool g = gathers(o);
    const op::gather_dims dims = lookup_dims(o);
    const shape &table = p_->type(g ? p_->operand(o, 0) : p_->op(o).result).shape,
                &rows = p_->type(g ? p_->op(o).result : p_->operand(o, p_->op(o).operand_count - 1))
                            .shape;
    bool simple = true;
    for (int d = 0; d < table.rank; ++d) {
      const int w = dims.window_dim[d];
      simple = simple && (w < 0 || (rows[w] == table[d] && (g || !dims.mapped[d])));
    }
    return simple;
  }
  /// A row is the sum over positions of the table, each times whether it is the wanted one. A
  /// position of a scatter's result is the sum over rows.
  constexpr void look_up(op_id o, tile_map_context& c) const {
    const bool g = gathers(o);
    const op::gather_dims dims = lookup_dims(o);
    const int count = p_->op(o).operand_count, indices = g ? 1 : count - 2;
    const shape& at = c.operands[indices].shape;
    const auto add = [&](int table, int index, int row) {  // dimensions of each
      const std::int64_t size = index >= 0 ? at[index]
                                : g        ? c.operands[0].shape[table]
                                           : c.result.shape[table];
      const int made = g ? row : table;
      made >= 0 ? c.tile(size, made) : c.reduce(size, combiner::add);
      if (table >= 0 && (g || count == 3)) c.operand(0, table);
      if (index >= 0) c.operand(indices, index);
      if (row >= 0 && !g) c.operand(count - 1, row);
    };
    for (int r = 0; r < dims.result_rank; ++r) {
      int table = -1;
      for (int d = 0; d < dims.operand_rank; ++d)
        if (dims.index_dim[r] >= 0 && dims.batching_dim[d] == dims.index_dim[r]) table = d;
      if (dims.index_dim[r] >= 0) add(table, dims.index_dim[r], r);
    }
    for (int d = 0; d < dims.operand_rank; ++d) {
      if (dims.batching_dim[d] >= 0) continue;
      add(d, -1, dims.window_dim[d]);
      if (!g && dims.mapped[d]) c.offset();
      if (!dims.mapped[d] && dims.window_dim[d] < 0) c.located();
    }
    if (dims.vector_dim < dims.indices_rank)
      c.tile(at[dims.vector_dim], no_dim).operand(indices, dims.vector_dim).located();
  }
  constexpr void convolve(tile_map_context& c) const {
    const shape &x = c.operands[0].shape, &w = c.operands[1].shape;
    const op::convolution::roles r(c.attrs, w);
    c.tile(x[r.lhs[0]], r.result[0]).operand(0, r.lhs[0]);
    c.tile(w[r.rhs[1]], r.result[1]).operand(1, r.rhs[1]);
    c.reduce(x[r.lhs[1]], combiner::add).operand(0, r.lhs[1]).operand(1, r.rhs[0]);
    for (int d = 2; d < r.rank; ++d) {
      c.tile(c.result.shape[r.result[d]], r.result[d]).offset();
      c.reduce(x[r.lhs[d]], combiner::add).operand(0, r.lhs[d]);
      c.reduce(w[r.rhs[d]], combiner::add).operand(1, r.rhs[d]);
    }
  }
  constexpr void exchange(op_id o, value_id x, value_id y) {
    const collective what = p_->collective_of(o);
    const shape &from = p_->type(x).shape, &to = p_->type(y).shape;
    types_.assign(2, p_->type(x));
    tile_map_context c(types_, p_->type(y), nullptr, 0, map, 2);
    const bool moves = what.kind == collective::all_to_all;
    for (int a = 0; a < mesh_->rank; ++a)
      if (!what.along().contains(a)) c.tile(mesh_->size(a), no_dim).operand(1, a).also(1, a);
    const layout gathered = moves ? what.gathers() : what.axes;
    for (const auto& e : gathered) {
      const std::int64_t size = mesh_->size(e.axis);
      if (what.reduces()) {
        c.reduce(size, what.combine).operand(1, e.axis);
        if (!is_weighted(what.combine, p_->type(x).element)) c.located();
      } else if (what.kind == collective::all_gather || moves) {
        c.tile(size, e.dim).operand(1, e.axis);
      } else if (what.kind == collective::permute) {
        c.tile(size, no_dim).operand(1, e.axis).also(1, e.axis).located();
      }
    }
    if (what.kind != collective::all_gather && what.kind != collective::permute)
      for (const auto& e : what.axes) {
        if (e.dim == no_dim) continue;
        c.tile(mesh_->size(e.axis), no_dim).operand(0, e.dim).also(1, e.axis);
        if (what.kind == collective::all_slice) c.operand(1, e.axis);
      }
    for (int d = 0; d < from.rank; ++d) c.tile(from[d] < to[d] ? from[d] : to[d], d).operand(0, d);
  }
};

}  // namespace partita::prove_detail
