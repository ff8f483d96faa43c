/// The graph in which loops are introduced: the data that partitioning reads but rarely changes.
#pragma once

#include <cstdint>

#include <partita/core/flatten.hpp>
#include <partita/core/loops.hpp>
#include <partita/core/op_order.hpp>
#include <partita/core/uneven.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Maps values to the program outputs they are.
class output_list {
 public:
  constexpr output_list() = default;
  constexpr explicit output_list(const program& p) {
    first_.resize(p.types.size(), -1);
    next_.resize(p.outputs.size(), -1);
    for (int i = p.output_count(); i-- > 0;) {
      int& first = first_[p.outputs[i].value];
      next_[i] = first;
      first = i;
    }
  }
  /// True if a value is an output of the program.
  constexpr bool operator[](value_id v) const { return first_[v] >= 0; }
  constexpr bool operator[](std::size_t v) const { return first_[v] >= 0; }
  /// The first output that is this value, or -1.
  constexpr int first(value_id v) const { return first_[v]; }

  constexpr void add_value() { first_.push_back(-1); }
  /// Replaces value `from` by `to`, which is not an output yet, in the outputs of `p`. Cost: linear
  /// in the outputs replaced.
  constexpr void move(program& p, value_id from, value_id to) {
    for (int i = first_[from]; i >= 0; i = next_[i]) p.outputs[i].value = to;
    first_[to] = first_[from];
    first_[from] = -1;
  }

 private:
  vec<int> first_;  ///< by value: its first output, or -1
  vec<int> next_;   ///< by output: the next output that is the same value
};

/// Axes that have different sizes on the meshes that ops run on.
struct uneven_axes {
  std::uint8_t axes = 0;  ///< bit set of these axes; the other axes have the mesh's size
  /// By row, for each of max_axes axes: the least common multiple of its sizes on the row's meshes.
  /// Row 0 is for all meshes, row 1 + m for mesh m, further rows for the sets that ops run on.
  vec<std::int64_t> sizes;
  /// Indexed like `sizes`: the gcd of the sizes on the row's meshes.
  vec<std::int64_t> least;
  vec<int> row;               ///< by op
  vec<text> names;            ///< of meshes, for messages
  vec<std::uint64_t> meshes;  ///< by row: bit set of its meshes
  /// Describes the size of an axis where an op runs, for messages: `2 on mesh "m0", 4 on mesh
  /// "m1"`, or `on mesh "m0"` for a single mesh.
  constexpr text sizes_text(int of_row, int axis) const {
    const std::uint64_t on = meshes[of_row];
    const bool several = (on & (on - 1)) != 0;
    text out;
    for (std::size_t m = 0; m < names.size(); ++m) {
      if ((on >> m & 1u) == 0) continue;
      if (!out.empty()) out << ", ";
      if (several) out << sizes[(1 + m) * max_axes + axis] << ' ';
      out << "on mesh \"" << names[m] << '"';
    }
    return out;
  }
  constexpr bool contains(int axis) const { return (axes >> axis & 1u) != 0; }
  constexpr std::int64_t size(op_id o, int axis) const { return sizes[row[o] * max_axes + axis]; }
  /// The gcd of the sizes of an axis on all meshes that an op runs on.
  constexpr std::int64_t least_size(op_id o, int axis) const {
    return least[row[o] * max_axes + axis];
  }
};

/// The flat program with the derived data that is needed constantly: tile maps, uses, execution
/// order.
///
/// It changes only when an action inserts an op: a `tiling` op, or the ops that pad.
class core_graph {
 public:
  program p;            ///< the flat source program, plus ops appended by actions
  flat_program nested;  ///< the nested program of each op (its `p` is empty)
  factor_table map;
  op_order order;  ///< execution order
  output_list returned;
  padding_marks padding;
  uneven_axes sizes;
  std::int64_t edits = 0;  ///< the number of times that ops were inserted or replaced

