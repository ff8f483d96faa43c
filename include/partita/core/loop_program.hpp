/// A program whose ops carry loops over mesh axes, and what can be asked of it.
///
/// Source    PartIR, section 5
#pragma once

#include <cstdint>

#include <partita/core/flatten.hpp>
#include <partita/core/halo.hpp>
#include <partita/core/loops.hpp>
#include <partita/core/named_axes.hpp>
#include <partita/ir/axis_set.hpp>
#include <partita/ir/layout.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Every op has a loop nest; ops of nested programs, too, and the wires that tie them to the
/// program around them (see flatten.hpp). Inputs and tags are ops as well, so a tiled argument is a
/// `parameter` with loops, and so is the inference "all uses slice it": the rule that works for
/// every op.
class loop_program {
 public:
  program p;            ///< the flat source program, plus `tiling` ops appended by actions
  flat_program nested;  ///< which nested program an op belongs to (its `p` is empty)
  partita::mesh mesh;   ///< the user's, with axes split as loops and actions need it
  named_axes named;     ///< the axes that actions speak of, by number
  factor_table map;
  vec<nest> nests;          ///< by op
  vec<op_id> order;         ///< order of execution
  vec<char> returned;       ///< by value: is it a result of the program?
  vec<action> actions;      ///< the log
  vec<conflict> conflicts;  ///< what the last propagation left open
  padding_record padding;   ///< which dimensions are larger than those of the source
  int tactic = 0;           ///< recorded in loops and actions
  bool halos = true;        ///< may a loop see elements of neighbouring pieces?
  bool may_split = true;    ///< may propagation split axes?
  vec<text> tactic_names;   ///< for messages, as far as they are known

  constexpr loop_program() = default;
  constexpr loop_program(const program& source, const partita::mesh& m)
      : nested(source), mesh(m.whole()), named(mesh) {
    p = static_cast<program&&>(nested.p);
    const auto n = p.ops.size();
    map.ops.reserve(n);
    map.factors.reserve(3 * n);
    map.operand_dims.reserve(6 * n);
    order.reserve(n);
    nests.resize(n, nest{});
    returned.resize(p.types.size(), 0);
    for (op_id o = 0; o < static_cast<op_id>(n); ++o) {
      order.push_back(o);
      add_tile_map(o);
    }
    for (const auto& out : p.outputs) returned[out.value] = 1;
    index_uses();
  }

  constexpr const nest& nest_of(op_id o) const { return nests[o]; }
  /// The shape of a value in the source program; its type may be larger, where it is padded.
  constexpr const shape& true_shape(value_id v) const {
    return padding.whole.empty() ? p.type(v).shape : padding.whole[v];
  }
  constexpr tensor_type true_type(value_id v) const { return {p.type(v).element, true_shape(v)}; }
  /// All uses of a value as an operand (being a result of the program is not among them).
  constexpr span<const use> uses(value_id v) const {
    const auto begin = use_begin_[v], end = use_begin_[at(v) + 1];
    return {uses_.data() + begin, static_cast<std::size_t>(end - begin)};
  }

  /// How the loops of an op, without those over some axes, slice an operand or (end -1 - r) lay
  /// out result r; sums are not part of it.
  constexpr layout layout_by_loops(op_id o, int end, axis_set without = {}) const {
    layout l;
    const nest& n = nests[o];
    if (n.count == 0) return l;
    const factor* factors = map.factors_of(o);
    for (int i = 0; i < n.count; ++i) {
      const loop& each = n.loops[i];
      if (each.factor == any_factor || without.contains(each.axis)) continue;
      const int dim = map.dim_of(factors[each.factor], end);
      if (dim != no_dim) l.push_back(each.axis, dim);
    }
    return l;
  }
  /// How the loops of its producer lay a value out.
  constexpr layout made(value_id v) const {
    const op_id o = p.producers[v];
    return layout_by_loops(o, p.ops[o].result - v - 1);
  }
  /// How the loops of an op slice one of its operands.
  constexpr layout required(op_id o, int operand) const { return layout_by_loops(o, operand); }

  /// Factor `f` of an op, which has a halo, cut into pieces; `attrs`, the op's, become those of one
  /// piece.
  constexpr halo_cut cut(op_id o, int f, std::int64_t pieces, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return cut_halo(*p.ops[o].def, map, map.at(o, f), pieces, types, p.type(p.ops[o].result),
                    attrs);
  }
  /// The same factor, stretched; see stretch_halo.
  constexpr halo_cut stretch(op_id o, int f, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return stretch_halo(*p.ops[o].def, map, map.at(o, f), types, p.type(p.ops[o].result), attrs);
  }
  constexpr vec<tensor_type> operand_types(op_id o) const {
    vec<tensor_type> types;
    for (value_id v : p.operands(o)) types.push_back(p.types[v]);
    return types;
  }

