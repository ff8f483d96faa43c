/// Index classes: the digits of all dimensions of a source and its local program, and of the axes.
#pragma once

#include <partita/prove/shrink/digits.hpp>
#include <partita/prove/shrink/op_indices.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita::prove_detail {

/// The digits of all dimensions of a program.
struct indexed_program {
  const program* p = nullptr;
  op_indices ops;
  vec<int> first;  ///< by value: the place of its dimensions in `nodes`
  vec<int> nodes;

  constexpr indexed_program() = default;
  constexpr indexed_program(const program& of, const mesh& m, digit_forest& f)
      : p(&of), ops(of, m) {
    for (const tensor_type& t : of.types) {
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
  vec<int> axes;
  indexed_program source, local;

  constexpr index_classes(const program& s, const device_program& d) : d_(d) {
    for (int a = 0; a < d.mesh.rank; ++a) axes.push_back(forest.make(d.mesh.size(a)));
    source = indexed_program(s, d.mesh, forest);
    local = indexed_program(d.local, d.mesh, forest);
    visit(source);
    visit(local);
    for (int i = 0; i < s.input_count(); ++i)
      tie_shards(s.inputs[i], d.local.inputs[i], d.inputs[i]);
    for (int i = 0; i < s.output_count(); ++i)
      tie_shards(s.outputs[i].value, d.local.outputs[i].value, d.outputs[i]);
  }

 private:
  const device_program& d_;
  vec<int> factors_;

  constexpr void tie_shards(value_id whole, value_id piece, const layout& l) {
    const shape &from = source.p->type(whole).shape, &to = local.p->type(piece).shape;
    for (int d = 0; d < from.rank; ++d) {
      vec<int> pieces;
      for (const auto& e : l)
        if (e.dim == d) pieces.push_back(axes[e.axis]);
      pieces.push_back(local.at(piece, d));
      if (l.pieces(d_.mesh, d) * to[d] == from[d]) {
        forest.tie({source.at(whole, d)}, pieces);
      } else {  // padded
        forest.keep(source.at(whole, d));
        forest.keep(pieces);
      }
    }
  }
  constexpr void visit(const indexed_program& x) {
    for (op_id o = 0; o < x.p->op_count(); ++o) {
      const op_node& n = x.p->op(o);
      if (n.def->role == op_role::parameter) continue;
      switch (x.ops.rule(o)) {
        case index_rule::passed:
          for (int r = 0; r < n.result_count; ++r)
            for (int d = 0; d < x.p->type(n.result + r).shape.rank; ++d)
              forest.tie(x.at(x.p->operand(o, r), d), x.at(n.result + r, d));
          break;
        default:
          for (int row = x.ops.first_row(o); row < x.ops.last_row(o); ++row) tie_factors(x, o, row);
          if (x.ops.rule(o) == index_rule::by_window) tie_positions(x, o);
      }
    }
  }
  /// Positions of a convolution need not have the same index as those that it reads. But if they
  /// do, convolutions of both programs have the same classes.
  constexpr void tie_positions(const indexed_program& x, op_id o) {
    const value_id in = x.p->operand(o, 0), out = x.p->op(o).result;
    const op::convolution::roles r(x.p->attrs(o).data(), x.p->type(x.p->operand(o, 1)).shape);
    for (int d = 2; d < r.rank; ++d) {
      const std::int64_t m = x.p->type(in).shape[r.lhs[d]], n = x.p->type(out).shape[r.result[d]];
      const int i = x.at(in, r.lhs[d]), j = x.at(out, r.result[d]);
      if (m > 1 && n > 1 && (m % n == 0 || n % m == 0))
        m < n ? forest.tie({j}, {i, forest.make(n / m)}) : forest.tie({i}, {j, forest.make(m / n)});
    }
  }
  /// Each dimension consists of the factors of a row; the rest of it is kept.
  constexpr void tie_factors(const indexed_program& x, op_id o, int row) {
    const factor_table& map = x.ops.map;
    const auto all = x.ops.factors(row);
    factors_.clear();
    for (const factor& each : all) {
      factors_.push_back(forest.make(each.size));
      if (op_indices::is_kept(each)) forest.keep(factors_.back());
    }
    const op_node& n = x.p->op(o);
    const bool exchanges = n.def->collective;
    const int which = row - x.ops.first_row(o);
    for (int end = -map.ops[row].results; end < map.ops[row].operands; ++end) {
      const bool on_axes = exchanges && (end == 1 || end == -2);
      const value_id v = end < 0 ? n.result + (exchanges ? which : -1 - end)
                                 : x.p->operand(o, exchanges ? which : end);
      const int rank = on_axes ? d_.mesh.rank : x.p->type(v).shape.rank;
      for (int d = 0; d < rank; ++d) {
        vec<int> parts;
        std::int64_t left = on_axes ? d_.mesh.size(d) : x.p->type(v).shape[d];
        for (std::size_t f = 0; f < all.size() && left > 0; ++f)
          if (map.dim_of(all[f], end) == d && left % all[f].size == 0) {
            parts.push_back(factors_[f]);
            left /= all[f].size;
          }
        if (on_axes && parts.empty()) continue;
        if (left != 1) {
          parts.push_back(forest.make(left));
          forest.keep(parts.back());
        }
        forest.tie({on_axes ? axes[d] : x.at(v, d)}, parts);
      }
    }
  }
};

}  // namespace partita::prove_detail