  constexpr core_graph() = default;
  constexpr explicit core_graph(const program& source) : nested(source) {
    p = static_cast<program&&>(nested.p);
    const auto n = p.ops.size();
    map.ops.reserve(n);
    map.factors.reserve(3 * n);
    map.operand_dims.reserve(6 * n);
    order = op_order(n);
    for (op_id o = 0; o < static_cast<op_id>(n); ++o) add_tile_map(o);
    returned = output_list(p);
    index_uses();
  }

  /// All uses of a value as an operand; program outputs are not included.
  constexpr span<const use> uses(value_id v) const {
    const use_range& r = use_rows_[v];
    return {uses_.data() + r.begin, static_cast<std::size_t>(r.count)};
  }
  /// By value: the range in the list of all uses.
  constexpr const use_range* use_ranges() const { return use_rows_.data(); }
  constexpr const use* all_uses() const { return uses_.data(); }
  /// The result of the `tiling` op that uses a value, or -1.
  constexpr value_id tiled(value_id v) const { return tiled_.empty() ? -1 : tiled_[v]; }

  constexpr vec<tensor_type> operand_types(op_id o) const {
    vec<tensor_type> types;
    for (value_id v : p.operands(o)) types.push_back(p.types[v]);
    return types;
  }

  // ---- Edits ------------------------------------------------------------------------------------

  /// Appends an op with one result, without tile map, uses or place in the execution order.
  constexpr op_id append(const op_def& def, span<const value_id> operands,
                         span<const std::int64_t> attrs, const tensor_type& type, int scope) {
    const op_id o = p.op_count();
    p.append(def, operands, attrs, type);
    returned.add_value();
    nested.scope.push_back(scope);
    nested.value_scope.push_back(scope);
    if (sizes.axes != 0) sizes.row.push_back(0);
    use_rows_.push_back({});
    if (!tiled_.empty()) tiled_.push_back(-1);
    if (!padding.empty()) padding.add_op(type);
    return o;
  }
  /// Adds the factors of the op's tile map.
  constexpr void add_tile_map(op_id o) {
    const op_node& n = p.ops[o];
    scratch_.clear();
    const tensor_type* const types = p.types.data();
    const value_id* const operands = p.operand_list.data() + n.operand_begin;
    for (int i = 0; i < n.operand_count; ++i) scratch_.push_back(types[operands[i]]);
    tile_map_context c(scratch_, n.result_count > 0 ? types[n.result] : no_type_,
                       p.attr_list.data() + n.attr_begin, n.attr_count, map, n.result_count);
    n.def->tile_map(c);
  }
  /// Turns an op with one result into another op with the same factors and one more operand.
  constexpr void become(op_id o, const op_def& other, value_id more,
                        const vec<std::int64_t>& attrs) {
    ++edits;
    op_node& n = p.ops[o];
    n.def = &other;
    const int begin = static_cast<int>(p.operand_list.size());
    for (int i = 0; i < n.operand_count; ++i)
      p.operand_list.push_back(value_id{p.operand_list[n.operand_begin + i]});
    p.operand_list.push_back(more);
    n.operand_begin = begin;
    n.attr_begin = static_cast<int>(p.attr_list.size());
    n.attr_count = static_cast<int>(attrs.size());
    p.attr_list.insert_back(attrs.begin(), attrs.end());
    factor_table::row& row = map.ops[o];
    for (int f = row.begin; f < row.begin + row.count; ++f) {
      const std::int64_t dims = map.factors[f].operands_begin;
      map.factors[f].operands_begin = static_cast<std::int64_t>(map.operand_dims.size());
      for (int i = 0; i < n.operand_count; ++i)
        map.operand_dims.push_back(std::int8_t{map.operand_dims.data()[dims + i]});
      map.operand_dims.push_back(no_dim);
    }
    row.operands = ++n.operand_count;
  }
  /// Passes a value through a `tiling` op; all uses and program outputs become those of its result.
  /// Cost: linear in its uses.
  constexpr op_id insert_tiling(value_id v) {
    ++edits;
    const value_id operands[] = {v};
    const op_id o =
        append(def<op::tiling>, operands, {}, tensor_type(p.type(v)), nested.value_scope[v]);
    add_tile_map(o);
    if (sizes.axes != 0) sizes.row[o] = int{sizes.row[p.producer(v)]};
    const value_id t = p.op(o).result;
    for (const auto& u : uses(v)) p.operand_list[p.op(u.op).operand_begin + u.operand] = t;
    if (!padding.empty()) padding.whole[t] = shape(padding.whole[v]);
    returned.move(p, v, t);
    tiled_.resize(p.types.size(), -1);
    tiled_[t] = tiled_[v];
    tiled_[v] = t;
    use_rows_[t] = use_rows_[v];
    use_rows_[v] = {static_cast<int>(uses_.size()), 1};
    uses_.push_back({o, 0});
    order.insert_after(insertion_point(p.producer(v)), o);
    return o;
  }
  /// The op after which a user of a result of `o` can be inserted: `o`, or the marker of a wire.
  constexpr op_id insertion_point(op_id o) const {
    return p.is(o, op_role::wire) ? nested.control_of(o)->marker : o;
  }
  /// Recomputes the uses of all affected values after operands changed. `values` lists the values
  /// that were operands before, `added` the uses added to existing ops; ops from `first` on were
  /// appended. Cost: linear in these uses.
  constexpr void index_uses(const vec<value_id>& values, op_id first, const vec<use>& added) {
    vec<use> moved = added;
    vec<value_id> anew;
    const auto renew = [&](value_id v) {
      use_range& r = use_rows_[v];
      if (r.count < 0) return;
      for (const auto& u : uses(v)) moved.push_back(u);
      r.count = -1;
      anew.push_back(v);
    };
    const auto used = [&](const use& u) { return p.operand(u.op, u.operand); };
    for (op_id o = first; o < p.op_count(); ++o)
      for (int i = 0; i < p.op(o).operand_count; ++i) moved.push_back({o, i});
    for (value_id v : values) renew(v);
    for (std::size_t i = 0; i < moved.size(); ++i) renew(used(moved[i]));
    for (value_id v : anew) {
      use_rows_[v].count = 0;
      if (!tiled_.empty()) tiled_[v] = -1;
    }
    for (const use& u : moved) ++use_rows_[used(u)].count;
    int begin = static_cast<int>(uses_.size());
    for (value_id v : anew) {
      use_rows_[v].begin = begin;
      begin += use_rows_[v].count;
      use_rows_[v].count = 0;
    }
    uses_.resize(static_cast<std::size_t>(begin), use{});
    for (const use& u : moved) {
      use_range& r = use_rows_[used(u)];
      uses_[r.begin + r.count++] = u;
      if (p.is(u.op, op_role::tiling)) tiled_[used(u)] = p.op(u.op).result;
    }
  }