  /// Does some loop of an op see more than its own pieces?
  constexpr bool has_halo(op_id o) const {
    const factor* factors = map.factors_of(o);
    for (const auto& l : nests[o])
      if (l.factor != any_factor && factors[l.factor].halo && mesh.size(l.axis) > 1) return true;
    return false;
  }
  /// The loops of an op that do, by factor; `attrs`, the op's, become those of one iteration.
  constexpr vec<halo_loops> halos_of(op_id o, vec<std::int64_t>& attrs) const {
    vec<halo_loops> list;
    for (int f = 0; f < map.ops[o].count; ++f) {
      if (!map.at(o, f).halo) continue;
      halo_loops h;
      h.factor = f;
      std::int64_t pieces = 1;
      for (const auto& l : nests[o])
        if (l.factor == f && mesh.size(l.axis) > 1) {
          h.axes.push_back(l.axis);
          pieces *= mesh.size(l.axis);
        }
      if (pieces == 1) continue;
      h.cut = cut(o, f, pieces, attrs);
      list.push_back(h);
    }
    return list;
  }

  /// The axes of `mesh` that a named axis has something in common with, major to minor.
  constexpr axis_list parts(int axis) const { return mesh.parts_of(named.at(axis)); }
  /// The dimension on which a value is tiled along all of a named axis, or -1.
  constexpr int dim_of(value_id v, int axis) const {
    const layout have = made(holder(v));
    const axis_list list = parts(axis);
    const int dim = list.count > 0 ? have.dim_of(list.axes[0]) : -1;
    for (int a : list)
      if (have.dim_of(a) != dim) return -1;
    return dim;
  }
  /// Is a value tiled along a part of a named axis, at least?
  constexpr bool is_tiled(value_id v, int axis) const {
    const layout have = made(holder(v));
    for (int a : parts(axis))
      if (have.dim_of(a) >= 0) return true;
    return false;
  }

  /// Into how many pieces loops cut a factor.
  constexpr std::int64_t pieces_of(op_id o, int factor) const {
    std::int64_t n = 1;
    for (const auto& l : nest_of(o))
      if (l.factor == factor) n *= mesh.size(l.axis);
    return n;
  }
  constexpr text axis_text(const sub_axis& s) const {
    text out;
    print_sub_axis(out, s, mesh);
    return out;
  }
  /// What a named axis and an axis of `mesh` that it has something in common with share.
  constexpr sub_axis common(int axis, int part) const {
    const sub_axis a = named.at(axis), b = mesh.part(part);
    const std::int64_t begin = a.pre > b.pre ? a.pre : b.pre;
    const std::int64_t end = a.end() < b.end() ? a.end() : b.end();
    return {a.axis, begin, end / begin};
  }

  /// The value that carries the tiling of `v`: `v` itself, or the `tiling` op's result behind it;
  /// where it is padded, the padded value.
  constexpr value_id holder(value_id v) const {
    while (!padding.widened.empty() && padding.widened[v] >= 0) v = padding.widened[v];
    for (const auto& u : uses(v))
      if (p.is(u.op, op_role::tiling)) return p.ops[u.op].result;
    return v;
  }
  /// Why an op is there, if it was inserted to pad something.
  constexpr padding_record::kind inserted(op_id o) const {
    const auto& list = padding.inserted;
    return static_cast<std::size_t>(o) < list.size() ? list[o].what : padding_record::kind::none;
  }
  /// Does an op only bring a value from its true size to a padded one, or back?
  constexpr bool resizes(op_id o) const {
    return inserted(o) == padding_record::kind::widen || inserted(o) == padding_record::kind::trim;
  }
  /// The value of the source program behind a chain of `tiling` ops and of those that pad.
  constexpr value_id source_of(value_id v) const {
    for (;;) {
      const op_id o = p.producer(v);
      if (inserted(o) == padding_record::kind::mask)
        v = p.operand(o, 1);
      else if (p.is(o, op_role::tiling) || resizes(o))
        v = p.operand(o, 0);
      else
        return v;
    }
  }
  /// A name for messages: of the parameter, tag or output, else "%N".
  constexpr text describe(value_id v) const {
    v = source_of(v);
    if (!p.name(v).empty()) return p.name(v);
    for (const auto& out : p.outputs)
      if (source_of(out.value) == v) return p.view(out.name);
    return concat('%', v);
  }
  /// A tactic for messages, counted from 1: `tactic 2 ("MP")`.
  constexpr text describe_tactic(int t) const {
    text out = concat("tactic ", t + 1);
    if (t < static_cast<int>(tactic_names.size())) out << " (\"" << tactic_names[t] << "\")";
    return out;
  }

 protected:
  constexpr void add_tile_map(op_id o) {
    const op_node& n = p.ops[o];
    scratch_.clear();
    for (value_id v : p.operands(o)) scratch_.push_back(p.types[v]);
    const auto attrs = p.attrs(o);
    const tensor_type none;
    tile_map_context c(scratch_, n.result_count > 0 ? p.type(n.result) : none, attrs.data(),
                       static_cast<int>(attrs.size()), map, n.result_count);
    n.def->tile_map(c);
  }

  constexpr void index_uses() {
    use_begin_.assign(p.types.size() + 1, 0);
    for (value_id v : p.operand_list) ++use_begin_[at(v) + 1];
    for (std::size_t v = 0; v < p.types.size(); ++v) use_begin_[v + 1] += use_begin_[v];
    uses_.assign(p.operand_list.size(), use{});
    vec<int> next(use_begin_.begin(), use_begin_.end());
    for (op_id o : order) {
      int i = 0;
      for (value_id v : p.operands(o)) uses_[next[v]++] = {o, i++};
    }
  }

 private:
  vec<int> use_begin_;
  vec<use> uses_;
  vec<tensor_type> scratch_;

  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
};

}  // namespace partita