 private:
  vec<use_range> use_rows_;  ///< by value
  vec<use> uses_;
  vec<value_id> tiled_;  ///< by value; empty without `tiling` ops
  vec<tensor_type> scratch_;
  tensor_type no_type_;

  /// Computes the uses of all values. Cost: linear in the program.
  constexpr void index_uses() {
    use_rows_.clear();
    use_rows_.resize(p.types.size());
    uses_.clear();
    uses_.resize(p.operand_list.size());
    use_range* const rows = use_rows_.data();
    use* const all = uses_.data();
    const op_node* const ops = p.ops.data();
    const value_id* const operands = p.operand_list.data();
    for (std::size_t i = 0; i < uses_.size(); ++i) ++rows[operands[i]].count;
    int begin = 0;
    for (std::size_t v = 0; v < use_rows_.size(); ++v) {
      rows[v].begin = begin;
      begin += rows[v].count;
      rows[v].count = 0;
    }
    for (op_id o = order.first(); o >= 0; o = order.after(o)) {
      const int first = ops[o].operand_begin, count = ops[o].operand_count;
      PARTITA_WORK(count);
      for (int i = 0; i < count; ++i) {
        use_range& r = rows[operands[first + i]];
        use& u = all[r.begin + r.count++];
        u.op = o;
        u.operand = i;
      }
    }
  }
};

}  // namespace partita
